//! How far something is, on standard error: a line that is written over and over on a terminal.

use std::io::Write as _;
use std::ops::ControlFlow;

use crate::base::text::{clean, pad, width};
use crate::handoff::Follow;
use crate::host::clock::Deadline;
use crate::host::terminal;

/// A person who waits longer than this is told how far an export is, in ms.
const PATIENCE_MS: u64 = 1_000;

/// The line.
#[derive(Debug, Default)]
pub(super) struct Display {
    shown: usize,
}

impl Display {
    /// Shows this in place of what is shown. Where nobody sits at a terminal it is a line of its own, and stays.
    pub(super) fn show(&mut self, text: &str) {
        if !terminal::stderr_is_terminal() {
            return self.say(text);
        }
        let text = clean(text);
        let _ = write!(std::io::stderr(), "\r{}", pad(&text, self.shown));
        self.shown = width(&text);
    }

    /// Says this in a line that stays.
    pub(super) fn say(&mut self, text: &str) {
        self.end();
        let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(text));
    }

    /// Takes the line away again.
    pub(super) fn end(&mut self) {
        if self.shown > 0 {
            let _ = write!(std::io::stderr(), "\r{}\r", " ".repeat(self.shown));
            self.shown = 0;
        }
    }
}

/// Follows an export, on a terminal alone, once it takes long.
pub(super) struct Exporting {
    display: Display,
    quiet_until: Option<Deadline>,
    percent: Option<u64>,
}

impl Exporting {
    /// From now on.
    pub(super) fn new() -> Self {
        let quiet_until = terminal::stderr_is_terminal().then(|| Deadline::after_ms(PATIENCE_MS));
        Self { display: Display::default(), quiet_until, percent: None }
    }

    /// So many thousandths are done.
    pub(super) fn is_at(&mut self, share: u64) {
        let percent = share / 10;
        if self.percent != Some(percent) && self.quiet_until.is_some_and(Deadline::passed) {
            self.display.show(&format!("exporting: {percent:>3} %"));
            self.percent = Some(percent);
        }
    }

    /// Takes the line away again.
    pub(super) fn end(&mut self) {
        self.display.end();
    }
}

impl Follow for Exporting {
    fn at(&mut self, share: u64) -> ControlFlow<()> {
        self.is_at(share);
        ControlFlow::Continue(())
    }
}
