//! `<config>/jobs/<id>/state.json`: what the client's supervisor says of a background session. Read only.

use std::path::Path;

use serde::Deserialize;

use super::lenient::{beginning, name};
use crate::base::id::is_plain;
use crate::base::span::parse_stamp;
use crate::host::files;

/// The largest one that is read, in bytes.
const MOST: u64 = 1 << 20;

/// One background session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Job {
    /// working, running, done, blocked, failed, stopped, crashed, ….
    #[serde(deserialize_with = "name")]
    pub state: Option<String>,
    /// active, idle, or blocked: it waits for the person.
    #[serde(deserialize_with = "name")]
    pub tempo: Option<String>,
    /// What it needs of the person.
    #[serde(deserialize_with = "beginning")]
    pub needs: Option<String>,
    /// Its name.
    #[serde(deserialize_with = "beginning")]
    pub name: Option<String>,
    /// The session that it shows now; follows /clear.
    #[serde(deserialize_with = "name")]
    pub resume_session_id: Option<String>,
    /// When it was written, RFC 3339.
    #[serde(deserialize_with = "name")]
    updated_at: Option<String>,
}

impl Job {
    /// What the supervisor says of the job of this id.
    pub fn load(config: &Path, id: &str) -> Option<Self> {
        if !is_plain(id) {
            return None;
        }
        let path = config.join("jobs").join(id).join("state.json");
        serde_json::from_slice(&files::read_small(&path, MOST).ok()?).ok()
    }

    /// Whether it waits for the person.
    pub fn is_blocked(&self) -> bool {
        self.tempo.as_deref() == Some("blocked")
    }

    /// Whether its process died and the supervisor is about to start it again, which takes 12 to 15 s.
    pub fn has_crashed(&self) -> bool {
        self.state.as_deref() == Some("crashed")
    }

    /// Whether it is over, for whatever reason.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_deref(), Some("done" | "failed" | "stopped"))
    }

    /// When it was written, epoch ms.
    pub fn updated_ms(&self) -> Option<i64> {
        parse_stamp(self.updated_at.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 2.1.332 wrote them.
    #[test]
    fn a_job_says_whether_it_waits_or_has_crashed() {
        let root = tempfile::tempdir().unwrap();
        let write = |id: &str, text: &str| {
            let dir = root.path().join("jobs").join(id);
            fs_err::create_dir_all(&dir).unwrap();
            fs_err::write(dir.join("state.json"), text).unwrap();
            Job::load(root.path(), id)
        };
        let question =
            r#"{"state":"working","detail":"Which?","tempo":"blocked","needs":"answer: Which? (A)"}"#;
        let job = write("a1", question).unwrap();
        assert!(job.is_blocked() && !job.is_over() && !job.has_crashed());
        assert_eq!(job.needs.as_deref(), Some("answer: Which? (A)"));
        let crashed = r#"{"state":"crashed","detail":"SIGKILL (137); respawning","tempo":"idle",
            "updatedAt":"2026-11-30T21:24:24.742Z","inFlight":{"tasks":1}}"#;
        let job = write("a2", crashed).unwrap();
        assert!(job.has_crashed() && !job.is_blocked());
        assert_eq!(job.updated_ms(), Some(1_796_073_864_742));
        assert!(write("a3", r#"{"state":"stopped"}"#).unwrap().is_over());
        assert_eq!(write("a4", r#"{"state":7,"needs":[]}"#), Some(Job::default()));
        assert_eq!(write("a5", "{"), None);
        assert_eq!(Job::load(root.path(), "../jobs/a1"), None);
    }
}
