//! A home of its own for one client: config, work directory, settings in every scope, an environment in which
//! nothing of the person's is left, and a stand-in for the API. What is started in it dies with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::client::{self, Permit};

/// How long anything may take that takes a second or two.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Bench {
    client: PathBuf,
    pub api: Api,
    dir: TempDir,
    root: PathBuf,
    env: BTreeMap<String, String>,
    args: Vec<String>,
    plugins: Vec<PathBuf>,
    // Last, so that the next client starts when all of the above is gone.
    _permit: Permit,
}

impl Bench {
    /// A bench, or `None` where no client is at hand.
    pub fn open() -> Option<Self> {
        client::find().map(Self::with)
    }

    /// A bench of this client.
    pub fn with(client: PathBuf) -> Self {
        let permit = Permit::take();
        let dir = tempfile::Builder::new().prefix("longhaul-e2e-").tempdir().unwrap();
        // The client trusts a directory by its real path.
        let root = dir.path().canonicalize().unwrap();
        let bench = Self {
            client,
            api: Api::start(),
            dir,
            root,
            env: BTreeMap::new(),
            args: Vec::new(),
            plugins: Vec::new(),
            _permit: permit,
        };
        for dir in [bench.config(), bench.work().join(".claude"), bench.path("tmp")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        write_json(&bench.config().join("settings.json"), &json!({}));
        let trusted = json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true });
        let global = json!({ "hasCompletedOnboarding": true, "theme": "dark",
            "customApiKeyResponses": { "approved": [KEY], "rejected": [] },
            "projects": { bench.work().to_str().unwrap(): trusted } });
        write_json(&bench.home().join(".claude.json"), &global);
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The client's configuration directory.
    pub fn config(&self) -> PathBuf {
        self.path("home/.claude")
    }

    /// Where the client runs.
    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub fn model(self, id: &str) -> Self {
        if id.is_empty() { self } else { self.arg("--model").arg(id) }
    }

    /// Loads a plugin from this directory. The client leaves type files beside a module it loads so: never one
    /// of the repository's own directories.
    pub fn plugin(mut self, dir: &Path) -> Self {
        assert!(dir.starts_with(&self.root), "{} is not of this bench", dir.display());
        self.plugins.push(dir.to_owned());
        self
    }

    pub fn user(self, settings: &Value) -> Self {
        write_json(&self.config().join("settings.json"), settings);
        self
    }

    pub fn project(self, settings: &Value) -> Self {
        write_json(&self.work().join(".claude/settings.json"), settings);
        self
    }

    pub fn local(self, settings: &Value) -> Self {
        write_json(&self.work().join(".claude/settings.local.json"), settings);
        self
    }

    /// Adds to `~/.claude.json`.
    pub fn global(self, more: &Value) -> Self {
        let path = self.home().join(".claude.json");
        let mut all: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        write_json(&path, &all);
        self
    }

    /// The whole environment of whatever runs here.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::from(
            [
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("ANTHROPIC_BASE_URL", self.api.url()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                ("DISABLE_ERROR_REPORTING", "1".to_owned()),
                ("DISABLE_TELEMETRY", "1".to_owned()),
                ("HOME", self.home().to_str().unwrap().to_owned()),
                ("LANG", "C.UTF-8".to_owned()),
                ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())),
                ("SHELL", "/bin/bash".to_owned()),
                ("TERM", "xterm-256color".to_owned()),
                ("TMPDIR", self.path("tmp").to_str().unwrap().to_owned()),
                ("TZ", "UTC".to_owned()),
                ("USER", "tester".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        env.extend(self.env.clone());
        env
    }

    /// The client and its arguments, those of the bench first.
    pub fn command_line(&self, more: &[&str]) -> Vec<String> {
        let mut line = vec![self.client.to_str().unwrap().to_owned()];
        for plugin in &self.plugins {
            line.extend(["--plugin-dir".to_owned(), plugin.to_str().unwrap().to_owned()]);
        }
        line.extend(self.args.iter().cloned());
        line.extend(more.iter().map(|&arg| arg.to_owned()));
        line
    }

    /// A command in this bench's environment and work directory.
    pub fn command(&self, line: &[String]) -> Command {
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).env_clear().envs(self.environment()).current_dir(self.work());
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    pub fn run(&self, line: &[String], more_env: &[(&str, &str)], stdin: &[u8]) -> Output {
        let mut command = self.command(line);
        command.envs(more_env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        run_within(command, stdin, LONG)
    }

    /// One prompt, answered headlessly (`-p`): the result row.
    #[track_caller]
    pub fn ask(&self, prompt: &str, more: &[&str]) -> Value {
        let mut args = vec!["-p", prompt, "--output-format", "json"];
        args.extend(more);
        let out = self.run(&self.command_line(&args), &[], b"");
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| {
            panic!(
                "the client answered {:?} and said {}{}",
                out.status,
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            )
        })
    }

    /// The rows of this session's transcript, or of the only one.
    pub fn transcript(&self, session: Option<&str>) -> Vec<Value> {
        let path = self.transcript_path(session);
        let Some(path) = path else { return Vec::new() };
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn transcript_path(&self, session: Option<&str>) -> Option<PathBuf> {
        let projects = std::fs::read_dir(self.config().join("projects")).ok()?;
        projects
            .flatten()
            .filter_map(|project| std::fs::read_dir(project.path()).ok())
            .flatten()
            .flatten()
            .find_map(|file| {
                let path = file.path();
                let stem = path.file_stem()?.to_str()?;
                let mine = session.is_none_or(|session| session == stem);
                (mine && path.extension().is_some_and(|kind| kind == "jsonl")).then_some(path)
            })
    }

    /// Ends by its id every process that has this bench's home: the client's background supervisor, and tools
    /// that left their process group.
    fn sweep(&self) {
        let home = format!("HOME={}", self.home().display());
        for _ in 0..20 {
            let left = processes_with(&home);
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.sweep();
        if std::env::var_os("LONGHAUL_E2E_KEEP").is_some() {
            self.dir.disable_cleanup(true);
            eprintln!("e2e: kept {}", self.root.display());
        }
    }
}

const KEY: &str = "sk-ant-stand-in-0";

pub fn write_json(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).unwrap();
}

/// Polls until `found` has something, every 20 ms.
#[track_caller]
pub fn wait<T>(what: &str, deadline: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(began.elapsed() < deadline, "waited {deadline:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn processes_with(variable: &str) -> Vec<rustix::process::Pid> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter(|entry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|text| text.split(|&byte| byte == 0).any(|have| have == variable.as_bytes()))
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid: &i32| pid.unsigned_abs() != std::process::id())
        .filter_map(rustix::process::Pid::from_raw)
        .collect()
}

#[track_caller]
fn run_within(mut command: Command, stdin: &[u8], deadline: Duration) -> Output {
    use std::io::{Read as _, Write as _};
    let mut child = command.spawn().unwrap();
    // A program may end before it has read its input.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let mut streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = streams.1.read_to_end(&mut bytes);
        bytes
    });
    let (sender, ended) = std::sync::mpsc::channel();
    let output = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = streams.0.read_to_end(&mut bytes);
        let _ = sender.send(());
        bytes
    });
    let in_time = ended.recv_timeout(deadline).is_ok();
    if !in_time {
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    assert!(in_time, "{command:?} did not end within {deadline:?}");
    Output { status, stdout: output.join().unwrap(), stderr: errors.join().unwrap() }
}
