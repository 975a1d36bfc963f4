//! The watcher lives silently with its client, and dies with it or with whoever reads it.
#![cfg(unix)]

#[cfg(feature = "testing")]
mod delivery;
mod hooks;
#[cfg(feature = "testing")]
mod loss;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use longhaul::base::id::SessionId;
use longhaul::host::process;
use longhaul::store::inbox::{Inbox, New};
use longhaul::store::watchers::Stamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::sandbox::{SESSION, Said, Sandbox, finish, store, until};

/// Ten times what any of this takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// A process that stands in for the client. It ends with the test.
struct Client(Child);

impl Client {
    fn start() -> Self {
        Self(std::process::Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// What it says of itself, as the real one does.
    fn says(&self, sandbox: &Sandbox, session: &str, status: &str) {
        let dir = sandbox.config().join("sessions");
        fs_err::create_dir_all(&dir).unwrap();
        let start = process::find(self.pid()).unwrap().start;
        let file = json!({ "pid": self.pid(), "sessionId": session, "procStart": start, "kind": "interactive",
            "status": status });
        let new = dir.join("new");
        fs_err::write(&new, file.to_string()).unwrap();
        fs_err::rename(new, dir.join(format!("{}.json", self.pid()))).unwrap();
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A watcher, and the lines that it prints. It ends with the test.
#[cfg_attr(not(feature = "testing"), allow(dead_code))] // What is printed is tested in a hurry.
struct Watcher {
    child: Option<Child>,
    lines: Receiver<String>,
}

#[cfg_attr(not(feature = "testing"), allow(dead_code))]
impl Watcher {
    fn start(sandbox: &Sandbox, client: &Client) -> Self {
        let mut child = command(sandbox, client).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child: Some(child), lines }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line")
    }

    /// Nothing more is printed for so long.
    #[track_caller]
    fn is_silent_for(&self, ms: u64) {
        if let Ok(line) = self.lines.recv_timeout(Duration::from_millis(ms)) {
            panic!("{line}");
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn command(sandbox: &Sandbox, client: &Client) -> std::process::Command {
    let mut command = sandbox.command("longhaul-watch");
    command.env("CLAUDE_PID", client.pid().to_string()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn inbox(sandbox: &Sandbox, session: &str) -> Inbox {
    store(sandbox).inbox(&SessionId::parse(session).unwrap())
}

fn put(sandbox: &Sandbox, session: &str, id: &str, text: &str) -> u64 {
    let at_ms = longhaul::host::clock::now_ms();
    inbox(sandbox, session).append(&New { source: "watch 1 a.log", id, text, at_ms }).unwrap()
}

/// The watcher's stamp, once it is as wanted.
#[track_caller]
fn stamp(sandbox: &Sandbox, client: &Client, is_it: impl Fn(&Stamp) -> bool) -> Stamp {
    let store = store(sandbox);
    until("the watcher's stamp", || store.watcher(client.pid()).filter(&is_it))
}

#[track_caller]
fn silent(said: &Said) {
    assert_eq!((&*said.stdout, &*said.stderr), ("", ""), "a word would cost the session a turn: {said:?}");
}

// thedotmack/claude-mem/issues/572, 1652, 2184 and 3175: helpers ran on for days.
#[test]
fn it_ends_silently_when_its_client_is_gone() {
    let (sandbox, mut client) = (Sandbox::new(), Client::start());
    let watching = command(&sandbox, &client).spawn().unwrap();
    stamp(&sandbox, &client, |stamp| stamp.leader);
    client.kill();
    let said = finish(watching);
    silent(&said);
    // 5 s are promised; `finish` gives a busy machine twice that.
    assert_eq!(said.code, 0);
    let left = sandbox.state().join(format!("watchers/{}.json", client.pid()));
    assert!(!left.exists(), "its stamp is left");
    assert!(store(&sandbox).lead().unwrap().is_some(), "its lock is left");
}

#[test]
fn it_ends_when_nobody_reads_it() {
    let (sandbox, client) = (Sandbox::new(), Client::start());
    let mut watching = command(&sandbox, &client).spawn().unwrap();
    stamp(&sandbox, &client, |_| true);
    drop(watching.stdout.take());
    until("its end", || watching.try_wait().unwrap());
}

#[test]
fn a_signal_ends_it_at_once() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let (sandbox, client) = (Sandbox::new(), Client::start());
        let watching = command(&sandbox, &client).spawn().unwrap();
        stamp(&sandbox, &client, |stamp| stamp.leader);
        kill_process(Pid::from_child(&watching), signal).unwrap();
        let said = finish(watching);
        silent(&said);
        // 200 ms are promised; this machine may be busy.
        assert!(said.took < Duration::from_secs(2), "{:?}", said.took);
        assert!(store(&sandbox).lead().unwrap().is_some(), "its lock is left");
    }
}

#[test]
fn a_client_that_is_gone_already_is_not_waited_for() {
    let (sandbox, mut client) = (Sandbox::new(), Client::start());
    client.kill();
    silent(&finish(command(&sandbox, &client).spawn().unwrap()));
}

#[test]
fn another_takes_the_lead_when_the_leader_is_gone() {
    let sandbox = Sandbox::new();
    let clients = [Client::start(), Client::start()];
    let first = Watcher::start(&sandbox, &clients[0]);
    stamp(&sandbox, &clients[0], |stamp| stamp.leader);
    let _second = Watcher::start(&sandbox, &clients[1]);
    assert!(!stamp(&sandbox, &clients[1], |_| true).leader);
    first.signal(Signal::KILL);
    let gone = Instant::now();
    stamp(&sandbox, &clients[1], |stamp| stamp.leader);
    assert!(gone.elapsed() < Duration::from_secs(10), "5 s are promised: {:?}", gone.elapsed());
    assert!(!stamp(&sandbox, &clients[0], |_| true).runs());
}

/// A client that is suspended may take its watcher with it, and a file system that hangs holds one up for ever.
#[cfg(feature = "testing")]
#[test]
fn another_takes_the_lead_when_the_leader_is_stopped_and_it_gives_way_when_it_wakes() {
    let sandbox = Sandbox::new().env("LONGHAUL_TEST_HASTE", "100");
    let clients = [Client::start(), Client::start()];
    let first = Watcher::start(&sandbox, &clients[0]);
    stamp(&sandbox, &clients[0], |stamp| stamp.leader);
    let second = Watcher::start(&sandbox, &clients[1]);
    stamp(&sandbox, &clients[1], |_| true);
    first.signal(Signal::STOP);
    stamp(&sandbox, &clients[1], |stamp| stamp.leader);
    first.signal(Signal::CONT);
    stamp(&sandbox, &clients[0], |stamp| !stamp.leader);
    assert!(store(&sandbox).lead().unwrap().is_none(), "one leads");
    second.signal(Signal::KILL);
    stamp(&sandbox, &clients[0], |stamp| stamp.leader);
    // Whoever takes the file away takes the lead from nobody for long.
    fs_err::remove_file(sandbox.state().join("leader")).unwrap();
    until("a new file", || sandbox.state().join("leader").exists().then_some(()));
    assert!(store(&sandbox).lead().unwrap().is_none(), "it is held");
}

#[test]
fn a_background_session_is_left_at_once_unless_the_person_wants_it() {
    let (sandbox, client) = (Sandbox::new().env("CLAUDE_JOB_DIR", "/job"), Client::start());
    let said = finish(command(&sandbox, &client).spawn().unwrap());
    silent(&said);
    assert_eq!(said.code, 0);
    assert!(stamp(&sandbox, &client, |_| true).ended.unwrap().contains("background"));
    fs_err::write(sandbox.state().join("config.json"), r#"{"watch":{"background":true}}"#).unwrap();
    let _stays = Watcher::start(&sandbox, &client);
    stamp(&sandbox, &client, |stamp| stamp.ended.is_none() && stamp.leader);
    // What a client says of its kind counts as well.
    let (sandbox, client) = (Sandbox::new(), Client::start());
    client.says(&sandbox, SESSION, "idle");
    let path = sandbox.config().join(format!("sessions/{}.json", client.pid()));
    let text = fs_err::read_to_string(&path).unwrap().replace("interactive", "bg");
    fs_err::write(path, text).unwrap();
    silent(&finish(command(&sandbox, &client).spawn().unwrap()));
}
