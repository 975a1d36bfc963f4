//! `longhaul handoff prune`: old handoffs go, with their exports. What a living chain needs stays.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::registry::{load, say, unread, warn};
use crate::base::id::is_plain;
use crate::base::span;
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json};
use crate::handoff::chain::needed;
use crate::host::Host;
use crate::store::Store;
use crate::store::chains::Entry;
use crate::store::exports::Gone;

/// Remove old handoffs and their exports; never the last export of a chain that goes on
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul handoff prune --older-than 30d --dry-run\n  \
                        longhaul handoff prune --older-than 8w --json\n\n\
                        A handoff is as old as the last thing that happened to it. What `longhaul export` wrote \
                        stays, so does the export of a forgotten handoff, and so do all transcripts: remove them by \
                        hand.")]
pub struct Args {
    /// How old, at least: a number and s, m, h, d or w
    #[arg(long, value_name = "SPAN", value_parser = older_than)]
    older_than: i64,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

fn older_than(text: &str) -> Result<i64, String> {
    span::parse(text).ok_or_else(|| "a whole number with s, m, h, d or w behind it, as 30d".to_owned())
}

/// Why an old handoff stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Needed,
    Worked,
}

impl Kept {
    fn why(self) -> &'static str {
        match self {
            Self::Needed => "the last export of a chain that goes on",
            Self::Worked => "another process works on it",
        }
    }
}

/// What became of old handoffs.
#[derive(Default)]
struct Outcome {
    /// With the bytes of their exports.
    gone: BTreeMap<String, u64>,
    /// Taken away, and deleted when nobody waits for the registry any more.
    #[allow(dead_code)]
    rest: Vec<Gone>,
    kept: BTreeMap<String, Kept>,
    failed: BTreeMap<String, String>,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<ExitCode> {
    let (store, entries) = load(host)?;
    let before = host.now_ms().saturating_sub(args.older_than);
    let outcome = if args.dry_run || entries.is_empty() {
        look(&store, &entries, before)
    } else {
        // While nobody can add to a chain: what is not needed now is not needed when it goes.
        let swept = store.change_chains(|entries| sweep(&store, entries, before));
        let (outcome, warning) = swept.with_context(|| unread(&store))?;
        warn(warning.as_deref());
        outcome
    };
    tell(args, host, &outcome)?;
    if let Some((id, why)) = outcome.failed.iter().next() {
        say(&format!("could not remove {} of them; {id}: {why}", outcome.failed.len()));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Old handoffs, and whether a living chain needs them.
fn old(entries: &[Entry], before: i64) -> BTreeMap<String, bool> {
    let needed = needed(entries);
    let is_young = |entry: &&Entry| last_ms(entry).is_none_or(|at| at > before);
    let young: BTreeSet<&str> = entries.iter().filter(is_young).map(|entry| &*entry.id).collect();
    let old = entries.iter().map(|entry| &*entry.id).filter(|id| !young.contains(id));
    old.map(|id| (id.to_owned(), needed.contains(id))).collect()
}

/// When the last thing happened to a handoff, where that is known.
fn last_ms(entry: &Entry) -> Option<i64> {
    let times = &entry.times;
    let all = [Some(times.began), times.exported, times.asked, times.ended].into_iter().flatten();
    all.max().filter(|at| *at > 0)
}

fn look(store: &Store, entries: &[Entry], before: i64) -> Outcome {
    let mut outcome = Outcome::default();
    for (id, needed) in old(entries, before) {
        if needed || store.export_is_held(&id) {
            outcome.kept.insert(id, if needed { Kept::Needed } else { Kept::Worked });
        } else {
            let bytes = store.export_bytes(&id);
            outcome.gone.insert(id, bytes);
        }
    }
    outcome
}

fn sweep(store: &Store, entries: &mut Vec<Entry>, before: i64) -> Outcome {
    let mut outcome = Outcome::default();
    for (id, needed) in old(entries, before) {
        if needed {
            outcome.kept.insert(id, Kept::Needed);
            continue;
        }
        match remove(store, &id) {
            Ok(Some(gone)) => {
                outcome.gone.insert(id, gone.bytes);
                outcome.rest.push(gone);
            }
            Ok(None) => {
                outcome.kept.insert(id, Kept::Worked);
            }
            Err(error) => {
                outcome.failed.insert(id, error.to_string());
            }
        }
    }
    entries.retain(|entry| !outcome.gone.contains_key(&entry.id));
    outcome
}

fn remove(store: &Store, id: &str) -> std::io::Result<Option<Gone>> {
    if !is_plain(id) {
        // No export was ever called so.
        return Ok(Some(Gone::default()));
    }
    store.take_away(id)
}

fn tell(args: &Args, host: &Host, outcome: &Outcome) -> Result<()> {
    let bytes: u64 = outcome.gone.values().sum();
    if args.json {
        let gone = outcome.gone.iter().map(|(id, bytes)| json!({ "id": id, "bytes": bytes }));
        let kept = outcome.kept.iter().map(|(id, kept)| json!({ "id": id, "why": kept.why() }));
        let failed = outcome.failed.iter().map(|(id, why)| json!({ "id": id, "why": why }));
        return print_json(&json!({
            "dry_run": args.dry_run,
            "bytes": bytes,
            "removed": gone.collect::<Vec<_>>(),
            "kept": kept.collect::<Vec<_>>(),
            "failed": failed.collect::<Vec<_>>(),
        }));
    }
    let mut page = Page::new(host);
    let (what, count) = (if args.dry_run { "Would remove" } else { "Removed" }, outcome.gone.len());
    let noun = if count == 1 { "handoff" } else { "handoffs" };
    page.line(&[(Look::Strong, &format!("{what} {count} {noun}, {} of exports.", megabytes(bytes)))]);
    for (id, bytes) in &outcome.gone {
        page.line(&[(Look::Plain, &format!("  {id}  {}", megabytes(*bytes)))]);
    }
    let kept: Vec<String> = outcome.kept.iter().map(|(id, kept)| format!("{id}  {}", kept.why())).collect();
    page.block("Old, and kept", Look::Plain, &kept);
    print(page.text())
}

/// `1.2 MB`, `40 kB`.
fn megabytes(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{} kB", bytes.div_ceil(1000))
    } else {
        format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
    }
}
