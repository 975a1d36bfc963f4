//! What a setup did or would do, for a person and for a program.

use std::path::PathBuf;

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

/// The change of a file as a unified diff.
pub fn diff(path: &std::path::Path, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let before = String::from_utf8_lossy(old.unwrap_or_default());
    let after = String::from_utf8_lossy(new.unwrap_or_default());
    let name = |there: bool| if there { path.display().to_string() } else { "/dev/null".to_owned() };
    similar::TextDiff::from_lines(&*before, &*after)
        .unified_diff()
        .header(&name(old.is_some()), &name(new.is_some()))
        .to_string()
}
