//! What a look at a file means, given the place that was reached in it. Nothing here reads a file.

/// What has the watched name now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// It is the file that was read so far.
    pub same: bool,
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes around the place are those that were read there. Of another file: it begins as the one that was
    /// read so far.
    pub agrees: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on at the place.
    GoOn,
    /// It was emptied and written anew: what was lost may lie in a copy, then from its beginning.
    Emptied,
    /// Another file has the name: the old one to its end, then this one from its beginning.
    Turned,
    /// Another file has the name, written as the old one with more behind it: go on at the place.
    Rewritten,
    /// There is none: the old one to its end.
    Gone,
}

/// Judges. `offset` is the place; `nameless`: the file that was read so far has no name left.
pub fn judge(look: Option<Look>, offset: u64, nameless: bool) -> Verdict {
    match look {
        None => Verdict::Gone,
        Some(look) if look.same && look.size >= offset && look.agrees => Verdict::GoOn,
        Some(look) if look.same => Verdict::Emptied,
        // A program that saves by writing a new file and renaming it leaves no other name to the old one, and what
        // it had is still in there. A file that was rotated has another name.
        Some(look) if nameless && look.size >= offset && look.agrees => Verdict::Rewritten,
        Some(_) => Verdict::Turned,
    }
}

/// The name that a rotated file has, of one that has this name: what stands behind it.
pub fn rotated<'a>(name: &str, of: &'a str) -> Option<&'a str> {
    let behind = of.strip_prefix(name)?;
    let mut signs = behind.chars();
    let joined = matches!(signs.next(), Some('.' | '-' | '_'));
    let dated = |sign: char| sign.is_ascii_digit() || matches!(sign, '-' | '_' | '.' | ':' | 'T' | 'Z');
    (joined && signs.clone().any(|sign| sign.is_ascii_digit()) && signs.all(dated)).then_some(behind)
}

/// Whether the rotated file `other` was turned away after the one with the suffix `from`: numbers count up with
/// age, dates with time.
pub fn is_later(from: &str, other: &str) -> bool {
    match (number(from), number(other)) {
        (Some(from), Some(other)) => other < from,
        (None, None) => other > from,
        _ => false,
    }
}

/// The number of a rotated file that has one: `.1`, `.12`. A date is longer.
pub fn number(suffix: &str) -> Option<u32> {
    let digits = suffix.strip_prefix('.').filter(|digits| (1..=4).contains(&digits.len()))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_look_means() {
        let look = |same, size, agrees| Some(Look { same, size, agrees });
        for (given, offset, nameless, verdict) in [
            (None, 5, false, Verdict::Gone),
            (look(true, 5, true), 5, false, Verdict::GoOn),
            (look(true, 4, false), 5, false, Verdict::Emptied),
            (look(true, 9, false), 5, false, Verdict::Emptied),
            (look(false, 9, false), 5, true, Verdict::Turned),
            (look(false, 9, true), 5, false, Verdict::Turned),
            (look(false, 9, true), 5, true, Verdict::Rewritten),
            (look(false, 4, true), 5, true, Verdict::Turned),
        ] {
            assert_eq!(judge(given, offset, nameless), verdict, "{given:?} {offset} {nameless}");
        }
    }

    #[test]
    fn rotated_files_are_told_from_others_and_ordered() {
        for good in [".1", "-20261130", ".2026-11-30", "_2026-11-30T10:00:00Z", "-20261130.1"] {
            assert_eq!(rotated("a.log", &format!("a.log{good}")), Some(good));
        }
        for bad in ["", ".gz", ".1.gz", ".bak", "1", ".-", ".idx2"] {
            assert_eq!(rotated("a.log", &format!("a.log{bad}")), None, "{bad}");
        }
        assert!(
            is_later(".2", ".1") && !is_later(".1", ".2") && !is_later(".1", ".1") && is_later(".10", ".9")
        );
        assert!(is_later("-20261130", "-20261201") && !is_later("-20261130", "-20261129"));
        assert!(!is_later(".1", "-20261201"));
    }
}
