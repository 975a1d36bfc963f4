//! Hook events as the client writes them to a hook's standard input (2.1.332). Unknown events and fields
//! pass; what is missing is `None`.

use serde::Deserialize;

use super::lenient::{beginning, count, maybe, name, object};

/// Which event it is. Only those that something listens to have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A session starts, resumes, forks, or goes on after a compaction.
    SessionStart,
    /// A prompt, of a person or of a machine.
    UserPromptSubmit,
    /// All tools of one response are done.
    PostToolBatch,
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
            Some("PostToolBatch") => Kind::PostToolBatch,
            Some("PreCompact") => Kind::PreCompact,
            Some("PostCompact") => Kind::PostCompact,
            Some("SessionEnd") => Kind::SessionEnd,
            _ => Kind::Other,
        }
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
    }
}
