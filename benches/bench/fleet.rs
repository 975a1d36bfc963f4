//! A thousand sessions, all of them busy and silent, so that every fact of each is looked at.

use std::fs;
use std::path::Path;
use std::time::Instant;

use longhaul::host::{Host, process};
use longhaul::liveness::sweep::{Request, sweep};
use longhaul::liveness::verdict::Limits;
use longhaul::store::Store;
use serde_json::{Value, json};

use super::ours::say;
use super::scene::Scene;

const SESSIONS: usize = 1_000;
const ROUNDS: usize = 101;

pub fn run(scene: &Scene, programs: &Path) {
    people(scene, programs, SESSIONS, "PreToolUse", "busy");
    let host = Host::fixed(&[("HOME", scene.home.to_str().unwrap())], longhaul::host::clock::now_ms());
    let store = Store::locate(&host, &[]).unwrap();
    let request = Request { limits: Limits::default(), ended: false, prune_ms: 0 };
    let mut times: Vec<u128> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            assert!(sweep(&host, &store, &request).unwrap().sessions.len() >= SESSIONS);
            start.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    println!("\na sweep over {SESSIONS} sessions, {ROUNDS} times");
    say("median", times[ROUNDS / 2] as f64 / 1e3, "ms", Some(50.0));
    say("longest", times[ROUNDS - 1] as f64 / 1e3, "ms", None);
    let mut list = scene.start("sessions --check", programs.join("longhaul"), &Value::Null);
    list.arguments = vec!["sessions".into(), "--check".into()];
    say("peak memory of `longhaul sessions --check`", list.peak() as f64, "KiB", Some(8.0 * 1024.0));
}

/// So many sessions that did that last, and what their client, which is this process, says of them.
pub fn people(scene: &Scene, programs: &Path, count: usize, event: &str, status: &str) {
    let hook = programs.join("longhaul-hook");
    let config = scene.home.join(".claude");
    fs::create_dir_all(config.join("sessions")).unwrap();
    let me = process::find(std::process::id()).unwrap();
    let transcript = scene.home.join(".claude/projects/-home-work-project/fleet.jsonl");
    fs::write(&transcript, "").unwrap();
    // The first one makes the place for the records.
    let start = scene.event("SessionStart", "10000000-0000-4000-8000-000000000000", &transcript);
    scene.start("start", &hook, &start).once();
    for at in 0..count {
        let id = format!("10000000-0000-4000-8000-{at:012}");
        let mut event = scene.event(event, &id, &transcript);
        event["tool_name"] = json!("Bash");
        event["tool_use_id"] = json!("toolu_1");
        event["tool_input"] = json!({"command": "make"});
        scene.start("beat", &hook, &event).once();
        fs::write(config.join(format!("longhaul/gauge/{id}.stream")), "0").unwrap();
        let file = json!({"pid": me.pid, "sessionId": id, "cwd": scene.project, "startedAt": 0,
            "procStart": me.start, "version": "2.1.332", "kind": "interactive", "entrypoint": "cli",
            "name": format!("project-{at}"), "status": status, "updatedAt": 0, "statusUpdatedAt": 0});
        fs::write(config.join(format!("sessions/{}.json", 1_000_000 + at)), file.to_string()).unwrap();
    }
}
