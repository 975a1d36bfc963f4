//! `longhaul handoff`: go on in a fresh session, and what became of earlier handoffs.

mod snooze;

use anyhow::Result;

use crate::host::Host;

/// Go on in a fresh session that has read this one
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Snooze(snooze::Args),
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    match &args.verb {
        Verb::Snooze(args) => snooze::run(args, host),
    }
}
