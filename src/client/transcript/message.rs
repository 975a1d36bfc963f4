//! `message` of a row: what was said, by which model, and what it cost. Its shape stands in [`super::row`].

use super::scan::{Cursor, Damaged};

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

impl<'a> Message<'a> {
    pub(super) fn read(at: &mut Cursor<'a>) -> Result<Self, Damaged> {
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
