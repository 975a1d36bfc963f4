//! What a session or a subagent is at, as one word in its beat.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Phase {
    /// The session has started, nothing was asked of it yet.
    Starting,
    /// A request to the model is under way, as far as events tell.
    Thinking,
    /// A tool runs.
    Tool(String),
    /// The person is asked something.
    Waiting,
    /// The conversation is being compacted.
    Compacting,
    /// The turn has ended.
    Idle,
    /// The turn has ended, and tasks of it run on.
    Background,
    /// The turn ended with this error of the API.
    Failed(String),
    /// The session has ended.
    Ended,
    /// What a later version wrote.
    #[default]
    Unknown,
}

impl Phase {
    /// Whether a turn is under way.
    pub fn is_in_turn(&self) -> bool {
        matches!(self, Self::Thinking | Self::Tool(_) | Self::Waiting | Self::Compacting)
    }

    fn parse(text: &str) -> Self {
        match text.split_once(':').unwrap_or((text, "")) {
            ("starting", _) => Self::Starting,
            ("thinking", _) => Self::Thinking,
            ("tool", name) => Self::Tool(name.to_owned()),
            ("waiting", _) => Self::Waiting,
            ("compacting", _) => Self::Compacting,
            ("idle", _) => Self::Idle,
            ("background", _) => Self::Background,
            ("failed", error) => Self::Failed(error.to_owned()),
            ("ended", _) => Self::Ended,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Thinking => "thinking",
            Self::Tool(name) => return write!(f, "tool:{name}"),
            Self::Waiting => "waiting",
            Self::Compacting => "compacting",
            Self::Idle => "idle",
            Self::Background => "background",
            Self::Failed(error) => return write!(f, "failed:{error}"),
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        })
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_read_as_it_was_written() {
        let tool = Phase::Tool("mcp__a:b".into());
        let all = [Phase::Starting, Phase::Thinking, tool, Phase::Waiting, Phase::Compacting, Phase::Idle];
        let more = [Phase::Background, Phase::Failed("rate_limit".into()), Phase::Ended, Phase::Unknown];
        for phase in all.into_iter().chain(more) {
            assert_eq!(Phase::parse(&phase.to_string()), phase);
        }
        assert_eq!(Phase::parse("of a later version"), Phase::Unknown);
    }
}
