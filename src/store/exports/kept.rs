//! Exports that are there: held by whoever works on one, and taken away whole.
//!
//! Ids come from the registry, which may hold anything: one that is no plain name never becomes a path.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use super::{lock, private_temp};
use crate::base::id::is_plain;
use crate::host::files;
use crate::store::Store;
use crate::store::atomic::private;
use crate::store::lock::{Held, hold_while_there};

/// How long a hold is waited for, in ms: somebody may just look whether it is held.
const PATIENCE_MS: u64 = 200;

/// An export that was taken away: its directory has another name, and goes when this is dropped.
#[derive(Debug, Default)]
pub struct Gone {
    /// Bytes of its files; 0 where there was none.
    pub bytes: u64,
    #[allow(dead_code)]
    rest: Option<(tempfile::TempDir, Option<Held>)>,
}

impl Store {
    /// Where the export of this id lies, or would; `None` where it is no id of an export.
    pub fn export_dir(&self, id: &str) -> Option<PathBuf> {
        is_plain(id).then(|| self.dir().join("handoffs").join(id))
    }

    /// The key of an export's read marks.
    pub fn export_key(&self, id: &str) -> io::Result<Vec<u8>> {
        const MOST: u64 = 64 << 20;
        let path = is_plain(id).then(|| self.dir().join("handoff-keys").join(format!("{id}.json")));
        files::read_small(&path.ok_or_else(|| no_id(id))?, MOST)
    }

    /// Holds the handoff of this id, whether its export is there or not, until it is let go. `None`: another
    /// process works on it.
    pub fn hold_export(&self, id: &str) -> io::Result<Option<Held>> {
        let path = self.hold_of(id)?;
        self.make_dir("handoff-keys")?;
        hold_while_there(&path, PATIENCE_MS)
    }

    /// Takes away what a killed process left of holding an export that it had not come to register: a lock with
    /// neither a key nor an export.
    pub(super) fn sweep_holds(&self, keys: &Path) {
        let Ok(entries) = std::fs::read_dir(keys) else { return };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let locks = names.filter_map(|name| name.strip_suffix(".lock").map(str::to_owned));
        let is_left = |id: &String| {
            let nothing = |path: &Path| !path.exists();
            nothing(&keys.join(format!("{id}.json")))
                && self.export_dir(id).is_some_and(|dir| nothing(&dir))
                && !self.export_is_held(id)
        };
        for id in locks.filter(is_left) {
            if let Ok(Some(held)) = self.hold_export(&id) {
                let _ = self.release_export(&id, held);
            }
        }
    }

    /// Whether somebody works on the handoff of this id. Writes nothing.
    pub fn export_is_held(&self, id: &str) -> bool {
        let file = self.hold_of(id).ok().and_then(|path| private().write(true).open(path).ok());
        let tried = file.map(|file| file.into_parts().0.try_lock_shared());
        matches!(tried, Some(Err(TryLockError::WouldBlock)))
    }

    /// Bytes of the export's files in the usual place.
    pub fn export_bytes(&self, id: &str) -> u64 {
        self.export_dir(id).map_or(0, |dir| size(&dir))
    }

    /// Takes an export away that nobody works on; `None`: somebody does.
    pub fn take_away(&self, id: &str) -> io::Result<Option<Gone>> {
        let Some(held) = self.hold_export(id)? else { return Ok(None) };
        self.remove_export(id, held).map(Some)
    }

    /// Takes an export away, with its key: first under another name, so that it is never there by half. Only
    /// what lies in the usual place is touched.
    fn remove_export(&self, id: &str, held: Held) -> io::Result<Gone> {
        let dir = self.export_dir(id).ok_or_else(|| no_id(id))?;
        let mut gone = Gone::default();
        match std::fs::symlink_metadata(&dir) {
            Ok(meta) if meta.is_dir() => {
                let temp = private_temp(&self.dir().join("handoffs"))?;
                let holding = lock(temp.path());
                gone.bytes = size(&dir);
                fs_err::rename(&dir, temp.path().join(id))?;
                gone.rest = Some((temp, holding));
            }
            Ok(_) => return Err(io::Error::other(format!("{} is no directory", dir.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        remove_if_there(&self.dir().join("handoff-keys").join(format!("{id}.json")))?;
        self.release_export(id, held)?;
        Ok(gone)
    }

    /// Takes away the key of an export that never got its name, so that another may have its id. Whoever asks
    /// holds it.
    pub fn forget_begun(&self, id: &str, _held: &Held) -> io::Result<()> {
        let dir = self.export_dir(id).ok_or_else(|| no_id(id))?;
        match std::fs::symlink_metadata(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove_if_there(&self.dir().join("handoff-keys").join(format!("{id}.json")))
            }
            other => other.map(drop),
        }
    }

    /// Lets go of a handoff that nobody will work on again.
    pub fn release_export(&self, id: &str, held: Held) -> io::Result<()> {
        // While it is held: the next one to come makes a file of its own.
        remove_if_there(&self.hold_of(id)?)?;
        drop(held);
        Ok(())
    }

    fn hold_of(&self, id: &str) -> io::Result<PathBuf> {
        let plain = is_plain(id).then(|| self.dir().join("handoff-keys").join(format!("{id}.lock")));
        plain.ok_or_else(|| no_id(id))
    }
}

fn no_id(id: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("'{}' is no id of an export", id.escape_debug()))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Bytes of all files below; links are not followed.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).map(|all| all.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let of = |entry: &std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{names, store};
    use super::super::{Draft, PREFIX};
    use crate::store::lock::try_hold;
    use std::fs::File;

    #[test]
    fn one_process_holds_a_handoff_and_looking_holds_nothing() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        assert!(!store.export_is_held("a"));
        assert!(!store.dir().exists(), "a look writes nothing");
        let held = store.hold_export("a").unwrap().unwrap();
        assert!(store.export_is_held("a") && !store.export_is_held("b"));
        assert!(store.hold_export("a").unwrap().is_none());
        assert!(store.hold_export("b").unwrap().is_some());
        drop(held);
        assert!(!store.export_is_held("a"));
        let held = store.hold_export("a").unwrap().unwrap();
        store.release_export("a", held).unwrap();
        assert_eq!(names(&store.dir().join("handoff-keys")), ["b.lock"]);
    }

    #[test]
    fn a_hold_that_a_killed_process_left_goes_and_one_with_a_key_or_a_holder_stays() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let kept = Draft::begin(&store, "kept", None).unwrap();
        for id in ["left", "kept"] {
            drop(store.hold_export(id).unwrap().unwrap());
        }
        let _running = store.hold_export("running").unwrap().unwrap();
        let _next = Draft::begin(&store, "next", None).unwrap();
        let keys = names(&store.dir().join("handoff-keys"));
        assert_eq!(keys, ["kept.json", "kept.lock", "next.json", "running.lock"]);
        drop(kept);
    }

    #[test]
    fn a_hold_of_a_file_that_was_taken_away_holds_nothing() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let first = store.hold_export("a").unwrap().unwrap();
        let path = store.hold_of("a").unwrap();
        let late = File::open(&path).unwrap();
        store.release_export("a", first).unwrap();
        let second = store.hold_export("a").unwrap().unwrap();
        let late = try_hold(late).unwrap().unwrap();
        assert!(store.export_is_held("a"), "the one at the path counts");
        drop((late, second));
    }

    #[test]
    fn an_export_goes_whole_with_its_key() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let draft = Draft::begin(&store, "a", None).unwrap();
        fs_err::write(draft.dir().join("01.md"), "words").unwrap();
        fs_err::create_dir(draft.dir().join("more")).unwrap();
        fs_err::write(draft.dir().join("more/02.md"), "1234").unwrap();
        draft.finish(b"{}").unwrap();
        let held = store.hold_export("a").unwrap().unwrap();
        assert!(store.take_away("a").unwrap().is_none(), "somebody works on it");
        drop(held);
        let gone = store.take_away("a").unwrap().unwrap();
        assert_eq!(gone.bytes, 9);
        let left = names(&store.dir().join("handoffs"));
        assert!(left.iter().all(|name| name.starts_with(PREFIX)), "{left:?}");
        drop(gone);
        for dir in ["handoffs", "handoff-keys"] {
            assert_eq!(names(&store.dir().join(dir)), [""; 0]);
        }
    }

    #[test]
    fn what_lies_elsewhere_stays() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let out = root.path().join("out");
        Draft::begin(&store, "a", Some(&out)).unwrap().finish(b"{}").unwrap();
        assert_eq!(store.take_away("a").unwrap().unwrap().bytes, 0);
        assert_eq!((out.exists(), names(&store.dir().join("handoff-keys"))), (true, vec![]));
        for odd in ["", "..", "../out", "a/b", "/", "a\0"] {
            assert!(store.take_away(odd).is_err() && !store.export_is_held(odd), "{odd:?}");
            let other = store.hold_export("b").unwrap().unwrap();
            assert!(store.remove_export(odd, other).is_err(), "{odd:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_an_exports_place_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let mine = root.path().join("mine");
        fs_err::create_dir(&mine).unwrap();
        fs_err::write(mine.join("x"), "x").unwrap();
        store.make_dir("handoffs").unwrap();
        fs_err::os::unix::fs::symlink(&mine, store.export_dir("a").unwrap()).unwrap();
        let error = store.take_away("a").unwrap_err();
        assert!(error.to_string().contains("is no directory"), "{error}");
        assert!(mine.join("x").exists());
    }
}
