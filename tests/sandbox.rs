//! A machine of its own for a test: a temporary HOME, an environment of nothing else, the built programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use longhaul::host::Host;
use longhaul::store::Store;
use serde_json::{Value, json};

pub const SESSION: &str = "3f2a9c1e-0000-4000-8000-1234567890ab";

/// Nothing here may take longer: a hard deadline of a second with tenfold slack.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long what comes by itself is waited for.
const AWAITED: Duration = Duration::from_secs(30);

pub struct Sandbox {
    pub root: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What a program said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Sandbox {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs_err::create_dir_all(home.join(".claude")).unwrap();
        for dir in ["work", "tmp"] {
            fs_err::create_dir_all(root.path().join(dir)).unwrap();
        }
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let env =
            vec![("HOME".to_owned(), text(&home)), ("TMPDIR".to_owned(), text(&root.path().join("tmp")))];
        Self { root, env }
    }

    /// With a variable, or without it where the value is empty and the name begins with `-`.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(have, _)| have != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.env.retain(|(have, _)| have != name);
        self
    }

    pub fn config(&self) -> PathBuf {
        self.root.path().join("home/.claude")
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn state(&self) -> PathBuf {
        self.config().join("longhaul")
    }

    pub fn settings(self, settings: &Value) -> Self {
        fs_err::write(self.config().join("settings.json"), settings.to_string()).unwrap();
        self
    }

    /// The session's transcript, with these rows.
    pub fn transcript(&self, rows: &[Value]) -> PathBuf {
        let dir = self.config().join("projects/-work");
        fs_err::create_dir_all(&dir).unwrap();
        let path = dir.join(format!("{SESSION}.jsonl"));
        let text = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        fs_err::write(&path, text).unwrap();
        path
    }

    /// A status line payload: window, tokens in use, transcript.
    pub fn payload(&self, window: u64, used: Option<u64>, transcript: Option<&Path>) -> Value {
        json!({
            "session_id": SESSION,
            "transcript_path": transcript,
            "model": { "id": "claude-opus-5-5", "display_name": "Opus 5.5" },
            "workspace": { "current_dir": self.work(), "project_dir": self.work() },
            "context_window": {
                "context_window_size": window,
                "current_usage": used.map(|used| json!({ "input_tokens": used, "output_tokens": 0 })),
            },
        })
    }

    pub fn event(&self, name: &str, more: &Value) -> Value {
        let transcript = self.config().join(format!("projects/-work/{SESSION}.jsonl"));
        let mut event = json!({
            "hook_event_name": name, "session_id": SESSION, "cwd": self.work(),
            "transcript_path": transcript,
        });
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        event
    }

    pub fn statusline(&self, payload: &Value) -> Said {
        self.run("longhaul-statusline", &[], payload.to_string().as_bytes())
    }

    pub fn hook(&self, event: &Value) -> Said {
        self.run("longhaul-hook", &[], event.to_string().as_bytes())
    }

    /// The hook's answer as JSON; null where it said nothing.
    #[track_caller]
    pub fn answer(&self, event: &Value) -> Value {
        let said = self.hook(event);
        assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
        if said.stdout.is_empty() { Value::Null } else { serde_json::from_str(&said.stdout).unwrap() }
    }

    pub fn longhaul(&self, args: &[&str]) -> Said {
        self.run("longhaul", args, b"")
    }

    #[track_caller]
    pub fn longhaul_json(&self, args: &[&str]) -> Value {
        let said = self.longhaul(args);
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }

    #[track_caller]
    pub fn explain(&self, payload: &Value) -> Value {
        let file = self.root.path().join("payload.json");
        fs_err::write(&file, payload.to_string()).unwrap();
        self.longhaul_json(&["explain", "--json", "--payload", file.to_str().unwrap()])
    }

    pub fn command(&self, program: &str) -> Command {
        self.other_command(program_path(program))
    }

    /// A program that is not ours, in the sandbox's environment: without a temporary directory of its own what it starts
    /// would leave files in the machine's.
    pub fn other_command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(self.work());
        command
    }

    /// All that a command writes to a terminal, escapes and all.
    #[cfg(unix)]
    pub fn on_terminal(&self, args: &[&str]) -> String {
        self.typed_on_terminal(args, "")
    }

    /// The same, with this typed at once.
    #[cfg(unix)]
    pub fn typed_on_terminal(&self, args: &[&str], typed: &str) -> String {
        use std::io::Read as _;
        let pair = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).unwrap();
        let mut command = portable_pty::CommandBuilder::new(program_path("longhaul"));
        command.args(args);
        command.env_clear();
        for (name, value) in &self.env {
            command.env(name, value);
        }
        command.cwd(self.work());
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        // A writer ends what is typed when it is dropped.
        if !typed.is_empty() {
            pair.master.take_writer().unwrap().write_all(typed.as_bytes()).unwrap();
        }
        let mut shown = Vec::new();
        // Where the other end is gone, Linux says so by an error.
        let _ = pair.master.try_clone_reader().unwrap().read_to_end(&mut shown);
        child.wait().unwrap();
        String::from_utf8(shown).unwrap()
    }

    pub fn run(&self, program: &str, args: &[&str], input: &[u8]) -> Said {
        let mut child = self
            .command(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input to the end may close the pipe.
        let _ = child.stdin.take().unwrap().write_all(input);
        finish(child)
    }
}

/// Waits for the end of a program, not for longer than the deadline.
#[track_caller]
pub fn finish(child: std::process::Child) -> Said {
    finish_within(child, DEADLINE)
}

/// The same with another deadline.
#[track_caller]
pub fn finish_within(mut child: std::process::Child, deadline: Duration) -> Said {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > deadline {
            child.kill().unwrap();
            panic!("still running after {deadline:?}");
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let took = start.elapsed();
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took,
    }
}

/// longhaul's own files in the sandbox.
pub fn store(sandbox: &Sandbox) -> Store {
    let home = sandbox.config().parent().unwrap().to_owned();
    Store::locate(&Host::fixed(&[("HOME", home.to_str().unwrap())], 0), &[]).unwrap()
}

/// What is there in the end; a failure where that takes ten times as long as it should.
#[track_caller]
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < AWAITED, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn program_path(program: &str) -> &'static str {
    match program {
        "longhaul" => env!("CARGO_BIN_EXE_longhaul"),
        "longhaul-hook" => env!("CARGO_BIN_EXE_longhaul-hook"),
        "longhaul-statusline" => env!("CARGO_BIN_EXE_longhaul-statusline"),
        "longhaul-watch" => env!("CARGO_BIN_EXE_longhaul-watch"),
        other => panic!("no program {other}"),
    }
}

static ROW: AtomicUsize = AtomicUsize::new(0);

/// Rows of a transcript, each the child of the one before.
#[allow(clippy::struct_field_names)] // They are rows.
pub struct Rows {
    pub rows: Vec<Value>,
    parent: Option<String>,
    at: i64,
}

impl Rows {
    pub fn new() -> Self {
        Self { rows: Vec::new(), parent: None, at: 1_796_000_000 }
    }

    /// Rows of a moment ahead of now, which go on from none.
    pub fn later() -> Self {
        Self { at: longhaul::host::clock::now_ms() / 1000 + 60, ..Self::new() }
    }

    fn push(mut self, mut row: Value) -> Self {
        let uuid = format!("u{}", ROW.fetch_add(1, Ordering::Relaxed));
        self.at += 10;
        row["uuid"] = json!(uuid);
        row["parentUuid"] = json!(self.parent);
        row["sessionId"] = json!(SESSION);
        row["timestamp"] = json!(longhaul::base::span::stamp(self.at * 1000));
        if row.get("isSidechain").is_none() {
            row["isSidechain"] = json!(false);
        }
        self.parent = Some(uuid);
        self.rows.push(row);
        self
    }

    pub fn prompt(self, text: &str) -> Self {
        self.push(json!({ "type": "user", "turnOrigin": "human", "promptSource": "typed",
            "origin": { "kind": "human" }, "message": { "role": "user", "content": text } }))
    }

    pub fn response(self, used: u64) -> Self {
        self.response_of("claude-opus-5-5", used)
    }

    pub fn response_of(self, model: &str, used: u64) -> Self {
        let id = format!("msg_{}", ROW.fetch_add(1, Ordering::Relaxed));
        self.push(json!({ "type": "assistant", "message": { "id": id, "role": "assistant", "model": model,
            "content": [{ "type": "text", "text": "ok" }],
            "usage": { "input_tokens": used, "output_tokens": 0 } } }))
    }

    /// As many prompts and responses as make evidence.
    pub fn turns(mut self, used: &[u64]) -> Self {
        for used in used {
            self = self.prompt("go on").response(*used);
        }
        self
    }

    pub fn boundary(mut self, trigger: &str, pre: u64, post: u64) -> Self {
        let logical = self.parent.take();
        self.push(json!({ "type": "system", "subtype": "compact_boundary", "logicalParentUuid": logical,
            "content": "Conversation compacted",
            "compactMetadata": { "trigger": trigger, "preTokens": pre, "postTokens": post } }))
            .push(json!({ "type": "user", "isCompactSummary": true,
            "message": { "role": "user", "content": "a summary" } }))
    }

    pub fn too_long(self) -> Self {
        self.push(json!({ "type": "assistant", "isApiErrorMessage": true, "message": { "id": "e1",
            "role": "assistant", "model": "<synthetic>", "usage": { "input_tokens": 0, "output_tokens": 0 },
            "content": [{ "type": "text", "text": "Prompt is too long" }] } }))
    }

    pub fn raw(mut self, row: Value) -> Self {
        self.rows.push(row);
        self
    }
}
