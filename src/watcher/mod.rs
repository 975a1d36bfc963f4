//! The watcher: lives silently as long as its client, and ends with it. Every line it printed, and any exit
//! of its own, would cost the session a model turn, so it prints nothing and only ends when nobody is left
//! to be disturbed.

use crate::host::process::{self, Process};
use crate::host::{Host, stdout};

/// How often it looks whether its client is there, in ms.
const EVERY_MS: u64 = 2_000;

/// Waits for the end of its client, or of the one that reads its output.
pub fn run(host: &Host) {
    let client = host.env("CLAUDE_PID").and_then(|text| text.parse().ok()).map(process::find);
    let runs = || match &client {
        // Nobody said whose client it is: the reader's end is the sign then.
        None => true,
        Some(client) => client.as_ref().is_some_and(Process::runs),
    };
    while runs() && stdout::is_read_within(EVERY_MS) {}
}
