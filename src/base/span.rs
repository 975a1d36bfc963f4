//! Spans of time in milliseconds, and how they are written.

/// Milliseconds in an hour.
pub const HOUR_MS: i64 = 3_600_000;
/// Milliseconds in a minute.
pub const MINUTE_MS: i64 = 60_000;

/// Hours as shown on a status line: `0.1h`, `6.1h`, `12h`.
pub fn hours(ms: i64) -> String {
    let tenths = ms.max(0).saturating_add(HOUR_MS / 20) / (HOUR_MS / 10);
    if tenths < 100 { format!("{}.{}h", tenths / 10, tenths % 10) } else { format!("{}h", tenths / 10) }
}

/// Epoch milliseconds of an RFC 3339 time stamp as transcripts carry it.
pub fn parse_stamp(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// An RFC 3339 time stamp in UTC, to the second.
pub fn stamp(epoch_ms: i64) -> String {
    jiff::Timestamp::from_second(epoch_ms.div_euclid(1000)).map_or_else(|_| "?".to_owned(), |t| t.to_string())
}

/// The same as part of a file name: `20261130T172151Z`.
pub fn file_stamp(epoch_ms: i64) -> String {
    stamp(epoch_ms).replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_rounded_to_a_tenth() {
        assert_eq!(hours(21_852_000), "6.1h");
        assert_eq!(hours(0), "0.0h");
        assert_eq!(hours(12 * HOUR_MS), "12h");
        assert_eq!(hours(-5), "0.0h");
        assert!(hours(i64::MAX).ends_with('h'));
    }

    #[test]
    fn stamps_go_both_ways() {
        assert_eq!(parse_stamp("2026-11-30T17:21:51.250Z"), Some(1_796_059_311_250));
        assert_eq!(stamp(1_796_059_311_250), "2026-11-30T17:21:51Z");
        assert_eq!(parse_stamp("yesterday"), None);
    }
}
