//! `longhaul watch list`: every watch in a line.

use anyhow::Result;
use serde_json::json;

use super::registry::{load, progress, state, told, value};
use crate::base::text::{fit, width};
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json};
use crate::host::{Host, terminal};
use crate::store::watches::State;
use crate::watches::wording;

/// List watches: number, state, what is watched, how often it spoke
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch list\n  longhaul watch list --all --json\n\n\
                        States: active, waiting (no open session runs it now; its place stays), paused, ended.")]
pub struct Args {
    /// Those that have ended too
    #[arg(long)]
    all: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A line that is no terminal's has so many cells.
const CELLS: usize = 160;

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, mut watches) = load(host)?;
    watches.retain(|watch| args.all || watch.state != State::Ended);
    if args.json {
        let all: Vec<_> = watches.iter().map(|watch| value(&store, watch)).collect();
        return print_json(&json!({ "watches": all }));
    }
    if watches.is_empty() {
        return print("Nothing is watched. longhaul watch add --help says how to begin.\n");
    }
    let cells = terminal::stdout_columns(host).unwrap_or(CELLS);
    let mut page = Page::new(host);
    for watch in &watches {
        let (word, look) = state(&store, watch);
        let number = format!("{:>3}  ", watch.number);
        let said = told(&progress(&store, watch), host.now_ms());
        let used = width(&number) + 9 + 2 + width(&said);
        let what = fit(&wording::described(watch), cells.saturating_sub(used).max(20));
        page.line(&[
            (Look::Strong, &number),
            (look, &format!("{word:<9}")),
            (Look::Plain, &what),
            (Look::Faint, &format!("  {said}")),
        ]);
    }
    print(page.text())
}
