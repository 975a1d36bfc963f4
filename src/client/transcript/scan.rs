//! A shallow reader of one JSON object: it walks the members it is asked for and steps over the rest.
//!
//! Why not `serde_json` alone: nearly all bytes of a transcript are long strings that nobody here wants.
//! serde looks at every escape in them; this reader jumps from quote to quote. On 256 MB, in one run
//! (`cargo run --release --example measure-transcript`), the whole measurement ran at 1.96 GB/s, and serde_json
//! alone, typed and borrowed, behind the same prefilter, at 1.02 GB/s. It also takes what rows hold and serde
//! refuses: bytes that are not UTF-8, lone surrogates, any depth. It does not judge what it steps over:
//! brackets must balance and strings must end, no more.

use memchr::memchr;

use crate::base::tokens::MOST;

/// A place in one line's bytes.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The bytes are not what JSON has in that place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

impl<'a> Cursor<'a> {
    /// At the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next byte that is not white space, without taking it.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn take(&mut self, want: u8) -> Result<(), Damaged> {
        if self.peek() == Some(want) {
            self.at += 1;
            return Ok(());
        }
        Err(Damaged)
    }

    /// Walks an object: `member` gets each key, with the cursor at its value, and must step past it.
    /// Anything but an object is stepped over without a call.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&'a [u8], &mut Self) -> Result<(), Damaged>,
    ) -> Result<(), Damaged> {
        if self.peek() != Some(b'{') {
            return self.skip().map(drop);
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.take_quote()?;
            let key = self.rest_of_string()?;
            self.take(b':')?;
            member(key, self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(Damaged),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Walks an array, with the cursor at each element. Anything else is stepped over without a call.
    pub fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Damaged>,
    ) -> Result<(), Damaged> {
        if self.peek() != Some(b'[') {
            return self.skip().map(drop);
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            element(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(Damaged),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The text of a string as it stands between the quotes, escapes and all; `None` for another value.
    pub fn text(&mut self) -> Result<Option<&'a [u8]>, Damaged> {
        if self.peek() == Some(b'"') {
            self.at += 1;
            return self.rest_of_string().map(Some);
        }
        self.skip().map(|_| None)
    }

    /// Whether the value is `true`.
    pub fn is_true(&mut self) -> Result<bool, Damaged> {
        Ok(self.skip()? == b"true")
    }

    /// A count: 0 for what is none.
    pub fn count(&mut self) -> Result<u64, Damaged> {
        Ok(self.maybe_count()?.unwrap_or(0))
    }

    /// A count, 0 for what is below 0; `None` for what is no number or larger than any count.
    pub fn maybe_count(&mut self) -> Result<Option<u64>, Damaged> {
        Ok(number(self.skip()?).filter(|count| *count <= MOST))
    }

    /// Steps past a value and gives its bytes.
    pub fn skip(&mut self) -> Result<&'a [u8], Damaged> {
        let first = self.peek().ok_or(Damaged)?;
        let start = self.at;
        match first {
            b'"' => {
                self.at += 1;
                self.rest_of_string()?;
            }
            b'{' | b'[' => self.skip_nested()?,
            b',' | b':' | b'}' | b']' => return Err(Damaged),
            _ => {
                while self.bytes.get(self.at).is_some_and(|b| !matches!(b, b',' | b'}' | b']' | b' ' | b'\r'))
                {
                    self.at += 1;
                }
            }
        }
        Ok(&self.bytes[start..self.at])
    }

    /// Whether nothing but white space (or the NUL bytes of a lost block) is left.
    pub fn is_done(&mut self) -> bool {
        self.bytes[self.at..].iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0))
    }

    /// The bytes from here to where `end` stands in the same line.
    pub fn until(&mut self, end: &Self) -> &'a [u8] {
        self.peek();
        self.bytes.get(self.at..end.at).unwrap_or_default()
    }

    fn take_quote(&mut self) -> Result<(), Damaged> {
        self.take(b'"')
    }

    /// From just behind the opening quote to just behind the closing one.
    fn rest_of_string(&mut self) -> Result<&'a [u8], Damaged> {
        let start = self.at;
        let end = closing_quote(self.bytes, start).ok_or(Damaged)?;
        self.at = end + 1;
        Ok(&self.bytes[start..end])
    }

    /// Depth is a number here, not a stack: nesting costs nothing, however deep.
    fn skip_nested(&mut self) -> Result<(), Damaged> {
        let mut depth = 0_usize;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => self.at = closing_quote(self.bytes, self.at).ok_or(Damaged)? + 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(Damaged)
    }
}

/// The quote that ends a string whose text begins at `start`: the first one with an even number of
/// backslashes before it.
fn closing_quote(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let quote = at + find_quote(bytes.get(at..)?)?;
        if escapes_before(&bytes[start..quote]).is_multiple_of(2) {
            return Some(quote);
        }
        at = quote + 1;
    }
}

/// How many backslashes stand at the end of `bytes`.
#[inline]
pub fn escapes_before(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|b| **b == b'\\').count()
}

/// The first quote. Most strings are keys and ids: their few words are looked at here, which costs less
/// than a call; a long text is left to memchr.
#[inline]
fn find_quote(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES << 7;
    const QUOTES: u64 = ONES * b'"' as u64;
    let words = bytes.as_chunks::<8>().0;
    let near = &words[..words.len().min(6)];
    for (n, word) in near.iter().enumerate() {
        let differs = u64::from_le_bytes(*word) ^ QUOTES;
        // The lowest bit set here stands in the first byte that is a quote.
        let hits = differs.wrapping_sub(ONES) & !differs & HIGHS;
        if hits != 0 {
            return Some(n * 8 + hits.trailing_zeros() as usize / 8);
        }
    }
    let from = near.len() * 8;
    memchr(b'"', &bytes[from..]).map(|at| at + from)
}

/// A JSON number as a count: fractions are cut, what is below 0 is 0.
fn number(bytes: &[u8]) -> Option<u64> {
    if (1..19).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit) {
        return Some(bytes.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')));
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    if let Ok(n) = text.parse() {
        return Some(n);
    }
    let float: f64 = text.parse().ok()?;
    // A cast from a float saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(float as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(line: &[u8]) -> Result<Vec<(String, String)>, Damaged> {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(line);
        cursor.object(|key, at| {
            let value = at.skip()?;
            found.push((
                String::from_utf8_lossy(key).into_owned(),
                String::from_utf8_lossy(value).into_owned(),
            ));
            Ok(())
        })?;
        if cursor.is_done() { Ok(found) } else { Err(Damaged) }
    }

    #[test]
    fn members_are_walked_and_values_stepped_over() {
        let line = br#" { "a" : 1 ,"b":"x\"}\\","c":{"d":["]",{}]} , "e":[ ],"f":null}"#;
        let found = keys(line).unwrap();
        let want =
            [("a", "1"), ("b", r#""x\"}\\""#), ("c", r#"{"d":["]",{}]}"#), ("e", "[ ]"), ("f", "null")];
        assert_eq!(found, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(keys(b"{}"), Ok(vec![]));
    }

    #[test]
    fn broken_objects_are_damaged() {
        for bad in [
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":\"x",
            "{\"a\":[1}",
            "{\"a\":{}",
            "{a:1}",
            "{\"a\":1}}",
            "{\"a\":1}{\"b\":2}",
            "{\"a\":}",
            "{\"a\":1 2}",
            "{,}",
            "",
        ] {
            // A bracket closed by the wrong kind is not looked at unless it leaves the object open.
            assert_eq!(keys(bad.as_bytes()), Err(Damaged), "{bad}");
        }
    }

    #[test]
    fn counts_are_tolerant() {
        let count = |text: &str| Cursor::new(text.as_bytes()).maybe_count().unwrap();
        assert_eq!(count("42"), Some(42));
        assert_eq!(count("-1"), Some(0));
        assert_eq!(count("1e3"), Some(1000));
        assert_eq!(count("1000000000"), Some(MOST));
        for absurd in ["1e300", "1e999", "99999999999999999999999", "9223372036854775808", "1000000001"] {
            assert_eq!(count(absurd), None, "{absurd}");
        }
        assert_eq!(count("null"), None);
        assert_eq!(count("\"42\""), None);
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{{\"a\":{}{},\"b\":1}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(keys(deep.as_bytes()).unwrap().len(), 2);
    }

    proptest! {
        #[test]
        fn what_serde_reads_is_read_alike(map in prop::collection::btree_map(".*", ".*", 0..8)) {
            let line = serde_json::to_vec(&map).unwrap();
            let found = keys(&line).unwrap();
            let want: Vec<_> = map.iter().map(|(k, v)| {
                let key = serde_json::to_string(k).unwrap();
                (key[1..key.len() - 1].to_owned(), serde_json::to_string(v).unwrap())
            }).collect();
            prop_assert_eq!(found, want);
        }

        #[test]
        fn the_first_quote_is_found(bytes in "[a\\x21#\\u{a2}\\u{122}]{0,80}", at in 0_usize..80) {
            let mut bytes = bytes.into_bytes();
            prop_assert_eq!(find_quote(&bytes), None);
            let at = at.min(bytes.len());
            bytes.insert(at, b'"');
            bytes.push(b'"');
            prop_assert_eq!(find_quote(&bytes), Some(at));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = keys(&bytes);
        }

        #[test]
        fn no_brackets_and_quotes_make_it_panic(text in "[\\[\\]{}\",:\\\\a1 ]{0,60}") {
            let _ = keys(text.as_bytes());
        }
    }
}
