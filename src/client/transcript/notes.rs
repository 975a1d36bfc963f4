//! What the client adds to rows of its own: attachments and compactions. Their shapes stand in [`super::row`].

use super::scan::{Cursor, Damaged};

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
    /// `commandMode` of a queued command: `prompt`, `task-notification`.
    pub mode: Option<&'a [u8]>,
    /// `prompt` of a queued command as it stands: a string or an array of blocks.
    pub prompt: &'a [u8],
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

impl<'a> Attachment<'a> {
    pub(super) fn read(at: &mut Cursor<'a>) -> Result<Self, Damaged> {
        let mut attachment = Self::default();
        at.object(|key, at| {
            match key {
                b"type" => attachment.kind = at.text()?.unwrap_or_default(),
                b"origin" => attachment.origin = kind_member(at)?,
                b"humanTurn" => attachment.human = at.is_true()?,
                b"content" => attachment.content = at.skip()?,
                b"commandMode" => attachment.mode = at.text()?,
                b"prompt" => attachment.prompt = at.skip()?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        Ok(attachment)
    }
}

impl<'a> Compact<'a> {
    pub(super) fn read(at: &mut Cursor<'a>) -> Result<Self, Damaged> {
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

/// The `kind` of an object such as `origin`.
pub(super) fn kind_member<'a>(at: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Damaged> {
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
