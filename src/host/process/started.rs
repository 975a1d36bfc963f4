//! Programs that are started here, and what they say.

use std::path::Path;
use std::process::{Command, Stdio};

use super::output::{KEPT, Output, feed, file};
use super::{Process, find};
use crate::host::clock::{Deadline, sleep_ms};

/// What a program said and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` where a signal or the deadline ended it.
    pub code: Option<i32>,
    /// Standard output, up to 1 MiB.
    pub stdout: Vec<u8>,
    /// Standard error, up to 1 MiB.
    pub stderr: Vec<u8>,
}

/// Runs a program on this input to its end, or kills it at the deadline; what it said by then is lost. `env`
/// is set beside this process's own environment.
pub fn run(
    program: &Path,
    args: &[&str],
    env: &[(&str, &str)],
    input: &[u8],
    limit_ms: u64,
) -> std::io::Result<Ran> {
    let mut command = Command::new(program);
    command
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(stdin) = child.stdin.take() {
        feed(stdin, input);
    }
    let out = child.stdout.take().map(|pipe| Output::of(file(pipe), KEPT, false));
    let err = child.stderr.take().map(|pipe| Output::of(file(pipe), KEPT, false));
    let deadline = Deadline::after_ms(limit_ms);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if deadline.passed() {
            child.kill()?;
            child.wait()?;
            // Something it started may still hold its output open: nothing is waited for.
            return Ok(Ran { code: None, stdout: Vec::new(), stderr: Vec::new() });
        }
        sleep_ms(5);
    };
    let left = Deadline::after_ms(LEFT_MS);
    Ok(Ran { code: status.code(), stdout: Output::said(out, left), stderr: Output::said(err, left) })
}

/// What is started with [`start`].
#[derive(Debug)]
pub struct Start<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub args: &'a [String],
    /// Variables of this process that it does not get.
    pub without: &'a [std::ffi::OsString],
    /// Where it runs.
    pub dir: &'a Path,
    /// What it reads.
    pub input: &'a [u8],
    /// How much of its standard output is kept, in bytes.
    pub most: u64,
}

/// A program that runs beside this one; ended when dropped.
#[derive(Debug)]
pub struct Running {
    child: std::process::Child,
    out: Option<Output>,
    err: Option<Output>,
    ended: bool,
}

/// How long the output of a program that has ended is read on, in ms. All that it said is in the pipe by then;
/// what it started in a group of its own may hold that open for ever.
const LEFT_MS: u64 = 2_000;
/// How long a program that was asked to end is waited for, in ms.
const FAREWELL_MS: u64 = 8_000;

/// Starts a program in a process group of its own, so that what it starts ends with it. Of its output the first
/// bytes are kept.
pub fn start(what: &Start) -> std::io::Result<Running> {
    start_with(what, &[], false)
}

/// The same with these variables beside this process's own.
pub fn start_in(what: &Start, env: &[(&str, &str)]) -> std::io::Result<Running> {
    start_with(what, env, false)
}

/// The same, for a program whose output is taken as it comes: one that says more than is kept waits until that
/// was taken.
pub fn start_stream(what: &Start) -> std::io::Result<Running> {
    start_with(what, &[], true)
}

fn start_with(what: &Start, env: &[(&str, &str)], waits: bool) -> std::io::Result<Running> {
    let mut command = Command::new(what.program);
    command.args(what.args).current_dir(what.dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in what.without {
        command.env_remove(name);
    }
    command.envs(env.iter().copied());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    if let Some(stdin) = child.stdin.take() {
        feed(stdin, what.input);
    }
    let most = what.most;
    let out = child.stdout.take().map(|pipe| Output::of(file(pipe), most, waits));
    let err = child.stderr.take().map(|pipe| Output::of(file(pipe), KEPT, false));
    Ok(Running { child, out, err, ended: false })
}

impl Running {
    /// Who it is.
    pub fn process(&self) -> Process {
        let pid = self.child.id();
        find(pid).unwrap_or(Process { pid, start: None })
    }

    /// What it said, once it has ended.
    pub fn poll(&mut self) -> std::io::Result<Option<Ran>> {
        if !self.has_ended() {
            return Ok(None);
        }
        // What it left running may hold its output open: it goes too.
        self.signal(true);
        let status = self.child.wait()?;
        self.ended = true;
        let left = Deadline::after_ms(LEFT_MS);
        let (stdout, stderr) = (Output::said(self.out.take(), left), Output::said(self.err.take(), left));
        Ok(Some(Ran { code: status.code(), stdout, stderr }))
    }

    /// What it said since this was asked last.
    pub fn take(&mut self) -> Vec<u8> {
        self.out.as_ref().map(Output::take).unwrap_or_default()
    }

    /// Asks it to end, and waits for nothing.
    pub fn ask_to_end(&mut self) {
        if !self.ended {
            self.signal(false);
        }
    }

    /// Asks it to end, and makes it where it does not.
    pub fn end(&mut self) {
        self.end_within(FAREWELL_MS);
    }

    /// The same, where it gets this long to end by itself, in ms.
    pub fn end_within(&mut self, farewell_ms: u64) {
        if self.ended {
            return;
        }
        self.signal(false);
        let deadline = Deadline::after_ms(farewell_ms);
        while !deadline.passed() && !self.has_ended() {
            sleep_ms(5);
        }
        self.signal(true);
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended = true;
    }

    /// Whether it has; nobody else can have its number before it is waited for.
    #[cfg(unix)]
    fn has_ended(&mut self) -> bool {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        pid.is_none_or(|pid| {
            !matches!(waitid(WaitId::Pid(pid), look), Ok(None) | Err(rustix::io::Errno::INTR))
        })
    }

    #[cfg(not(unix))]
    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its whole group, which keeps its number as long as anybody is in it.
    #[cfg(unix)]
    fn signal(&self, at_once: bool) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let signal = if at_once { Signal::KILL } else { Signal::TERM };
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _at_once: bool) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A program that says more than is taken waits, and loses nothing.
    #[test]
    fn an_output_that_is_taken_as_it_comes_is_whole() {
        let root = tempfile::tempdir().unwrap();
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done; echo end";
        let args = ["-c".to_owned(), script.to_owned()];
        let program = Path::new("/bin/sh");
        let what = Start { program, args: &args, without: &[], dir: root.path(), input: b"", most: 1000 };
        let mut running = start_stream(&what).unwrap();
        let deadline = Deadline::after_ms(60_000);
        let mut said = Vec::new();
        let ran = loop {
            assert!(!deadline.passed(), "{} bytes", said.len());
            said.extend(running.take());
            if let Some(ran) = running.poll().unwrap() {
                break ran;
            }
            sleep_ms(1);
        };
        said.extend(ran.stdout);
        let text = String::from_utf8(said).unwrap();
        assert_eq!((text.lines().count(), text.lines().last()), (20_001, Some("end")));
        let args = ["-c".to_owned(), "while :; do echo more; done".to_owned()];
        let mut running = start_stream(&Start { args: &args, ..what }).unwrap();
        running.ask_to_end();
        running.end_within(50);
        assert!(!running.process().runs());
    }

    #[test]
    fn a_program_past_its_deadline_is_ended() {
        let ran =
            run(Path::new("/bin/sh"), &["-c", "echo out; echo err >&2; exit 3"], &[], b"", 10_000).unwrap();
        assert_eq!((ran.code, &ran.stdout[..], &ran.stderr[..]), (Some(3), &b"out\n"[..], &b"err\n"[..]));
        let ran = run(Path::new("/bin/sleep"), &["60"], &[], b"", 50).unwrap();
        assert_eq!(ran.code, None);
    }

    #[test]
    fn what_was_started_ends_with_all_that_it_started() {
        let root = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; (trap '' TERM; echo $$ >left; sleep 60) & wait";
        let args = ["-c".to_owned(), script.to_owned()];
        let what = Start {
            program: Path::new("/bin/sh"),
            args: &args,
            without: &["HOME".into()],
            dir: root.path(),
            input: b"",
            most: 10,
        };
        let mut running = start(&what).unwrap();
        assert!(running.poll().unwrap().is_none());
        let process = running.process();
        assert!(process.runs());
        running.signal(true);
        running.end();
        assert!(!process.runs());
        let said = ["-c".to_owned(), "cat; echo ${HOME-none} and more".to_owned()];
        let mut running = start(&Start { args: &said, input: b"in ", most: 7, ..what }).unwrap();
        let ran = loop {
            if let Some(ran) = running.poll().unwrap() {
                break ran;
            }
            sleep_ms(5);
        };
        assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"in none"[..]));
    }

    /// What left its group, and writes on, holds neither us nor a thread and two open files for each run.
    #[test]
    fn who_writes_on_for_ever_is_let_go_with_the_pipe() {
        let root = tempfile::tempdir().unwrap();
        // It ends by the pipe's being closed alone.
        let script = "set -m; (while :; do echo more; sleep 0.1; done; :) & echo $! >left; echo said";
        let args = ["-c".to_owned(), script.to_owned()];
        let program = Path::new("/bin/sh");
        let what = Start { program, args: &args, without: &[], dir: root.path(), input: b"", most: 1000 };
        let mut running = start(&what).unwrap();
        let deadline = Deadline::after_ms(60_000);
        let ran = loop {
            if let Some(ran) = running.poll().unwrap() {
                break ran;
            }
            sleep_ms(5);
        };
        assert!(String::from_utf8(ran.stdout).unwrap().contains("said"));
        let left = fs_err::read_to_string(root.path().join("left")).unwrap();
        let left: u32 = left.trim().parse().unwrap();
        drop(running);
        while find(left).is_some() {
            assert!(!deadline.passed(), "somebody still reads what it says");
            sleep_ms(20);
        }
    }

    /// Something that was started in a group of its own keeps the output open.
    #[test]
    fn what_is_held_open_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let script = "set -m; sleep 30 & echo said; echo $! >left";
        let args = ["-c".to_owned(), script.to_owned()];
        let what = Start {
            program: Path::new("/bin/sh"),
            args: &args,
            without: &[],
            dir: root.path(),
            input: b"",
            most: 10,
        };
        let mut running = start(&what).unwrap();
        let deadline = Deadline::after_ms(20_000);
        let ran = loop {
            if let Some(ran) = running.poll().unwrap() {
                break ran;
            }
            sleep_ms(5);
        };
        let script = format!("cd '{}'; {script}", root.path().display());
        let again = run(Path::new("/bin/sh"), &["-c", &script], &[], b"", 10_000).unwrap();
        assert!(!deadline.passed(), "it waited for what was left");
        assert_eq!((&ran.stdout[..], &again.stdout[..]), (&b"said\n"[..], &b"said\n"[..]));
        let left = fs_err::read_to_string(root.path().join("left")).unwrap();
        let left = rustix::process::Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    }
}
