//! A file's complete lines from an offset on, in chunks, in bounded memory.

use std::cell::Cell;
use std::fs::File;
use std::io;

use memchr::memchr_iter;

use super::squeeze::{Limits, Squeeze};
use crate::host::clock::Deadline;

/// Bytes read at a time.
pub const CHUNK: usize = 256 * 1024;
/// A line up to this long is looked at as it stands; a longer one is squeezed as it comes by.
pub const LINE_MAX: usize = 256 * 1024;
/// What a squeezed line may come to; one with more in it is given up.
const SQUEEZED_MAX: usize = 1024 * 1024;
/// A line longer than this is given up, so that no reader ever starts over on it.
pub const GIVEN_UP: u64 = 128 * 1024 * 1024;

/// A line, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// Its bytes without the line feed; squeezed where it was long.
    Whole(&'a [u8]),
    /// Too long to be looked at.
    TooLong,
}

/// Where a reading stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Bytes that are dealt with: the beginning of a line, or a place within one that was given up.
    pub offset: u64,
    /// Whether what follows is the rest of a line that was given up.
    pub in_given_up: bool,
    /// Bytes that were looked at; those from `offset` on hold no line feed.
    pub seen: u64,
}

/// Where a line stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Offset of its first byte.
    pub at: u64,
    /// Its bytes, without the line feed.
    pub bytes: u64,
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Looked at between chunks.
    pub deadline: Option<Deadline>,
    /// Looked at with it: whoever is handed the lines wants no more of them.
    pub stop: Option<&'a Cell<bool>>,
    /// Where the reading ends at the latest, so that two of them see the same of a file that grows.
    pub end: u64,
    /// What is kept of long lines.
    pub limits: Limits,
    /// What a squeezed line may come to, in bytes; one with more in it is given up.
    pub squeezed_max: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        let (end, limits) = (u64::MAX, Limits::default());
        Self { deadline: None, stop: None, end, limits, squeezed_max: SQUEEZED_MAX }
    }
}

/// Hands on every complete line from `place` on and moves it. Stops at the end of the file (`true`) or at
/// the deadline (`false`), which is looked at between chunks, once a line is done: whoever comes back
/// often enough gets through.
pub fn read(
    file: &File,
    place: &mut Place,
    deadline: Option<Deadline>,
    line: &mut impl FnMut(Line),
) -> io::Result<bool> {
    read_spans(file, place, Options { deadline, ..Options::default() }, &mut |it, _| line(it))
}

/// The same, told how, and with the place of each line.
pub fn read_spans(
    file: &File,
    place: &mut Place,
    options: Options,
    line: &mut impl FnMut(Line, Span),
) -> io::Result<bool> {
    let mut buffer = vec![0; LINE_MAX + CHUNK];
    let mut reading = Reading { place: *place, held: 0, long: None, options };
    let over = || options.deadline.is_some_and(Deadline::passed) || options.stop.is_some_and(Cell::get);
    let mut at = place.offset;
    loop {
        let left = usize::try_from(options.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let room = reading.held + CHUNK.min(left);
        let got = match read_at(file, &mut buffer[reading.held..room], at) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) => {
                // The lines before were handed on, and must not be again.
                *place = Place { seen: reading.place.offset, ..reading.place };
                return Err(error);
            }
        };
        at += got as u64;
        let filled = reading.held + got;
        reading.take(&mut buffer[..filled], got, at, line);
        if reading.place.offset > place.offset && over() {
            *place = Place { seen: reading.place.offset, ..reading.place };
            return Ok(false);
        }
    }
    *place = Place { seen: at, ..reading.place };
    Ok(true)
}

struct Reading<'a> {
    place: Place,
    /// Bytes at the buffer's front that begin a line.
    held: usize,
    long: Option<Long>,
    options: Options<'a>,
}

struct Long {
    max: usize,
    squeeze: Squeeze,
    kept: Vec<u8>,
    overflown: bool,
}

impl Long {
    fn new(options: &Options) -> Self {
        let squeeze = Squeeze::new(options.limits);
        Self { max: options.squeezed_max, squeeze, kept: Vec::new(), overflown: false }
    }

    fn feed(&mut self, piece: &[u8]) {
        if !self.overflown {
            self.squeeze.feed(piece, &mut self.kept);
        }
        if self.kept.len() > self.max {
            self.overflown = true;
            self.kept = Vec::new();
        }
    }
}

impl Reading<'_> {
    /// Deals with a filled buffer, whose last `fresh` bytes are new and end at `at` in the file.
    fn take(&mut self, data: &mut [u8], fresh: usize, at: u64, line: &mut impl FnMut(Line, Span)) {
        let base = at - data.len() as u64;
        let known = data.len() - fresh;
        let mut start = 0;
        for end in memchr_iter(b'\n', &data[known..]).map(|end| end + known) {
            let from = self.place.offset;
            let span = Span { at: from, bytes: (base + end as u64).saturating_sub(from) };
            self.end_line(&data[start..end], span, line);
            start = end + 1;
            self.place.offset = base + start as u64;
        }
        let rest = data.len() - start;
        if self.place.in_given_up {
            self.place.offset = at;
            self.held = 0;
        } else if self.long.is_some() || rest > LINE_MAX {
            let options = &self.options;
            self.long.get_or_insert_with(|| Long::new(options)).feed(&data[start..]);
            self.held = 0;
            if at - self.place.offset > GIVEN_UP {
                let from = self.place.offset;
                line(Line::TooLong, Span { at: from, bytes: at - from });
                self.long = None;
                self.place.in_given_up = true;
                self.place.offset = at;
            }
        } else {
            data.copy_within(start.., 0);
            self.held = rest;
        }
    }

    /// The bytes up to a line feed.
    fn end_line(&mut self, bytes: &[u8], span: Span, line: &mut impl FnMut(Line, Span)) {
        if self.place.in_given_up {
            self.place.in_given_up = false;
            return;
        }
        match self.long.take() {
            None if bytes.len() <= LINE_MAX => line(Line::Whole(bytes), span),
            long => {
                let mut long = long.unwrap_or_else(|| Long::new(&self.options));
                long.feed(bytes);
                line(if long.overflown { Line::TooLong } else { Line::Whole(&long.kept) }, span);
            }
        }
    }
}

/// A line without white space at its ends, and without the NUL bytes that a lost block leaves there. One of
/// nothing else comes back as it is where it holds a NUL: it is damage, and only a blank line is empty.
pub fn trimmed(line: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !byte.is_ascii_whitespace() && *byte != 0;
    match (line.iter().position(is_text), line.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &line[first..=last],
        _ => line.trim_ascii(),
    }
}

/// Reads at an offset without moving the file's own.
pub fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        #[cfg(unix)]
        let got = std::os::unix::fs::FileExt::read_at(file, into, offset);
        #[cfg(windows)]
        let got = std::os::windows::fs::FileExt::seek_read(file, into, offset);
        match got {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            got => return got,
        }
    }
}

/// Reads until `into` is full or the file ends.
pub fn read_full_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match read_at(file, &mut into[filled..], offset + filled as u64)? {
            0 => break,
            got => filled += got,
        }
    }
    Ok(filled)
}
