//! Text on a terminal: width in cells, cutting without splitting a grapheme, and no control characters.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Width in terminal cells. Plain ASCII, the usual case, is counted without a table.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(cells_of).sum() }
}

fn cells_of(grapheme: &str) -> usize {
    // One grapheme never takes more than two cells, whatever it is joined from.
    grapheme.width().min(2)
}

/// The longest beginning that fits `cells`, cut between graphemes, with `…` where something was cut.
pub fn fit(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = cells.saturating_sub(1);
    for grapheme in text.graphemes(true) {
        let cost = width(grapheme);
        if cost > left {
            break;
        }
        left -= cost;
        out.push_str(grapheme);
    }
    if cells > 0 {
        out.push('…');
    }
    out
}

/// The text without anything a terminal would act on: control characters, and the invisible marks that
/// turn or hide text (bidirectional controls, line and paragraph separators).
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| !is_unsafe(*c)).collect()
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // williamzujkowski/statuslines#11, stormzhang/token-tracker#20: CJK counted as one cell.
    #[test]
    fn width_is_counted_in_cells() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("测试项目-令牌追踪"), 17);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("👩‍👩‍👧"), 2);
    }

    #[test]
    fn cutting_splits_no_grapheme() {
        assert_eq!(fit("测试项目", 5), "测试…");
        assert_eq!(fit("ae\u{301}x", 2), "a…");
        assert_eq!(fit("👩‍👩‍👧👩‍👩‍👧", 3), "👩‍👩‍👧…");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_it_would_act_on() {
        assert_eq!(clean("a\u{1b}[31mb\u{7}\u{202e}c\n\u{9b}d"), "a[31mbcd");
    }
}
