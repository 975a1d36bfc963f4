//! Handoffs through the built program, with a stand-in in the client's place (support/client.rs): how each kind of
//! failure ends, and what is left after it.

mod client;
mod disk;
mod input;
mod kills;
mod options;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::saga::{SESSION, everything};
use crate::sandbox::{Said, Sandbox, finish_within};

/// Nothing here takes a tenth of it.
const LONG: Duration = Duration::from_secs(120);

/// The stand-in, as cargo built it.
const CLIENT: &str = env!("CARGO_BIN_EXE_stand-in-client");

/// A machine with a session on it, and a client.
pub struct Desk {
    pub sandbox: Sandbox,
}

impl Desk {
    /// Its client plays this.
    pub fn new(manner: &str) -> Self {
        let desk = Self { sandbox: Sandbox::new() };
        fs_err::create_dir(desk.bin()).unwrap();
        fs_err::os::unix::fs::symlink(CLIENT, desk.bin().join("claude")).unwrap();
        let path = desk.bin().to_str().unwrap().to_owned();
        let desk = Self { sandbox: desk.sandbox.env("PATH", &path) };
        desk.place(&everything().bytes(), &desk.sandbox.work());
        desk.plays(manner);
        desk
    }

    pub fn env(self, name: &str, value: &str) -> Self {
        Self { sandbox: self.sandbox.env(name, value) }
    }

    /// Puts the session there, as if it had been worked on in this directory.
    pub fn place(&self, bytes: &[u8], cwd: &Path) -> PathBuf {
        let path = self.transcript();
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let text = String::from_utf8_lossy(bytes).replace("\"/home/someone/work\"", &json!(cwd).to_string());
        fs_err::write(&path, text).unwrap();
        path
    }

    pub fn transcript(&self) -> PathBuf {
        self.sandbox.config().join(format!("projects/-work/{SESSION}.jsonl"))
    }

    pub fn bin(&self) -> PathBuf {
        self.sandbox.root.path().join("bin")
    }

    pub fn plays(&self, manner: &str) {
        let _ = std::fs::remove_file(self.bin().join("calls.jsonl"));
        fs_err::write(self.bin().join("manner"), manner).unwrap();
    }

    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.sandbox.command("longhaul");
        command.arg("handoff").args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// `longhaul handoff …`.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Said {
        finish_within(self.start(args), LONG)
    }

    /// Hands the session over.
    #[track_caller]
    pub fn go(&self, more: &[&str]) -> Said {
        self.run(&[&["--session", SESSION, "--force"], more].concat())
    }

    /// Hands it over, which fails with this code and these words; the only entry then.
    #[track_caller]
    pub fn fails(&self, more: &[&str], code: i32, words: &str) -> Value {
        let said = self.go(more);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.stderr.contains(words), "{words:?} is not in {said:?}");
        self.nothing_runs();
        self.nothing_is_half_written();
        self.entry()
    }

    /// Takes the only handoff up again, which is accepted then.
    #[track_caller]
    pub fn is_finished_by_retry(&self) -> Value {
        let id = self.entry()["id"].as_str().unwrap().to_owned();
        let said = self.run(&["retry", &id]);
        assert_eq!(said.code, 0, "{said:?}");
        self.is_accepted()
    }

    /// One entry, one export, and the child has read it.
    #[track_caller]
    pub fn is_accepted(&self) -> Value {
        let entry = self.entry();
        assert_eq!((&entry["state"], &entry["failure"]), (&json!("accepted"), &Value::Null), "{entry:#}");
        assert_eq!(self.nothing_is_half_written(), [entry["id"].as_str().unwrap()]);
        self.nothing_runs();
        entry
    }

    pub fn entries(&self) -> Vec<Value> {
        let Ok(bytes) = std::fs::read(self.sandbox.state().join("chains.json")) else { return Vec::new() };
        let all: Value = serde_json::from_slice(&bytes).unwrap();
        all["handoffs"].as_array().unwrap().clone()
    }

    /// The only entry of the registry.
    #[track_caller]
    pub fn entry(&self) -> Value {
        let entries = self.entries();
        assert_eq!(entries.len(), 1, "{entries:#?}");
        entries[0].clone()
    }

    /// Where the only export lies.
    pub fn export(&self) -> PathBuf {
        self.sandbox.state().join("handoffs").join(self.entry()["id"].as_str().unwrap())
    }

    /// And its key.
    pub fn key(&self) -> PathBuf {
        self.sandbox.state().join(format!("handoff-keys/{}.json", self.entry()["id"].as_str().unwrap()))
    }

    pub fn write_registry(&self, entries: &[Value]) {
        let registry = json!({ "version": 1, "handoffs": entries });
        fs_err::write(self.sandbox.state().join("chains.json"), registry.to_string()).unwrap();
    }

    /// What the client was given, call by call.
    pub fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.bin().join("calls.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Names in a directory of longhaul's, sorted.
    pub fn names(&self, dir: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.sandbox.state().join(dir)).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Every key has its export, every export its key and its entry, and no draft lies about: the exports.
    #[track_caller]
    pub fn nothing_is_half_written(&self) -> Vec<String> {
        // A directory that nobody came to write in is taken away when it has aged.
        let empty = |name: &String| {
            let draft = self.sandbox.state().join("handoffs").join(name);
            name.starts_with(".lh-") && std::fs::read_dir(draft).is_ok_and(|mut files| files.next().is_none())
        };
        let exports: Vec<String> = self.names("handoffs").into_iter().filter(|name| !empty(name)).collect();
        let with = |ending: &str| {
            let names = self.names("handoff-keys").into_iter();
            let mut ids: Vec<_> =
                names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
            ids.sort();
            ids
        };
        assert_eq!(exports, with(".json"));
        let entries = self.entries();
        let mut ids: Vec<&str> = entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        assert!(exports.iter().all(|id| ids.contains(&&**id)), "{exports:?} {ids:?}");
        assert!(with(".lock").iter().all(|id| ids.contains(&&**id)), "{:?} {ids:?}", with(".lock"));
        let left = self.names("").into_iter().chain(self.names("gauge"));
        let half = |name: &String| name.starts_with(".lh-") || name.ends_with(".reading");
        assert_eq!(left.filter(half).collect::<Vec<_>>(), [""; 0]);
        exports
    }

    /// No client that was started here is there any more.
    #[track_caller]
    pub fn nothing_runs(&self) {
        for call in self.calls() {
            assert!(!self.runs(call["pid"].as_u64().unwrap()), "still runs: {call}");
        }
    }

    /// Whether this number is that of a client of this desk.
    pub fn runs(&self, pid: u64) -> bool {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with(self.bin().to_str().unwrap())
    }
}
