//! What the other sessions' status lines say, in one small file: `<state>/fleet.json`. It holds for a while only,
//! since whoever wrote it may be gone.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::incidents::Kind;
use super::{Store, atomic};
use crate::base::id::SessionId;
use crate::host::files;

/// How a file of this version says so.
const VERSION: u64 = 1;

/// The sessions that somebody should look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fleet {
    /// Version of the layout.
    pub v: u64,
    /// Until when it holds, epoch ms: whoever wrote it may be gone.
    pub until_ms: i64,
    /// By name.
    pub sessions: Vec<Member>,
    /// How many more there are that find no place here, by kind.
    pub more: Counts,
    /// No notifier could tell of one of them: a terminal is to.
    pub unheard: bool,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub session: String,
    /// What has become of it.
    pub kind: Kind,
}

/// How many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Are stuck, or may be.
    pub stalled: usize,
    /// Have died.
    pub dead: usize,
    /// Wait for the person.
    pub waiting: usize,
}

impl Counts {
    fn add(&mut self, kind: Kind) {
        match kind {
            Kind::Stale | Kind::DeadLike => self.stalled += 1,
            Kind::Dead => self.dead += 1,
            Kind::Waiting => self.waiting += 1,
            Kind::Restarted => {}
        }
    }
}

/// So many sessions stand there by name; of more nobody needs to know whether they are their own.
const MEMBERS: usize = 64;
/// A file larger than this is not ours, in bytes.
const FLEET_MOST: u64 = 32 << 10;
const FLEET: &str = "fleet.json";

impl Fleet {
    /// Of all these.
    pub fn of(all: impl Iterator<Item = (String, Kind)>, unheard: bool) -> Self {
        let mut fleet = Self { v: VERSION, unheard, ..Self::default() };
        for (session, kind) in all {
            if fleet.sessions.len() < MEMBERS {
                fleet.sessions.push(Member { session, kind });
            } else {
                fleet.more.add(kind);
            }
        }
        fleet
    }

    /// Nobody need look at anything.
    pub fn is_calm(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many others there are beside this session.
    pub fn beside(&self, own: Option<&SessionId>) -> Counts {
        let mut counts = self.more;
        let is_other = |member: &&Member| own.is_none_or(|own| own.as_str() != member.session);
        self.sessions.iter().filter(is_other).for_each(|member| counts.add(member.kind));
        counts
    }
}

impl Store {
    /// The file's name, for whoever waits for a change of it.
    pub fn fleet_path(&self) -> PathBuf {
        self.dir().join(FLEET)
    }

    /// What is said of the other sessions now. One small read, and none of it an error: nobody could be told.
    pub fn fleet(&self, now_ms: i64) -> Fleet {
        let bytes = files::read_small(&self.fleet_path(), FLEET_MOST).unwrap_or_default();
        let fleet: Option<Fleet> = serde_json::from_slice(&bytes).ok();
        fleet.filter(|fleet| fleet.v == VERSION && now_ms < fleet.until_ms).unwrap_or_default()
    }

    /// Replaces it; where there is nothing to say, there is no file.
    pub fn save_fleet(&self, fleet: &Fleet) -> io::Result<()> {
        let path = self.fleet_path();
        if fleet.is_calm() {
            return match std::fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        }
        atomic::make_private(self.dir())?;
        atomic::replace(&path, &serde_json::to_vec(fleet)?, false)
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

    #[test]
    fn a_summary_counts_the_others_while_it_holds() {
        let (_root, store) = store();
        let own = SessionId::parse("own").unwrap();
        assert_eq!(store.fleet(0), Fleet::default());
        let kinds = [("own", Kind::Stale), ("a", Kind::DeadLike), ("b", Kind::Dead), ("c", Kind::Waiting)];
        let of = |kinds: &[(&str, Kind)]| {
            Fleet::of(kinds.iter().map(|(session, kind)| ((*session).to_owned(), *kind)), false)
        };
        store.save_fleet(&Fleet { until_ms: 100, ..of(&kinds) }).unwrap();
        let fleet = store.fleet(99);
        assert_eq!(fleet.beside(Some(&own)), Counts { stalled: 1, dead: 1, waiting: 1 });
        assert_eq!(fleet.beside(None).stalled, 2);
        assert!(store.fleet(100).is_calm(), "whoever wrote it may be gone");
        let many: Vec<(String, Kind)> = (0..1_000).map(|n| (format!("{n:064}"), Kind::Waiting)).collect();
        let fleet = Fleet { until_ms: 100, ..Fleet::of(many.into_iter(), true) };
        store.save_fleet(&fleet).unwrap();
        assert_eq!(store.fleet(0).beside(None).waiting, 1_000);
        store.save_fleet(&of(&[])).unwrap();
        store.save_fleet(&of(&[])).unwrap();
        assert!(!store.dir().join(FLEET).exists());
    }

    #[test]
    fn a_summary_of_anything_is_read_without_a_panic() {
        let (_root, store) = store();
        fs_err::create_dir_all(store.dir()).unwrap();
        for odd in
            ["", "7", "{\"v\":1}", "{\"v\":9,\"until_ms\":9}", "{\"v\":1,\"until_ms\":9,\"sessions\":{}}"]
        {
            fs_err::write(store.dir().join(FLEET), odd).unwrap();
            assert!(store.fleet(0).is_calm(), "{odd}");
        }
        fs_err::write(store.dir().join(FLEET), vec![b' '; 1 << 20]).unwrap();
        assert!(store.fleet(0).is_calm());
    }
}
