//! What a running client shows now, from `<config>/sessions/<pid>.json`: it rewrites the file on `/clear` and
//! `/resume`, and whenever it begins or ends to work.

use std::path::{Path, PathBuf};

use super::lenient::object;
use super::session_file::SessionFile;
use crate::base::id::SessionId;
use crate::host::files;
use crate::host::process::Process;

/// What one client shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The session.
    pub session: Option<SessionId>,
    /// It is a background session.
    pub background: bool,
    /// Its turn has ended: it says `idle`, or `shell`, which it says as long as any monitor runs. One that says
    /// nothing (an older client) counts as such.
    pub quiet: bool,
    /// When the client was started, epoch ms, where it says.
    pub started_ms: Option<i64>,
}

/// Where a client says what it shows.
pub fn path(config: &Path, pid: u32) -> PathBuf {
    config.join("sessions").join(format!("{pid}.json"))
}

/// What this client says; `None` where it says nothing, or another one of the same number did.
pub fn read(config: &Path, client: &Process) -> Option<Shown> {
    let file: SessionFile = object(&files::read_small(&path(config, client.pid), 1 << 20).ok()?)?;
    let starts = file.proc_start.as_ref().zip(client.start.as_ref());
    let is_its = file.pid.is_none_or(|pid| pid == client.pid) && starts.is_none_or(|(said, is)| said == is);
    is_its.then(|| Shown {
        session: file.session_id.as_deref().and_then(SessionId::parse),
        background: file.kind.as_deref() == Some("bg"),
        quiet: file.status.as_deref().is_none_or(|status| matches!(status, "idle" | "shell")),
        started_ms: file.started_at.and_then(|at| i64::try_from(at).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_is_believed_when_it_is_this_very_one() {
        let root = tempfile::tempdir().unwrap();
        let client = Process { pid: 7, start: Some("99".into()) };
        assert_eq!(read(root.path(), &client), None);
        fs_err::create_dir_all(root.path().join("sessions")).unwrap();
        let says = |more: serde_json::Value| {
            let mut file = json!({ "pid": 7, "sessionId": "s", "procStart": "99", "kind": "interactive" });
            file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            fs_err::write(path(root.path(), 7), file.to_string()).unwrap();
            read(root.path(), &client)
        };
        let shown =
            Shown { session: SessionId::parse("s"), background: false, quiet: true, started_ms: None };
        assert_eq!(says(json!({})), Some(shown.clone()));
        for (status, quiet) in [("idle", true), ("shell", true), ("busy", false), ("waiting", false)] {
            assert_eq!(says(json!({ "status": status })), Some(Shown { quiet, ..shown.clone() }), "{status}");
        }
        assert!(says(json!({ "kind": "bg" })).unwrap().background);
        assert_eq!(says(json!({ "procStart": "98" })), None);
    }
}
