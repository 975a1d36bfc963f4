//! How far a watch has come. It is written by whoever runs the watch, and by nobody else.
//!
//! What is to be told is written here first, with the place that holds once it is told; then it goes to the inbox,
//! which takes each id once; then it is struck out here. So a process that is killed in between neither loses it
//! nor tells it twice.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A watch's place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Of this layout.
    pub version: u64,
    /// How many times it has spoken.
    pub told: u64,
    /// When it spoke last, epoch milliseconds.
    pub last_ms: Option<i64>,
    /// What it said in this hour.
    pub window: Window,
    /// What keeps it from its work, where it was said already.
    pub failing: Option<String>,
    /// What is to be told and may not be in the inbox yet.
    pub pending: Vec<Note>,
    /// Why it is to end once that is told.
    pub ending: Option<String>,
    /// Where it is in what it watches; `None` before its first look.
    pub place: Option<Place>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An hour of a watch, which begins with the first thing that it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// Its beginning, epoch milliseconds.
    pub began_ms: i64,
    /// How often it has spoken in it.
    pub spoken: u64,
    /// What was held back.
    pub held: u64,
    /// Lines of that.
    pub held_lines: u64,
}

/// Something to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// The same thing has the same id.
    pub id: String,
    /// When it was seen, epoch milliseconds.
    pub at_ms: i64,
    /// What there is to say.
    pub text: String,
    /// How many lines it stands for.
    pub lines: u64,
    /// It goes into what was told alone, not to the session: the hour is full.
    pub held: bool,
}

/// Where a watch is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "of")]
pub enum Place {
    /// In a file.
    File(FilePlace),
    /// In runs of a command.
    Runs(RunPlace),
}

/// How far a file is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePlace {
    /// The file that has the name; `None` while there is none.
    pub now: Option<Mark>,
    /// Those that had it before, the oldest first: they may not be read to their end, and may still be written to.
    pub before: Vec<Mark>,
    /// When the name last went to another file, epoch milliseconds.
    pub turned_ms: i64,
}

/// A place in one file, and how to know that file again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// The device it lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// The first byte that was not told.
    pub offset: u64,
    /// Where in a line that byte lies.
    pub inside: Inside,
    /// Bytes of a line that has no end yet, and that was there before anybody watched, end here.
    pub seen: u64,
    /// When the file had been written last as the offset was moved, epoch milliseconds.
    pub changed_ms: i64,
    /// Digest of the file's first bytes, as far as the offset.
    pub head: u64,
    /// Digest of its last bytes before the offset.
    pub tail: u64,
    /// Where it was, every link resolved.
    #[serde(with = "super::path")]
    pub path: PathBuf,
}

/// Where an offset lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inside {
    /// At the beginning of a line.
    #[default]
    No,
    /// In one whose beginning was told, since nothing more came; the rest is told too.
    Begun,
    /// In one that is too long; its rest is passed over.
    Long,
}

/// How far runs of a command came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunPlace {
    /// When the last one began, epoch milliseconds.
    pub began_ms: i64,
    /// How many were begun.
    pub runs: u64,
    /// Digest of the output that the next one is compared with.
    pub output: Option<String>,
    /// How many ended by themselves, one soon after the other (streams).
    pub falls: u32,
}
