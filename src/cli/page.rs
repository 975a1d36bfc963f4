//! What a command prints for a person: lines without control characters, coloured where the terminal takes it.

use owo_colors::{OwoColorize as _, Style};

use crate::base::text::clean;
use crate::gauge::weight::Urgency;
use crate::host::{Host, terminal};

/// What a piece of text is, which decides how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As it is.
    Plain,
    /// A heading, or the figure that was asked for.
    Strong,
    /// Of no weight for the result.
    Faint,
    /// In force, or well.
    Good,
    /// Worth a look.
    Warn,
    /// Wrong, or pressing.
    Bad,
}

impl Look {
    /// How an urgency looks: as on the status line.
    pub fn of(urgency: Urgency) -> Self {
        match urgency {
            Urgency::None => Self::Good,
            Urgency::Soon => Self::Warn,
            Urgency::Due | Urgency::Critical => Self::Bad,
        }
    }

    fn ink(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => Style::new().green(),
            Self::Warn => Style::new().yellow(),
            Self::Bad => Style::new().red(),
        }
    }
}

/// The lines so far.
#[derive(Debug)]
pub struct Page {
    text: String,
    colour: bool,
}

impl Page {
    /// An empty page for this process's standard output.
    pub fn new(host: &Host) -> Self {
        Self { text: String::new(), colour: terminal::stdout_takes_colour(host) }
    }

    /// A line of pieces.
    pub fn line(&mut self, pieces: &[(Look, &str)]) {
        for (look, piece) in pieces {
            let piece = clean(piece);
            if self.colour && *look != Look::Plain && !piece.is_empty() {
                self.text.push_str(&piece.style(look.ink()).to_string());
            } else {
                self.text.push_str(&piece);
            }
        }
        self.text.push('\n');
    }

    /// An empty line.
    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A heading with its lines below it; nothing where there are none.
    pub fn block(&mut self, title: &str, look: Look, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.gap();
        self.line(&[(Look::Strong, title)]);
        for line in lines {
            self.line(&[(Look::Plain, "  "), (look, line)]);
        }
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_escapes_are_written() {
        let shown = |colour| {
            let mut page = Page { text: String::new(), colour };
            page.line(&[(Look::Plain, "a\u{1b}[2Jb "), (Look::Bad, "c\u{7}\nd"), (Look::Strong, "")]);
            page.block("none", Look::Plain, &[]);
            page.text
        };
        assert_eq!(shown(false), "a[2Jb cd\n");
        assert_eq!(shown(true), "a[2Jb \u{1b}[31mcd\u{1b}[0m\n");
    }
}
