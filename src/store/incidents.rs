//! `<state>/incidents.json`: what has become of sessions and whether the person was told, one state for whoever
//! tells: the watcher, a timer, a hook. Under a lock, replaced whole, bounded. What stands in it is decided by
//! `liveness::incidents`.

use std::io;

use serde::{Deserialize, Serialize};

use super::lock::hold_for;
use super::{Store, atomic};
use crate::base::id::digest;
use crate::host::files;

/// How a file of this version says so.
pub(super) const VERSION: u64 = 1;
/// A file larger than this is not ours, in bytes.
const MOST: u64 = 8 << 20;
/// So many incidents are kept; the oldest that are over go first.
const KEPT: usize = 2_000;

/// What has become of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// It may be stuck.
    #[serde(rename = "stale?")]
    Stale,
    /// It is stuck, most likely.
    #[serde(rename = "dead?")]
    DeadLike,
    /// Its process is gone, and no end was seen.
    #[serde(rename = "dead")]
    Dead,
    /// It waits for the person.
    #[serde(rename = "waiting")]
    Waiting,
    /// It had died, and the client's supervisor started it again.
    #[serde(rename = "restarted")]
    Restarted,
}

impl Kind {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stale => "stale?",
            Self::DeadLike => "dead?",
            Self::Dead => "dead",
            Self::Waiting => "waiting",
            Self::Restarted => "restarted",
        }
    }

    /// Whether it is the same matter, which need not be told again: one that may be stuck and then is, most likely,
    /// has not moved in between.
    pub fn is_of(self, other: Self) -> bool {
        let matter = |kind| if kind == Self::DeadLike { Self::Stale } else { kind };
        matter(self) == matter(other)
    }
}

/// A moment on both clocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moment {
    /// Epoch ms.
    pub ms: i64,
    /// On the clock that stands still while the machine sleeps, in ms.
    pub mono_ms: i64,
    /// The boot that this one is of.
    pub boot: Option<String>,
}

/// How far the telling came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// Nobody has yet.
    #[default]
    No,
    /// Somebody is about to.
    Taken,
    /// A notifier has.
    Yes,
    /// No notifier could: a terminal may.
    Unheard,
    /// A terminal has.
    Rung,
}

/// An incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// The session.
    pub session: String,
    /// What has become of it.
    pub kind: Kind,
    /// When that was first seen.
    pub begun: Moment,
    /// Whether the person was told.
    #[serde(default)]
    pub told: Told,
    /// When somebody last was about to, epoch ms.
    #[serde(default)]
    pub taken_ms: i64,
    /// So often.
    #[serde(default)]
    pub tries: u32,
    /// Since when it is over, epoch ms; it goes on where the session has not moved since it began.
    #[serde(default)]
    pub ended_ms: Option<i64>,
    /// Of a restart: when that was, epoch seconds.
    #[serde(default)]
    pub restarted: Option<i64>,
    /// What a terminal is to say.
    #[serde(default)]
    pub line: String,
}

impl Incident {
    /// The same incident has the same id, whoever asks.
    pub fn id(&self) -> String {
        let number = digest(&[
            self.session.as_bytes(),
            self.kind_of_matter().as_bytes(),
            &self.begun.ms.to_le_bytes(),
        ]);
        format!("incident-{number:016x}")
    }

    fn kind_of_matter(&self) -> &'static str {
        if self.kind.is_of(Kind::Stale) { Kind::Stale.word() } else { self.kind.word() }
    }
}

#[derive(Deserialize)]
struct Head {
    v: u64,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Incidents {
    v: u64,
    /// The incidents.
    pub incidents: Vec<Incident>,
    /// Why the notifier could not tell, the last time: it is said once, not every three minutes.
    pub trouble: Option<String>,
}

impl Store {
    /// Hands over all incidents, to be changed by one program at a time, and keeps what becomes of them. Whoever
    /// holds them is waited for this long, in ms.
    pub fn change_incidents<T>(
        &self,
        patience_ms: u64,
        change: impl FnOnce(&mut Incidents) -> T,
    ) -> io::Result<T> {
        atomic::make_private(self.dir())?;
        let _held = hold_for(&self.dir().join("incidents.lock"), patience_ms)?;
        let before = self.read_incidents()?;
        let mut all = before.clone();
        let answer = change(&mut all);
        bound(&mut all.incidents);
        if all != before {
            all.v = VERSION;
            let bytes = serde_json::to_vec(&all)?;
            atomic::replace(&self.dir().join("incidents.json"), &bytes, false)?;
        }
        Ok(answer)
    }

    /// Whether there are any, also such as are over.
    pub fn has_incidents(&self) -> bool {
        self.dir().join("incidents.json").exists()
    }

    /// What cannot be read is set aside: the worst that follows is that something is told twice.
    fn read_incidents(&self) -> io::Result<Incidents> {
        let path = self.dir().join("incidents.json");
        let bytes = match files::read_small(&path, MOST) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Incidents::default()),
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                Vec::new()
            }
            Err(e) => return Err(e),
        };
        let version = serde_json::from_slice::<Head>(&bytes).map_or(0, |head| head.v);
        if version > VERSION {
            return Err(io::Error::other(format!(
                "{} is of a later version: update longhaul",
                path.display()
            )));
        }
        match serde_json::from_slice(&bytes) {
            Ok(all) if version == VERSION => Ok(all),
            _ => atomic::set_aside(&path).map(|_| Incidents::default()),
        }
    }
}

/// Those that are over go first, then the oldest.
fn bound(all: &mut Vec<Incident>) {
    if all.len() > KEPT {
        all.sort_by_key(|incident| (incident.ended_ms.is_some(), std::cmp::Reverse(incident.begun.ms)));
        all.truncate(KEPT);
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

    fn incident(session: &str, kind: Kind, ms: i64) -> Incident {
        Incident {
            session: session.into(),
            kind,
            begun: Moment { ms, ..Moment::default() },
            told: Told::No,
            taken_ms: 0,
            tries: 0,
            ended_ms: None,
            restarted: None,
            line: String::new(),
        }
    }

    fn all(store: &Store) -> Vec<Incident> {
        store.change_incidents(100, |all| all.incidents.clone()).unwrap()
    }

    #[test]
    fn incidents_are_kept_for_whoever_asks_and_only_written_when_they_change() {
        let (_root, store) = store();
        assert_eq!(all(&store), []);
        let path = store.dir().join("incidents.json");
        assert!(!path.exists());
        store.change_incidents(100, |all| all.incidents.push(incident("a", Kind::Stale, 5))).unwrap();
        assert_eq!(all(&store), [incident("a", Kind::Stale, 5)]);
        let before = files::version(&path);
        store.change_incidents(100, |all| all.incidents.truncate(9)).unwrap();
        assert_eq!(files::version(&path), before);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_one_of_a_later_version_is_left_alone() {
        let (_root, store) = store();
        fs_err::create_dir_all(store.dir()).unwrap();
        let path = store.dir().join("incidents.json");
        for (n, bad) in
            ["", "{", "[]", "{\"v\":0}", "{\"v\":1,\"incidents\":[{\"session\":7}]}"].iter().enumerate()
        {
            fs_err::write(&path, bad).unwrap();
            assert_eq!(all(&store), [], "{bad}");
            let aside = store.dir().join(format!("incidents.json.unreadable-{}", n + 1));
            assert_eq!(fs_err::read_to_string(aside).unwrap(), *bad);
        }
        fs_err::create_dir(&path).unwrap();
        assert_eq!(all(&store), []);
        assert!(store.dir().join("incidents.json.unreadable-6").is_dir(), "what is no file too");
        fs_err::write(&path, "{\"v\":2,\"incidents\":7}").unwrap();
        assert!(
            store
                .change_incidents(100, |all| all.incidents.len())
                .unwrap_err()
                .to_string()
                .contains("later version")
        );
        assert!(path.exists());
    }

    #[test]
    fn there_are_never_too_many_and_what_is_over_goes_first() {
        let (_root, store) = store();
        store
            .change_incidents(100, |all| {
                for n in 0..2_500 {
                    let ended_ms = (n % 2 == 0).then_some(1);
                    all.incidents.push(Incident { ended_ms, ..incident(&n.to_string(), Kind::Dead, n) });
                }
            })
            .unwrap();
        let left = all(&store);
        assert_eq!(left.len(), KEPT);
        assert_eq!(left.iter().filter(|incident| incident.ended_ms.is_none()).count(), 1_250);
        assert!(left.iter().all(|incident| incident.ended_ms.is_none() || incident.begun.ms >= 1_000));
    }

    #[test]
    fn several_tellers_take_each_incident_once() {
        let (_root, store) = store();
        let take = |all: &mut Incidents| {
            let mut taken = 0;
            for incident in all.incidents.iter_mut().filter(|incident| incident.told == Told::No) {
                incident.told = Told::Taken;
                taken += 1;
            }
            taken
        };
        store
            .change_incidents(100, |all| {
                all.incidents.extend((0..10).map(|n| incident(&n.to_string(), Kind::Dead, n)));
            })
            .unwrap();
        let taken: i32 = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..6).map(|_| scope.spawn(|| store.change_incidents(20_000, take).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 10);
    }

    #[test]
    fn stuck_is_one_matter_with_one_id() {
        let stale = incident("a", Kind::Stale, 5);
        assert_eq!(stale.id(), Incident { kind: Kind::DeadLike, ..stale.clone() }.id());
        assert_ne!(stale.id(), Incident { kind: Kind::Dead, ..stale.clone() }.id());
        assert_ne!(stale.id(), incident("a", Kind::Stale, 6).id());
        assert_ne!(stale.id(), incident("b", Kind::Stale, 5).id());
    }
}
