//! What lies in the state directory that nothing of ours reads any more, or not yet. Looked at, never touched.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Store, atomic, chains, incidents, learned, setup, watches};
use crate::host::files;

/// So many entries of a directory are looked at.
const ENTRIES: usize = 20_000;
/// A list larger than this is not ours, in bytes.
const MOST: u64 = 64 << 20;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Lists that a later version wrote.
    pub later: Vec<PathBuf>,
    /// Lists that cannot be read, each with why.
    pub damaged: Vec<String>,
    /// Files that were set aside.
    pub aside: Vec<PathBuf>,
    /// Files whose writer was killed.
    pub litter: usize,
}

impl Store {
    /// Goes through the state directory and the directories in it.
    pub fn left(&self) -> Left {
        let mut left = Left::default();
        let lists = [
            ("chains.json", chains::VERSION),
            ("watches.json", watches::VERSION),
            ("incidents.json", incidents::VERSION),
            ("learned.json", u64::from(learned::VERSION)),
            ("setup.json", u64::from(setup::LAYOUT)),
        ];
        for (name, known) in lists {
            left.look_at(&self.dir().join(name), known);
        }
        for dir in left.walk(self.dir()) {
            left.walk(&dir);
        }
        left.aside.sort_unstable();
        left
    }
}

impl Left {
    fn look_at(&mut self, path: &Path, known: u64) {
        let bytes = match files::read_small(path, MOST) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
            Err(e) => return self.damaged.push(format!("could not read {}: {e}", path.display())),
        };
        match serde_json::from_slice::<Value>(&bytes) {
            Err(e) => self.damaged.push(format!("{} is not valid JSON: {e}", path.display())),
            Ok(value) => {
                let version = ["version", "v"].iter().find_map(|key| value.get(key)?.as_u64());
                if version.is_some_and(|version| version > known) {
                    self.later.push(path.to_path_buf());
                }
            }
        }
    }

    /// Notes what lies in a directory, and gives the directories in it.
    fn walk(&mut self, dir: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
        let mut dirs = Vec::new();
        for entry in entries.flatten().take(ENTRIES) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with(atomic::PREFIX) {
                self.litter += usize::from(atomic::is_old(&path));
            } else if name.contains(atomic::ASIDE) {
                self.aside.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(path);
            }
        }
        dirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn what_is_left_lying_is_found_and_not_touched() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::locate(&Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0), &[]).unwrap();
        assert_eq!(store.left(), Left::default());
        let jobs = store.make_dir("jobs").unwrap();
        let at = |name: &str| store.dir().join(name);
        fs_err::write(at("chains.json"), r#"{"version":1,"handoffs":[]}"#).unwrap();
        fs_err::write(at("setup.json"), r#"{"v":1}"#).unwrap();
        assert_eq!(store.left(), Left::default());
        fs_err::write(at("chains.json"), r#"{"version":2}"#).unwrap();
        fs_err::write(at("setup.json"), r#"{"v":7}"#).unwrap();
        fs_err::write(at("watches.json"), "{").unwrap();
        fs_err::write(at("chains.json.unreadable-1"), "").unwrap();
        fs_err::write(jobs.join("x.json.unreadable-2"), "").unwrap();
        fs_err::write(at(".lh-young"), "").unwrap();
        let old = fs_err::File::create(jobs.join(".lh-old")).unwrap();
        old.set_modified(std::time::UNIX_EPOCH).unwrap();
        let left = store.left();
        assert_eq!(left.later, [at("chains.json"), at("setup.json")]);
        assert!(left.damaged.len() == 1 && left.damaged[0].contains("watches.json is not valid JSON"));
        assert_eq!(left.aside, [at("chains.json.unreadable-1"), jobs.join("x.json.unreadable-2")]);
        assert_eq!(left.litter, 1);
        assert!(jobs.join(".lh-old").exists());
    }
}
