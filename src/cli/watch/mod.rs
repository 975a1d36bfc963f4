//! `longhaul watch`: what a session wants to be told of, without a deadline.

mod add;
mod change;
mod list;
mod log;
mod registry;
mod show;
mod wait;

use std::process::ExitCode;

use anyhow::Result;

use crate::host::Host;

/// Tell a session of new lines, outputs, ends of processes and moments, without a deadline
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const HELP: &str = "Examples:
  longhaul watch add --file build.log --match 'error|FAILED'
  longhaul watch add --command 'gh run view 42 --json status' --every 60s --until-match completed
  longhaul watch add --process 4242
  longhaul watch add --after 40m 'look at the deployment'
  longhaul watch list
  longhaul watch wait --timeout 2h           where no watcher runs: ends with the first event

What is found is written to the session's inbox and told by its watcher, numbered, each thing once. Watches \
outlive /clear, resume and restarts. A command that the model watches ends with its client, unless a \
person says `longhaul watch keep N`.";

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Add(Box<add::Args>),
    List(list::Args),
    Show(show::Args),
    Pause(change::Pause),
    Resume(change::Resume),
    Remove(change::Remove),
    Keep(change::Keep),
    Log(log::Args),
    Wait(wait::Args),
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<ExitCode> {
    match &args.verb {
        Verb::Add(args) => add::run(args, host)?,
        Verb::List(args) => list::run(args, host)?,
        Verb::Show(args) => show::run(args, host)?,
        Verb::Pause(args) => args.run(host)?,
        Verb::Resume(args) => args.run(host)?,
        Verb::Remove(args) => args.run(host)?,
        Verb::Keep(args) => args.run(host)?,
        Verb::Log(args) => log::run(args, host)?,
        Verb::Wait(args) => return wait::run(args, host),
    }
    Ok(ExitCode::SUCCESS)
}
