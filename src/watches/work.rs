//! What a watch does: one look at a time, never waiting, and what it came to.

mod command;
mod file;
mod moments;
mod stream;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use self::command::Runs;
use self::file::Lines;
use self::stream::Stream;
use super::filter::Filter;
use crate::host::process::{self, Running, Start};
use crate::store::watches::{Place, Subject, Watch};

/// How long a program that is not needed any more gets to end by itself, in ms.
pub const FAREWELL_MS: u64 = 50;

/// What a look came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What there is to say.
    pub text: Option<String>,
    /// Lines that it stands for.
    pub lines: u64,
    /// Why the watch is over.
    pub ends: Option<String>,
    /// What keeps it from its work.
    pub fails: Option<String>,
    /// It does its work: a failure of before is over.
    pub well: bool,
    /// There is more at once.
    pub more: bool,
    /// Its place is to be kept at once.
    pub keep: bool,
    /// When to look again at the latest, epoch milliseconds; `None`: not before something else happens.
    pub next_ms: Option<i64>,
}

impl Found {
    /// Nothing, until then.
    fn nothing(next_ms: i64) -> Self {
        Self { next_ms: Some(next_ms), ..Self::default() }
    }
}

/// A watch at work.
#[derive(Debug)]
pub enum Work {
    /// Lines of a file.
    File(Box<Lines>),
    /// Lines of a command that goes on.
    Stream(Box<Stream>),
    /// Outputs of a command.
    Command(Box<Runs>),
    /// The end of a process, or a moment.
    Moment,
    /// Others write to it.
    Sessions,
}

impl Work {
    /// Takes a watch up at its place. `without`: variables that its programs do not get.
    pub fn start(watch: &Watch, place: Option<&Place>, without: &[OsString]) -> Self {
        match (&watch.subject, place) {
            (Subject::File { path, from_start }, place) => {
                Self::File(Box::new(Lines::start(path, *from_start, place)))
            }
            (Subject::Stream { argv }, place) => {
                Self::Stream(Box::new(Stream::start(Program::of(argv, watch, without), place)))
            }
            (Subject::Command { argv, every_ms, timeout_ms }, place) => Self::Command(Box::new(Runs::start(
                Program::of(argv, watch, without),
                *every_ms,
                *timeout_ms,
                place,
            ))),
            (Subject::Process { .. } | Subject::After { .. }, _) => Self::Moment,
            (Subject::Sessions, _) => Self::Sessions,
        }
    }

    /// Looks once. `failing`: it was said that it cannot do its work.
    pub fn look(&mut self, watch: &Watch, filter: &Filter, failing: bool, now_ms: i64) -> Found {
        match self {
            Self::File(lines) => lines.look(filter, now_ms),
            Self::Stream(stream) => stream.look(filter, now_ms),
            Self::Command(runs) => runs.look(filter, failing, now_ms),
            Self::Moment => moments::look(&watch.subject, now_ms),
            Self::Sessions => Found::default(),
        }
    }

    /// Where it is, where that is worth keeping.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::File(lines) => lines.place(),
            Self::Stream(stream) => Some(stream.place()),
            Self::Command(runs) => Some(runs.place()),
            Self::Moment | Self::Sessions => None,
        }
    }

    /// The program that it runs now.
    pub fn running(&mut self) -> Option<&mut Running> {
        match self {
            Self::Stream(stream) => stream.running(),
            Self::Command(runs) => runs.running(),
            _ => None,
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(running) = self.running() {
            running.end_within(FAREWELL_MS);
        }
    }
}

/// A program of a watch.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<String>,
    dir: PathBuf,
    without: Vec<OsString>,
}

/// How much of an output counts, in bytes.
const OUTPUT_MOST: u64 = 64 << 10;

impl Program {
    fn of(argv: &[String], watch: &Watch, without: &[OsString]) -> Self {
        let program = argv.first().map(String::as_str).unwrap_or_default();
        // A name is looked for in PATH; a path starts from where the watch was made.
        let path = if program.contains('/') { watch.directory.join(program) } else { program.into() };
        Self {
            path,
            args: argv.iter().skip(1).cloned().collect(),
            dir: watch.directory.clone(),
            without: without.to_vec(),
        }
    }

    fn start(&self, streams: bool) -> Result<Running, String> {
        let what = Start {
            program: &self.path,
            args: &self.args,
            without: &self.without,
            dir: &self.dir,
            input: b"",
            most: OUTPUT_MOST,
        };
        let started = if streams { process::start_stream(&what) } else { process::start(&what) };
        started.map_err(|error| {
            let missing = !Path::new(&self.dir).is_dir();
            let dir =
                if missing { format!(": {} is no directory", self.dir.display()) } else { String::new() };
            format!("could not start {}{dir}: {error}", self.path.display())
        })
    }
}

/// The last lines of what a program said of its own failure, on one line.
fn last_words(bytes: &[u8]) -> String {
    const MOST: usize = 300;
    let text = String::from_utf8_lossy(bytes);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = (text.len().saturating_sub(MOST)..=text.len()).find(|at| text.is_char_boundary(*at));
    text[from.unwrap_or(0)..].to_owned()
}
