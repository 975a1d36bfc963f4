//! What the gauge keeps of a session between two looks.

use serde::{Deserialize, Serialize};

use crate::client::figures::Figures;
use crate::client::lenient::count;

/// What hooks and the status line saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// The model's id.
    pub model: Option<String>,
    /// The model's name for people.
    pub model_name: Option<String>,
    /// The model's window in tokens, as the client stated it.
    #[serde(deserialize_with = "count")]
    pub window: Option<u64>,
    /// The transcript's path.
    pub transcript: Option<String>,
    /// The directory the session was started in.
    pub project: Option<String>,
    /// The count that the last session start stated, in tokens.
    #[serde(deserialize_with = "count")]
    pub used: Option<u64>,
    /// When, epoch ms.
    pub used_at_ms: i64,
    /// The inputs of the wall that are not in settings files, as the session has them.
    pub environment: Vec<(String, String)>,
    /// The `--autocompact` flag of the session.
    pub autocompact_flag: Option<String>,
    /// Fingerprint of all inputs.
    pub fingerprint: u64,
    /// Since when it is that, epoch ms.
    pub fingerprint_since_ms: i64,
    /// When they were last seen to change, epoch ms; 0: never.
    pub inputs_changed_ms: i64,
    /// The wall as it was reckoned last, in tokens.
    #[serde(deserialize_with = "count")]
    pub wall: Option<u64>,
    /// The wall before the inputs were last seen to change, in tokens.
    #[serde(deserialize_with = "count")]
    pub wall_before: Option<u64>,
    /// The boundary up to which lessons were kept, epoch ms.
    pub learned_at_ms: i64,
    /// `.claude.json` as it was read last: its version and the two things that matter.
    pub global: Global,
    /// The client's process that hooks last saw the session in.
    pub process: Process,
}

/// A client's process, and how a session came to be in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: Option<u32>,
    /// Its start time as the system counts it; numbers are used again.
    pub started: Option<String>,
    /// When the session was first seen in it, epoch ms.
    pub since_ms: i64,
    /// Whether the session began there by /clear.
    pub cleared: bool,
}

/// What the client's own `.claude.json` says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Global {
    /// The file's version when it was read.
    pub version: u64,
    /// `autoCompactEnabled`.
    pub enabled: Option<bool>,
    /// Inputs of the wall in its `env` block.
    pub env: Vec<(String, String)>,
}

/// The client's own figures, as the mod handed them over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handed {
    /// The figures.
    pub figures: Figures,
    /// The model's id at that time.
    pub model: Option<String>,
    /// Fingerprint of all inputs at that time: with another one now, the figures say nothing of the wall.
    pub fingerprint: u64,
}

impl Handed {
    /// All but the counts, which change with every response.
    #[must_use]
    pub fn without_counts(&self) -> Self {
        let figures = Figures { tokens: None, output_tokens: None, ..self.figures.clone() };
        Self { figures, ..self.clone() }
    }
}
