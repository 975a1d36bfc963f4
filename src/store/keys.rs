//! Key files, `<state>/handoff-keys/<id>.json`: whoever makes one has its id. Until its export is done a key
//! holds `{}` and is locked by the process that works on it, so that what a killed one left can be told.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::atomic::{PREFIX, is_old, replace};
use super::lock::{Held, try_hold};
use crate::host::files;

/// More exports than this of one session in one second are refused.
const SAME_MAX: u32 = 1_000;
/// What a key holds until its export is done.
const RESERVED: &[u8] = b"{}";

/// A key file; taken away again unless it was filled and kept.
#[derive(Debug)]
pub struct Key {
    path: PathBuf,
    kept: bool,
    /// Held as long as this process works on the export.
    held: Option<Held>,
}

impl Drop for Key {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Key {
    /// The key of an id that the caller alone can have, whatever an earlier attempt left there.
    pub fn take_over(keys: &Path, id: &str) -> io::Result<Self> {
        let (file, held) = new(keys)?;
        let path = keys.join(format!("{id}.json"));
        file.persist(&path).map_err(|failed| failed.error)?;
        Ok(Self { path, kept: false, held })
    }

    /// The first free id of `stem`, `stem-2`, …, and its key: free is what has neither a key in `keys` nor an
    /// export in `usual`.
    pub fn reserve(keys: &Path, usual: &Path, stem: &str) -> io::Result<(String, Self)> {
        let (mut file, mut held) = new(keys)?;
        for n in 1..=SAME_MAX {
            let id = if n == 1 { stem.to_owned() } else { format!("{stem}-{n}") };
            if usual.join(&id).exists() {
                continue;
            }
            let path = keys.join(format!("{id}.json"));
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok((id, Self { path, kept: false, held: held.take() })),
                Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => file = failed.file,
                Err(failed) => return Err(failed.error),
            }
        }
        Err(io::Error::other(format!("there are {SAME_MAX} exports {stem}")))
    }

    /// Gives it what it is to hold.
    pub fn fill(&mut self, key: &[u8]) -> io::Result<()> {
        if cfg!(windows) {
            // A file that is open is not replaced there.
            self.held = None;
        }
        replace(&self.path, key, false)
    }

    /// The export has come about.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

/// A key that is not under its name yet: it is locked before that.
fn new(keys: &Path) -> io::Result<(tempfile::NamedTempFile, Option<Held>)> {
    let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(keys)?;
    file.write_all(RESERVED)?;
    let held = try_hold(file.as_file().try_clone()?).ok().and_then(Result::ok);
    Ok((file, held))
}

/// Takes away keys of exports that were begun by processes that are gone, and those that never got a name.
pub fn sweep(keys: &Path, usual: &Path) {
    let Ok(entries) = std::fs::read_dir(keys) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let nameless = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if nameless && is_old(&path) {
            let _ = std::fs::remove_file(&path);
        }
        let id = path.file_stem().filter(|_| path.extension().is_some_and(|ending| ending == "json"));
        if id.is_some_and(|id| !usual.join(id).exists()) && is_left(&path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Whether a key was never filled, and nobody is about to. Where files cannot be locked nobody can tell.
fn is_left(path: &Path) -> bool {
    let Ok(file) = files::open_regular(path) else { return false };
    let mut text = Vec::new();
    let read = (&file).take(RESERVED.len() as u64 + 1).read_to_end(&mut text);
    let Ok(metadata) = file.metadata() else { return false };
    if read.is_err() || text != RESERVED {
        return false;
    }
    let held: io::Result<Result<Held, File>> = try_hold(file);
    // Filled meanwhile it would be another file.
    matches!(held, Ok(Ok(_))) && std::fs::symlink_metadata(path).is_ok_and(|now| is_same(&now, &metadata))
}

/// Whether both are of the same file.
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        (one.len(), one.modified().ok()) == (other.len(), other.modified().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_what_nobody_will_fill_is_taken_away() {
        let root = tempfile::tempdir().unwrap();
        let (keys, usual) = (root.path().join("keys"), root.path().join("exports"));
        fs_err::create_dir_all(&keys).unwrap();
        fs_err::create_dir_all(usual.join("there")).unwrap();
        for (name, text) in [
            ("left.json", "{}"),
            ("there.json", "{}"),
            ("full.json", "{\"version\":1}"),
            ("other", "{}"),
            (".lh-old", "{}"),
            (".lh-new", "{}"),
        ] {
            fs_err::write(keys.join(name), text).unwrap();
        }
        let old = fs_err::OpenOptions::new().write(true).open(keys.join(".lh-old")).unwrap();
        old.into_parts().0.set_modified(std::time::UNIX_EPOCH).unwrap();
        let (_, running) = Key::reserve(&keys, &usual, "running").unwrap();
        let (_, mut done) = Key::reserve(&keys, &usual, "done").unwrap();
        done.fill(b"{\"version\":1}").unwrap();
        sweep(&keys, &usual);
        let stay = [".lh-new", "done.json", "full.json", "other", "running.json", "there.json"];
        assert_eq!(names(&keys), stay);
        done.keep();
        drop(running);
        assert_eq!(names(&keys), [".lh-new", "done.json", "full.json", "other", "there.json"]);
    }

    #[test]
    fn a_key_is_the_owners_alone_and_its_id_nobody_elses() {
        let root = tempfile::tempdir().unwrap();
        let usual = root.path().join("exports");
        fs_err::create_dir_all(usual.join("a-2")).unwrap();
        let (one, _first) = Key::reserve(root.path(), &usual, "a").unwrap();
        let (two, second) = Key::reserve(root.path(), &usual, "a").unwrap();
        assert_eq!((&*one, &*two), ("a", "a-3"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs_err::metadata(&second.path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(second);
    }
}
