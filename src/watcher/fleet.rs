//! The leader's duty towards all sessions: sees within seconds when one is stuck, gone or waits, has the person told,
//! keeps what the others' status lines read, and writes to the sessions that want to hear of it.

use std::path::PathBuf;

use super::duties::{Duty, Whose, Work};
use crate::host::clock::Stopwatch;
use crate::liveness::incidents::trouble;
use crate::liveness::notify::{Outcome, Teller};
use crate::liveness::rounds::{Rounds, until_due};
use crate::liveness::sweep::{Request, sweep};
use crate::liveness::tell;
use crate::liveness::verdict::Limits;
use crate::liveness::wording::News;
use crate::store::config::Notify;
use crate::store::fleet::Fleet;
use crate::watches::sessions::{self, Incident};

/// Old beats are taken away for so long in one sweep, in ms.
const PRUNE_MS: u64 = 5;
/// Incidents that some session could not be told of are kept for another try, at most so many.
const UNSENT: usize = 100;
/// What status lines read holds for so long, in ms, and is written anew when so much of that is left.
const HOLDS: i64 = 120_000;
const ANEW: i64 = 60_000;

/// Does it for as long as this watcher leads.
pub fn duty() -> Duty {
    let mut watch = Watch::default();
    let run = move |work: &Work| watch.round(work);
    Duty { name: "sessions", every_ms: 2_000, whose: Whose::Leader, run: Box::new(run) }
}

#[derive(Default)]
struct Watch {
    rounds: Rounds,
    teller: Teller,
    fleet: Fleet,
    /// What not every session that wants to hear of it was told.
    unsent: Vec<(News, i64)>,
}

impl Watch {
    fn round(&mut self, work: &Work) -> Result<(), String> {
        // What fails in one of these keeps nobody from the others.
        let gone_on = self.go_on(work);
        let sent = self.send(work);
        // A machine that slept a moment ago: silence says nothing yet.
        let swept = if !work.grace && self.rounds.is_due(work.store) { self.sweep(work) } else { Ok(()) };
        let kept = self.keep(work);
        gone_on.and(sent).and(swept).and(kept)
    }

    fn sweep(&mut self, work: &Work) -> Result<(), String> {
        // What cannot be read is the person's to mend; until then it is as if it were not there.
        let config = work.store.config_file();
        let wrong = config.as_ref().err().cloned();
        let config = config.unwrap_or_default();
        let limits = Limits::of(&config.liveness, None, None);
        let rules = tell::rules(&config.notify);
        let now = tell::moment(work.host);
        let took = Stopwatch::start();
        let request = Request { limits, ended: false, prune_ms: PRUNE_MS };
        let mut all = sweep(work.host, work.store, &request).map_err(|e| e.to_string())?.sessions;
        if all.iter().any(|session| trouble(session, now.ms, &rules).is_some()) {
            tell::drop_failed_children(work.store, &mut all);
        }
        let looked = tell::look(work.store, &all, &now, &rules).map_err(|e| e.to_string())?;
        // Where there was no room for all of them, the others have their turn soon.
        let is_full = looked.news.len() >= rules.most;
        let due = if is_full { 0 } else { until_due(&all, now.ms, &limits, &rules) };
        self.rounds.swept(work.store, &all, took.ms(), due);
        self.fleet = Fleet { until_ms: self.fleet.until_ms, ..looked.fleet };
        self.tell(work, &config.notify, &looked.news);
        // The first run of a notifier need not wait for the next round, nor need a session that asked.
        self.go_on(work)?;
        self.send(work)?;
        wrong.map_or(Ok(()), Err)
    }

    fn tell(&mut self, work: &Work, config: &Notify, news: &[News]) {
        let untrusted: Vec<PathBuf> = [work.host.env_path("CLAUDE_PROJECT_DIR"), work.host.current_dir()]
            .into_iter()
            .flatten()
            .collect();
        self.teller.tell(work.host, config, &untrusted, news);
        let now_ms = work.host.now_ms();
        self.unsent.extend(news.iter().map(|one| (one.clone(), now_ms)));
        let over = self.unsent.len().saturating_sub(UNSENT);
        self.unsent.drain(..over);
    }

    /// Writes to the sessions that want to hear of others. Each is told once, however often it is tried.
    fn send(&mut self, work: &Work) -> Result<(), String> {
        let mut failed = None;
        self.unsent.retain(|(one, at_ms)| {
            let text = one.line_for_session();
            let incident = Incident { id: &one.id, about: &one.session, text: &text, at_ms: *at_ms };
            match sessions::tell(work.store, &incident) {
                Ok(_) => false,
                Err(error) => {
                    failed = Some(error.to_string());
                    true
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Starts what waits to be told, and keeps what became of the rest.
    fn go_on(&mut self, work: &Work) -> Result<(), String> {
        let done = self.teller.turn(work.host);
        // A terminal is to say it with the very next event, not after another sweep.
        self.fleet.unheard |= done.iter().any(Outcome::is_unheard);
        if let Some(trouble) = tell::settle(work.store, &done).map_err(|e| e.to_string())? {
            work.store.trace(work.host.now_ms(), "longhaul-watch", &format!("could not notify: {trouble}"));
        }
        Ok(())
    }

    /// Writes the summary where it says something else than the one that is there, or that is about to be too old.
    fn keep(&mut self, work: &Work) -> Result<(), String> {
        let now_ms = work.host.now_ms();
        let there = work.store.fleet(now_ms);
        let same = Fleet { until_ms: 0, ..there.clone() } == Fleet { until_ms: 0, ..self.fleet.clone() };
        let fresh = there.until_ms.saturating_sub(now_ms) > ANEW || self.fleet.is_calm();
        if same && fresh {
            return Ok(());
        }
        self.fleet.until_ms = now_ms.saturating_add(HOLDS);
        work.store.save_fleet(&self.fleet).map_err(|e| e.to_string())
    }
}
