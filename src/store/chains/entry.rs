//! One handoff as the registry keeps it. What a later version adds is kept with it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How far a handoff came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The export is being written.
    Exporting,
    /// The export is there; no child was asked to read it.
    Prepared,
    /// The child reads.
    Reading,
    /// The child has read it all.
    Accepted,
    /// The child has not read all of it.
    Partial,
    /// No child came about, or it did not answer.
    Failed,
    /// Ended from outside before it was done.
    Interrupted,
}

impl State {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exporting => "exporting",
            Self::Prepared => "prepared",
            Self::Reading => "reading",
            Self::Accepted => "accepted",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A session, and the process it was seen in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The session's id.
    pub session: String,
    /// Its client's process number, where one ran.
    pub pid: Option<u32>,
    /// That process's start time as the system counts it.
    pub started: Option<String>,
    /// The sessions that this one was forked from or cleared out of, the nearest first.
    pub came_from: Vec<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How heavy the parent was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weight {
    /// Tokens in its context.
    pub tokens: Option<u64>,
    /// Its wall in tokens.
    pub wall: u64,
    /// Points of the signals.
    pub points: u64,
    /// How urgent a handoff was: none, soon, due, critical.
    pub urgency: String,
}

/// A part that was not shown to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The file.
    pub part: String,
    /// Which check it failed: `count`, `marks` or `read`.
    pub check: String,
    /// What was wrong.
    pub what: String,
}

/// What a proof came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Proof {
    /// Whether every part passed every check.
    pub accepted: bool,
    /// Parts that are to be read.
    pub parts: usize,
    /// Marks in them.
    pub marks: usize,
    /// What is missing.
    pub shortfalls: Vec<Shortfall>,
    /// Turns that the child took.
    pub turns: u64,
}

/// What a child said of the work that it takes over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outlook {
    /// What was begun and is not done.
    pub open_threads: Vec<String>,
    /// What the person wants to hold for all further work.
    pub standing_instructions: Vec<String>,
    /// What it would do first.
    pub next: String,
}

/// When, epoch milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// The handoff began.
    pub began: i64,
    /// The export was there.
    pub exported: Option<i64>,
    /// The last turn of the child began.
    pub asked: Option<i64>,
    /// It ended, well or not.
    pub ended: Option<i64>,
}

/// Why a handoff did not come about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// The kind, one word: `timeout`, `exit`, `answer`, …
    pub kind: String,
    /// What was said.
    pub message: String,
}

/// One handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The export's id.
    pub id: String,
    /// How far it came.
    pub state: State,
    /// Who handed over.
    pub parent: Link,
    /// Who went on.
    #[serde(default)]
    pub child: Option<Link>,
    /// The child's depth in its chain; the original is 1.
    #[serde(default)]
    pub generation: u64,
    /// The parent's title.
    #[serde(default)]
    pub parent_name: Option<String>,
    /// The child's name.
    #[serde(default)]
    pub name: String,
    /// The export.
    pub directory: PathBuf,
    /// The parent's transcript.
    #[serde(default)]
    pub transcript: PathBuf,
    /// Where the parent worked and the child works.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The child's model.
    #[serde(default)]
    pub model: Option<String>,
    /// The child's wall in tokens, as it was reckoned.
    #[serde(default)]
    pub wall: u64,
    /// What the parts may come to, in tokens.
    #[serde(default)]
    pub budget: u64,
    /// The brief's file.
    #[serde(default)]
    pub brief: Option<PathBuf>,
    /// Credentials are masked.
    #[serde(default)]
    pub redact: bool,
    /// The parent's weight then.
    #[serde(default)]
    pub weight: Option<Weight>,
    /// What the last proof came to.
    #[serde(default)]
    pub proof: Option<Proof>,
    /// What the child that read it all said of the work.
    #[serde(default)]
    pub outlook: Option<Outlook>,
    /// When.
    #[serde(default)]
    pub times: Times,
    /// The client's version.
    #[serde(default)]
    pub client_version: Option<String>,
    /// How often it was taken up again.
    #[serde(default)]
    pub retries: u64,
    /// Ids that somebody else had already.
    #[serde(default)]
    pub ids_in_use: Vec<String>,
    /// Why it did not come about.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}
