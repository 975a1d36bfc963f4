//! Intervals that automatic compactions proved, per model and per state of the inputs, kept for later
//! sessions in `<state>/learned.json`.

use std::io;

use serde::{Deserialize, Serialize};

use super::{Store, atomic, lock};
use crate::base::tokens::MOST as MOST_TOKENS;
use crate::host::files;

/// One interval: the trigger lies in `(low, pre]` tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// The model's id.
    pub model: String,
    /// The inputs' fingerprint at that time.
    pub fingerprint: u64,
    /// Largest context answered without compacting, in tokens.
    pub low: u64,
    /// `preTokens` of the boundary.
    pub pre: u64,
    /// When, epoch ms.
    pub at_ms: i64,
    /// The session that taught it.
    pub session: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    v: u32,
    lessons: Vec<Lesson>,
}

const NAME: &str = "learned.json";
pub(super) const VERSION: u32 = 1;
/// How far below the largest context a compaction's own count may lie, in tokens.
const SLACK: u64 = 2_000;
/// The newest this many are kept.
const MOST: usize = 200;

impl Store {
    /// What was learned for a model under these inputs, the newest.
    pub fn lesson(&self, model: &str, fingerprint: u64) -> Option<Lesson> {
        // A compaction comes at about the largest context or above it; anything else is damage.
        let sane = |lesson: &Lesson| {
            (1..=MOST_TOKENS).contains(&lesson.pre) && lesson.low <= lesson.pre.saturating_add(SLACK)
        };
        let mine =
            |lesson: &Lesson| lesson.model == model && lesson.fingerprint == fingerprint && sane(lesson);
        self.lessons().ok()?.lessons.into_iter().filter(mine).max_by_key(|lesson| lesson.at_ms)
    }

    fn lessons(&self) -> io::Result<File> {
        let path = self.dir().join(NAME);
        let bytes = match files::read_small(&path, 1 << 20) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(File { v: VERSION, ..File::default() });
            }
            Err(e) => return Err(e),
        };
        let file: File = serde_json::from_slice(&bytes)?;
        if file.v == VERSION { Ok(file) } else { Err(io::Error::other("of another version")) }
    }

    /// Keeps a lesson, or takes the session's lesson of that moment back when `valid` is false. A file
    /// that cannot be read is set aside, never overwritten.
    pub fn learn(&self, lesson: Lesson, valid: bool) -> io::Result<()> {
        atomic::make_private(self.dir())?;
        let path = self.dir().join(NAME);
        let _held = lock::hold(&self.dir().join("learned.lock"))?;
        let mut file = if let Ok(file) = self.lessons() {
            file
        } else {
            atomic::set_aside(&path)?;
            File { v: VERSION, ..File::default() }
        };
        let before = file.lessons.clone();
        let same = |other: &Lesson| {
            other.session == lesson.session && other.model == lesson.model && other.at_ms == lesson.at_ms
        };
        file.lessons.retain(|other| !same(other));
        if valid {
            file.lessons.push(lesson);
        }
        let excess = file.lessons.len().saturating_sub(MOST);
        file.lessons.drain(..excess);
        if file.lessons == before {
            return Ok(());
        }
        atomic::replace(&path, &serde_json::to_vec(&file)?, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    fn lesson(fingerprint: u64, pre: u64, at_ms: i64) -> Lesson {
        Lesson { model: "m".into(), fingerprint, low: pre - 10, pre, at_ms, session: "s".into() }
    }

    // CC#86863: the default moved; the newest boundary counts.
    #[test]
    fn the_newest_lesson_under_the_same_inputs_counts() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        store.learn(lesson(1, 167_000, 1), true).unwrap();
        store.learn(lesson(1, 146_000, 2), true).unwrap();
        store.learn(lesson(2, 90_000, 3), true).unwrap();
        assert_eq!(store.lesson("m", 1).unwrap().pre, 146_000);
        assert_eq!(store.lesson("m", 9), None);
        assert_eq!(store.lesson("n", 1), None);
        store.learn(Lesson { low: 140_000, ..lesson(1, 20, 9) }, true).unwrap();
        assert_eq!(store.lesson("m", 1).unwrap().pre, 146_000, "what cannot be is no lesson");
        store.learn(lesson(1, 146_000, 2), false).unwrap();
        assert_eq!(store.lesson("m", 1).unwrap().pre, 167_000);
    }

    #[test]
    fn an_unreadable_file_is_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        fs_err::create_dir_all(store.dir()).unwrap();
        fs_err::write(store.dir().join(NAME), "{broken").unwrap();
        store.learn(lesson(1, 167_000, 1), true).unwrap();
        assert_eq!(store.lesson("m", 1).unwrap().pre, 167_000);
        let aside = fs_err::read_dir(store.dir()).unwrap().flatten();
        let aside: Vec<_> =
            aside.filter(|e| e.file_name().to_string_lossy().contains("unreadable")).collect();
        assert_eq!(aside.len(), 1);
        assert_eq!(fs_err::read(aside[0].path()).unwrap(), b"{broken");
    }
}
