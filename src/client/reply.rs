//! What a hook may answer: nothing, or one JSON object.

use serde::Serialize;

use super::event::Kind;
use crate::base::text::{clean, fit};

/// An answer. Empty means: say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// For the model, with the next request.
    pub context: Option<String>,
    /// One line for the person.
    pub message: Option<String>,
    /// Keeps a prompt from the model, for this reason, which the person is shown instead of it.
    pub block: Option<String>,
    /// What the person's terminal is to say, line by line.
    pub terminal: Vec<String>,
}

/// Whether the client hands what a terminal is to say on to it (measured, in sessions with a terminal).
pub fn reaches_terminal(kind: Kind) -> bool {
    use Kind::{Notification, PreToolUse, SessionStart, Stop, UserPromptSubmit};
    matches!(kind, SessionStart | UserPromptSubmit | PreToolUse | Stop | Notification)
}

/// A notification of the terminal's for each line, and a bell at the end, which reaches a person through tmux too:
/// that lets notifications through only where it is told to.
fn sequence(lines: &[String]) -> String {
    const WIDEST: usize = 240;
    let mut said = String::new();
    for line in lines {
        said.push_str(&format!("\u{1b}]9;{}\u{7}", fit(&clean(line), WIDEST)));
    }
    said + "\u{7}"
}

/// The client cuts a text at 10,000 characters; ours are kept well below.
const MOST: usize = 8_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal_sequence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    suppress_original_prompt: bool,
}

impl Reply {
    /// The line to print, or nothing. Context is given only where the client takes it: PreCompact and
    /// PostCompact answer it with an error on the person's screen (measured), and on Stop it would force
    /// more requests.
    pub fn to_line(&self, kind: Kind) -> Option<String> {
        let name = match kind {
            Kind::SessionStart => Some("SessionStart"),
            Kind::UserPromptSubmit => Some("UserPromptSubmit"),
            Kind::PostToolBatch => Some("PostToolBatch"),
            _ => None,
        };
        let cut = |text: &String| text.chars().take(MOST).collect::<String>();
        let context = name.and(self.context.as_ref()).map(cut);
        let message = self.message.as_ref().map(cut);
        let block = self.block.as_ref().filter(|_| kind == Kind::UserPromptSubmit).map(cut);
        let terminal =
            (!self.terminal.is_empty() && reaches_terminal(kind)).then(|| sequence(&self.terminal));
        if context.is_none() && message.is_none() && block.is_none() && terminal.is_none() {
            return None;
        }
        let specific = name.filter(|_| context.is_some() || block.is_some());
        let wire = Wire {
            decision: block.is_some().then_some("block"),
            reason: block.as_deref(),
            system_message: message.as_deref(),
            terminal_sequence: terminal,
            hook_specific_output: specific.map(|name| Specific {
                hook_event_name: name,
                additional_context: context.as_deref(),
                suppress_original_prompt: block.is_some(),
            }),
        };
        serde_json::to_string(&wire).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_clients_shape() {
        let reply = Reply { context: Some("c".into()), message: Some("m".into()), ..Reply::default() };
        assert_eq!(
            reply.to_line(Kind::UserPromptSubmit).unwrap(),
            r#"{"systemMessage":"m","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"c"}}"#
        );
        assert_eq!(Reply::default().to_line(Kind::SessionStart), None);
    }

    #[test]
    fn a_terminal_is_told_only_where_it_hears_and_only_what_it_shows() {
        let reply = Reply { terminal: vec!["a \u{1b}]52;c;x\u{7}".into(), "b".into()], ..Reply::default() };
        let line = reply.to_line(Kind::Stop).unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["terminalSequence"], "\u{1b}]9;a ]52;c;x\u{7}\u{1b}]9;b\u{7}\u{7}");
        assert_eq!(value.as_object().unwrap().len(), 1);
        for kind in [Kind::PostToolBatch, Kind::PreCompact, Kind::SessionEnd] {
            assert_eq!(reply.to_line(kind), None);
        }
    }

    #[test]
    fn only_a_prompt_is_kept_from_the_model() {
        let reply = Reply { block: Some("why".into()), ..Reply::default() };
        assert_eq!(
            reply.to_line(Kind::UserPromptSubmit).unwrap(),
            r#"{"decision":"block","reason":"why","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","suppressOriginalPrompt":true}}"#
        );
        assert_eq!(reply.to_line(Kind::PostToolBatch), None);
    }

    #[test]
    fn compaction_hooks_never_answer_with_specific_output() {
        let reply = Reply { context: Some("c".into()), ..Reply::default() };
        assert_eq!(reply.to_line(Kind::PreCompact), None);
        assert_eq!(reply.to_line(Kind::PostCompact), None);
        let reply = Reply { message: Some("m".into()), ..reply };
        assert_eq!(reply.to_line(Kind::PreCompact).unwrap(), r#"{"systemMessage":"m"}"#);
    }
}
