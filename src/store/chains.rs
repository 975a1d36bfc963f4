//! `<state>/chains.json`: which session went on in which, and how far each handoff came.
//!
//! One entry a handoff, written under a lock and replaced whole. A file that cannot be read is set aside under
//! another name and never overwritten as if it had been empty; one of a later version is left alone. Members
//! that this version does not know are kept.

mod entry;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lock::{Held, hold_for};
use super::version::{later, too_new};
use super::{Store, atomic};
use crate::host::files;

pub use entry::{Entry, Failure, Link, Outlook, Proof, Shortfall, State, Times, Weight};

/// How a file of this version says so.
pub(super) const VERSION: u64 = 1;
/// A registry larger than this is not ours, in bytes.
const MOST: u64 = 64 << 20;
/// How long another writer is waited for, in ms.
const PATIENCE_MS: u64 = 20_000;

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
            return Err(too_new(&path, registry.version, VERSION));
        }
        Ok(look(&registry.handoffs))
    }

    /// The entries as they stand now, for a look around: nothing is held, made or set aside.
    pub fn peek_at_chains(&self) -> io::Result<Vec<Entry>> {
        match files::read_small(&self.registry(), MOST) {
            Ok(bytes) => Ok(serde_json::from_slice::<Registry>(&bytes)?.handoffs),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
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
                Ok(registry) => return Err(too_new(&path, registry.version, VERSION)),
                Err(error) => match later(&bytes, VERSION) {
                    Some(version) => return Err(too_new(&path, version, VERSION)),
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
            "the list of handoffs {} could not be read ({why}); it is kept as {}, and a new one begins. As long as \
             it lies there, no automatic export is taken away for another: nobody knows which ones it names",
            path.display(),
            aside.display()
        );
        Ok((empty(), Some(warning)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
