//! `<config>/sessions/<pid>.json`: which session a running client shows now. The files beside them with other
//! endings hold secrets and are never opened.

use std::path::Path;

use serde::Deserialize;

use super::lenient::maybe;
use crate::base::id::SessionId;
use crate::host::files;

/// One running client.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionFile {
    /// Process number.
    #[serde(deserialize_with = "maybe")]
    pub pid: Option<u32>,
    /// The session it shows now; rewritten on /clear and /resume.
    #[serde(deserialize_with = "maybe")]
    pub session_id: Option<String>,
    /// Its working directory.
    #[serde(deserialize_with = "maybe")]
    pub cwd: Option<String>,
    /// Start time of the process as the system counts it.
    #[serde(deserialize_with = "maybe")]
    pub proc_start: Option<String>,
    /// `busy`, `waiting`, `idle` or `shell`.
    #[serde(deserialize_with = "maybe")]
    pub status: Option<String>,
}

/// Every running client that left a readable file.
pub fn all(config: &Path) -> Vec<SessionFile> {
    let Ok(dir) = std::fs::read_dir(config.join("sessions")) else { return Vec::new() };
    let numbered = |path: &Path| {
        path.extension().is_some_and(|e| e == "json")
            && path.file_stem().is_some_and(|s| s.to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
    };
    dir.flatten()
        .map(|entry| entry.path())
        .filter(|path| numbered(path))
        .filter_map(|path| serde_json::from_slice(&files::read_small(&path, 1 << 20).ok()?).ok())
        .collect()
}

/// The client that shows this session now, if one runs.
pub fn of_session(config: &Path, session: &SessionId) -> Option<SessionFile> {
    all(config).into_iter().find(|file| file.session_id.as_deref() == Some(session.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_id_and_keys_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sessions");
        fs_err::create_dir(&dir).unwrap();
        fs_err::write(dir.join("12.json"), r#"{"pid":12,"sessionId":"s","cwd":"/w","procStart":"9"}"#)
            .unwrap();
        fs_err::write(dir.join("13.json"), "{").unwrap();
        fs_err::write(dir.join("12.key"), r#"{"pid":1,"sessionId":"k"}"#).unwrap();
        fs_err::write(dir.join("x.json"), r#"{"pid":2,"sessionId":"x"}"#).unwrap();
        let id = |text| SessionId::parse(text).unwrap();
        assert_eq!(of_session(root.path(), &id("s")).unwrap().pid, Some(12));
        assert!(of_session(root.path(), &id("k")).is_none());
        assert!(of_session(root.path(), &id("x")).is_none());
    }
}
