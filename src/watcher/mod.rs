//! The watcher: lives silently as long as its client, and tells its session what there is to tell.
//!
//! Every line it prints, and any exit of its own, costs the session a model turn. So it says nothing of itself and
//! only ends when nobody is left to be disturbed.

mod deliver;
pub mod duties;
mod fleet;
mod heard;
mod jobs;
mod pace;
mod post;
mod watches;
mod wording;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::id::SessionId;
use crate::client::shown::{self, Shown};
use crate::host::clock::Stopwatch;
use crate::host::door::guarded;
use crate::host::process::{self, Process};
use crate::host::stdout::{self, Waited};
use crate::host::stop::{Stop, outlive_limits};
use crate::host::worker::{Rest, Worker};
use crate::host::{Host, files};
use crate::store::Store;
use crate::store::watchers::Stamp;
use deliver::Moment;
use duties::{Duties, Duty, Shared};
use pace::{Clocks, Pace};
use post::Post;

/// How often it looks around, in ms; and while something is to be delivered.
const IDLE_MS: u64 = 2_000;
const ACTIVE_MS: u64 = 500;
/// How long a duty that is at work is waited for at the end, in ms: less than 200 in all.
const FAREWELL_MS: u64 = 100;

/// Watches until its client is gone, nobody reads it, or it is told to end.
pub fn run(host: &Host) {
    let stop = Stop::listen_awake();
    outlive_limits();
    let client = match host.env("CLAUDE_PID").and_then(|text| text.parse().ok()) {
        // Nobody said whose client it is: the reader's end is the sign then.
        None => None,
        Some(pid) => match process::find(pid) {
            Some(client) => Some(client),
            None => return,
        },
    };
    let project = host.env_path("CLAUDE_PROJECT_DIR");
    let store = Store::locate(host, &project.as_deref().into_iter().collect::<Vec<_>>());
    if let Some(store) = store {
        return Life::new(host, store, client, stop).run();
    }
    // There is no place for anything, so there is nothing to tell.
    let runs = || client.as_ref().is_none_or(Process::runs);
    while runs() && stdout::wait(IDLE_MS, &stop) == Waited::Passed {}
}

struct Life<'a> {
    host: &'a Host,
    store: Store,
    client: Option<Process>,
    stop: Stop,
    pace: Pace,
    /// What the client said last, and of which version of its file.
    shown: Shown,
    version: u64,
    /// Whether a background session keeps its watcher.
    stays: bool,
    stamp: Stamp,
    saved: Option<Stamp>,
    shared: Arc<Mutex<Shared>>,
    post: Option<Post>,
    trouble: Option<String>,
}

impl<'a> Life<'a> {
    fn new(host: &'a Host, store: Store, client: Option<Process>, stop: Stop) -> Self {
        let me = process::find(process::own_pid());
        let of = |process: Option<&Process>| {
            process.map_or((0, None), |process| (process.pid, process.start.clone()))
        };
        let ((pid, start), (client_pid, client_start)) = (of(me.as_ref()), of(client.as_ref()));
        let stamp = Stamp {
            pid,
            start,
            client: client_pid,
            client_start,
            pid_space: process::numbering(),
            since_ms: host.now_ms(),
            ..Stamp::default()
        };
        let shown = Shown {
            session: host.env("CLAUDE_CODE_SESSION_ID").and_then(|id| SessionId::parse(&id)),
            background: host.has_env("CLAUDE_JOB_DIR"),
            quiet: true,
            started_ms: None,
        };
        let stays = store.config_file().unwrap_or_default().watch.background;
        Self {
            host,
            store,
            client,
            stop,
            pace: Pace::of(host),
            shown,
            version: 0,
            stays,
            stamp,
            saved: None,
            shared: Arc::default(),
            post: None,
            trouble: None,
        }
    }

    fn run(mut self) {
        self.look();
        if self.leaves() {
            return;
        }
        let rest = Rest::default();
        let workers = duties::groups().map(|list| {
            let duties = self.duties(list);
            Worker::within(&rest, move |rest| duties.run(rest))
        });
        let watch = Stopwatch::start();
        let mut clocks = Clocks::default();
        let mut slept = false;
        while self.runs() {
            let ms = self.pace.passed(watch);
            let grace = clocks.tick(ms, self.pace.wall(self.host.now_ms()));
            let moment = Moment { ms, quiet: self.shown.quiet, slept: grace && !slept };
            slept = grace;
            // An end of its own would cost the session a turn.
            let done = guarded(|| self.turn(moment));
            match done {
                Ok(Waited::Passed) => {}
                Ok(_) => break,
                Err(what) => self.complain(what),
            }
            if self.leaves() {
                break;
            }
            let active = self.post.as_ref().is_some_and(Post::has_open);
            let wait = self.pace.wait(if active { ACTIVE_MS } else { IDLE_MS });
            if stdout::wait(wait, &self.stop) != Waited::Passed {
                break;
            }
        }
        Worker::end_all(workers, FAREWELL_MS);
        if !self.runs() {
            self.store.forget_watcher(&self.stamp);
        }
    }

    fn duties(&self, list: Vec<Duty>) -> Duties {
        Duties {
            host: self.host.clone(),
            store: self.store.clone(),
            client: self.client.clone(),
            shared: Arc::clone(&self.shared),
            pace: self.pace,
            list,
        }
    }

    fn runs(&self) -> bool {
        self.client.as_ref().is_none_or(Process::runs)
    }

    /// In a background session a monitor that runs keeps the session at work for ever. The stamp is there before
    /// the end: by it the hook knows the notice of that end, and keeps it from the model.
    fn leaves(&mut self) -> bool {
        if !self.shown.background || self.stays {
            return false;
        }
        self.stamp.ended = Some("a background session has no watcher".to_owned());
        self.save();
        true
    }

    /// One look around, and what is to be done then.
    fn turn(&mut self, moment: Moment) -> Waited {
        self.look();
        let moment = Moment { quiet: self.shown.quiet, ..moment };
        let mut waited = Waited::Passed;
        if let Err(error) = self.deliver(moment, &mut waited) {
            self.complain(error.to_string());
        }
        let leads = self.shared.lock().unwrap_or_else(PoisonError::into_inner).leads;
        self.stamp.leader = leads;
        self.save();
        waited
    }

    fn deliver(&mut self, moment: Moment, waited: &mut Waited) -> std::io::Result<()> {
        let Some(session) = self.shown.session.clone() else { return Ok(()) };
        let is_new = match &mut self.post {
            Some(post) if *post.session() == session => false,
            Some(post) => {
                self.store.carry_inbox(post.session(), &session)?;
                post.move_to(&self.store, &session, moment)?;
                true
            }
            none => {
                *none = Some(Post::open(&self.store, &session)?);
                true
            }
        };
        let Some(post) = &mut self.post else { return Ok(()) };
        if is_new {
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).session = Some(session.clone());
            self.stamp.session = Some(session.to_string());
        }
        let done = post.deliver(self.store.config(), moment, self.host.now_ms(), &self.stop);
        self.stamp.acknowledged = post.acknowledged();
        self.stamp.unheard = post.unheard();
        *waited = done?;
        Ok(())
    }

    /// What the client shows now.
    fn look(&mut self) {
        let Some(client) = &self.client else { return };
        let config: &Path = self.store.config();
        let version = files::version(&shown::path(config, client.pid));
        if version == self.version {
            return;
        }
        if let Some(shown) = shown::read(config, client) {
            self.version = version;
            let session = shown.session.clone().or_else(|| self.shown.session.clone());
            let background = shown.background || self.shown.background;
            self.shown = Shown { session, background, ..shown };
        }
    }

    /// Only what has changed is written.
    fn save(&mut self) {
        if self.client.is_none() || self.saved.as_ref() == Some(&self.stamp) {
            return;
        }
        match self.store.save_watcher(&self.stamp) {
            Ok(()) => self.saved = Some(self.stamp.clone()),
            Err(error) => self.complain(error.to_string()),
        }
    }

    /// Into the trace, once: it may be the same every second.
    fn complain(&mut self, what: String) {
        if self.trouble.as_ref() != Some(&what) {
            self.store.trace(self.host.now_ms(), "longhaul-watch", &what);
            self.trouble = Some(what);
        }
    }
}
