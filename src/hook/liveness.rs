//! The beat that each event leaves. Nothing here may fail a hook or make it wait.

mod act;

use std::io;
use std::path::Path;

use act::{Act, act, tasks};

use super::Call;
use crate::base::id::SessionId;
use crate::client::event::{Event, limit_ms};
use crate::host::process::{self, Process};
use crate::store::beats::{self, Agent, Beat, Phase, Place, Tool, VERSION, detail};

/// The moment and the process of an event, as a beat with no phase.
struct Stamp(Beat);

impl Stamp {
    fn of(call: &Call<'_>) -> Self {
        let (host, event) = (call.host, call.event);
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let pid = host.env("CLAUDE_PID").and_then(|text| text.parse().ok());
        let job = host.env_path("CLAUDE_JOB_DIR");
        let headless = host.env("CLAUDE_CODE_ENTRYPOINT").is_some_and(|text| text.starts_with("sdk"));
        let kind = match (&job, headless) {
            (Some(_), _) => beats::Kind::Bg,
            (None, true) => beats::Kind::Headless,
            (None, false) => beats::Kind::Interactive,
        };
        let at = host.now_ms().div_euclid(1000);
        let beat = Beat {
            v: VERSION,
            session: call.session.to_string(),
            pid,
            proc_start: pid.and_then(process::find).and_then(|process| process.start),
            boot: host.boot_id(),
            pid_space: process::numbering(),
            project: call.project.as_deref().and_then(text),
            cwd: event.cwd.clone(),
            transcript: event.transcript_path.clone().filter(|path| Path::new(path).is_absolute()),
            kind: Some(kind),
            job: job.as_deref().and_then(Path::file_name).and_then(|name| text(Path::new(name))),
            since: at,
            at,
            mono_ms: host.mono_ms(),
            prompt: event.prompt_id.clone(),
            name: event.session_title.as_ref().and_then(|title| detail(title)),
            ..Beat::default()
        };
        Self(beat)
    }

    /// The beat of a phase that begins now, or of one that goes on.
    fn main(&self, before: Option<&Beat>, phase: Phase, what: Option<String>) -> Beat {
        let mut beat = Beat { phase, detail: what, ..self.0.clone() };
        if let Some(before) = before {
            if before.phase == beat.phase {
                beat.since = before.since;
            }
            beat.name = beat.name.or_else(|| before.name.clone());
            beat.transcript = beat.transcript.or_else(|| before.transcript.clone());
            beat.prompt = beat.prompt.or_else(|| before.prompt.clone());
            beat.restarted = restarted(before, &beat);
        }
        beat
    }

    /// What went on before goes on.
    fn goes_on(&self, before: &Beat) -> Beat {
        Beat {
            allowed_s: before.allowed_s,
            ..self.main(Some(before), before.phase.clone(), before.detail.clone())
        }
    }

    fn agent(&self, event: &Event, before: Option<&Agent>, phase: Phase, what: Option<String>) -> Agent {
        let same = before.filter(|before| before.phase == phase);
        Agent {
            v: VERSION,
            agent: event.agent_id.clone().unwrap_or_default(),
            kind: event.agent_type.clone().or_else(|| before?.kind.clone()),
            since: same.map_or(self.0.at, |before| before.since),
            phase,
            at: self.0.at,
            mono_ms: self.0.mono_ms,
            detail: what,
        }
    }
}

/// Leaves the beat of an event. Whatever fails is let go: there is nobody to tell.
pub(super) fn on_event(call: &Call<'_>) {
    let limit = |name: &str| call.host.env(name).as_deref().and_then(limit_ms);
    let Some((act, store)) = act(call.event, &limit).zip(call.store.as_ref()) else { return };
    let stamp = Stamp::of(call);
    let untrusted = [call.project.as_deref(), call.event.cwd.as_deref().map(Path::new)];
    let untrusted: Vec<&Path> = untrusted.into_iter().flatten().collect();
    let _ = store.leave_beats(call.host, &untrusted, |place| leave(place, call, &act, &stamp));
}

fn leave(place: &Place, call: &Call<'_>, act: &Act, stamp: &Stamp) -> io::Result<()> {
    let session = &call.session;
    let before = place.main(session);
    let before = before.as_ref();
    let same = before.filter(|before| before.is_of(stamp.0.pid, stamp.0.proc_start.as_deref()));
    match act {
        Act::Start => {
            let restarted = before.and_then(|before| restarted(before, &stamp.0));
            let name = stamp.0.name.clone().or_else(|| before?.name.clone());
            let phase = Phase::Starting;
            place.start(session, &Beat { phase, name, restarted, ..stamp.0.clone() })
        }
        // An event that was on its way when the session ended.
        _ if same.is_some_and(|before| before.phase == Phase::Ended) => Ok(()),
        Act::End(reason) => {
            let elsewhere = before.filter(|before| same.is_none() && before.phase != Phase::Ended);
            // The session has gone on in another terminal; this one's end is not its.
            if elsewhere.is_some_and(|other| runs(other) == Some(true)) {
                return Ok(());
            }
            place.end(session, &stamp.main(before, Phase::Ended, reason.clone()))
        }
        _ if call.event.agent_id.is_some() => leave_of_agent(place, session, call.event, act, stamp),
        _ => leave_of_main(place, session, call.event, act, stamp, before),
    }
}

fn runs(beat: &Beat) -> Option<bool> {
    if beat.pid_space != process::numbering() {
        return None;
    }
    Process { pid: beat.pid?, start: beat.proc_start.clone() }.fate()
}

/// When the client's supervisor started the session again after its process had died. It resumes one that has
/// a transcript, and begins one anew that has none yet. Whichever event of the new process comes first shows it:
/// the start need not be the first.
fn restarted(before: &Beat, now: &Beat) -> Option<i64> {
    if before.is_of(now.pid, now.proc_start.as_deref()) {
        return before.restarted;
    }
    let by_supervisor = now.kind == Some(beats::Kind::Bg) && before.phase != Phase::Ended;
    (by_supervisor && runs(before) == Some(false)).then_some(now.at)
}

fn leave_of_main(
    place: &Place,
    session: &SessionId,
    event: &Event,
    act: &Act,
    stamp: &Stamp,
    before: Option<&Beat>,
) -> io::Result<()> {
    let beat = match act {
        Act::Prompt => {
            let in_turn = before.filter(|before| before.phase.is_in_turn() && is_same_turn(before, event));
            if let Some(before) = in_turn {
                stamp.goes_on(before)
            } else {
                let left = |tool: &&Tool| tool.agent.is_none() && is_left(tool, event, stamp);
                for tool in place.tools(session).iter().filter(left) {
                    place.close_tool(session, &tool.id);
                }
                let since = stamp.0.at;
                Beat { since, ..stamp.main(before, Phase::Thinking, None) }
            }
        }
        Act::Now(phase, what) => stamp.main(before, phase.clone(), what.clone()),
        Act::Ask { what, late } => {
            if *late && before.is_some_and(|before| !before.phase.is_in_turn()) {
                return Ok(());
            }
            // The first to say so knows best what is asked.
            let asked = before.filter(|before| before.phase == Phase::Waiting);
            let what = asked.and_then(|before| before.detail.clone()).or_else(|| what.clone());
            stamp.main(before, Phase::Waiting, what)
        }
        Act::Open { id, tool, allowed_s, what } => {
            place.put_tool(session, &opened(event, act, stamp, id))?;
            // What is asked beside it is still asked.
            let asked = before.filter(|before| before.phase == Phase::Waiting && is_same_turn(before, event));
            if let Some(before) = asked {
                stamp.goes_on(before)
            } else {
                let phase = Phase::Tool(tool.clone());
                Beat { allowed_s: *allowed_s, ..stamp.main(before, phase, what.clone()) }
            }
        }
        Act::Close(ids) => match close(place, session, ids, None) {
            Some(open) => {
                let phase = Phase::Tool(open.tool);
                Beat { allowed_s: open.allowed_s, ..stamp.main(before, phase, open.detail) }
            }
            None => stamp.main(before, Phase::Thinking, None),
        },
        Act::Rest(phase, agents) => {
            let all = place.session(session);
            let gone = |agent: &String| agents.as_ref().is_some_and(|run_on| !run_on.contains(agent));
            for tool in all.tools.iter().filter(|tool| tool.agent.as_ref().is_none_or(gone)) {
                place.close_tool(session, &tool.id);
            }
            for agent in all.agents.iter().filter(|agent| gone(&agent.agent)) {
                place.close_agent(session, &agent.agent);
            }
            let what = if *phase == Phase::Background { tasks(event) } else { None };
            stamp.main(before, phase.clone(), what)
        }
        Act::Start | Act::AgentDone | Act::End(_) => return Ok(()),
    };
    place.put_main(session, &beat)
}

fn leave_of_agent(
    place: &Place,
    session: &SessionId,
    event: &Event,
    act: &Act,
    stamp: &Stamp,
) -> io::Result<()> {
    let Some(id) = event.agent_id.as_deref() else { return Ok(()) };
    let before = place.agent(session, id);
    let (phase, what) = match act {
        Act::Now(phase, what) => (phase.clone(), what.clone()),
        Act::Ask { what, .. } => (Phase::Waiting, what.clone()),
        Act::Prompt => (Phase::Thinking, None),
        Act::Open { id, tool, what, .. } => {
            place.put_tool(session, &opened(event, act, stamp, id))?;
            (Phase::Tool(tool.clone()), what.clone())
        }
        Act::Close(ids) => match close(place, session, ids, Some(id)) {
            Some(open) => (Phase::Tool(open.tool), open.detail),
            None => (Phase::Thinking, None),
        },
        Act::AgentDone => {
            for tool in place.tools(session).iter().filter(|tool| tool.agent.as_deref() == Some(id)) {
                place.close_tool(session, &tool.id);
            }
            place.close_agent(session, id);
            return Ok(());
        }
        Act::Start | Act::Rest(..) | Act::End(_) => return Ok(()),
    };
    place.put_agent(session, &stamp.agent(event, before.as_ref(), phase, what))
}

fn opened(event: &Event, act: &Act, stamp: &Stamp, id: &str) -> Tool {
    let Act::Open { tool, allowed_s, what, .. } = act else { return Tool::default() };
    Tool {
        v: VERSION,
        id: id.to_owned(),
        tool: tool.clone(),
        agent: event.agent_id.clone(),
        prompt: event.prompt_id.clone(),
        at: stamp.0.at,
        mono_ms: stamp.0.mono_ms,
        allowed_s: *allowed_s,
        detail: what.clone(),
    }
}

/// Closes these calls and all that were made before them, since a batch ends as a whole; of the rest the one
/// that may take longest.
fn close(place: &Place, session: &SessionId, ids: &[String], agent: Option<&str>) -> Option<Tool> {
    let mut tools = place.tools(session);
    tools.retain(|tool| tool.agent.as_deref() == agent);
    let named = |tool: &Tool| ids.contains(&tool.id);
    let last = tools.iter().filter(|tool| named(tool)).map(|tool| tool.mono_ms).max();
    let over = |tool: &Tool| ids.is_empty() || named(tool) || last.is_some_and(|last| tool.mono_ms < last);
    for tool in tools.iter().filter(|tool| over(tool)) {
        place.close_tool(session, &tool.id);
    }
    tools.into_iter().filter(|tool| !over(tool)).max_by_key(|tool| tool.allowed_s)
}

/// Whether an event falls into the turn that is under way. Clients that do not number turns do not say.
fn is_same_turn(before: &Beat, event: &Event) -> bool {
    event.prompt_id.is_some() && before.prompt == event.prompt_id
}

/// Whether a call is left over from an earlier turn: an interrupt closes none.
fn is_left(tool: &Tool, event: &Event, stamp: &Stamp) -> bool {
    if let (Some(then), Some(now)) = (&tool.prompt, &event.prompt_id) {
        return then != now;
    }
    let allowed = i64::try_from(tool.allowed_s.unwrap_or(0)).unwrap_or(i64::MAX);
    stamp.0.at.saturating_sub(tool.at) > allowed
}
