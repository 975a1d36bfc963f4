//! `longhaul export`: a session written out to be read in full.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::json;

use super::progress::Exporting;
use super::select::{self, Selector};
use super::{print, print_json};
use crate::base::text::clean;
use crate::base::tokens::short;
use crate::handoff::{Done, Request, export};
use crate::host::Host;

/// Write a session out: what the person said, what was decided, and the whole of it to search in
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true),
    after_help = "Examples:\n  longhaul export --session 3f2a9c1e-0000-4000-8000-1234567890ab\n  \
                  longhaul export --transcript FILE --out DIR --redact\n  \
                  longhaul export --session ID --budget 120000 --json\n\n\
                  01, 02 and 05 are to be read in full, 03 is for searching. The files hold everything that was said: \
                  they are readable by their owner alone, and --redact masks credentials by a list of rules."
)]
pub struct Args {
    /// The session
    #[arg(long, value_name = "ID", group = "which")]
    session: Option<String>,
    /// Its transcript (.jsonl) by path
    #[arg(long, value_name = "FILE", group = "which")]
    transcript: Option<PathBuf>,
    /// The directory to write; not there yet, or empty [default: handoffs/<time>-<session> among longhaul's files]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What the parts to be read in full may come to [default: a quarter of the session's wall]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// Mask credentials in every file, and leave out the compressed copy
    #[arg(long)]
    redact: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let store = select::place(host)?;
    let selector = Selector::of(args.session.clone(), args.transcript.clone());
    let (transcript, budget) = if let (Some(file), Some(budget)) = (&args.transcript, args.budget) {
        (file.clone(), budget)
    } else {
        let (subject, taken) = selector.read(host, None, 0)?;
        let Some(transcript) = subject.transcript else {
            bail!("could not find the session's transcript; name it with --transcript FILE");
        };
        (transcript, args.budget.unwrap_or(taken.reading.wall.tokens / 4))
    };
    let request = Request {
        transcript,
        out: args.out.clone(),
        budget,
        redact: args.redact,
        now_ms: host.now_ms(),
        ..Request::default()
    };
    let mut progress = Exporting::new();
    let done = export(&request, &store, &mut progress);
    progress.end();
    let done = done?;
    if args.json {
        let value =
            json!({ "id": done.id, "directory": done.dir, "session": done.session, "index": done.index });
        print_json(&value)
    } else {
        print(&told(&done))
    }
}

fn told(done: &Done) -> String {
    let mut text = clean(&done.dir.display().to_string()) + "\n";
    for group in &done.groups {
        let tokens = group.parts.iter().map(|part| part.tokens).sum();
        let entries: u64 = group.parts.iter().map(|part| part.entries).sum();
        let files = if group.parts.len() == 1 { "file" } else { "files" };
        text += &format!(
            "  {:<20} {entries:>5} entries, about {} tokens in {} {files}\n",
            group.name,
            short(tokens),
            group.parts.len()
        );
    }
    let damaged = &done.index["damage"]["lines"];
    text += &format!("  03 for searching, 04 counts it all; damaged lines {damaged}\n");
    if !done.index["redaction"].is_null() {
        text += &format!("  masked {} credentials; there is no compressed copy\n", done.masked);
    }
    let budget = &done.budget;
    if budget.decisions_moved > 0 || budget.blocks_clipped > 0 {
        text += &format!(
            "  to stay within {} tokens, {} oldest decisions are in 02b and {} pasted blocks are clipped\n",
            short(budget.tokens),
            budget.decisions_moved,
            budget.blocks_clipped
        );
    }
    if !budget.fits {
        text += &format!(
            "  the parts to be read in full come to about {} tokens, more than the budget of {}\n",
            short(budget.used),
            short(budget.tokens)
        );
    }
    text
}
