//! What is kept of one session: a few small files under `<state>/gauge`, each written by replacing it whole.
//! Each has its own writers, so that two programs never undo each other's record.

use std::io::{self, Read as _};
use std::path::PathBuf;

use super::{Store, atomic};
use crate::base::id::SessionId;
use crate::host::files;

/// Which record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// What hooks and the status line saw: model, window, transcript.
    Seen,
    /// The client's own figures, from the mod.
    Client,
    /// How far the transcript is measured. A cache: losing it costs time, never truth.
    Scan,
    /// What the model was told, and when.
    Notice,
    /// When the response stream last moved, as the mod that watches it says.
    Stream,
    /// The process of ours that has this session read a parent: number and start. There while it does.
    Reading,
}

impl Slot {
    const ALL: [Self; 6] = [Self::Seen, Self::Client, Self::Scan, Self::Notice, Self::Stream, Self::Reading];

    fn ending(self) -> &'static str {
        match self {
            Self::Seen => "seen.json",
            Self::Client => "client.json",
            Self::Scan => "scan",
            Self::Notice => "notice.json",
            Self::Stream => "stream",
            Self::Reading => "reading",
        }
    }
}

/// Directory of the records.
const DIR: &str = "gauge";
/// A record larger than this is not ours, in bytes.
const MOST: u64 = 1 << 20;
/// Records untouched for this long are pruned, in ms.
const KEPT_MS: i64 = 30 * 24 * 3_600_000;

impl Store {
    fn slot(&self, session: &SessionId, slot: Slot) -> PathBuf {
        self.dir().join(DIR).join(format!("{session}.{}", slot.ending()))
    }

    /// A record's bytes, if there is one.
    pub fn load(&self, session: &SessionId, slot: Slot) -> Option<Vec<u8>> {
        files::read_small(&self.slot(session, slot), MOST).ok()
    }

    /// The records of this kind of every session, at most `limit` of them.
    pub fn load_all(&self, slot: Slot, limit: usize) -> Vec<(SessionId, Vec<u8>)> {
        let Ok(entries) = std::fs::read_dir(self.dir().join(DIR)) else { return Vec::new() };
        let session = |name: &str| {
            let (id, ending) = name.split_once('.')?;
            SessionId::parse(id).filter(|_| ending == slot.ending())
        };
        let ours = entries.flatten().filter_map(|entry| session(entry.file_name().to_str()?));
        ours.filter_map(|id| self.load(&id, slot).map(|bytes| (id, bytes))).take(limit).collect()
    }

    /// Replaces a record. Makes no directory: that is [`Store::prepare`]'s, off the redraw path.
    pub fn save(&self, session: &SessionId, slot: Slot, bytes: &[u8]) -> io::Result<()> {
        let path = self.slot(session, slot);
        if slot == Slot::Stream {
            atomic::replace_often(&path, bytes)
        } else {
            atomic::replace(&path, bytes, false)
        }
    }

    /// When the session's response stream last moved (0: not yet), and when that was written, epoch ms both.
    pub fn stream(&self, session: &SessionId) -> Option<(i64, i64)> {
        let file = files::open_regular(&self.slot(session, Slot::Stream)).ok()?;
        let written = file.metadata().ok()?.modified().ok()?;
        let mut text = String::new();
        file.take(64).read_to_string(&mut text).ok()?;
        Some((text.trim().parse().ok()?, crate::host::clock::epoch_ms(written)))
    }

    /// Takes a record away.
    pub fn forget(&self, session: &SessionId, slot: Slot) {
        let _ = std::fs::remove_file(self.slot(session, slot));
    }

    /// Makes the directory of the records.
    pub fn prepare(&self) -> io::Result<()> {
        self.make_dir(DIR).map(drop)
    }

    /// Takes away records that nothing has touched for a month, and temporary files left by a killed
    /// process for a day. At most `limit` entries are looked at.
    pub fn prune(&self, now_ms: i64, limit: usize) {
        let Ok(entries) = std::fs::read_dir(self.dir().join(DIR)) else { return };
        for entry in entries.flatten().take(limit) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let litter = name.starts_with(atomic::PREFIX);
            let is_record = |(id, ending): (&str, &str)| {
                SessionId::parse(id).is_some() && Slot::ALL.iter().any(|slot| slot.ending() == ending)
            };
            let ours = litter || name.split_once('.').is_some_and(is_record);
            let kept = if litter { KEPT_MS / 30 } else { KEPT_MS };
            let touched = entry.metadata().ok().and_then(|meta| meta.modified().ok());
            let age = touched.map_or(0, |at| now_ms.saturating_sub(crate::host::clock::epoch_ms(at)));
            if ours && age > kept {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn records_are_kept_apart_and_pruned() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        let id = SessionId::parse("s").unwrap();
        assert!(store.save(&id, Slot::Seen, b"x").is_err(), "a redraw makes no directory");
        store.prepare().unwrap();
        store.save(&id, Slot::Seen, b"x").unwrap();
        store.save(&id, Slot::Notice, b"y").unwrap();
        assert_eq!(store.load(&id, Slot::Seen).unwrap(), b"x");
        assert_eq!(store.load(&id, Slot::Client), None);
        assert_eq!(store.load_all(Slot::Notice, 10), [(id.clone(), b"y".to_vec())]);
        for stranger in ["stranger", "my.own.scan", "scan"] {
            fs_err::write(store.dir().join(DIR).join(stranger), "").unwrap();
        }
        let now = crate::host::clock::now_ms();
        store.prune(now, 1_000);
        assert!(store.load(&id, Slot::Seen).is_some());
        store.prune(now + 2 * KEPT_MS, 1_000);
        assert!(store.load(&id, Slot::Seen).is_none());
        assert_eq!(fs_err::read_dir(store.dir().join(DIR)).unwrap().count(), 3, "strangers stay");
    }
}
