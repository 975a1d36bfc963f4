//! The watcher: lives silently as long as its client, and ends with it. Every line it printed, and any exit
//! of its own, would cost the session a model turn, so it prints nothing and only ends when nobody is left
//! to be disturbed.
//!
//! Exports that a compaction left to be finished it finishes, whichever session they are of: that one may have
//! no watcher.

use crate::handoff::automatic;
use crate::host::door::guarded;
use crate::host::process::{self, Process};
use crate::host::{Host, stdout};
use crate::store::Store;
use crate::store::jobs::Claim;

/// How often it looks whether its client is there, and whether there is work, in ms.
const EVERY_MS: u64 = 2_000;

/// Waits for the end of its client, or of the one that reads its output.
pub fn run(host: &Host) {
    let client = host.env("CLAUDE_PID").and_then(|text| text.parse().ok()).map(process::find);
    let runs = || match &client {
        // Nobody said whose client it is: the reader's end is the sign then.
        None => true,
        Some(client) => client.as_ref().is_some_and(Process::runs),
    };
    let project = host.env_path("CLAUDE_PROJECT_DIR");
    let store = Store::locate(host, &project.as_deref().into_iter().collect::<Vec<_>>());
    while runs() && stdout::is_read_within(EVERY_MS) {
        if let Some(store) = &store {
            work(host, store, runs);
        }
    }
}

/// Finishes the jobs that do not rest, as long as there is a client.
fn work(host: &Host, store: &Store, runs: impl Fn() -> bool) {
    let now_ms = host.now_ms();
    for (id, _) in store.jobs().into_iter().filter(|(_, job)| !job.rests(now_ms)) {
        let Some(claim) = store.claim(&id).ok().flatten().filter(|_| runs()) else { continue };
        // An end of its own would cost the session a turn.
        let done = guarded(|| finish(store, claim, now_ms));
        if let Err(what) | Ok(Err(what)) = done {
            store.trace(now_ms, "longhaul-watch", &format!("the export {id}: {what}"));
        }
    }
}

fn finish(store: &Store, claim: Claim, now_ms: i64) -> Result<(), String> {
    automatic::finish(store, claim, now_ms, &mut ()).map(drop).map_err(|error| error.to_string())
}
