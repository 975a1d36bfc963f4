//! Gathers what is known of one session; the spans that `verdict` decides on are reckoned here.

use std::path::Path;

use super::verdict::{Client, Facts, Job, OpenTool, Pulse, Stream};
use crate::base::id::SessionId;
use crate::client::job;
use crate::client::session_file::{SessionFile, Status};
use crate::host::Host;
use crate::host::clock::epoch_ms;
use crate::host::process::{self, Process};
use crate::store::Store;
use crate::store::beats::{Agent, Beat, Beats, Kind, Phase, detail};

/// A stamp this far ahead of the clock was made by another one, in ms.
const AHEAD: i64 = 60_000;
/// Beats are stamped in whole seconds: so much is no jump of the clock, in ms.
const JITTER: i64 = 2_000;

/// The moment, and the machine as it is now.
#[derive(Debug, Clone)]
pub struct Now {
    /// Epoch ms.
    pub now_ms: i64,
    /// The same on the clock that stands still while the machine sleeps, in ms.
    pub mono_ms: i64,
    /// The boot of the machine.
    pub boot: Option<String>,
    /// The numbering of processes here.
    pub numbering: Option<String>,
}

impl Now {
    /// Now.
    pub fn of(host: &Host) -> Self {
        Self {
            now_ms: host.now_ms(),
            mono_ms: host.mono_ms(),
            boot: host.boot_id(),
            numbering: process::numbering(),
        }
    }
}

/// How old things are, as seen from one session's last beat.
struct Ages<'a> {
    now: &'a Now,
    /// Whether its stamps are of this boot, and so of this clock.
    same_boot: bool,
    /// How far the wall clock has run ahead of the other one since: the machine slept, or somebody set it.
    jump: i64,
}

impl<'a> Ages<'a> {
    fn of(now: &'a Now, main: Option<&Beat>) -> Self {
        let same_boot = main.is_some_and(|main| main.boot.is_some() && main.boot == now.boot);
        let jump = main.filter(|_| same_boot).map_or(0, |main| {
            let wall = now.now_ms.saturating_sub(main.at.saturating_mul(1000));
            wall.saturating_sub(now.mono_ms.saturating_sub(main.mono_ms))
        });
        Self { now, same_boot, jump: if jump.abs() < JITTER { 0 } else { jump } }
    }

    /// Of a beat.
    fn beat(&self, at: i64, mono_ms: i64) -> i64 {
        let awake = self.now.mono_ms.saturating_sub(mono_ms);
        if self.same_boot && awake >= 0 {
            return awake;
        }
        self.now.now_ms.saturating_sub(at.saturating_mul(1000)).max(0)
    }

    /// Of a stamp that has the wall clock alone, epoch ms.
    fn stamp(&self, at_ms: i64) -> Option<i64> {
        let ago = self.now.now_ms.saturating_sub(at_ms).saturating_sub(self.jump);
        (ago > -AHEAD).then_some(ago.max(0))
    }
}

/// Where a session stands: its beats, the client that shows it, and what became of its process.
pub(super) struct Standing<'a> {
    pub(super) id: &'a SessionId,
    pub(super) beats: &'a Beats,
    /// The file of a client that may run and shows the session.
    pub(super) file: Option<&'a SessionFile>,
    /// Whether that runs, else whether the process that beat does.
    pub(super) runs: Option<bool>,
    /// The process that beat shows another session.
    pub(super) left: bool,
}

/// Whether the process that beat still runs; `None` where that cannot be told.
pub(super) fn fate(main: &Beat, now: &Now) -> Option<bool> {
    if main.boot.is_some() && now.boot.is_some() && main.boot != now.boot {
        return Some(false);
    }
    if main.pid_space != now.numbering {
        return None;
    }
    Process { pid: main.pid?, start: main.proc_start.clone() }.fate()
}

/// How a session is run.
pub(super) fn kind_of(main: Option<&Beat>, file: Option<&SessionFile>) -> Kind {
    let said = file.map(|file| match (file.kind.as_deref(), file.entrypoint.as_deref()) {
        (Some("bg"), _) => Kind::Bg,
        (_, Some(entry)) if entry.starts_with("sdk") => Kind::Headless,
        _ => Kind::Interactive,
    });
    main.and_then(|main| main.kind).or(said).unwrap_or(Kind::Interactive)
}

/// All facts of a session.
pub(super) fn gather(store: &Store, now: &Now, standing: &Standing<'_>) -> Facts {
    let Standing { beats, file, .. } = standing;
    let main = beats.main.as_ref();
    let ages = Ages::of(now, main);
    let background = kind_of(main, *file) == Kind::Bg;
    let client = file.map(|file| client(file, &ages));
    let ended = main.is_some_and(|main| main.phase == Phase::Ended);
    // What rests has nothing to move.
    let rests = client.as_ref().is_some_and(|c| matches!(c.status, Some(Status::Idle | Status::Shell)));
    let looked_at = !ended && !rests;
    let transcript = main.and_then(|main| main.transcript.as_deref()).filter(|_| looked_at);
    Facts {
        main: main.map(|main| Pulse {
            phase: main.phase.clone(),
            ago: ages.beat(main.at, main.mono_ms),
            detail: main.detail.clone(),
            allowed: main.allowed_s.map(in_ms),
        }),
        tools: tools(beats, &ages),
        agents: agents(beats, &ages),
        runs: standing.runs,
        client,
        left: standing.left,
        background,
        job: if background { job_of(store, standing, &ages) } else { None },
        transcript: transcript.and_then(|path| ages.stamp(touched(Path::new(path))?)),
        stream: if looked_at { stream(store, standing, &ages) } else { None },
    }
}

fn in_ms(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn touched(path: &Path) -> Option<i64> {
    Some(epoch_ms(std::fs::metadata(path).ok()?.modified().ok()?))
}

fn tools(beats: &Beats, ages: &Ages<'_>) -> Vec<OpenTool> {
    let place = |agent: &String| beats.agents.iter().position(|have| have.agent == *agent);
    let open = beats.tools.iter().filter_map(|tool| {
        let agent = match &tool.agent {
            None => None,
            // A call of a subagent that is done is none.
            Some(agent) => Some(place(agent)?),
        };
        Some(OpenTool {
            name: tool.tool.clone(),
            agent,
            ago: ages.beat(tool.at, tool.mono_ms),
            allowed: tool.allowed_s.map(in_ms),
            detail: tool.detail.clone(),
        })
    });
    open.collect()
}

fn agents(beats: &Beats, ages: &Ages<'_>) -> Vec<Pulse> {
    let pulse = |agent: &Agent| Pulse {
        phase: agent.phase.clone(),
        ago: ages.beat(agent.at, agent.mono_ms),
        detail: agent.detail.clone(),
        allowed: None,
    };
    beats.agents.iter().map(pulse).collect()
}

fn client(file: &SessionFile, ages: &Ages<'_>) -> Client {
    let ago = |at: Option<u64>| at.and_then(|at| ages.stamp(signed(at)));
    Client {
        status: file.status(),
        waiting_for: file.waiting_for.clone(),
        since: ago(file.status_updated_at),
        updated: ago(file.updated_at),
    }
}

/// What the supervisor says, where the job shows this session: after /clear it shows another one.
fn job_of(store: &Store, standing: &Standing<'_>, ages: &Ages<'_>) -> Option<Job> {
    let main = standing.beats.main.as_ref();
    let of_file = || standing.file.and_then(|file| file.job_id.as_deref());
    let id = main.and_then(|main| main.job.as_deref()).or_else(of_file)?;
    let job = job::Job::load(store.config(), id)?;
    let shows = job.resume_session_id.as_deref().is_none_or(|shown| shown == standing.id.as_str());
    shows.then(|| Job {
        blocked: job.is_blocked(),
        crashed: job.has_crashed(),
        over: job.is_over(),
        ago: job.updated_ms().and_then(|at| ages.stamp(at)),
        needs: job.needs.as_deref().and_then(detail),
    })
}

/// The response stream, where the mod has said in this very process that it watches it.
fn stream(store: &Store, standing: &Standing<'_>, ages: &Ages<'_>) -> Option<Stream> {
    let started = signed(standing.file?.started_at?);
    let (moved, _) = store.stream(standing.id).filter(|(_, written)| *written >= started)?;
    Some(Stream { ago: Some(moved).filter(|moved| *moved >= started).and_then(|at| ages.stamp(at)) })
}
