//! Content block by block: what a message, a queued prompt or a tool's result is made of. Shapes stand in
//! [`super::row`]; texts are given raw, see [`super::texts::unescape`].

use super::scan::{Cursor, Damaged};

/// One block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block<'a> {
    /// `text`, or a content that is a plain string.
    Text(&'a [u8]),
    /// `thinking`.
    Thinking(&'a [u8]),
    /// `tool_use`.
    Call {
        /// `id`.
        id: &'a [u8],
        /// `name`.
        name: &'a [u8],
        /// `input` as it stands.
        input: &'a [u8],
    },
    /// `tool_result`.
    Result {
        /// `tool_use_id`.
        id: &'a [u8],
        /// `is_error`.
        error: bool,
        /// `content` as it stands: a string or an array of blocks.
        content: &'a [u8],
    },
    /// `image` or `document`: its media type and the bytes of its base64 text.
    Media(&'a [u8], usize),
    /// Any other, by its `type`.
    Other(&'a [u8]),
}

/// Hands on each block of a content that is a string or an array. Anything else has none.
pub fn each<'a>(content: &'a [u8], mut block: impl FnMut(Block<'a>)) -> Result<(), Damaged> {
    let mut at = Cursor::new(content);
    match at.peek() {
        Some(b'"') => {
            if let Some(text) = at.text()? {
                block(Block::Text(text));
            }
            Ok(())
        }
        Some(b'[') => at.array(|at| {
            if at.peek() == Some(b'"') {
                if let Some(text) = at.text()? {
                    block(Block::Text(text));
                }
                return Ok(());
            }
            one(at).map(&mut block)
        }),
        _ => Ok(()),
    }
}

fn one<'a>(at: &mut Cursor<'a>) -> Result<Block<'a>, Damaged> {
    let (mut kind, mut id, mut result_of, mut name): (&[u8], &[u8], &[u8], &[u8]) = (b"", b"", b"", b"");
    let (mut text, mut thinking) = (None, None);
    let (mut input, mut content, mut source): (&[u8], &[u8], &[u8]) = (b"", b"", b"");
    let mut error = false;
    at.object(|key, at| {
        match key {
            b"type" => kind = at.text()?.unwrap_or_default(),
            b"id" => id = at.text()?.unwrap_or_default(),
            b"tool_use_id" => result_of = at.text()?.unwrap_or_default(),
            b"name" => name = at.text()?.unwrap_or_default(),
            b"text" => text = at.text()?,
            b"thinking" => thinking = at.text()?,
            b"input" => input = at.skip()?,
            b"content" => content = at.skip()?,
            b"source" => source = at.skip()?,
            b"is_error" => error = at.is_true()?,
            _ => drop(at.skip()?),
        }
        Ok(())
    })?;
    Ok(match kind {
        b"text" => Block::Text(text.unwrap_or_default()),
        b"thinking" => Block::Thinking(thinking.unwrap_or_default()),
        b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => Block::Call { id, name, input },
        b"tool_result" => Block::Result { id: result_of, error, content },
        b"image" | b"document" => media(source)?,
        _ => Block::Other(kind),
    })
}

fn media(source: &[u8]) -> Result<Block<'_>, Damaged> {
    let (mut kind, mut bytes): (&[u8], usize) = (b"", 0);
    Cursor::new(source).object(|key, at| {
        match key {
            b"media_type" => kind = at.text()?.unwrap_or_default(),
            b"data" => bytes = at.text()?.map_or(0, <[u8]>::len),
            _ => drop(at.skip()?),
        }
        Ok(())
    })?;
    Ok(Block::Media(kind, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_kind_are_told_apart() {
        let content =
            br#"[{"text":"a","type":"text"},{"type":"tool_use","id":"t1","name":"Bash","input":{"c":1}},
            {"tool_use_id":"t1","type":"tool_result","content":"x","is_error":true},"s",
            {"type":"image","source":{"media_type":"image/png","data":"QUJD"}},{"type":"new"},
            {"type":"thinking","thinking":"hm","signature":"x"}]"#;
        let mut found = Vec::new();
        each(content, |block| found.push(block)).unwrap();
        assert_eq!(
            found,
            [
                Block::Text(b"a"),
                Block::Call { id: b"t1", name: b"Bash", input: br#"{"c":1}"# },
                Block::Result { id: b"t1", error: true, content: br#""x""# },
                Block::Text(b"s"),
                Block::Media(b"image/png", 4),
                Block::Other(b"new"),
                Block::Thinking(b"hm"),
            ]
        );
        each(b"null", |_| panic!("nothing")).unwrap();
    }
}
