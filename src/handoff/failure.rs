//! Why a handoff did not come about: each its own message and exit code.

use std::io;
use std::path::PathBuf;

use super::export;
use crate::store::chains::{Proof, Shortfall};

/// What failed. What exists by then is kept, and `longhaul handoff retry` goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The export.
    #[error(transparent)]
    Export(#[from] export::Failed),
    /// The brief.
    #[error("could not read the brief {}: {error}; put a text there, or hand over anew without it", path.display())]
    Brief {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// longhaul's own files.
    #[error("could not keep the handoff in longhaul's files: {0}")]
    Files(#[from] io::Error),
    /// Nobody knows the handoff.
    #[error("could not find a handoff of that id or session: {0}; `longhaul handoff list` shows them all")]
    Unknown(String),
    /// Somebody else works on it.
    #[error("handoff {0} is being worked on by another longhaul; wait for it, or end it first")]
    Busy(String),
    /// The parts or their key are gone or changed.
    #[error("the export {} is not whole: {what}; hand the session over anew", directory.display())]
    Damaged {
        /// Which.
        directory: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// More than half of the child's wall.
    #[error(
        "what is to be read in full comes to about {used} tokens, more than half of the child's wall of {wall}; {fix}"
    )]
    TooLarge {
        /// Tokens of the parts.
        used: u64,
        /// The child's wall in tokens.
        wall: u64,
        /// What would do.
        fix: String,
    },
    /// No client.
    #[error(
        "could not find Claude Code: no trustworthy `claude` on PATH{}; set CLAUDE_BIN to its program, then \
         `longhaul handoff retry {id}`", refused(.passed_over)
    )]
    NoClient {
        /// The handoff.
        id: String,
        /// Programs that were passed over, and why.
        passed_over: Vec<String>,
    },
    /// The client does not run.
    #[error(
        "could not start {} in {}: {error}; `longhaul handoff retry {id}` goes on once that is mended",
        program.display(), dir.display()
    )]
    NotStarted {
        /// The handoff.
        id: String,
        /// The client.
        program: PathBuf,
        /// Where.
        dir: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Too slow.
    #[error(
        "the child session {child} did not finish within {seconds} s; `longhaul handoff retry {id}` goes on, \
         --timeout gives it longer"
    )]
    TimedOut {
        /// The handoff.
        id: String,
        /// The child.
        child: String,
        /// How long it had.
        seconds: u64,
    },
    /// An earlier child that does not end.
    #[error(
        "the child session {child} of an earlier run still reads after {seconds} s; end its process {pid}, or give \
         `longhaul handoff retry {id}` a longer --timeout"
    )]
    StillReads {
        /// The handoff.
        id: String,
        /// The child.
        child: String,
        /// Its process.
        pid: u32,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The client ended with an error.
    #[error("the client ended with {}: {said}; `longhaul handoff retry {id}` goes on", ended(*.code))]
    Exit {
        /// The handoff.
        id: String,
        /// Its exit code.
        code: Option<i32>,
        /// What it said.
        said: String,
    },
    /// Every id was taken.
    #[error(
        "the client says that each of {tried} new session ids is already in use; `longhaul handoff retry {id}` tries \
         others"
    )]
    IdInUse {
        /// The handoff.
        id: String,
        /// How many.
        tried: usize,
    },
    /// No answer in the schema.
    #[error(
        "the child session {child} gave no answer that can be checked ({what}); `longhaul handoff retry {id}` asks \
         again"
    )]
    Answer {
        /// The handoff.
        id: String,
        /// The child.
        child: String,
        /// What it gave instead.
        what: String,
    },
    /// Not everything was read.
    #[error("the child session {child} has not shown that it read everything: {}; `longhaul handoff retry {id}` asks again", listed(&.proof.shortfalls))]
    Partial {
        /// The handoff.
        id: String,
        /// The child.
        child: String,
        /// What is missing.
        proof: Box<Proof>,
    },
    /// A signal.
    #[error("stopped; `longhaul handoff retry {id}` goes on")]
    Stopped {
        /// The handoff.
        id: String,
        /// Which signal.
        signal: u8,
    },
}

impl Failure {
    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::TooLarge { .. } => 4,
            Self::NoClient { .. } => 5,
            Self::NotStarted { .. } => 6,
            Self::TimedOut { .. } | Self::StillReads { .. } => 7,
            Self::Exit { .. } => 8,
            Self::IdInUse { .. } => 9,
            Self::Answer { .. } => 10,
            Self::Stopped { signal, .. } => 128_u8.saturating_add(*signal),
            _ => 1,
        }
    }

    /// The kind, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Export(_) => "export",
            Self::Brief { .. } => "brief",
            Self::Files(_) => "files",
            Self::Unknown(_) => "unknown",
            Self::Busy(_) => "busy",
            Self::Damaged { .. } => "damaged",
            Self::TooLarge { .. } => "size",
            Self::NoClient { .. } => "client",
            Self::NotStarted { .. } => "start",
            Self::TimedOut { .. } | Self::StillReads { .. } => "timeout",
            Self::Exit { .. } => "exit",
            Self::IdInUse { .. } => "id",
            Self::Answer { .. } => "answer",
            Self::Partial { .. } => "partial",
            Self::Stopped { .. } => "stopped",
        }
    }
}

fn refused(passed_over: &[String]) -> String {
    if passed_over.is_empty() { String::new() } else { format!(" ({})", passed_over.join("; ")) }
}

fn ended(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"))
}

/// The first of them, in words.
fn listed(shortfalls: &[Shortfall]) -> String {
    const SHOWN: usize = 4;
    let one = |fall: &Shortfall| format!("{} ({}): {}", fall.part, fall.check, fall.what);
    let mut text = shortfalls.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    if shortfalls.len() > SHOWN {
        text += &format!(", and {} more", shortfalls.len() - SHOWN);
    }
    text
}
