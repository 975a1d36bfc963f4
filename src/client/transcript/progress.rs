//! How far a transcript has been measured: all that is needed to go on from there.

use std::fs::{File, Metadata};
use std::io;

use super::branch::hash;
use super::bytes::{Reader, Writer};
use super::figures::Figures;
use super::lines::{self, Line, Place};
use super::tally::Tally;
use crate::host::clock::Deadline;

/// Opens the stored form; the last byte is its version.
const MAGIC: [u8; 8] = *b"lhtrans\x02";
/// Bytes of the file's beginning, and of what stands before the offset, that tell whether it is the same.
const PRINT: usize = 256;

/// A measurement under way. The default is one of nothing yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    place: Place,
    file: Identity,
    tally: Tally,
}

/// Which file was measured, so that another one under the same name is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Identity {
    device: u64,
    inode: u64,
    /// How many of the first bytes `head` stands for.
    head_len: u64,
    head: u64,
    /// Of the bytes just before the offset.
    tail: u64,
}

/// What a call of [`Progress::advance`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance {
    /// Everything that is there was read; else the deadline came first.
    pub complete: bool,
    /// The progress is another than before.
    pub changed: bool,
    /// Bytes that were looked at: what it would cost to come here again.
    pub read: u64,
}

impl Progress {
    /// Reads the complete lines that were added since, or everything where the file is another one or was
    /// cut. A last line without its line feed is left for the next time. The deadline is looked at every
    /// 256 KiB, once a line is done. With nothing added it costs one `fstat` and two short reads.
    ///
    /// # Errors
    /// Those of reading the file; what was read before stays counted.
    pub fn advance(&mut self, file: &File, deadline: Option<Deadline>) -> io::Result<Advance> {
        let metadata = file.metadata()?;
        let mut changed = false;
        let before = self.place;
        if !self.is_of(file, &metadata)? {
            *self = Self::default();
            (self.file.device, self.file.inode) = numbers(&metadata);
            changed = true;
        }
        if metadata.len() < self.place.seen {
            // The beginning of a line was taken back.
            self.place.seen = self.place.offset;
        }
        if metadata.len() <= self.place.seen {
            return Ok(Advance { complete: true, changed: changed || self.place != before, read: 0 });
        }
        let from = self.place.offset;
        let complete = self.read(file, deadline);
        if changed || self.place.offset != before.offset {
            self.take_prints(file)?;
        }
        let read = self.place.seen.saturating_sub(from);
        Ok(Advance { complete: complete?, changed: changed || self.place != before, read })
    }

    /// What has been measured so far.
    pub fn figures(&self) -> Figures {
        self.tally.figures()
    }

    /// Bytes of the file that are dealt with.
    pub fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Begins at an offset, in the middle of a line or not; what is left of that line is not looked at.
    pub(super) fn from_within(offset: u64) -> Self {
        let place = Place { offset, in_given_up: offset > 0, seen: offset };
        Self { place, ..Self::default() }
    }

    /// Reads on, without asking which file it is.
    pub(super) fn read(&mut self, file: &File, deadline: Option<Deadline>) -> io::Result<bool> {
        let tally = &mut self.tally;
        lines::read(file, &mut self.place, deadline, &mut |line| match line {
            Line::Whole(bytes) => tally.line(bytes),
            Line::TooLong => tally.damaged(),
        })
    }

    fn is_of(&self, file: &File, metadata: &Metadata) -> io::Result<bool> {
        let known = self.file;
        if (known.device, known.inode) != numbers(metadata) || metadata.len() < self.place.offset {
            return Ok(false);
        }
        Ok(print(file, 0, known.head_len)? == known.head
            && print(file, self.print_start(), self.place.offset)? == known.tail)
    }

    fn take_prints(&mut self, file: &File) -> io::Result<()> {
        self.file.head_len = self.place.offset.min(PRINT as u64);
        self.file.head = print(file, 0, self.file.head_len)?;
        self.file.tail = print(file, self.print_start(), self.place.offset)?;
        Ok(())
    }

    fn print_start(&self) -> u64 {
        self.place.offset.saturating_sub(PRINT as u64)
    }

    /// The stored form, about 30 KB for a long session.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.0.extend_from_slice(&MAGIC);
        let file = self.file;
        for n in [self.place.offset, self.place.seen] {
            out.u64(n);
        }
        out.bool(self.place.in_given_up);
        for n in [file.device, file.inode, file.head_len, file.head, file.tail] {
            out.u64(n);
        }
        self.tally.write(&mut out);
        out.u64(hash(&out.0));
        out.0
    }

    /// Reads the stored form back. `None`: it is another version's, damaged or not one at all; measure
    /// again from the beginning.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        if hash(body) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut from = Reader(body.strip_prefix(&MAGIC)?);
        let place = Place { offset: from.u64()?, seen: from.u64()?, in_given_up: from.bool()? };
        let file = Identity {
            device: from.u64()?,
            inode: from.u64()?,
            head_len: from.u64()?.min(PRINT as u64),
            head: from.u64()?,
            tail: from.u64()?,
        };
        let tally = Tally::read(&mut from)?;
        from.0.is_empty().then_some(Self { place, file, tally })
    }
}

/// A hash of the file's bytes in `from..to`; 0 for none.
fn print(file: &File, from: u64, to: u64) -> io::Result<u64> {
    let mut bytes = [0; PRINT];
    let want = usize::try_from(to.saturating_sub(from)).unwrap_or(PRINT).min(PRINT);
    if want == 0 {
        return Ok(0);
    }
    let got = lines::read_full_at(file, &mut bytes[..want], from)?;
    Ok(hash(&bytes[..got]))
}

/// Device and inode; 0 where the system has none, and the prints alone decide.
fn numbers(metadata: &Metadata) -> (u64, u64) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (metadata.dev(), metadata.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        (0, 0)
    }
}
