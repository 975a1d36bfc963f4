//! Two real sessions: one hangs on a request that is never answered, and the other's line, the person's notifier and
//! a terminal say so.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::{Answer, Gate, Kind};
use crate::bench::{Bench, LONG, wait, write_json};
use crate::live::{open, session, used};
use crate::longhaul::plugged;

/// A script of the person's; it runs in the home directory.
fn script(bench: &Bench, name: &str, text: &str) -> std::path::PathBuf {
    let path = bench.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_session_that_hangs_is_on_the_others_line_and_told_once() {
    let Some(bench) = open() else { return };
    let tell = script(&bench, "tell", "cat >>told");
    let bench = plugged(bench);
    let liveness = json!({ "stale": 4, "stale_thinking": 4, "dead": 600 });
    let config = json!({ "liveness": liveness, "notify": { "command": [tell] } });
    write_json(&bench.config().join("longhaul/config.json"), &config);
    let told = || {
        let text = std::fs::read_to_string(bench.home().join("told")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<serde_json::Value>>()
    };
    bench.api.usual(used(100_000));
    let mut watching = session(&bench, &["--name", "watching"]);
    watching.say("hello");
    watching.wait_for(" 27% 100k/367k ");
    let mut hanging = session(&bench, &["--name", "hanging"]);
    let hung = Gate::default();
    bench.api.next([Answer::text("LATE").behind(&hung)]);
    hanging.say("never answered");
    // The other one rests, and nobody touches it.
    let began = Instant::now();
    watching.wait_for("1 stalled");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    wait("the notifier", LONG, || (!told().is_empty()).then_some(()));
    assert_eq!((&told()[0]["incident"], &told()[0]["name"]), (&json!("stale?"), &json!("hanging")));
    assert!(!hanging.screen().contains("1 stalled"), "not of itself");
    hung.open();
    hanging.wait_for("LATE");
    watching.wait_for_end_of("1 stalled");
    assert_eq!(told().len(), 1, "{:#?}", told());
}

/// All programs of the machine but a notifier.
fn without_notifier(bench: &Bench) -> String {
    let dir = bench.path("programs");
    std::fs::create_dir(&dir).unwrap();
    for from in ["/usr/bin", "/bin"].iter().flat_map(std::fs::read_dir).flatten().flatten() {
        if from.file_name() != "notify-send" {
            let _ = std::os::unix::fs::symlink(from.path(), dir.join(from.file_name()));
        }
    }
    dir.to_str().unwrap().to_owned()
}

#[test]
fn where_no_notifier_is_a_terminal_says_it_once() {
    let Some(bench) = open() else { return };
    if cfg!(target_os = "macos") {
        return;
    }
    let path = without_notifier(&bench);
    let bench = plugged(bench.env("PATH", &path));
    let liveness = json!({ "stale": 3, "stale_thinking": 3, "dead": 600 });
    write_json(&bench.config().join("longhaul/config.json"), &json!({ "liveness": liveness }));
    bench.api.usual(used(100_000));
    let mut watching = session(&bench, &["--name", "watching"]);
    watching.say("hello");
    watching.wait_for(" 27% 100k/367k ");
    let mut hanging = session(&bench, &["--name", "hanging"]);
    let hung = Gate::default();
    bench.api.next([Answer::text("LATE").behind(&hung)]);
    hanging.say("never answered");
    watching.wait_for("1 stalled");
    let ours = |terminal: &crate::terminal::Terminal| {
        let all = terminal.notifications().into_iter();
        all.filter(|text| text.contains("may be stuck")).collect::<Vec<_>>()
    };
    // With the next thing that happens in it; by the second one it has long been told.
    for prompt in ["and now", "and then"] {
        watching.say(prompt);
        wait("the turn", LONG, || {
            bench.api.of(Kind::Main).iter().any(|request| request.new_text().contains(prompt)).then_some(())
        });
        wait("the terminal", LONG, || (!ours(&watching).is_empty()).then_some(()));
    }
    let said = ours(&watching);
    assert!(
        said.len() == 1 && said[0].starts_with("hanging may be stuck: nothing has moved for "),
        "{said:?}"
    );
    assert_eq!(ours(&hanging), [""; 0]);
    hung.open();
    hanging.wait_for("LATE");
}
