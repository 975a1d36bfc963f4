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
