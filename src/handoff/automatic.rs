//! Exports that nobody asked for: a session is written out before a compaction takes its words out of the
//! context. What does not get done in the time there is stays behind as a job, and whoever comes by later
//! finishes it: the watcher, or the next command about that session.

use std::io;
use std::path::{Path, PathBuf};

use super::ancestor::Ancestor;
use super::chain;
use super::export::{Automatic, Failed, Follow, Request, export};
use super::origin::Origins;
use crate::base::id::SessionId;
use crate::host::files;
use crate::host::stop::outlive_limits;
use crate::store::Store;
use crate::store::jobs::{Claim, Job};

/// Work on a job that was begun so often and never came to its end is not begun again.
const TRIES_MAX: u32 = 8;
/// How long somebody who changes the list of handoffs is waited for, in ms.
const PATIENCE_MS: u64 = 200;

/// What is to be exported.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// Its transcript.
    pub transcript: &'a Path,
    /// What the parts may come to, in tokens.
    pub budget: u64,
    /// Epoch milliseconds.
    pub now_ms: i64,
}

/// Exports a session as it stands. `None` where there is nothing new to export, where somebody is at it, and
/// where the person wants none. What is stopped or fails stays behind as a job.
pub fn begin(store: &Store, wanted: &Wanted, follow: &mut dyn Follow) -> Result<Option<PathBuf>, Failed> {
    let Wanted { session, transcript, budget, now_ms } = wanted;
    if store.config_file().is_ok_and(|config| config.automatic_exports_max_bytes == 0) {
        return Ok(None);
    }
    let unread = |error| Failed::Read { path: transcript.to_path_buf(), error };
    let until = files::open_regular(transcript).and_then(|file| file.metadata()).map_err(unread)?.len();
    if until == 0 {
        return Ok(None);
    }
    let mut job = Job::new(session, transcript, until, *now_ms);
    job.budget = *budget;
    let unwritten = |error| Failed::Write { path: store.dir().to_path_buf(), error };
    let Some(claim) = store.begin_job(job).map_err(unwritten)? else { return Ok(None) };
    finish(store, claim, *now_ms, follow).map(Some)
}

/// Does what a job says.
pub fn finish(
    store: &Store,
    mut claim: Claim,
    now_ms: i64,
    follow: &mut dyn Follow,
) -> Result<PathBuf, Failed> {
    let dir = store.export_dir(claim.id()).unwrap_or_default();
    let unwritten = |error| Failed::Write { path: dir.clone(), error };
    if dir.is_dir() {
        // Whoever made it was ended before it could say so.
        claim.done();
        return Ok(dir);
    }
    let Some(session) = claim.job.session().filter(|_| claim.job.tries < TRIES_MAX) else {
        claim.done();
        return Err(unwritten(io::Error::other(format!("it was begun {TRIES_MAX} times in vain"))));
    };
    claim.begin().map_err(unwritten)?;
    // Neither a hook nor the watcher may end by it.
    outlive_limits();
    let Job { transcript, until, budget, due_ms, .. } = claim.job.clone();
    let ancestors = ancestors(store, &session, &transcript);
    let request = Request {
        transcript,
        session: Some(session),
        until: Some(until),
        budget,
        ancestors,
        automatic: Some(Automatic { id: claim.id().to_owned(), due_ms }),
        now_ms,
        ..Request::default()
    };
    match export(&request, store, follow) {
        Ok(done) => {
            claim.done();
            tidy(store, &done.id, now_ms);
            Ok(done.dir)
        }
        Err(error) => {
            match &error {
                Failed::Stopped => claim.stopped(),
                Failed::Read { error, .. } if is_final(error) => claim.done(),
                _ => claim.failed(now_ms),
            }
            Err(error)
        }
    }
}

/// Whether there will never be anything to read.
fn is_final(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput)
}

/// Takes away the exports that are too many. By a configuration that cannot be read, none is too large.
fn tidy(store: &Store, keep: &str, now_ms: i64) {
    let most = store.config_file().map_or(u64::MAX, |config| config.automatic_exports_max_bytes);
    if let Err(error) = store.cap_automatic_exports(keep, most) {
        store.trace(now_ms, "exports", &format!("not all old ones were taken away: {error}"));
    }
}

/// The newest automatic export of a session, or the place where it will lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest {
    /// Where.
    pub dir: PathBuf,
    /// The session as it stood then is in it, epoch milliseconds.
    pub due_ms: i64,
    /// It is there.
    pub ready: bool,
}

/// The newest automatic export of a session; one that is still to be made counts.
pub fn newest(store: &Store, session: &SessionId) -> Option<Newest> {
    let made = store.automatic_exports_of(session).pop();
    let made =
        made.map(|export| (export.until, Newest { dir: export.dir, due_ms: export.due_ms, ready: true }));
    let of_session = store.jobs().into_iter().filter(|(_, job)| job.is_of(session));
    let job = of_session.max_by_key(|(_, job)| (job.until, job.due_ms)).and_then(|(id, job)| {
        Some((job.until, Newest { dir: store.export_dir(&id)?, due_ms: job.due_ms, ready: false }))
    });
    // The one that holds more, whatever the clock said. Where both tell of the same one, it is there.
    let newest = [job, made].into_iter().flatten().max_by_key(|(until, newest)| (*until, newest.due_ms));
    newest.map(|(_, newest)| newest)
}

/// The generations before a session, from the first on. Where the registry cannot be read there
/// are none: nobody waits for it here.
fn ancestors(store: &Store, session: &SessionId, transcript: &Path) -> Vec<Ancestor> {
    let known = store.look_at_chains(PATIENCE_MS, <[_]>::to_vec).unwrap_or_default();
    if known.is_empty() {
        return Vec::new();
    }
    let came_from = Origins::read(store).link(store, session, Some(transcript)).came_from;
    let entries = chain::ancestors(&known, session.as_str(), &came_from);
    entries.into_iter().map(|entry| Ancestor::of(store, entry)).collect()
}
