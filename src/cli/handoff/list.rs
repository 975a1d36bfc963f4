//! `longhaul handoff list`: every handoff, the newest first.

use anyhow::Result;
use serde_json::json;

use super::registry::{load, table, value};
use crate::cli::page::Page;
use crate::cli::{print, print_json};
use crate::host::Host;
use crate::store::chains::Entry;

/// List all handoffs, the newest first: id, state, parent → child, age, weight of the parent, name
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul handoff list\n  longhaul handoff list --json\n\n\
                        States: exporting, prepared (nobody was asked to read it yet), reading, accepted (read in \
                        full, and proven), partial (parts are not proven to be read), failed, interrupted.")]
pub struct Args {
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, entries) = load(host)?;
    let mut newest: Vec<&Entry> = entries.iter().rev().collect();
    newest.sort_by_key(|entry| std::cmp::Reverse(entry.times.began));
    if args.json {
        let all = newest.into_iter().map(|entry| value(&store, entry)).collect::<Result<Vec<_>>>()?;
        return print_json(&json!({ "handoffs": all }));
    }
    if newest.is_empty() {
        return print("There are no handoffs yet.\n");
    }
    let mut page = Page::new(host);
    table(&mut page, host, &store, &newest);
    print(page.text())
}
