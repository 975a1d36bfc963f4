//! `<config>/sessions/<pid>.json`: which session a running client shows now. The files beside them with other
//! endings hold secrets and are never opened.

use std::path::Path;

use serde::Deserialize;

use super::lenient::{maybe, name};
use crate::base::id::SessionId;
use crate::host::{files, process};

/// One running client.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionFile {
    /// Process number.
    #[serde(deserialize_with = "maybe")]
    pub pid: Option<u32>,
    /// The session it shows now; rewritten on /clear and /resume.
    #[serde(deserialize_with = "name")]
    pub session_id: Option<String>,
    /// Its working directory.
    #[serde(deserialize_with = "name")]
    pub cwd: Option<String>,
    /// Start time of the process as the system counts it.
    #[serde(deserialize_with = "name")]
    pub proc_start: Option<String>,
}

impl SessionFile {
    /// Whether the client that wrote this still runs. Killed clients leave their files behind, and their
    /// numbers are used again: a process of another start time is not it.
    fn runs(&self) -> bool {
        let Some(process) = self.pid.and_then(process::find) else { return false };
        let starts = self.proc_start.as_ref().zip(process.start.as_ref());
        starts.is_none_or(|(then, now)| then == now)
    }
}

/// Every client that runs and left a readable file.
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
        .filter(SessionFile::runs)
        .collect()
}

/// The client that shows this session now, if one runs.
pub fn of_session(config: &Path, session: &SessionId) -> Option<SessionFile> {
    all(config).into_iter().find(|file| file.session_id.as_deref() == Some(session.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(dir: &Path, name: &str, file: &serde_json::Value) {
        fs_err::create_dir_all(dir.join("sessions")).unwrap();
        fs_err::write(dir.join("sessions").join(name), file.to_string()).unwrap();
    }

    #[test]
    fn a_session_is_found_by_its_id_and_keys_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let me = process::own_pid();
        let of = |session: &str| json!({ "pid": me, "sessionId": session, "cwd": "/w" });
        write(root.path(), &format!("{me}.json"), &of("s"));
        write(root.path(), "13.json", &json!("{"));
        write(root.path(), "12.key", &of("k"));
        write(root.path(), "x.json", &of("x"));
        let id = |text| SessionId::parse(text).unwrap();
        assert_eq!(of_session(root.path(), &id("s")).unwrap().pid, Some(me));
        assert!(of_session(root.path(), &id("k")).is_none());
        assert!(of_session(root.path(), &id("x")).is_none());
    }

    // EdamAme-x/pentect#1299: a process number that is used again is another process.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_killed_client_left_is_no_running_client() {
        let root = tempfile::tempdir().unwrap();
        let me = process::find(process::own_pid()).unwrap();
        let file = |pid: u32, start: &str| json!({ "pid": pid, "procStart": start, "sessionId": "s" });
        write(root.path(), "1.json", &file(me.pid, "1"));
        write(root.path(), "2.json", &file(u32::MAX, "1"));
        write(root.path(), "3.json", &json!({ "sessionId": "s" }));
        assert!(all(root.path()).is_empty());
        write(root.path(), "4.json", &file(me.pid, me.start.as_deref().unwrap()));
        assert_eq!(all(root.path()).len(), 1);
    }
}
