//! Which lines count, and gathering them into one text.

use regex::{Regex, RegexBuilder};

use super::lines::Line;
use crate::store::watches::Watch;

/// A pattern may come to so much when it is built, and while it searches, in bytes.
const PATTERN_MOST: usize = 1 << 20;
/// So long may a pattern be, in bytes.
const TYPED_MOST: usize = 4 << 10;
/// Of one line so much is told, in bytes.
const LINE_SHOWN: usize = 2_000;
/// Of all lines of one time so much is told, in bytes.
const SHOWN: usize = 32 << 10;

/// Builds a pattern as it was typed.
pub fn pattern(text: &str) -> Result<Regex, String> {
    if text.len() > TYPED_MOST {
        return Err(format!("a pattern may have {TYPED_MOST} bytes"));
    }
    let built = RegexBuilder::new(text).size_limit(PATTERN_MOST).dfa_size_limit(PATTERN_MOST).build();
    built.map_err(|error| error.to_string())
}

/// The patterns of a watch.
#[derive(Debug, Default)]
pub struct Filter {
    matching: Option<Regex>,
    until: Option<Regex>,
}

impl Filter {
    /// Builds them.
    pub fn of(watch: &Watch) -> Result<Self, String> {
        let build = |text: &Option<String>| text.as_deref().map(pattern).transpose();
        Ok(Self { matching: build(&watch.matching)?, until: build(&watch.until)? })
    }

    /// Whether this is what ends the watch.
    pub fn ends(&self, text: &str) -> bool {
        self.until.as_ref().is_some_and(|until| until.is_match(text))
    }

    fn counts(&self, text: &str) -> bool {
        self.matching.as_ref().is_none_or(|matching| matching.is_match(text))
    }

    /// The lines of a text that count.
    pub fn apply(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().filter(|line| self.counts(line)).collect();
        lines.join("\n")
    }
}

/// Lines that count, as one text of a bounded size.
#[derive(Debug)]
pub struct Gather<'a> {
    filter: &'a Filter,
    /// The lines that are told.
    pub text: String,
    /// All that counted.
    pub lines: u64,
    /// Those that found room.
    pub shown: u64,
    /// One of them ends the watch; none counts after it.
    pub ended: bool,
}

impl<'a> Gather<'a> {
    /// None yet.
    pub fn new(filter: &'a Filter) -> Self {
        Self { filter, text: String::new(), lines: 0, shown: 0, ended: false }
    }

    /// Takes a line.
    pub fn take(&mut self, line: Line) {
        if self.ended {
            return;
        }
        let text = String::from_utf8_lossy(line.bytes);
        self.ended = self.filter.ends(&text);
        if !self.ended && !self.filter.counts(&text) {
            return;
        }
        self.lines += 1;
        let (text, cut) = beginning(&text, LINE_SHOWN);
        // The one that ends the watch is what somebody waits for.
        if self.text.len() + text.len() > SHOWN && !self.ended {
            return;
        }
        self.shown += 1;
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        if cut || line.cut {
            self.text.push('…');
        }
    }
}

/// The beginning of a text that has so many bytes at most, and whether anything was cut.
pub fn beginning(text: &str, most: usize) -> (&str, bool) {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::watches::Subject;
    use crate::store::watches::tests::watch;

    fn filter(matching: Option<&str>, until: Option<&str>) -> Filter {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let watch = Watch { matching: own(matching), until: own(until), ..watch(Subject::Sessions) };
        Filter::of(&watch).unwrap()
    }

    fn line(text: &str) -> Line<'_> {
        Line { bytes: text.as_bytes(), cut: false }
    }

    #[test]
    fn lines_that_count_are_gathered_up_to_the_one_that_ends_it() {
        let filter = filter(Some("error|FAILED"), Some("^done$"));
        let mut gather = Gather::new(&filter);
        for text in ["ok", "error: a", "tests FAILED", "done", "error: later"] {
            gather.take(line(text));
        }
        assert_eq!((&*gather.text, gather.lines, gather.ended), ("error: a\ntests FAILED\ndone", 3, true));
        assert_eq!(filter.apply("a\nerror\nb\nFAILED"), "error\nFAILED");
    }

    #[test]
    fn a_burst_is_counted_and_only_its_beginning_kept() {
        let filter = filter(None, Some("END"));
        let mut gather = Gather::new(&filter);
        let long = "é".repeat(10_000);
        for _ in 0..10_000 {
            gather.take(line(&long));
        }
        gather.take(line("END"));
        assert!(gather.text.len() <= SHOWN + 200 && gather.text.ends_with("END"), "{}", gather.text.len());
        assert_eq!((gather.lines, gather.text.lines().count() as u64), (10_001, gather.shown));
        assert!(gather.text.lines().next().unwrap().ends_with("é…"));
    }

    #[test]
    fn patterns_have_their_limits() {
        assert!(pattern("a|b").is_ok());
        assert!(pattern("(").unwrap_err().contains("unclosed group"));
        assert!(pattern(&"a".repeat(5_000)).is_err());
        assert!(pattern(r"(\w{500}){500}").is_err(), "too large when it is built");
    }
}
