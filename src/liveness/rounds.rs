//! When the next sweep is worth its while. Most of the time nothing has happened, and that is cheap to see: no
//! session came or went, every process still runs, and nobody's limit has been reached, since a movement only puts
//! it off. So a limit is met within seconds, and a fleet at rest costs next to nothing.

use std::path::Path;

use super::incidents::{Rules, trouble};
use super::sweep::Session;
use super::verdict::{Limits, Verdict};
use crate::host::clock::Stopwatch;
use crate::host::files;
use crate::host::process::Process;
use crate::store::Store;

/// Between two sweeps pass at least so many ms; of a fleet that takes long, so many.
const APART: u64 = 3_000;
const APART_LARGE: u64 = 8_000;
/// From so many ms on a sweep takes long.
const LONG: u64 = 10;
/// A session that has died is looked at again after so long, in ms: what wakes it shows elsewhere.
const GONE: i64 = 60_000;
/// A process that is gone while its session is not: the client's supervisor may start it again.
const RESTARTS: i64 = 5_000;
/// In any case there is a sweep after so long, in ms.
const MOST: i64 = 120_000;
/// So many processes are looked at closely each time; of the others only whether the number is in use.
const CLOSELY: usize = 16;

/// What is known since the last sweep.
#[derive(Debug, Default)]
pub struct Rounds {
    swept: Option<Swept>,
    turn: usize,
}

#[derive(Debug)]
struct Swept {
    since: Stopwatch,
    apart_ms: u64,
    due_ms: u64,
    places: [u64; 3],
    processes: Vec<Process>,
}

/// What changes when a session comes or goes, or somebody configures.
fn places(store: &Store) -> [u64; 3] {
    let beats = store.beats().ok().flatten().map_or(0, |place| place.version());
    let of = |path: &Path| files::version(path);
    [beats, of(&store.config().join("sessions")), of(&store.dir().join("config.json"))]
}

impl Rounds {
    /// Whether a sweep is due.
    pub fn is_due(&mut self, store: &Store) -> bool {
        let Some(swept) = &self.swept else { return true };
        let passed = swept.since.ms();
        if passed < swept.apart_ms {
            return false;
        }
        self.turn = self.turn.wrapping_add(CLOSELY);
        passed >= swept.due_ms || places(store) != swept.places || is_one_gone(&swept.processes, self.turn)
    }

    /// There was one, which took so many ms.
    pub fn swept(&mut self, store: &Store, sessions: &[Session], took_ms: u64, until_due: i64) {
        let is_over = |verdict| matches!(verdict, Verdict::Dead | Verdict::Parked | Verdict::Completed);
        let alive = sessions.iter().filter(|session| !is_over(session.judged.verdict));
        let processes = alive.filter_map(|session| Some(Process { pid: session.pid?, start: None }));
        self.swept = Some(Swept {
            since: Stopwatch::start(),
            apart_ms: if took_ms >= LONG { APART_LARGE } else { APART },
            due_ms: u64::try_from(until_due).unwrap_or(0),
            places: places(store),
            // One that is not here is of another numbering, or its end was seen.
            processes: processes.filter(Process::runs).collect(),
        });
    }
}

fn is_one_gone(processes: &[Process], turn: usize) -> bool {
    let count = processes.len().max(1);
    let is_gone = |(at, process): (usize, &Process)| {
        let closely = at.wrapping_sub(turn % count).wrapping_add(count) % count < CLOSELY;
        if closely { process.fate() == Some(false) } else { !process.runs() }
    };
    processes.iter().enumerate().any(is_gone)
}

/// How long nothing can be the matter with any of them that is not now, in ms.
pub fn until_due(sessions: &[Session], now_ms: i64, limits: &Limits, rules: &Rules) -> i64 {
    let due = sessions.iter().map(|session| quiet_for(session, now_ms, limits, rules)).min();
    due.unwrap_or(MOST).clamp(0, MOST)
}

fn quiet_for(session: &Session, now_ms: i64, limits: &Limits, rules: &Rules) -> i64 {
    let stale = limits.stale.min(limits.stale_thinking);
    let soonest = stale.min(rules.waiting_after);
    match session.judged.verdict {
        Verdict::Dead => GONE,
        // When it moves again, status lines are to say so.
        _ if trouble(session, now_ms, rules).is_some() => 0,
        Verdict::Working | Verdict::Idle | Verdict::Background if session.facts.runs == Some(false) => {
            RESTARTS
        }
        Verdict::Working => soonest.min(left(session, stale)),
        Verdict::Waiting => rules.waiting_after - now_ms.saturating_sub(session.since.saturating_mul(1000)),
        _ => soonest,
    }
}

/// What is left to the nearest limit of a session that is busy: its own, a tool's, a subagent's. One that is past
/// its limit does not count: as long as the session works, it is not that which decides.
fn left(session: &Session, stale: i64) -> i64 {
    let facts = &session.facts;
    let agents = facts.agents.iter().map(|agent| stale - agent.ago);
    let tools = facts.tools.iter().map(|tool| tool.allowed.unwrap_or(0).max(stale) - tool.ago);
    let all = agents.chain(tools).chain([stale - session.judged.silence]);
    all.filter(|left| *left > 0).min().unwrap_or(0)
}

#[cfg(test)]
mod tests;
