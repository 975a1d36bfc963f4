//! Hook events as the client writes them to a hook's standard input (2.1.332). Unknown events and fields
//! pass; what is missing is `None`.

use serde::Deserialize;
use serde_json::Value;

use super::lenient::{as_count, beginning, count, maybe, name, object};

/// Which event it is. Only those that something listens to have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A session starts, resumes, forks, or goes on after a compaction.
    SessionStart,
    /// A prompt, of a person or of a machine.
    UserPromptSubmit,
    /// A tool is about to run.
    PreToolUse,
    /// The person is about to be asked whether a tool may run.
    PermissionRequest,
    /// All tools of one response are done.
    PostToolBatch,
    /// A subagent starts.
    SubagentStart,
    /// A subagent is done. With an empty `agent_type` it is none: one comes with every compaction.
    SubagentStop,
    /// The turn has ended.
    Stop,
    /// The turn has ended with an error of the API.
    StopFailure,
    /// The client tells the person something.
    Notification,
    /// A compaction begins.
    PreCompact,
    /// A compaction has ended.
    PostCompact,
    /// A session ends.
    SessionEnd,
    /// Anything else.
    Other,
}

/// One event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    /// The event's name.
    #[serde(deserialize_with = "name")]
    pub hook_event_name: Option<String>,
    /// The session.
    #[serde(deserialize_with = "name")]
    pub session_id: Option<String>,
    /// Its transcript.
    #[serde(deserialize_with = "name")]
    pub transcript_path: Option<String>,
    /// Its working directory.
    #[serde(deserialize_with = "name")]
    pub cwd: Option<String>,
    /// Present inside a subagent.
    #[serde(deserialize_with = "name")]
    pub agent_id: Option<String>,
    /// The kind of subagent.
    #[serde(deserialize_with = "name")]
    pub agent_type: Option<String>,
    /// The turn's number. A message typed into a running turn has that turn's.
    #[serde(deserialize_with = "name")]
    pub prompt_id: Option<String>,
    /// The session's title, once it has one.
    #[serde(deserialize_with = "name")]
    pub session_title: Option<String>,
    /// PreToolUse, PermissionRequest: the tool.
    #[serde(deserialize_with = "name")]
    pub tool_name: Option<String>,
    /// PreToolUse: the call's id. PermissionRequest has none.
    #[serde(deserialize_with = "name")]
    pub tool_use_id: Option<String>,
    /// PreToolUse, PermissionRequest: what is looked at of the tool's input.
    #[serde(deserialize_with = "maybe")]
    pub tool_input: Option<ToolInput>,
    /// PostToolBatch: every call of the batch.
    #[serde(deserialize_with = "maybe")]
    pub tool_calls: Option<Vec<Call>>,
    /// Stop: what runs on. Absent under clients that do not tell.
    #[serde(deserialize_with = "maybe")]
    pub background_tasks: Option<Vec<Task>>,
    /// StopFailure: which error.
    #[serde(deserialize_with = "name")]
    pub error: Option<String>,
    /// Notification: which.
    #[serde(deserialize_with = "name")]
    pub notification_type: Option<String>,
    /// Notification: its text.
    #[serde(deserialize_with = "beginning")]
    pub message: Option<String>,
    /// SessionEnd: why.
    #[serde(deserialize_with = "name")]
    pub reason: Option<String>,
    /// PreCompact, PostCompact: auto or manual.
    #[serde(deserialize_with = "name")]
    pub trigger: Option<String>,
    /// SessionStart: startup, resume, clear, compact, fork. UserPromptSubmit: mostly absent.
    #[serde(deserialize_with = "name")]
    pub source: Option<String>,
    /// SessionStart: the model's id, where given.
    #[serde(deserialize_with = "name")]
    pub model: Option<String>,
    /// UserPromptSubmit: how the text begins.
    #[serde(deserialize_with = "beginning")]
    pub prompt: Option<String>,
    /// SessionStart(resume, fork): tokens in the context, output counted.
    #[serde(deserialize_with = "count")]
    pub context_tokens: Option<u64>,
    /// SessionStart(resume, fork): the next request probably pays for the whole context.
    #[serde(deserialize_with = "maybe")]
    pub prompt_cache_likely_expired: Option<bool>,
    /// SessionStart(resume, fork): what writing it to the cache again costs, in US dollars.
    #[serde(deserialize_with = "maybe")]
    pub estimated_cache_write_usd: Option<f64>,
}

/// What is looked at of a tool's input.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ToolInput {
    /// How long it may take, in ms.
    #[serde(deserialize_with = "count")]
    pub timeout: Option<u64>,
    /// Whether the call returns while the command runs on.
    #[serde(deserialize_with = "maybe")]
    pub run_in_background: Option<bool>,
    /// What the call is for, in a few words.
    #[serde(deserialize_with = "beginning")]
    pub description: Option<String>,
    /// A shell's command.
    #[serde(deserialize_with = "beginning")]
    pub command: Option<String>,
    /// A file.
    #[serde(deserialize_with = "name")]
    pub file_path: Option<String>,
    /// An address.
    #[serde(deserialize_with = "name")]
    pub url: Option<String>,
    /// AskUserQuestion: what is asked.
    #[serde(deserialize_with = "maybe")]
    pub questions: Option<Vec<Question>>,
}

/// One question to the person.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Question {
    /// Its text.
    #[serde(deserialize_with = "beginning")]
    pub question: Option<String>,
}

/// One call of a batch.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Call {
    /// The call's id.
    #[serde(deserialize_with = "name")]
    pub tool_use_id: Option<String>,
}

/// A task that runs on after a turn.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Task {
    /// Its id; a subagent's is the subagent's.
    #[serde(deserialize_with = "name")]
    pub id: Option<String>,
    /// shell, subagent, monitor, …
    #[serde(rename = "type", deserialize_with = "name")]
    pub kind: Option<String>,
    /// running, …
    #[serde(deserialize_with = "name")]
    pub status: Option<String>,
    /// What it is for, in a few words.
    #[serde(deserialize_with = "beginning")]
    pub description: Option<String>,
    /// What it runs.
    #[serde(deserialize_with = "beginning")]
    pub command: Option<String>,
}

impl Task {
    /// Whether it runs: that, or nothing, is said of one that does.
    pub fn runs(&self) -> bool {
        self.status.as_deref().is_none_or(|status| status == "running")
    }

    /// Whether it is a monitor that runs this program.
    pub fn is_monitor_of(&self, program: &str) -> bool {
        let runs_it = |command: &String| command.trim_end().ends_with(program);
        self.kind.as_deref() == Some("monitor") && self.command.as_ref().is_some_and(runs_it)
    }
}

/// A time limit in ms as a variable states it: a whole number at its beginning, as the client reads it; of most
/// limits 0 is none that it heeds.
pub fn limit_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = &text[..text.bytes().take_while(u8::is_ascii_digit).count()];
    digits.parse::<Value>().ok().as_ref().and_then(as_count)
}

impl Event {
    /// Reads an event. Anything that is not a JSON object is `None`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        object(bytes)
    }

    /// Which event it is.
    pub fn kind(&self) -> Kind {
        match self.hook_event_name.as_deref() {
            Some("SessionStart") => Kind::SessionStart,
            Some("UserPromptSubmit") => Kind::UserPromptSubmit,
            Some("PreToolUse") => Kind::PreToolUse,
            Some("PermissionRequest") => Kind::PermissionRequest,
            Some("PostToolBatch") => Kind::PostToolBatch,
            Some("SubagentStart") => Kind::SubagentStart,
            Some("SubagentStop") => Kind::SubagentStop,
            Some("Stop") => Kind::Stop,
            Some("StopFailure") => Kind::StopFailure,
            Some("Notification") => Kind::Notification,
            Some("PreCompact") => Kind::PreCompact,
            Some("PostCompact") => Kind::PostCompact,
            Some("SessionEnd") => Kind::SessionEnd,
            _ => Kind::Other,
        }
    }

    /// Whether a notification says that the person is asked something. The client has several of that kind, and
    /// may get more: those of a prompt or a dialog, but for the one that says that nothing is going on.
    pub fn asks_the_person(&self) -> bool {
        let asks = |kind: &str| {
            kind == "agent_needs_input"
                || kind.ends_with("_dialog")
                || (kind.ends_with("_prompt") && kind != "idle_prompt")
        };
        self.kind() == Kind::Notification && self.notification_type.as_deref().is_some_and(asks)
    }

    /// Whether a person sent this prompt, as far as the event can tell: not inside a subagent, not a
    /// notification, and no `source` but the person's own (absent counts: it is never sent today).
    pub fn is_a_persons_prompt(&self) -> bool {
        let notification =
            self.prompt.as_deref().is_some_and(|p| p.trim_start().starts_with("<task-notification"));
        let source = self.source.as_deref().is_none_or(|s| s == "user");
        self.kind() == Kind::UserPromptSubmit && self.agent_id.is_none() && source && !notification
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event {
        Event::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_prompt_of_a_machine_is_not_a_persons() {
        let person = r#"{"hook_event_name":"UserPromptSubmit","prompt":"go on"}"#;
        assert!(event(person).is_a_persons_prompt());
        for machine in [
            r#"{"hook_event_name":"UserPromptSubmit","prompt":"<task-notification>x"}"#,
            r#"{"hook_event_name":"UserPromptSubmit","prompt":"x","agent_id":"a1"}"#,
            r#"{"hook_event_name":"UserPromptSubmit","prompt":"x","source":"loop_wakeup"}"#,
            r#"{"hook_event_name":"Stop"}"#,
        ] {
            assert!(!event(machine).is_a_persons_prompt(), "{machine}");
        }
    }

    #[test]
    fn unknown_events_and_odd_fields_pass() {
        assert_eq!(event(r#"{"hook_event_name":"Later","cwd":7}"#).kind(), Kind::Other);
        assert_eq!(event("{}").kind(), Kind::Other);
        assert!(Event::parse(b"[1").is_none());
        let odd = r#"{"hook_event_name":"PreToolUse","tool_input":7,"tool_calls":{},"background_tasks":7}"#;
        let odd = event(odd);
        assert!(odd.tool_input.is_none() && odd.tool_calls.is_none() && odd.background_tasks.is_none());
    }

    /// As 2.1.332 wrote them.
    #[test]
    fn calls_tasks_and_questions_are_read() {
        let batch = r#"{"hook_event_name":"PostToolBatch","tool_calls":[{"tool_name":"Bash","tool_input":
            {"command":"sleep 4"},"tool_use_id":"toolu_1","tool_response":"(no output)"},{"tool_use_id":7}]}"#;
        let ids: Vec<_> = event(batch).tool_calls.unwrap().into_iter().map(|call| call.tool_use_id).collect();
        assert_eq!(ids, [Some("toolu_1".to_owned()), None]);
        let stop = r#"{"hook_event_name":"Stop","background_tasks":[
            {"id":"b1","type":"monitor","status":"running","command":"exec env A=\"b\" sh \"/p/hooks/launcher\" longhaul-watch"},
            {"id":"b2","type":"shell","status":"running","command":"tail -f longhaul-watch"},
            {"id":"b3","type":"monitor","status":"completed","command":"x"}]}"#;
        let tasks = event(stop).background_tasks.unwrap();
        let ours: Vec<_> = tasks.iter().map(|task| task.is_monitor_of("longhaul-watch")).collect();
        assert_eq!(ours, [true, false, false]);
        assert_eq!(tasks.iter().map(Task::runs).collect::<Vec<_>>(), [true, true, false]);
        let ask = r#"{"hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_input":
            {"questions":[{"question":"Which one?","header":"H","options":[]}]}}"#;
        let input = event(ask).tool_input.unwrap();
        assert_eq!(input.questions.unwrap()[0].question.as_deref(), Some("Which one?"));
    }

    #[test]
    fn a_notification_asks_or_it_does_not() {
        let asks = |kind: &str| {
            event(&format!(r#"{{"hook_event_name":"Notification","notification_type":"{kind}"}}"#))
                .asks_the_person()
        };
        for kind in ["permission_prompt", "agent_needs_input", "elicitation_dialog", "elicitation_url_dialog"]
        {
            assert!(asks(kind), "{kind}");
        }
        for kind in ["idle_prompt", "agent_completed", "auth_success", "elicitation_response", ""] {
            assert!(!asks(kind), "{kind}");
        }
    }

    #[test]
    fn a_limit_is_read_as_the_client_reads_it() {
        let read =
            ["300000", " 5000 ", "60000ms", "", "0", "-5", "x", "99999999999999999999999"].map(limit_ms);
        assert_eq!(read, [Some(300_000), Some(5_000), Some(60_000), None, Some(0), None, None, None]);
    }
}
