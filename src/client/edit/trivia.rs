//! What stands between values: white space, commas and comments.

use std::ops::Range;

/// One thing between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A comma.
    Comma,
    /// `// …`, up to its line break and without it.
    LineComment,
    /// `/* … */`.
    BlockComment,
}

/// The commas and comments in a stretch of text that holds no value.
pub fn pieces(text: &str, range: Range<usize>) -> Vec<(Kind, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let rest = &text[at..range.end];
        let (kind, len) = if rest.starts_with("//") {
            (Some(Kind::LineComment), line_comment(rest))
        } else if rest.starts_with("/*") {
            (Some(Kind::BlockComment), block_comment(rest))
        } else if rest.starts_with(',') {
            (Some(Kind::Comma), 1)
        } else {
            (None, rest.chars().next().map_or(1, char::len_utf8))
        };
        if let Some(kind) = kind {
            found.push((kind, at..at + len));
        }
        at += len;
    }
    found
}

fn line_comment(rest: &str) -> usize {
    let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
    line.strip_suffix('\r').unwrap_or(line).len()
}

fn block_comment(rest: &str) -> usize {
    rest[2..].find("*/").map_or(rest.len(), |end| end + 4)
}

/// The text with comments and trailing commas as blanks, every offset and line break kept.
pub fn blanked(text: &str) -> String {
    let mut out = text.to_owned().into_bytes();
    let bytes = text.as_bytes();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let len = match rest {
            [b'"', ..] => string(rest),
            [b'/', b'/', ..] => line_comment(&text[at..]),
            [b'/', b'*', ..] => block_comment(&text[at..]),
            _ => 1,
        };
        match rest[0] {
            b'/' => blank(&mut out[at..at + len]),
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(trailing) = comma.take() {
                    out[trailing] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += len;
    }
    // Only whole comments were overwritten, each by as many blanks as it had bytes.
    String::from_utf8(out).unwrap_or_default()
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}

/// Length of the string that begins here, quotes included.
fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}
