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
//! no escapes, and a row with broken text is still a row. [`super::texts::plain`] makes text of them.

use super::message::Message;
use super::notes::{Attachment, Compact, kind_member};
use super::scan::{Cursor, Damaged};
use super::texts::stamp;

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
    /// `type` as it stands; of rows that are known to be elsewhere see [`leading_type`].
    pub type_name: &'a [u8],
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
    /// `toolUseResult` as it stands.
    pub tool_result: &'a [u8],
    /// `toolDenialKind`, e.g. `user-rejected`.
    pub denial: Option<&'a [u8]>,
    /// `userFeedback`: what the person typed beside a refusal.
    pub feedback: Option<&'a [u8]>,
    /// `content` of a system row.
    pub content: Option<&'a [u8]>,
    /// `sessionId`.
    pub session: Option<&'a [u8]>,
    /// `cwd`.
    pub cwd: Option<&'a [u8]>,
    /// `version` of the client.
    pub version: Option<&'a [u8]>,
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
            b"type" => {
                self.type_name = at.text()?.unwrap_or_default();
                self.kind = kind_of(self.type_name);
            }
            b"toolUseResult" => self.tool_result = at.skip()?,
            b"toolDenialKind" => self.denial = at.text()?,
            b"userFeedback" => self.feedback = at.text()?,
            b"content" => self.content = at.text()?,
            b"sessionId" => self.session = at.text()?,
            b"cwd" => self.cwd = at.text()?,
            b"version" => self.version = at.text()?,
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

/// The `type` that a line opens with.
pub fn leading_type(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    Some(&rest[..memchr::memchr(b'"', rest)?])
}

fn kind_of(text: &[u8]) -> Kind {
    match text {
        b"user" => Kind::User,
        b"assistant" => Kind::Assistant,
        b"attachment" => Kind::Attachment,
        b"system" => Kind::System,
        _ => Kind::Other,
    }
}
