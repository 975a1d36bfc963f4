//! `longhaul handoff show`: all that is known of one handoff.

use anyhow::Result;
use serde_json::json;

use super::registry::{Which, load, one, resume, retry, state, value};
use crate::base::span::{rough, stamp};
use crate::base::tokens::short;
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json};
use crate::host::Host;
use crate::store::Store;
use crate::store::chains::{Entry, Link, State};

/// Show everything that is known of one handoff, and how to go on
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul handoff show 20261130T173134Z-3f2a9c1e\n  \
                        longhaul handoff show 3f2a9c1e-0000-4000-8000-1234567890ab --json")]
pub struct Args {
    #[command(flatten)]
    pub(super) which: Which,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, entries) = load(host)?;
    let entry = one(&entries, &args.which.id)?;
    if args.which.json {
        let mut value = value(&store, entry)?;
        value["go_on"] = json!(ways_on(&store, entry));
        return print_json(&value);
    }
    let mut page = Page::new(host);
    show(&mut page, &store, entry);
    print(page.text())
}

/// Commands that go on from here.
fn ways_on(store: &Store, entry: &Entry) -> Vec<String> {
    let read = matches!(entry.state, State::Accepted | State::Partial);
    resume(entry).filter(|_| read).into_iter().chain(retry(store, entry)).collect()
}

fn show(page: &mut Page, store: &Store, entry: &Entry) {
    let (word, look) = state(store, entry);
    page.line(&[(Look::Strong, &entry.id), (Look::Plain, "  "), (look, word)]);
    let mut row = |name: &str, text: &str| {
        if !text.is_empty() {
            page.line(&[(Look::Faint, &format!("  {name:<11}")), (Look::Plain, text)]);
        }
    };
    row("from", &session(Some(&entry.parent), entry.parent_name.as_deref().unwrap_or_default()));
    row("to", &session(entry.child.as_ref(), &entry.name));
    row("generation", &if entry.generation > 0 { entry.generation.to_string() } else { String::new() });
    row("began", &times(entry));
    row("export", &entry.directory.display().to_string());
    row("transcript", &entry.transcript.display().to_string());
    row("directory", &entry.cwd.as_ref().map(|cwd| cwd.display().to_string()).unwrap_or_default());
    row("brief", &entry.brief.as_ref().map(|file| file.display().to_string()).unwrap_or_default());
    row("weight", &weight(entry));
    row("model", entry.model.as_deref().unwrap_or_default());
    row("client", entry.client_version.as_deref().unwrap_or_default());
    row("budget", &if entry.budget > 0 { format!("{} tokens", short(entry.budget)) } else { String::new() });
    row("masked", if entry.redact { "credentials, by a list of rules" } else { "" });
    row("retries", &if entry.retries > 0 { entry.retries.to_string() } else { String::new() });
    row("ids in use", &entry.ids_in_use.join(", "));
    if let Some(proof) = &entry.proof {
        let short = proof.shortfalls.len();
        let what =
            if proof.accepted { "every check passed".to_owned() } else { format!("{short} fall short") };
        let text = format!("{} parts, {} marks, {} turns: {what}", proof.parts, proof.marks, proof.turns);
        row("proof", &text);
        let lines: Vec<String> =
            proof.shortfalls.iter().map(|it| format!("{}  {}: {}", it.part, it.check, it.what)).collect();
        page.block("Falls short", Look::Warn, &lines);
    }
    if let Some(outlook) = &entry.outlook {
        page.block("Open threads", Look::Plain, &lines(&outlook.open_threads));
        page.block("Standing instructions", Look::Plain, &lines(&outlook.standing_instructions));
        page.block("What it would do first", Look::Plain, &lines(std::slice::from_ref(&outlook.next)));
    }
    if let Some(failure) = &entry.failure {
        let line = format!("{}: {}", failure.kind, failure.message);
        page.block("Why it did not come about", Look::Bad, &[line]);
    }
    if store.export_is_held(&entry.id) {
        page.block("Under way", Look::Plain, &["another process works on it now".to_owned()]);
    }
    page.block("Go on", Look::Plain, &ways_on(store, entry));
}

/// Each text in one line.
fn lines(texts: &[String]) -> Vec<String> {
    let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    texts.iter().map(one_line).filter(|line| !line.is_empty()).collect()
}

fn session(link: Option<&Link>, name: &str) -> String {
    let id = link.map(|link| &*link.session).unwrap_or_default();
    if name.is_empty() { id.to_owned() } else { format!("{id}  {name}").trim_start().to_owned() }
}

fn times(entry: &Entry) -> String {
    let times = &entry.times;
    let mut text = stamp(times.began);
    if let Some(exported) = times.exported {
        text += &format!(", exported in {}", rough(exported.saturating_sub(times.began)));
    }
    if let Some(ended) = times.ended {
        text += &format!(", ended after {}", rough(ended.saturating_sub(times.began)));
    }
    text
}

fn weight(entry: &Entry) -> String {
    let Some(weight) = &entry.weight else { return String::new() };
    let tokens = weight.tokens.map_or_else(|| "–".to_owned(), short);
    format!("{tokens} of {} tokens, {} points, {}", short(weight.wall), weight.points, weight.urgency)
}
