//! A session's inbox goes on in another session's.

use std::io;

use super::log::{Event, Log};
use super::{Inbox, PATIENCE_MS, Record, Store, ranges};
use crate::base::id::SessionId;

impl Store {
    /// Moves what `from` was not told to the session that goes on in its place, and sends there what comes later.
    /// Done twice it is done once.
    pub fn carry_inbox(&self, from: &SessionId, to: &SessionId) -> io::Result<()> {
        self.carry_inbox_within(from, to, PATIENCE_MS)
    }

    /// The same, where whoever writes to one of them is waited for this long, in ms.
    pub fn carry_inbox_within(&self, from: &SessionId, to: &SessionId, patience_ms: u64) -> io::Result<()> {
        if from == to {
            return Ok(());
        }
        let open = |session| self.inbox_within(session, patience_ms);
        let (mut old, mut new) = (open(from), open(to));
        // Always in the same order, so that two of these never wait for each other.
        let (_first, _second);
        if from < to {
            _first = old.hold()?;
            _second = new.hold()?;
        } else {
            _first = new.hold()?;
            _second = old.hold()?;
        }
        // The way back is closed, or it would be a circle.
        new.reopen_held()?;
        let left: Vec<Event> = old.unacknowledged().cloned().collect();
        new.take_over(&left, &old.log)?;
        let moved = ranges(left.iter().map(|event| event.number));
        if old.log.to.as_ref() == Some(to) && moved.is_empty() {
            return Ok(());
        }
        old.write(&[Record::To { session: Some(to.to_string()), moved }], true)
    }
}

impl Inbox {
    /// A client shows this session again: what comes is its own.
    pub fn reopen(&mut self) -> io::Result<()> {
        self.refresh()?;
        if self.log.to.is_none() {
            return Ok(());
        }
        let _held = self.hold()?;
        self.reopen_held()
    }

    fn reopen_held(&mut self) -> io::Result<()> {
        if self.log.to.is_none() {
            Ok(())
        } else {
            self.write(&[Record::To { session: None, moved: Vec::new() }], true)
        }
    }

    /// Takes events of another inbox, under the numbers that they have there where those are free: a line that is
    /// on its way keeps its meaning then.
    fn take_over(&mut self, left: &[Event], theirs: &Log) -> io::Result<()> {
        let fresh: Vec<&Event> = left.iter().filter(|event| self.log.taken(&event.id).is_none()).collect();
        let free = fresh.first().is_none_or(|event| event.number >= self.log.next);
        let mut next = self.log.next;
        let mut records = Vec::new();
        for event in fresh {
            let number = if free { event.number } else { next };
            next = number.saturating_add(1);
            records.push(Record::Event(Event { number, ..event.clone() }));
        }
        // A number that the session before has given out says nothing else here, and what it was told is known.
        let (next, seen) = (next.max(theirs.next), theirs.done());
        if next > self.log.next || !seen.is_empty() {
            records.push(Record::head(next, seen));
        }
        self.write(&records, true)
    }
}
