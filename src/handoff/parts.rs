//! Parts: files that one Read call returns whole, with marks by which a reading can be proved.
//!
//! What Read of the real client returns, measured on 2.1.332 with files of every size and the API's token
//! count set by hand:
//! * a file over 256 KiB is refused ("exceeds maximum allowed size") unless offset and limit are given;
//! * one up to 25,000 characters is returned whole and nothing is counted; a longer one is counted by the API,
//!   and above 25,000 tokens cut at a line, with a note that the view is partial;
//! * neither the number of lines (8,000 tried) nor their length (20,000 characters tried) cuts anything.
//!
//! So a part of at most 25,000 characters comes back whole whatever it holds and however it is counted.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use serde::Serialize;

use crate::base::tokens::estimate;
use crate::host::random;
use crate::store::exports::Draft;

/// Up to here Read returns a file without counting its tokens, in UTF-16 units (2.1.332: 24,897 pass
/// uncounted, 25,929 are counted).
pub const READ_UNCOUNTED: usize = 25_000;
/// Where Read refuses a file, in bytes (2.1.332: the client says 256KB).
pub const READ_BYTES: usize = 256 * 1024;
/// Longest line that was tried and came back whole, in characters.
pub const READ_LINE_TRIED: usize = 20_000;

/// How long a part becomes, in UTF-16 units.
pub const PART_MAX: usize = READ_UNCOUNTED - 1_000;
/// How much stands between two marks.
const MARK_EVERY: usize = 4_000;
/// A longer line is interrupted by marks.
const LINE_MAX: usize = 3_000;
/// Kept free for the last mark.
const RESERVE: usize = 100;
/// Signs of a code: 50 bits.
const CODE: usize = 10;

/// How a mark begins. Content that looks like it is escaped.
pub const MARK: &str = "[[longhaul mark";
/// What such content becomes.
const ESCAPED: &str = "[\\[longhaul mark";

/// A part that is done.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// File name.
    pub file: String,
    /// Bytes.
    pub bytes: u64,
    /// UTF-16 units, as the client counts characters.
    pub characters: usize,
    /// Tokens, by estimate.
    pub tokens: u64,
    /// Messages or decisions that begin in it.
    pub entries: u64,
    /// Marks in it.
    pub marks: usize,
    /// BLAKE3 of its bytes.
    pub blake3: String,
    /// The codes, in order; never in the index.
    #[serde(skip)]
    pub codes: Vec<String>,
}

/// Writes one kind of must-read text, in as many parts as it takes.
pub struct Parts<'a> {
    draft: &'a Draft,
    stem: String,
    title: String,
    open: Option<Open>,
    done: Vec<Part>,
}

struct Open {
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    since_mark: usize,
    part: Part,
}

impl<'a> Parts<'a> {
    /// Of files `<stem>.md`, `<stem>-2.md`, …, the first under this title.
    pub fn new(draft: &'a Draft, stem: &str, title: &str) -> Self {
        Self { draft, stem: stem.to_owned(), title: title.to_owned(), open: None, done: Vec::new() }
    }

    /// Begins an entry.
    pub fn entry(&mut self, heading: &str) -> io::Result<()> {
        self.piece(heading)?;
        if let Some(open) = &mut self.open {
            open.part.entries += 1;
        }
        Ok(())
    }

    /// Adds what other parts held, without their marks: their headings are headings here too.
    pub fn quoted(&mut self, text: &str) -> io::Result<()> {
        for line in text.split_inclusive('\n') {
            if is_heading(line) { self.entry(line)? } else { self.text(line)? }
        }
        Ok(())
    }

    /// Adds text, whole lines of it: the last one is ended where it is not.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let escaped = escape(text);
        for line in escaped.split_inclusive('\n') {
            if is_heading(line) {
                self.line(&format!("\\{line}"))?;
            } else {
                self.line(line)?;
            }
        }
        if !escaped.is_empty() && !escaped.ends_with('\n') {
            self.piece("\n")?;
        }
        Ok(())
    }

    /// The parts, in order. Where nothing was written, there is one that says so.
    pub fn finish(mut self) -> io::Result<Vec<Part>> {
        if self.open.is_none() && self.done.is_empty() {
            self.piece("Nothing.\n")?;
        }
        self.close()?;
        Ok(self.done)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut rest = line;
        loop {
            let cut = cut_at(rest, LINE_MAX);
            if cut == rest.len() {
                break;
            }
            self.piece(&rest[..cut])?;
            // Within a line: a mark says that it is one line.
            self.mark("\n", "; the line goes on")?;
            rest = &rest[cut..];
        }
        self.piece(rest)
    }

    /// Text of at most [`LINE_MAX`] units.
    fn piece(&mut self, text: &str) -> io::Result<()> {
        let size = units(text);
        if self.open.as_ref().is_some_and(|open| open.part.characters + size + RESERVE > PART_MAX) {
            self.close()?;
        }
        if self.open.as_ref().is_some_and(|open| open.since_mark + size > MARK_EVERY) {
            self.mark("", "")?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        open.write(text)?;
        open.since_mark += size;
        self.open = Some(open);
        Ok(())
    }

    fn begin(&self) -> io::Result<Open> {
        let n = self.done.len() + 1;
        let file = if n == 1 { format!("{}.md", self.stem) } else { format!("{}-{n}.md", self.stem) };
        let out = BufWriter::with_capacity(32 << 10, self.draft.create(&file)?);
        let part = Part {
            file,
            bytes: 0,
            characters: 0,
            tokens: 0,
            entries: 0,
            marks: 0,
            blake3: String::new(),
            codes: Vec::new(),
        };
        let mut open = Open { out, hasher: blake3::Hasher::new(), since_mark: 0, part };
        if n == 1 {
            open.write(&self.title)?;
        } else {
            // A mark too, so that without its marks the whole is one text.
            open.mark("", &format!("; part {n} of {}", self.stem))?;
        }
        Ok(open)
    }

    fn mark(&mut self, before: &str, note: &str) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.mark(before, note))
    }

    fn close(&mut self) -> io::Result<()> {
        // A part may just have been given a mark for a line that goes on; it still ends in one of its own.
        self.mark("", "")?;
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.out.flush()?;
        open.part.marks = open.part.codes.len();
        open.part.blake3 = open.hasher.finalize().to_hex().to_string();
        self.done.push(open.part);
        Ok(())
    }
}

impl Open {
    fn mark(&mut self, before: &str, note: &str) -> io::Result<()> {
        let code = random::code(CODE)?;
        self.write(&format!("{before}{MARK} {code}{note}]]\n"))?;
        self.part.codes.push(code);
        self.since_mark = 0;
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.hasher.update(text.as_bytes());
        self.part.bytes += text.len() as u64;
        self.part.characters += units(text);
        self.part.tokens += estimate(text);
        Ok(())
    }
}

/// Whether a line looks like the heading of an entry, `## 7. …` or `### Message 7, …`: a reader counts these, so
/// content that looks like one is given a backslash.
fn is_heading(line: &str) -> bool {
    let number = if let Some(rest) = line.strip_prefix("### ") {
        rest.strip_prefix("Message ").or_else(|| rest.strip_prefix("Decision "))
    } else {
        line.strip_prefix("## ")
    };
    number.is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_digit()))
}

/// Length as the client counts it.
fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Where so many units end, between two signs.
fn cut_at(text: &str, most: usize) -> usize {
    let mut left = most;
    for (at, sign) in text.char_indices() {
        match left.checked_sub(sign.len_utf16()) {
            Some(less) => left = less,
            None => return at,
        }
    }
    text.len()
}

/// The text with what looks like a mark escaped, in whatever case.
pub fn escape(text: &str) -> std::borrow::Cow<'_, str> {
    let looks = |at: usize| {
        text.as_bytes()
            .get(at..at + MARK.len())
            .is_some_and(|have| have.eq_ignore_ascii_case(MARK.as_bytes()))
    };
    let mut found = memchr::memmem::find_iter(text.as_bytes(), b"[[").filter(|at| looks(*at)).peekable();
    if found.peek().is_none() {
        return text.into();
    }
    let (mut out, mut from) = (String::with_capacity(text.len() + 16), 0);
    for at in found {
        out.push_str(&text[from..at]);
        out.push_str(&ESCAPED[..2]);
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.into()
}
