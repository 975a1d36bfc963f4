//! What watchers with nothing to tell cost: processor time a minute and resident memory, one alone and twelve
//! together, each beside a client of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::scene::Scene;

const MANY: usize = 12;
const MINUTE: Duration = Duration::from_secs(60);
/// Until each has found its client, and one leads.
const BEGINNING: Duration = Duration::from_secs(6);

/// A watcher and what stands in for its client.
struct Pair {
    client: Child,
    watcher: Child,
}

impl Drop for Pair {
    fn drop(&mut self) {
        for child in [&mut self.watcher, &mut self.client] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Pair {
    fn start(scene: &Scene, programs: &Path, n: usize) -> Self {
        let client = Command::new("sleep").arg("600").spawn().unwrap();
        let dir = scene.home.join(".claude/sessions");
        std::fs::create_dir_all(&dir).unwrap();
        let session = format!("00000000-0000-4000-8000-{n:012}");
        let file =
            json!({ "pid": client.id(), "sessionId": session, "kind": "interactive", "status": "shell" });
        std::fs::write(dir.join(format!("{}.json", client.id())), file.to_string()).unwrap();
        let mut command = Command::new(programs.join("longhaul-watch"));
        command.env_clear().envs(scene.env()).env("CLAUDE_PID", client.id().to_string());
        command.current_dir(&scene.project).stdin(Stdio::null()).stdout(Stdio::piped());
        Self { client, watcher: command.spawn().unwrap() }
    }

    /// Processor time of all its threads so far, in ns.
    fn busy_ns(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.watcher.id())).unwrap();
        tasks
            .flatten()
            .map(|task| std::fs::read_to_string(task.path().join("schedstat")).unwrap())
            .map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }

    /// Resident memory, in KiB: all of it, and what no other process shares.
    fn memory(&self) -> (u64, u64) {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.watcher.id())).unwrap();
        let of = |name: &str| -> u64 {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
        };
        (of("VmRSS:"), of("RssAnon:"))
    }
}

pub fn run(programs: &str, work: &str) {
    if !cfg!(target_os = "linux") {
        return println!("watchers: measured on Linux only");
    }
    println!(
        "watchers with nothing to tell, over a minute; the targets are 20 ms and 5 MB for one, 60 ms for twelve"
    );
    println!("| | processor time | resident | of it unshared |\n|---|---|---|---|");
    for (count, resting) in [(1, 0), (MANY, 0), (1, 100), (1, 1_000)] {
        let scene = Scene::new(&Path::new(work).join(format!("watchers-{count}-{resting}")));
        if resting > 0 {
            super::fleet::people(&scene, Path::new(programs), resting, "Stop", "shell");
        }
        let pairs: Vec<Pair> = (0..count).map(|n| Pair::start(&scene, Path::new(programs), n)).collect();
        std::thread::sleep(BEGINNING);
        let before: Vec<u64> = pairs.iter().map(Pair::busy_ns).collect();
        std::thread::sleep(MINUTE);
        let spent = pairs.iter().zip(&before).map(|(pair, before)| pair.busy_ns() - before).sum::<u64>();
        let (resident, own) = pairs.iter().map(Pair::memory).max().unwrap();
        println!(
            "| {count}, and {resting} sessions at rest | {:.1} ms | {:.1} MB each | {:.1} MB |",
            spent as f64 / 1e6,
            resident as f64 / 1024.0,
            own as f64 / 1024.0
        );
    }
}
