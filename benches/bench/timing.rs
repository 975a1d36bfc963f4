//! Starting a program, and how long and how large it was.

use std::ffi::OsString;
use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _, pipe};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

/// One way of starting one program.
#[derive(Clone)]
pub struct Start {
    /// What it is called in the report.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(String, OsString)>,
    /// Its working directory.
    pub dir: PathBuf,
    /// Standard input; of several, the next one each time.
    pub inputs: Vec<Vec<u8>>,
    /// A transcript that gets one more row before each time.
    pub grows: Option<PathBuf>,
    /// Directories that are taken away before each time.
    pub clears: Vec<PathBuf>,
}

impl Start {
    fn command(&self, program: &PathBuf, before: &[OsString], round: usize) -> (Command, PipeReader) {
        let input = &self.inputs[round % self.inputs.len()];
        let (reader, mut writer) = pipe().unwrap();
        // A payload fits into a pipe, so nobody has to write while the program runs.
        assert!(input.len() < 60_000);
        writer.write_all(input).unwrap();
        let (answer, out) = pipe().unwrap();
        let mut command = Command::new(program);
        command.args(before).args(&self.arguments).env_clear().envs(self.env.clone());
        command.current_dir(&self.dir).stdin(reader).stdout(out).stderr(Stdio::null());
        (command, answer)
    }

    /// Runs it once: nanoseconds from the start to its end, and what it said.
    pub fn once(&self) -> (u64, String) {
        self.run(0)
    }

    fn run(&self, round: usize) -> (u64, String) {
        for dir in &self.clears {
            let _ = std::fs::remove_dir_all(dir);
        }
        if let Some(transcript) = &self.grows {
            let mut file = File::options().append(true).open(transcript).unwrap();
            file.write_all(row(round).as_bytes()).unwrap();
        }
        let (mut command, mut answer) = self.command(&self.program, &[], round);
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        child.wait().unwrap();
        let took = start.elapsed();
        // Closes our writing end.
        drop(command);
        let mut said = Vec::new();
        answer.read_to_end(&mut said).unwrap();
        (u64::try_from(took.as_nanos()).unwrap(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Peak memory of one run in KiB, taken by a fresh copy of this program: the system tells it only as the
    /// largest of all children. A child counts its parent's size at the start too; that copy is small.
    pub fn peak(&self) -> u64 {
        let own = std::env::current_exe().unwrap();
        let (mut command, mut answer) = self.command(&own, &["peak".into(), self.program.clone().into()], 0);
        assert!(command.status().unwrap().success());
        drop(command);
        let mut said = String::new();
        answer.read_to_string(&mut said).unwrap();
        said.lines().last().unwrap().trim().parse().unwrap()
    }
}

/// A tool's result of usual size.
fn row(round: usize) -> String {
    let text = "the next part of what a tool had to say, ".repeat(80);
    format!(
        r#"{{"parentUuid":"bench-{round}","isSidechain":false,"type":"user","uuid":"bench-{}","timestamp":"2026-12-01T00:00:00.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{round}","content":"{text}"}}]}}}}{}"#,
        round + 1,
        '\n'
    )
}

/// Runs a command with this program's own input, its answer let go, and gives its peak memory in KiB.
pub fn peak_here(program: &str, arguments: &[&str]) -> i64 {
    let nowhere = File::options().write(true).open("/dev/null").unwrap();
    Command::new(program).args(arguments).stdout(nowhere).status().unwrap();
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    // macOS counts bytes.
    if cfg!(target_os = "macos") { peak / 1024 } else { peak }
}

/// Times of one way.
#[derive(Default)]
pub struct Times {
    /// From start to end, in nanoseconds, sorted.
    took: Vec<u64>,
    /// Processor time, in microseconds, sorted.
    busy: Vec<i64>,
}

impl Times {
    /// The median, in nanoseconds.
    pub fn median(&self) -> f64 {
        self.took[self.took.len() / 2] as f64
    }

    /// The median of the processor's time, in milliseconds: what other programs on the machine move least.
    pub fn busy_ms(&self) -> f64 {
        self.busy[self.busy.len() / 2] as f64 / 1e3
    }

    /// The median, in milliseconds.
    pub fn ms(&self) -> f64 {
        self.median() / 1e6
    }

    /// The shortest, in milliseconds.
    pub fn least_ms(&self) -> f64 {
        self.took[0] as f64 / 1e6
    }
}

/// Runs all of them `rounds` times, taking turns, after three rounds that do not count.
pub fn in_turns(starts: &[Start], rounds: usize) -> Vec<Times> {
    let mut all: Vec<Times> = starts.iter().map(|_| Times::default()).collect();
    for round in 0..rounds + 3 {
        for (start, times) in starts.iter().zip(&mut all) {
            let before = busy();
            let (took, _) = start.run(round);
            if round >= 3 {
                times.took.push(took);
                times.busy.push(busy() - before);
            }
        }
    }
    for times in &mut all {
        times.took.sort_unstable();
        times.busy.sort_unstable();
    }
    all
}

/// Processor time of all children so far, in microseconds.
fn busy() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let (user, system) = (usage.user_time(), usage.system_time());
    (user.tv_sec() + system.tv_sec()) * 1_000_000 + user.tv_usec() + system.tv_usec()
}
