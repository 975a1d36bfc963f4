//! Texts of a row as they stand between the quotes: unescaped, and time stamps among them.

use std::borrow::Cow;

use crate::base::span;

/// The text behind its escapes. Bytes that are no text become the replacement sign.
pub fn plain(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return String::from_utf8_lossy(raw);
    }
    let quoted = format!("\"{}\"", String::from_utf8_lossy(raw));
    // A lone surrogate is the one escape that serde refuses; the text is then shown with its escapes.
    serde_json::from_str(&quoted).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Owned)
}

/// The text behind its escapes, of any piece of JSON, a broken one too: what is no escape stays, and lone
/// surrogates and bytes that are no text become the replacement sign. Also says whether any did.
pub fn unescape(raw: &[u8], out: &mut String) -> bool {
    let mut whole = true;
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        whole &= push_lossy(&rest[..at], out);
        rest = &rest[at..];
        let (sign, used) = escape(rest);
        match sign {
            Some(sign) => out.push(sign),
            None if used == 6 => {
                out.push(char::REPLACEMENT_CHARACTER);
                whole = false;
            }
            None => out.push('\\'),
        }
        rest = &rest[used..];
    }
    push_lossy(rest, out) && whole
}

fn push_lossy(bytes: &[u8], out: &mut String) -> bool {
    // Lossy decoding walks sign by sign; nearly all texts need none.
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        out.push_str(text);
        return true;
    }
    out.push_str(&String::from_utf8_lossy(bytes));
    false
}

/// The sign that an escape stands for, and its length. `None` with 6: half a pair; with 1: no escape.
fn escape(bytes: &[u8]) -> (Option<char>, usize) {
    let sign = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'u') => return unicode(bytes),
        _ => return (None, 1),
    };
    (Some(sign), 2)
}

fn unicode(bytes: &[u8]) -> (Option<char>, usize) {
    let unit = |at: usize| {
        let hex = bytes.get(at..at + 4).and_then(|hex| std::str::from_utf8(hex).ok())?;
        u32::from_str_radix(hex, 16).ok().filter(|_| bytes[at - 2..at] == *b"\\u")
    };
    let Some(first) = unit(2) else { return (None, 1) };
    if let Some(sign) = char::from_u32(first) {
        return (Some(sign), 6);
    }
    match unit(8) {
        Some(second @ 0xdc00..0xe000) if first < 0xdc00 => {
            (char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)), 12)
        }
        _ => (None, 6),
    }
}

/// Epoch milliseconds of a row's time stamp. The client's own form is read without the general parser.
pub(super) fn stamp(text: &[u8]) -> Option<i64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_pairs_and_broken_escapes_are_shown_and_told() {
        let text = |raw: &[u8]| {
            let mut out = String::new();
            let whole = unescape(raw, &mut out);
            (out, whole)
        };
        assert_eq!(text(br#"a\nb\"c\u00e9\ud83d\ude00"#), ("a\nb\"c\u{e9}\u{1f600}".into(), true));
        assert_eq!(text(br"\ud83d!"), ("\u{fffd}!".into(), false));
        assert_eq!(text(br"\ude00\ud83d\u0041"), ("\u{fffd}\u{fffd}A".into(), false));
        assert_eq!(text(b"\xff\xfe"), ("\u{fffd}\u{fffd}".into(), false));
        assert_eq!(text(br"\q\u12"), (r"\q\u12".into(), true));
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            let mut out = String::new();
            prop_assert!(unescape(&json.as_bytes()[1..json.len() - 1], &mut out));
            prop_assert_eq!(out, text);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            unescape(&bytes, &mut String::new());
        }
    }
}
