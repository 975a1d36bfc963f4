//! Where sessions of the pinned client really end: measured, as data.

use serde_json::{Value, json};

use crate::bench::Bench;

/// What ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Compaction,
    Refusal,
    /// Nothing in the client; the API's own limit.
    Reactive,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Refusal => "refusal",
            Self::Reactive => "reactive",
        }
    }
}

/// A configuration, and the wall measured under it.
#[derive(Debug, Clone)]
pub struct Row {
    pub env: Vec<(&'static str, &'static str)>,
    pub user: Value,
    pub args: Vec<&'static str>,
    pub model: &'static str,
    /// The model's window as the client states it, in tokens.
    pub window: u64,
    /// Where a session ends, in tokens.
    pub wall: u64,
    pub kind: Kind,
    /// Whether something the person set decides it; else it is the model's default, and an assumption.
    pub configured: bool,
}

/// A wall that nothing but the model decides.
pub fn plain(model: &'static str, window: u64, wall: u64, kind: Kind) -> Row {
    Row { env: vec![], user: json!({}), args: vec![], model, window, wall, kind, configured: false }
}

/// opus-5-5, compacting there.
pub fn at(wall: u64) -> Row {
    plain("claude-opus-5-5", 1_000_000, wall, Kind::Compaction)
}

impl Row {
    pub fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    pub fn user(mut self, settings: Value) -> Self {
        self.user = settings;
        self
    }

    pub fn flag(mut self, value: &'static str) -> Self {
        self.args.extend(["--autocompact", value]);
        self
    }

    pub fn set(mut self) -> Self {
        self.configured = true;
        self
    }

    pub fn refusing(mut self) -> Self {
        self.kind = Kind::Refusal;
        self.set()
    }

    /// The bench of this configuration.
    pub fn bench(&self) -> Option<Bench> {
        let mut bench = Bench::open()?.user(&self.user).model(self.model);
        for (name, value) in &self.env {
            bench = bench.env(name, value);
        }
        for arg in &self.args {
            bench = bench.arg(arg);
        }
        Some(bench)
    }
}

pub const WINDOW: &str = "CLAUDE_CODE_AUTO_COMPACT_WINDOW";
pub const PCT: &str = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE";
pub const OUTPUT: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
pub const CONTEXT: &str = "CLAUDE_CODE_MAX_CONTEXT_TOKENS";
pub const BLOCKING: &str = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE";
pub const NO_1M: &str = "CLAUDE_CODE_DISABLE_1M_CONTEXT";
pub const OFF: &str = "DISABLE_COMPACT";
pub const NOT_AUTO: &str = "DISABLE_AUTO_COMPACT";
