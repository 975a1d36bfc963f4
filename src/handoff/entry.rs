//! What was said and decided, between the readings: texts in a file without a name, and where they stand.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use crate::base::tokens::estimate;
use crate::client::transcript::lines::read_full_at;
use crate::client::transcript::words::How;

/// A pasted block this long or longer may be clipped, in characters.
pub const PASTED_MIN: usize = 4_000;
/// What stays of its beginning.
const PASTED_HEAD: usize = 1_000;
/// And of its end.
const PASTED_TAIL: usize = 200;

/// A message of the person, or a text of the assistant.
#[derive(Debug, Clone)]
pub struct Entry {
    /// How it was said; `None`: by the assistant.
    pub how: Option<How>,
    /// Line in the transcript, from 1.
    pub row: u64,
    /// Its offset in bytes.
    pub at: u64,
    /// Epoch milliseconds.
    pub at_ms: Option<i64>,
    /// The compaction that took it out of the context, from 1.
    pub dropped: Option<usize>,
    /// When the very same was said again, nothing else in between.
    pub again: Vec<Option<i64>>,
    /// What came with it that is no text.
    pub media: Vec<(String, usize)>,
    /// Tokens, by estimate.
    pub tokens: u64,
    /// Of these, what clipping its pasted blocks would save.
    pub spare: u64,
    start: u64,
    length: usize,
    print: u64,
}

/// Texts on disk.
#[derive(Debug)]
pub struct Spool {
    out: BufWriter<File>,
    length: u64,
}

impl Spool {
    /// In a file without a name.
    pub fn new(file: File) -> Self {
        Self { out: BufWriter::with_capacity(64 << 10, file), length: 0 }
    }

    /// Keeps an entry's text.
    pub fn keep(&mut self, mut entry: Entry, text: &str) -> io::Result<Entry> {
        self.out.write_all(text.as_bytes())?;
        (entry.start, entry.length) = (self.length, text.len());
        self.length += text.len() as u64;
        entry.tokens = estimate(text);
        entry.spare =
            entry.tokens.saturating_sub(clip_pasted(text, "").map_or(entry.tokens, |c| estimate(&c.0)));
        Ok(entry)
    }

    /// From now on texts are read.
    pub fn finish(self) -> io::Result<Texts> {
        self.out.into_inner().map(Texts).map_err(io::IntoInnerError::into_error)
    }
}

/// Texts that were kept.
#[derive(Debug)]
pub struct Texts(File);

impl Texts {
    /// An entry's text.
    pub fn of(&self, entry: &Entry) -> io::Result<String> {
        let mut bytes = vec![0; entry.length];
        read_full_at(&self.0, &mut bytes, entry.start)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}

impl Entry {
    /// One whose text is kept with [`Spool::keep`].
    pub fn new(how: Option<How>, row: u64, at: u64, at_ms: Option<i64>) -> Self {
        Self {
            how,
            row,
            at,
            at_ms,
            dropped: None,
            again: Vec::new(),
            media: Vec::new(),
            tokens: 0,
            spare: 0,
            start: 0,
            length: 0,
            print: 0,
        }
    }

    /// With what tells whether two say the same.
    pub fn printed(mut self, text: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes());
        for (kind, bytes) in &self.media {
            hasher.update(kind.as_bytes()).update(&bytes.to_le_bytes());
        }
        let hash = hasher.finalize();
        self.print = hash.as_bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
        self
    }

    /// Whether both say the same in the same way.
    pub fn says_the_same(&self, other: &Self) -> bool {
        (self.how, self.print) == (other.how, other.print)
    }
}

/// The text with its long pasted blocks clipped, and how many there were; `None` where there are none.
pub fn clip_pasted(text: &str, pointer: &str) -> Option<(String, u64)> {
    const OPEN: &str = "<pasted_content id=\"";
    let (mut out, mut count, mut rest) = (String::new(), 0, text);
    while let Some(at) = memchr::memmem::find(rest.as_bytes(), OPEN.as_bytes()) {
        let id_end = rest[at + OPEN.len()..].find("\">").map(|end| at + OPEN.len() + end);
        let Some(id_end) = id_end else { break };
        let id = &rest[at + OPEN.len()..id_end];
        let close = format!("</pasted_content id=\"{id}\">");
        let body = id_end + 2;
        let Some(end) = rest[body..].find(&close).map(|end| body + end) else { break };
        let pasted = &rest[body..end];
        let characters = pasted.chars().count();
        if characters > PASTED_MIN {
            count += 1;
            let head = pasted.char_indices().nth(PASTED_HEAD).map_or(pasted.len(), |(at, _)| at);
            let tail = pasted.char_indices().nth(characters - PASTED_TAIL).map_or(0, |(at, _)| at);
            out.push_str(&rest[..body]);
            out.push_str(&pasted[..head]);
            out.push_str(&format!("\n[… clipped: a pasted block of {characters} characters{pointer} …]\n"));
            out.push_str(&pasted[tail..]);
        } else {
            out.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    (count > 0).then_some((out, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_pasted_blocks_are_clipped_and_words_stay() {
        let long = "x".repeat(5_000);
        let block = |id: &str, body: &str| {
            format!("<pasted_content id=\"{id}\">\n{body}\n</pasted_content id=\"{id}\">")
        };
        let text = format!("before {} between {} after", block("a1", &long), block("b2", "short"));
        let (clipped, count) = clip_pasted(&text, ", row 7").unwrap();
        assert_eq!(count, 1);
        assert!(clipped.len() < 1_800, "{}", clipped.len());
        assert!(clipped.starts_with("before <pasted_content id=\"a1\">") && clipped.ends_with(" after"));
        assert!(clipped.contains("a pasted block of 5002 characters, row 7"));
        assert!(clipped.contains(&block("b2", "short")));
        assert_eq!(clip_pasted(&long, ""), None, "what was typed is never clipped");
        assert_eq!(clip_pasted("<pasted_content id=\"a\">open", ""), None);
    }
}
