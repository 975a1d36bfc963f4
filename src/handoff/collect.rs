//! The second reading: every row into 03, and what was said and decided into the spool.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use serde::Serialize;

use super::branch::State;
use super::entry::{Entry, Spool, Texts};
use super::redact::Redactor;
use super::render::{PAYLOAD_MAX, TEXT_MAX, clip, shown};
use super::source::{Numbered, Source};
use super::survey::{Survey, is_link};
use crate::base::span::stamp;
use crate::base::text::width;
use crate::client::transcript::blocks::{Block, each};
use crate::client::transcript::lines::{LINE_MAX, trimmed};
use crate::client::transcript::row::{Kind, Row, leading_type};
use crate::client::transcript::texts::{plain, unescape};
use crate::client::transcript::words::{How, Said, Words};

/// A text of the assistant counts as a decision from this width on, in terminal cells.
pub const DECISION_MIN: usize = 150;
/// Damaged lines that are named one by one.
const NAMED_MAX: usize = 50;
/// Kinds of rows and tools that are counted apart; any more count together.
const NAMES_MAX: usize = 500;

/// Why a line counts as damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// No JSON object, or a broken one; it stands in 03 by its place alone.
    Unreadable,
    /// The file ends in the middle of it.
    Unfinished,
    /// Too long to be looked into.
    TooLong,
    /// Bytes that are no text; the rest of it was exported.
    NotUtf8,
    /// Halves of pairs; the rest of it was exported.
    LoneSurrogates,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Counts {
    /// Lines that are not empty.
    pub lines: u64,
    /// By `type`.
    pub rows: BTreeMap<String, u64>,
    /// Damaged lines by what is wrong.
    pub damage: BTreeMap<Damage, u64>,
    /// The first of them: line, offset, what is wrong.
    pub damaged: Vec<(u64, u64, Damage)>,
    /// Tool calls by name, on the live branch and off it.
    pub tools: BTreeMap<String, u64>,
    /// Rows of branches that were taken back.
    pub rewound_rows: u64,
    /// What a person said on them.
    pub rewound_messages: u64,
    /// Rows that stand there twice.
    pub copies: u64,
    /// Rows of subagents in this file.
    pub sidechain_rows: u64,
    /// Messages of the person by how they were said, repeats counted.
    pub said: BTreeMap<How, u64>,
}

/// What the second reading made.
#[derive(Debug)]
pub struct Collected {
    /// In the order of the file.
    pub said: Vec<Entry>,
    /// In the order of the file.
    pub decided: Vec<Entry>,
    /// Their texts.
    pub texts: Texts,
    /// What was counted.
    pub counts: Counts,
}

/// Reads it all again.
pub fn collect(
    source: &Source,
    survey: &Survey,
    redactor: &mut Redactor,
    full: File,
    scratch: File,
    tick: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<Collected> {
    let mut collector = Collector {
        source,
        survey,
        redactor,
        out: BufWriter::with_capacity(256 << 10, full),
        spool: Spool::new(scratch),
        words: Words::default(),
        link: 0,
        said: Vec::new(),
        decided: Vec::new(),
        counts: Counts::default(),
        text: String::new(),
    };
    source.each(&mut |line| {
        tick(line.span.at)?;
        collector.line(line)
    })?;
    collector.out.flush()?;
    Ok(Collected {
        said: collector.said,
        decided: collector.decided,
        texts: collector.spool.finish()?,
        counts: collector.counts,
    })
}

struct Collector<'a> {
    source: &'a Source,
    survey: &'a Survey,
    redactor: &'a mut Redactor,
    out: BufWriter<File>,
    spool: Spool,
    words: Words,
    /// The next row of the conversation.
    link: usize,
    said: Vec<Entry>,
    decided: Vec<Entry>,
    counts: Counts,
    /// One row of 03.
    text: String,
}

/// Where a row stands and what became of it.
struct At<'a> {
    line: &'a Numbered<'a>,
    state: State,
    dropped: Option<usize>,
    pointer: String,
}

impl Collector<'_> {
    fn line(&mut self, line: &Numbered) -> io::Result<()> {
        self.counts.lines += 1;
        self.text.clear();
        let (number, at) = (line.number, line.span.at);
        let Some(bytes) = line.bytes else { return self.unreadable(line, Damage::TooLong) };
        match Row::read(bytes) {
            Err(_) if line.unfinished => return self.unreadable(line, Damage::Unfinished),
            Err(_) => return self.unreadable(line, Damage::Unreadable),
            Ok(None) => {
                let kind = leading_type(bytes).map_or_else(|| "?".into(), plain);
                count(&mut self.counts.rows, &kind);
                let _ = write!(self.text, "== {number} @{at} ");
                clip(kind.as_bytes(), 60, "", self.redactor, &mut self.text);
            }
            Ok(Some(row)) => {
                self.check(bytes, line);
                self.row(&row, line)?;
            }
        }
        self.out.write_all(self.text.as_bytes())
    }

    fn unreadable(&mut self, line: &Numbered, damage: Damage) -> io::Result<()> {
        self.damage(line, damage);
        writeln!(self.out, "== {} @{} (damaged, {} bytes)", line.number, line.span.at, line.span.bytes)
    }

    fn damage(&mut self, line: &Numbered, damage: Damage) {
        *self.counts.damage.entry(damage).or_default() += 1;
        if self.counts.damaged.len() < NAMED_MAX {
            self.counts.damaged.push((line.number, line.span.at, damage));
        }
    }

    /// Damage within a row that can be read all the same.
    fn check(&mut self, bytes: &[u8], line: &Numbered) {
        if line.span.bytes <= LINE_MAX as u64 && simdutf8::basic::from_utf8(bytes).is_err() {
            self.damage(line, Damage::NotUtf8);
        } else if has_half_pair(bytes) {
            self.damage(line, Damage::LoneSurrogates);
        }
    }

    fn row(&mut self, row: &Row, line: &Numbered) -> io::Result<()> {
        count(&mut self.counts.rows, &plain(row.type_name));
        let place = self.link;
        let state = if is_link(row) { self.survey.states.get(place).copied() } else { None };
        let state = state.unwrap_or(State::Live);
        self.link += usize::from(is_link(row));
        let dropped = self.survey.dropped_at(place);
        let pointer = format!("row {}, byte {}", line.number, line.span.at);
        let at = At { line, state, dropped, pointer };
        self.counts.rewound_rows += u64::from(state == State::Rewound);
        self.counts.copies += u64::from(state == State::Copy);
        self.counts.sidechain_rows += u64::from(row.sidechain);
        self.head(row, &at);
        if state == State::Copy {
            return Ok(());
        }
        self.body(row, &at);
        self.words(row, &at)?;
        if row.kind == Kind::Assistant && state == State::Live && !row.sidechain && !is_client(row) {
            self.decisions(row, &at)?;
        }
        Ok(())
    }

    fn head(&mut self, row: &Row, at: &At) {
        let _ = write!(self.text, "== {} @{}", at.line.number, at.line.span.at);
        if let Some(ms) = row.at_ms {
            let _ = write!(self.text, " {}", stamp(ms));
        }
        let _ = write!(self.text, " {}", word(row.type_name));
        if let Some(subtype) = row.subtype {
            let _ = write!(self.text, "/{}", word(subtype));
        }
        let notes = [
            (at.state == State::Rewound, " [rewound]"),
            (at.state == State::Copy, " [the same row again]"),
            (row.sidechain, " [subagent]"),
            (row.meta, " [of the client]"),
            (row.summary, " [summary]"),
            (row.api_error, " [API error]"),
        ];
        for (_, note) in notes.iter().filter(|(on, _)| *on) {
            self.text.push_str(note);
        }
        self.text.push('\n');
    }

    fn body(&mut self, row: &Row, at: &At) {
        self.blocks(row.message.content, at, false);
        if let Some(attachment) = &row.attachment {
            let _ = write!(self.text, "attachment {}: ", word(attachment.kind));
            let (raw, most) = if attachment.prompt.is_empty() {
                (attachment.content, PAYLOAD_MAX)
            } else {
                (attachment.prompt, TEXT_MAX)
            };
            clip(bare(raw), most, &at.pointer, self.redactor, &mut self.text);
        }
        for text in [row.content, row.error_details, row.feedback].into_iter().flatten() {
            clip(text, PAYLOAD_MAX, &at.pointer, self.redactor, &mut self.text);
        }
    }

    fn blocks(&mut self, content: &[u8], at: &At, within: bool) {
        let most = if within { PAYLOAD_MAX } else { TEXT_MAX };
        let _ = each(content, |block| {
            let out = &mut self.text;
            match block {
                Block::Text(text) => {
                    out.push_str(if within { "" } else { "text: " });
                    clip(text, most, &at.pointer, self.redactor, out);
                }
                Block::Thinking(text) => {
                    out.push_str("thinking: ");
                    clip(text, most, &at.pointer, self.redactor, out);
                }
                Block::Call { id, name, input } => {
                    if at.state != State::Copy {
                        count(&mut self.counts.tools, &plain(name));
                    }
                    let _ = write!(out, "call {} {}: ", word(name), word(id));
                    clip(input, PAYLOAD_MAX, &at.pointer, self.redactor, out);
                }
                Block::Result { id, error, content } => {
                    let failed = if error { " (error)" } else { "" };
                    let _ = write!(out, "result {}{failed}: ", word(id));
                    if within {
                        clip(bare(content), PAYLOAD_MAX, &at.pointer, self.redactor, out);
                    } else {
                        self.blocks(content, at, true);
                        if !self.text.ends_with('\n') {
                            self.text.push('\n');
                        }
                    }
                }
                Block::Media(kind, bytes) => {
                    let _ = writeln!(out, "[{}, about {} bytes; {}]", word(kind), bytes / 4 * 3, at.pointer);
                }
                Block::Other(kind) => {
                    let _ = writeln!(out, "[{}; {}]", word(kind), at.pointer);
                }
            }
        });
    }

    fn words(&mut self, row: &Row, at: &At) -> io::Result<()> {
        let said = if at.line.span.bytes > LINE_MAX as u64 {
            // What was cut short for 03 is looked at whole here, where it holds words.
            let mut words = self.words.clone();
            if words.of(row).is_empty() {
                self.words = words;
                return Ok(());
            }
            let whole = self.source.raw(at.line.span)?;
            match Row::read(trimmed(&whole)) {
                Ok(Some(row)) => self.words.of(&row),
                _ => self.words.of(row),
            }
        } else {
            self.words.of(row)
        };
        for said in said {
            if at.state == State::Rewound {
                self.counts.rewound_messages += 1;
                let _ = writeln!(self.text, "({}, taken back by a rewind)", said.how.label());
                continue;
            }
            *self.counts.said.entry(said.how).or_default() += 1;
            self.keep(row, said, at)?;
        }
        Ok(())
    }

    fn keep(&mut self, row: &Row, said: Said, at: &At) -> io::Result<()> {
        let text = shown(said.text, self.redactor);
        let mut entry = Entry::new(Some(said.how), at.line.number, at.line.span.at, row.at_ms);
        entry.media = said.media;
        entry.dropped = at.dropped;
        let entry = entry.printed(&text);
        if let Some(last) = self.said.last_mut().filter(|last| last.says_the_same(&entry)) {
            last.again.push(row.at_ms);
            return Ok(());
        }
        self.said.push(self.spool.keep(entry, &text)?);
        Ok(())
    }

    fn decisions(&mut self, row: &Row, at: &At) -> io::Result<()> {
        let whole;
        let content = if at.line.span.bytes > LINE_MAX as u64 {
            whole = self.source.raw(at.line.span)?;
            match Row::read(trimmed(&whole)) {
                Ok(Some(row)) => row.message.content,
                _ => row.message.content,
            }
        } else {
            row.message.content
        };
        let mut found = Vec::new();
        let _ = each(content, |block| {
            if let Block::Text(raw) = block
                && raw.len() >= DECISION_MIN / 2
            {
                let mut text = String::with_capacity(raw.len());
                unescape(raw, &mut text);
                found.push(text);
            }
        });
        for text in found.into_iter().filter(|text| is_wide(text)) {
            let text = shown(text, self.redactor);
            let mut entry = Entry::new(None, at.line.number, at.line.span.at, row.at_ms);
            entry.dropped = at.dropped;
            self.decided.push(self.spool.keep(entry, &text)?);
        }
        Ok(())
    }
}

/// The client's own words in the place of the model's.
fn is_client(row: &Row) -> bool {
    row.api_error || row.message.model == Some(b"<synthetic>")
}

fn is_wide(text: &str) -> bool {
    let mut cells = 0;
    text.lines().any(|line| {
        cells += width(line.trim_end());
        cells >= DECISION_MIN
    })
}

/// A name of the client's, harmless and short.
fn word(raw: &[u8]) -> String {
    let fits = |sign: &char| !sign.is_control();
    plain(raw).chars().filter(fits).take(80).collect()
}

/// A JSON string without its quotes; anything else as it stands.
fn bare(raw: &[u8]) -> &[u8] {
    raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or(raw)
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
    } else {
        let fits = counts.len() < NAMES_MAX && name.len() <= 200;
        let name: String = if fits { word(name.as_bytes()) } else { "(others)".to_owned() };
        *counts.entry(name).or_default() += 1;
    }
}

fn has_half_pair(bytes: &[u8]) -> bool {
    let pair = |at: usize| matches!(bytes.get(at..at + 3), Some([b'\\', b'u', b'd' | b'D']));
    if !memchr::memmem::find_iter(bytes, b"\\u").any(pair) {
        return false;
    }
    // Bytes that are no text are another matter.
    simdutf8::basic::from_utf8(bytes).is_ok() && !unescape(bytes, &mut String::new())
}
