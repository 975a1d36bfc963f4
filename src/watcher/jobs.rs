//! Exports that a compaction left to be finished, of whichever session: that one may have no watcher.

use std::ops::ControlFlow;

use super::duties::Work;
use crate::handoff::{Follow, automatic};
use crate::host::door::guarded;
use crate::host::worker::Rest;
use crate::store::jobs::Claim;

/// Finishes the jobs that do not rest, until the watcher is about to end.
pub fn finish(work: &Work) {
    let now_ms = work.host.now_ms();
    for (id, _) in work.store.jobs().into_iter().filter(|(_, job)| !job.rests(now_ms)) {
        if work.rest.asked() {
            return;
        }
        let Some(claim) = work.store.claim(&id).ok().flatten() else { continue };
        let done = guarded(|| finish_one(work, claim, now_ms));
        if let Err(what) | Ok(Err(what)) = done {
            work.store.trace(now_ms, "longhaul-watch", &format!("the export {id}: {what}"));
        }
    }
}

fn finish_one(work: &Work, claim: Claim, now_ms: i64) -> Result<(), String> {
    let mut follow = WhileAwake(work.rest);
    automatic::finish(work.store, claim, now_ms, &mut follow).map(drop).map_err(|error| error.to_string())
}

/// An export that is stopped in order is taken up by the next watcher where it was left.
struct WhileAwake<'a>(&'a Rest);

impl Follow for WhileAwake<'_> {
    fn at(&mut self, _share: u64) -> ControlFlow<()> {
        if self.0.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
