//! `<state>/inbox/<session>/`: what a session is still to be told. No event is lost, none out of order.
//!
//! A log that is only added to: events with their numbers, which of them were printed, which acknowledged. An
//! event is on the disk before its number is given out. One writer at a time, by a lock; readers need none. Once
//! most of it is done with, the log is written anew without that. What cannot be read is set aside beside it.
//!
//! A session goes on in another one after `/clear` and `/resume`: what is left moves there, and what comes later
//! follows.

mod carry;
mod log;
mod mark;
mod prune;
mod rotate;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;

pub use self::log::{Event, ranges};
use self::log::{Log, Record};
pub use self::mark::Mark;
use super::lock::{Held, hold_for, try_hold};
use super::{Store, atomic, keys};
use crate::base::id::SessionId;
use crate::host::files;

/// How long another writer is waited for, in ms.
const PATIENCE_MS: u64 = 2_000;
/// The same by a hook, in which everybody waits.
pub const HOOK_MS: u64 = 100;
/// A session is followed to its successor at most this often.
const HOPS: usize = 16;
/// A log larger than this is not ours, in bytes.
const MOST: u64 = 256 << 20;
/// From this size on a log takes no more events, in bytes: whoever has one keeps it until the session was told what
/// waits here. For what acknowledges them there is always room.
const FULL: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Directory of the inboxes.
const DIR: &str = "inbox";

/// Something that a session is to be told.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// Where it came from, as the session is told: `watch 3 build.log`.
    pub source: &'a str,
    /// The same event has the same id, and is taken once.
    pub id: &'a str,
    /// What there is to say. Any text: it is made harmless where it is printed.
    pub text: &'a str,
    /// When it happened, epoch milliseconds.
    pub at_ms: i64,
}

/// A session's inbox. It remembers how far it has read, so that one that is kept is cheap to ask again.
#[derive(Debug)]
pub struct Inbox {
    store: Store,
    session: SessionId,
    dir: PathBuf,
    /// Held open, so that another file under its name is seen to be another one.
    file: Option<File>,
    log: Log,
    successor: Option<Box<Inbox>>,
    patience_ms: u64,
}

impl Store {
    /// The inbox of a session. Nothing is read or written yet.
    pub fn inbox(&self, session: &SessionId) -> Inbox {
        self.inbox_within(session, PATIENCE_MS)
    }

    /// The same, where whoever writes is waited for this long, in ms.
    pub fn inbox_within(&self, session: &SessionId, patience_ms: u64) -> Inbox {
        Inbox {
            patience_ms,
            store: self.clone(),
            session: session.clone(),
            dir: self.dir().join(DIR).join(session.as_str()),
            file: None,
            log: Log::default(),
            successor: None,
        }
    }
}

impl Inbox {
    /// The session that it is of.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Whether anything was ever put here.
    pub fn exists(&self) -> bool {
        self.path().is_file()
    }

    /// Takes one event and gives its number. It is on the disk then.
    pub fn append(&mut self, new: &New) -> io::Result<u64> {
        let numbers = self.append_all(std::slice::from_ref(new))?;
        numbers.first().copied().ok_or_else(|| io::Error::other("an event got no number"))
    }

    /// Takes several at once, in their order, and gives their numbers. What was taken before keeps the number that
    /// it has; 0 where it was done with long ago. A session that went on in another one takes nothing more: its
    /// successor does, and the numbers are that one's.
    pub fn append_all(&mut self, new: &[New]) -> io::Result<Vec<u64>> {
        let mut at = self;
        for _ in 0..HOPS {
            let held = at.hold()?;
            let Some(to) = at.log.to.clone() else { return at.append_held(new) };
            drop(held);
            if at.successor.as_ref().is_none_or(|successor| successor.session != to) {
                at.successor = Some(Box::new(at.store.inbox_within(&to, at.patience_ms)));
            }
            at = at.successor.as_deref_mut().ok_or_else(|| io::Error::other("no successor"))?;
        }
        Err(io::Error::other(format!("the session {} goes on in a circle", at.session)))
    }

    fn append_held(&mut self, new: &[New]) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::with_capacity(new.len());
        let mut records = Vec::with_capacity(new.len());
        let mut fresh: HashMap<&str, u64> = HashMap::new();
        let mut next = self.log.next;
        for one in new {
            if let Some(number) = fresh.get(one.id).copied().or_else(|| self.log.taken(one.id)) {
                numbers.push(number);
                continue;
            }
            records.push(Record::Event(Event::new(&self.session, next, one)));
            fresh.insert(one.id, next);
            numbers.push(next);
            next += 1;
        }
        if !records.is_empty() && self.log.read_to >= FULL {
            return Err(io::Error::other(format!(
                "{} is full: {} events wait until a watcher or longhaul watch wait tells session {}",
                self.path().display(),
                self.log.left.len(),
                self.session
            )));
        }
        self.write(&records, true)?;
        Ok(numbers)
    }

    /// Reads on. Whether there was anything new.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let meta = match std::fs::metadata(self.path()) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.log = Log::default();
                return Ok(self.file.take().is_some());
            }
            Err(error) => return Err(error),
        };
        let known = self.file.as_ref().and_then(|file| file.metadata().ok());
        if known.is_some_and(|known| keys::is_same(&known, &meta) && meta.len() >= self.log.read_to) {
            if meta.len() == self.log.read_to {
                return Ok(false);
            }
        } else {
            self.log = Log::default();
            self.file = Some(files::open_regular(&self.path())?);
        }
        let Some(mut file) = self.file.as_ref() else { return Ok(false) };
        if meta.len() > MOST {
            return Err(io::Error::other(format!("{} is larger than {MOST} bytes", self.path().display())));
        }
        let mut bytes = Vec::new();
        file.seek(io::SeekFrom::Start(self.log.read_to))?;
        file.take(MOST).read_to_end(&mut bytes)?;
        self.log.read(&bytes);
        if self.log.is_of_a_later_version {
            let path = self.path();
            return Err(io::Error::other(format!(
                "{} is of a later version: update longhaul",
                path.display()
            )));
        }
        Ok(true)
    }

    /// What is not acknowledged, as of the last look, in order.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Event> {
        self.log.left.values()
    }

    /// The highest number that was ever acknowledged, as of the last look; 0 where none was.
    pub fn acknowledged_up_to(&self) -> u64 {
        self.log.acknowledged
    }

    /// Takes what is acknowledged off. Gives the numbers that were still open.
    pub fn acknowledge(&mut self, numbers: &[u64]) -> io::Result<Vec<u64>> {
        let numbers: HashSet<u64> = numbers.iter().copied().collect();
        self.acknowledge_those(|event| numbers.contains(&event.number))
    }

    /// The same by the marks of printed lines, which nobody can make up.
    pub fn acknowledge_marks(&mut self, marks: &[Mark]) -> io::Result<Vec<u64>> {
        self.refresh()?;
        let whole: Vec<&Mark> = marks.iter().filter(|mark| self.log.knows(mark)).collect();
        let numbers: Vec<(u64, u64)> = whole.iter().map(|mark| mark.numbers()).collect();
        self.acknowledge_those(|event| {
            numbers.iter().any(|(first, last)| (*first..=*last).contains(&event.number))
        })
    }

    fn acknowledge_those(&mut self, is_meant: impl Fn(&Event) -> bool) -> io::Result<Vec<u64>> {
        self.refresh()?;
        if !self.log.left.values().any(&is_meant) {
            return Ok(Vec::new());
        }
        let _held = self.hold()?;
        let numbers: Vec<u64> =
            self.unacknowledged().filter(|event| is_meant(event)).map(|e| e.number).collect();
        self.write(&[Record::Ack { numbers: ranges(numbers.iter().copied()) }], false)?;
        Ok(numbers)
    }

    /// Remembers that these are about to be printed: what is printed again is to say so.
    pub fn note_printed(&mut self, numbers: &[u64]) -> io::Result<()> {
        let _held = self.hold()?;
        self.write(&[Record::Out { numbers: ranges(numbers.iter().copied()) }], false)
    }

    /// Takes the right to deliver from here, where nobody has it: two clients may show the same session. An error
    /// is a file system that knows no locks.
    pub fn claim(&self) -> io::Result<Option<Held>> {
        let path = self.dir.join("reader");
        let file = atomic::private().write(true).create(true).truncate(false).open(path)?.into_parts().0;
        Ok(try_hold(file)?.ok())
    }

    /// Keeps a text beside the log that is too long for a line, and says where.
    pub fn keep_full_text(&self, first: u64, last: u64, text: &str) -> io::Result<PathBuf> {
        let path = self.dir.join(format!("{first}-{last}.txt"));
        atomic::replace(&path, text.as_bytes(), false)?;
        Ok(path)
    }

    fn path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The right to write, with all that was written before read.
    fn hold(&mut self) -> io::Result<Held> {
        self.store.make_dir(DIR)?;
        atomic::make_private(&self.dir)?;
        let held = hold_for(&self.dir.join("lock"), self.patience_ms)?;
        self.refresh()?;
        self.mend()?;
        Ok(held)
    }

    /// Adds to the log. Only who holds the lock and has read all may.
    fn write(&mut self, records: &[Record], durable: bool) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if !self.exists() {
            bytes = log::line(&Record::head(self.log.next, Vec::new()))?;
        }
        for record in records {
            bytes.extend(log::line(record)?);
        }
        atomic::append_whole(&self.path(), &bytes, durable)?;
        self.refresh()?;
        self.rotate_when_due()
    }
}
