//! What a setup did or would do, for a person and for a program.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The outcome of `setup` or `setup --undo`.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Nothing was written: this is what would be.
    pub dry_run: bool,
    /// The installed programs.
    pub programs: Programs,
    /// The user's settings file.
    pub settings: Settings,
    /// The plugin, where a checkout can bring it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Part>,
    /// Compaction, where it was to be switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Part>,
    /// The link in the person's own directory of programs, where there can be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Part>,
    /// The timer that looks after sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<Part>,
    /// Everything a person should know besides.
    pub warnings: Vec<String>,
}

/// What became of the programs.
#[derive(Debug, Default, Serialize)]
pub struct Programs {
    /// `installed`, `unchanged`, `removed` or `absent`.
    pub action: &'static str,
    /// Their version.
    pub version: &'static str,
    /// The stable directory that leads to them.
    pub path: PathBuf,
    /// Names of the files that were copied.
    pub copied: Vec<String>,
    /// Versions that were taken away.
    pub removed: Vec<String>,
}

/// What became of the settings.
#[derive(Debug, Default, Serialize)]
pub struct Settings {
    /// The file as the client names it.
    pub path: PathBuf,
    /// `added`, `updated`, `wrapped`, `unchanged`, `kept` (not ours to change, or not wanted), `restored`
    /// (byte for byte), `removed` (our key, or the file that we had made).
    pub action: &'static str,
    /// Why, in a sentence.
    pub reason: String,
    /// The copy that was made before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
    /// The change as a unified diff; on a dry run only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What became of one thing more.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// `added`, `updated`, `unchanged`, `kept` (not ours, or not wanted), `removed`, `absent`, `failed`.
    pub action: &'static str,
    /// Why, in a sentence.
    pub reason: String,
    /// What it is about.
    pub path: PathBuf,
    /// The change as a unified diff; on a dry run only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Part {
    /// What became of the thing at this path, and why.
    pub fn of(action: &'static str, reason: String, path: &Path) -> Self {
        Self { action, reason, path: path.to_owned(), diff: None }
    }

    /// The same with its diff.
    #[must_use]
    pub fn with(self, diff: String) -> Self {
        Self { diff: Some(diff), ..self }
    }

    /// The part, or that it failed and why: the others are done all the same.
    pub fn or_failed(done: anyhow::Result<Self>, path: &Path) -> Self {
        done.unwrap_or_else(|error| Self::of("failed", format!("{error:#}"), path))
    }
}

impl Report {
    /// Whether a part of it failed.
    pub fn failed(&self) -> bool {
        self.parts().any(|(_, part)| part.action == "failed")
    }

    /// What there is beside programs and settings, with the names that people see.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Part)> {
        let all = [
            ("plugin", &self.plugin),
            ("compaction", &self.compaction),
            ("link", &self.link),
            ("timer", &self.timer),
        ];
        all.into_iter().filter_map(|(name, part)| Some((name, part.as_ref()?)))
    }
}

/// The change of a file as a unified diff.
pub fn diff(path: &Path, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let before = String::from_utf8_lossy(old.unwrap_or_default());
    let after = String::from_utf8_lossy(new.unwrap_or_default());
    let name = |there: bool| if there { path.display().to_string() } else { "/dev/null".to_owned() };
    similar::TextDiff::from_lines(&*before, &*after)
        .unified_diff()
        .header(&name(old.is_some()), &name(new.is_some()))
        .to_string()
}
