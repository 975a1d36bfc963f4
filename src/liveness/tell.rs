//! From a sweep to what is told: takes in what was found, writes what status lines read, and keeps what became of
//! the telling. For the watcher, the timer and the hooks alike.

use std::collections::{HashMap, HashSet};
use std::io;

use super::incidents::{Due, Rules, observe, trouble};
use super::notify::Outcome;
use super::sweep::Session;
use super::wording::News;
use crate::base::id::SessionId;
use crate::host::Host;
use crate::store::Store;
use crate::store::chains::State;
use crate::store::config::Notify;
use crate::store::fleet::Fleet;
use crate::store::incidents::{Incident, Kind, Moment, Told};

/// Whoever holds the incidents is waited for so long, in ms.
const PATIENCE_MS: u64 = 2_000;
/// A hook waits for so long.
const HOOK_MS: u64 = 50;
/// So many incidents are told in one go; the others have their turn the next time.
const MOST: usize = 20;
/// A session that has died is on status lines for so long, in ms: nothing can be done that makes it move.
const SHOWN_DEAD: i64 = 3_600_000;
/// A terminal says what no notifier could for so long, in ms.
const RINGS: i64 = 900_000;
/// So many of them at once.
const RUNG: usize = 3;

/// Now, on both clocks. To be asked for before a sweep, so that nothing seems to have moved during it.
pub fn moment(host: &Host) -> Moment {
    Moment { ms: host.now_ms(), mono_ms: host.mono_ms(), boot: host.boot_id() }
}

/// The rules of the configuration.
pub fn rules(config: &Notify) -> Rules {
    Rules { waiting_after: config.waiting_after.ms(), most: MOST }
}

/// The same for a look that tells nothing.
pub fn quiet(config: &Notify) -> Rules {
    Rules { most: 0, ..rules(config) }
}

/// What a look came to.
#[derive(Debug, Default)]
pub struct Looked {
    /// What whoever looked is to tell, and nobody else.
    pub news: Vec<News>,
    /// What status lines are to say.
    pub fleet: Fleet,
}

/// Leaves out the sessions that were to go on from another one and failed to read it: nobody works there.
pub fn drop_failed_children(store: &Store, sessions: &mut Vec<Session>) {
    let entries = store.chains().map(|loaded| loaded.entries).unwrap_or_default();
    let failed = entries.into_iter().filter(|entry| entry.state == State::Failed);
    let failed: HashSet<String> = failed.filter_map(|entry| entry.child.map(|child| child.session)).collect();
    sessions.retain(|session| !failed.contains(session.id.as_str()));
}

/// Takes in how all sessions are. Those that failed children are must be left out before.
pub fn look(store: &Store, sessions: &[Session], now: &Moment, rules: &Rules) -> io::Result<Looked> {
    let calm = |session: &Session| session.restarted.is_none() && trouble(session, now.ms, rules).is_none();
    if sessions.iter().all(calm) && !store.has_incidents() {
        return Ok(Looked::default());
    }
    store.change_incidents(PATIENCE_MS, |all| {
        let due = observe(&mut all.incidents, sessions, now, rules);
        let news = |due: &Due| News::of(&due.id, due.kind, &sessions[due.at], now.ms);
        let news: Vec<News> = due.iter().map(news).collect();
        let mut lines: HashMap<&str, String> = news.iter().map(|one| (one.id.as_str(), one.line())).collect();
        for incident in &mut all.incidents {
            if let Some(line) = lines.remove(incident.id().as_str()) {
                incident.line = line;
            }
        }
        let fleet = fleet(&all.incidents, now.ms);
        Looked { news, fleet }
    })
}

fn fleet(incidents: &[Incident], now_ms: i64) -> Fleet {
    let shown = |incident: &&Incident| {
        let age = now_ms.saturating_sub(incident.begun.ms);
        let gone_long_ago = incident.kind == Kind::Dead && age >= SHOWN_DEAD;
        incident.ended_ms.is_none() && incident.kind != Kind::Restarted && !gone_long_ago
    };
    let all = incidents.iter().filter(shown).map(|incident| (incident.session.clone(), incident.kind));
    Fleet::of(all, incidents.iter().any(|incident| rings(incident, now_ms)))
}

fn rings(incident: &Incident, now_ms: i64) -> bool {
    let age = now_ms.saturating_sub(incident.begun.ms);
    incident.told == Told::Unheard && incident.ended_ms.is_none() && age < RINGS
}

/// Keeps what became of telling. A trouble that was not said before is handed back.
pub fn settle(store: &Store, outcomes: &[Outcome]) -> io::Result<Option<String>> {
    if outcomes.is_empty() {
        return Ok(None);
    }
    store.change_incidents(PATIENCE_MS, |all| {
        let mut new = None;
        for outcome in outcomes {
            // Where a terminal is not wanted either, status lines say it, and that is all.
            let told = if outcome.is_unheard() { Told::Unheard } else { Told::Yes };
            for incident in all.incidents.iter_mut().filter(|incident| outcome.ids.contains(&incident.id())) {
                // One way that worked is enough.
                if incident.told == Told::Taken || told == Told::Yes {
                    incident.told = told;
                }
            }
            if outcome.trouble != all.trouble {
                all.trouble.clone_from(&outcome.trouble);
                new.clone_from(&outcome.trouble);
            }
        }
        new
    })
}

/// What this session's terminal is to say of others: what no notifier could tell, once.
pub fn ring(store: &Store, own: &SessionId, now_ms: i64) -> Vec<String> {
    let of_another = |incident: &&mut Incident| rings(incident, now_ms) && incident.session != own.as_str();
    let taken = store.change_incidents(HOOK_MS, |all| {
        let take = |incident: &mut Incident| {
            incident.told = Told::Rung;
            incident.line.clone()
        };
        all.incidents.iter_mut().filter(of_another).take(RUNG).map(take).collect()
    });
    taken.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::verdict::{Facts, Judged, Verdict};
    use crate::store::beats::{self, Phase};

    fn store() -> (tempfile::TempDir, Store) {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        (root, Store::locate(&host, &[]).unwrap())
    }

    fn session(id: &str, verdict: Verdict) -> Session {
        Session {
            id: SessionId::parse(id).unwrap(),
            name: Some(id.into()),
            project: None,
            pid: None,
            kind: beats::Kind::Interactive,
            judged: Judged {
                verdict,
                suspected: false,
                phase: Phase::Thinking,
                detail: None,
                silence: 400_000,
            },
            since: 0,
            at: 0,
            restarted: None,
            facts: Facts::default(),
        }
    }

    fn at(ms: i64) -> Moment {
        Moment { ms, mono_ms: ms, boot: Some("b".into()) }
    }

    fn looked(store: &Store, sessions: &[Session], ms: i64) -> Looked {
        look(store, sessions, &at(ms), &rules(&Notify::default())).unwrap()
    }

    fn outcome(news: &News, trouble: Option<&str>) -> Outcome {
        Outcome { ids: vec![news.id.clone()], trouble: trouble.map(str::to_owned), may_ring: true }
    }

    #[test]
    fn nothing_is_written_where_nothing_is_the_matter() {
        let (_root, store) = store();
        let looked = looked(&store, &[session("a", Verdict::Working)], 1_000_000);
        assert!(looked.news.is_empty() && looked.fleet.is_calm());
        assert!(!store.dir().exists());
    }

    #[test]
    fn what_one_takes_another_does_not_and_the_summary_is_the_same() {
        let (_root, store) = store();
        let sessions =
            [session("a", Verdict::Stale), session("b", Verdict::Dead), session("c", Verdict::Idle)];
        let first = looked(&store, &sessions, 1_000_000);
        assert_eq!(first.news.iter().map(|one| one.kind.word()).collect::<Vec<_>>(), ["stale?", "dead"]);
        let second = looked(&store, &sessions, 1_002_000);
        assert!(second.news.is_empty());
        assert_eq!(first.fleet, second.fleet);
        assert_eq!(first.fleet.sessions.len(), 2);
        let later = looked(&store, &[session("a", Verdict::Working), session("b", Verdict::Dead)], 1_004_000);
        assert_eq!(later.fleet.sessions.iter().map(|one| &*one.session).collect::<Vec<_>>(), ["b"]);
        let mut dead = session("b", Verdict::Dead);
        dead.judged.silence = 2 * SHOWN_DEAD;
        let much_later = looked(&store, &[dead], 1_004_000 + SHOWN_DEAD);
        assert!(much_later.fleet.is_calm(), "it stays dead, and is not pointed at for ever");
    }

    #[test]
    fn a_notifier_that_fails_is_said_once_and_a_terminal_says_the_incident() {
        let (_root, store) = store();
        let sessions = [session("a", Verdict::Stale), session("b", Verdict::Dead)];
        let news = looked(&store, &sessions, 1_000_000).news;
        assert_eq!(settle(&store, &[outcome(&news[0], Some("no"))]).unwrap(), Some("no".into()));
        assert_eq!(settle(&store, &[outcome(&news[1], Some("no"))]).unwrap(), None);
        assert!(looked(&store, &sessions, 1_004_000).fleet.unheard);
        let (own, other) = (SessionId::parse("a").unwrap(), SessionId::parse("z").unwrap());
        assert_eq!(ring(&store, &own, 1_004_000), [news[1].line()], "not of itself");
        assert_eq!(ring(&store, &other, 1_004_000), [news[0].line()]);
        assert_eq!(ring(&store, &other, 1_004_000), [""; 0]);
        assert!(!looked(&store, &sessions, 1_008_000).fleet.unheard);
        assert_eq!(settle(&store, &[outcome(&news[1], None)]).unwrap(), None);
        assert_eq!(settle(&store, &[outcome(&news[1], Some("no"))]).unwrap(), Some("no".into()), "anew");
    }

    #[test]
    fn one_way_that_works_is_enough() {
        let (_root, store) = store();
        let news = looked(&store, &[session("a", Verdict::Dead)], 1_000_000).news;
        settle(&store, &[outcome(&news[0], Some("no")), outcome(&news[0], None)]).unwrap();
        settle(&store, &[outcome(&news[0], Some("no"))]).unwrap();
        assert_eq!(ring(&store, &SessionId::parse("z").unwrap(), 1_000_000), [""; 0]);
        assert_eq!(ring(&store, &SessionId::parse("z").unwrap(), i64::MAX), [""; 0]);
    }
}
