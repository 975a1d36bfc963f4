//! `longhaul handoff guard`: asked by the client before every tool of a reading child. Anything but exit 0 and
//! silence means that the tool does not run: with exit code 2 the client blocks it.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::handoff::guard::refusal;
use crate::host::clock::Deadline;
use crate::host::input;

/// Refuse every tool but Read below one directory (for the hook of a reading session)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory
    #[arg(long, value_name = "DIR")]
    only: PathBuf,
}

/// How long the event is waited for, in ms, and how large it may be, in bytes.
const WAIT_MS: u64 = 10_000;
const MOST: usize = 16 << 20;

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    let event = input::read_stdin(MOST, Deadline::after_ms(WAIT_MS));
    match refusal(&event, &args.only) {
        None => ExitCode::SUCCESS,
        Some(why) => {
            super::registry::say(&why);
            ExitCode::from(2)
        }
    }
}
