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

/// Bytes that a cell may take: the longest emoji of two cells has 35. Marks that take no cell can be piled
/// up without end.
const CELL_MOST: usize = 20;

/// The longest beginning that fits `cells`, cut between graphemes, with `…` where something was cut.
pub fn fit(text: &str, cells: usize) -> String {
    let most = cells.saturating_mul(CELL_MOST);
    if text.len() <= most && width(text) <= cells {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = cells.saturating_sub(1);
    for grapheme in text.graphemes(true) {
        let cost = width(grapheme);
        if cost > left || out.len() + grapheme.len() > most {
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

/// The text with blanks behind it, up to this many cells.
pub fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(text))))
}

/// JSON as it may be shown: what a terminal would act on stands as an escape. JSON itself escapes only the
/// first of the control characters.
pub fn clean_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) && c != '\n' {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// The text without anything a terminal would act on: control characters, and the invisible marks that
/// turn, hide or smuggle text (bidirectional controls, line and paragraph separators, annotations, tags).
pub fn clean(text: &str) -> String {
    text.chars().filter(|c| !is_unsafe(*c)).collect()
}

/// The text on one line, with everything visible that [`clean`] would take away: `\n`, `\t`, `\u{1b}`.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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
        assert_eq!(clean("a\u{61c}b\u{206a}c\u{fff9}d\u{e0041}\u{7f}"), "abcd");
        let json = serde_json::to_string("a\u{9b}31m\u{202e}\u{e0041}\u{7f}\u{1b}é😀").unwrap();
        let shown = clean_json(&json);
        assert_eq!(clean(&shown), shown);
        assert_eq!(
            serde_json::from_str::<String>(&shown).unwrap(),
            serde_json::from_str::<String>(&json).unwrap()
        );
    }

    #[test]
    fn what_a_terminal_would_act_on_can_be_shown_instead() {
        assert_eq!(escaped("a\u{1b}[31m\r\n\tb\\n \u{202e}é测"), "a\\u{1b}[31m\\r\\n\\tb\\n \\u{202e}é测");
    }

    #[test]
    fn piled_up_marks_come_to_an_end() {
        let flag = "\u{1f3f4}\u{200d}\u{2620}\u{fe0f}";
        assert_eq!(fit(flag, 2), flag);
        assert!(fit(&("a".to_owned() + &"\u{301}".repeat(100_000)), 32).len() < 700);
        assert!(fit(&"\u{200b}".repeat(100_000), 32).len() < 700);
    }
}
