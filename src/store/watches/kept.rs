//! The files of one watch: its place, what it told, and the lock of whoever runs it.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::place::Progress;
use crate::host::files;
use crate::store::lock::{Held, try_hold};
use crate::store::{Store, atomic};

/// Directory of the watches' own files.
const DIR: &str = "watches";
/// A place larger than this is not ours, in bytes.
const PLACE_MOST: u64 = 8 << 20;
/// What was told begins anew at this size, in bytes; the one before is kept once.
const TOLD_MOST: u64 = 2 << 20;
/// So much of its end is looked at for what stands there already, in bytes.
const END: u64 = 64 << 10;
/// The layout of a place.
const VERSION: u64 = 1;

/// Something that a watch told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// When it was seen, epoch milliseconds.
    pub at_ms: i64,
    /// Its id.
    pub id: String,
    /// How many lines it stands for.
    pub lines: u64,
    /// It was summed up for the session.
    pub held: bool,
    /// What was said.
    pub text: String,
}

impl Store {
    fn watch_file(&self, number: u64, ending: &str) -> PathBuf {
        self.dir().join(DIR).join(format!("{number}.{ending}"))
    }

    /// Where what a watch told can be read.
    pub fn told_path(&self, number: u64) -> PathBuf {
        self.watch_file(number, "told")
    }

    /// Takes the right to run a watch, where nobody has it.
    pub fn hold_watch(&self, number: u64) -> io::Result<Option<Held>> {
        self.make_dir(DIR)?;
        let path = self.watch_file(number, "lock");
        let file = atomic::private().write(true).create(true).truncate(false).open(path)?.into_parts().0;
        Ok(try_hold(file)?.ok())
    }

    /// Whether somebody runs a watch now.
    pub fn watch_is_held(&self, number: u64) -> bool {
        let file = atomic::private().write(true).open(self.watch_file(number, "lock"));
        file.is_ok_and(|file| matches!(try_hold(file.into_parts().0), Ok(Err(_))))
    }

    /// How far a watch has come; a sentence where that was lost, and a file set aside. An error where nothing can
    /// be said of it now.
    pub fn progress(&self, number: u64) -> io::Result<(Progress, Option<String>)> {
        let path = self.watch_file(number, "json");
        let why = match files::read_small(&path, PLACE_MOST) {
            Ok(bytes) => match serde_json::from_slice::<Progress>(&bytes) {
                Ok(progress) if progress.version <= VERSION => return Ok((progress, None)),
                Ok(_) => {
                    let text = format!("{} is of a later version: update longhaul", path.display());
                    return Err(io::Error::other(text));
                }
                Err(error) => error.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Progress::default(), None)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
            {
                error.to_string()
            }
            Err(error) => return Err(error),
        };
        let aside = atomic::set_aside(&path)?;
        let lost =
            format!("how far it had come could not be read ({why}); it is kept as {}", aside.display());
        Ok((Progress::default(), Some(lost)))
    }

    /// The same for who only looks: `None` where there is nothing that can be read.
    pub fn look_at_progress(&self, number: u64) -> Option<Progress> {
        let bytes = files::read_small(&self.watch_file(number, "json"), PLACE_MOST).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Keeps how far a watch has come; it is on the disk then.
    pub fn save_progress(&self, number: u64, progress: &Progress) -> io::Result<()> {
        self.make_dir(DIR)?;
        let progress = Progress { version: VERSION, ..progress.clone() };
        let bytes = serde_json::to_vec(&progress).map_err(io::Error::other)?;
        atomic::replace_by(&self.watch_file(number, "json"), &self.watch_file(number, "new"), &bytes)
    }

    /// Writes down what a watch told. What is written among the last already is not written again.
    pub fn add_told(&self, number: u64, told: &Told) -> io::Result<()> {
        self.make_dir(DIR)?;
        let path = self.told_path(number);
        let end = end_of(&path);
        let last =
            end.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Told>(line).ok());
        if !told.id.is_empty() && last.into_iter().any(|last| last.id == told.id) {
            return Ok(());
        }
        if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > TOLD_MOST) {
            std::fs::rename(&path, self.watch_file(number, "told.1"))?;
        }
        let mut line = serde_json::to_vec(told).map_err(io::Error::other)?;
        line.push(b'\n');
        // A process may have been killed in the middle of a line.
        if end.last().is_some_and(|last| *last != b'\n') {
            line.insert(0, b'\n');
        }
        atomic::append_private(&path, &line)
    }

    /// What a watch told, the oldest first; lines that cannot be read are passed over and counted.
    pub fn told(&self, number: u64) -> (Vec<Told>, usize) {
        let mut all = Vec::new();
        let mut bad = 0;
        for ending in ["told.1", "told"] {
            let bytes =
                files::read_small(&self.watch_file(number, ending), 2 * TOLD_MOST).unwrap_or_default();
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match serde_json::from_slice(line) {
                    Ok(told) => all.push(told),
                    Err(_) => bad += 1,
                }
            }
        }
        (all, bad)
    }

    /// Takes away all that is kept of a watch but its number. Whoever removes it holds it.
    pub fn forget_watch(&self, number: u64) {
        for ending in ["json", "new", "told", "told.1", "lock"] {
            let _ = std::fs::remove_file(self.watch_file(number, ending));
        }
    }

    /// The highest number that files are kept of.
    pub(super) fn last_number(&self) -> u64 {
        let Ok(entries) = std::fs::read_dir(self.dir().join(DIR)) else { return 0 };
        let number = |name: &str| -> Option<u64> {
            name.split_once('.')?.0.parse().ok().filter(|number| *number < super::NUMBER_MOST)
        };
        entries.flatten().filter_map(|entry| number(entry.file_name().to_str()?)).max().unwrap_or(0)
    }
}

/// The last bytes of what was told, some lines of it; empty where there are none.
fn end_of(path: &Path) -> Vec<u8> {
    let Ok(file) = files::open_regular(path) else { return Vec::new() };
    let size = file.metadata().map_or(0, |meta| meta.len());
    let mut bytes = vec![0; usize::try_from(size.min(END)).unwrap_or(0)];
    let got = files::read_at(&file, size.saturating_sub(END), &mut bytes).unwrap_or(0);
    bytes.truncate(got);
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::tests::store;
    use super::*;

    fn told(id: &str) -> Told {
        Told { id: id.into(), text: format!("text of {id}"), ..Told::default() }
    }

    #[test]
    fn a_place_is_kept_and_a_damaged_one_is_set_aside_and_named() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        assert_eq!(store.progress(1).unwrap(), (Progress::default(), None));
        let progress = Progress { version: 1, told: 7, ..Progress::default() };
        store.save_progress(1, &progress).unwrap();
        assert_eq!(store.progress(1).unwrap(), (progress, None));
        fs_err::write(store.watch_file(1, "json"), "{").unwrap();
        let (progress, lost) = store.progress(1).unwrap();
        assert_eq!(progress, Progress::default());
        assert!(lost.unwrap().contains("1.json.unreadable-1"));
        fs_err::write(store.watch_file(1, "json"), r#"{"version":9}"#).unwrap();
        assert!(store.progress(1).is_err());
    }

    #[test]
    fn what_was_told_stands_once_in_its_order_and_does_not_grow_without_end() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        for id in ["a", "b", "b", "c"] {
            store.add_told(1, &told(id)).unwrap();
        }
        let ids =
            |(all, bad): (Vec<Told>, usize)| (all.into_iter().map(|told| told.id).collect::<Vec<_>>(), bad);
        assert_eq!(ids(store.told(1)), (vec!["a".into(), "b".into(), "c".into()], 0));
        atomic::append_private(&store.told_path(1), b"{\"id\":\"half").unwrap();
        store.add_told(1, &told("d")).unwrap();
        assert_eq!(ids(store.told(1)).1, 1);
        assert_eq!(store.told(1).0.last().unwrap().id, "d");
        let long = Told { text: "x".repeat(300_000), ..Told::default() };
        for _ in 0..40 {
            store.add_told(1, &long).unwrap();
        }
        let size = |ending| fs_err::metadata(store.watch_file(1, ending)).unwrap().len();
        assert!(size("told") + size("told.1") < 6 << 20);
    }

    #[test]
    fn one_at_a_time_runs_a_watch() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        assert!(!store.watch_is_held(1));
        let held = store.hold_watch(1).unwrap().unwrap();
        assert!(store.hold_watch(1).unwrap().is_none() && store.watch_is_held(1));
        drop(held);
        assert!(!store.watch_is_held(1) && store.hold_watch(1).unwrap().is_some());
        store.forget_watch(1);
        assert_eq!(fs_err::read_dir(store.dir().join(DIR)).unwrap().count(), 0);
    }
}
