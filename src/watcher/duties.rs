//! What is done beside delivering: each duty with its own period, some by every watcher for its own session, some
//! by one watcher for all. A duty that fails, or panics, is tried again the next time.
//!
//! They run on a thread of their own, one after another: a long one delays the others, never the delivery.

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

use super::jobs;
use super::pace::{Clocks, Pace};

/// How often the leader's place is looked at, and the shortest period of a duty, in ms.
const EVERY_MS: u64 = 2_000;
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

/// All duties. Whoever has one more adds it here.
pub fn all() -> Vec<Duty> {
    let prune = |work: &Work| {
        work.store.prune_watchers(PRUNE);
        work.store.prune_inboxes(work.host.now_ms(), PRUNE);
        Ok(())
    };
    let export = |work: &Work| {
        jobs::finish(work);
        Ok(())
    };
    vec![
        Duty { name: "export", every_ms: EVERY_MS, whose: Whose::Leader, run: Box::new(export) },
        Duty { name: "prune", every_ms: 3_600_000, whose: Whose::Leader, run: Box::new(prune) },
    ]
}

/// What the main thread and the duties tell each other.
#[derive(Debug, Default)]
pub struct Shared {
    /// The session that is delivered to.
    pub session: Option<SessionId>,
    /// Whether this watcher leads.
    pub leads: bool,
}

/// Does the duties until it is asked to rest.
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
        let mut lead: Option<Held> = None;
        loop {
            if lead.is_none() {
                lead = self.store.lead().ok().flatten();
            }
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).leads = lead.is_some();
            let ms = self.pace.passed(watch);
            let grace = clocks.tick(ms, self.pace.wall(self.host.now_ms()));
            for duty in &mut self.list {
                let is_due = last.get(duty.name).is_none_or(|last| ms.saturating_sub(*last) >= duty.every_ms);
                if !is_due || (duty.whose == Whose::Leader && lead.is_none()) || rest.asked() {
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
