//! Processes: who they are, and starting one. Nothing is ever signalled but what was started here.
#![allow(clippy::disallowed_methods)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

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

impl Process {
    /// Whether this very process still runs; `None` where the system does not tell.
    pub fn fate(&self) -> Option<bool> {
        if !cfg!(target_os = "linux") {
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
}

fn is_no_process(error: &std::io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

/// The name of the numbering that this process's numbers are of: in a container there is another one (Linux).
pub fn numbering() -> Option<String> {
    fs_err::read_link("/proc/self/ns/pid").ok()?.to_str().map(str::to_owned)
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
    /// What has become of it.
    pub fn life(&self) -> Life {
        if self.start.is_none() {
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
    let out = child.stdout.take().map(|pipe| Output::of(pipe, KEPT, false));
    let err = child.stderr.take().map(|pipe| Output::of(pipe, KEPT, false));
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
    let out = child.stdout.take().map(|pipe| Output::of(pipe, most, waits));
    let err = child.stderr.take().map(|pipe| Output::of(pipe, KEPT, false));
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

/// How much of an output is kept where nobody said, in bytes.
const KEPT: u64 = 1 << 20;

/// Apart, since a program that does not read must not hold us; one that has gone is no error.
fn feed(mut stdin: std::process::ChildStdin, input: &[u8]) {
    let input = input.to_vec();
    std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
}

/// How long the output of a program that has ended is read on, in ms. All that it said is in the pipe by then;
/// what it started in a group of its own may hold that open for ever.
const LEFT_MS: u64 = 2_000;

/// An output, as it comes. Past what is kept it is read and forgotten, so that nobody waits for us; or it waits to
/// be taken.
#[derive(Debug)]
struct Output {
    kept: Arc<Kept>,
    reader: std::thread::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Mutex<Vec<u8>>,
    taken: Condvar,
    /// Nobody takes it any more.
    left: std::sync::atomic::AtomicBool,
}

impl Kept {
    fn held(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_left(&self) -> bool {
        self.left.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A reader between its look and its wait would miss the word: it holds the bytes then.
    fn leave(&self) {
        let _bytes = self.held();
        self.left.store(true, std::sync::atomic::Ordering::Relaxed);
        self.taken.notify_all();
    }
}

impl Output {
    fn of(mut pipe: impl std::io::Read + Send + 'static, most: u64, waits: bool) -> Self {
        let kept = Arc::new(Kept::default());
        let (into, most) = (Arc::clone(&kept), usize::try_from(most).unwrap_or(usize::MAX));
        let reader = std::thread::spawn(move || {
            let mut piece = vec![0; 64 << 10];
            loop {
                match pipe.read(&mut piece) {
                    Ok(0) => return,
                    Ok(got) => {
                        let mut kept = into.held();
                        while waits && kept.len() >= most && !into.is_left() {
                            kept = into.taken.wait(kept).unwrap_or_else(PoisonError::into_inner);
                        }
                        let room = if waits { got } else { most.saturating_sub(kept.len()) };
                        kept.extend_from_slice(&piece[..got.min(room)]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Self { kept, reader }
    }

    /// What came since this was asked last.
    fn take(&self) -> Vec<u8> {
        let taken = std::mem::take(&mut *self.kept.held());
        self.kept.taken.notify_all();
        taken
    }

    /// What came until the end, or until then.
    fn said(output: Option<Self>, until: Deadline) -> Vec<u8> {
        let Some(output) = output else { return Vec::new() };
        // A pipe holds little; so does this.
        output.kept.leave();
        while !output.reader.is_finished() && !until.passed() {
            sleep_ms(1);
        }
        output.take()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.kept.leave();
    }
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
