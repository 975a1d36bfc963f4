//! A bounded look at a transcript's end, for the first redraw of a session whose transcript is too long to
//! be measured at once.

use std::fs::File;
use std::io;

use super::figures::{Boundary, Context, Figures};
use super::progress::Progress;
use crate::host::clock::Deadline;

/// The first window, in bytes. Each further one is four times as large.
const FIRST: u64 = 256 * 1024;

/// What the end of a transcript says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// As in [`Figures`]; `None` where the window does not tell.
    pub context: Option<Context>,
    /// As in [`Figures`].
    pub context_at: Option<i64>,
    /// As in [`Figures`].
    pub after_compaction: bool,
    /// As in [`Figures`].
    pub refused: bool,
    /// As in [`Figures`].
    pub last_response: u64,
    /// As in [`Figures`].
    pub previous_context: u64,
    /// The last compaction in the window.
    pub last_boundary: Option<Boundary>,
    /// The window held the whole file.
    pub whole: bool,
}

/// Looks at the last bytes, at more of them while they do not tell the context, at `max_bytes` of them at
/// most, and not past the deadline.
///
/// # Errors
/// Those of reading the file.
pub fn tail(file: &File, max_bytes: u64, deadline: Option<Deadline>) -> io::Result<Tail> {
    let length = file.metadata()?.len();
    let mut window = FIRST.min(max_bytes);
    loop {
        let start = length.saturating_sub(window);
        let mut progress = Progress::from_within(start);
        let complete = progress.read(file, deadline)?;
        let found = Tail::of(progress.figures(), complete && start == 0);
        let last = !complete || start == 0 || window >= max_bytes;
        // Part of a window says nothing about its end.
        if !complete {
            return Ok(Tail::default());
        }
        if found.context.is_some() || last {
            return Ok(found);
        }
        window = window.saturating_mul(4).min(max_bytes);
    }
}

impl Tail {
    fn of(figures: Figures, whole: bool) -> Self {
        Self {
            context: figures.context,
            context_at: figures.context_at,
            last_response: figures.last_response,
            previous_context: figures.previous_context,
            after_compaction: figures.after_compaction,
            refused: figures.refused,
            last_boundary: figures.last_boundary,
            whole,
        }
    }
}
