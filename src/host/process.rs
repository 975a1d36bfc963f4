//! Processes: who they are, and starting one. Nothing is ever signalled but what was started here.
#![allow(clippy::disallowed_methods)]

mod output;
mod started;

use std::path::{Path, PathBuf};

use super::files;
pub use started::{Ran, Running, Start, run, start, start_in, start_stream};

/// Whether this system says when a process was started. Where it does not, a start that somebody else noted (the
/// client's own file may hold one) proves nothing.
const TELLS_STARTS: bool = cfg!(target_os = "linux");

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
    if TELLS_STARTS {
        start_time(pid).map(|start| Process { pid, start: Some(start) })
    } else {
        exists(pid).then_some(Process { pid, start: None })
    }
}

/// What has become of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Runs,
    /// It has ended; how, where the system still tells: as long as nobody has asked for that.
    Ended(Option<Exit>),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Process {
    /// Whether this very process still runs.
    pub fn runs(&self) -> bool {
        match &self.start {
            Some(start) if TELLS_STARTS => start_time(self.pid).as_ref() == Some(start),
            _ => exists(self.pid),
        }
    }

    /// Whether this very process still runs; `None` where the system does not tell.
    pub fn fate(&self) -> Option<bool> {
        if !TELLS_STARTS {
            return cfg!(unix).then(|| exists(self.pid));
        }
        match stat(self.pid) {
            Ok(Stat { gone: true, .. }) => Some(false),
            Ok(now) => Some(self.start.as_ref().is_none_or(|start| *start == now.start)),
            Err(e) if is_no_process(&e) => {
                // Without /proc nothing is there, whoever runs.
                Path::new("/proc/self/stat").exists().then_some(false)
            }
            Err(_) => None,
        }
    }

    /// What has become of it.
    pub fn life(&self) -> Life {
        if self.start.is_none() || !TELLS_STARTS {
            return if exists(self.pid) { Life::Runs } else { Life::Ended(None) };
        }
        let Some(stat) = stat(self.pid).ok().filter(|stat| Some(&stat.start) == self.start.as_ref()) else {
            return Life::Ended(None);
        };
        if !stat.gone {
            return Life::Runs;
        }
        let signal = stat.exit.map(|status| status & 0x7f).filter(|signal| *signal != 0);
        let code = stat.exit.map(|status| Exit::Code(status >> 8 & 0xff));
        Life::Ended(signal.map(Exit::Signal).or(code))
    }
}

fn is_no_process(error: &std::io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

/// The name of the numbering that this process's numbers are of: in a container there is another one (Linux).
pub fn numbering() -> Option<String> {
    fs_err::read_link("/proc/self/ns/pid").ok()?.to_str().map(str::to_owned)
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

/// What `/proc/<pid>/stat` says of a process.
struct Stat {
    /// It has ended, and nobody has asked how: it counts as gone.
    gone: bool,
    /// Field 22: start time in clock ticks since boot.
    start: String,
    /// Field 52, as `wait` would give it.
    exit: Option<i32>,
}

fn stat(pid: u32) -> std::io::Result<Stat> {
    let bytes = files::read_small(Path::new(&format!("/proc/{pid}/stat")), 4096)?;
    let text = String::from_utf8_lossy(&bytes);
    let read = || {
        // The second field is a name in parentheses, which may hold anything.
        let mut rest = text[text.rfind(')')? + 1..].split_ascii_whitespace();
        let gone = matches!(rest.next()?, "Z" | "X");
        let start = rest.nth(18)?.to_owned();
        let exit = rest.nth(29).and_then(|status| status.parse().ok());
        Some(Stat { gone, start, exit })
    };
    read().ok_or_else(|| std::io::Error::other(format!("/proc/{pid}/stat cannot be read")))
}

/// When a process that runs was started.
fn start_time(pid: u32) -> Option<String> {
    stat(pid).ok().filter(|stat| !stat.gone).map(|stat| stat.start)
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

/// Whether a process of one of these names runs, whoever's it is; `None` where the system does not tell.
pub fn any_named(names: &[&str]) -> Option<bool> {
    let processes = fs_err::read_dir("/proc").ok().filter(|_| cfg!(target_os = "linux"))?;
    let paths = processes.flatten().map(|entry| entry.path().join("comm"));
    let said: Vec<_> = paths.filter_map(|path| files::read_small(&path, 64).ok()).collect();
    // Where other users' processes are hidden, the first one is.
    Path::new("/proc/1/comm")
        .exists()
        .then(|| said.iter().any(|name| names.iter().any(|wanted| wanted.as_bytes() == name.trim_ascii())))
}

/// The file that a running program was started from, where the system tells.
pub fn running_file(pid: u32) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        let number = pid.to_string();
        let ran = run(Path::new("/bin/ps"), &["-o", "comm=", "-p", &number], &[], b"", 5000).ok()?;
        let text = String::from_utf8(ran.stdout).ok()?;
        return (ran.code == Some(0))
            .then(|| PathBuf::from(text.trim_end()))
            .filter(|path| path.is_absolute());
    }
    // The file of a program that was updated meanwhile ends in " (deleted)", and is none.
    fs_err::read_link(format!("/proc/{pid}/exe")).ok().filter(|path| path.is_file())
}

/// This process's own number.
pub fn own_pid() -> u32 {
    std::process::id()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::host::clock::{Deadline, sleep_ms};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let me = find(own_pid()).unwrap();
        assert!(me.runs());
        let other = Process { start: Some("1".into()), ..me };
        assert!(!other.runs(), "the same number with another start is another process");
        assert!(find(u32::MAX).is_none());
        assert_eq!((me.fate(), other.fate()), (Some(true), Some(false)));
        assert_eq!(Process { pid: u32::MAX, start: None }.fate(), Some(false));
        assert!(numbering().unwrap().starts_with("pid:["));
    }

    #[test]
    fn how_a_process_ended_is_told_until_somebody_asks() {
        let mut child =
            Command::new("/bin/sh").args(["-c", "read x; exit 3"]).stdin(Stdio::piped()).spawn().unwrap();
        let process = find(child.id()).unwrap();
        assert_eq!(process.life(), Life::Runs);
        drop(child.stdin.take());
        let deadline = Deadline::after_ms(10_000);
        while process.life() == Life::Runs && !deadline.passed() {
            sleep_ms(2);
        }
        assert_eq!(process.life(), Life::Ended(Some(Exit::Code(3))));
        child.wait().unwrap();
        assert_eq!(process.life(), Life::Ended(None));
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let process = find(child.id()).unwrap();
        child.kill().unwrap();
        while process.life() == Life::Runs && !deadline.passed() {
            sleep_ms(2);
        }
        assert_eq!(process.life(), Life::Ended(Some(Exit::Signal(9))));
        child.wait().unwrap();
    }

    #[test]
    fn what_runs_is_listed_by_file() {
        let me = fs_err::read_link("/proc/self/exe").unwrap();
        assert!(running_files().unwrap().contains(&me));
    }
}
