//! Incidents: told once, over when the session moves again, told anew when it then stands still again. Pure.
//!
//! An incident is of a session and a matter (stuck, dead, waiting). It is the same one as long as the session has
//! not moved since it began, whoever looks, however often, and with whatever limits.

use std::collections::{HashMap, HashSet};

use super::sweep::Session;
use super::verdict::Verdict;
use crate::store::incidents::{Incident, Kind, Moment, Told};

/// An incident that is over is remembered for so long, in ms.
const KEPT: i64 = 24 * 3_600_000;
/// A restart is news for so long, in ms.
const NEWS: i64 = 3_600_000;
/// Somebody who was about to tell of it has not, after so long, in ms.
const FORGOTTEN: i64 = 120_000;
/// So often it is tried.
const TRIES: u32 = 3;
/// Two looks at the clock differ by so much, in ms.
const BLUR: i64 = 250;
/// Times of beats are in whole seconds, cut off, in ms.
const CUT_OFF: i64 = 999;

/// How it is told.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// That a session waits, from so many ms on.
    pub waiting_after: i64,
    /// So many at once; the others have their turn the next time.
    pub most: usize,
}

/// An incident that whoever gets it is to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Its id.
    pub id: String,
    /// The session's place in the list.
    pub at: usize,
    /// What has become of it.
    pub kind: Kind,
}

/// What is the matter with a session, and since how many ms it has not moved.
pub fn trouble(session: &Session, now_ms: i64, rules: &Rules) -> Option<(Kind, i64)> {
    let still = session.judged.silence;
    match session.judged.verdict {
        Verdict::Stale => Some((Kind::Stale, still)),
        Verdict::DeadLike => Some((Kind::DeadLike, still)),
        Verdict::Dead => Some((Kind::Dead, still)),
        Verdict::Waiting => {
            let asked = now_ms.saturating_sub(session.since.saturating_mul(1000));
            (asked >= rules.waiting_after).then_some((Kind::Waiting, asked - CUT_OFF))
        }
        _ => None,
    }
}

/// Takes in how all sessions are now. Gives what is to be told by whoever asked, and by nobody else.
pub fn observe(known: &mut Vec<Incident>, sessions: &[Session], now: &Moment, rules: &Rules) -> Vec<Due> {
    let mut book = Book::of(known, now);
    let mut due = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        let restart = session.restarted.filter(|at| now.ms.saturating_sub(at.saturating_mul(1000)) < NEWS);
        let trouble = trouble(session, now.ms, rules);
        let restarted = restart.map(|stamp| book.restarted(session, stamp));
        let troubled = trouble.map(|(kind, still)| book.troubled(session, kind, still));
        for place in [restarted, troubled].into_iter().flatten() {
            let incident = &mut book.known[place];
            if due.len() < rules.most && is_due(incident, now) {
                incident.told = Told::Taken;
                incident.taken_ms = now.ms;
                incident.tries += 1;
                due.push(Due { id: incident.id(), at, kind: incident.kind });
            }
        }
    }
    book.close();
    due
}

fn is_due(incident: &Incident, now: &Moment) -> bool {
    let since = now.ms.saturating_sub(incident.taken_ms);
    match incident.told {
        Told::No => true,
        // Whoever took it is gone, or its clock was ahead.
        Told::Taken => !(0..FORGOTTEN).contains(&since) && incident.tries < TRIES,
        Told::Yes | Told::Unheard | Told::Rung => false,
    }
}

/// All known incidents, found by session and matter.
struct Book<'a> {
    known: &'a mut Vec<Incident>,
    now: &'a Moment,
    places: HashMap<(String, Kind), usize>,
    /// Those that go on.
    open: HashSet<usize>,
}

fn matter(kind: Kind) -> Kind {
    if kind.is_of(Kind::Stale) { Kind::Stale } else { kind }
}

impl<'a> Book<'a> {
    fn of(known: &'a mut Vec<Incident>, now: &'a Moment) -> Self {
        let key = |incident: &Incident| (incident.session.clone(), matter(incident.kind));
        let places = known.iter().enumerate().map(|(at, incident)| (key(incident), at)).collect();
        Self { known, now, places, open: HashSet::new() }
    }

    fn fresh(&self, session: &Session, kind: Kind) -> Incident {
        Incident {
            session: session.id.to_string(),
            kind,
            begun: self.now.clone(),
            told: Told::No,
            taken_ms: 0,
            tries: 0,
            ended_ms: None,
            restarted: None,
            line: String::new(),
        }
    }

    /// Puts it in the place of the one that it is of the same matter as.
    fn put(&mut self, incident: Incident) -> usize {
        let key = (incident.session.clone(), matter(incident.kind));
        let next = self.known.len();
        let at = *self.places.entry(key).or_insert(next);
        if at == next {
            self.known.push(incident);
        } else {
            self.known[at] = incident;
        }
        self.open.insert(at);
        at
    }

    fn troubled(&mut self, session: &Session, kind: Kind, still: i64) -> usize {
        let place = self.places.get(&(session.id.to_string(), matter(kind))).copied();
        let same = place.filter(|at| has_not_moved(&self.known[*at].begun, self.now, still));
        let Some(at) = same else { return self.put(self.fresh(session, kind)) };
        let incident = &mut self.known[at];
        (incident.kind, incident.ended_ms) = (kind, None);
        self.open.insert(at);
        at
    }

    fn restarted(&mut self, session: &Session, stamp: i64) -> usize {
        let place = self.places.get(&(session.id.to_string(), Kind::Restarted)).copied();
        let same = place.filter(|at| self.known[*at].restarted == Some(stamp));
        let fresh = Incident { restarted: Some(stamp), ..self.fresh(session, Kind::Restarted) };
        let at = same.unwrap_or_else(|| self.put(fresh));
        self.open.insert(at);
        at
    }

    /// What was not seen now is over; what has long been is forgotten.
    fn close(self) {
        let now_ms = self.now.ms;
        for (at, incident) in self.known.iter_mut().enumerate() {
            if !self.open.contains(&at) {
                incident.ended_ms.get_or_insert(now_ms);
            }
        }
        self.known
            .retain(|incident| incident.ended_ms.is_none_or(|ended| now_ms.saturating_sub(ended) < KEPT));
    }
}

/// Whether a session that has been still for so long was so when that incident began.
fn has_not_moved(begun: &Moment, now: &Moment, still: i64) -> bool {
    let same_boot = begun.boot.is_some() && begun.boot == now.boot;
    let passed =
        if same_boot { now.mono_ms.saturating_sub(begun.mono_ms) } else { now.ms.saturating_sub(begun.ms) };
    still.saturating_add(BLUR) >= passed
}

#[cfg(test)]
mod tests;
