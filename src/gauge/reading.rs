//! One reading of the gauge: all that the status line, the notices and the commands show.

use super::context::Context;
use super::inputs::Inputs;
use super::learned;
use super::wall::{Formula, Kind, Wall};
use super::weight::{Facts, Weight, weigh};
use crate::client::figures::Figures;
use crate::client::transcript;

/// Where the model's window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowSource {
    /// The client stated it just now.
    Payload,
    /// The client stated it earlier in this session.
    Stored,
    /// The client's own figures, through the mod.
    Client,
    /// The table of known models.
    Table,
    /// A larger one than the table's, since the context outgrew that.
    Outgrown,
    /// Nothing is known of the model.
    Default,
}

/// A reading.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The model's id.
    pub model: Option<String>,
    /// The model's name for people.
    pub model_name: Option<String>,
    /// The model's window in tokens, as stated or guessed.
    pub window: u64,
    /// Where that comes from.
    pub window_source: WindowSource,
    /// Every input of the wall.
    pub inputs: Inputs,
    /// The formula's result.
    pub formula: Formula,
    /// The client's own figures, where they are of these inputs and this model.
    pub client: Option<Figures>,
    /// What evidence says of the formula.
    pub evidence: learned::Verdict,
    /// The newest interval, where there is one.
    pub interval: Option<learned::Interval>,
    /// The wall that counts.
    pub wall: Wall,
    /// Tokens in use.
    pub context: Option<Context>,
    /// The transcript's figures.
    pub figures: transcript::Figures,
    /// Whether the transcript is measured to its end.
    pub complete: bool,
    /// Whether there is a transcript at all.
    pub has_transcript: bool,
    /// The next request pays for the whole context again.
    pub cache_cold: bool,
    /// Sub-tasks that the model says it finished.
    pub subtasks: u64,
}

impl Reading {
    /// What is weighed.
    pub fn facts(&self) -> Facts {
        Facts {
            context: self.context.map(|context| context.tokens),
            wall: Some(self.wall.tokens),
            responses: self.figures.responses,
            tool_calls: self.figures.tool_calls,
            active_ms: self.figures.active_ms,
            auto_compactions: self.figures.auto,
            subtasks: self.subtasks,
        }
    }

    /// How urgent a handoff is. A session that the API has just refused is at its wall whatever the count.
    pub fn weight(&self) -> Weight {
        let mut weight = weigh(&self.facts());
        if self.at_wall() {
            weight.urgency = super::weight::Urgency::Critical;
            weight.gated = false;
        }
        weight
    }

    /// The last thing the API said is that the prompt is too long.
    pub fn at_wall(&self) -> bool {
        self.figures.refused
    }

    /// The context is above the wall, and no compaction came.
    pub fn past_wall(&self) -> bool {
        self.context.is_some_and(|context| !context.estimated && context.tokens > self.wall.tokens)
    }

    /// Automatic compaction is switched off.
    pub fn no_compact(&self) -> bool {
        self.wall.kind == Kind::Refusal
    }

    /// Compactions of either kind, and the tokens they dropped.
    pub fn compactions(&self) -> (u64, u64) {
        (self.figures.auto + self.figures.manual, self.figures.dropped)
    }
}
