//! What a printed line begins with: its number and four signs that stand for the event itself, `17-k3fa`, or the
//! first and the last of several, `17-k3fa..40-m2xd`. Watched text cannot make one up.

use std::fmt;

use super::Event;

/// The mark of one event, or of all from one to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    first: (u64, String),
    last: (u64, String),
}

/// Signs after a number.
const SIGNS: usize = 4;
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The signs that stand for a number: its first 20 bits.
pub(super) fn signs(of: u64) -> String {
    (0..SIGNS).map(|at| char::from(LETTERS[usize::try_from(of >> (5 * at) & 31).unwrap_or(0)])).collect()
}

impl Mark {
    /// The mark of these events, the first and the last of them.
    pub fn of(first: &Event, last: &Event) -> Self {
        let end = |event: &Event| (event.number, event.sign.clone());
        Self { first: end(first), last: end(last) }
    }

    /// The mark that a line begins with.
    pub fn leading(line: &str) -> Option<Self> {
        let word = line.split_ascii_whitespace().next().filter(|word| line.starts_with(word))?;
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        let (first, last) = (end(first)?, end(last)?);
        (first.0 <= last.0).then_some(Self { first, last })
    }

    /// The first number and the last.
    pub fn numbers(&self) -> (u64, u64) {
        (self.first.0, self.last.0)
    }

    pub(super) fn ends(&self) -> [&(u64, String); 2] {
        [&self.first, &self.last]
    }
}

fn end(text: &str) -> Option<(u64, String)> {
    let (number, sign) = text.split_once('-')?;
    let is_sign = sign.len() == SIGNS && sign.bytes().all(|byte| LETTERS.contains(&byte));
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| digits)?, sign.to_owned())).filter(|_| is_sign)
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(first, sign), (last, other)] = self.ends();
        if first == last { write!(f, "{first}-{sign}") } else { write!(f, "{first}-{sign}..{last}-{other}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_is_written_and_only_at_a_lines_beginning() {
        for text in ["17-k3fa", "17-k3fa..40-m2xd"] {
            assert_eq!(Mark::leading(&format!("{text} rest")).unwrap().to_string(), text);
            assert_eq!(Mark::leading(text).unwrap().to_string(), text);
            assert_eq!(Mark::leading(&format!(" {text}")), None);
        }
        for bad in [
            "",
            "17",
            "17-",
            "17-k3f",
            "17-K3FA",
            "-k3fa",
            "+1-k3fa",
            "2-aaaa..1-aaaa",
            "1-aaaa..",
            "x 1-aaaa",
        ] {
            assert_eq!(Mark::leading(bad), None, "{bad}");
        }
        assert_eq!(signs(0), "aaaa");
        assert_eq!(signs(u64::MAX), "9999");
    }
}
