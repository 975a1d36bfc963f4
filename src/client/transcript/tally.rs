//! What each row does to the figures. Pure: rows in, figures out.
//!
//! **The live branch.** A row's context is its parent's until a response or a compaction sets it. A prompt,
//! a result or a response moves the context in use to its own: after a rewind the new prompt hangs on an
//! earlier row, and the context falls back at once. Notes and attachments do not move it; the client adds
//! some of them late, on older rows.
//! * A parent nobody remembers: a prompt whose `promptIndex` steps back makes the context unknown; any other
//!   row goes on from the last known one.
//! * Rewound to the first prompt, the client writes `parentUuid:null`, or the abandoned leaf (both seen on
//!   2.1.332): `promptIndex` is 1 again, and the context unknown until the next response.
//! * Rows kept across a compaction stand behind it. Any other row from before it moves nothing, but for a
//!   prompt, which can only be there by a rewind.

use memchr::memmem;

use super::branch::{Branches, Mark, Memory, hash};
use super::bytes::cut_at;
use super::figures::{Context, Figures, INTERVAL_SLACK, Times};
use super::lines::trimmed;
use super::message::{Message, Usage};
use super::notes::Attachment;
use super::row::{Kind, Parent, Row};
use super::texts::plain;
use crate::base::tokens::MOST;

/// Names of models that are told apart; the last place is shared by any more.
const MODELS_MAX: usize = 16;
/// Bytes of a model's name that are kept.
const NAME_MAX: usize = 200;

/// All that counting needs to know of the rows before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    pub(super) figures: Figures,
    pub(super) times: Times,
    pub(super) mark: Mark,
    pub(super) epoch: u16,
    pub(super) branches: Branches,
    /// Ids of messages and of tool calls.
    pub(super) seen: Memory<64>,
    pub(super) message: u64,
    pub(super) message_total: u32,
    pub(super) models: Vec<String>,
    /// Rows say who began a turn; those that do not, begin none.
    pub(super) says_origin: bool,
    pub(super) turn: u64,
    /// The turn of the prompt with `promptIndex` 1.
    pub(super) first_turn: Option<u64>,
    pub(super) prompt_index: u64,
    pub(super) since: Since,
    /// The interval was overruled by a context that was answered, not only reached.
    pub(super) overruled: bool,
}

/// Since the last compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Since {
    pub(super) turns: u64,
    pub(super) responses: u64,
    pub(super) answered: u64,
    /// Largest context of the interval's own model.
    pub(super) same_model: u64,
}

impl Tally {
    /// Takes one line.
    pub fn line(&mut self, line: &[u8]) {
        let line = trimmed(line);
        if line.is_empty() {
            return;
        }
        match Row::read(line) {
            Ok(row) => {
                self.figures.rows += 1;
                if let Some(row) = row {
                    self.row(&row);
                }
            }
            Err(_) => self.damaged(),
        }
    }

    /// Counts a line that nobody could read.
    pub fn damaged(&mut self) {
        self.figures.damaged += 1;
    }

    fn row(&mut self, row: &Row) {
        if row.sidechain {
            return;
        }
        let uuid = row.uuid.map(hash);
        if uuid.is_some_and(|uuid| self.branches.has(uuid)) {
            // The same row again: a copy.
            return;
        }
        if row.kind != Kind::Other {
            row.at_ms.into_iter().for_each(|at| self.times.pass(at));
        }
        let mark = match row.kind {
            Kind::Assistant => self.assistant(row),
            Kind::User => self.user(row),
            Kind::System if row.subtype == Some(b"compact_boundary") => {
                self.compaction(row, row.compact.as_ref())
            }
            Kind::Attachment => {
                if let Some(attachment) = &row.attachment {
                    self.attachment(row, attachment);
                }
                self.parents(row)
            }
            Kind::System | Kind::Other => self.parents(row),
        };
        if let Some(uuid) = uuid {
            self.branches.set(uuid, mark);
        }
    }

    /// The parent's context, for a row that does not go back behind a compaction; else the one in use.
    pub(super) fn parents(&self, row: &Row) -> Mark {
        let parent =
            if let Parent::Row(parent) = row.parent { self.branches.as_of(hash(parent)) } else { None };
        parent.filter(|mark| mark.epoch == self.epoch).unwrap_or(self.mark)
    }

    pub(super) fn move_to(&mut self, mark: Mark, at_ms: Option<i64>) {
        if (mark.tokens, mark.estimated) != (self.mark.tokens, self.mark.estimated) {
            self.figures.context_at = at_ms.or(self.figures.context_at);
        }
        self.mark = mark;
    }

    fn assistant(&mut self, row: &Row) -> Mark {
        let before = self.parents(row);
        let message = &row.message;
        if row.api_error || message.model == Some(b"<synthetic>") {
            self.figures.refused = row.api_error && says_too_long(row);
            self.move_to(before, row.at_ms);
            return before;
        }
        self.figures.refused = false;
        let id = message.id.or(row.uuid).map(hash);
        if id.is_none_or(|id| self.seen.is_new(id)) {
            self.figures.responses += 1;
            self.since.responses += 1;
            self.answered(before);
        }
        for call in &message.tool_uses {
            if call.is_empty() || self.seen.is_new(hash(call)) {
                self.figures.tool_calls += 1;
            }
        }
        let total = message.usage.map_or(0, Usage::total);
        let Some(total) = Some(total).filter(|total| (1..=MOST).contains(total)).map(clamp) else {
            self.move_to(before, row.at_ms);
            return before;
        };
        self.respond(id.unwrap_or(0), total, message, row.at_ms)
    }

    /// A response that says how much it read and wrote. Its rows repeat the figure; the largest one counts.
    fn respond(&mut self, id: u64, total: u32, message: &Message, at_ms: Option<i64>) -> Mark {
        let same = id != 0 && id == self.message;
        if !same {
            self.figures.previous_context = u64::from(self.message_total);
        }
        self.message_total = if same { self.message_total.max(total) } else { total };
        self.message = id;
        let model = message.model.map_or(self.mark.model, |name| self.model(name));
        let tokens = u64::from(self.message_total);
        self.mark = Mark { tokens: Some(self.message_total), estimated: false, model, epoch: self.epoch };
        self.figures.context_at = at_ms.or(self.figures.context_at);
        self.figures.max_since_boundary = self.figures.max_since_boundary.max(tokens);
        if self.is_of_interval(model) {
            self.since.same_model = self.since.same_model.max(tokens);
        }
        self.mark
    }

    /// A context on which the model was asked, and answered.
    fn answered(&mut self, asked: Mark) {
        if let Some(tokens) = asked.tokens.filter(|_| !asked.estimated).map(u64::from) {
            self.since.answered = self.since.answered.max(tokens);
            let above =
                self.figures.interval.as_ref().is_some_and(|i| tokens > i.pre.saturating_add(INTERVAL_SLACK));
            self.overruled |= above && self.is_of_interval(asked.model);
        }
    }

    fn is_of_interval(&self, model: u8) -> bool {
        self.figures.interval.as_ref().is_some_and(|interval| interval.model == self.model_name(model))
    }

    fn attachment(&mut self, row: &Row, attachment: &Attachment) {
        match attachment.kind {
            b"queued_command" if attachment.human || attachment.origin == Some(b"human") => {
                self.person_spoke(row.at_ms);
            }
            b"hook_additional_context" if memmem::find(attachment.content, b"longhaul").is_some() => {
                self.figures.last_notice_at = row.at_ms.or(self.figures.last_notice_at);
            }
            _ => {}
        }
    }

    fn model(&mut self, name: &[u8]) -> u8 {
        let name = plain(name);
        let name = &name[..cut_at(&name, NAME_MAX)];
        let place = self.models.iter().position(|known| known == name).unwrap_or_else(|| {
            self.models.truncate(MODELS_MAX - 1);
            self.models.push(name.to_owned());
            self.models.len() - 1
        });
        u8::try_from(place + 1).unwrap_or(0)
    }

    pub(super) fn model_name(&self, place: u8) -> Option<String> {
        self.models.get(usize::from(place).checked_sub(1)?).cloned()
    }

    /// What has been measured so far.
    pub fn figures(&self) -> Figures {
        let mut figures = self.figures.clone();
        figures.first_at = self.times.first_at;
        figures.last_at = self.times.last_at;
        figures.active_ms = self.times.active_ms;
        figures.after_compaction = self.mark.estimated;
        figures.responses_since_boundary = self.since.responses;
        figures.last_response = u64::from(self.message_total);
        figures.context = self.mark.tokens.map(|tokens| Context {
            tokens: u64::from(tokens),
            estimated: self.mark.estimated,
            model: self.model_name(self.mark.model),
            at_ms: figures.context_at.unwrap_or(0),
            after_compaction: self.mark.estimated,
        });
        if let Some(interval) = &mut figures.interval {
            let bound = interval.pre.saturating_add(INTERVAL_SLACK);
            interval.discarded = self.overruled || self.since.same_model > bound;
        }
        figures
    }
}

/// Tokens as they are kept: a count past four thousand million is nonsense, and stays the largest.
pub(super) fn clamp(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Whether an error row says that the prompt is too long, in whatever case.
fn says_too_long(row: &Row) -> bool {
    let says = |text: &[u8]| {
        let text = &text[..text.len().min(16 * 1024)];
        memmem::find(&text.to_ascii_lowercase(), b"prompt is too long").is_some()
    };
    says(row.message.content) || row.error_details.is_some_and(says)
}
