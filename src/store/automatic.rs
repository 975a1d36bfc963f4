//! Exports that longhaul made on its own account: which there are, and how many of them stay.
//!
//! Only where its key says so is an export automatic. The ending of its id says it too, so that no other key has
//! to be read; an id alone takes nothing away, since a session can be called anything.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use serde::Deserialize;

use super::Store;
use super::chains::Entry;
use super::exports::short;
use crate::base::id::SessionId;

/// How the ids of automatic exports end; a number may follow.
pub(super) const ENDING: &str = "-auto";
/// How many of one session stay.
const LAST: usize = 3;
/// How long somebody who changes the list of handoffs is waited for, in ms.
const PATIENCE_MS: u64 = 200;

/// An automatic export.
#[derive(Debug, Clone)]
pub struct Automatic {
    /// Its id.
    pub id: String,
    /// The session.
    pub session: SessionId,
    /// How much of the transcript it holds, in bytes.
    pub until: u64,
    /// When it was due, epoch milliseconds.
    pub due_ms: i64,
    /// Where it lies.
    pub dir: PathBuf,
}

#[derive(Deserialize)]
struct Key {
    automatic: Option<Mark>,
}

#[derive(Deserialize)]
struct Mark {
    session: String,
    until: u64,
    due_ms: i64,
}

impl Store {
    /// The automatic exports of this session that are there, the oldest first.
    pub fn automatic_exports_of(&self, session: &SessionId) -> Vec<Automatic> {
        let mut all = self.automatic_keys(&short(session.as_str()));
        all.retain(|export| export.session == *session && is_there(export));
        all
    }

    /// What keys tell of automatic exports whose ids have this before the ending, the oldest first.
    fn automatic_keys(&self, short: &str) -> Vec<Automatic> {
        let Ok(keys) = std::fs::read_dir(self.dir().join("handoff-keys")) else { return Vec::new() };
        let marked = format!("{short}{ENDING}");
        let mut all: Vec<Automatic> = keys
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let id = name.strip_suffix(".json").filter(|id| id.contains(&marked))?;
                let key: Key = serde_json::from_slice(&self.export_key(id).ok()?).ok()?;
                let Mark { session, until, due_ms } = key.automatic?;
                let (session, dir) = (SessionId::parse(&session)?, self.export_dir(id)?);
                Some(Automatic { id: id.to_owned(), session, until, due_ms, dir })
            })
            .collect();
        oldest_first(&mut all);
        all
    }

    /// Takes away what is too much: of each session all but the last three, and of all together the oldest,
    /// until `most` bytes are left. The one called `keep` stays, and so does every one that a handoff names or
    /// somebody works with. Where it is not known which ones handoffs name, nothing is taken away. Says how many
    /// went; an error where one that is too much could not go, all others have gone then.
    pub fn cap_automatic_exports(&self, keep: &str, most: u64) -> io::Result<usize> {
        let all = self.automatic_keys("");
        let mut failed = None;
        let gone = self.look_at_chains(PATIENCE_MS, |entries| {
            let mut gone = Vec::new();
            let mut remove = |export: &Automatic| {
                if export.id == keep || is_named(export, entries) {
                    return false;
                }
                let removed = self.take_away(&export.id).unwrap_or_else(|error| {
                    failed.get_or_insert(error);
                    None
                });
                removed.map(|removed| gone.push(removed)).is_some()
            };
            let (mut left, mut newer) = (Vec::new(), HashMap::new());
            for export in all.iter().rev().filter(|export| self.stands(export)) {
                let newer: &mut usize = newer.entry(&export.session).or_default();
                if *newer < LAST || !remove(export) {
                    left.push((export, self.export_bytes(&export.id)));
                }
                *newer += 1;
            }
            let mut total: u64 = left.iter().map(|(_, bytes)| bytes).sum();
            for (export, bytes) in left.iter().rev() {
                if total <= most {
                    break;
                }
                if remove(export) {
                    total = total.saturating_sub(*bytes);
                }
            }
            gone
        })?;
        // The files themselves go when nobody waits for the list any more.
        failed.map_or(Ok(gone.len()), Err)
    }

    /// Whether an export is there. A key without one goes where a removal was ended in the middle; an export that
    /// is about to be there has a job until it is, so that is looked for first.
    fn stands(&self, export: &Automatic) -> bool {
        let comes = self.has_job(&export.id);
        let is_there = is_there(export);
        if !comes && !is_there {
            let _ = self.take_away(&export.id);
        }
        is_there
    }
}

/// Puts the oldest first, also where the clock was set back meanwhile: a transcript only grows, so of one session
/// the shorter is the older, and none is younger than one that came after it.
fn oldest_first(all: &mut [Automatic]) {
    let mut known: HashMap<SessionId, i64> = HashMap::new();
    all.sort_by(|a, b| (a.until, a.due_ms, &a.id).cmp(&(b.until, b.due_ms, &b.id)));
    let mut made = HashMap::new();
    for export in all.iter().rev() {
        let earliest = known.entry(export.session.clone()).or_insert(export.due_ms);
        *earliest = export.due_ms.min(*earliest);
        made.insert(export.id.clone(), *earliest);
    }
    // Those of one time stay as they are.
    all.sort_by_key(|export| made.get(&export.id).copied());
}

fn is_there(export: &Automatic) -> bool {
    export.dir.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

fn is_named(export: &Automatic, entries: &[Entry]) -> bool {
    let named =
        |entry: &Entry| entry.id == export.id || entry.directory.file_name() == export.dir.file_name();
    entries.iter().any(named)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::host::Host;
    use crate::store::atomic::make_private;

    fn store(root: &Path) -> Store {
        Store::locate(&Host::fixed(&[("HOME", root.to_str().unwrap())], 0), &[]).unwrap()
    }

    /// An export of a session of so many bytes on the disk.
    fn add(store: &Store, session: &str, due_ms: i64, size: usize) -> String {
        add_until(store, session, due_ms, 1, size)
    }

    /// The same of one that was so long then.
    fn add_until(store: &Store, session: &str, due_ms: i64, until: u64, size: usize) -> String {
        let id = format!("2026-{due_ms:04}-{}{ENDING}", short(session));
        let key = json!({ "automatic": { "session": session, "until": until, "due_ms": due_ms } });
        write(store, &id, &key.to_string(), size);
        id
    }

    fn write(store: &Store, id: &str, key: &str, size: usize) {
        let (keys, dir) = (store.make_dir("handoff-keys").unwrap(), store.export_dir(id).unwrap());
        make_private(&dir).unwrap();
        fs_err::write(dir.join("03-full-transcript.txt"), vec![b'x'; size]).unwrap();
        fs_err::write(keys.join(format!("{id}.json")), key).unwrap();
    }

    /// The exports that are there; each with its key, and no key without an export.
    #[track_caller]
    fn there(store: &Store) -> Vec<String> {
        let names = |dir: &str, ending: &str| {
            let all = fs_err::read_dir(store.dir().join(dir)).unwrap();
            let all = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut all: Vec<String> =
                all.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
            all.sort();
            all
        };
        let exports = names("handoffs", "");
        assert_eq!(exports, names("handoff-keys", ".json"), "half an export");
        exports
    }

    #[test]
    fn the_last_three_of_a_session_stay() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let other: Vec<String> = (1..=2).map(|at| add(&store, "session-b", at, 10)).collect();
        let ids: Vec<String> = (3..=7).map(|at| add(&store, "session-a", at, 10)).collect();
        assert_eq!(store.cap_automatic_exports(&ids[4], u64::MAX).unwrap(), 2);
        assert_eq!(there(&store), [&other, &ids[2..]].concat());
        let listed = store.automatic_exports_of(&SessionId::parse("session-a").unwrap());
        assert_eq!(listed.into_iter().map(|export| export.id).collect::<Vec<_>>(), ids[2..]);
    }

    /// The clock was wrong when the first three were made, and was set back.
    #[test]
    fn what_was_made_before_the_clock_was_set_back_is_older() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let session = SessionId::parse("session-a").unwrap();
        let early: Vec<String> =
            (1..=3).map(|n| add_until(&store, "session-a", 9_000 + n, n.unsigned_abs(), 100)).collect();
        let other = add(&store, "session-b", 50, 100);
        let late: Vec<String> =
            (4..=5).map(|n| add_until(&store, "session-a", n, n.unsigned_abs(), 100)).collect();
        let listed = store.automatic_exports_of(&session).into_iter().map(|export| export.id);
        assert_eq!(listed.collect::<Vec<_>>(), [&early[..], &late[..]].concat());
        assert_eq!(store.cap_automatic_exports(&late[1], u64::MAX).unwrap(), 2);
        assert_eq!(there(&store), [&late[..], std::slice::from_ref(&other), &early[2..]].concat());
        assert_eq!(store.cap_automatic_exports(&late[1], 200).unwrap(), 2);
        assert_eq!(there(&store), [late[1].clone(), other]);
    }

    #[test]
    fn above_the_size_the_oldest_go_and_the_one_just_made_never_does() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let ids: Vec<String> = (1..=4).map(|at| add(&store, &format!("session-{at}"), at, 100)).collect();
        assert_eq!(store.cap_automatic_exports(&ids[3], 400).unwrap(), 0);
        assert_eq!(store.cap_automatic_exports(&ids[3], 399).unwrap(), 1);
        assert_eq!(there(&store), ids[1..]);
        assert_eq!(store.cap_automatic_exports(&ids[1], 0).unwrap(), 2);
        assert_eq!(there(&store), ids[1..2]);
    }

    #[test]
    fn what_is_named_held_or_asked_for_stays() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let ids: Vec<String> = (1..=4).map(|at| add(&store, "session-a", at, 100)).collect();
        write(&store, "20261130T000000Z-mine", "{}", 100);
        write(&store, "20261130T000000Z-x-auto", "{}", 100);
        write(&store, "20261130T000000Z-y-auto", "no key", 100);
        let entry = json!({ "id": "other", "state": "accepted", "parent": { "session": "p" },
            "directory": store.export_dir(&ids[0]).unwrap() });
        let entry = serde_json::from_value(entry).unwrap();
        store.change_chains(|all| all.push(entry)).unwrap();
        let held = store.hold_export(&ids[1]).unwrap().unwrap();
        assert_eq!(store.cap_automatic_exports(&ids[3], 0).unwrap(), 1);
        assert_eq!(there(&store).len(), 6);
        assert!(store.export_dir(&ids[0]).unwrap().is_dir() && store.export_dir(&ids[1]).unwrap().is_dir());
        drop(held);
        assert_eq!(store.cap_automatic_exports(&ids[3], 0).unwrap(), 1);
        assert!(!store.export_dir(&ids[1]).unwrap().exists());
    }

    #[test]
    fn where_the_names_are_not_known_nothing_goes() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let ids: Vec<String> = (1..=5).map(|at| add(&store, "session-a", at, 100)).collect();
        let path = store.dir().join("chains.json");
        for broken in ["", "{", r#"{"version":2,"handoffs":[]}"#, r#"{"version":1,"handoffs":[{"id":7}]}"#] {
            fs_err::write(&path, broken).unwrap();
            store.cap_automatic_exports(&ids[4], 0).unwrap_err();
            assert_eq!(fs_err::read_to_string(&path).unwrap(), broken, "it is only looked at");
        }
        // Somebody else set it aside meanwhile, and a new one began.
        store.chains().unwrap();
        store.change_chains(Vec::clear).unwrap();
        let error = store.cap_automatic_exports(&ids[4], 0).unwrap_err();
        assert!(error.to_string().contains("chains.json.unreadable-1"), "{error}");
        assert_eq!(there(&store), ids);
        fs_err::remove_file(store.dir().join("chains.json.unreadable-1")).unwrap();
        assert_eq!(store.cap_automatic_exports(&ids[4], 0).unwrap(), 4);
    }

    #[test]
    fn a_key_whose_export_is_gone_goes_but_not_one_whose_export_comes() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let ids: Vec<String> = (1..=2).map(|at| add(&store, "session-a", at, 100)).collect();
        for id in &ids {
            fs_err::remove_dir_all(store.export_dir(id).unwrap()).unwrap();
        }
        let jobs = store.make_dir("jobs").unwrap();
        fs_err::write(jobs.join(format!("{}.json", ids[1])), "{}").unwrap();
        store.cap_automatic_exports("", u64::MAX).unwrap();
        let keys = fs_err::read_dir(store.dir().join("handoff-keys")).unwrap();
        let keys: Vec<_> = keys.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(keys, [format!("{}.json", ids[1])]);
    }
    #[test]
    fn what_cannot_be_taken_away_is_told_and_the_others_go() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let ids: Vec<String> = (1..=5).map(|at| add(&store, "session-a", at, 100)).collect();
        fs_err::create_dir(store.dir().join(format!("handoff-keys/{}.lock", ids[0]))).unwrap();
        let error = store.cap_automatic_exports(&ids[4], u64::MAX).unwrap_err();
        assert!(error.to_string().contains(&ids[0]), "{error}");
        assert_eq!(there(&store), [&ids[..1], &ids[2..]].concat());
    }
}
