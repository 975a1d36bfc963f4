//! `longhaul watch show`: all that is known of one watch.

use anyhow::Result;

use super::registry::{bound, load, one, progress, state, told, value};
use crate::base::span::stamp;
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json};
use crate::host::Host;
use crate::watches::wording;

/// Show all that is known of one watch
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch show 3\n  longhaul watch show 3 --json")]
pub struct Args {
    /// The watch's number
    #[arg(value_name = "N")]
    number: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, watches) = load(host)?;
    let watch = one(&watches, args.number)?;
    if args.json {
        return print_json(&value(&store, watch));
    }
    let (word, look) = state(&store, watch);
    let progress = progress(&store, watch);
    let mut page = Page::new(host);
    page.line(&[
        (Look::Strong, &format!("watch {} {}", watch.number, wording::label(watch))),
        (Look::Plain, "  "),
        (look, word),
    ]);
    let mut row = |name: &str, text: &str| {
        if !text.is_empty() {
            page.line(&[(Look::Faint, &format!("  {name:<11}")), (Look::Plain, text)]);
        }
    };
    row("watches", &wording::subject(&watch.subject));
    row("limits", &wording::limits(watch).join(", "));
    row("for", &bound(watch));
    row("in", &watch.directory.display().to_string());
    let by = if watch.by_model { "within a session" } else { "by a person" };
    row("made", &format!("{} {by}{}", stamp(watch.made_ms), if watch.kept { ", kept" } else { "" }));
    row("told", &told(&progress, host.now_ms()));
    row("an hour", &format!("{} times at most, the rest summed up", watch.most));
    if progress.window.held > 0 {
        row(
            "held back",
            &format!("{} times, until {}", progress.window.held, stamp(progress.window.ends_ms())),
        );
    }
    row("fails", progress.failing.as_deref().unwrap_or_default());
    if let Some(ended) = &watch.ended {
        row("ended", &format!("{}: {}", stamp(ended.at_ms), ended.why));
    }
    row("log", &store.told_path(watch.number).display().to_string());
    print(page.text())
}
