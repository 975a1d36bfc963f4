//! One row of a transcript, as far as anything here wants it. Seen on 2.1.332 unless said otherwise.
//!
//! Rows of the conversation hang together by `uuid` and `parentUuid`; all others have neither:
//!
//! ```text
//! {"parentUuid":U|null,"isSidechain":B,"promptId":U,"type":"user","message":{"role":"user","content":"…"|[blocks]},
//!  "uuid":U,"timestamp":T,"isMeta"?:B,"isCompactSummary"?:B,"origin"?:{"kind":"human"|"task-notification"},
//!  "promptSource"?:"typed"|"queued"|"system"|"sdk","turnOrigin"?:"human"|"sdk"|"task_notification"|"scheduled",
//!  "turnPosition"?:{"promptIndex":n,"turnIndex":n}}
//! {"parentUuid":U,"isSidechain":B,"message":{"id":"msg_…","model":M,"content":[blocks],"usage":{"input_tokens":n,
//!  "cache_creation_input_tokens":n,"cache_read_input_tokens":n,"output_tokens":n}},"type":"assistant","uuid":U,
//!  "timestamp":T,"isApiErrorMessage"?:B,"error"?:"…","errorDetails"?:"…"}
//! {"parentUuid":null,"logicalParentUuid":U,"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":
//!  "auto"|"manual","preTokens":n,"postTokens"?:n,"cumulativeDroppedTokens"?:n,"preservedMessages"?:{"uuids":[U],
//!  "allUuids":[U]},"preservedSegment"?:{"headUuid":U,"tailUuid":U}},"uuid":U,"timestamp":T}
//! {"parentUuid":U,"type":"attachment","attachment":{"type":"queued_command","origin"?:{"kind":K},"humanTurn"?:B,…},…}
//! {"parentUuid":U,"type":"attachment","attachment":{"type":"hook_additional_context","content":["…"],…},…}
//! ```
//!
//! Blocks: `{"type":"text","text":S}`, `{"type":"tool_use","id":S,"name":S,"input":{…}}`,
//! `{"type":"tool_result","tool_use_id":S,"content":…}`, `{"type":"image",…}` and others. The order of
//! members is not fixed: `type` stands behind `message` in assistant rows.
//!
//! Texts are given as they stand between the quotes, escapes and all, as bytes: what is compared here has
//! no escapes, and a row with broken text is still a row. [`plain`] makes text of them.

use std::borrow::Cow;

use super::scan::{Cursor, Damaged};
use crate::base::span;

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// `user`: something said to the model: a prompt, a tool's result, a summary.
    User,
    /// `assistant`: a response or a part of one.
    Assistant,
    /// `attachment`: something the client put beside a prompt or a result.
    Attachment,
    /// `system`: a note of the client's own, among them compaction.
    System,
    /// Any other; most of them are outside the conversation.
    #[default]
    Other,
}

/// A row. Every member may be absent.
#[allow(clippy::struct_excessive_bools)] // They are the row's own.
#[derive(Debug, Clone, Default)]
pub struct Row<'a> {
    /// `type`.
    pub kind: Kind,
    /// `uuid`.
    pub uuid: Option<&'a [u8]>,
    /// `parentUuid`.
    pub parent: Parent<'a>,
    /// `logicalParentUuid` of a compaction: the leaf that it continues.
    pub logical_parent: Option<&'a [u8]>,
    /// `timestamp`, epoch milliseconds.
    pub at_ms: Option<i64>,
    /// `isSidechain`: a subagent's row.
    pub sidechain: bool,
    /// `isMeta`: said by the client, not by a person.
    pub meta: bool,
    /// `isCompactSummary`.
    pub summary: bool,
    /// `isApiErrorMessage`: the client's own words about a request that failed.
    pub api_error: bool,
    /// `errorDetails` of such a row.
    pub error_details: Option<&'a [u8]>,
    /// `subtype` of a system row.
    pub subtype: Option<&'a [u8]>,
    /// `promptId`: the turn that a user row belongs to.
    pub prompt_id: Option<&'a [u8]>,
    /// `promptSource`.
    pub prompt_source: Option<&'a [u8]>,
    /// `origin.kind`.
    pub origin: Option<&'a [u8]>,
    /// `turnOrigin`: stands on the row that begins a turn.
    pub turn_origin: Option<&'a [u8]>,
    /// `turnPosition.promptIndex`, from 1; 0 without a person (`-p`).
    pub prompt_index: Option<u64>,
    /// `turnPosition.turnIndex`, from 1.
    pub turn_index: Option<u64>,
    /// `message`.
    pub message: Message<'a>,
    /// `attachment`.
    pub attachment: Option<Attachment<'a>>,
    /// `compactMetadata`.
    pub compact: Option<Compact<'a>>,
}

/// `parentUuid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parent<'a> {
    /// Not there: the row is outside the chain.
    #[default]
    Absent,
    /// `null`: the row begins a chain.
    Root,
    /// The row before it.
    Row(&'a [u8]),
}

/// `message` of a user or an assistant row.
#[derive(Debug, Clone, Default)]
pub struct Message<'a> {
    /// `id`: one for all rows of a response.
    pub id: Option<&'a [u8]>,
    /// `model`; `<synthetic>` where the client speaks for the model.
    pub model: Option<&'a [u8]>,
    /// `usage`, where it is an object.
    pub usage: Option<Usage>,
    /// `content` as it stands: a string or an array of blocks.
    pub content: &'a [u8],
    /// Ids of the `tool_use` blocks; an empty one where the block has none.
    pub tool_uses: Vec<&'a [u8]>,
    /// Whether a block is a `tool_result`.
    pub has_result: bool,
    /// The first text: the string itself, or the first text block's.
    pub text: Option<&'a [u8]>,
}

/// `message.usage`, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// `input_tokens + cache_creation_input_tokens + cache_read_input_tokens`.
    pub input: u64,
    /// `output_tokens`.
    pub output: u64,
}

/// `attachment`.
#[derive(Debug, Clone, Default)]
pub struct Attachment<'a> {
    /// `type`.
    pub kind: &'a [u8],
    /// `origin.kind`.
    pub origin: Option<&'a [u8]>,
    /// `humanTurn`.
    pub human: bool,
    /// `content` as it stands.
    pub content: &'a [u8],
}

/// `compactMetadata`, in tokens.
#[derive(Debug, Clone, Default)]
pub struct Compact<'a> {
    /// `trigger` is `auto`.
    pub auto: bool,
    /// `preTokens`.
    pub pre: u64,
    /// `postTokens`; older clients do not say.
    pub post: Option<u64>,
    /// `cumulativeDroppedTokens`.
    pub dropped: Option<u64>,
    /// Rows from before that live on behind the summary.
    pub kept: Vec<&'a [u8]>,
}

/// More kept rows than this are not remembered; a compaction keeps a handful.
const KEPT_MAX: usize = 256;

impl<'a> Row<'a> {
    /// Reads a line. `Ok(None)`: a row that says nothing about a conversation.
    pub fn read(line: &'a [u8]) -> Result<Option<Self>, Damaged> {
        if is_elsewhere(line) {
            return if line.ends_with(b"}") { Ok(None) } else { Err(Damaged) };
        }
        let mut row = Self::default();
        let mut cursor = Cursor::new(line);
        if cursor.peek() != Some(b'{') {
            return Err(Damaged);
        }
        cursor.object(|key, at| row.member(key, at))?;
        if cursor.is_done() { Ok(Some(row)) } else { Err(Damaged) }
    }

    fn member(&mut self, key: &'a [u8], at: &mut Cursor<'a>) -> Result<(), Damaged> {
        match key {
            b"type" => self.kind = kind_of(at.text()?),
            b"uuid" => self.uuid = at.text()?,
            b"parentUuid" => {
                self.parent = at.text()?.map_or(Parent::Root, Parent::Row);
            }
            b"logicalParentUuid" => self.logical_parent = at.text()?,
            b"timestamp" => self.at_ms = at.text()?.and_then(stamp),
            b"isSidechain" => self.sidechain = at.is_true()?,
            b"isMeta" => self.meta = at.is_true()?,
            b"isCompactSummary" => self.summary = at.is_true()?,
            b"isApiErrorMessage" => self.api_error = at.is_true()?,
            b"errorDetails" => self.error_details = at.text()?,
            b"subtype" => self.subtype = at.text()?,
            b"promptId" => self.prompt_id = at.text()?,
            b"promptSource" => self.prompt_source = at.text()?,
            b"turnOrigin" => self.turn_origin = at.text()?,
            b"origin" => self.origin = kind_member(at)?,
            b"turnPosition" => at.object(|key, at| {
                match key {
                    b"promptIndex" => self.prompt_index = at.maybe_count()?,
                    b"turnIndex" => self.turn_index = at.maybe_count()?,
                    _ => drop(at.skip()?),
                }
                Ok(())
            })?,
            b"message" => self.message = Message::read(at)?,
            b"attachment" => self.attachment = Some(Attachment::read(at)?),
            b"compactMetadata" => self.compact = Some(Compact::read(at)?),
            _ => drop(at.skip()?),
        }
        Ok(())
    }
}

/// Whether a line opens with a `type` that is known by its very first member to be none of ours: such rows
/// are half of a file and are not looked into.
fn is_elsewhere(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"{\"type\":\"") else { return false };
    !["user\"", "assistant\"", "attachment\"", "system\""]
        .iter()
        .any(|kind| rest.starts_with(kind.as_bytes()))
}

fn kind_of(text: Option<&[u8]>) -> Kind {
    match text {
        Some(b"user") => Kind::User,
        Some(b"assistant") => Kind::Assistant,
        Some(b"attachment") => Kind::Attachment,
        Some(b"system") => Kind::System,
        _ => Kind::Other,
    }
}

fn kind_member<'a>(at: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Damaged> {
    let mut kind = None;
    at.object(|key, at| {
        if key == b"kind" {
            kind = at.text()?;
        } else {
            at.skip()?;
        }
        Ok(())
    })?;
    Ok(kind)
}

impl<'a> Message<'a> {
    fn read(at: &mut Cursor<'a>) -> Result<Self, Damaged> {
        let mut message = Self::default();
        at.object(|key, at| {
            match key {
                b"id" => message.id = at.text()?,
                b"model" => message.model = at.text()?,
                b"usage" => message.usage = Usage::read(at)?,
                b"content" => message.read_content(at)?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        Ok(message)
    }

    fn read_content(&mut self, at: &mut Cursor<'a>) -> Result<(), Damaged> {
        (self.text, self.has_result) = (None, false);
        self.tool_uses.clear();
        let mut start = at.clone();
        if at.peek() == Some(b'"') {
            self.text = at.text()?;
        } else {
            at.array(|at| self.read_block(at))?;
        }
        self.content = start.until(at);
        Ok(())
    }

    fn read_block(&mut self, at: &mut Cursor<'a>) -> Result<(), Damaged> {
        let (mut kind, mut id, mut text) = (None, None, None);
        at.object(|key, at| {
            match key {
                b"type" => kind = at.text()?,
                b"id" => id = at.text()?,
                b"text" => text = at.text()?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        match kind {
            Some(b"tool_use") => self.tool_uses.push(id.unwrap_or_default()),
            Some(b"tool_result") => self.has_result = true,
            Some(b"text") if self.text.is_none() => self.text = text,
            _ => {}
        }
        Ok(())
    }
}

impl Usage {
    fn read(at: &mut Cursor) -> Result<Option<Self>, Damaged> {
        if at.peek() != Some(b'{') {
            return at.skip().map(|_| None);
        }
        let (mut fresh, mut created, mut read, mut output) = (0, 0, 0, 0);
        at.object(|key, at| {
            match key {
                b"input_tokens" => fresh = at.count()?,
                b"cache_creation_input_tokens" => created = at.count()?,
                b"cache_read_input_tokens" => read = at.count()?,
                b"output_tokens" => output = at.count()?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        Ok(Some(Self { input: u64::saturating_add(fresh, created).saturating_add(read), output }))
    }

    /// Everything that stood in the context when the response was done.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl<'a> Attachment<'a> {
    fn read(at: &mut Cursor<'a>) -> Result<Self, Damaged> {
        let mut attachment = Self::default();
        at.object(|key, at| {
            match key {
                b"type" => attachment.kind = at.text()?.unwrap_or_default(),
                b"origin" => attachment.origin = kind_member(at)?,
                b"humanTurn" => attachment.human = at.is_true()?,
                b"content" => attachment.content = at.skip()?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        Ok(attachment)
    }
}

impl<'a> Compact<'a> {
    fn read(at: &mut Cursor<'a>) -> Result<Self, Damaged> {
        let mut compact = Self::default();
        at.object(|key, at| {
            match key {
                b"trigger" => compact.auto = at.text()? == Some(b"auto"),
                b"preTokens" => compact.pre = at.count()?,
                b"postTokens" => compact.post = at.maybe_count()?,
                b"cumulativeDroppedTokens" => compact.dropped = at.maybe_count()?,
                b"preservedMessages" | b"preservedSegment" => compact.read_kept(at)?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        Ok(compact)
    }

    fn read_kept(&mut self, at: &mut Cursor<'a>) -> Result<(), Damaged> {
        at.object(|key, at| match key {
            b"uuids" | b"allUuids" => at.array(|at| self.keep(at)),
            b"headUuid" | b"tailUuid" => self.keep(at),
            _ => at.skip().map(drop),
        })
    }

    fn keep(&mut self, at: &mut Cursor<'a>) -> Result<(), Damaged> {
        if let Some(uuid) = at.text()?.filter(|_| self.kept.len() < KEPT_MAX) {
            self.kept.push(uuid);
        }
        Ok(())
    }
}

/// The text behind its escapes. Bytes that are no text become the replacement sign.
pub fn plain(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return String::from_utf8_lossy(raw);
    }
    let quoted = format!("\"{}\"", String::from_utf8_lossy(raw));
    // A lone surrogate is the one escape that serde refuses; the text is then shown with its escapes.
    serde_json::from_str(&quoted).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Owned)
}

/// Epoch milliseconds of a row's time stamp. The client's own form is read without the general parser.
fn stamp(text: &[u8]) -> Option<i64> {
    usual_stamp(text).or_else(|| span::parse_stamp(std::str::from_utf8(text).ok()?))
}

/// `2026-11-30T17:31:34.400Z` and nothing else.
fn usual_stamp(text: &[u8]) -> Option<i64> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    // What may be no date or time at all, 29 February included, is left to the general parser.
    let days_in = *[31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].get(usize::try_from(month - 1).ok()?)?;
    if !(1..=days_in).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let days =
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}
