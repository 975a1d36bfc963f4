//! `<state>/watches.json`: what is watched, for whom; and `<state>/watches/`: how far each watch has come.
//!
//! Definitions are written under one lock and replaced whole. A watch's own place, what it told and its lock lie
//! in files named after its number, which no other watch is ever given. A file that cannot be read is set aside
//! under another name; one of a later version is left alone. Members that this version does not know are kept.

mod kept;
mod path;
mod place;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lock::{Held, hold_for};
use super::version::{later, too_new};
use super::{Store, atomic};
use crate::host::files;

pub use self::kept::Told;
pub use self::place::{FilePlace, Inside, Mark, Note, Place, Progress, RunPlace, Window};

/// How a file of this version says so.
pub(super) const VERSION: u64 = 1;
/// A list of watches larger than this is not ours, in bytes.
const MOST: u64 = 16 << 20;
/// How long another writer is waited for, in ms.
const PATIENCE_MS: u64 = 5_000;
/// A larger number was never given out.
const NUMBER_MOST: u64 = 1 << 53;

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Subject {
    /// Lines that a file gets.
    File {
        /// Absolute; a link in its last part is followed at every look.
        #[serde(with = "self::path")]
        path: PathBuf,
        /// Lines that it had already count too.
        #[serde(default)]
        from_start: bool,
    },
    /// Lines of a command that goes on, started again when it ends.
    Stream {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A command whose output is compared from run to run.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// From one start to the next, ms.
        every_ms: i64,
        /// A run is ended after so long, ms.
        timeout_ms: i64,
    },
    /// A process that will end.
    Process {
        /// Its number.
        pid: u32,
        /// When it started, as the system counts it.
        start: Option<String>,
    },
    /// A moment that will come.
    After {
        /// Epoch milliseconds.
        due_ms: i64,
        /// What to say then.
        text: String,
    },
    /// Sessions that stall, wait or die.
    Sessions,
}

/// What a watch lasts with, and where it goes when its maker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Any session of the project may run it.
    Project,
    /// Its own session alone.
    Session,
}

/// Whether a watch is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// At work, or waiting for a session that runs it.
    Active,
    /// Held until it is resumed.
    Paused,
    /// Done with.
    Ended,
}

/// The session that made a watch, and its client's process. Both follow it through /clear and resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maker {
    /// The session's id now; `None` where no session made it.
    pub session: Option<String>,
    /// The client's process number.
    pub pid: Option<u32>,
    /// That process's start time as the system counts it.
    pub start: Option<String>,
    /// Which numbering the process number is of, in a container another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_space: Option<String>,
}

/// One watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Its number, which stays its own.
    pub number: u64,
    /// How it is called.
    #[serde(default)]
    pub name: Option<String>,
    /// What is watched.
    pub subject: Subject,
    /// What it lasts with.
    pub bound: Bound,
    /// Whether it is at work.
    pub state: State,
    /// Whose it is.
    #[serde(default)]
    pub maker: Maker,
    /// Made from within a session, by the model as far as anybody can tell.
    #[serde(default)]
    pub by_model: bool,
    /// A person said that it may outlive its client.
    #[serde(default)]
    pub kept: bool,
    /// The project, by its directory.
    #[serde(with = "self::path")]
    pub project: PathBuf,
    /// Where commands run.
    #[serde(with = "self::path")]
    pub directory: PathBuf,
    /// Only lines that match this count.
    #[serde(default)]
    pub matching: Option<String>,
    /// It ends once something matches this.
    #[serde(default)]
    pub until: Option<String>,
    /// It ends with the first thing that it tells.
    #[serde(default)]
    pub once: bool,
    /// It ends then, epoch milliseconds.
    #[serde(default)]
    pub until_ms: Option<i64>,
    /// So many times an hour it speaks at once; the rest is summed up.
    pub most: u64,
    /// When it was made, epoch milliseconds.
    pub made_ms: i64,
    /// When and why it ended.
    #[serde(default)]
    pub ended: Option<Ended>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The end of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Epoch milliseconds.
    pub at_ms: i64,
    /// A few words.
    pub why: String,
}

impl Watch {
    /// Whether it starts programs.
    pub fn runs_commands(&self) -> bool {
        matches!(self.subject, Subject::Stream { .. } | Subject::Command { .. })
    }

    /// Whether it may run only as long as the client in which the model made it.
    pub fn is_unconfirmed(&self) -> bool {
        self.by_model && !self.kept && self.runs_commands()
    }

    /// Ends it.
    pub fn end(&mut self, at_ms: i64, why: &str) {
        if self.state != State::Ended {
            self.state = State::Ended;
            self.ended = Some(Ended { at_ms, why: why.to_owned() });
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Table {
    version: u64,
    /// The number that the next watch gets.
    next: u64,
    watches: Vec<Watch>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// All watches, and where a file that could not be read was put.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order of their numbers.
    pub watches: Vec<Watch>,
    /// A sentence about a file that was set aside.
    pub warning: Option<String>,
}

/// The watches while nobody else changes them.
#[derive(Debug)]
pub struct Watches<'a> {
    next: &'a mut u64,
    /// In the order of their numbers.
    pub all: &'a mut Vec<Watch>,
}

impl Watches<'_> {
    /// Adds one, and gives the number that it got.
    pub fn add(&mut self, watch: Watch) -> u64 {
        let number = *self.next;
        *self.next += 1;
        self.all.push(Watch { number, ..watch });
        number
    }

    /// The one of this number.
    pub fn get(&mut self, number: u64) -> Option<&mut Watch> {
        self.all.iter_mut().find(|watch| watch.number == number)
    }
}

impl Store {
    /// Every watch that is known.
    pub fn watches(&self) -> io::Result<Loaded> {
        if !self.watch_table().exists() {
            return Ok(Loaded::default());
        }
        // The file is replaced whole: only one that is damaged needs the lock, to be set aside.
        if let Ok(Ok(table)) = read(&self.watch_table()) {
            return Ok(Loaded { watches: table.watches, warning: None });
        }
        let _held = self.hold_watches()?;
        let (table, warning) = self.read_watches()?;
        Ok(Loaded { watches: table.watches, warning })
    }

    /// Changes the watches; nobody else does meanwhile. Nothing is written where nothing changed.
    pub fn change_watches<T>(
        &self,
        change: impl FnOnce(&mut Watches) -> T,
    ) -> io::Result<(T, Option<String>)> {
        atomic::make_private(self.dir())?;
        let _held = self.hold_watches()?;
        let (mut table, warning) = self.read_watches()?;
        let before = (table.next, table.watches.clone());
        let result = change(&mut Watches { next: &mut table.next, all: &mut table.watches });
        if (table.next, &table.watches) != (before.0, &before.1) || warning.is_some() {
            let bytes = serde_json::to_vec(&table).map_err(io::Error::other)?;
            atomic::replace(&self.watch_table(), &bytes, true)?;
        }
        Ok((result, warning))
    }

    /// A number that changes when the watches do.
    pub fn watches_version(&self) -> u64 {
        files::version(&self.watch_table())
    }

    fn watch_table(&self) -> PathBuf {
        self.dir().join("watches.json")
    }

    fn hold_watches(&self) -> io::Result<Held> {
        hold_for(&self.dir().join("watches.lock"), PATIENCE_MS)
    }

    fn read_watches(&self) -> io::Result<(Table, Option<String>)> {
        let path = self.watch_table();
        let why = match read(&path) {
            Ok(Ok(table)) => return Ok((table, None)),
            Ok(Err(why)) => why,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((self.empty(), None)),
            Err(error) => return Err(error),
        };
        let aside = atomic::set_aside(&path)?;
        let warning = format!(
            "the list of watches {} could not be read ({why}); it is kept as {}, and a new one begins",
            path.display(),
            aside.display()
        );
        Ok((self.empty(), Some(warning)))
    }

    /// Numbers of watches that a lost list held are not given again: their files tell which there were.
    fn empty(&self) -> Table {
        Table { version: VERSION, next: self.last_number() + 1, watches: Vec::new(), rest: Map::new() }
    }
}

/// The table, or why it is none; an error where nothing can be said of it or nothing may be done to it.
fn read(path: &Path) -> io::Result<Result<Table, String>> {
    let bytes = match files::read_small(path, MOST) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let why = match serde_json::from_slice::<Table>(&bytes) {
        Ok(mut table) if table.version <= VERSION => {
            let last = table.watches.iter().map(|watch| watch.number).max().unwrap_or(0);
            table.next = table.next.max(last.saturating_add(1));
            if table.next <= NUMBER_MOST {
                return Ok(Ok(table));
            }
            format!("the number {} was never given out", table.next)
        }
        Ok(table) => return Err(too_new(path, table.version, VERSION)),
        Err(error) => error.to_string(),
    };
    match later(&bytes, VERSION) {
        Some(version) => Err(too_new(path, version, VERSION)),
        None => Ok(Err(why)),
    }
}

#[cfg(test)]
#[allow(missing_docs, clippy::missing_panics_doc)]
pub mod tests;
