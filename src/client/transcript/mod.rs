//! Transcripts: `<config>/projects/<slug>/<session-id>.jsonl`, one JSON object a line, only ever added to.
//!
//! Measured as a stream, in bounded memory, and from where the last measurement ended ([`Progress`]); the
//! first look at a long one goes to its end alone ([`tail`]). What a row is stands in [`row`], what it does
//! to the figures in `tally`. Unknown rows pass; damaged ones are counted.
//!
//! `result` rows, whose usage is a sum over requests, and `api-request` rows are outside the conversation
//! and never looked into.

pub mod acts;
pub mod blocks;
pub mod branch;
mod bytes;
mod compaction;
mod figures;
mod lineage;
pub mod lines;
pub mod message;
pub mod notes;
mod progress;
mod questions;
pub mod row;
pub mod scan;
pub mod squeeze;
mod stored;
mod tail;
mod tally;
pub mod texts;
mod turns;
pub mod words;

pub use figures::{
    BREAK_MS, Boundary, Context, Figures, INTERVAL_SLACK, Interval, TEACHING_RESPONSES, Times,
};
pub use lineage::came_from;
pub use progress::{Advance, Progress};
pub use tail::{Tail, tail};

#[cfg(test)]
mod tests;
