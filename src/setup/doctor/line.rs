//! One line of the result.

use serde::Serialize;

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing fails for it.
    Note,
    /// Something does not work.
    Broken,
}

impl Mark {
    /// As people and programs read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Broken => "broken",
        }
    }
}

/// A check and what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The check's name, which does not change.
    pub name: &'static str,
    /// How it stands.
    #[serde(rename = "status")]
    pub mark: Mark,
    /// What is.
    pub what: String,
    /// What to do: a command where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Line {
    /// As it should be.
    pub fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, mark: Mark::Ok, what: what.into(), fix: None }
    }

    /// Worth knowing.
    pub fn note(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, mark: Mark::Note, what: what.into(), fix: None }
    }

    /// Something does not work, and this mends it.
    pub fn broken(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, mark: Mark::Broken, what: what.into(), fix: Some(fix.into()) }
    }

    /// With what to do.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// Whether something does not work.
    pub fn is_broken(&self) -> bool {
        self.mark == Mark::Broken
    }
}

/// A count with its word: `1 session`, `3 sessions`.
pub fn count(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// The first few of a list, and how many more there are.
pub fn some(list: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = list.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if list.len() > SHOWN { format!("{shown} and {} more", list.len() - SHOWN) } else { shown }
}

/// Fails unless something is broken, the line says this of it, and that mends it.
#[cfg(test)]
#[track_caller]
pub(super) fn broken(line: &Line, part: &str, fix: &str) {
    assert!(line.is_broken() && line.what.contains(part), "{line:?}");
    assert_eq!(line.fix.as_deref(), Some(fix));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_and_counts_have_their_word() {
        let list = |n: usize| (1..=n).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!((some(&list(0)), some(&list(3))), (String::new(), "1, 2, 3".to_owned()));
        assert_eq!(some(&list(5)), "1, 2, 3 and 2 more");
        assert_eq!((count(1, "session"), count(0, "session")), ("1 session".into(), "0 sessions".into()));
    }
}
