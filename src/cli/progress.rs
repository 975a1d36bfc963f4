//! How far an export is, on a terminal, once it takes long.

use std::io::Write as _;
use std::ops::ControlFlow;

use crate::handoff::Follow;
use crate::host::clock::Deadline;
use crate::host::terminal;

/// A person who waits longer than this is told how far it is, in ms.
const PATIENCE_MS: u64 = 1_000;

/// Follows an export.
pub(super) struct Progress {
    quiet_until: Option<Deadline>,
    shown: Option<u64>,
}

impl Progress {
    /// From now on.
    pub(super) fn new() -> Self {
        let quiet_until = terminal::stderr_is_terminal().then(|| Deadline::after_ms(PATIENCE_MS));
        Self { quiet_until, shown: None }
    }

    /// Takes the line away again.
    pub(super) fn end(&self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r                \r");
        }
    }
}

impl Follow for Progress {
    fn at(&mut self, share: u64) -> ControlFlow<()> {
        let percent = share / 10;
        if self.shown != Some(percent) && self.quiet_until.is_some_and(Deadline::passed) {
            let _ = write!(std::io::stderr(), "\rexporting: {percent:>3} %");
            self.shown = Some(percent);
        }
        ControlFlow::Continue(())
    }
}
