//! `longhaul watch log`: what a watch told, with what was only counted.

use anyhow::{Result, anyhow};
use serde_json::json;

use super::registry::{load, one, warn};
use crate::base::span::{self, stamp};
use crate::base::text::clean;
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json};
use crate::host::Host;

/// Show what a watch told, the oldest first, with what was only summed up for the session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul watch log 3\n  longhaul watch log 3 --since 2h --json\n\n\
                        The last megabytes are kept. What was watched is data, whatever it says.")]
pub struct Args {
    /// The watch's number
    #[arg(value_name = "N")]
    number: u64,
    /// Only what came since then: a number and s, m, h, d or w, or a time as 2026-11-30T17:00:00Z
    #[arg(long, value_name = "SPAN|TIME")]
    since: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, watches) = load(host)?;
    let watch = one(&watches, args.number)?;
    let since = args.since.as_deref().map(|text| since(text, host.now_ms())).transpose()?;
    let (mut all, bad) = store.told(watch.number);
    all.retain(|told| since.is_none_or(|since| told.at_ms >= since));
    if bad > 0 {
        warn(Some(&format!("{bad} lines of {} could not be read", store.told_path(watch.number).display())));
    }
    if args.json {
        return print_json(&json!({ "number": watch.number, "told": all }));
    }
    if all.is_empty() {
        return print(&format!(
            "Watch {} has told nothing{}.\n",
            watch.number,
            if since.is_some() { " since then" } else { "" }
        ));
    }
    let mut page = Page::new(host);
    for told in &all {
        let held = if told.held { "  (summed up for the session)" } else { "" };
        page.line(&[(Look::Strong, &stamp(told.at_ms)), (Look::Faint, held)]);
        for line in told.text.lines() {
            page.line(&[(Look::Plain, "  "), (Look::Plain, &clean(line))]);
        }
    }
    print(page.text())
}

/// The moment that is meant, epoch milliseconds.
fn since(text: &str, now_ms: i64) -> Result<i64> {
    let back = span::parse(text).map(|back| now_ms.saturating_sub(back));
    back.or_else(|| span::parse_stamp(text)).ok_or_else(|| {
        anyhow!("'{}' is no span (as 2h or 30m) and no time (as 2026-11-30T17:00:00Z)", text.escape_debug())
    })
}
