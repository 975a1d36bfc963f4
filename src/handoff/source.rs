//! What is exported: a transcript and, before it, what of its conversation stands in others (`lineage`). All of
//! it is read as one text: rows are counted and bytes are placed as if the files stood one behind the other.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::client::transcript::lines::{self, Line, Options, Place, Span, trimmed};
use crate::client::transcript::squeeze::Limits;
use crate::host::files;

/// The beginning of a file, in whole lines but for the last file's.
#[derive(Debug)]
pub struct Piece {
    /// The file's path.
    pub path: PathBuf,
    /// Its bytes that count: its length when the export began, or where the next piece takes over.
    pub end: u64,
    file: File,
}

/// Pieces, the oldest first.
#[derive(Debug)]
pub struct Source(Vec<Piece>);

/// What is kept of a long line's strings: more than is shown of any (4,000 characters), and of its depth.
const LIMITS: Limits = Limits { string: 16 * 1024, depth: 12 };
/// A long line that still comes to more than this is not looked into, in bytes.
const SQUEEZED_MAX: usize = 4 << 20;
/// A last line without an end that is longer than this is not looked into, in bytes.
const REST_MAX: u64 = 16 << 20;

/// Where no share of the work can be named, so many lines are read between two looks whether to go on.
pub const LOOK_EVERY: u64 = 1_000;

/// One line, or what is left of it.
pub struct Numbered<'a> {
    /// From 1.
    pub number: u64,
    /// Its bytes; `None` where it is too long to be looked into.
    pub bytes: Option<&'a [u8]>,
    /// Where it stands.
    pub span: Span,
    /// The file ends in it.
    pub unfinished: bool,
}

impl Piece {
    /// All of a file as long as it is now.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = files::open_regular(path)?;
        let end = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), end, file })
    }

    /// Hands on its lines, until `take` fails; `number` is that of the line before, `base` the bytes before it.
    fn each(
        &self,
        number: &mut u64,
        base: u64,
        take: &mut impl FnMut(&Numbered) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut place, mut result) = (Place::default(), Ok(()));
        let refused = Cell::new(false);
        let options = Options {
            end: self.end,
            limits: LIMITS,
            squeezed_max: SQUEEZED_MAX,
            stop: Some(&refused),
            ..Options::default()
        };
        let mut one = |line: Line, span: Span, unfinished: bool| {
            *number += 1;
            let bytes = match line {
                Line::Whole(bytes) => Some(trimmed(bytes)),
                Line::TooLong => None,
            };
            if result.is_ok() && bytes.is_none_or(|bytes| !bytes.is_empty()) {
                let span = Span { at: base + span.at, ..span };
                result = take(&Numbered { number: *number, bytes, span, unfinished });
                refused.set(result.is_err());
            }
        };
        lines::read_spans(&self.file, &mut place, options, &mut |line, span| one(line, span, false))?;
        let span = Span { at: place.offset, bytes: self.end.saturating_sub(place.offset) };
        if span.bytes > 0 && !place.in_given_up && !refused.get() {
            if span.bytes > REST_MAX {
                one(Line::TooLong, span, true);
            } else {
                one(Line::Whole(&self.raw(span)?), span, true);
            }
        }
        result
    }

    fn raw(&self, span: Span) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(span.bytes).map_err(io::Error::other)?];
        let got = lines::read_full_at(&self.file, &mut bytes, span.at)?;
        bytes.truncate(got);
        Ok(bytes)
    }
}

impl Source {
    /// One transcript as long as it is now.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(vec![Piece::open(path)?]))
    }

    /// The same without what was written after so many bytes.
    pub fn up_to(mut self, until: Option<u64>) -> Self {
        if let Some((last, until)) = self.0.last_mut().zip(until) {
            last.end = last.end.min(until);
        }
        self
    }

    /// Puts a piece before all others.
    pub fn begin_with(&mut self, piece: Piece) {
        self.0.insert(0, piece);
    }

    /// The pieces, the oldest first, with the bytes before each.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &Piece)> {
        self.0.iter().scan(0, |base, piece| {
            let at = *base;
            *base += piece.end;
            Some((at, piece))
        })
    }

    /// Bytes in all.
    pub fn end(&self) -> u64 {
        self.0.iter().map(|piece| piece.end).sum()
    }

    /// Hands on every line that is not empty; the number counts empty ones too.
    pub fn each(&self, take: &mut impl FnMut(&Numbered) -> io::Result<()>) -> io::Result<()> {
        let mut number = 0;
        self.pieces().try_for_each(|(base, piece)| piece.each(&mut number, base, take))
    }

    /// A line as it stands.
    pub fn raw(&self, span: Span) -> io::Result<Vec<u8>> {
        match self.holding(span.at) {
            Some((base, piece)) => piece.raw(Span { at: span.at - base, ..span }),
            None => Ok(Vec::new()),
        }
    }

    /// Reads some bytes from this place on; none at the end.
    pub fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let Some((base, piece)) = self.holding(at) else { return Ok(0) };
        let room = usize::try_from(base + piece.end - at).unwrap_or(usize::MAX).min(into.len());
        lines::read_at(&piece.file, &mut into[..room], at - base)
    }

    fn holding(&self, at: u64) -> Option<(u64, &Piece)> {
        self.pieces().find(|(base, piece)| (*base..base + piece.end).contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_one_text() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("1"), root.path().join("2"));
        fs_err::write(&first, "one\n\ntwo\nnot this\n").unwrap();
        fs_err::write(&second, "three\nfour").unwrap();
        let mut source = Source::open(&second).unwrap();
        let mut piece = Piece::open(&first).unwrap();
        piece.end = 9;
        source.begin_with(piece);
        let text = b"one\n\ntwo\nthree\nfour";
        assert_eq!(source.end(), text.len() as u64);
        let mut found = Vec::new();
        source
            .each(&mut |line| {
                assert_eq!(source.raw(line.span)?, line.bytes.unwrap());
                found.push((line.number, line.span.at, line.unfinished));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, [(1, 0, false), (3, 5, false), (4, 9, false), (5, 15, true)]);
        let (mut all, mut buffer) = (Vec::new(), [0; 4]);
        while let got @ 1.. = source.read_at(&mut buffer, all.len() as u64).unwrap() {
            all.extend_from_slice(&buffer[..got]);
        }
        assert_eq!(all, text);
    }
}
