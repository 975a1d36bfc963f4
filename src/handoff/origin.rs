//! Where a session came from without a handoff: forks stand in its transcript, /clear in what hooks saw of the
//! processes that sessions run in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::base::id::SessionId;
use crate::client::{projects, transcript};
use crate::gauge::records::{Process, Seen};
use crate::store::Store;
use crate::store::chains::Link;
use crate::store::session::Slot;

/// So many records of sessions are looked at.
const RECORDS: usize = 20_000;
/// So many sessions one came from are named.
const ORIGINS: usize = 32;

/// What is known of sessions beside the registry.
#[derive(Debug, Default)]
pub struct Origins {
    seen: HashMap<String, Seen>,
}

impl Origins {
    /// Reads the records of all sessions.
    pub fn read(store: &Store) -> Self {
        let records = store.load_all(Slot::Seen, RECORDS).into_iter();
        let seen = records
            .filter_map(|(id, bytes)| Some((id.as_str().to_owned(), serde_json::from_slice(&bytes).ok()?)));
        Self { seen: seen.collect() }
    }

    /// A session with the process it was seen in, and everything it came from as far as transcripts and processes
    /// tell, the nearest first.
    pub fn link(&self, store: &Store, session: &SessionId, transcript: Option<&Path>) -> Link {
        let mut link = Link { session: session.as_str().to_owned(), ..Link::default() };
        if let Some(Process { pid, started, .. }) = self.seen.get(session.as_str()).map(|seen| &seen.process)
        {
            link.pid = *pid;
            link.started.clone_from(started);
        }
        let mut known = vec![session.clone()];
        let mut at = 0;
        while let Some(session) = known.get(at).cloned() {
            let named = transcript.filter(|_| at == 0).map(Path::to_path_buf);
            let path = named.or_else(|| self.transcript(store, &session));
            let told = path.map(|path| transcript::came_from(&path)).unwrap_or_default();
            let before = self.before(session.as_str(), &told).map(str::to_owned);
            for id in before.into_iter().chain(told).filter_map(|id| SessionId::parse(&id)) {
                if known.len() <= ORIGINS && !known.contains(&id) {
                    known.push(id);
                }
            }
            at += 1;
        }
        link.came_from = known.iter().skip(1).map(|id| id.as_str().to_owned()).collect();
        link
    }

    /// The sessions that began by /clear, each with the one before it.
    pub fn cleared(&self) -> Vec<Link> {
        let mut ids: Vec<&String> = self.seen.keys().collect();
        ids.sort();
        let cleared = ids.into_iter().filter_map(|id| {
            let came_from = vec![self.before(id, &[])?.to_owned()];
            Some(Link { session: id.clone(), came_from, ..Link::default() })
        });
        cleared.collect()
    }

    /// The session that this one was cleared out of: the last one that was seen in the same process before it. A
    /// hook saw it begin so, or its transcript names a session of that process; one that was only resumed there
    /// came from none of them.
    fn before(&self, session: &str, told: &[String]) -> Option<&str> {
        let own = &self.seen.get(session)?.process;
        let started = own.started.as_ref()?;
        let earlier = self.seen.iter().filter(|(id, seen)| {
            let other = &seen.process;
            let same = other.pid == own.pid && other.started.as_ref() == Some(started);
            same && other.since_ms < own.since_ms && *id != session
        });
        let began_there = own.cleared || earlier.clone().any(|(id, _)| told.contains(id));
        let last =
            earlier.filter(|_| began_there).max_by_key(|(id, seen)| (seen.process.since_ms, id.as_str()));
        last.map(|(id, _)| id.as_str())
    }

    fn transcript(&self, store: &Store, session: &SessionId) -> Option<PathBuf> {
        let kept = self.seen.get(session.as_str()).and_then(|seen| seen.transcript.as_ref());
        let kept = kept.map(PathBuf::from).filter(|path| path.is_file());
        kept.or_else(|| projects::transcript(store.config(), session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use serde_json::json;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    #[test]
    fn cleared_sessions_go_back_through_their_process_and_forks_through_their_rows() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::locate(&Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0), &[]).unwrap();
        store.prepare().unwrap();
        let seen = |session: &str, pid: u32, since: i64, cleared: bool| {
            let record =
                json!({ "process": { "pid": pid, "started": "7", "since_ms": since, "cleared": cleared } });
            store.save(&id(session), Slot::Seen, record.to_string().as_bytes()).unwrap();
        };
        seen("a", 1, 10, false);
        seen("resumed", 1, 20, false);
        seen("b", 1, 30, true);
        seen("c", 1, 40, true);
        seen("unseen", 1, 50, false);
        seen("other", 2, 35, false);
        let projects = store.config().join("projects/-work");
        fs_err::create_dir_all(&projects).unwrap();
        let row = |own: &str, from: &str| {
            let row =
                json!({ "type": "assistant", "message": {}, "sessionId": own, "requestSessionId": from });
            fs_err::write(projects.join(format!("{own}.jsonl")), format!("{row}\n")).unwrap();
        };
        row("fork", "c");
        row("resumed", "first");
        row("first", "fork");
        row("unseen", "a");
        let origins = Origins::read(&store);
        let from = |session: &str| origins.link(&store, &id(session), None).came_from;
        assert_eq!(from("c"), ["b", "resumed", "first", "fork"]);
        assert_eq!(from("fork"), ["c", "b", "resumed", "first"], "a ring ends");
        assert_eq!(from("unseen")[..2], ["c", "a"], "no hook saw how it began");
        assert_eq!(from("a"), [""; 0]);
        assert_eq!(from("other"), [""; 0]);
        let link = origins.link(&store, &id("c"), Some(&projects.join("first.jsonl")));
        assert_eq!((link.pid, link.started.as_deref()), (Some(1), Some("7")));
        assert_eq!(link.came_from, ["b", "fork", "resumed", "first"], "the transcript that was named");
        let cleared: Vec<_> =
            origins.cleared().into_iter().map(|link| (link.session, link.came_from)).collect();
        let pair = |to: &str, from: &str| (to.to_owned(), vec![from.to_owned()]);
        assert_eq!(cleared, [pair("b", "resumed"), pair("c", "b")]);
        assert_eq!(Origins::default().link(&store, &id("c"), None).came_from, [""; 0]);
    }
}
