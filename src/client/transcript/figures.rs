//! What a transcript says about a session. Tokens, milliseconds, epoch milliseconds.

/// An automatic compaction fewer responses than this after the one before it teaches nothing: a short
/// conversation is not compacted at the trigger, but later, at the refusal line (measured, 2.1.332).
pub const TEACHING_RESPONSES: u64 = 6;
/// How far above an interval a later response must lie to overrule it, in tokens.
pub const INTERVAL_SLACK: u64 = 2_000;
/// A gap between rows up to this long, exclusive, is work; a longer one is a break.
pub const BREAK_MS: i64 = 600_000;

/// Everything measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    /// Rows that could be read, of whatever kind.
    pub rows: u64,
    /// Lines that could not: no JSON object, broken, or too long to look into.
    pub damaged: u64,
    /// Responses of the main conversation, each counted once (`message.id`, else `uuid`), on whatever
    /// branch; not the client's own words.
    pub responses: u64,
    /// `tool_use` blocks of these responses, each id counted once.
    pub tool_calls: u64,
    /// What a person said: prompts, and messages typed while a turn ran.
    pub prompts: u64,
    /// Turns, whoever began them (a person, a program, a notification, a schedule).
    pub turns: u64,
    /// Sum of the gaps under ten minutes between rows of the main conversation.
    pub active_ms: i64,
    /// Time of the earliest row of the main conversation.
    pub first_at: Option<i64>,
    /// Time of the latest.
    pub last_at: Option<i64>,
    /// Context in use on the live branch; `None` where nobody can say: before the first response, after a
    /// rewind to the first prompt, after a compaction that does not tell.
    pub context: Option<Context>,
    /// When the context became what it is, known or not: a response, a compaction, a rewind.
    pub context_at: Option<i64>,
    /// The last thing that set the context is a compaction: no response since.
    pub after_compaction: bool,
    /// Largest context of a response since the last compaction; 0 without one.
    pub max_since_boundary: u64,
    /// Context of the last response, on whatever branch; 0 where there is none.
    pub last_response: u64,
    /// Context of the response before the last one; 0 where there is none.
    pub previous_context: u64,
    /// Responses since the last compaction.
    pub responses_since_boundary: u64,
    /// Automatic compactions.
    pub auto: u64,
    /// Manual ones.
    pub manual: u64,
    /// Tokens that all compactions dropped.
    pub dropped: u64,
    /// The last compaction.
    pub last_boundary: Option<Boundary>,
    /// What the newest automatic compaction that teaches says about the trigger.
    pub interval: Option<Interval>,
    /// The last word of the main conversation is the API's or the client's "prompt is too long".
    pub refused: bool,
    /// When a person last said something.
    pub last_prompt_at: Option<i64>,
    /// When longhaul last told the model something (a `hook_additional_context` that names it).
    pub last_notice_at: Option<i64>,
}

impl Figures {
    /// From the first row to the last, breaks included, milliseconds.
    pub fn span_ms(&self) -> i64 {
        match (self.first_at, self.last_at) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

/// Context in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Input, cache creation, cache read and output of the response, or a compaction's `postTokens`.
    pub tokens: u64,
    /// It is the compaction's estimate.
    pub estimated: bool,
    /// The model that answered last on this branch.
    pub model: Option<String>,
    /// When it became so.
    pub at_ms: i64,
    /// No response since the last compaction.
    pub after_compaction: bool,
}

/// A compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// Set off by the client, not by a person.
    pub auto: bool,
    /// Context before it.
    pub pre: u64,
    /// Context after it; older clients do not say.
    pub post: Option<u64>,
    /// When it was; 0 without a time stamp.
    pub at_ms: i64,
}

/// The trigger lies above `low` and at or below `pre`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Largest context, since the compaction before, on which the model answered without compacting; 0
    /// where there is none.
    pub low: u64,
    /// Context at the compaction.
    pub pre: u64,
    /// When it was; 0 without a time stamp.
    pub at_ms: i64,
    /// The model it was for.
    pub model: Option<String>,
    /// Turns since the compaction before it.
    pub turns: u64,
    /// Responses since the compaction before it; at least [`TEACHING_RESPONSES`].
    pub responses: u64,
    /// The same model has answered well above it since, and was not compacted.
    pub discarded: bool,
}

/// Time spent, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Time of the earliest row.
    pub first_at: Option<i64>,
    /// Time of the latest.
    pub last_at: Option<i64>,
    /// Sum of the gaps under ten minutes.
    pub active_ms: i64,
    /// The row that the next gap is counted from.
    pub clock: Option<i64>,
}

impl Times {
    /// Takes the time of one more row. Rows are a little out of order; one far back means that the clock was
    /// set.
    pub fn pass(&mut self, at: i64) {
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
        self.last_at = Some(self.last_at.map_or(at, |last| last.max(at)));
        let gap = self.clock.map_or(0, |clock| at.saturating_sub(clock));
        if (0..BREAK_MS).contains(&gap) {
            self.active_ms = self.active_ms.saturating_add(gap);
        }
        if gap >= 0 || gap <= -BREAK_MS {
            self.clock = Some(at);
        }
    }
}
