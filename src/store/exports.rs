//! Exports: `<state>/handoffs/<id>/`, there whole or not at all, and the keys of their read marks in
//! `<state>/handoff-keys/<id>.json`, where no reader of an export comes by.

mod kept;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::Store;
use super::atomic::{PREFIX, is_old, make_private, private};
use super::keys::{self, Key};
use super::lock::{Held, try_hold};
use crate::base::span::file_stamp;

pub use kept::Gone;

/// An export under way: a private directory beside the place where it will be. Dropped, it is gone.
#[derive(Debug)]
pub struct Draft {
    temp: tempfile::TempDir,
    /// Held as long as this process works on it.
    #[allow(dead_code)]
    held: Option<Held>,
    target: PathBuf,
    id: String,
    key: Key,
}

/// What an export of this session is called that begins now: `20261130T173134Z-3f2a9c1e`.
pub fn stem(now_ms: i64, session: &str) -> String {
    format!("{}-{}", file_stamp(now_ms), short(session))
}

/// What of a session's id stands in the ids of its exports.
pub(super) fn short(session: &str) -> String {
    session.chars().take(8).collect()
}

impl Draft {
    /// Begins an export in the usual place, or in `out`, which must not be there or be empty. The id is the
    /// first free one of `stem`, `stem-2`, …: whoever makes the key file has it.
    pub fn begin(store: &Store, stem: &str, out: Option<&Path>) -> io::Result<Self> {
        let keys = store.make_dir("handoff-keys")?;
        let usual = store.dir().join("handoffs");
        keys::sweep(&keys, &usual);
        store.sweep_holds(&keys);
        let (id, key) = Key::reserve(&keys, &usual, stem)?;
        let target = out.map_or_else(|| usual.join(&id), Path::to_path_buf);
        Self::at(id, key, target, out)
    }

    /// Begins an export in the usual place under an id that nobody else can have: the caller holds the job
    /// that names it. A key that an earlier attempt left is taken over.
    pub fn begin_as(store: &Store, id: &str) -> io::Result<Self> {
        let keys = store.make_dir("handoff-keys")?;
        let target = store.dir().join("handoffs").join(id);
        refuse_full(&target)?;
        let key = Key::take_over(&keys, id)?;
        Self::at(id.to_owned(), key, target, None)
    }

    fn at(id: String, key: Key, target: PathBuf, out: Option<&Path>) -> io::Result<Self> {
        let parent = match target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => parent.to_path_buf(),
            None => PathBuf::from("."),
        };
        if out.is_some() {
            refuse_full(&target)?;
            fs_err::create_dir_all(&parent)?;
        } else {
            make_private(&parent)?;
        }
        if out.is_none() {
            sweep(&parent);
        }
        let temp = private_temp(&parent)?;
        let held = lock(temp.path());
        Ok(Self { temp, held, target, id, key })
    }

    /// The export's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it is written now.
    pub fn dir(&self) -> &Path {
        self.temp.path()
    }

    /// Where it will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// A new file of this name, readable by its owner alone.
    pub fn create(&self, name: &str) -> io::Result<File> {
        create_private(&self.dir().join(name))
    }

    /// A file without a name, gone when closed.
    pub fn scratch(&self) -> io::Result<File> {
        tempfile::tempfile_in(self.dir())
    }

    /// Writes the key, then gives the directory its name.
    pub fn finish(mut self, key: &[u8]) -> io::Result<PathBuf> {
        self.key.fill(key)?;
        std::fs::rename(self.temp.path(), &self.target)?;
        self.key.keep();
        // It has another name now: there is nothing to take away.
        drop(self.temp.keep());
        Ok(self.target)
    }
}

/// A private directory in `parent` whose name says that it is not there for good.
fn private_temp(parent: &Path) -> io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir_in(parent)
}

/// The lock of a directory, where the system has one and nobody holds it.
fn lock(dir: &Path) -> Option<Held> {
    try_hold(File::open(dir).ok()?).ok()?.ok()
}

/// Takes away what a killed process left half written: it has files in it or is old, and nobody holds it.
fn sweep(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let half = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for path in half.map(|entry| entry.path()) {
        // One with nothing in it may only just have been made, and be held in a moment.
        let begun = is_old(&path) || std::fs::read_dir(&path).is_ok_and(|mut files| files.next().is_some());
        if let Some(_held) = Some(&path).filter(|_| begun).and_then(|path| lock(path)) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn refuse_full(target: &Path) -> io::Result<()> {
    match fs_err::read_dir(target) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is not empty", target.display()),
            )),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    Ok(private().write(true).create_new(true).open(path)?.into_parts().0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    pub(super) fn store(root: &Path) -> Store {
        Store::locate(&Host::fixed(&[("HOME", root.to_str().unwrap())], 0), &[]).unwrap()
    }

    pub(super) fn names(dir: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let draft = Draft::begin(&store, "a", None).unwrap();
        draft.create("01.md").unwrap();
        drop(draft);
        assert_eq!(names(&store.dir().join("handoffs")), [""; 0]);
        assert_eq!(names(&store.dir().join("handoff-keys")), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_killed_process_left_is_taken_away_and_what_is_held_is_not() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let running = Draft::begin(&store, "a", None).unwrap();
        running.create("01.md").unwrap();
        let left = store.dir().join("handoffs").join(format!("{PREFIX}left"));
        fs_err::create_dir(&left).unwrap();
        fs_err::write(left.join("03.txt"), "words").unwrap();
        let (new, old) = (left.with_file_name(".lh-new"), left.with_file_name(".lh-old"));
        fs_err::create_dir(&new).unwrap();
        fs_err::create_dir(&old).unwrap();
        File::open(&old).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let other = Draft::begin(&store, "b", None).unwrap();
        assert!(!left.exists() && running.dir().join("01.md").exists());
        assert!(new.exists() && !old.exists(), "somebody may only just have made it");
        fs_err::remove_dir(&new).unwrap();
        drop((running, other));
        assert_eq!(names(&store.dir().join("handoffs")), [""; 0]);
    }

    #[test]
    fn two_of_one_second_have_two_names() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let (one, two) = (Draft::begin(&store, "a", None).unwrap(), Draft::begin(&store, "a", None).unwrap());
        one.finish(b"1").unwrap();
        two.finish(b"2").unwrap();
        assert_eq!(names(&store.dir().join("handoffs")), ["a", "a-2"]);
        assert_eq!(names(&store.dir().join("handoff-keys")), ["a-2.json", "a.json"]);
    }

    #[test]
    fn a_directory_with_something_in_it_is_not_written_to() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let out = root.path().join("out");
        fs_err::create_dir(&out).unwrap();
        Draft::begin(&store, "a", Some(&out)).unwrap().finish(b"1").unwrap();
        fs_err::write(out.join("mine"), "x").unwrap();
        let error = Draft::begin(&store, "a", Some(&out)).unwrap_err();
        assert!(error.to_string().contains("is not empty"), "{error}");
        assert_eq!(names(&store.dir().join("handoff-keys")), ["a.json"]);
    }
}
