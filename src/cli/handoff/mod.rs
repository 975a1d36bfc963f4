//! `longhaul handoff`: go on in a fresh session, and what became of earlier handoffs.

mod chain;
mod forget;
mod go;
mod guard;
mod list;
mod prune;
mod registry;
mod show;
mod snooze;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::cli::print_json;
use crate::host::Host;

/// Go on in a fresh session that has provably read this one in full
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true, after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    go: go::GoArgs,
}

const HELP: &str = "Examples:
  longhaul handoff --session ID --brief brief.md    export, a new session reads it, the proof
  longhaul handoff --session ID --prepare           the export alone, however full the session is
  longhaul handoff retry ID                         go on with one that was stopped or fell short

The new session may use Read on the export and nothing else while it reads. What it has read is \
checked three ways: by counts, by marks in the text, and by its own transcript. It takes minutes.

Exit codes: 0 done, 1 not everything was read or could not be done, 2 wrong usage, 3 not due, \
4 too large for the new session, 5 no client, 6 client did not start, 7 timed out, 8 client failed, \
9 session ids in use, 10 no answer that can be checked, 128+n stopped by signal n.";

#[derive(Debug, clap::Subcommand)]
enum Verb {
    List(list::Args),
    Chain(chain::Args),
    Show(show::Args),
    Retry(go::RetryArgs),
    Snooze(snooze::Args),
    Forget(forget::Args),
    Prune(prune::Args),
    #[command(hide = true)]
    Guard(guard::Args),
}

/// Runs the verb. Who asked for JSON gets it of a failure, too.
pub fn run(args: &Args, host: &Host) -> Result<ExitCode> {
    let done = run_verb(args, host);
    if let (Err(error), true) = (&done, args.json()) {
        let message = format!("{error:#}");
        print_json(&json!({ "error": { "kind": "other", "message": message, "code": 1 } }))?;
    }
    done
}

impl Args {
    fn json(&self) -> bool {
        match &self.verb {
            None => self.go.json,
            Some(Verb::List(args)) => args.json,
            Some(Verb::Chain(args)) => args.json,
            Some(Verb::Show(args)) => args.which.json,
            Some(Verb::Retry(args)) => args.json,
            Some(Verb::Snooze(args)) => args.json,
            Some(Verb::Forget(args)) => args.which.json,
            Some(Verb::Prune(args)) => args.json,
            Some(Verb::Guard(_)) => false,
        }
    }
}

fn run_verb(args: &Args, host: &Host) -> Result<ExitCode> {
    match &args.verb {
        None => return go::run(&args.go, host),
        Some(Verb::Retry(args)) => return go::retry(args, host),
        Some(Verb::Guard(args)) => return Ok(guard::run(args)),
        Some(Verb::Prune(args)) => return prune::run(args, host),
        Some(Verb::List(args)) => list::run(args, host)?,
        Some(Verb::Chain(args)) => chain::run(args, host)?,
        Some(Verb::Show(args)) => show::run(args, host)?,
        Some(Verb::Snooze(args)) => snooze::run(args, host)?,
        Some(Verb::Forget(args)) => forget::run(args, host)?,
    }
    Ok(ExitCode::SUCCESS)
}
