//! What a person said, row by row: prompts, and the places where their words hide elsewhere (2.1.332):
//!
//! * `attachment.queued_command`: typed while a turn ran;
//! * `<command-args>` and `<bash-input>` of rows that hold a command;
//! * `toolUseResult.answers`: answers to questions;
//! * `userFeedback`: the reason typed beside a refusal. "Chat about this" of a question leaves the client's
//!   own sentences there, which nobody typed, and in them the answers that had been given by then;
//! * text blocks beside a `tool_result`: words typed with a permission.
//!
//! Nobody said what is `isMeta`, a summary, a notification, a reminder or a subagent's.

use std::collections::HashMap;

use serde_json::Value;

use super::blocks::{Block, each};
use super::branch::hash;
use super::notes::Attachment;
use super::questions;
use super::row::{Kind, Row};
use super::texts::unescape;

/// How something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A prompt.
    Prompt,
    /// Typed while a turn ran.
    MidTurn,
    /// A slash command.
    Command,
    /// A command for the shell (`!…`).
    Shell,
    /// An answer to a question.
    Answer,
    /// A plan that was accepted.
    PlanAccepted,
    /// A plan that was rejected.
    PlanRejected,
    /// The reason given with a refusal.
    Rejection,
    /// Words given with a permission.
    WithPermission,
}

impl How {
    /// As a heading names it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::MidTurn => "sent while a turn ran",
            Self::Command => "slash command",
            Self::Shell => "shell command",
            Self::Answer => "answer to a question",
            Self::PlanAccepted => "plan, accepted",
            Self::PlanRejected => "plan, rejected",
            Self::Rejection => "rejection",
            Self::WithPermission => "said with a permission",
        }
    }
}

/// One thing said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// How.
    pub how: How,
    /// The words.
    pub text: String,
    /// What came with them that is no text: media type and bytes.
    pub media: Vec<(String, usize)>,
    /// The text is not whole: bytes that are no text, or half pairs.
    pub broken: bool,
}

impl Said {
    fn new(how: How, text: String) -> Self {
        Self { how, text, media: Vec::new(), broken: false }
    }
}

/// Calls whose results hold a person's words; more than this are not waited for.
const CALLS_MAX: usize = 64;
/// A plan or questions kept until their result, in bytes.
const INPUT_MAX: usize = 1 << 20;

/// Opens the prompt with which longhaul itself asks a session to read; nobody typed that.
pub const READING_PROMPT: &str = "<longhaul-reading>";

/// Texts that the client writes where a person's stand.
const OF_CLIENT: [&[u8]; 6] = [
    b"<local-command-",
    b"<bash-stdout>",
    b"<task-notification>",
    b"<system-reminder>",
    b"[Request interrupted by user",
    READING_PROMPT.as_bytes(),
];

/// Reads words out of rows, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Words {
    /// Rows say who began a turn; from then on those that do not, begin none.
    says_origin: bool,
    calls: HashMap<u64, Call>,
}

#[derive(Debug, Clone)]
enum Call {
    /// `questions`, where they are known.
    Question(Value),
    Plan(String),
}

impl Words {
    /// What was said in a row.
    pub fn of(&mut self, row: &Row) -> Vec<Said> {
        let mut said = Vec::new();
        if row.sidechain || row.meta || row.summary {
            return said;
        }
        match row.kind {
            Kind::User if row.message.has_result => self.beside_result(row, &mut said),
            Kind::User if self.is_prompt(row) => said.extend(prompt(row.message.content, is_typed(row))),
            Kind::Assistant => self.remember(row),
            Kind::Attachment => {
                said.extend(row.attachment.as_ref().filter(|it| is_queued(it)).and_then(queued));
            }
            Kind::System if row.subtype == Some(b"local_command") => {
                said.extend(row.content.and_then(|text| command(&plain(text).0, false)));
            }
            _ => {}
        }
        said
    }

    /// Whether a user row is a prompt that somebody typed or, headless, gave.
    pub fn is_prompt(&mut self, row: &Row) -> bool {
        self.says_origin |= row.turn_origin.is_some();
        let message = &row.message;
        if row.kind != Kind::User || row.sidechain || row.meta || row.summary || message.has_result {
            return false;
        }
        let text = message.text.unwrap_or_default().trim_ascii_start();
        // A reminder may stand before the person's words.
        let reminded =
            text.starts_with(b"<system-reminder>") && content(message.content, How::Prompt, false).is_some();
        if is_of_client(text) && !reminded && !is_typed(row) {
            return false;
        }
        match (row.turn_origin, row.origin, row.prompt_source) {
            (Some(origin), ..) => matches!(origin, b"human" | b"sdk"),
            (None, Some(origin), _) => origin == b"human",
            (None, None, Some(source)) => matches!(source, b"typed" | b"queued" | b"sdk"),
            // /compact, /clear and !commands say nothing of an origin; rows from before origins say it of nothing.
            (None, None, None) => {
                !self.says_origin || text.starts_with(b"<command-") || text.starts_with(b"<bash-input>")
            }
        }
    }

    fn remember(&mut self, row: &Row) {
        let _ = each(row.message.content, |block| {
            let Block::Call { id, name, input } = block else { return };
            let call = match name {
                b"AskUserQuestion" => {
                    let input = Some(input).filter(|input| input.len() <= INPUT_MAX);
                    let input = input.and_then(|input| serde_json::from_slice::<Value>(input).ok());
                    let mut input = input.unwrap_or_default();
                    Call::Question(input.get_mut("questions").map(Value::take).unwrap_or_default())
                }
                b"ExitPlanMode" => {
                    let value: Option<Value> = serde_json::from_slice(input).ok();
                    let plan = value.as_ref().and_then(|input| input["plan"].as_str()).unwrap_or_default();
                    Call::Plan(plan.chars().take(INPUT_MAX).collect())
                }
                _ => return,
            };
            if self.calls.len() < CALLS_MAX {
                self.calls.insert(hash(id), call);
            }
        });
    }

    fn beside_result(&mut self, row: &Row, said: &mut Vec<Said>) {
        let mut beside = Vec::new();
        let mut asked = None;
        let _ = each(row.message.content, |block| match block {
            Block::Result { id, error, content } => {
                let call = self.calls.remove(&hash(id));
                match call {
                    Some(Call::Plan(plan)) => said.extend(judged(row, plan, error)),
                    _ if !error => said.extend(questions::answers(row.tool_result).map(answer)),
                    Some(Call::Question(questions)) => asked = Some(questions),
                    None => {}
                }
                if error && row.feedback.is_none() {
                    said.extend(old_reason(content));
                }
            }
            Block::Text(text) if !is_of_client(text) => {
                beside.push(text);
            }
            _ => {}
        });
        let feedback = row.feedback.filter(|text| !text.is_empty());
        if let Some(text) = feedback {
            let (text, whole) = plain(text);
            said.extend(match asked {
                // The client's own sentences, whatever the row says of whose words it holds.
                Some(questions) if text.starts_with("The user wants to clarify") => {
                    questions::answered_so_far(&questions, &text).map(answer)
                }
                _ => Some(Said { broken: !whole, ..Said::new(How::Rejection, text) }),
            });
        }
        for text in beside {
            let (text, whole) = plain(text);
            if !text.trim().is_empty() {
                said.push(Said { broken: !whole, ..Said::new(How::WithPermission, text) });
            }
        }
    }
}

fn is_of_client(text: &[u8]) -> bool {
    begins_with(text, &OF_CLIENT)
}

fn begins_with(text: &[u8], marks: &[&[u8]]) -> bool {
    marks.iter().any(|mark| text.trim_ascii_start().starts_with(mark))
}

fn plain(raw: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(raw.len());
    let whole = unescape(raw, &mut text);
    (text, whole)
}

/// Whether an attachment is something that a person typed while a turn ran.
pub fn is_queued(attachment: &Attachment) -> bool {
    let typed = matches!(attachment.mode, None | Some(b"prompt" | b"bash"));
    attachment.kind == b"queued_command"
        && typed
        && (attachment.human || matches!(attachment.origin, None | Some(b"human")))
}

fn queued(attachment: &Attachment) -> Option<Said> {
    let typed = attachment.human || attachment.origin == Some(b"human");
    content(attachment.prompt, How::MidTurn, typed)
}

/// Whether the client itself says that somebody typed it. Of what it writes there itself, it never does.
fn is_typed(row: &Row) -> bool {
    matches!(row.prompt_source, Some(b"typed" | b"queued"))
}

/// The words of a prompt. In one that was typed, only reminders beside other words are the client's: it may begin
/// with whatever the client's own texts begin with.
fn content(raw: &[u8], how: How, typed: bool) -> Option<Said> {
    let without = |marks: &[&[u8]]| words(raw, how, |text| begins_with(text, marks));
    if !typed {
        return without(&OF_CLIENT);
    }
    let beside = without(&[b"<system-reminder>"]).filter(|said| !said.text.trim().is_empty());
    beside.or_else(|| without(&[]))
}

fn words(raw: &[u8], how: How, is_left_out: impl Fn(&[u8]) -> bool) -> Option<Said> {
    let mut said = Said::new(how, String::new());
    let mut any = false;
    let _ = each(raw, |block| match block {
        Block::Text(text) if !is_left_out(text) => {
            if any {
                said.text.push('\n');
            }
            any = true;
            said.broken |= !unescape(text, &mut said.text);
        }
        Block::Media(kind, bytes) => said.media.push((plain(kind).0, bytes / 4 * 3)),
        _ => {}
    });
    (!said.text.trim().is_empty() || !said.media.is_empty()).then_some(said)
}

fn prompt(raw: &[u8], typed: bool) -> Option<Said> {
    let said = content(raw, How::Prompt, typed)?;
    // The client's elements are all there is in such a row; a person may speak of one.
    let is_whole = said.text.trim_end().ends_with('>');
    if is_whole && said.text.starts_with("<command-") {
        return command(&said.text, true);
    }
    match between(&said.text, "bash-input") {
        Some(typed) if is_whole && said.text.starts_with("<bash-input>") => {
            Some(Said::new(How::Shell, format!("!{typed}")))
        }
        _ => Some(said),
    }
}

/// A slash command with what was typed behind it. Without arguments only one that begins a turn counts.
fn command(text: &str, begins_turn: bool) -> Option<Said> {
    let name = between(text, "command-name")?;
    let args = between(text, "command-args").unwrap_or_default().trim();
    let builtin = matches!(name.trim_start_matches('/'), "clear" | "compact" | "exit");
    if args.is_empty() && (!begins_turn || builtin) {
        return None;
    }
    let slash = if name.starts_with('/') { "" } else { "/" };
    Some(Said::new(How::Command, format!("{slash}{name} {args}").trim_end().to_owned()))
}

/// The text of an element; to its last end, since what was typed may hold the end itself.
fn between<'a>(text: &'a str, element: &str) -> Option<&'a str> {
    let open = format!("<{element}>");
    let rest = &text[text.find(&open)? + open.len()..];
    Some(&rest[..rest.rfind(&format!("</{element}>"))?])
}

fn judged(row: &Row, asked: String, error: bool) -> Option<Said> {
    let given: Option<Value> = serde_json::from_slice(row.tool_result).ok();
    let given = given.as_ref().and_then(|given| given["plan"].as_str()).map(str::to_owned);
    // An error that nobody decided is no judgement.
    if error && row.denial != Some(b"user-rejected") && row.denial.is_some() {
        return None;
    }
    let how = if error { How::PlanRejected } else { How::PlanAccepted };
    Some(Said::new(how, given.unwrap_or(asked)))
}

fn answer(text: String) -> Said {
    Said::new(How::Answer, text)
}

/// The reason of a refusal as clients before `userFeedback` kept it: at the end of what the model was told.
fn old_reason(content: &[u8]) -> Option<Said> {
    let mut reason = None;
    let _ = each(content, |block| {
        let Block::Text(text) = block else { return };
        let (text, _) = plain(text);
        if text.starts_with("The user doesn't want to proceed") {
            reason = text.split_once("the user said:\n").map(|(_, reason)| reason.trim().to_owned());
        }
    });
    reason.filter(|reason| !reason.is_empty()).map(|reason| Said::new(How::Rejection, reason))
}
