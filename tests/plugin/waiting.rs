//! The launcher in the watcher's place: its end would cost a turn of the model.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::launcher::{FOREIGN, Sandbox, sandboxes};

/// Ten times what any of this takes.
const DEADLINE: Duration = Duration::from_secs(30);
const A_WHILE: Duration = Duration::from_millis(1500);

/// A process that is ended with the test, whatever becomes of that.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guarded {
    fn client() -> Self {
        Self(
            Command::new("/bin/sleep")
                .arg("600")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    fn watch(sandbox: &Sandbox, client: &Self) -> Self {
        let mut command = sandbox.command(&["longhaul-watch"]);
        command.env("CLAUDE_PID", client.0.id().to_string()).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }

    #[track_caller]
    fn still_waits_after_a_while(&mut self, sandbox: &Sandbox) {
        std::thread::sleep(A_WHILE);
        assert!(self.0.try_wait().unwrap().is_none(), "{}", sandbox.shell.display());
    }

    /// The exit code and all output, or a failure after the deadline.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < DEADLINE, "it still waits");
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut text = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        text += &std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap();
        (status.code(), text)
    }
}

#[test]
fn without_a_program_it_waits_until_it_is_told_to_end() {
    for sandbox in sandboxes() {
        let client = Guarded::client();
        let mut watch = Guarded::watch(&sandbox, &client);
        watch.still_waits_after_a_while(&sandbox);
        kill_process(Pid::from_child(&watch.0), Signal::TERM).unwrap();
        assert_eq!(watch.end(), (Some(0), String::new()), "{}", sandbox.shell.display());
    }
}

// theQuert/cc-reaper#1: helpers outlived a client that was killed.
#[test]
fn it_ends_with_its_client() {
    for sandbox in sandboxes() {
        let client = Guarded::client();
        let watch = Guarded::watch(&sandbox, &client);
        drop(client);
        assert_eq!(watch.end(), (Some(0), String::new()), "{}", sandbox.shell.display());
    }
}

#[test]
fn it_becomes_the_program_once_that_is_there() {
    for sandbox in sandboxes() {
        let client = Guarded::client();
        let watch = Guarded::watch(&sandbox, &client);
        std::thread::sleep(Duration::from_millis(200));
        sandbox.installed("home of me/.claude", "longhaul-watch");
        let (code, said) = watch.end();
        assert_eq!(
            (code, said.split('|').next()),
            (Some(7), Some("installed")),
            "{}",
            sandbox.shell.display()
        );
    }
}

#[test]
fn a_program_that_the_system_refuses_does_not_end_it() {
    for sandbox in sandboxes() {
        let program = sandbox.installed("home of me/.claude", "longhaul-watch");
        std::fs::write(program, FOREIGN).unwrap();
        let client = Guarded::client();
        let mut watch = Guarded::watch(&sandbox, &client);
        watch.still_waits_after_a_while(&sandbox);
        drop(client);
        assert_eq!(watch.end(), (Some(0), String::new()), "{}", sandbox.shell.display());
    }
}
