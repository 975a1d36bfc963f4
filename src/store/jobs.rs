//! `<state>/jobs/<id>.json`: exports that are to be made, each under the id that its job has.
//!
//! A job is written before the work on it begins and taken away when it is done, so that whoever is ended in the
//! middle leaves behind what the next one needs. One process at a time works on it: the one that holds
//! `<id>.lock`. The lock is let go when that process ends, however it ends.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::automatic::ENDING;
use super::exports::stem;
use super::lock::{Held, hold_for, hold_while_there};
use super::{Store, atomic};
use crate::base::id::SessionId;
use crate::base::span::MINUTE_MS;
use crate::host::files;

const DIR: &str = "jobs";
const VERSION: u64 = 1;
/// A job larger than this is not ours, in bytes.
const JOB_MAX: u64 = 1 << 20;
/// Files that are looked at.
const LOOKED_AT_MAX: usize = 1_000;
/// How long another one who makes a job is waited for, in ms.
const PATIENCE_MS: u64 = 1_000;
/// More exports than this of one session in one second are refused.
const SAME_MAX: u32 = 100;
/// How long a failed job rests at most, in minutes.
const REST_MAX: i64 = 60;

/// An export that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    version: u64,
    session: String,
    /// The transcript.
    pub transcript: PathBuf,
    /// How much of it counts, in bytes.
    pub until: u64,
    /// What the parts may come to, in tokens.
    pub budget: u64,
    /// When it was due, epoch milliseconds.
    pub due_ms: i64,
    /// How often work on it was begun and neither done nor stopped.
    #[serde(default)]
    pub tries: u32,
    /// Nobody takes it up unasked before this time, epoch milliseconds.
    #[serde(default)]
    pub rests_until_ms: i64,
}

impl Job {
    /// The export of this much of a session's transcript.
    pub fn new(session: &SessionId, transcript: &Path, until: u64, due_ms: i64) -> Self {
        Self {
            version: VERSION,
            session: session.to_string(),
            transcript: transcript.to_path_buf(),
            until,
            budget: 0,
            due_ms,
            tries: 0,
            rests_until_ms: 0,
        }
    }

    /// Whether it rests. None rests longer than it can have been told to: then the clock was set back.
    pub fn rests(&self, now_ms: i64) -> bool {
        (1..=REST_MAX * MINUTE_MS).contains(&self.rests_until_ms.saturating_sub(now_ms))
    }

    /// Whether it is one of this session's.
    pub fn is_of(&self, session: &SessionId) -> bool {
        self.session == session.as_str()
    }

    /// The session; `None` where the job does not name one.
    pub fn session(&self) -> Option<SessionId> {
        SessionId::parse(&self.session)
    }

    /// A job as it must be, or what is wrong with it.
    fn read(bytes: &[u8]) -> Result<Self, Wrong> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        match serde_json::from_slice::<Versioned>(bytes) {
            Ok(versioned) if versioned.version > VERSION => return Err(Wrong::Later),
            _ => {}
        }
        let job: Self = serde_json::from_slice(bytes).map_err(|_| Wrong::Damaged)?;
        if job.transcript.is_absolute() && job.session().is_some() { Ok(job) } else { Err(Wrong::Damaged) }
    }
}

enum Wrong {
    /// Written by a later longhaul, which will know what to do with it.
    Later,
    Damaged,
}

/// A job that nobody else works on as long as this is held.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    id: String,
    /// What it says.
    pub job: Job,
    _held: Held,
}

impl Claim {
    /// Its id, and the export's.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Work on it begins.
    pub fn begin(&mut self) -> io::Result<()> {
        self.job.tries += 1;
        self.write()
    }

    /// It was stopped, and can go on at any time.
    pub fn stopped(mut self) {
        self.job.tries = self.job.tries.saturating_sub(1);
        let _ = self.write();
    }

    /// It failed, and rests: the longer, the more often it did.
    pub fn failed(mut self, now_ms: i64) {
        let minutes = 1_i64.checked_shl(self.job.tries.min(16)).unwrap_or(REST_MAX).min(REST_MAX);
        self.job.rests_until_ms = now_ms.saturating_add(minutes * MINUTE_MS);
        let _ = self.write();
    }

    /// There is nothing left to do.
    pub fn done(self) {
        // In this order: whoever finds the lock free must find no job.
        let _ = std::fs::remove_file(self.dir.join(file(&self.id)));
        let _ = std::fs::remove_file(self.dir.join(lock_file(&self.id)));
    }

    fn write(&self) -> io::Result<()> {
        atomic::replace(&self.dir.join(file(&self.id)), &serde_json::to_vec(&self.job)?, false)
    }
}

fn file(id: &str) -> String {
    format!("{id}.json")
}

fn lock_file(id: &str) -> String {
    format!("{id}.lock")
}

impl Store {
    /// Every job with its id, the oldest first. One that cannot be read is set aside.
    pub fn jobs(&self) -> Vec<(String, Job)> {
        let Ok(entries) = std::fs::read_dir(self.dir().join(DIR)) else { return Vec::new() };
        let mut jobs = Vec::new();
        for entry in entries.flatten().take(LOOKED_AT_MAX) {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(SessionId::parse);
            // Ids of exports hold what ids of sessions hold.
            let Some(id) = id else { continue };
            let Ok(bytes) = files::read_small(&entry.path(), JOB_MAX) else { continue };
            match Job::read(&bytes) {
                Ok(job) => jobs.push((id.to_string(), job)),
                Err(Wrong::Later) => {}
                Err(Wrong::Damaged) => drop(atomic::set_aside(&entry.path())),
            }
        }
        jobs.sort_by(|(a, one), (b, other)| (one.due_ms, a).cmp(&(other.due_ms, b)));
        jobs
    }

    /// Whether there is a job of this id.
    pub(super) fn has_job(&self, id: &str) -> bool {
        self.dir().join(DIR).join(file(id)).symlink_metadata().is_ok()
    }

    /// Makes a job and claims it. `None` where that much of the session was exported already or somebody is
    /// at it; where nobody is, that job is claimed.
    pub fn begin_job(&self, job: Job) -> io::Result<Option<Claim>> {
        let dir = self.make_dir(DIR)?;
        let _held = hold_for(&dir.join("jobs.lock"), PATIENCE_MS)?;
        let Some(session) = job.session() else { return Ok(None) };
        let same = |(_, other): &(String, Job)| other.is_of(&session) && other.until == job.until;
        if let Some((id, _)) = self.jobs().into_iter().find(same) {
            return self.claim(&id);
        }
        // In this order: a job goes when its export is there.
        if self.automatic_exports_of(&session).iter().any(|export| export.until == job.until) {
            return Ok(None);
        }
        let id = self.free_id(&dir, &session, job.due_ms)?;
        let Some(held) = hold_while_there(&dir.join(lock_file(&id)), 0)? else { return Ok(None) };
        let claim = Claim { dir, id, job, _held: held };
        if let Err(error) = claim.write() {
            claim.done();
            return Err(error);
        }
        Ok(Some(claim))
    }

    /// Claims a job. `None` where it is done, or somebody is at it.
    pub fn claim(&self, id: &str) -> io::Result<Option<Claim>> {
        let dir = self.dir().join(DIR);
        let Some(held) = hold_while_there(&dir.join(lock_file(id)), 0)? else { return Ok(None) };
        let bytes = match files::read_small(&dir.join(file(id)), JOB_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // While it is held: the next one to come makes a file of its own.
                let _ = std::fs::remove_file(dir.join(lock_file(id)));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let job = Job::read(&bytes).ok();
        Ok(job.map(|job| Claim { dir, id: id.to_owned(), job, _held: held }))
    }

    /// An id that no job, no key and no export has.
    fn free_id(&self, jobs: &Path, session: &SessionId, due_ms: i64) -> io::Result<String> {
        let stem = format!("{}{ENDING}", stem(due_ms, session.as_str()));
        let is_free = |id: &String| {
            let key = self.dir().join("handoff-keys").join(file(id));
            let taken = [Some(jobs.join(file(id))), Some(key), self.export_dir(id)];
            taken.iter().flatten().all(|path| path.symlink_metadata().is_err())
        };
        let mut ids = (1..=SAME_MAX).map(|n| if n == 1 { stem.clone() } else { format!("{stem}-{n}") });
        ids.find(is_free).ok_or_else(|| io::Error::other(format!("there are {SAME_MAX} exports {stem}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    fn store(root: &Path) -> Store {
        Store::locate(&Host::fixed(&[("HOME", root.to_str().unwrap())], 0), &[]).unwrap()
    }

    fn job(until: u64) -> Job {
        Job::new(&SessionId::parse("session-a").unwrap(), Path::new("/t.jsonl"), until, 1_796_000_000_000)
    }

    fn left(store: &Store) -> Vec<String> {
        let names = fs_err::read_dir(store.dir().join(DIR)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "jobs.lock").collect();
        names.sort();
        names
    }

    #[test]
    fn one_works_at_a_job_and_the_next_one_finds_it_as_it_was_left() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let mut claim = store.begin_job(job(7)).unwrap().unwrap();
        let id = claim.id().to_owned();
        assert!(id.ends_with("Z-session--auto"), "{id}");
        assert!(store.begin_job(job(7)).unwrap().is_none() && store.claim(&id).unwrap().is_none());
        claim.begin().unwrap();
        drop(claim);
        let claim = store.begin_job(job(7)).unwrap().unwrap();
        assert_eq!((claim.id(), claim.job.tries), (&*id, 1), "ended in the middle");
        claim.failed(5);
        let (_, rests) = store.jobs().remove(0);
        assert_eq!(rests.rests_until_ms, 5 + 2 * MINUTE_MS);
        assert!(rests.rests(5) && rests.rests(4 + 2 * MINUTE_MS) && !rests.rests(5 + 2 * MINUTE_MS));
        assert!(!rests.rests(5 - 60 * MINUTE_MS), "the clock was set back");
        let mut claim = store.claim(&id).unwrap().unwrap();
        claim.begin().unwrap();
        claim.stopped();
        let claim = store.claim(&id).unwrap().unwrap();
        assert_eq!(claim.job.tries, 1, "a stop is no failure");
        claim.done();
        assert_eq!(left(&store), [""; 0]);
        assert!(store.claim(&id).unwrap().is_none());
        assert_eq!(left(&store), [""; 0], "a look at a job that is done leaves no lock");
    }

    #[test]
    fn more_of_the_session_is_another_job() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let (one, two) =
            (store.begin_job(job(7)).unwrap().unwrap(), store.begin_job(job(8)).unwrap().unwrap());
        assert_eq!(two.id(), format!("{}-2", one.id()));
        assert_eq!(store.jobs().len(), 2);
    }

    #[test]
    fn what_is_no_job_is_set_aside_and_a_later_ones_is_left() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let dir = store.make_dir(DIR).unwrap();
        let good = serde_json::to_value(job(7)).unwrap();
        let with = |key: &str, value: serde_json::Value| {
            let mut job = good.clone();
            job[key] = value;
            job.to_string()
        };
        let bad = [
            "{".to_owned(),
            "[]".to_owned(),
            String::new(),
            with("session", "../../x".into()),
            with("transcript", "t.jsonl".into()),
            with("until", "-1".into()),
            with("version", "1".into()),
        ];
        for (n, text) in bad.iter().enumerate() {
            fs_err::write(dir.join(format!("bad-{n}.json")), text).unwrap();
        }
        fs_err::write(dir.join("later.json"), r#"{"version":2,"kind":"other"}"#).unwrap();
        fs_err::write(dir.join("huge.json"), vec![b' '; 2 << 20]).unwrap();
        fs_err::create_dir(dir.join("dir.json")).unwrap();
        assert!(store.jobs().is_empty());
        let mut expected: Vec<String> =
            (0..bad.len()).map(|n| format!("bad-{n}.json.unreadable-1")).collect();
        expected.extend(["dir.json".to_owned(), "huge.json".to_owned(), "later.json".to_owned()]);
        assert_eq!(left(&store), expected);
        assert!(store.claim("later").unwrap().is_none());
    }
}
