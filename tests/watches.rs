//! Watches through the built programs: a watcher beside a process that stands in for the client.
#![cfg(all(unix, feature = "testing"))]

mod falls;
mod hostile;
mod kinds;
mod verbs;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longhaul::base::id::SessionId;
use longhaul::host::process;
use longhaul::store::watches::Watch;
use serde_json::{Value, json};

use crate::sandbox::{Said, Sandbox, finish, store, until};

/// Ten times what any of this takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// A session: its client's stand-in, and the watcher beside it. Both end with the test.
struct Session {
    id: String,
    dir: PathBuf,
    client: Child,
    watcher: Option<Child>,
}

impl Session {
    /// Opens one in the sandbox's working directory, with its watcher.
    fn open(sandbox: &Sandbox, id: &str) -> Self {
        Self::open_in(sandbox, id, &sandbox.work())
    }

    fn open_in(sandbox: &Sandbox, id: &str, dir: &Path) -> Self {
        let mut session = Self::without_watcher(sandbox, id, dir);
        session.watch(sandbox);
        session
    }

    fn without_watcher(sandbox: &Sandbox, id: &str, dir: &Path) -> Self {
        fs_err::create_dir_all(dir).unwrap();
        let client = Command::new("sleep").arg("600").spawn().unwrap();
        let mut session = Self { id: id.to_owned(), dir: dir.to_owned(), client, watcher: None };
        session.shows(sandbox, id);
        session
    }

    /// Starts its watcher, and waits until it is at work.
    fn watch(&mut self, sandbox: &Sandbox) {
        let mut command = sandbox.command("longhaul-watch");
        command.env("CLAUDE_PID", self.client.id().to_string()).env("CLAUDE_PROJECT_DIR", &self.dir);
        command.env("CLAUDE_CODE_SESSION_ID", &self.id).env("ANTHROPIC_API_KEY", "secret");
        command.env("CLAUDE_CODE_OAUTH_TOKEN", "secret").env("PATH", "/usr/bin:/bin");
        // Its duties come every tenth of a second.
        command.env("LONGHAUL_TEST_HASTE", "20").current_dir(&self.dir);
        // The pipe stays open, and unread, as long as the child is kept.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = self.watcher.insert(command.spawn().unwrap());
        let (store, client, pid) = (store(sandbox), self.client.id(), child.id());
        until("the watcher's stamp", || store.watcher(client).filter(|stamp| stamp.pid == pid));
    }

    /// The client shows this session now.
    fn shows(&mut self, sandbox: &Sandbox, id: &str) {
        id.clone_into(&mut self.id);
        let dir = sandbox.config().join("sessions");
        fs_err::create_dir_all(&dir).unwrap();
        let pid = self.client.id();
        let start = process::find(pid).unwrap().start;
        let file = json!({ "pid": pid, "sessionId": id, "procStart": start, "kind": "interactive",
            "cwd": self.dir, "status": "idle" });
        fs_err::write(dir.join("new"), file.to_string()).unwrap();
        fs_err::rename(dir.join("new"), dir.join(format!("{pid}.json"))).unwrap();
    }

    /// `longhaul …` as a tool of this session runs it.
    fn tool(&self, sandbox: &Sandbox, args: &[&str]) -> Said {
        let mut command = sandbox.command("longhaul");
        command.args(args).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", &self.id);
        command.env("CLAUDE_PID", self.client.id().to_string()).env("PATH", "/usr/bin:/bin");
        command.current_dir(&self.dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    }

    /// Adds a watch as a tool of this session, and gives its number.
    #[track_caller]
    fn add(&self, sandbox: &Sandbox, args: &[&str]) -> u64 {
        let said = self.tool(sandbox, &[&["watch", "add", "--json"], args].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let value: Value = serde_json::from_str(&said.stdout).unwrap();
        value["number"].as_u64().unwrap()
    }

    fn kill_watcher(&mut self) {
        let mut watcher = self.watcher.take().unwrap();
        watcher.kill().unwrap();
        watcher.wait().unwrap();
    }

    fn end_watcher(&mut self) {
        let mut watcher = self.watcher.take().unwrap();
        let pid = rustix::process::Pid::from_child(&watcher);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        watcher.wait().unwrap();
    }

    /// The client is gone, and so is its watcher.
    fn close(mut self) {
        self.client.kill().unwrap();
        self.client.wait().unwrap();
        if let Some(mut watcher) = self.watcher.take() {
            until("the watcher's end", || watcher.try_wait().unwrap());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in [Some(&mut self.client), self.watcher.as_mut()].into_iter().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A person's own shell: `longhaul …` in the working directory.
fn person(sandbox: &Sandbox, args: &[&str]) -> Said {
    sandbox.longhaul(args)
}

/// The texts in a session's inbox.
fn heard(sandbox: &Sandbox, session: &str) -> Vec<String> {
    let mut inbox = store(sandbox).inbox(&SessionId::parse(session).unwrap());
    inbox.refresh().unwrap();
    inbox.unacknowledged().map(|event| event.text.clone()).collect()
}

/// The lines in all of them.
fn lines(sandbox: &Sandbox, session: &str) -> Vec<String> {
    let all = heard(sandbox, session);
    all.iter()
        .flat_map(|text| text.lines().map(str::to_owned))
        .filter(|line| !line.ends_with(" lines:"))
        .collect()
}

/// Waits until the session has heard so many things.
#[track_caller]
fn hears(sandbox: &Sandbox, session: &str, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let heard = heard(sandbox, session);
        if heard.len() >= count {
            return heard;
        }
        assert!(start.elapsed() < DEADLINE, "{session} heard only {heard:?}\n{}", trace(sandbox));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn trace(sandbox: &Sandbox) -> String {
    fs_err::read_to_string(sandbox.state().join("trace.log")).unwrap_or_default()
}

fn watch(sandbox: &Sandbox, number: u64) -> Watch {
    let all = store(sandbox).watches().unwrap().watches;
    all.into_iter().find(|watch| watch.number == number).unwrap()
}

/// Waits until somebody runs it.
#[track_caller]
fn is_run(sandbox: &Sandbox, number: u64) {
    until("somebody who runs the watch", || store(sandbox).watch_is_held(number).then_some(()));
}

fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = fs_err::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
