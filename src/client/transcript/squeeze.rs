//! Lines too long to be held: long strings are cut short and deep values emptied as the bytes come by, so
//! that what is left is the same row, small, and is read like any other.

use memchr::{memchr, memchr2};

use super::scan::escapes_before;

/// What is kept of a long line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What is kept of a string, in bytes.
    pub string: usize,
    /// Values nested deeper than this are emptied. A block's own members stand at depth 4 (row, `message`,
    /// `content`, block).
    pub depth: usize,
}

impl Default for Limits {
    /// More than any text that is compared.
    fn default() -> Self {
        Self { string: 4 * 1024, depth: 4 }
    }
}

/// The state between two pieces of one line.
#[derive(Debug, Default)]
pub struct Squeeze {
    limits: Limits,
    depth: usize,
    in_string: bool,
    /// The piece before ended in an unfinished escape.
    escaped: bool,
    /// Bytes of the current string that were kept.
    kept: usize,
}

impl Squeeze {
    /// Before the first piece.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes the next piece of the line and adds what is left of it to `out`.
    pub fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        while at < piece.len() {
            at +=
                if self.in_string { self.string(&piece[at..], out) } else { self.outside(&piece[at..], out) };
        }
    }

    /// Inside a string: takes bytes up to the next quote or escape, and that with them.
    fn string(&mut self, piece: &[u8], out: &mut Vec<u8>) -> usize {
        let deep = self.depth > self.limits.depth;
        if deep || self.kept == self.limits.string {
            return self.rest_of_string(piece, deep, out);
        }
        if self.escaped {
            self.escaped = false;
            self.keep(&piece[..1], out);
            return 1;
        }
        let end = memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
        self.keep(&piece[..end], out);
        match piece.get(end) {
            Some(b'"') => {
                self.in_string = false;
                out.push(b'"');
                end + 1
            }
            Some(_) => {
                self.escaped = true;
                // An escape is kept whole or not at all.
                if self.kept + 2 > self.limits.string {
                    self.kept = self.limits.string;
                }
                self.keep(b"\\", out);
                end + 1
            }
            None => end,
        }
    }

    /// Inside a string of which no more is kept: takes bytes up to its end.
    fn rest_of_string(&mut self, piece: &[u8], deep: bool, out: &mut Vec<u8>) -> usize {
        // The first byte may belong to an escape that the piece before left open.
        let start = usize::from(self.escaped);
        let mut at = start;
        while let Some(found) = memchr(b'"', &piece[at..]) {
            let quote = at + found;
            if escapes_before(&piece[start..quote]).is_multiple_of(2) {
                (self.in_string, self.escaped) = (false, false);
                if !deep {
                    out.push(b'"');
                }
                return quote + 1;
            }
            at = quote + 1;
        }
        self.escaped = !escapes_before(&piece[start..]).is_multiple_of(2);
        piece.len()
    }

    fn keep(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let kept = bytes.len().min(self.limits.string - self.kept);
        out.extend_from_slice(&bytes[..kept]);
        self.kept += kept;
    }

    /// Outside strings: takes bytes up to the next quote, and that with them.
    fn outside(&mut self, piece: &[u8], out: &mut Vec<u8>) -> usize {
        let end = memchr(b'"', piece).unwrap_or(piece.len());
        for byte in &piece[..end] {
            if matches!(byte, b'}' | b']') {
                self.depth = self.depth.saturating_sub(1);
            }
            if self.depth <= self.limits.depth {
                out.push(*byte);
            }
            if matches!(byte, b'{' | b'[') {
                self.depth += 1;
            }
        }
        if end == piece.len() {
            return end;
        }
        (self.in_string, self.kept) = (true, 0);
        if self.depth <= self.limits.depth {
            out.push(b'"');
        }
        end + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn squeezed(line: &[u8], cuts: &[usize]) -> Vec<u8> {
        let (mut squeeze, mut out, mut from) = (Squeeze::default(), Vec::new(), 0);
        for cut in cuts.iter().map(|cut| cut % (line.len() + 1)).chain([line.len()]) {
            if cut >= from {
                squeeze.feed(&line[from..cut], &mut out);
                from = cut;
            }
        }
        out
    }

    #[test]
    fn short_and_shallow_rows_stay_as_they_are() {
        let line = br#"{"a":"x\"y\\","m":{"content":[{"type":"text","text":"]}"}]},"n":[1,2]}"#;
        assert_eq!(squeezed(line, &[]), line);
    }

    #[test]
    fn deep_values_are_emptied_and_long_strings_cut() {
        let line = br#"{"m":{"c":[{"input":{"a":["b",{"c":1}],"d":"}"}}]}}"#;
        assert_eq!(squeezed(line, &[]), br#"{"m":{"c":[{"input":{}}]}}"#);
        let long = format!("{{\"a\":\"{}\",\"b\":\"{}\"}}", "x".repeat(100_000), "\\n".repeat(50_000));
        let short = squeezed(long.as_bytes(), &[]);
        assert!(short.len() < 2 * Limits::default().string + 100);
        let value: serde_json::Value = serde_json::from_slice(&short).unwrap();
        assert_eq!(value["a"].as_str().unwrap().len(), Limits::default().string);
    }

    proptest! {
        #[test]
        fn a_row_cut_anywhere_is_squeezed_alike_and_stays_json(
            texts in prop::collection::vec("[a\"\\\\\n\u{e9}]{0,40}", 1..6),
            long in 0_usize..6000,
            cuts in prop::collection::vec(any::<usize>(), 0..6),
        ) {
            let value = serde_json::json!({"a": texts, "b": {"c": "\"\\n".repeat(long)}, "z": 1});
            let line = serde_json::to_vec(&value).unwrap();
            let mut cuts = cuts;
            cuts.sort_unstable_by_key(|cut| cut % (line.len() + 1));
            let once = squeezed(&line, &[]);
            prop_assert_eq!(&squeezed(&line, &cuts), &once);
            prop_assert_eq!(&serde_json::from_slice::<serde_json::Value>(&once).unwrap()["z"], 1);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            squeezed(&bytes, &[7, 50]);
        }
    }
}
