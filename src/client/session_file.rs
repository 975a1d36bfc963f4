//! `<config>/sessions/<pid>.json`: which session a running client shows now, and what it says of it. The files
//! beside them with other endings hold secrets and are never opened.

use std::path::Path;

use serde::Deserialize;

use super::lenient::{beginning, maybe, name};
use crate::base::id::SessionId;
use crate::host::process::Process;
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
    /// Which numbering `pid` is of; ends as the system names it. In a container there is another one.
    #[serde(deserialize_with = "name")]
    pub pid_domain: Option<String>,
    /// When the client was started, epoch ms.
    #[serde(deserialize_with = "maybe")]
    pub started_at: Option<u64>,
    /// `interactive` or `bg`; `bg-spare` is no session.
    #[serde(deserialize_with = "name")]
    pub kind: Option<String>,
    /// `cli`, `sdk-cli`, …
    #[serde(deserialize_with = "name")]
    pub entrypoint: Option<String>,
    /// The client's version.
    #[serde(deserialize_with = "name")]
    pub version: Option<String>,
    /// The session's name.
    #[serde(deserialize_with = "beginning")]
    pub name: Option<String>,
    /// Of a background session: its job.
    #[serde(deserialize_with = "name")]
    pub job_id: Option<String>,
    /// What it does. Absent in its first moments and under old clients.
    #[serde(deserialize_with = "name")]
    pub status: Option<String>,
    /// While it waits: what for.
    #[serde(deserialize_with = "beginning")]
    pub waiting_for: Option<String>,
    /// When the file was last written, epoch ms. It stands still while a tool runs or a response is waited for.
    #[serde(deserialize_with = "maybe")]
    pub updated_at: Option<u64>,
    /// Since when it does that, epoch ms.
    #[serde(deserialize_with = "maybe")]
    pub status_updated_at: Option<u64>,
}

/// What a running client says of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for the API, runs a tool or a hook, compacts, or a subagent of it runs.
    Busy,
    /// A question or a dialog is open.
    Waiting,
    /// Nothing runs.
    Idle,
    /// The turn has ended; a background task or any monitor runs.
    Shell,
}

impl Status {
    /// The client's own word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Shell => "shell",
        }
    }
}

impl SessionFile {
    /// What the client says; a word of a later version says nothing.
    pub fn status(&self) -> Option<Status> {
        Some(match self.status.as_deref()? {
            "busy" => Status::Busy,
            "waiting" => Status::Waiting,
            "idle" => Status::Idle,
            "shell" => Status::Shell,
            _ => return None,
        })
    }

    /// Whether the client that wrote this still runs; `None` where that cannot be told from here. `here` is the
    /// numbering of this process's numbers.
    pub fn fate(&self, here: Option<&str>) -> Option<bool> {
        let elsewhere = |domain: &String| here.is_some_and(|here| !domain.ends_with(here));
        if self.pid_domain.as_ref().is_some_and(elsewhere) {
            return None;
        }
        Process { pid: self.pid?, start: self.proc_start.clone() }.fate()
    }

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
    written(config).into_iter().filter(SessionFile::runs).collect()
}

/// Every readable file, those that killed clients left among them.
pub fn written(config: &Path) -> Vec<SessionFile> {
    let Ok(dir) = std::fs::read_dir(config.join("sessions")) else { return Vec::new() };
    let numbered = |path: &Path| {
        path.extension().is_some_and(|e| e == "json")
            && path.file_stem().is_some_and(|s| s.to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
    };
    dir.flatten()
        .map(|entry| entry.path())
        .filter(|path| numbered(path))
        .filter_map(|path| serde_json::from_slice(&files::read_small(&path, 1 << 20).ok()?).ok())
        .filter(|file: &SessionFile| file.kind.as_deref() != Some("bg-spare"))
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

    /// As 2.1.332 wrote it.
    #[test]
    fn what_the_client_says_is_read() {
        let file = r#"{"pid":1018,"sessionId":"s","startedAt":1796073783237,"procStart":"1451656","kind":"interactive",
            "entrypoint":"cli","pidDomain":"linux:3d12:pid:[4026531836]","name":"work-da","status":"waiting",
            "updatedAt":1796073794556,"statusUpdatedAt":1796073794556,"waitingFor":"permission prompt","later":[1]}"#;
        let file: SessionFile = serde_json::from_str(file).unwrap();
        assert_eq!(file.status(), Some(Status::Waiting));
        assert_eq!(file.waiting_for.as_deref(), Some("permission prompt"));
        assert_eq!(file.updated_at, Some(1_796_073_794_556));
        let odd: SessionFile = serde_json::from_str(r#"{"status":"pondering","updatedAt":-1}"#).unwrap();
        assert_eq!((odd.status(), odd.updated_at), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_in_another_container_is_neither_here_nor_gone() {
        let me = process::find(process::own_pid()).unwrap();
        let file = |domain: &str| SessionFile {
            pid: Some(me.pid),
            proc_start: me.start.clone(),
            pid_domain: Some(domain.to_owned()),
            ..SessionFile::default()
        };
        let here = process::numbering().unwrap();
        assert_eq!(file("linux:x:pid:[1]").fate(Some(&here)), None);
        assert_eq!(file(&format!("linux:x:{here}")).fate(Some(&here)), Some(true));
    }

    // EdamAme-x/pentect#1299: a process number that is used again is another process.
    // thedotmack/claude-mem/issues/1446: a file that a killed process left was believed.
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
