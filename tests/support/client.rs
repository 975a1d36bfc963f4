//! A stand-in for the client, for tests of handoffs on a machine that has none: it takes the command line of a
//! headless turn, writes a transcript in the client's row shapes where the client would, and answers, or fails in
//! the way it is told. Only built with the feature `testing`.
//!
//! Beside the name it was started by lie `manner`, words of which the n-th call plays the n-th and later ones the
//! last (`honest:20` waits 20 ms before each row), and `calls.jsonl`, where each call leaves what it was given.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A stand-in that fails is a test that fails.
#![allow(clippy::disallowed_methods)] // It is no part of longhaul: it has its own clock and environment.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Whatever it is told, it ends after this.
const LIFE: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let place = Path::new(&args[0]).parent().unwrap().to_path_buf();
    match args.get(1).map(String::as_str) {
        Some("--version") => println!("2.1.332 (Claude Code)"),
        Some("--linger") => linger(&place),
        _ => {
            let call = Call::read(&args[1..]);
            let (part, delay) = played(&place, &call);
            let played = Turn { call, place, delay }.play(&part);
            return ExitCode::from(played);
        }
    }
    ExitCode::SUCCESS
}

/// The command line.
#[derive(Default)]
struct Call {
    session: String,
    resumes: bool,
    name: Option<String>,
    dir: PathBuf,
    guard: String,
    files: Vec<String>,
    all: Vec<String>,
}

impl Call {
    fn read(args: &[String]) -> Self {
        let mut call = Self { all: args.to_vec(), ..Self::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap().clone();
            match arg.as_str() {
                "-p" | "--strict-mcp-config" => {}
                "--session-id" => call.session = value(),
                "--resume" => (call.session, call.resumes) = (value(), true),
                "--output-format" => assert_eq!(value(), "json"),
                "--tools" => assert_eq!(value(), "Read"),
                "--permission-mode" => assert_eq!(value(), "default"),
                "--add-dir" => call.dir = value().into(),
                "--settings" => {
                    let settings: Value = serde_json::from_str(&value()).unwrap();
                    let guard = &settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
                    guard.as_str().unwrap().clone_into(&mut call.guard);
                }
                "--json-schema" => {
                    let schema: Value = serde_json::from_str(&value()).unwrap();
                    let files = schema["properties"]["entries"]["required"].as_array().unwrap().iter();
                    call.files = files.map(|file| file.as_str().unwrap().to_owned()).collect();
                }
                _ => match arg.split_once('=') {
                    Some(("--name", name)) => call.name = Some(name.to_owned()),
                    Some(("--model", _)) => {}
                    _ => panic!("unknown option {arg}"),
                },
            }
        }
        call
    }
}

/// Leaves what it was given, and tells what to play.
fn played(place: &Path, call: &Call) -> (String, Duration) {
    let calls = place.join("calls.jsonl");
    let env: BTreeMap<String, String> = std::env::vars().collect();
    let cwd = std::env::current_dir().unwrap();
    let told = json!({ "args": call.all, "env": env, "cwd": cwd, "pid": std::process::id() });
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&calls).unwrap();
    file.write_all(format!("{told}\n").as_bytes()).unwrap();
    let n = std::fs::read_to_string(&calls).unwrap().lines().count();
    let told = std::fs::read_to_string(place.join("manner")).unwrap();
    let words: Vec<&str> = told.split_whitespace().collect();
    let word = words.get(n - 1).or(words.last()).unwrap();
    let (part, delay) = word.split_once(':').unwrap_or((word, "0"));
    (part.to_owned(), Duration::from_millis(delay.parse().unwrap()))
}

/// One turn.
struct Turn {
    call: Call,
    place: PathBuf,
    delay: Duration,
}

impl Turn {
    fn play(self, manner: &str) -> u8 {
        match manner {
            "in-use" => {
                return refuse(&format!("Error: Session ID {} is already in use.", self.call.session));
            }
            "fails" => {
                eprintln!("no more credit\u{1b}[31m");
                return 3;
            }
            "silent" => return 0,
            "malformed" => print!("{{\"is_error\":"),
            "huge" => {
                let piece = vec![b'x'; 1 << 20];
                (0..100).for_each(|_| std::io::stdout().write_all(&piece).unwrap());
            }
            "prose" => {
                print!("{}", json!({ "type": "result", "is_error": false, "result": "I have read it all." }));
            }
            _ => return self.read(manner),
        }
        0
    }

    /// Reads what it is asked to read.
    fn read(self, manner: &str) -> u8 {
        let mut prompt = String::new();
        std::io::stdin().read_to_string(&mut prompt).unwrap();
        let path = transcript(&self.call.session);
        let mut rows = match (self.call.resumes, path.exists()) {
            (false, true) => {
                return refuse(&format!("Error: Session ID {} is already in use.", self.call.session));
            }
            (true, false) => {
                return refuse(&format!("No conversation found with session ID: {}", self.call.session));
            }
            _ => Rows::open(&path, &self.call.session, self.delay),
        };
        if let Some(name) = &self.call.name {
            rows.loose(&json!({ "type": "custom-title", "customTitle": name }));
            rows.loose(&json!({ "type": "agent-name", "agentName": name }));
        }
        rows.add(json!({ "type": "user", "promptSource": "sdk",
            "message": { "role": "user", "content": prompt } }));
        if manner == "hangs" {
            hang();
        }
        let asked = listed(&prompt);
        let skipped = if manner == "skips" { self.call.files.last() } else { None };
        for (n, file) in asked.iter().enumerate() {
            if Some(file) == skipped {
                continue;
            }
            if n >= asked.len() / 2 && manner == "dies" {
                end_at_once();
            }
            if n >= asked.len() / 2 && manner == "half-line" {
                rows.half();
                end_at_once();
            }
            self.read_file(&mut rows, file);
        }
        let answer = self.answer(skipped);
        rows.call("StructuredOutput", &answer, "Structured output provided successfully", &Value::Null);
        if manner == "leaves" {
            self.leave();
        }
        print!(
            "{}",
            json!({ "type": "result", "is_error": false, "result": "done",
            "session_id": self.call.session, "structured_output": answer })
        );
        0
    }

    fn read_file(&self, rows: &mut Rows, file: &str) {
        let path = self.call.dir.join(file);
        let input = json!({ "file_path": path });
        assert!(self.allows("Read", &input), "the guard refuses {}", path.display());
        let content = std::fs::read_to_string(&path).unwrap();
        let lines = content.split('\n').count();
        let numbered = (1..).zip(content.split('\n')).map(|(n, line)| format!("{n}\t{line}"));
        let given = numbered.collect::<Vec<_>>().join("\n");
        let detail = json!({ "type": "text", "file": { "filePath": path, "content": content, "numLines": lines,
            "startLine": 1, "totalLines": lines } });
        rows.call("Read", &input, &given, &detail);
    }

    /// What the hook of this turn says.
    fn allows(&self, tool: &str, input: &Value) -> bool {
        let event = json!({ "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input });
        let mut hook = Command::new("/bin/sh");
        let mut hook = hook.args(["-c", &self.call.guard]).stdin(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        hook.wait().unwrap().success()
    }

    fn answer(&self, skipped: Option<&String>) -> Value {
        let (mut entries, mut marks) = (BTreeMap::new(), Vec::new());
        for file in &self.call.files {
            let path = self.call.dir.join(file);
            let text =
                if Some(file) == skipped { String::new() } else { std::fs::read_to_string(path).unwrap() };
            let heads = ["## ", "### Message ", "### Decision "];
            let counted = |line: &&str| {
                let numbered = |rest: &str| rest.starts_with(|sign: char| sign.is_ascii_digit());
                heads.iter().any(|head| line.strip_prefix(head).is_some_and(numbered))
            };
            entries.insert(file.clone(), text.lines().filter(counted).count());
            let code = |line: &str| Some(line.strip_prefix("[[longhaul mark ")?.get(..10)?.to_owned());
            marks.extend(text.lines().filter_map(code));
        }
        json!({ "entries": entries, "marks": marks, "open_threads": ["the parser"],
            "standing_instructions": ["no needless words"], "next": "go on with the parser" })
    }

    /// Two that outlive it and hold its output open: one of its group, one of a group of its own.
    fn leave(&self) {
        use std::os::unix::process::CommandExt as _;
        let start = |apart: bool| {
            let mut command = Command::new(std::env::args().next().unwrap());
            command.arg("--linger").stdin(Stdio::null());
            if apart {
                command.process_group(0);
            }
            command.spawn().unwrap().id()
        };
        let left = format!("{} {}", start(false), start(true));
        std::fs::write(self.place.join("left"), left).unwrap();
    }
}

fn refuse(words: &str) -> u8 {
    eprintln!("{words}");
    1
}

fn end_at_once() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

/// Whoever asks it to end is not heard.
fn hang() -> ! {
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::default()).unwrap();
    }
    let until = Instant::now() + LIFE;
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::process::exit(9)
}

fn linger(place: &Path) {
    let until = Instant::now() + LIFE;
    while Instant::now() < until && place.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The names of the files that a prompt lists, in order.
fn listed(prompt: &str) -> Vec<String> {
    let numbered = |line: &str| {
        let (number, path) = line.split_once(". ")?;
        let name = number.parse::<u32>().ok().and(Path::new(path).file_name())?;
        path.starts_with('/').then(|| name.to_str().unwrap().to_owned())
    };
    prompt.lines().filter_map(numbered).collect()
}

fn transcript(session: &str) -> PathBuf {
    let config = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let config = config.unwrap_or_else(|| Path::new(&std::env::var("HOME").unwrap()).join(".claude"));
    let cwd = std::env::current_dir().unwrap().to_string_lossy().into_owned();
    let slug: String =
        cwd.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '-' }).collect();
    config.join("projects").join(slug).join(format!("{session}.jsonl"))
}

/// A transcript, row by row.
struct Rows {
    file: std::fs::File,
    session: String,
    parent: Option<String>,
    serial: u64,
    delay: Duration,
}

impl Rows {
    fn open(path: &Path, session: &str, delay: Duration) -> Self {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let uuid = |line: &str| Some(serde_json::from_str::<Value>(line).ok()?["uuid"].as_str()?.to_owned());
        let parent = text.lines().rev().find_map(uuid);
        let serial = text.lines().count() as u64;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        Self { file, session: session.to_owned(), parent, serial, delay }
    }

    /// A row outside the conversation.
    fn loose(&mut self, row: &Value) {
        let mut row = row.clone();
        row["sessionId"] = json!(self.session);
        std::thread::sleep(self.delay);
        self.file.write_all(format!("{row}\n").as_bytes()).unwrap();
    }

    /// A row that hangs on the one before.
    fn add(&mut self, mut row: Value) {
        self.serial += 1;
        let uuid = format!("{}-row-{}", self.session, self.serial);
        row["parentUuid"] = json!(self.parent);
        row["uuid"] = json!(uuid);
        row["isSidechain"] = json!(false);
        row["cwd"] = json!(std::env::current_dir().unwrap());
        row["version"] = json!("2.1.332");
        let now = longhaul::host::clock::now_ms();
        row["timestamp"] = json!(longhaul::base::span::stamp(now));
        self.loose(&row);
        self.parent = Some(uuid);
    }

    fn call(&mut self, tool: &str, input: &Value, result: &str, detail: &Value) {
        let id = format!("toolu_{}_{}", self.session, self.serial);
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        self.add(json!({ "type": "assistant", "message": { "id": format!("msg_{id}"), "role": "assistant",
            "model": "claude-opus-5-5", "content": [block],
            "usage": { "input_tokens": 9_000, "output_tokens": 9 } } }));
        let block = json!({ "type": "tool_result", "tool_use_id": id, "content": result });
        self.add(json!({ "type": "user", "message": { "role": "user", "content": [block] },
            "toolUseResult": detail }));
    }

    /// The beginning of a row that nobody finishes.
    fn half(&mut self) {
        self.file.write_all(b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"te").unwrap();
    }
}
