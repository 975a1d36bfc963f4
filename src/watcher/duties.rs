//! What is done beside delivering: each duty with its own period, some by every watcher for its own session, some
//! by one watcher for all. A duty that fails, or panics, is tried again the next time.
//!
//! They run in groups, each on a thread of its own, so that what holds one up (a large file, a file system that does
//! not answer) delays neither the delivery nor the other group. Within a group one runs after another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::id::SessionId;
use crate::host::Host;
use crate::host::clock::Stopwatch;
use crate::host::door::guarded;
use crate::host::process::Process;
use crate::host::worker::Rest;
use crate::store::Store;
use crate::store::lock::Held;

use super::pace::{Clocks, Pace};

/// How often the leader's place is looked at, and the shortest period of a duty, in ms.
pub(super) const EVERY_MS: u64 = 2_000;
/// A leader shows that it is alive every so many rounds; one that did not in so many is stopped, or hangs.
const SHOWS: u32 = 30;
const SILENT: u32 = 90;
/// Entries of a directory that are looked at in one go.
const PRUNE: usize = 1_000;

/// Whose duty it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Every watcher's, for its own session.
    Each,
    /// One watcher's, for all.
    Leader,
}

/// Does a duty once. The message of a failure goes into the trace.
pub type Run = Box<dyn FnMut(&Work) -> Result<(), String> + Send>;

/// One duty.
pub struct Duty {
    /// What a trace calls it.
    pub name: &'static str,
    /// Its period, in ms.
    pub every_ms: u64,
    /// Whose it is.
    pub whose: Whose,
    /// Does it.
    pub run: Run,
}

/// What a duty works with.
pub struct Work<'a> {
    /// This machine.
    pub host: &'a Host,
    /// Our files.
    pub store: &'a Store,
    /// The session that this watcher delivers to now.
    pub session: Option<SessionId>,
    /// Its client.
    pub client: Option<&'a Process>,
    /// The machine slept a moment ago: silence says nothing yet.
    pub grace: bool,
    /// Whether the watcher is about to end.
    pub rest: &'a Rest,
}

/// All duties, in their groups. Whoever has one more adds it here.
pub fn groups() -> [Vec<Duty>; 2] {
    let prune = |work: &Work| {
        work.store.prune_watchers(PRUNE);
        work.store.prune_inboxes(work.host.now_ms(), PRUNE);
        Ok(())
    };
    let prune = Duty { name: "prune", every_ms: 3_600_000, whose: Whose::Leader, run: Box::new(prune) };
    [vec![super::watches::duty()], vec![super::fleet::duty(), super::jobs::duty(), prune]]
}

/// What the main thread and the duties tell each other.
#[derive(Debug, Default)]
pub struct Shared {
    /// The session that is delivered to.
    pub session: Option<SessionId>,
    /// Whether this watcher leads.
    pub leads: bool,
}

/// The leader's place, as one watcher sees it. Rounds are counted, not time: who was stopped or slept itself has seen
/// no silence.
#[derive(Debug, Default)]
struct Place {
    lead: Option<Held>,
    rounds: u32,
    version: u64,
}

impl Place {
    /// Looks at it, and takes it where it is free. Whether this watcher leads.
    fn look(&mut self, store: &Store) -> bool {
        self.rounds = self.rounds.saturating_add(1);
        if self.lead.as_ref().is_some_and(|lead| !store.leads(lead)) {
            self.lead = None;
        }
        if let Some(lead) = &self.lead {
            if self.rounds >= SHOWS {
                self.rounds = 0;
                let _ = lead.show();
            }
            return true;
        }
        self.lead = store.lead().ok().flatten();
        let version = store.leader_version();
        if self.lead.is_some() || version != self.version {
            (self.version, self.rounds) = (version, 0);
        } else if self.rounds >= SILENT {
            store.depose(version);
            self.lead = store.lead().ok().flatten();
            self.rounds = 0;
        }
        self.lead.is_some()
    }
}

/// Does the duties of a group until it is asked to rest.
pub struct Duties {
    /// This machine.
    pub host: Host,
    /// Our files.
    pub store: Store,
    /// The client.
    pub client: Option<Process>,
    /// The other thread.
    pub shared: Arc<Mutex<Shared>>,
    /// How fast time goes.
    pub pace: Pace,
    /// What there is to do.
    pub list: Vec<Duty>,
}

impl Duties {
    /// See [`Duties`].
    pub fn run(mut self, rest: &Rest) {
        let watch = Stopwatch::start();
        let mut clocks = Clocks::default();
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        let mut failed: BTreeMap<&str, String> = BTreeMap::new();
        let mut place = Place::default();
        let may_lead = self.list.iter().any(|duty| duty.whose == Whose::Leader);
        loop {
            let leads = may_lead && place.look(&self.store);
            if may_lead {
                self.shared.lock().unwrap_or_else(PoisonError::into_inner).leads = leads;
            }
            let ms = self.pace.passed(watch);
            let grace = clocks.tick(ms, self.pace.wall(self.host.now_ms()));
            for duty in &mut self.list {
                let is_due = last.get(duty.name).is_none_or(|last| ms.saturating_sub(*last) >= duty.every_ms);
                if !is_due || (duty.whose == Whose::Leader && !leads) || rest.asked() {
                    continue;
                }
                last.insert(duty.name, ms);
                let session = self.shared.lock().unwrap_or_else(PoisonError::into_inner).session.clone();
                let work = Work {
                    host: &self.host,
                    store: &self.store,
                    session,
                    client: self.client.as_ref(),
                    grace,
                    rest,
                };
                match guarded(|| (duty.run)(&work)) {
                    Ok(Ok(())) => drop(failed.remove(duty.name)),
                    Err(what) | Ok(Err(what)) => {
                        // Said once: it may fail every two seconds.
                        if failed.get(duty.name) != Some(&what) {
                            let line = format!("{}: {what}", duty.name);
                            self.store.trace(self.host.now_ms(), "longhaul-watch", &line);
                            failed.insert(duty.name, what);
                        }
                    }
                }
            }
            if rest.wait(self.pace.wait(EVERY_MS)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::worker::Worker;
    use std::sync::mpsc::{Receiver, channel};

    fn duty(name: &'static str, whose: Whose, every_ms: u64) -> (Duty, Receiver<Option<SessionId>>) {
        let (sender, done) = channel();
        let run = move |work: &Work| {
            sender.send(work.session.clone()).unwrap();
            match name {
                "fails" => Err("it failed".to_owned()),
                "panics" => panic!("it panicked"),
                _ => Ok(()),
            }
        };
        (Duty { name, every_ms, whose, run: Box::new(run) }, done)
    }

    #[test]
    fn each_duty_is_done_by_whose_it_is_and_no_failure_ends_the_others() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        let lead = store.lead().unwrap();
        assert!(lead.is_some());
        let (own, own_done) = duty("own", Whose::Each, 0);
        let (fails, _failed) = duty("fails", Whose::Each, 0);
        let (panics, _panicked) = duty("panics", Whose::Each, 0);
        let (rare, rare_done) = duty("rare", Whose::Each, 3_600_000);
        let (all, all_done) = duty("all", Whose::Leader, 0);
        let shared: Arc<Mutex<Shared>> = Arc::default();
        shared.lock().unwrap().session = SessionId::parse("s");
        let duties = Duties {
            host,
            store: store.clone(),
            client: None,
            shared: Arc::clone(&shared),
            pace: Pace::times(100),
            list: vec![fails, panics, own, rare, all],
        };
        let worker = Worker::start(move |rest| duties.run(rest));
        let long = std::time::Duration::from_secs(20);
        for _ in 0..3 {
            assert_eq!(own_done.recv_timeout(long).unwrap(), SessionId::parse("s"));
        }
        assert!(all_done.try_recv().is_err() && !shared.lock().unwrap().leads, "another leads");
        drop(lead);
        all_done.recv_timeout(long).unwrap();
        assert!(shared.lock().unwrap().leads);
        worker.end(20_000);
        assert_eq!(rare_done.try_iter().count(), 1);
        let trace = fs_err::read_to_string(store.dir().join("trace.log")).unwrap();
        assert_eq!(trace.matches("fails: it failed").count(), 1, "{trace}");
        assert_eq!(trace.matches("panics: it panicked").count(), 1, "{trace}");
        assert!(store.lead().unwrap().is_some(), "its lock is left");
    }
}
