//! `longhaul doctor`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use super::page::{Look, Page};
use super::{print, print_json, select};
use crate::base::text::pad;
use crate::host::Host;
use crate::setup::VERSION;
use crate::setup::doctor::line::{Line, Mark};
use crate::setup::doctor::{examine, gather, places, settings};

/// Find what keeps longhaul from working, with a fix for each; looks, and changes nothing
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  longhaul doctor          a line a check, and what mends what is broken\n  \
                        longhaul doctor --json   the same for programs\n\nExit codes: 0 nothing is broken, 1 \
                        something is, 2 wrong usage."
)]
pub struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<ExitCode> {
    let lines = match select::store(host) {
        Some(store) => examine(&gather::gather(host, &store)),
        None => vec![places::homeless(), settings::project(&gather::project_alone(host))],
    };
    let healthy = !lines.iter().any(Line::is_broken);
    if args.json {
        print_json(&json!({ "version": VERSION, "healthy": healthy, "checks": lines }))?;
    } else {
        let mut page = Page::new(host);
        show(&mut page, &lines);
        print(page.text())?;
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(page: &mut Page, lines: &[Line]) {
    for line in lines {
        let look = match line.mark {
            Mark::Ok => Look::Good,
            Mark::Note => Look::Warn,
            Mark::Broken => Look::Bad,
        };
        let mark = pad(line.mark.word(), 8);
        page.line(&[(look, &mark), (Look::Strong, &pad(line.name, 13)), (Look::Plain, &line.what)]);
        if let Some(fix) = &line.fix {
            page.line(&[(Look::Plain, &" ".repeat(21)), (Look::Faint, "fix: "), (Look::Plain, fix)]);
        }
    }
    page.gap();
    let broken = lines.iter().filter(|line| line.is_broken()).count();
    match broken {
        0 => page.line(&[(Look::Good, "Nothing is broken.")]),
        1 => page.line(&[(Look::Bad, "1 thing is broken.")]),
        n => page.line(&[(Look::Bad, &format!("{n} things are broken."))]),
    }
}
