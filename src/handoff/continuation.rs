//! From an export to a child that has read it: the steps, each kept in the registry before the next begins, so
//! that whatever ends this program, `retry` goes on from there.

use std::io;
use std::path::{Path, PathBuf};

use super::ancestor::Ancestor;
use super::ask::{self, Parent};
use super::export::{self, Done, Request, export};
use super::exporting::Exporting;
use super::failure::Failure;
use super::reader::Reader;
use super::turn::Turns;
use crate::base::id::SessionId;
use crate::client::models::LARGE_WINDOW;
use crate::host::clock::Deadline;
use crate::host::stop::Stop;
use crate::host::{Host, files};
use crate::store::Store;
use crate::store::chains::{self, Entry, Link, State, Weight};
use crate::store::lock::Held;

/// A brief longer than this is none, in bytes.
const BRIEF_MOST: u64 = 1 << 20;

/// What is handed over, to whom.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// The parent.
    pub parent: Link,
    /// Its transcript.
    pub transcript: PathBuf,
    /// Where it was started, where that is known better than by its transcript.
    pub cwd: Option<PathBuf>,
    /// The child's model; the client's usual one where it is not given.
    pub model: Option<String>,
    /// The child's wall in tokens.
    pub wall: u64,
    /// What the parts may come to, in tokens.
    pub budget: u64,
    /// A file with the brief.
    pub brief: Option<PathBuf>,
    /// The child's name, where the parent's is not continued.
    pub name: Option<String>,
    /// Mask credentials.
    pub redact: bool,
    /// How heavy the parent is.
    pub weight: Option<Weight>,
}

/// What is done with it.
pub struct Work<'a> {
    /// The machine.
    pub host: &'a Host,
    /// longhaul's files.
    pub store: &'a Store,
    /// Whether to stop.
    pub stop: &'a Stop,
    /// Who hears how far it is.
    pub tell: &'a mut dyn FnMut(Step),
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// So many thousandths of the export are done.
    Exporting(u64),
    /// The export is there, with so many parts to read and so many tokens in them.
    Exported(usize, u64),
    /// The child is asked, in its n-th turn.
    Asked(u64),
    /// It has read so many parts of so many.
    Read(usize, usize),
    /// Something worth knowing.
    Note(String),
}

/// What comes after the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing: the export was what is wanted.
    Nothing,
    /// A child may read it later.
    ReadLater,
    /// A child reads it, within so many seconds.
    Read(u64),
}

impl Work<'_> {
    /// Hands over: exports, and has the child read it.
    pub fn hand_over(&mut self, order: &Order, then: Then) -> Result<Entry, Failure> {
        let (entry, _held) = self.prepare(order, None)?;
        match then {
            Then::Read(seconds) => self.read(entry, seconds),
            Then::ReadLater => self.opened(&entry).map(|_| entry),
            Then::Nothing => {
                if let Some(failure) = too_large(&entry, self.tokens(&entry)) {
                    self.note(Some(failure.to_string()));
                }
                Ok(entry)
            }
        }
    }

    /// Exports the parent and keeps that in the registry, under the entry of an attempt that came to no export
    /// where there was one.
    fn prepare(
        &mut self,
        order: &Order,
        again: Option<(Entry, Held)>,
    ) -> Result<(Entry, Option<Held>), Failure> {
        let brief = match order.brief.as_ref().map(|path| read_brief(path)).transpose() {
            Ok(brief) => brief,
            Err(failure) => return Err(self.failed_again(again, failure)),
        };
        let known = self.known()?;
        let came_from = &order.parent.came_from;
        let ancestors = super::chain::ancestors(&known, &order.parent.session, came_from);
        let generation = ancestors.len() as u64 + 2;
        let ancestors = ancestors.iter().map(|entry| Ancestor::of(self.store, entry)).collect();
        let request = Request {
            transcript: order.transcript.clone(),
            session: SessionId::parse(&order.parent.session),
            id: again.as_ref().map(|(entry, _)| entry.id.clone()),
            budget: order.budget,
            redact: order.redact,
            brief,
            ancestors,
            now_ms: self.host.now_ms(),
            ..Request::default()
        };
        let store = self.store;
        let mut exporting = Exporting { work: self, order, generation, again, begun: None };
        let done = export(&request, store, &mut exporting);
        let (begun, again) = (exporting.begun.take(), exporting.again.take());
        match (done, begun) {
            (Ok(done), Some((entry, held))) => Ok((self.exported(&entry, &done)?, held)),
            (Ok(done), None) => Err(Failure::Unknown(done.id)),
            (Err(export::Failed::Stopped), Some((entry, _held))) => {
                let (id, signal) = (entry.id.clone(), self.stop.asked().unwrap_or_default());
                Err(self.failed(&entry, Failure::Stopped { id, signal }))
            }
            (Err(error), Some((entry, held))) if entry.retries == 0 => {
                // Nothing is left of it: so there is nothing to go on with. Where even that cannot be kept, the
                // first failure is the one to tell.
                let _ = self.change(|all| all.retain(|have| have.id != entry.id));
                if let Some(held) = held {
                    let _ = store.release_export(&entry.id, held);
                }
                Err(error.into())
            }
            (Err(error), Some((entry, _held))) => {
                let _ = self.keep(&entry, |entry| entry.times.exported = None);
                Err(self.failed(&entry, error.into()))
            }
            (Err(error), None) => Err(self.failed_again(again, error.into())),
        }
    }

    /// Keeps with the attempt before, where there was one, why this one came to nothing.
    fn failed_again(&mut self, again: Option<(Entry, Held)>, failure: Failure) -> Failure {
        match again {
            Some((entry, _held)) => self.failed(&entry, failure),
            None => failure,
        }
    }

    fn exported(&mut self, entry: &Entry, done: &Done) -> Result<Entry, Failure> {
        let entry = self.keep(entry, |entry| entry.state = State::Prepared)?;
        let parts = done.groups.iter().map(|group| group.parts.len()).sum();
        (self.tell)(Step::Exported(parts, done.budget.used));
        Ok(entry)
    }

    /// Has the child read it, or go on reading.
    fn read(&mut self, entry: Entry, timeout_s: u64) -> Result<Entry, Failure> {
        let deadline = Deadline::after_ms(timeout_s.saturating_mul(1_000));
        let reader = self.opened(&entry)?;
        let begun = entry.clone();
        let read = Turns { work: self, reader, deadline, timeout_s }.run(entry);
        read.map_err(|failure| self.failed(&begun, failure))
    }

    /// The parts of an export, where they are whole and not too many for the child.
    fn opened(&mut self, entry: &Entry) -> Result<Reader, Failure> {
        let opened = Reader::open(self.store, entry);
        let fits = opened.and_then(|reader| too_large(entry, reader.tokens).map_or(Ok(reader), Err));
        fits.map_err(|failure| self.failed(entry, failure))
    }

    fn tokens(&self, entry: &Entry) -> u64 {
        Reader::open(self.store, entry).map_or(0, |reader| reader.tokens)
    }

    /// Goes on with a handoff where it ended: with the export, or with the reading.
    pub fn retry(&mut self, id: &str, timeout_s: u64) -> Result<Entry, Failure> {
        let accepted = |entry: &Entry| entry.state == State::Accepted;
        let entry = self.entry(id)?;
        if accepted(&entry) {
            return Ok(entry);
        }
        let Some(held) = self.store.hold_export(id)? else { return Err(Failure::Busy(id.to_owned())) };
        // Somebody else may have gone on with it until now.
        let entry = self.entry(id)?;
        if accepted(&entry) {
            return Ok(entry);
        }
        let entry = self.keep(&entry, |entry| {
            entry.retries += 1;
            entry.failure = None;
        })?;
        // While it is being exported, it is there as soon as it has its name.
        let named = self.store.export_dir(id).is_some_and(|dir| dir.is_dir());
        if entry.times.exported.is_some() && (entry.state != State::Exporting || named) {
            return self.read(entry, timeout_s);
        }
        // The export never came about: it is made anew.
        self.store.forget_begun(id, &held)?;
        let order = Order {
            parent: entry.parent.clone(),
            transcript: entry.transcript.clone(),
            cwd: entry.cwd.clone(),
            model: entry.model.clone(),
            wall: entry.wall,
            budget: entry.budget,
            brief: entry.brief.clone(),
            name: Some(entry.name.clone()).filter(|name| !name.is_empty()),
            redact: entry.redact,
            weight: entry.weight.clone(),
        };
        let (made, _held) = self.prepare(&order, Some((entry, held)))?;
        self.read(made, timeout_s)
    }

    /// All entries; what there is to say of the file is told.
    fn known(&mut self) -> Result<Vec<Entry>, Failure> {
        let loaded = self.store.chains()?;
        self.note(loaded.warning);
        Ok(loaded.entries)
    }

    /// One entry.
    pub fn entry(&mut self, id: &str) -> Result<Entry, Failure> {
        let found = self.known()?.into_iter().find(|entry| entry.id == id);
        found.ok_or_else(|| Failure::Unknown(id.to_owned()))
    }

    /// Changes one entry and gives it as it is then. One that is not there any more, since somebody broke the
    /// file, is there again: who works on it knows it.
    pub(super) fn keep(&mut self, entry: &Entry, change: impl FnOnce(&mut Entry)) -> Result<Entry, Failure> {
        self.change(|all| {
            let at = all.iter().position(|have| have.id == entry.id).unwrap_or_else(|| {
                all.push(entry.clone());
                all.len() - 1
            });
            change(&mut all[at]);
            all[at].clone()
        })
    }

    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut Vec<Entry>) -> T) -> Result<T, Failure> {
        let (result, warning) = self.store.change_chains(change)?;
        self.note(warning);
        Ok(result)
    }

    pub(super) fn note(&mut self, note: Option<String>) {
        if let Some(note) = note {
            (self.tell)(Step::Note(note));
        }
    }

    /// Keeps why it failed, and hands that on.
    fn failed(&mut self, entry: &Entry, failure: Failure) -> Failure {
        let now = self.host.now_ms();
        let state = match &failure {
            Failure::Stopped { .. } => State::Interrupted,
            Failure::Partial { .. } => State::Partial,
            Failure::Busy(_) | Failure::Unknown(_) => return failure,
            _ => State::Failed,
        };
        let told = chains::Failure { kind: failure.kind().to_owned(), message: failure.to_string() };
        // Where even that cannot be kept, the first failure is the one to tell.
        let _ = self.keep(entry, |entry| {
            entry.state = state;
            entry.failure = Some(told);
            entry.times.ended = Some(now);
        });
        failure
    }
}

/// What the first prompt needs of an entry.
pub(super) fn parent(entry: &Entry) -> Parent<'_> {
    ask::Parent { session: &entry.parent.session, title: entry.parent_name.as_deref() }
}

/// Why a child is not asked to read so many tokens, where it is not: they come to more than half of its wall.
fn too_large(entry: &Entry, used: u64) -> Option<Failure> {
    let half = entry.wall / 2;
    if used <= half || half == 0 {
        return None;
    }
    // Words of the person never give way; decisions do, where the budget says so.
    let fix = if entry.budget > half {
        format!(
            "hand over again with --budget {}, or with --model and a larger window",
            half.min(entry.wall / 4)
        )
    } else if used > LARGE_WINDOW / 2 {
        format!(
            "no known model has a wall for that: begin a new session, and have it search the export {}",
            entry.directory.display()
        )
    } else {
        format!("hand over again with --model and a wall of {} tokens or more", used.saturating_mul(2))
    };
    Some(Failure::TooLarge { used, wall: entry.wall, fix })
}

fn read_brief(path: &Path) -> Result<String, Failure> {
    let unread = |error| Failure::Brief { path: path.to_path_buf(), error };
    let odd = |what: String| unread(io::Error::new(io::ErrorKind::InvalidData, what));
    if path.to_str().is_none() {
        return Err(odd("its name is not UTF-8, which the list of handoffs cannot hold".to_owned()));
    }
    let bytes = files::read_small(path, BRIEF_MOST).map_err(unread)?;
    String::from_utf8(bytes).map_err(|error| odd(format!("it is not UTF-8: {error}")))
}
