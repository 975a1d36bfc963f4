//! Exports that a compaction left to be finished, of whichever session: that one may have no watcher.

use std::ops::ControlFlow;

use super::FAREWELL_MS;
use super::duties::{Duty, EVERY_MS, Whose, Work};
use crate::handoff::{Follow, automatic};
use crate::host::Host;
use crate::host::door::guarded;
use crate::host::worker::{Rest, Worker};
use crate::store::Store;
use crate::store::jobs::Claim;

/// Finishes them on a thread of their own: one may take minutes, and no other duty waits for it.
pub fn duty() -> Duty {
    beside(finish)
}

fn beside(finish: impl Fn(&Host, &Store, &Rest) + Clone + Send + 'static) -> Duty {
    let mut at_work = AtWork(None);
    let run = move |work: &Work| {
        let now_ms = work.host.now_ms();
        let goes_on = at_work.0.as_ref().is_some_and(Worker::goes_on);
        if !goes_on && work.store.jobs().iter().any(|(_, job)| !job.rests(now_ms)) {
            let (host, store, finish) = (work.host.clone(), work.store.clone(), finish.clone());
            at_work.0 = Some(Worker::within(work.rest, move |rest| finish(&host, &store, rest)));
        }
        Ok(())
    };
    Duty { name: "export", every_ms: EVERY_MS, whose: Whose::Leader, run: Box::new(run) }
}

/// The thread, which gets a moment to stop in order when the duties end.
struct AtWork(Option<Worker>);

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(worker) = self.0.take() {
            worker.end(FAREWELL_MS);
        }
    }
}

/// Finishes the jobs that do not rest, until the watcher is about to end.
fn finish(host: &Host, store: &Store, rest: &Rest) {
    let now_ms = host.now_ms();
    for (id, _) in store.jobs().into_iter().filter(|(_, job)| !job.rests(now_ms)) {
        if rest.asked() {
            return;
        }
        let Some(claim) = store.claim(&id).ok().flatten() else { continue };
        let done = guarded(|| finish_one(store, claim, now_ms, rest));
        if let Err(what) | Ok(Err(what)) = done {
            store.trace(now_ms, "longhaul-watch", &format!("the export {id}: {what}"));
        }
    }
}

fn finish_one(store: &Store, claim: Claim, now_ms: i64, rest: &Rest) -> Result<(), String> {
    automatic::finish(store, claim, now_ms, &mut WhileAwake(rest))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// An export that is stopped in order is taken up by the next watcher where it was left.
struct WhileAwake<'a>(&'a Rest);

impl Follow for WhileAwake<'_> {
    fn at(&mut self, _share: u64) -> ControlFlow<()> {
        if self.0.asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::SessionId;
    use crate::host::clock::Deadline;
    use crate::store::jobs::Job;
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    #[test]
    fn an_export_holds_up_no_other_duty_and_is_begun_once() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        let (begun, begins) = channel();
        let (go_on, waits) = channel::<()>();
        let waits = Arc::new(Mutex::new(waits));
        let mut duty = beside(move |_, _, _| {
            begun.send(()).unwrap();
            let _ = waits.lock().unwrap().recv();
        });
        let rest = Rest::default();
        let work =
            Work { host: &host, store: &store, session: None, client: None, grace: false, rest: &rest };
        let long = Duration::from_secs(20);
        (duty.run)(&work).unwrap();
        let session = SessionId::parse("s").unwrap();
        drop(store.begin_job(Job::new(&session, Path::new("/t.jsonl"), 7, 0)).unwrap());
        // It comes back though the export goes on, and begins no second one.
        (duty.run)(&work).unwrap();
        begins.recv_timeout(long).unwrap();
        (duty.run)(&work).unwrap();
        assert!(begins.try_recv().is_err(), "nothing to do, or at it already");
        go_on.send(()).unwrap();
        let deadline = Deadline::after_ms(20_000);
        while begins.try_recv().is_err() {
            assert!(!deadline.passed(), "the job is still there, and nobody takes it up");
            (duty.run)(&work).unwrap();
            std::thread::yield_now();
        }
        drop(go_on);
    }
}
