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
    let hook = programs.join("longhaul-hook");
    let config = scene.home.join(".claude");
    fs::create_dir_all(config.join("sessions")).unwrap();
    scene.start("start", &hook, &scene.event("SessionStart", "start", Path::new("/none"))).once();
    let me = process::find(std::process::id()).unwrap();
    let transcript = scene.home.join(".claude/projects/-home-work-project/fleet.jsonl");
    fs::write(&transcript, "").unwrap();
    for at in 0..SESSIONS {
        let id = format!("10000000-0000-4000-8000-{at:012}");
        let mut event = scene.event("PreToolUse", &id, &transcript);
        event["tool_name"] = json!("Bash");
        event["tool_use_id"] = json!("toolu_1");
        event["tool_input"] = json!({"command": "make"});
        scene.start("beat", &hook, &event).once();
        fs::write(config.join(format!("longhaul/gauge/{id}.stream")), "0").unwrap();
        let file = json!({"pid": me.pid, "sessionId": id, "cwd": scene.project, "startedAt": 0,
            "procStart": me.start, "version": "2.1.332", "kind": "interactive", "entrypoint": "cli",
            "name": format!("project-{at}"), "status": "busy", "updatedAt": 0, "statusUpdatedAt": 0});
        fs::write(config.join(format!("sessions/{}.json", 1_000_000 + at)), file.to_string()).unwrap();
    }
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
