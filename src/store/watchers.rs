//! `<state>/watchers/<client's pid>.json`: who watches for which client, and how it stands: a fact that the status
//! line, the hooks and doctor can check. And the lock of the one that works for all.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::lock::{Held, hold_while_there};
use super::{Store, atomic};
use crate::host::files;
use crate::host::process::{self, Process};

/// Directory of the stamps.
const DIR: &str = "watchers";
/// A stamp larger than this is not ours, in bytes.
const MOST: u64 = 64 << 10;

/// What a watcher says of itself. Written when something of it changes, never to show that it is alive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stamp {
    /// Its process number and start time.
    pub pid: u32,
    /// See there.
    pub start: Option<String>,
    /// The client's process number and start time.
    pub client: u32,
    /// See there.
    pub client_start: Option<String>,
    /// Which numbering both numbers are of, in a container another one.
    pub pid_space: Option<String>,
    /// When it began, epoch milliseconds.
    pub since_ms: i64,
    /// The session that it delivers to.
    pub session: Option<String>,
    /// Whether it works for all.
    pub leader: bool,
    /// The highest number in that session's inbox that was acknowledged; 0 where none was.
    pub acknowledged: u64,
    /// Events that were printed again and again and that nobody acknowledged.
    pub unheard: usize,
    /// It ended by itself, for this reason.
    pub ended: Option<String>,
}

impl Stamp {
    /// Whether this watcher runs.
    pub fn runs(&self) -> bool {
        self.ended.is_none() && Process { pid: self.pid, start: self.start.clone() }.runs()
    }

    /// Whether its numbers are of this numbering; one that does not say counts as such.
    fn is_numbered_as(&self, here: Option<&String>) -> bool {
        self.pid_space.is_none() || self.pid_space.as_ref() == here
    }

    fn is_of(&self, client: &Process) -> bool {
        let starts = self.client_start.as_ref().zip(client.start.as_ref());
        self.client == client.pid && starts.is_none_or(|(then, now)| then == now)
    }
}

impl Store {
    fn watcher_path(&self, client: u32, ending: &str) -> PathBuf {
        self.dir().join(DIR).join(format!("{client}.{ending}"))
    }

    fn last_watcher(&self, client: u32) -> Option<Stamp> {
        serde_json::from_slice(&files::read_small(&self.watcher_path(client, "json"), MOST).ok()?).ok()
    }

    /// The stamp of this client's watcher, the last one where there were several.
    pub fn watcher(&self, client: u32) -> Option<Stamp> {
        let stamp = self.last_watcher(client)?;
        // What a client of the same number left says nothing of this one.
        stamp.is_of(&process::find(client)?).then_some(stamp)
    }

    /// Replaces a watcher's stamp.
    pub fn save_watcher(&self, stamp: &Stamp) -> io::Result<()> {
        self.make_dir(DIR)?;
        atomic::replace(&self.watcher_path(stamp.client, "json"), &serde_json::to_vec(stamp)?, false)
    }

    /// Takes the right to keep the notice of this watcher's end from the model: once for each watcher, and only
    /// when it has ended.
    pub fn take_end_of(&self, stamp: &Stamp) -> io::Result<bool> {
        let path = self.watcher_path(stamp.client, "told");
        let name = format!("{} {}", stamp.pid, stamp.start.as_deref().unwrap_or_default());
        let told = files::read_small(&path, MOST).unwrap_or_default();
        if stamp.runs() || told == name.as_bytes() {
            return Ok(false);
        }
        atomic::replace(&path, name.as_bytes(), false)?;
        Ok(true)
    }

    /// Takes a watcher's stamp away, with its client.
    pub fn forget_watcher(&self, stamp: &Stamp) {
        for ending in ["json", "told"] {
            let _ = std::fs::remove_file(self.watcher_path(stamp.client, ending));
        }
    }

    fn leader_path(&self) -> PathBuf {
        self.dir().join("leader")
    }

    /// Takes the lock of the one watcher that works for all, where nobody holds it.
    pub fn lead(&self) -> io::Result<Option<Held>> {
        atomic::make_private(self.dir())?;
        hold_while_there(&self.leader_path(), 0)
    }

    /// Whether that lock, held, is still the one that everybody asks for: another may have taken over.
    pub fn leads(&self, lead: &Held) -> bool {
        lead.has_name(&self.leader_path())
    }

    /// A number that changes with every sign of life of the leader.
    pub fn leader_version(&self) -> u64 {
        files::version(&self.leader_path())
    }

    /// Takes its place from a leader that has shown no life since this version: it is stopped, or hangs. When it
    /// wakes it finds another one.
    pub fn depose(&self, version: u64) {
        if self.leader_version() == version {
            let _ = std::fs::remove_file(self.leader_path());
        }
    }

    /// Takes away stamps of clients that are gone; of those in another container nobody here knows whether they are. At
    /// most `limit` entries are looked at.
    pub fn prune_watchers(&self, limit: usize) {
        let here = process::numbering();
        let runs = |stamp: &Stamp| process::find(stamp.client).is_some_and(|client| stamp.is_of(&client));
        let is_gone = |client| {
            let stamp = self.last_watcher(client);
            stamp.is_none_or(|stamp| stamp.is_numbered_as(here.as_ref()) && !runs(&stamp))
        };
        let Ok(entries) = std::fs::read_dir(self.dir().join(DIR)) else { return };
        for path in entries.flatten().take(limit).map(|entry| entry.path()) {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let client = name.split_once('.').filter(|(_, ending)| matches!(*ending, "json" | "told"));
            let client: Option<u32> = client.and_then(|(pid, _)| pid.parse().ok());
            if client.is_some_and(is_gone) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    fn store() -> (tempfile::TempDir, Store) {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        (root, Store::locate(&host, &[]).unwrap())
    }

    fn stamp() -> Stamp {
        let me = process::find(process::own_pid()).unwrap();
        let (pid, start) = (me.pid, me.start);
        Stamp { pid, start: start.clone(), client: pid, client_start: start, ..Stamp::default() }
    }

    #[test]
    fn the_end_of_a_watcher_is_kept_from_the_model_once() {
        let (_root, store) = store();
        let running = stamp();
        store.save_watcher(&running).unwrap();
        assert_eq!(store.watcher(running.client), Some(running.clone()));
        assert!(!store.take_end_of(&running).unwrap(), "it runs");
        let ended = Stamp { ended: Some("background".into()), ..running.clone() };
        assert!(store.take_end_of(&ended).unwrap());
        assert!(!store.take_end_of(&ended).unwrap());
        let dead = Stamp { pid: u32::MAX, start: Some("1".into()), ..running };
        assert!(store.take_end_of(&dead).unwrap(), "another watcher");
        assert!(!store.take_end_of(&dead).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_client_of_the_same_number_left_says_nothing() {
        let (_root, store) = store();
        let left = Stamp { client_start: Some("1".into()), ..stamp() };
        store.save_watcher(&left).unwrap();
        assert_eq!(store.watcher(left.client), None);
        store.prune_watchers(10);
        assert!(!store.watcher_path(left.client, "json").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_watches_in_another_container_is_left_alone() {
        let (_root, store) = store();
        let elsewhere = Stamp { client: u32::MAX, pid_space: Some("pid:[1]".into()), ..stamp() };
        store.save_watcher(&elsewhere).unwrap();
        let here = Stamp { client: u32::MAX - 1, pid_space: process::numbering(), ..stamp() };
        store.save_watcher(&here).unwrap();
        store.prune_watchers(10);
        let is_left = |client| store.watcher_path(client, "json").exists();
        assert!(is_left(elsewhere.client) && !is_left(here.client));
    }

    #[test]
    fn one_leads() {
        let (_root, store) = store();
        let first = store.lead().unwrap();
        assert!(first.is_some());
        assert!(store.lead().unwrap().is_none());
        drop(first);
        assert!(store.lead().unwrap().is_some());
    }

    #[test]
    fn a_leader_that_shows_no_life_is_deposed_and_knows_it() {
        let (_root, store) = store();
        let first = store.lead().unwrap().unwrap();
        let version = store.leader_version();
        first.show().unwrap();
        store.depose(version);
        assert!(store.leads(&first) && store.lead().unwrap().is_none(), "it has shown life");
        store.depose(store.leader_version());
        assert!(!store.leads(&first));
        let second = store.lead().unwrap().unwrap();
        assert!(store.leads(&second) && !store.leads(&first) && store.lead().unwrap().is_none());
        drop(first);
        assert!(store.lead().unwrap().is_none());
    }
}
