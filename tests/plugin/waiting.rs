//! The launcher in the watcher's place: its end would cost a turn of the model.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::launcher::{Sandbox, sandboxes};

/// Ten times what any of this takes.
const DEADLINE: Duration = Duration::from_secs(30);
const A_WHILE: Duration = Duration::from_millis(1500);

fn client() -> Child {
    Command::new("/bin/sleep").arg("600").spawn().unwrap()
}

fn watch(sandbox: &Sandbox, client: &Child) -> Child {
    let mut command = sandbox.command(&["longhaul-watch"]);
    command.env("CLAUDE_PID", client.id().to_string()).stdin(Stdio::null()).spawn().unwrap()
}

/// The exit code and all output, or a failure after the deadline.
#[track_caller]
fn end(mut child: Child) -> (Option<i32>, String) {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("it still waits");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn stop(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn without_a_program_it_waits_until_it_is_told_to_end() {
    for sandbox in sandboxes() {
        let client = client();
        let mut watch = watch(&sandbox, &client);
        std::thread::sleep(A_WHILE);
        assert!(watch.try_wait().unwrap().is_none(), "{:?}", sandbox.shell);
        kill_process(Pid::from_child(&watch), Signal::TERM).unwrap();
        assert_eq!(end(watch), (Some(0), String::new()), "{:?}", sandbox.shell);
        stop(client);
    }
}

#[test]
fn it_ends_with_its_client() {
    for sandbox in sandboxes() {
        let client = client();
        let watch = watch(&sandbox, &client);
        stop(client);
        assert_eq!(end(watch), (Some(0), String::new()), "{:?}", sandbox.shell);
    }
}

#[test]
fn it_becomes_the_program_once_that_is_there() {
    for sandbox in sandboxes() {
        let client = client();
        let watch = watch(&sandbox, &client);
        std::thread::sleep(Duration::from_millis(200));
        sandbox.installed("home of me/.claude", "longhaul-watch");
        let (code, said) = end(watch);
        assert_eq!((code, said.split('|').next()), (Some(7), Some("installed")), "{:?}", sandbox.shell);
        stop(client);
    }
}

#[test]
fn a_program_that_the_system_refuses_does_not_end_it() {
    for sandbox in sandboxes() {
        let program = sandbox.installed("home of me/.claude", "longhaul-watch");
        std::fs::write(program, b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xff\xff;)(\n").unwrap();
        let client = client();
        let mut watch = watch(&sandbox, &client);
        std::thread::sleep(A_WHILE);
        assert!(watch.try_wait().unwrap().is_none(), "{:?}", sandbox.shell);
        stop(client);
        assert_eq!(end(watch), (Some(0), String::new()), "{:?}", sandbox.shell);
    }
}
