//! Goes through all sessions: those that beat, and those that a running client shows.

use std::collections::{HashMap, HashSet};
use std::io;

use thiserror::Error;

use super::facts::{Now, Standing, fate, gather, kind_of};
use super::verdict::{Facts, Judged, Limits, Verdict, judge};
use crate::base::id::SessionId;
use crate::client::session_file::{self, SessionFile};
use crate::host::Host;
use crate::host::clock::Deadline;
use crate::store::Store;
use crate::store::beats::{Beat, Beats, Kind, Phase, Place};

/// Beats of a session that is over, or whose process is gone, are kept for this long, in ms.
const KEPT: i64 = 24 * 3_600_000;
/// So many sessions are looked at in one sweep; of more nobody could read the list.
const MOST: usize = 20_000;

/// What a sweep is to do.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Limits.
    pub limits: Limits,
    /// With those that have ended.
    pub ended: bool,
    /// How long old beats are taken away, in ms; what is left is the next sweep's.
    pub prune_ms: u64,
}

/// Why there was no sweep.
#[derive(Debug, Error)]
pub enum Unswept {
    /// The run directory cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// Sessions run, and none of them ever left a beat.
    #[error("no session has left a beat yet, though {0} run: are longhaul's hooks on?")]
    NoBeats(usize),
}

/// One session.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// The directory it was started in.
    pub project: Option<String>,
    /// The client's process.
    pub pid: Option<u32>,
    /// How it is run.
    pub kind: Kind,
    /// The verdict.
    pub judged: Judged,
    /// Since when it is at that, epoch seconds.
    pub since: i64,
    /// When it last moved, epoch seconds.
    pub at: i64,
    /// When the client's supervisor last started it again after a crash, epoch seconds.
    pub restarted: Option<i64>,
    /// What the verdict rests on.
    pub facts: Facts,
}

/// The sessions and what was found beside them.
#[derive(Debug)]
pub struct Swept {
    /// Oldest silence first.
    pub sessions: Vec<Session>,
    /// Whether a run directory is recorded.
    pub recorded: bool,
    /// So many clients run.
    pub clients: usize,
}

impl Swept {
    /// An error where nothing can be told: clients run, and nobody knows where beats lie.
    pub fn told(&self) -> Result<(), Unswept> {
        if self.recorded || self.clients == 0 { Ok(()) } else { Err(Unswept::NoBeats(self.clients)) }
    }
}

/// The clients that may run, by what they show and by their process.
struct Clients {
    files: Vec<(SessionFile, Option<bool>)>,
    by_session: HashMap<String, Vec<usize>>,
    by_pid: HashMap<u32, usize>,
}

impl Clients {
    fn of(store: &Store, now: &Now) -> Self {
        let here = now.numbering.as_deref();
        let fates = session_file::written(store.config()).into_iter().map(|file| {
            let fate = file.fate(here);
            (file, fate)
        });
        let files: Vec<_> = fates.filter(|(file, fate)| file.pid.is_some() && *fate != Some(false)).collect();
        let mut by_session: HashMap<_, Vec<_>> = HashMap::new();
        let mut by_pid = HashMap::new();
        for (at, (file, _)) in files.iter().enumerate() {
            if let Some(id) = &file.session_id {
                by_session.entry(id.clone()).or_default().push(at);
            }
            by_pid.extend(file.pid.map(|pid| (pid, at)));
        }
        Self { files, by_session, by_pid }
    }

    fn shows(&self, id: &SessionId) -> bool {
        self.by_session.contains_key(id.as_str())
    }

    fn standing<'a>(&'a self, id: &'a SessionId, beats: &'a Beats, now: &Now) -> Standing<'a> {
        let main = beats.main.as_ref();
        let is_its = |file: &SessionFile| {
            let same_start = |main: &Beat| {
                main.proc_start.is_none() || file.proc_start.is_none() || main.proc_start == file.proc_start
            };
            main.is_some_and(|main| main.pid == file.pid && main.pid.is_some() && same_start(main))
        };
        let ended = main.is_some_and(|main| main.phase == Phase::Ended);
        let showing = self.by_session.get(id.as_str()).into_iter().flatten().map(|at| &self.files[*at]);
        // One that has said goodbye takes a moment to be gone.
        let mut showing: Vec<_> = showing.filter(|(file, _)| !(ended && is_its(file))).collect();
        showing.sort_by_key(|(file, _)| !is_its(file));
        if let Some((file, runs)) = showing.first() {
            return Standing { id, beats, file: Some(file), runs: *runs, left: false };
        }
        let own = main.and_then(|main| self.by_pid.get(&main.pid?)).map(|at| &self.files[*at].0);
        let left = own.is_some_and(|file| is_its(file) && !ended && file.session_id.is_some());
        let runs = main.filter(|_| !ended).and_then(|main| fate(main, now));
        Standing { id, beats, file: None, runs, left }
    }
}

/// Goes through all sessions.
pub fn sweep(host: &Host, store: &Store, request: &Request) -> Result<Swept, Unswept> {
    let now = Now::of(host);
    let clients = Clients::of(store, &now);
    let place = store.beats()?;
    let recorded = place.is_some();
    let mut sessions = Vec::new();
    let mut beaten = HashSet::new();
    if let Some(place) = &place {
        let until = Deadline::after_ms(request.prune_ms);
        place.each_session(|id, touched| {
            let old = now.now_ms.saturating_sub(touched) > KEPT && !clients.shows(&id);
            // Without time for it, what is old is left alone, and nobody misses it.
            if old && (until.passed() || prune(place, &id, &now)) {
                return true;
            }
            let beats = place.session(&id);
            let standing = clients.standing(&id, &beats, &now);
            if let Some(session) = look(store, &now, &standing, request) {
                beaten.insert(id.as_str().to_owned());
                sessions.push(session);
            }
            sessions.len() < MOST
        })?;
    }
    for id in clients.by_session.keys().filter(|id| !beaten.contains(*id)) {
        let Some(id) = SessionId::parse(id) else { continue };
        let beats = Beats::default();
        sessions.extend(look(store, &now, &clients.standing(&id, &beats, &now), request));
    }
    sessions.sort_by(|a, b| (b.judged.silence, &a.id).cmp(&(a.judged.silence, &b.id)));
    Ok(Swept { sessions, recorded, clients: clients.files.len() })
}

/// Takes away what is old, unless its process may run; whether it did.
fn prune(place: &Place, id: &SessionId, now: &Now) -> bool {
    let main = place.main(id);
    let over = |main: &Beat| main.phase == Phase::Ended || fate(main, now) == Some(false);
    let goes = main.as_ref().is_none_or(over);
    if goes {
        place.forget(id);
    }
    goes
}

fn look(store: &Store, now: &Now, standing: &Standing<'_>, request: &Request) -> Option<Session> {
    let (beats, file) = (standing.beats, standing.file);
    let main = beats.main.as_ref();
    if main.is_none() && file.is_none() {
        return None;
    }
    let facts = gather(store, now, standing);
    let judged = judge(&facts, &request.limits);
    if judged.verdict == Verdict::Completed && !request.ended {
        return None;
    }
    let at = now.now_ms.saturating_sub(judged.silence).div_euclid(1000);
    let same = main.filter(|main| main.phase == judged.phase);
    let of_client = || facts.client.as_ref().and_then(|client| client.since);
    let of_client = || of_client().map(|ago| now.now_ms.saturating_sub(ago).div_euclid(1000));
    Some(Session {
        id: standing.id.clone(),
        name: file.and_then(|file| file.name.clone()).or_else(|| main?.name.clone()),
        project: main.and_then(|main| main.project.clone()).or_else(|| file?.cwd.clone()),
        pid: file.and_then(|file| file.pid).or_else(|| main?.pid),
        kind: kind_of(main, file),
        since: same.map(|main| main.since).or_else(of_client).unwrap_or(at),
        at,
        restarted: main.and_then(|main| main.restarted),
        judged,
        facts,
    })
}
