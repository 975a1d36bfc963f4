//! From an export to a child that has read it: the steps, each kept in the registry before the next begins, so
//! that whatever ends this program, `retry` goes on from there.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::ask::{self, Parent};
use super::export::{self, Done, Follow, Request, export};
use super::failure::Failure;
use super::name::name;
use super::turn::{Reader, Turns};
use crate::base::id::SessionId;
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

impl Work<'_> {
    /// Hands over: exports, and has the child read it where a time in seconds is given for that.
    pub fn hand_over(&mut self, order: &Order, timeout_s: Option<u64>) -> Result<Entry, Failure> {
        let (entry, _held) = self.prepare(order)?;
        match timeout_s {
            Some(seconds) => self.read(entry, seconds),
            None => Ok(entry),
        }
    }

    /// Exports the parent and keeps that in the registry.
    fn prepare(&mut self, order: &Order) -> Result<(Entry, Option<Held>), Failure> {
        let brief = order.brief.as_ref().map(|path| read_brief(path)).transpose()?;
        let known = self.known()?;
        let came_from = &order.parent.came_from;
        let ancestors = super::chain::ancestors(&known, &order.parent.session, came_from);
        let generation = ancestors.len() as u64 + 2;
        let dirs = ancestors.iter().map(|entry| entry.directory.clone()).collect();
        let request = Request {
            transcript: order.transcript.clone(),
            session: SessionId::parse(&order.parent.session),
            budget: order.budget,
            redact: order.redact,
            brief,
            ancestors: dirs,
            now_ms: self.host.now_ms(),
            ..Request::default()
        };
        let mut exporting = Exporting { work: self, order, generation, id: None, held: None };
        let done = export(&request, exporting.work.store, &mut exporting);
        let (begun, held) = (exporting.id.take(), exporting.held.take());
        let done = match (done, self.stop.asked(), begun) {
            (Err(export::Failed::Stopped), Some(signal), Some(id)) => {
                let failure = Failure::Stopped { id: id.clone(), signal };
                self.keep(&id, |entry| entry.state = State::Interrupted)?;
                return Err(failure);
            }
            (Err(error), _, begun) => {
                // Nothing is left of it: so there is nothing to go on with.
                if let Some(id) = begun {
                    self.change(|all| all.retain(|entry| entry.id != id))?;
                }
                return Err(error.into());
            }
            (Ok(done), ..) => done,
        };
        Ok((self.exported(order, generation, &done)?, held))
    }

    fn exported(&mut self, order: &Order, generation: u64, done: &Done) -> Result<Entry, Failure> {
        let now = self.host.now_ms();
        let title = done.title.clone();
        let entry = self.keep(&done.id, |entry| {
            entry.state = State::Prepared;
            entry.directory.clone_from(&done.dir);
            entry.name =
                order.name.clone().unwrap_or_else(|| name(title.as_deref().unwrap_or_default(), generation));
            entry.parent_name = title;
            entry.cwd = order.cwd.clone().or_else(|| done.cwd.clone());
            entry.times.exported = Some(now);
        })?;
        let parts = done.groups.iter().map(|group| group.parts.len()).sum();
        (self.tell)(Step::Exported(parts, done.budget.used));
        let (used, half) = (done.budget.used, order.wall / 2);
        if used <= half {
            return Ok(entry);
        }
        // Words of the person never give way; decisions do, where the budget says so.
        let fix = if order.budget > half {
            format!("--budget {} may do, or --model with a larger window", half.min(order.wall / 4))
        } else {
            format!("--model with a wall of {} tokens or more would do", used.saturating_mul(2))
        };
        Err(self.failed(&done.id, Failure::TooLarge { used, wall: order.wall, fix }))
    }

    /// Has the child read it, or go on reading.
    fn read(&mut self, entry: Entry, timeout_s: u64) -> Result<Entry, Failure> {
        let id = entry.id.clone();
        let deadline = Deadline::after_ms(timeout_s.saturating_mul(1_000));
        let read = Reader::open(self.store, &entry)
            .and_then(|reader| Turns { work: self, reader, deadline, timeout_s }.run(entry));
        read.map_err(|failure| self.failed(&id, failure))
    }

    /// Goes on with a handoff where it ended: with the export, or with the reading.
    pub fn retry(&mut self, id: &str, timeout_s: u64) -> Result<Entry, Failure> {
        let entry = self.entry(id)?;
        if entry.state == State::Accepted {
            return Ok(entry);
        }
        let Some(held) = self.store.hold_export(id)? else { return Err(Failure::Busy(id.to_owned())) };
        let entry = self.keep(id, |entry| {
            entry.retries += 1;
            entry.failure = None;
        })?;
        if entry.times.exported.is_some() {
            return self.read(entry, timeout_s);
        }
        // The export never came about: it is made anew.
        drop(held);
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
        let (made, _held) = self.prepare(&order)?;
        self.change(|all| all.retain(|entry| entry.id != id || made.id == id))?;
        let made = self.keep(&made.id, |new| new.retries = entry.retries)?;
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

    /// Changes one entry and gives it as it is then.
    pub(super) fn keep(&mut self, id: &str, change: impl FnOnce(&mut Entry)) -> Result<Entry, Failure> {
        let kept = self.change(|all| {
            let entry = all.iter_mut().find(|entry| entry.id == id)?;
            change(entry);
            Some(entry.clone())
        })?;
        kept.ok_or_else(|| Failure::Unknown(id.to_owned()))
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Vec<Entry>) -> T) -> Result<T, Failure> {
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
    fn failed(&mut self, id: &str, failure: Failure) -> Failure {
        let now = self.host.now_ms();
        let state = match &failure {
            Failure::Stopped { .. } => State::Interrupted,
            Failure::Partial { .. } => State::Partial,
            Failure::Busy(_) | Failure::Unknown(_) => return failure,
            _ => State::Failed,
        };
        let told = chains::Failure { kind: failure.kind().to_owned(), message: failure.to_string() };
        // Where even that cannot be kept, the first failure is the one to tell.
        let _ = self.keep(id, |entry| {
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

/// Follows the export: registers it when it has an id, and stops it when that is asked.
struct Exporting<'a, 'b> {
    work: &'a mut Work<'b>,
    order: &'a Order,
    generation: u64,
    id: Option<String>,
    held: Option<Held>,
}

impl Follow for Exporting<'_, '_> {
    fn begun(&mut self, id: &str, dir: &Path) -> io::Result<()> {
        let order = self.order;
        let entry = Entry {
            id: id.to_owned(),
            state: State::Exporting,
            parent: order.parent.clone(),
            child: None,
            generation: self.generation,
            parent_name: None,
            name: order.name.clone().unwrap_or_default(),
            directory: dir.to_path_buf(),
            transcript: order.transcript.clone(),
            cwd: order.cwd.clone(),
            model: order.model.clone(),
            wall: order.wall,
            budget: order.budget,
            brief: order.brief.clone(),
            redact: order.redact,
            weight: order.weight.clone(),
            proof: None,
            outlook: None,
            times: chains::Times { began: self.work.host.now_ms(), ..chains::Times::default() },
            client_version: None,
            retries: 0,
            ids_in_use: Vec::new(),
            failure: None,
            rest: serde_json::Map::new(),
        };
        self.id = Some(id.to_owned());
        self.held = self.work.store.hold_export(id)?;
        self.work.change(|all| all.push(entry)).map_err(io::Error::other)
    }

    fn at(&mut self, share: u64) -> ControlFlow<()> {
        (self.work.tell)(Step::Exporting(share));
        if self.work.stop.asked().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn read_brief(path: &Path) -> Result<String, Failure> {
    let unread = |error| Failure::Brief { path: path.to_path_buf(), error };
    let bytes = files::read_small(path, BRIEF_MOST).map_err(unread)?;
    String::from_utf8(bytes).map_err(|error| unread(io::Error::new(io::ErrorKind::InvalidData, error)))
}
