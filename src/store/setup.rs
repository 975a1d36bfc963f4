//! What `setup` did: `<state>/setup.json`, and where it puts the programs and the wrapper script.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Store, atomic};
use crate::base::id::digest;
use crate::host::files;

/// The layout's number; a higher one was written by a newer longhaul.
pub(super) const LAYOUT: u32 = 1;

/// What has to be known to undo a setup, and what a person decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    v: u32,
    /// The longhaul that wrote this.
    pub version: String,
    /// The person took our status line out, or asked for none: it is not put in again by itself.
    pub declined: bool,
    /// What was done to a settings file.
    pub settings: Option<Wiring>,
    /// What is about to be done to it: there only where a setup was ended in between.
    pub pending: Option<Wiring>,
    /// The link that puts `longhaul` on the person's path.
    pub link: Extra,
    /// The timer that looks after sessions.
    pub timer: Extra,
    /// The plugin, installed from a tree of ours.
    pub plugin: Extra,
}

/// Something that is brought beside programs and status line, where a person wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extra {
    /// It was brought, and setup has not taken it away since.
    pub brought: bool,
    /// The person took it away, or wanted none: it is not offered again.
    pub declined: bool,
    /// By which of several ways.
    pub way: Option<String>,
    /// What was not there before, outermost first.
    pub made: Vec<PathBuf>,
}

/// A change of a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    /// The file as the client names it; it may be a link.
    pub path: PathBuf,
    /// The file as it was written last.
    pub wrote: Print,
    /// There was no file before.
    pub created: bool,
    /// The status line command as it was written last; empty where none of ours was.
    pub command: String,
    /// The JSON text that stood in the command's place (`"…"`), where one was wrapped.
    pub previous: Option<String>,
    /// Copies of the file made before our changes, oldest first.
    pub backups: Vec<Backup>,
    /// The first copy is the file as it was without us, and only we changed it since.
    pub restorable: bool,
    /// Other keys that were set.
    #[serde(default)]
    pub keys: Vec<Key>,
}

/// A key of a settings file that was set, beside the status line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The keys that lead to it.
    pub path: Vec<String>,
    /// The JSON text that was written.
    pub wrote: String,
    /// The JSON text that stood there.
    pub previous: Option<String>,
    /// The object that holds it was made for it.
    pub made_object: bool,
}

/// A copy of a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub holds: Print,
}

/// A file's content, told by its length and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    /// Bytes.
    pub len: u64,
    /// FNV-1a of the bytes, in hexadecimal.
    pub fnv: String,
}

impl Print {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { len: bytes.len() as u64, fnv: format!("{:016x}", digest(&[bytes])) }
    }
}

/// What the record file holds.
#[derive(Debug)]
pub enum Read {
    /// A record; an empty one where there is no file.
    Known(Box<Record>),
    /// Something that is no record of ours, and why.
    Damaged(String),
    /// The record of a newer longhaul, with its version.
    Newer(String),
}

impl Store {
    /// The file that holds the record.
    pub fn setup_record(&self) -> PathBuf {
        self.dir().join("setup.json")
    }

    /// Reads the record. An error is the machine's: the file could not be read at all.
    pub fn read_setup(&self) -> io::Result<Read> {
        let bytes = match files::read_small(&self.setup_record(), 1 << 20) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Read::Known(Box::default())),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return Ok(Read::Damaged(e.to_string())),
            read => read?,
        };
        let known = serde_json::from_slice::<serde_json::Value>(&bytes);
        if let Ok(value) = &known
            && value["v"].as_u64().is_some_and(|v| v > u64::from(LAYOUT))
        {
            return Ok(Read::Newer(value["version"].as_str().unwrap_or("?").to_owned()));
        }
        Ok(match known.and_then(serde_json::from_value::<Record>) {
            Ok(record) if record.v == LAYOUT => Read::Known(Box::new(record)),
            Ok(_) => Read::Damaged("it has no version".to_owned()),
            Err(e) => Read::Damaged(e.to_string()),
        })
    }

    /// Moves a damaged record out of the way and gives its new path. Nothing is lost.
    pub fn set_setup_aside(&self, stamp: &str) -> io::Result<PathBuf> {
        let aside = free_name(&self.dir().join(format!("setup.json.unreadable-{stamp}")));
        fs_err::rename(self.setup_record(), &aside)?;
        Ok(aside)
    }

    /// Writes the record; one that says nothing is no file.
    pub fn write_setup(&self, record: &Record) -> io::Result<()> {
        let said = Record { v: 0, version: String::new(), ..record.clone() };
        if said == Record::default() {
            return match fs_err::remove_file(self.setup_record()) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        }
        atomic::make_private(self.dir())?;
        let record = Record { v: LAYOUT, version: env!("CARGO_PKG_VERSION").to_owned(), ..record.clone() };
        let mut bytes = serde_json::to_vec_pretty(&record)?;
        bytes.push(b'\n');
        atomic::replace(&self.setup_record(), &bytes, true)
    }

    /// Where installed programs are, one directory a version.
    pub fn bin(&self) -> PathBuf {
        self.dir().join("bin")
    }

    /// The installed version that stable paths lead to: a link on Unix, a plain directory on Windows.
    pub fn current(&self) -> PathBuf {
        self.bin().join("current")
    }

    /// A lock file that one `setup` holds while it works.
    pub fn setup_lock(&self) -> PathBuf {
        self.dir().join("setup.lock")
    }
}

/// This path, or with `-2`, `-3` … the first that is not taken.
pub fn free_name(path: &Path) -> PathBuf {
    let taken = |path: &Path| path.symlink_metadata().is_ok();
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{n}"));
        PathBuf::from(name)
    };
    let mut free = path.to_owned();
    let mut n = 2;
    while taken(&free) {
        free = numbered(n);
        n += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    fn store(root: &Path) -> Store {
        Store::locate(&Host::fixed(&[("HOME", root.to_str().unwrap())], 0), &[]).unwrap()
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        assert!(matches!(store.read_setup().unwrap(), Read::Known(r) if *r == Record::default()));
        store.write_setup(&Record { declined: true, ..Record::default() }).unwrap();
        let Read::Known(record) = store.read_setup().unwrap() else { panic!("known") };
        assert!(record.declined);
        store.write_setup(&Record::default()).unwrap();
        assert!(!store.setup_record().exists());
    }

    #[test]
    fn a_record_that_is_not_ours_is_never_taken_for_an_empty_one() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        fs_err::create_dir_all(store.dir()).unwrap();
        for damaged in ["", "{", "[]", "{}", "{\"v\":1,\"settings\":{}}", "{\"v\":0}", "\u{0}"] {
            fs_err::write(store.setup_record(), damaged).unwrap();
            assert!(matches!(store.read_setup().unwrap(), Read::Damaged(_)), "{damaged:?}");
        }
        let first = store.set_setup_aside("now").unwrap();
        fs_err::write(store.setup_record(), "x").unwrap();
        let second = store.set_setup_aside("now").unwrap();
        assert_ne!(first, second);
        assert_eq!(fs_err::read(second).unwrap(), b"x");
        fs_err::write(store.setup_record(), "{\"v\":2,\"version\":\"9.0.0\"}").unwrap();
        assert!(matches!(store.read_setup().unwrap(), Read::Newer(v) if v == "9.0.0"));
        fs_err::remove_file(store.setup_record()).unwrap();
        fs_err::create_dir(store.setup_record()).unwrap();
        assert!(store.read_setup().is_err());
    }
}
