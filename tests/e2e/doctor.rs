//! `longhaul doctor` beside the real client: a healthy set-up is healthy, and what the client is told to change is
//! found.

use serde_json::{Value, json};

use crate::bench::{Bench, LONG, wait, write_json};
use crate::live::{open, session, session_id, used};
use crate::longhaul::{PROGRAMS, install, programs, stage};

/// What doctor finds, from a shell in that session.
fn doctor(bench: &Bench, session: &str) -> (Option<i32>, Value) {
    let line = [PROGRAMS[0].1, "doctor", "--json"].map(str::to_owned);
    let client = bench.command_line(&[]).remove(0);
    let out = bench.run(&line, &[("CLAUDE_CODE_SESSION_ID", session), ("CLAUDE_BIN", &client)], b"");
    (out.status.code(), serde_json::from_slice(&out.stdout).unwrap())
}

fn line<'v>(found: &'v Value, name: &str) -> &'v Value {
    found["checks"].as_array().unwrap().iter().find(|line| line["name"] == name).unwrap()
}

fn plugin(bench: &Bench, args: &[&str]) {
    let mut line = bench.command_line(&[]);
    line.truncate(1);
    line.push("plugin".to_owned());
    line.extend(args.iter().map(|&arg| arg.to_owned()));
    let out = bench.run(&line, &[], b"");
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_healthy_set_up_says_so_and_a_disabled_plugin_is_found() {
    let Some(bench) = open() else { return };
    let dir = bench.path("market");
    stage(&dir);
    plugin(&bench, &["marketplace", "add", dir.to_str().unwrap()]);
    plugin(&bench, &["install", "longhaul@longhaul"]);
    install(&bench);
    let bin = programs(&bench).parent().unwrap().to_owned();
    std::os::unix::fs::symlink(env!("CARGO_PKG_VERSION"), bin.join("current")).unwrap();
    bench.api.usual(used(228_000));
    let mut session = session(&bench, &[]);
    session.say("hello");
    session.wait_for(" 62% 228k/367k ");
    let id = session_id(&bench);
    // In its first seconds a session is left alone.
    let (code, found) = wait("the watcher's line", LONG, || {
        let (code, found) = doctor(&bench, &id);
        (line(&found, "monitor")["what"] == "armed in 1 open session").then_some((code, found))
    });
    assert_eq!((code, &found["healthy"]), (Some(0), &json!(true)), "{found:#}");
    for (name, part) in [
        ("client", "Claude Code 2.1.332, "),
        ("plugin", "longhaul@longhaul is enabled in the user settings"),
        ("hooks", "newest beat "),
        ("status-line", "the plugin draws it"),
        ("wall", "367k tokens, "),
        ("version", "everywhere"),
    ] {
        let line = line(&found, name);
        assert!(line["status"] == "ok" && line["what"].as_str().unwrap().contains(part), "{line:#}");
    }
    plugin(&bench, &["disable", "longhaul@longhaul"]);
    let (code, found) = doctor(&bench, &id);
    assert_eq!((code, &line(&found, "plugin")["status"]), (Some(1), &json!("broken")), "{found:#}");
    assert_eq!(line(&found, "plugin")["fix"], "claude plugin enable longhaul@longhaul");
    plugin(&bench, &["enable", "longhaul@longhaul"]);
    write_json(&bench.work().join(".claude/settings.local.json"), &json!({ "disableAllHooks": true }));
    let (_, found) = doctor(&bench, &id);
    assert_eq!(line(&found, "hooks")["status"], "broken", "{found:#}");
}
