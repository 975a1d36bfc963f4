//! Runs the watches that fall to one session. Asked at whatever rate its caller likes; it does what is due, waits
//! for nothing, and says when it wants to be asked again. With no watches it looks at the time of one file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::filter::Filter;
use super::news;
use super::pick::{Fate, Open, fate, project_of};
use super::wording::source;
use super::work::{FAREWELL_MS, Found, Work};
use crate::base::id::SessionId;
use crate::base::span::HOUR_MS;
use crate::client::{headless, session_file};
use crate::host::Host;
use crate::host::clock::Deadline;
use crate::host::process::{self, Process};
use crate::store::Store;
use crate::store::inbox::{Inbox, New};
use crate::store::lock::Held;
use crate::store::watches::{Maker, Note, Progress, State, Told, Watch};

/// How often it is looked who runs what, where that can change, ms.
const ASSIGN_MS: i64 = 4_000;
/// A place that moved with nothing to tell is kept after so long, ms: what lies in between is read again.
const SAVED_MS: i64 = 30_000;
/// It asks to be asked at least this often, ms.
const REST_MS: i64 = 2_000;

/// The session that watches are run for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Its client's process.
    pub client: Process,
    /// The session that it shows now.
    pub session: SessionId,
    /// Where it works.
    pub directory: PathBuf,
}

/// What one round came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Something went to the inbox.
    pub told: bool,
    /// When it wants to be asked again, ms from now.
    pub again_ms: u64,
}

/// A watch that is run here.
#[derive(Debug)]
struct Job {
    watch: Watch,
    filter: Filter,
    work: Work,
    progress: Progress,
    /// It is due then, epoch milliseconds.
    next_ms: i64,
    saved_ms: i64,
    /// The place moved since.
    dirty: bool,
    /// Nobody else runs it meanwhile.
    _held: Held,
}

/// Runs watches.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    home: Option<PathBuf>,
    without: Vec<OsString>,
    numbering: Option<String>,
    jobs: BTreeMap<u64, Job>,
    inbox: Option<Inbox>,
    /// As of the last look at who runs what.
    version: Option<u64>,
    who: Option<Who>,
    looked_ms: i64,
    /// Who runs what can change with nothing written.
    unsettled: bool,
    said: Option<String>,
}

impl Engine {
    /// Nothing runs yet.
    pub fn new(host: &Host, store: &Store) -> Self {
        Self {
            store: store.clone(),
            home: host.home(),
            without: headless::own_variables_and_keys(host),
            numbering: process::numbering(),
            jobs: BTreeMap::new(),
            inbox: None,
            version: None,
            who: None,
            looked_ms: 0,
            unsettled: false,
            said: None,
        }
    }

    /// One round.
    pub fn tick(&mut self, who: &Who, now_ms: i64) -> Round {
        let version = self.store.watches_version();
        let waited = now_ms.saturating_sub(self.looked_ms);
        let changed = self.version != Some(version) || self.who.as_ref() != Some(who);
        if changed || (self.unsettled && !(0..ASSIGN_MS).contains(&waited)) {
            let assigned = self.assign(who, now_ms);
            // What was changed on the way needs no second look; what failed gets one, though nobody writes anything.
            self.unsettled |= assigned.is_err();
            self.note(assigned, now_ms);
            self.version = Some(version);
            self.looked_ms = now_ms;
        }
        let mut round = Round::default();
        let mut next_ms = now_ms + REST_MS;
        for number in self.jobs.keys().copied().collect::<Vec<_>>() {
            let Some(mut job) = self.jobs.remove(&number) else { continue };
            // A clock that was set back holds nothing up.
            let due = now_ms >= job.next_ms || job.next_ms > now_ms + HOUR_MS;
            let outcome =
                if due || !job.progress.pending.is_empty() { self.look(&mut job, now_ms) } else { Ok(false) };
            next_ms = next_ms.min(job.next_ms);
            let goes_on = job.progress.ending.is_none() || !job.progress.pending.is_empty();
            match outcome {
                Ok(told) => round.told |= told,
                Err(error) => {
                    job.next_ms = now_ms + REST_MS;
                    self.unsettled = true;
                    self.note(Err(error), now_ms);
                }
            }
            if goes_on {
                self.jobs.insert(number, job);
            }
        }
        round.again_ms = u64::try_from(next_ms.saturating_sub(now_ms)).unwrap_or(0);
        round
    }

    /// Gives all watches back: programs end, places are kept.
    pub fn end(&mut self) {
        let mut jobs: Vec<Job> = std::mem::take(&mut self.jobs).into_values().collect();
        let deadline = Deadline::after_ms(FAREWELL_MS);
        for running in jobs.iter_mut().filter_map(|job| job.work.running()) {
            running.ask_to_end();
        }
        // All of them at once: whoever ends us does not wait for long.
        for running in jobs.iter_mut().filter_map(|job| job.work.running()) {
            let left = u64::try_from(deadline.left().as_millis()).unwrap_or(0);
            running.end_within(left);
        }
        for job in jobs {
            let kept = keep(&self.store, job);
            self.note(kept, self.looked_ms);
        }
    }

    /// Whether this watch is run here.
    pub fn runs(&self, number: u64) -> bool {
        self.jobs.contains_key(&number)
    }

    /// Looks once at what a watch is about, and tells what there is.
    fn look(&mut self, job: &mut Job, now_ms: i64) -> io::Result<bool> {
        let mut told = self.settle(job, now_ms)?;
        if job.progress.ending.is_some() {
            return Ok(told);
        }
        let failing = job.progress.failing.is_some();
        let found = job.work.look(&job.watch, &job.filter, failing, now_ms);
        job.next_ms = next(&job.watch, &job.progress, &found, now_ms);
        let keep = found.keep;
        let before = (job.progress.failing.is_some(), job.progress.window.clone());
        news::take(&job.watch, &mut job.progress, found, now_ms);
        let place = job.work.place();
        job.dirty |= place != job.progress.place;
        job.progress.place = place;
        let changed = before != (job.progress.failing.is_some(), job.progress.window.clone());
        let waited = now_ms.saturating_sub(job.saved_ms);
        let late = job.dirty && !(0..SAVED_MS).contains(&waited);
        if !job.progress.pending.is_empty() || changed || keep || late {
            self.store.save_progress(job.watch.number, &job.progress)?;
            (job.saved_ms, job.dirty) = (now_ms, false);
        }
        told |= self.settle(job, now_ms)?;
        Ok(told)
    }

    /// Brings what is pending to the inbox, and ends the watch that is to end with it.
    fn settle(&mut self, job: &mut Job, now_ms: i64) -> io::Result<bool> {
        let number = job.watch.number;
        if !job.progress.pending.is_empty() {
            let from = source(&job.watch);
            let notes = job.progress.pending.iter().filter(|note| !note.held);
            let new: Vec<New> = notes
                .map(|note| New { source: &from, id: &note.id, text: &note.text, at_ms: note.at_ms })
                .collect();
            let told = !new.is_empty();
            if told && let Some(inbox) = &mut self.inbox {
                inbox.append_all(&new)?;
            }
            for Note { id, at_ms, text, lines, held } in job.progress.pending.iter().cloned() {
                self.store.add_told(number, &Told { at_ms, id, lines, held, text })?;
            }
            job.progress.pending.clear();
            self.end_if_due(job, now_ms)?;
            self.store.save_progress(number, &job.progress)?;
            return Ok(told);
        }
        self.end_if_due(job, now_ms)?;
        Ok(false)
    }

    fn end_if_due(&self, job: &Job, now_ms: i64) -> io::Result<()> {
        let Some(why) = &job.progress.ending else { return Ok(()) };
        let end = |watch: &mut Watch| watch.end(now_ms, why);
        self.store.change_watches(|watches| watches.get(job.watch.number).map(end)).map(drop)
    }

    /// Looks who runs what, and takes up or gives back.
    fn assign(&mut self, who: &Who, now_ms: i64) -> io::Result<()> {
        if self.who.as_ref().is_none_or(|before| before.session != who.session) {
            self.inbox = Some(self.store.inbox(&who.session));
        }
        self.who = Some(who.clone());
        let watches = self.store.watches()?.watches;
        let is_active = |watch: &&Watch| watch.state == State::Active;
        if !watches.iter().any(|watch| is_active(&watch)) {
            self.unsettled = false;
            self.keep_only(&[]);
            return Ok(());
        }
        let open = self.open(who);
        let mut mine = Vec::new();
        let mut over = Vec::new();
        self.unsettled = false;
        for watch in watches.iter().filter(is_active) {
            let is_own = watch.maker.pid == Some(who.client.pid) && watch.maker.start == who.client.start;
            let maker_runs = is_own || may_run(watch, &open, self.numbering.as_ref());
            match fate(watch, &open, maker_runs) {
                Fate::Runs(open) if open.process == who.client => mine.push(watch.clone()),
                Fate::Over => over.push(watch.number),
                Fate::Runs(_) | Fate::Waits => {}
            }
            self.unsettled |= !is_own;
        }
        self.follow(who, &mut mine, &over, now_ms)?;
        let numbers: Vec<u64> = mine.iter().map(|watch| watch.number).collect();
        self.keep_only(&numbers);
        for watch in mine {
            let number = watch.number;
            match self.jobs.get_mut(&number) {
                Some(job) if job.watch.subject == watch.subject => job.watch = watch,
                _ => match self.take_up(watch, now_ms) {
                    Ok(Some(job)) => drop(self.jobs.insert(number, job)),
                    // Whoever had it is about to give it back.
                    Ok(None) => self.unsettled = true,
                    Err(error) => {
                        self.unsettled = true;
                        self.note(Err(error), now_ms);
                    }
                },
            }
        }
        Ok(())
    }

    /// Sessions that are open, this one as it is told.
    fn open(&self, who: &Who) -> Vec<Open> {
        let home = self.home.as_deref();
        let order = |start: Option<&String>| start.and_then(|start| start.parse().ok()).unwrap_or(u64::MAX);
        let files = session_file::all(self.store.config());
        let others = files.into_iter().filter_map(|file| {
            let pid = file.pid.filter(|pid| *pid != who.client.pid)?;
            Some(Open {
                has_watcher: self.store.watcher(pid).is_some_and(|stamp| stamp.runs()),
                order: order(file.proc_start.as_ref()),
                project: project_of(file.cwd.as_ref()?.as_ref(), home),
                session: file.session_id?,
                process: Process { pid, start: file.proc_start },
            })
        });
        let own = Open {
            process: who.client.clone(),
            session: who.session.to_string(),
            project: project_of(&who.directory, home),
            order: order(who.client.start.as_ref()),
            has_watcher: true,
        };
        others.chain([own]).collect()
    }

    /// Writes down which session its makers' watches belong to now, and which watches are over.
    fn follow(&self, who: &Who, mine: &mut [Watch], over: &[u64], now_ms: i64) -> io::Result<()> {
        let now = Maker {
            session: Some(who.session.to_string()),
            pid: Some(who.client.pid),
            start: who.client.start.clone(),
            pid_space: self.numbering.clone(),
        };
        let is_made_here = |watch: &Watch| {
            let same = (watch.maker.pid, &watch.maker.start) == (now.pid, &now.start);
            same || watch.maker.session == now.session
        };
        let mut moved = Vec::new();
        for watch in mine.iter_mut().filter(|watch| is_made_here(watch) && watch.maker != now) {
            watch.maker = now.clone();
            moved.push(watch.number);
        }
        if moved.is_empty() && over.is_empty() {
            return Ok(());
        }
        let change = self.store.change_watches(|watches| {
            for number in &moved {
                if let Some(watch) = watches.get(*number) {
                    watch.maker = now.clone();
                }
            }
            for number in over {
                if let Some(watch) = watches.get(*number) {
                    watch.end(now_ms, "its client has ended, and no person kept it");
                }
            }
        });
        change.map(drop)
    }

    /// Takes a watch up where nobody runs it.
    fn take_up(&self, watch: Watch, now_ms: i64) -> io::Result<Option<Job>> {
        let number = watch.number;
        let Some(held) = self.store.hold_watch(number)? else { return Ok(None) };
        let filter = Filter::of(&watch)
            .map_err(|error| io::Error::other(format!("the pattern of watch {number}: {error}")))?;
        let (mut progress, lost) = self.store.progress(number)?;
        if let Some(lost) = lost {
            let fails = Some(format!("{lost}; what came meanwhile may be missing"));
            news::take(&watch, &mut progress, Found { fails, ..Found::default() }, now_ms);
        }
        let work = Work::start(&watch, progress.place.as_ref(), &self.without);
        let next_ms = i64::MIN;
        Ok(Some(Job { watch, filter, work, progress, next_ms, saved_ms: now_ms, dirty: false, _held: held }))
    }

    /// Gives back all but these.
    fn keep_only(&mut self, numbers: &[u64]) {
        let gone: Vec<u64> = self.jobs.keys().copied().filter(|number| !numbers.contains(number)).collect();
        for job in gone.iter().filter_map(|number| self.jobs.remove(number)).collect::<Vec<_>>() {
            let kept = keep(&self.store, job);
            self.note(kept, self.looked_ms);
        }
    }

    /// Leaves a trace of what went wrong, once as long as it stays the same.
    fn note(&mut self, outcome: io::Result<()>, now_ms: i64) {
        if let Err(error) = outcome {
            let text = error.to_string();
            if self.said.as_ref() != Some(&text) {
                self.store.trace(now_ms, "watches", &text);
                self.said = Some(text);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the process that made a watch runs. Of one in another container nobody here can tell: what would end with it
/// stays, unless its session goes on here. What another session may go on with it may, and the watch's lock decides.
fn may_run(watch: &Watch, open: &[Open], here: Option<&String>) -> bool {
    let maker = &watch.maker;
    if maker.pid_space.is_none() || maker.pid_space.as_ref() == here {
        return maker.pid.is_some_and(|pid| Process { pid, start: maker.start.clone() }.runs());
    }
    watch.is_unconfirmed() && !open.iter().any(|open| Some(&open.session) == maker.session.as_ref())
}

/// Ends what runs, and keeps the place; of a watch that was removed there is none to keep.
fn keep(store: &Store, mut job: Job) -> io::Result<()> {
    if let Some(running) = job.work.running() {
        running.end_within(FAREWELL_MS);
    }
    let number = job.watch.number;
    if store.watches()?.watches.iter().any(|watch| watch.number == number) {
        if job.dirty {
            store.save_progress(number, &job.progress)?;
        }
    } else {
        store.forget_watch(number);
    }
    Ok(())
}

/// When a watch is due again.
fn next(watch: &Watch, progress: &Progress, found: &Found, now_ms: i64) -> i64 {
    if found.more {
        return now_ms;
    }
    let sum = (progress.window.held > 0).then(|| progress.window.ends_ms());
    let next_ms = [found.next_ms, watch.until_ms, sum].into_iter().flatten().min();
    next_ms.unwrap_or(i64::MAX).min(now_ms + HOUR_MS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_in_another_container_does_not_end_here() {
        use crate::store::watches::Subject;
        use crate::store::watches::tests::watch;
        let here = process::numbering();
        let made = |pid_space: Option<&str>, pid| {
            let pid_space = pid_space.map(str::to_owned);
            let maker = Maker { session: Some("s".into()), pid: Some(pid), start: None, pid_space };
            let subject = Subject::Stream { argv: vec!["true".into()] };
            Watch { maker, by_model: true, ..watch(subject) }
        };
        let runs = |watch: &Watch, open: &[Open]| may_run(watch, open, here.as_ref());
        let elsewhere = made(Some("pid:[1]"), u32::MAX);
        assert!(runs(&elsewhere, &[]));
        assert!(!runs(&Watch { kept: true, ..elsewhere.clone() }, &[]), "another session may go on with it");
        let process = process::find(process::own_pid()).unwrap();
        let open = Open { process, session: "s".into(), project: "/p".into(), order: 1, has_watcher: true };
        assert!(!runs(&elsewhere, &[open]), "its session goes on here");
        assert!(!runs(&made(here.as_deref(), u32::MAX), &[]) && !runs(&made(None, u32::MAX), &[]));
        assert!(runs(&made(here.as_deref(), process::own_pid()), &[]));
    }
}
