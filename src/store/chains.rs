//! `<state>/chains.json`: which session went on in which, and how far each handoff came.
//!
//! One entry a handoff, written under a lock and replaced whole. A file that cannot be read is set aside under
//! another name and never overwritten as if it had been empty; one of a later version is left alone. Members
//! that this version does not know are kept.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lock::{Held, hold_for};
use super::{Store, atomic};
use crate::host::files;

/// How a file of this version says so.
const VERSION: u64 = 1;
/// A registry larger than this is not ours, in bytes.
const MOST: u64 = 64 << 20;
/// How long another writer is waited for, in ms.
const PATIENCE_MS: u64 = 20_000;

/// How far a handoff came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The export is being written.
    Exporting,
    /// The export is there; no child was asked to read it.
    Prepared,
    /// The child reads.
    Reading,
    /// The child has read it all.
    Accepted,
    /// The child has not read all of it.
    Partial,
    /// No child came about, or it did not answer.
    Failed,
    /// Ended from outside before it was done.
    Interrupted,
}

impl State {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exporting => "exporting",
            Self::Prepared => "prepared",
            Self::Reading => "reading",
            Self::Accepted => "accepted",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A session, and the process it was seen in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The session's id.
    pub session: String,
    /// Its client's process number, where one ran.
    pub pid: Option<u32>,
    /// That process's start time as the system counts it.
    pub started: Option<String>,
    /// The sessions that this one was forked from or cleared out of, the nearest first.
    pub came_from: Vec<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How heavy the parent was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weight {
    /// Tokens in its context.
    pub tokens: Option<u64>,
    /// Its wall in tokens.
    pub wall: u64,
    /// Points of the signals.
    pub points: u64,
    /// How urgent a handoff was: none, soon, due, critical.
    pub urgency: String,
}

/// A part that was not shown to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The file.
    pub part: String,
    /// Which check it failed: `count`, `marks` or `read`.
    pub check: String,
    /// What was wrong.
    pub what: String,
}

/// What a proof came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Proof {
    /// Whether every part passed every check.
    pub accepted: bool,
    /// Parts that are to be read.
    pub parts: usize,
    /// Marks in them.
    pub marks: usize,
    /// What is missing.
    pub shortfalls: Vec<Shortfall>,
    /// Turns that the child took.
    pub turns: u64,
}

/// What a child said of the work that it takes over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outlook {
    /// What was begun and is not done.
    pub open_threads: Vec<String>,
    /// What the person wants to hold for all further work.
    pub standing_instructions: Vec<String>,
    /// What it would do first.
    pub next: String,
}

/// When, epoch milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// The handoff began.
    pub began: i64,
    /// The export was there.
    pub exported: Option<i64>,
    /// The last turn of the child began.
    pub asked: Option<i64>,
    /// It ended, well or not.
    pub ended: Option<i64>,
}

/// Why a handoff did not come about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// The kind, one word: `timeout`, `exit`, `answer`, …
    pub kind: String,
    /// What was said.
    pub message: String,
}

/// One handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The export's id.
    pub id: String,
    /// How far it came.
    pub state: State,
    /// Who handed over.
    pub parent: Link,
    /// Who went on.
    #[serde(default)]
    pub child: Option<Link>,
    /// The child's depth in its chain; the original is 1.
    #[serde(default)]
    pub generation: u64,
    /// The parent's title.
    #[serde(default)]
    pub parent_name: Option<String>,
    /// The child's name.
    #[serde(default)]
    pub name: String,
    /// The export.
    pub directory: PathBuf,
    /// The parent's transcript.
    #[serde(default)]
    pub transcript: PathBuf,
    /// Where the parent worked and the child works.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The child's model.
    #[serde(default)]
    pub model: Option<String>,
    /// The child's wall in tokens, as it was reckoned.
    #[serde(default)]
    pub wall: u64,
    /// What the parts may come to, in tokens.
    #[serde(default)]
    pub budget: u64,
    /// The brief's file.
    #[serde(default)]
    pub brief: Option<PathBuf>,
    /// Credentials are masked.
    #[serde(default)]
    pub redact: bool,
    /// The parent's weight then.
    #[serde(default)]
    pub weight: Option<Weight>,
    /// What the last proof came to.
    #[serde(default)]
    pub proof: Option<Proof>,
    /// What the child that read it all said of the work.
    #[serde(default)]
    pub outlook: Option<Outlook>,
    /// When.
    #[serde(default)]
    pub times: Times,
    /// The client's version.
    #[serde(default)]
    pub client_version: Option<String>,
    /// How often it was taken up again.
    #[serde(default)]
    pub retries: u64,
    /// Ids that somebody else had already.
    #[serde(default)]
    pub ids_in_use: Vec<String>,
    /// Why it did not come about.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The registry's file.
#[derive(Debug, Serialize, Deserialize)]
struct Registry {
    version: u64,
    handoffs: Vec<Entry>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The entries, and where a file that could not be read was put.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order in which they began.
    pub entries: Vec<Entry>,
    /// A sentence about a file that was set aside.
    pub warning: Option<String>,
}

impl Store {
    /// Every handoff that is known.
    pub fn chains(&self) -> io::Result<Loaded> {
        if !self.registry().exists() {
            return Ok(Loaded::default());
        }
        let _held = self.hold_registry()?;
        let (registry, warning) = self.read_registry()?;
        Ok(Loaded { entries: registry.handoffs, warning })
    }

    /// Changes the entries; nobody else does meanwhile.
    pub fn change_chains<T>(
        &self,
        change: impl FnOnce(&mut Vec<Entry>) -> T,
    ) -> io::Result<(T, Option<String>)> {
        atomic::make_private(self.dir())?;
        let _held = self.hold_registry()?;
        let (mut registry, warning) = self.read_registry()?;
        let before = registry.handoffs.clone();
        let result = change(&mut registry.handoffs);
        if registry.handoffs != before || warning.is_some() {
            let bytes = serde_json::to_vec_pretty(&registry)?;
            let temp = self.dir().join(format!("{}chains.json", atomic::PREFIX));
            atomic::replace_by(&self.registry(), &temp, &bytes)?;
        }
        Ok((result, warning))
    }

    /// Shows the entries while nobody changes them, waiting this long for whoever does, in ms. Nothing is set
    /// aside: it is an error where the file cannot be read, and as long as one that could not be read lies
    /// aside, since nobody knows what that one named.
    pub fn look_at_chains<T>(&self, patience_ms: u64, look: impl FnOnce(&[Entry]) -> T) -> io::Result<T> {
        let path = self.registry();
        let _held = hold_for(&self.dir().join("chains.lock"), patience_ms)?;
        if let Some(aside) = atomic::aside(&path)? {
            return Err(io::Error::other(format!("{} could not be read once", aside.display())));
        }
        let registry: Registry = match files::read_small(&path, MOST) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(look(&[])),
            Err(error) => return Err(error),
        };
        if registry.version > VERSION {
            return Err(too_new(&path, registry.version));
        }
        Ok(look(&registry.handoffs))
    }

    fn registry(&self) -> PathBuf {
        self.dir().join("chains.json")
    }

    fn hold_registry(&self) -> io::Result<Held> {
        hold_for(&self.dir().join("chains.lock"), PATIENCE_MS)
    }

    fn read_registry(&self) -> io::Result<(Registry, Option<String>)> {
        let path = self.registry();
        let empty = || Registry { version: VERSION, handoffs: Vec::new(), rest: Map::new() };
        let why = match files::read_small(&path, MOST) {
            Ok(bytes) => match serde_json::from_slice::<Registry>(&bytes) {
                Ok(registry) if registry.version <= VERSION => return Ok((registry, None)),
                Ok(registry) => return Err(too_new(&path, registry.version)),
                Err(error) => match later_version(&bytes) {
                    Some(version) => return Err(too_new(&path, version)),
                    None => error.to_string(),
                },
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((empty(), None)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) =>
            {
                error.to_string()
            }
            Err(error) => return Err(error),
        };
        let aside = atomic::set_aside(&path)?;
        let warning = format!(
            "the list of handoffs {} could not be read ({why}); it is kept as {}, and a new one begins",
            path.display(),
            aside.display()
        );
        Ok((empty(), Some(warning)))
    }
}

fn too_new(path: &Path, version: u64) -> io::Error {
    io::Error::other(format!(
        "{} is of version {version} and this longhaul knows {VERSION}: update longhaul",
        path.display()
    ))
}

/// The version that a file of another shape names.
fn later_version(bytes: &[u8]) -> Option<u64> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    value.get("version")?.as_u64().filter(|version| *version > VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use serde_json::json;

    fn store(root: &Path) -> Store {
        Store::locate(&Host::fixed(&[("HOME", root.to_str().unwrap())], 0), &[]).unwrap()
    }

    fn entry(id: &str) -> Entry {
        let value = json!({ "id": id, "state": "prepared", "parent": { "session": "p" }, "directory": "/d" });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn entries_are_kept_with_what_this_version_does_not_know() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        assert!(store.chains().unwrap().entries.is_empty());
        assert!(!store.dir().exists(), "a look writes nothing");
        store.change_chains(|all| all.push(entry("a"))).unwrap();
        let path = store.registry();
        let mut value: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        value["later"] = json!(1);
        value["handoffs"][0]["later"] = json!({ "x": 2 });
        value["handoffs"][0]["parent"]["later"] = json!(3);
        fs_err::write(&path, value.to_string()).unwrap();
        store.change_chains(|all| all.push(entry("b"))).unwrap();
        let value: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        assert_eq!((&value["later"], &value["handoffs"][0]["later"]["x"]), (&json!(1), &json!(2)));
        assert_eq!(value["handoffs"][0]["parent"]["later"], 3);
        assert_eq!(store.chains().unwrap().entries.len(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_set_aside_and_named() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        store.change_chains(|all| all.push(entry("a"))).unwrap();
        let path = store.registry();
        for (n, broken) in ["{", "[]", r#"{"version":1,"handoffs":[{"id":7}]}"#, ""].iter().enumerate() {
            fs_err::write(&path, broken).unwrap();
            let (count, warning) = store.change_chains(|all| all.len()).unwrap();
            assert_eq!(count, 0);
            let aside = store.dir().join(format!("chains.json.unreadable-{}", n + 1));
            assert!(warning.unwrap().contains(aside.to_str().unwrap()));
            assert_eq!(fs_err::read_to_string(aside).unwrap(), *broken);
        }
        assert!(store.chains().unwrap().warning.is_none());
    }

    #[test]
    fn a_file_of_a_later_version_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        atomic::make_private(store.dir()).unwrap();
        for later in [r#"{"version":2,"handoffs":[]}"#, r#"{"version":3,"chains":{}}"#] {
            fs_err::write(store.registry(), later).unwrap();
            let error = store.change_chains(|all| all.push(entry("a"))).unwrap_err();
            assert!(error.to_string().contains("update longhaul"), "{error}");
            assert!(store.chains().is_err());
            assert_eq!(fs_err::read_to_string(store.registry()).unwrap(), later);
        }
    }
}
