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

/// A span in its largest unit, cut to a whole: `45s`, `12m`, `3h`, `9d`.
pub fn rough(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Reads a span as it is typed: `45s`, `90m`, `36h`, `30d`, `8w`.
pub fn parse(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => 1_000,
        'm' => MINUTE_MS,
        'h' => HOUR_MS,
        'd' => 24 * HOUR_MS,
        'w' => 7 * 24 * HOUR_MS,
        _ => return None,
    };
    let number = &text[..text.len() - 1];
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    number.parse::<i64>().ok().filter(|_| digits)?.checked_mul(unit)
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
    fn spans_are_said_roughly_and_read_exactly() {
        let said = [-5, 59_999, 60_000, 3_599_999, 47 * HOUR_MS, 48 * HOUR_MS, 900 * HOUR_MS].map(rough);
        assert_eq!(said, ["0s", "59s", "1m", "59m", "47h", "2d", "37d"]);
        let read = ["90m", "36h", "30d", "1w", "0d"].map(parse);
        assert_eq!(read, [90, 36 * 60, 30 * 24 * 60, 7 * 24 * 60, 0].map(|m| Some(m * MINUTE_MS)));
        assert_eq!(parse("45s"), Some(45_000));
        for bad in ["", "d", "30", "-1d", "+1d", "1.5d", "30 d", "30D", "3é", "99999999999999999999d"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert_eq!(parse("9223372036854775807w"), None);
    }

    #[test]
    fn stamps_go_both_ways() {
        assert_eq!(parse_stamp("2026-11-30T17:21:51.250Z"), Some(1_796_059_311_250));
        assert_eq!(stamp(1_796_059_311_250), "2026-11-30T17:21:51Z");
        assert_eq!(parse_stamp("yesterday"), None);
    }
}
