//! A headless session of several turns: `-p` with streams of JSON on both sides.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use serde_json::{Value, json};

use crate::bench::{Bench, LONG};

pub struct Headless {
    child: Child,
    stdin: Option<ChildStdin>,
    rows: Receiver<Value>,
    errors: std::path::PathBuf,
}

impl Headless {
    pub fn start(bench: &Bench) -> Self {
        let args = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        let errors = bench.path("headless.err");
        let mut child = bench
            .command(&bench.command_line(&args))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&errors).unwrap())
            // A group of its own: what the client starts ends with it.
            .process_group(0)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, rows) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Ok(row) = serde_json::from_str(&line) else { continue };
                if sender.send(row).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, rows, errors }
    }

    /// The client's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One turn: sends a message and waits for the turn's result row.
    #[track_caller]
    pub fn say(&mut self, text: &str) -> Value {
        self.send(&json!(text));
        self.result()
    }

    /// Sends a message: a string or content blocks.
    #[track_caller]
    pub fn send(&mut self, content: &Value) {
        let message = json!({ "type": "user", "message": { "role": "user", "content": content } });
        let sent = writeln!(self.stdin.as_mut().unwrap(), "{message}");
        assert!(sent.is_ok(), "the client does not listen any more: {}", self.errors());
    }

    /// Waits for a turn's result row.
    #[track_caller]
    pub fn result(&mut self) -> Value {
        let until = Instant::now() + LONG;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.rows.recv_timeout(left) {
                Ok(row) if row["type"] == "result" => return row,
                Ok(_) => {}
                Err(why) => panic!("no result: {why}: {}", self.errors()),
            }
        }
    }

    /// Ends the session in order, so that its transcript is whole.
    #[track_caller]
    pub fn end(mut self) {
        drop(self.stdin.take());
        crate::bench::wait("the client's end", LONG, || self.child.try_wait().unwrap());
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        // Once it has been waited for, the number may be another's.
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), pid) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
