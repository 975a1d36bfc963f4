//! Logs written anew: without what is done with, and without what cannot be read, which is set aside and named.

use std::io;

use super::log::Event;
use super::{FULL, Inbox, New, Record, atomic, log};

/// A log is written anew from this size on, in bytes, and when that halves it.
const DUE: u64 = 128 << 10;
/// One with more events than this only once it is large: each time takes long.
const MANY: usize = 10_000;

impl Inbox {
    /// Sets aside what cannot be read. A line that is not whole was never answered for; a whole one was, so the
    /// session is told that there was something.
    pub(super) fn mend(&mut self) -> io::Result<()> {
        if self.log.damaged.is_empty() && self.log.torn.is_empty() {
            return Ok(());
        }
        let path = self.dir.join("damaged");
        let whole = self.log.damaged.len();
        let mut aside: Vec<u8> = Vec::new();
        for line in self.log.damaged.iter().chain(Some(&self.log.torn).filter(|torn| !torn.is_empty())) {
            aside.extend_from_slice(line);
            aside.push(b'\n');
        }
        atomic::append_whole(&path, &aside, true)?;
        let mut bytes = self.log.anew()?;
        if whole > 0 {
            let text = format!(
                "{whole} entries of this session's inbox could not be read and lie in {} now; what they said may \
                 be missing",
                path.display()
            );
            let at_ms = self.log.left.values().map(|event| event.at_ms).max().unwrap_or(0);
            let id = format!("damaged before {}", self.log.next);
            let new = New { source: "longhaul's inbox", id: &id, text: &text, at_ms };
            bytes.extend(log::line(&Record::Event(Event::new(&self.session, self.log.next, &new)))?);
        }
        self.put(&bytes)
    }

    pub(super) fn rotate_when_due(&mut self) -> io::Result<()> {
        if self.log.read_to < DUE || (self.log.left.len() > MANY && self.log.read_to < FULL / 2) {
            return Ok(());
        }
        let left: usize = self.log.left.values().map(|event| event.text.len() + event.id.len() + 200).sum();
        if (left as u64) < self.log.read_to / 2 { self.put(&self.log.anew()?) } else { Ok(()) }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if cfg!(windows) {
            // A file that is open is not replaced there.
            self.file = None;
        }
        atomic::replace(&self.path(), bytes, true)?;
        self.refresh().map(drop)
    }
}
