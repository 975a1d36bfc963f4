//! The client's own figures, handed over by the mod (`hooks/register.ts`) on 2.1.287 and later.

use serde::{Deserialize, Serialize};

use super::lenient::{count, maybe, name};
use crate::base::tokens::MOST;

/// What the mod puts under `longhaul` in the payload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Handed {
    /// Version of this hand-over; 1.
    #[serde(deserialize_with = "count")]
    pub v: Option<u64>,
    /// `start`, `step`, `measure` or `stream`.
    #[serde(deserialize_with = "name")]
    pub event: Option<String>,
    /// Usable width in cells, as it is.
    #[serde(deserialize_with = "count")]
    pub columns: Option<u64>,
    /// The figures, where the client gave them.
    #[serde(deserialize_with = "maybe")]
    pub figures: Option<Figures>,
}

/// The client's figures for a session, in tokens, under the client's names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Input side of the last response.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Output of the last response; not in `tokens` (measured).
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The model's window.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The trigger before the percentage override; absent with compaction off.
    #[serde(
        rename = "autoCompactThreshold",
        deserialize_with = "count",
        skip_serializing_if = "Option::is_none"
    )]
    pub threshold: Option<u64>,
    /// Whether automatic compaction is on.
    #[serde(
        rename = "isAutoCompactEnabled",
        deserialize_with = "maybe",
        skip_serializing_if = "Option::is_none"
    )]
    pub enabled: Option<bool>,
    /// The window that compaction is reckoned from.
    #[serde(rename = "rawMaxTokens", deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub raw_max: Option<u64>,
    /// Where that window comes from; `auto` with compaction on marks a model without a trigger.
    #[serde(
        rename = "autocompactSource",
        deserialize_with = "name",
        skip_serializing_if = "Option::is_none"
    )]
    pub source: Option<String>,
}

impl Figures {
    /// Tokens in use: input side and output. `None` before the first response.
    pub fn used(&self) -> Option<u64> {
        let used = self.tokens?.saturating_add(self.output_tokens.unwrap_or(0));
        (1..=MOST).contains(&used).then_some(used)
    }

    /// Whether the figures say anything about the wall.
    pub fn know_the_wall(&self) -> bool {
        self.enabled.is_some()
    }
}
