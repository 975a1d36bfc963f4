//! What a continuation is called: the parent's own words, and how many sessions came before.

use crate::base::text::{clean, fit};

/// Widest title that is taken over, in cells.
const WIDEST: usize = 60;
/// What a session without any title or prompt is called.
const NAMELESS: &str = "session";

/// `Fix the parser (cont. 3)`. A mark that the title has already is replaced, never stacked.
pub fn name(title: &str, generation: u64) -> String {
    let line = clean(title.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default());
    let plain = without_mark(line.trim());
    let short = fit(plain, WIDEST);
    let words = if short.trim().is_empty() { NAMELESS } else { short.trim() };
    format!("{words} (cont. {generation})")
}

/// The title without ` (cont. K)` at its end, however often.
fn without_mark(title: &str) -> &str {
    let cut_once = |title: &'_ str| -> Option<usize> {
        let open = title.strip_suffix(')')?;
        let at = open.rfind("(cont. ")?;
        let number = &open[at + "(cont. ".len()..];
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(at)
    };
    let mut rest = title;
    while let Some(at) = cut_once(rest) {
        rest = rest[..at].trim_end();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::text::width;

    #[test]
    fn a_mark_is_replaced_and_never_stacked() {
        assert_eq!(name("Fix the parser", 2), "Fix the parser (cont. 2)");
        assert_eq!(name("Fix the parser (cont. 2)", 3), "Fix the parser (cont. 3)");
        assert_eq!(name("Fix (cont. 2) (cont. 2)", 3), "Fix (cont. 3)");
        assert_eq!(name("Fix (cont. x) it", 2), "Fix (cont. x) it (cont. 2)");
        assert_eq!(name("(cont. 2)", 3), "session (cont. 3)");
        assert_eq!(name("", 2), "session (cont. 2)");
    }

    #[test]
    fn a_name_is_one_short_line_of_printable_signs() {
        assert_eq!(name("\n  do this\nthen that", 2), "do this (cont. 2)");
        let long = name(&"测试 words ".repeat(40), 12);
        assert!(width(&long) <= WIDEST + " (cont. 12)".len(), "{long}");
        assert!(long.starts_with("测试 words") && long.ends_with(" (cont. 12)"));
        assert!(!name("a\u{1b}[31mred\u{7}", 2).contains('\u{1b}'));
    }
}
