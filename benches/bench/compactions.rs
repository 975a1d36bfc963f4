//! What the export before a compaction takes: the hook at PreCompact, on transcripts of several sizes.

use std::path::Path;

use super::scene::Scene;
use super::timing::{Start, in_turns};

const MB: u64 = 1 << 20;
const SIZES: [u64; 3] = [5, 50, 200];
const ROUNDS: usize = 9;

pub fn run(programs: &str, floor: &str, work: &str) {
    let scene = Scene::new(Path::new(work));
    let hook = Path::new(programs).join("longhaul-hook");
    println!("the hook at PreCompact, medians of {ROUNDS}, all files in the cache");
    for (n, size) in (1..).zip(SIZES) {
        let session = format!("00000000-0000-4000-8000-0000000000c{n}");
        let (path, truth) = scene.transcript(&session, size * MB);
        // Each event measures a part of the transcript; in a session that has been done long before.
        for _ in 0..8 {
            scene.start("measure", &hook, &scene.event("UserPromptSubmit", &session, &path)).once();
        }
        let event = scene.event("PreCompact", &session, &path);
        let mut alone = scene.start("the export", &hook, &event);
        // Where no client runs, nobody is waited for.
        alone.env.retain(|(name, _)| name != "CLAUDE_PID");
        let starts = [
            scene.start("an empty program", floor, &event),
            alone,
            scene.start("beside a client", &hook, &event),
        ];
        let [empty, alone, beside] = &in_turns(&starts.map(|start| anew(start, &scene)), ROUNDS)[..] else {
            return;
        };
        println!("\n{} bytes", truth.bytes);
        let speed = |ms: f64| truth.bytes as f64 / 1e3 / ms;
        println!("  an empty program          {:9.2} ms (processor {:.2})", empty.ms(), empty.busy_ms());
        for (name, times) in [("the export", alone), ("beside a client", beside)] {
            println!(
                "  {name:<24} {:10.1} ms (least {:.1}, processor {:.1}): {:.0} times an empty program, {:.0} MB/s, \
                 {:.0} of processor time",
                times.ms(),
                times.least_ms(),
                times.busy_ms(),
                times.median() / empty.median(),
                speed(times.ms()),
                speed(times.busy_ms()),
            );
        }
    }
}

/// Each time as if it were the session's first compaction.
fn anew(mut start: Start, scene: &Scene) -> Start {
    let state = scene.home.join(".claude/longhaul");
    start.clears = ["handoffs", "handoff-keys", "jobs"].map(|name| state.join(name)).to_vec();
    start
}
