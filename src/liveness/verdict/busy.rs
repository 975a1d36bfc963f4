//! A session that is busy: whether any of its lines of work still moves within its limit.

use super::{Facts, Judged, Limits, OpenTool, Verdict};
use crate::client::session_file::Status;
use crate::store::beats::Phase;

/// What a call gets beyond its limit, in ms.
const TOOL_GRACE: i64 = 60_000;
/// How long a call of a subagent may take that has not beaten at all, in ms.
const USUAL_TOOL: i64 = 120_000;

/// One line of work: the session's own, or a subagent's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Strand {
    /// How long it has not moved, in ms.
    still: i64,
    /// How long it may.
    limit: i64,
    suspected: bool,
    phase: Phase,
    detail: Option<String>,
}

impl Strand {
    /// How far it is beyond its limit; negative within it.
    fn over(&self) -> i64 {
        self.still.saturating_sub(self.limit)
    }
}

/// The verdict on a session that is at work.
pub(super) fn busy(facts: &Facts, limits: &Limits, quiet: Judged) -> Judged {
    let own = own_strand(facts, limits);
    let agents = (0..facts.agents.len()).map(|at| agent_strand(facts, limits, at));
    // One that moves is enough: all wait for it, or do not care.
    let Some(best) = own.into_iter().chain(agents).min_by_key(Strand::over) else {
        return Judged { verdict: Verdict::Working, ..quiet };
    };
    let over = best.over();
    let verdict = match over {
        ..=0 => Verdict::Working,
        _ if over > limits.dead_after_stale => Verdict::DeadLike,
        _ => Verdict::Stale,
    };
    let silence = if verdict == Verdict::Working { quiet.silence } else { best.still };
    Judged {
        verdict,
        suspected: verdict.is_bad() && best.suspected,
        phase: best.phase,
        detail: best.detail,
        silence,
    }
}

/// The session's own line; `None` where it only waits for its subagents.
fn own_strand(facts: &Facts, limits: &Limits) -> Option<Strand> {
    // Where no beat was ever left, nobody knows what it does, and a long tool would look like a hung request.
    let main = facts.main.as_ref()?;
    // The person may have let the tool run only a while after it was called.
    let granted = facts.client.as_ref().filter(|client| client.status == Some(Status::Busy));
    let granted = granted.and_then(|client| client.since).unwrap_or(i64::MAX);
    let in_tool = matches!(main.phase, Phase::Tool(_) | Phase::Waiting);
    let own: Vec<_> = facts.tools.iter().filter(|tool| in_tool && tool.agent.is_none()).collect();
    if own.iter().any(|tool| delegates(&tool.name)) && !facts.agents.is_empty() {
        return None;
    }
    if let Some(strand) = own.iter().map(|tool| tool_strand(tool, granted, limits)).min_by_key(Strand::over) {
        return Some(strand);
    }
    let still = facts.moved().chain([main.ago]).min().unwrap_or(main.ago);
    if let Phase::Tool(name) = &main.phase {
        let tool = OpenTool {
            name: name.clone(),
            ago: main.ago,
            allowed: main.allowed,
            detail: main.detail.clone(),
            ..OpenTool::default()
        };
        return Some(tool_strand(&tool, granted, limits));
    }
    // A compaction's request is not among those that the mod sees.
    let watched = facts.stream.is_some() && main.phase != Phase::Compacting;
    let limit = if watched { limits.stale } else { limits.stale_thinking };
    // Busy without a turn that events told of: the model is asked.
    let phase = if main.phase.is_in_turn() { main.phase.clone() } else { Phase::Thinking };
    let phase = if phase == Phase::Waiting { Phase::Thinking } else { phase };
    let detail = if phase == main.phase { main.detail.clone() } else { None };
    Some(Strand { still, limit, suspected: !watched, phase, detail })
}

fn agent_strand(facts: &Facts, limits: &Limits, at: usize) -> Strand {
    let agent = &facts.agents[at];
    let granted = i64::MAX;
    let tools = facts.tools.iter().filter(|tool| tool.agent == Some(at));
    let tools = tools.filter(|_| matches!(agent.phase, Phase::Tool(_) | Phase::Waiting));
    let longest = tools.map(|tool| tool_strand(tool, granted, limits)).min_by_key(Strand::over);
    longest.unwrap_or_else(|| Strand {
        still: agent.ago,
        limit: limits.stale_thinking,
        suspected: true,
        phase: agent.phase.clone(),
        detail: agent.detail.clone(),
    })
}

/// Whether a call's work is a subagent's.
fn delegates(tool: &str) -> bool {
    matches!(tool, "Agent" | "Task")
}

/// A call moves only by ending: whatever else moves says nothing of it.
fn tool_strand(tool: &OpenTool, granted: i64, limits: &Limits) -> Strand {
    let usual = if delegates(&tool.name) { USUAL_TOOL } else { 0 };
    let allowed = tool.allowed.unwrap_or(usual).saturating_add(TOOL_GRACE);
    Strand {
        still: tool.ago.min(granted),
        limit: allowed.max(limits.stale),
        suspected: false,
        phase: Phase::Tool(tool.name.clone()),
        detail: tool.detail.clone(),
    }
}
