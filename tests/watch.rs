//! The watcher lives silently with its client, and dies with it or with whoever reads it.
#![cfg(unix)]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::{Said, Sandbox, finish};

/// A process that stands in for the client.
fn client() -> Child {
    std::process::Command::new("sleep").arg("600").spawn().unwrap()
}

fn watcher(pid: u32) -> Child {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("longhaul-watch");
    command.env("CLAUDE_PID", pid.to_string()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn silent(said: &Said) {
    assert_eq!((&*said.stdout, &*said.stderr), ("", ""), "a word would cost the session a turn: {said:?}");
}

#[test]
fn it_ends_silently_when_its_client_is_gone() {
    let mut client = client();
    let mut watching = watcher(client.id());
    std::thread::sleep(Duration::from_millis(300));
    assert!(watching.try_wait().unwrap().is_none(), "it lives as long as its client");
    client.kill().unwrap();
    client.wait().unwrap();
    let said = finish(watching);
    silent(&said);
    assert_eq!(said.code, 0);
}

#[test]
fn it_ends_when_nobody_reads_it() {
    let mut client = client();
    let mut watching = watcher(client.id());
    drop(watching.stdout.take());
    let start = Instant::now();
    while watching.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(10), "it outlives its reader");
        std::thread::sleep(Duration::from_millis(5));
    }
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn a_signal_ends_it_at_once() {
    let mut client = client();
    let watching = watcher(client.id());
    std::thread::sleep(Duration::from_millis(100));
    let pid = rustix::process::Pid::from_child(&watching);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    silent(&finish(watching));
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn a_client_that_is_gone_already_is_not_waited_for() {
    let mut client = client();
    client.kill().unwrap();
    client.wait().unwrap();
    silent(&finish(watcher(client.id())));
}
