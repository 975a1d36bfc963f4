//! The table: which event says what of its session. Pure.

use crate::client::event::{Event, Kind, ToolInput};
use crate::store::beats::{Phase, detail};

/// Limits of the client's own tools, in ms.
const USUAL_MS: u64 = 120_000;
const FETCH_MS: u64 = 300_000;
/// A server's tool has so long in all where nobody set another limit (2.1.332), and may be silent for so long: of one
/// that is reached over the network five minutes. No event tells of progress, or of a server's own limit.
const SERVER_MS: u64 = 100_000_000;
const SILENT_SERVER_MS: u64 = 1_800_000;
/// The program that our monitor runs.
const WATCHER: &str = "longhaul-watch";
/// Bytes of a tool's name.
const NAME: usize = 100;

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// The session starts in this process, or goes on in it.
    Start,
    /// A prompt, which begins a turn or falls into one.
    Prompt,
    /// This is what is done now.
    Now(Phase, Option<String>),
    /// The person is asked; inside a turn alone where `late` events may come after it.
    Ask { what: Option<String>, late: bool },
    /// A tool was called.
    Open { id: String, tool: String, allowed_s: Option<u64>, what: Option<String> },
    /// These calls are over, and all before them.
    Close(Vec<String>),
    /// The turn is over; of the subagents these run on, where that is told.
    Rest(Phase, Option<Vec<String>>),
    /// The subagent is done.
    AgentDone,
    /// The session has ended.
    End(Option<String>),
}

/// The table: which event says what. `limit` reads a variable of the session's environment, in ms.
pub(super) fn act(event: &Event, limit: &dyn Fn(&str) -> Option<u64>) -> Option<Act> {
    let inside = event.agent_id.is_some();
    let in_words = |text: Option<&String>| text.and_then(|text| detail(text));
    Some(match event.kind() {
        Kind::SessionStart if event.source.as_deref() == Some("compact") => Act::Now(Phase::Thinking, None),
        Kind::SessionStart if !inside => Act::Start,
        Kind::UserPromptSubmit => Act::Prompt,
        Kind::PreToolUse => called(event, limit),
        Kind::PermissionRequest => Act::Ask { what: Some(permission(event)), late: false },
        Kind::Notification if event.asks_the_person() => {
            let late = event.notification_type.as_deref() != Some("agent_needs_input");
            Act::Ask { what: in_words(event.message.as_ref()), late }
        }
        Kind::PostToolBatch => {
            let calls = event.tool_calls.iter().flatten();
            Act::Close(calls.filter_map(|call| call.tool_use_id.clone()).collect())
        }
        Kind::SubagentStart => Act::Now(Phase::Thinking, None),
        // One without a kind comes with every compaction.
        Kind::SubagentStop if event.agent_type.as_deref().is_some_and(|kind| !kind.is_empty()) => {
            Act::AgentDone
        }
        Kind::Stop if !inside => stopped(event),
        Kind::StopFailure if !inside => {
            let error = event.error.as_deref().map_or_else(|| "unknown".to_owned(), short);
            Act::Rest(Phase::Failed(error), None)
        }
        Kind::PreCompact => Act::Now(Phase::Compacting, None),
        // After one that the person asked for no turn goes on.
        Kind::PostCompact if event.trigger.as_deref() == Some("manual") => Act::Now(Phase::Idle, None),
        Kind::SessionEnd => Act::End(in_words(event.reason.as_ref())),
        _ => return None,
    })
}

fn short(name: &str) -> String {
    detail(name).unwrap_or_default().chars().take(NAME).collect()
}

fn called(event: &Event, limit: &dyn Fn(&str) -> Option<u64>) -> Act {
    let tool = short(event.tool_name.as_deref().unwrap_or_default());
    let none = ToolInput::default();
    let input = event.tool_input.as_ref().unwrap_or(&none);
    match &*tool {
        "AskUserQuestion" => {
            let questions = input.questions.iter().flatten().filter_map(|q| q.question.as_deref());
            Act::Ask { what: detail(&questions.collect::<Vec<_>>().join(" · ")), late: false }
        }
        "ExitPlanMode" => Act::Ask { what: Some("a plan to accept".to_owned()), late: false },
        _ => Act::Open {
            id: event.tool_use_id.clone().unwrap_or_default(),
            allowed_s: allowed_ms(&tool, input, limit).map(|ms| ms.div_ceil(1000)),
            what: about(input),
            tool,
        },
    }
}

/// How long a call may take, in ms; `None` where nothing limits it, or others do its work.
fn allowed_ms(tool: &str, input: &ToolInput, stated: &dyn Fn(&str) -> Option<u64>) -> Option<u64> {
    let limit = |name: &str| stated(name).filter(|ms| *ms > 0);
    match tool {
        "Bash" if input.run_in_background == Some(true) => None,
        "Bash" => input.timeout.or_else(|| limit("BASH_DEFAULT_TIMEOUT_MS")).or(Some(USUAL_MS)),
        "WebFetch" => limit("CLAUDE_CODE_WEBFETCH_DEADLINE_MS").or(Some(FETCH_MS)),
        "Agent" | "Task" => None,
        _ if tool.starts_with("mcp__") => {
            let all = limit("MCP_TOOL_TIMEOUT").unwrap_or(SERVER_MS);
            let silent = stated("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT").unwrap_or(SILENT_SERVER_MS);
            // 0: as long as it likes.
            Some(if silent == 0 { all } else { all.min(silent) })
        }
        _ => Some(input.timeout.unwrap_or(0).max(USUAL_MS)),
    }
}

/// What a call is about, in the words of its input.
fn about(input: &ToolInput) -> Option<String> {
    let words = [&input.description, &input.command, &input.file_path, &input.url];
    words.into_iter().flatten().find_map(|text| detail(text))
}

fn permission(event: &Event) -> String {
    let tool = short(event.tool_name.as_deref().unwrap_or("a tool"));
    let about = event.tool_input.as_ref().and_then(about);
    about.map_or_else(|| format!("permission: {tool}"), |about| format!("permission: {tool}: {about}"))
}

fn stopped(event: &Event) -> Act {
    let Some(tasks) = &event.background_tasks else { return Act::Rest(Phase::Idle, None) };
    let others: Vec<_> = tasks.iter().filter(|task| task.runs() && !task.is_monitor_of(WATCHER)).collect();
    let agents = others.iter().filter(|task| task.kind.as_deref() == Some("subagent"));
    let agents = agents.filter_map(|task| task.id.clone()).collect();
    Act::Rest(if others.is_empty() { Phase::Idle } else { Phase::Background }, Some(agents))
}

/// What the running tasks are, for people.
pub(super) fn tasks(event: &Event) -> Option<String> {
    let tasks = event.background_tasks.iter().flatten();
    let others = tasks.filter(|task| task.runs() && !task.is_monitor_of(WATCHER));
    let words = others.filter_map(|task| task.description.as_deref().or(task.command.as_deref()));
    detail(&words.collect::<Vec<_>>().join(" · "))
}

#[cfg(test)]
mod tests;
