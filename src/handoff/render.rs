//! Text as it goes into files: clipped with a pointer back, credentials masked, nothing that a terminal acts
//! on.

use std::fmt::Write as _;

use super::parts::escape;
use super::redact::Redactor;
use crate::client::transcript::texts::unescape;

/// What is shown of a text, in characters.
pub const TEXT_MAX: usize = 4_000;
/// What is shown of a tool's input or result, in characters.
pub const PAYLOAD_MAX: usize = 600;

/// Control characters as text (`\x1b`), line ends as line feeds.
pub fn visible(text: String) -> String {
    let acts = |byte: &u8| matches!(byte, 0..=8 | 0xb..=0x1f | 0x7f);
    // The second block of control characters is C2 80 to C2 9F.
    if !text.bytes().any(|byte| acts(&byte) || byte == 0xc2) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\r' if signs.peek() == Some(&'\n') => {}
            '\n' | '\t' => out.push(sign),
            sign if sign.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(sign));
            }
            sign => out.push(sign),
        }
    }
    out
}

/// A text for a file: masked where that is asked for, and visible.
pub fn shown(text: String, redactor: &mut Redactor) -> String {
    visible(if redactor.is_on() { redactor.apply(text) } else { text })
}

/// Adds a raw JSON text to `out`, at most so many characters of it, and where it was clipped the pointer.
pub fn clip(raw: &[u8], most: usize, pointer: &str, redactor: &mut Redactor, out: &mut String) {
    let (mut text, all) = beginning(raw, most, redactor.is_on());
    if redactor.is_on() {
        // Before the cut: a credential on the edge is known only as a whole.
        text = redactor.apply(text);
    }
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    text.truncate(end.unwrap_or(text.len()));
    out.push_str(&escape(&visible(text)));
    if end.is_some() || !all {
        let _ = write!(out, " […clipped, {} bytes in all; {pointer}]", raw.len());
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// The text, or more than `most` characters of its beginning; and whether it is all of it.
fn beginning(raw: &[u8], most: usize, whole: bool) -> (String, bool) {
    // No sign takes more than 12 bytes; nearly all take one.
    for share in [2, 12] {
        let cut = most.saturating_mul(share).saturating_add(16);
        if whole || cut >= raw.len() {
            break;
        }
        let mut text = String::with_capacity(cut);
        unescape(&raw[..cut], &mut text);
        // The last signs may be pieces of an escape.
        if text.chars().count() > most + 12 {
            return (text, false);
        }
    }
    let mut text = String::with_capacity(raw.len());
    unescape(raw, &mut text);
    (text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_would_act_on() {
        assert_eq!(visible("a\u{1b}[31m\r\nb\tc\u{9b}d\re".into()), "a\\x1b[31m\nb\tc\\x9bd\\x0de");
        assert_eq!(visible("für 测试".into()), "für 测试");
    }

    #[test]
    fn clipping_points_back_and_a_mask_comes_first() {
        let mut out = String::new();
        clip(b"abcdef", 3, "row 7, byte 9", &mut Redactor::default(), &mut out);
        assert_eq!(out, "abc […clipped, 6 bytes in all; row 7, byte 9]\n");
        let mut redactor = Redactor::new().unwrap();
        let mut out = String::new();
        let secret = format!("{} sk-ant-{}", "x".repeat(20), "a1".repeat(20));
        clip(secret.as_bytes(), 35, "row 1", &mut redactor, &mut out);
        assert!(!out.contains("sk-ant-"), "{out}");
        assert_eq!(redactor.masked, 1);
    }
}
