//! The verdict on a session, out of facts. Pure: every span is given, in ms before now, and what could not be
//! read is `None`, which never counts as gone.

mod busy;

use serde::Serialize;

use self::busy::busy;
use crate::client::session_file::Status;
use crate::store::beats::Phase;
use crate::store::config::Liveness;

/// What a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// Something moves within the limit, or a tool is within its time.
    #[serde(rename = "working")]
    Working,
    /// The person is asked something.
    #[serde(rename = "waiting")]
    Waiting,
    /// The turn has ended, nothing runs.
    #[serde(rename = "idle")]
    Idle,
    /// The turn has ended, tasks of it run on.
    #[serde(rename = "background")]
    Background,
    /// Busy, and nothing moves.
    #[serde(rename = "stale?")]
    Stale,
    /// The same for much longer.
    #[serde(rename = "dead?")]
    DeadLike,
    /// The process is gone, and no end was seen.
    #[serde(rename = "dead")]
    Dead,
    /// A background session that the client's supervisor stopped while it was idle.
    #[serde(rename = "parked")]
    Parked,
    /// The session's end was seen.
    #[serde(rename = "completed")]
    Completed,
}

impl Verdict {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Background => "background",
            Self::Stale => "stale?",
            Self::DeadLike => "dead?",
            Self::Dead => "dead",
            Self::Parked => "parked",
            Self::Completed => "completed",
        }
    }

    /// Whether somebody should look at it.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Stale | Self::DeadLike | Self::Dead)
    }
}

/// What the session itself, or a subagent of it, beat last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulse {
    /// What it did then.
    pub phase: Phase,
    /// When, in ms before now.
    pub ago: i64,
    /// What it is about.
    pub detail: Option<String>,
    /// How long the tool of the phase may take, in ms.
    pub allowed: Option<i64>,
}

/// An open tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenTool {
    /// The tool.
    pub name: String,
    /// Whose call it is: a subagent's place among [`Facts::agents`], or the session's own.
    pub agent: Option<usize>,
    /// When it was called, in ms before now.
    pub ago: i64,
    /// How long it may take, in ms; `None` where nobody says.
    pub allowed: Option<i64>,
    /// What it does.
    pub detail: Option<String>,
}

/// What the client's own file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// What the session does.
    pub status: Option<Status>,
    /// While it waits: what for.
    pub waiting_for: Option<String>,
    /// Since when it does that, in ms before now.
    pub since: Option<i64>,
    /// When the file was written, in ms before now.
    pub updated: Option<i64>,
}

/// What the client's supervisor says of a background session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// It waits for the person.
    pub blocked: bool,
    /// What it needs.
    pub needs: Option<String>,
    /// Its process died and is about to be started again.
    pub crashed: bool,
    /// It is over.
    pub over: bool,
    /// When that was written, in ms before now.
    pub ago: Option<i64>,
}

/// The response stream, where the mod watches it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stream {
    /// When it last moved, in ms before now; `None`: not yet in this process.
    pub ago: Option<i64>,
}

/// All that is known of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What it beat last.
    pub main: Option<Pulse>,
    /// Its open tools.
    pub tools: Vec<OpenTool>,
    /// Its running subagents.
    pub agents: Vec<Pulse>,
    /// Whether the process that beat still runs.
    pub runs: Option<bool>,
    /// What the client says; only of one that runs and shows this session.
    pub client: Option<Client>,
    /// The client's process shows another session now.
    pub left: bool,
    /// Whether it is a background session.
    pub background: bool,
    /// What the supervisor says of it.
    pub job: Option<Job>,
    /// When the transcript last grew, in ms before now.
    pub transcript: Option<i64>,
    /// The response stream; `None` where nobody watches it.
    pub stream: Option<Stream>,
}

/// Limits, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From when on a session that is busy may be stuck.
    pub stale: i64,
    /// The same where nobody watches the response stream.
    pub stale_thinking: i64,
    /// How much later it is stuck most likely.
    pub dead_after_stale: i64,
}

/// How much later than stale a session is dead at least, in ms.
const LATER: i64 = 600_000;
/// How long a background session is waited for, in ms: its supervisor starts it again after 12 to 15 s.
const RESTART: i64 = 30_000;

impl Limits {
    /// Those of the configuration, with what was typed (seconds) before it.
    pub fn of(config: &Liveness, stale: Option<i64>, dead: Option<i64>) -> Self {
        let ms = |seconds: i64| seconds.saturating_mul(1000);
        let stale_ms = stale.map_or(config.stale.ms(), ms);
        let dead_ms = dead.map_or(config.dead.ms(), ms);
        let later = dead_ms.saturating_sub(stale_ms);
        Self {
            stale: stale_ms,
            stale_thinking: stale.map_or(config.stale_thinking.ms(), ms),
            dead_after_stale: if later > 0 { later } else { LATER },
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(&Liveness::default(), None, None)
    }
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Nobody watches the response stream: a long thought and a hung request look the same.
    pub suspected: bool,
    /// What the session is at.
    pub phase: Phase,
    /// What that is about.
    pub detail: Option<String>,
    /// How long nothing has moved, in ms.
    pub silence: i64,
}

/// The verdict on a session: the first that fits.
pub fn judge(facts: &Facts, limits: &Limits) -> Judged {
    let main = facts.main.as_ref();
    let phase = main.map_or(Phase::Unknown, |main| main.phase.clone());
    let quiet = Judged {
        verdict: Verdict::Idle,
        suspected: false,
        detail: main.and_then(|main| main.detail.clone()),
        phase,
        silence: facts.silence(),
    };
    if let Some((verdict, detail)) = gone(facts) {
        return Judged { verdict, detail: detail.or(quiet.detail), ..quiet };
    }
    if let Some(Asked(detail)) = asked(facts) {
        return Judged { verdict: Verdict::Waiting, phase: Phase::Waiting, detail, ..quiet };
    }
    match rest(facts) {
        Some(Verdict::Idle) if quiet.phase.is_in_turn() => {
            // An interrupt fires no event: what the beat says is over.
            return Judged { phase: Phase::Idle, detail: None, ..quiet };
        }
        Some(verdict) => return Judged { verdict, ..quiet },
        None => {}
    }
    busy(facts, limits, quiet)
}

impl Facts {
    fn status(&self) -> Option<Status> {
        self.client.as_ref().and_then(|client| client.status)
    }

    /// How long nothing at all has moved, in ms.
    fn silence(&self) -> i64 {
        let main = self.main.iter().map(|main| main.ago);
        let agents = self.agents.iter().map(|agent| agent.ago);
        main.chain(agents).chain(self.moved()).min().unwrap_or(0)
    }

    /// What moved beside the beats, in ms before now.
    fn moved(&self) -> impl Iterator<Item = i64> {
        let client = self.client.as_ref().and_then(|client| client.updated);
        [client, self.transcript, self.stream.and_then(|stream| stream.ago)].into_iter().flatten()
    }

    /// When the process was last known to be there, in ms before now.
    fn last_sign(&self) -> i64 {
        let job = self.job.as_ref().and_then(|job| job.ago);
        self.silence().min(job.unwrap_or(i64::MAX))
    }
}

/// Completed, dead or parked; and why.
fn gone(facts: &Facts) -> Option<(Verdict, Option<String>)> {
    let phase = facts.main.as_ref().map(|main| &main.phase);
    let job = facts.job.as_ref();
    // A job that nobody has ended is the supervisor's to wake again.
    let held = facts.background && job.is_some_and(|job| !job.over && !job.crashed);
    // A client that runs and shows the session has it, whoever ended elsewhere.
    let shown = facts.client.is_some();
    if phase == Some(&Phase::Ended) && !shown {
        return Some(if held { (Verdict::Parked, None) } else { (Verdict::Completed, None) });
    }
    if facts.runs == Some(false) && !shown {
        let rested = matches!(phase, Some(Phase::Idle | Phase::Failed(_) | Phase::Starting));
        let stopped = job.is_some_and(|job| !job.crashed);
        if facts.background && rested && stopped {
            return Some((Verdict::Parked, None));
        }
        let restarting = facts.background && facts.last_sign() <= RESTART;
        return (!restarting).then(|| {
            let phase = phase.map(ToString::to_string);
            (Verdict::Dead, phase.map(|phase| format!("the process is gone; it was {phase}")))
        });
    }
    facts.left.then(|| (Verdict::Completed, Some("the client shows another session".to_owned())))
}

/// Something is asked of the person.
struct Asked(Option<String>);

/// What the person is asked, if they are.
fn asked(facts: &Facts) -> Option<Asked> {
    let status = facts.status();
    let main = facts.main.as_ref().filter(|main| main.phase == Phase::Waiting);
    let agent = facts.agents.iter().find(|agent| agent.phase == Phase::Waiting);
    let beat = main.or(agent).map(|pulse| Asked(pulse.detail.clone()));
    let job = facts.job.as_ref().filter(|job| job.blocked).map(|job| Asked(job.needs.clone()));
    match status {
        Some(Status::Busy) => None,
        Some(Status::Waiting) => {
            let said = facts.client.as_ref().and_then(|client| client.waiting_for.clone());
            let known = |asked: Option<Asked>| asked.and_then(|asked| asked.0);
            Some(Asked(known(beat).or_else(|| known(job)).or(said)))
        }
        // It ended its turn with a question; else what the beat says is over.
        Some(Status::Idle | Status::Shell) => job,
        None => beat.or(job),
    }
}

/// Idle or background, where the turn has ended.
fn rest(facts: &Facts) -> Option<Verdict> {
    let phase = facts.main.as_ref().map(|main| &main.phase);
    match facts.status() {
        Some(Status::Idle) => Some(Verdict::Idle),
        // It says this of any monitor, ours too.
        Some(Status::Shell) => {
            Some(if phase == Some(&Phase::Background) { Verdict::Background } else { Verdict::Idle })
        }
        // A turn of the person's own shell, or one that another plugin lets go on, starts without an event.
        Some(Status::Busy | Status::Waiting) => {
            (phase == Some(&Phase::Background)).then_some(Verdict::Background)
        }
        None => match phase? {
            Phase::Idle | Phase::Failed(_) | Phase::Starting => Some(Verdict::Idle),
            Phase::Background => Some(Verdict::Background),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests;
