//! One session's inbox, delivered.

use std::io;
use std::path::Path;

use super::deliver::{Delivery, Moment};
use super::heard::Heard;
use super::wording::notification;
use crate::base::id::SessionId;
use crate::host::stdout::{self, Waited};
use crate::host::stop::Stop;
use crate::store::Store;
use crate::store::inbox::{Event, Inbox};
use crate::store::lock::Held;

/// The inbox that is delivered from, and how far that has come.
pub struct Post {
    inbox: Inbox,
    delivery: Delivery,
    heard: Heard,
    /// The right to deliver, while there is anything to.
    right: Option<Held>,
}

impl Post {
    /// The inbox of the session that a client shows.
    pub fn open(store: &Store, session: &SessionId) -> io::Result<Self> {
        let mut inbox = store.inbox(session);
        inbox.reopen()?;
        Ok(Self { inbox, delivery: Delivery::default(), heard: Heard::default(), right: None })
    }

    /// The client shows another session.
    pub fn move_to(&mut self, store: &Store, session: &SessionId, moment: Moment) -> io::Result<()> {
        let mut inbox = store.inbox(session);
        inbox.refresh()?;
        self.delivery.adopt(inbox.unacknowledged(), moment);
        self.inbox = inbox;
        self.heard = Heard::default();
        self.right = None;
        Ok(())
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        self.inbox.session()
    }

    /// Whether anything is not acknowledged.
    pub fn has_open(&self) -> bool {
        self.inbox.unacknowledged().next().is_some()
    }

    /// The highest number that was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.inbox.acknowledged_up_to()
    }

    /// See [`Delivery::unheard`].
    pub fn unheard(&self) -> usize {
        self.delivery.unheard()
    }

    /// Whether this watcher is the one that delivers. One whose client listens to nothing lets go, for another
    /// client that shows the same session.
    fn may_deliver(&mut self) -> bool {
        if self.right.is_none() {
            match self.inbox.claim() {
                Ok(right) => self.right = right,
                // Without locks twice is better than never.
                Err(_) => return true,
            }
        }
        self.right.is_some()
    }

    /// Takes in what was acknowledged, and prints what is due.
    pub fn deliver(&mut self, config: &Path, moment: Moment, now_ms: i64, stop: &Stop) -> io::Result<Waited> {
        self.inbox.refresh()?;
        if !self.has_open() || !self.may_deliver() {
            self.right = self.right.take().filter(|_| self.has_open());
            self.delivery.look(moment, |_| false);
            return Ok(Waited::Passed);
        }
        if self.inbox.unacknowledged().any(|event| event.printed > 0) {
            let session = self.inbox.session().clone();
            let marks = self.heard.look(config, &session);
            if !marks.is_empty() {
                self.inbox.acknowledge_marks(&marks)?;
            }
        }
        let open: Vec<&Event> = self.inbox.unacknowledged().collect();
        self.delivery.look(moment, |number| open.binary_search_by_key(&number, |event| event.number).is_ok());
        if self.delivery.unheard() > 0 {
            self.right = None;
        }
        let due = self.delivery.due(open.iter().copied(), moment);
        let mut keep = |first, last, text: &str| self.inbox.keep_full_text(first, last, text).ok();
        let Some(notification) = notification(&open, &due, now_ms, &mut keep) else {
            return Ok(Waited::Passed);
        };
        // Noted first: what is lost in between is printed again, and says so.
        let noted = self.inbox.note_printed(&notification.numbers);
        self.delivery.printed(&notification.numbers, moment);
        let waited = stdout::say(&notification.text, stop);
        noted.map(|()| waited)
    }
}
