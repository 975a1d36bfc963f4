//! Processes: who they are, and starting one. On this floor nothing is ever signalled.
#![allow(clippy::disallowed_methods)]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::clock::{Deadline, sleep_ms};
use super::files;

/// A process by its number and the time it started: numbers are used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process number.
    pub pid: u32,
    /// Start time as the system counts it, where it can be had.
    pub start: Option<String>,
}

/// Looks a process up now. `None`: there is none, or this system cannot tell.
pub fn find(pid: u32) -> Option<Process> {
    if cfg!(target_os = "linux") {
        start_time(pid).map(|start| Process { pid, start: Some(start) })
    } else {
        exists(pid).then_some(Process { pid, start: None })
    }
}

impl Process {
    /// Whether this very process still runs.
    pub fn runs(&self) -> bool {
        match &self.start {
            Some(start) => start_time(self.pid).as_ref() == Some(start),
            None => exists(self.pid),
        }
    }
}

#[cfg(unix)]
fn exists(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn exists(_pid: u32) -> bool {
    true
}

/// Field 22 of `/proc/<pid>/stat`: start time in clock ticks since boot. A zombie counts as gone.
fn start_time(pid: u32) -> Option<String> {
    let bytes = files::read_small(Path::new(&format!("/proc/{pid}/stat")), 4096).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The second field is a name in parentheses, which may hold anything.
    let mut rest = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = rest.next()?;
    if matches!(state, "Z" | "X") { None } else { rest.nth(18).map(str::to_owned) }
}

/// The argument list a process was started with (Linux).
pub fn arguments(pid: u32) -> Option<Vec<String>> {
    let bytes = files::read_small(Path::new(&format!("/proc/{pid}/cmdline")), 1 << 20).ok()?;
    let mut parts: Vec<_> =
        bytes.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect();
    if parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    (!parts.is_empty()).then_some(parts)
}

/// The files that this user's running programs were started from; `None` where the system does not tell.
pub fn running_files() -> Option<Vec<PathBuf>> {
    if cfg!(target_os = "linux") {
        let processes = fs_err::read_dir("/proc").ok()?;
        // Links of other users' processes cannot be read; they cannot run out of a 0700 directory either.
        Some(
            processes
                .flatten()
                .filter_map(|entry| fs_err::read_link(entry.path().join("exe")).ok())
                .collect(),
        )
    } else if cfg!(target_os = "macos") {
        let ran = run(Path::new("/bin/ps"), &["-axo", "comm="], &[], b"", 5000).ok()?;
        let text = String::from_utf8_lossy(&ran.stdout);
        (ran.code == Some(0)).then(|| text.lines().map(PathBuf::from).collect())
    } else {
        None
    }
}

/// This process's own number.
pub fn own_pid() -> u32 {
    std::process::id()
}

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
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // Apart, since a program that does not read must not hold us; one that has gone is no error.
        std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
    }
    let out = child.stdout.take().map(reader);
    let err = child.stderr.take().map(reader);
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
    let collect = |thread: Option<std::thread::JoinHandle<Vec<u8>>>| {
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    Ok(Ran { code: status.code(), stdout: collect(out), stderr: collect(err) })
}

fn reader(pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(1 << 20).read_to_end(&mut bytes);
        bytes
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let me = find(own_pid()).unwrap();
        assert!(me.runs());
        let other = Process { start: Some("1".into()), ..me };
        assert!(!other.runs(), "the same number with another start is another process");
        assert!(find(u32::MAX).is_none());
    }

    #[test]
    fn what_runs_is_listed_by_file() {
        let me = fs_err::read_link("/proc/self/exe").unwrap();
        assert!(running_files().unwrap().contains(&me));
    }

    #[test]
    fn a_program_past_its_deadline_is_ended() {
        let ran =
            run(Path::new("/bin/sh"), &["-c", "echo out; echo err >&2; exit 3"], &[], b"", 10_000).unwrap();
        assert_eq!((ran.code, &ran.stdout[..], &ran.stderr[..]), (Some(3), &b"out\n"[..], &b"err\n"[..]));
        let ran = run(Path::new("/bin/sleep"), &["60"], &[], b"", 50).unwrap();
        assert_eq!(ran.code, None);
    }
}
