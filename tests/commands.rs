//! `longhaul explain` and `longhaul weigh` as a person types them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Said, Sandbox};

/// What is kept of sessions, by file.
fn kept(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let files = fs_err::read_dir(sandbox.state().join("gauge")).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name().into_string().unwrap(), fs_err::read(file.path()).unwrap())).collect()
}

#[track_caller]
fn failed(said: &Said, place: &str) {
    assert_eq!((said.code, &*said.stdout), (1, ""), "{said:?}");
    assert!(said.stderr.starts_with("longhaul: ") && said.stderr.contains(place), "{said:?}");
}

/// Another model, another shell's environment: asked about, they are not what the session has.
#[test]
fn asking_changes_nothing_that_is_kept() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[100_000, 150_000]).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup", "model": "claude-opus-5-5" })));
    let payload = sandbox.payload(1_000_000, Some(150_000), Some(&path));
    sandbox.statusline(&payload);
    let before = kept(&sandbox);
    assert!(!before.is_empty());
    let told =
        sandbox.longhaul_json(&["explain", "--session", SESSION, "--model", "claude-haiku-4-5", "--json"]);
    assert_eq!(told["wall"], json!({ "tokens": 200_000, "kind": "reactive", "source": "assumed" }));
    let sandbox = sandbox.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "300000");
    assert_eq!(sandbox.explain(&payload)["wall"]["tokens"], 267_000);
    sandbox.longhaul_json(&["weigh", "--session", SESSION, "--json"]);
    assert_eq!(kept(&sandbox), before);
}

/// A number that comes from the wrong environment is said to.
#[test]
fn a_borrowed_environment_is_named() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[150_000]).rows);
    let warned = |sandbox: &Sandbox, select: [&str; 2]| {
        let told = sandbox.longhaul_json(&["explain", select[0], select[1], "--json"]);
        told["warnings"].to_string().contains("environment was never seen")
    };
    assert!(warned(&sandbox, ["--transcript", path.to_str().unwrap()]));
    assert!(warned(&sandbox, ["--session", SESSION]));
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    assert!(!warned(&sandbox, ["--session", SESSION]));
    let inside = Sandbox::new().env("CLAUDE_CODE_SESSION_ID", SESSION);
    inside.transcript(&Rows::new().turns(&[150_000]).rows);
    assert!(!warned(&inside, ["--session", SESSION]));
}

#[test]
fn the_figures_of_another_model_say_nothing_of_this_ones_window() {
    let sandbox = Sandbox::new();
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let mut handed = sandbox.payload(0, None, None);
    handed["longhaul"] = json!({ "v": 1, "event": "start", "columns": 80, "figures": { "tokens": 5,
        "window": 1_000_000, "autoCompactThreshold": 967_000, "isAutoCompactEnabled": true } });
    sandbox.statusline(&handed);
    let of = |model| sandbox.longhaul_json(&["explain", "--session", SESSION, "--model", model, "--json"]);
    assert_eq!(of("claude-opus-5-5")["window"]["tokens"], 1_000_000);
    let told = of("claude-haiku-4-5");
    assert_eq!(told["window"], json!({ "tokens": 200_000, "source": "table", "clamped": null }));
}

#[test]
fn a_session_is_found_by_the_directory_it_is_open_in() {
    let sandbox = Sandbox::new();
    sandbox.transcript(&Rows::new().turns(&[150_000]).rows);
    failed(&sandbox.longhaul(&["explain"]), "--session ID");
    let sessions = sandbox.config().join("sessions");
    fs_err::create_dir_all(&sessions).unwrap();
    let file = |pid: u32, session: &str| json!({ "pid": pid, "sessionId": session, "cwd": sandbox.work() });
    // A client that was killed leaves its file.
    fs_err::write(sessions.join("1.json"), file(u32::MAX, "gone").to_string()).unwrap();
    fs_err::write(sessions.join("2.json"), file(std::process::id(), SESSION).to_string()).unwrap();
    let told = sandbox.longhaul_json(&["explain", "--json"]);
    assert_eq!((&told["session"], &told["context"]["tokens"]), (&json!(SESSION), &json!(150_000)));
    fs_err::write(sessions.join("3.json"), file(std::process::id(), "other").to_string()).unwrap();
    failed(&sandbox.longhaul(&["explain"]), "several sessions");
}

#[test]
fn what_cannot_be_read_is_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.root.path().join("odd.json");
    let named = file.to_str().unwrap();
    failed(&sandbox.longhaul(&["explain", "--payload", named]), named);
    fs_err::write(&file, "{\"model\":\n oops}").unwrap();
    failed(&sandbox.longhaul(&["explain", "--payload", named]), "line 2 column 2");
    fs_err::write(&file, "[1]").unwrap();
    failed(&sandbox.longhaul(&["weigh", "--payload", named]), named);
    failed(&sandbox.longhaul(&["weigh", "--transcript", "/none/x.jsonl"]), "/none/x.jsonl");
    failed(
        &sandbox.longhaul(&["weigh", "--transcript", sandbox.work().to_str().unwrap()]),
        "not a regular file",
    );
    failed(&sandbox.longhaul(&["explain", "--session", "../x"]), "'../x'");
    failed(&sandbox.longhaul(&["explain", "--session", "nobody"]), "nobody");
    failed(&sandbox.longhaul(&["handoff", "snooze", "--session", "a b"]), "'a b'");
    failed(&sandbox.longhaul(&["handoff", "snooze", "--session", "ID"]), "could not find session ID");
    let both = ["explain", "--session", "s", "--transcript", "t"];
    for usage in [&["explain", "--bogus"][..], &["weigh", "--subtasks", "x"], &both, &["handoff"]] {
        let said = sandbox.longhaul(usage);
        assert_eq!((said.code, &*said.stdout), (2, ""), "{usage:?}: {said:?}");
    }
}

/// The shape that programs rely on.
#[test]
fn explain_and_weigh_keep_their_shapes() {
    let sandbox = Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "300000");
    let told = sandbox.explain(&sandbox.payload(1_000_000, Some(150_000), None));
    assert_eq!(told["wall"], json!({ "tokens": 267_000, "kind": "compaction", "source": "configured" }));
    assert_eq!(told["window"], json!({ "tokens": 1_000_000, "source": "payload", "clamped": null }));
    assert_eq!(told["context"], json!({ "tokens": 150_000, "estimated": false }));
    assert_eq!(
        told["inputs"],
        json!([{ "name": "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "origin": "environment", "value": "300000",
            "effect": "applied", "why": "window 300000" }])
    );
    assert!(told["evidence"].is_array() && told["warnings"] == json!([]), "{told}");

    let path = sandbox.transcript(&Rows::new().turns(&[100_000, 170_000]).rows);
    let told = sandbox.longhaul_json(&[
        "weigh",
        "--transcript",
        path.to_str().unwrap(),
        "--subtasks",
        "5",
        "--json",
    ]);
    let points: Vec<u64> =
        told["signals"].as_array().unwrap().iter().map(|signal| signal["points"].as_u64().unwrap()).collect();
    assert_eq!(points, [0, 1, 0, 0, 0, 0, 1], "{told}");
    let verdict = ["points", "urgency", "gated", "headroom"].map(|key| told[key].clone());
    assert_eq!(verdict, [json!(2), json!("soon"), json!(false), json!(97_000)]);
    assert_eq!(told["compactions"], json!({ "auto": 0, "manual": 0, "dropped_tokens": 0 }));
    assert_ne!(told["context"], Value::Null);
}

/// The last step of the arithmetic, or the line behind it that says what counts instead, ends at the wall.
#[test]
fn the_arithmetic_leads_to_the_wall_that_is_shown() {
    let shown = |sandbox: &Sandbox, payload: &Value| {
        let file = sandbox.root.path().join("p.json");
        fs_err::write(&file, payload.to_string()).unwrap();
        let said = sandbox.longhaul(&["explain", "--payload", file.to_str().unwrap()]);
        assert_eq!((said.code, &*said.stderr), (0, ""));
        let block = said.stdout.split("Arithmetic\n").nth(1).unwrap().split("\n\n").next().unwrap();
        block.lines().last().unwrap().trim().to_owned()
    };
    let set = |list: &[(&str, &str)]| {
        let sandbox = list.iter().fold(Sandbox::new(), |sandbox, (name, value)| sandbox.env(name, value));
        shown(&sandbox, &sandbox.payload(1_000_000, None, None))
    };
    let percent = ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50");
    let limit = ("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "300000");
    let off = ("DISABLE_COMPACT", "1");
    assert_eq!(set(&[]), "trigger = 980000 - 13000 = 967000");
    assert_eq!(set(&[percent]), "with 50 %: min(trigger, 50 % of 980000) = 490000");
    assert_eq!(set(&[percent, limit]), "not above the refusal line at 300000: 300000");
    assert_eq!(set(&[off]), "compaction is off: refusal = 980000 - 3000 = 977000");
    assert_eq!(set(&[off, limit]), "compaction is off, and the refusal line is set: 300000");

    let sandbox = Sandbox::new();
    let mut handed = sandbox.payload(1_000_000, None, None);
    handed["longhaul"] = json!({ "v": 1, "event": "start", "columns": 80, "figures": { "tokens": 5,
        "window": 1_000_000, "autoCompactThreshold": 667_000, "isAutoCompactEnabled": true,
        "rawMaxTokens": 700_000, "autocompactSource": "experiment" } });
    assert_eq!(
        shown(&sandbox, &handed),
        "the client itself says: trigger 667000 before the percentage, window 700000 from \"experiment\", \
         so the wall is 667000"
    );
    let used = [50_000, 100_000, 200_000, 300_000, 400_000, 450_000, 467_000];
    let path = sandbox.transcript(&Rows::new().turns(&used).boundary("auto", 468_102, 20_000).rows);
    let learned = shown(&sandbox, &sandbox.payload(1_000_000, None, Some(&path)));
    assert_eq!(learned, "a compaction fired elsewhere, so the wall is 468102");
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_colours_unless_it_is_told_not_to() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[100_000, 960_000]).rows);
    let told =
        |sandbox: &Sandbox, verb: &str| sandbox.on_terminal(&[verb, "--transcript", path.to_str().unwrap()]);
    let plain = sandbox.longhaul(&["weigh", "--transcript", path.to_str().unwrap()]).stdout;
    assert!(!plain.contains('\u{1b}'), "a pipe takes none: {plain:?}");
    assert!(told(&sandbox, "weigh").contains("\u{1b}[31mcritical: hand off now\u{1b}[0m"));
    assert!(told(&sandbox, "explain").contains("\u{1b}[1m967000 tokens\u{1b}[0m"));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = told(&Sandbox::new().env(name, value), "explain");
        assert!(shown.contains("967000 tokens") && !shown.contains('\u{1b}'), "{name}: {shown:?}");
    }
}

/// Names come from files and arguments; a terminal must not act on them.
#[test]
fn an_error_holds_no_control_characters() {
    let said = Sandbox::new().longhaul(&["weigh", "--transcript", "/none/\u{1b}[2J\u{7}x"]);
    assert!(said.code == 1 && said.stderr.contains("/none/[2Jx"), "{said:?}");
    assert!(said.stderr.trim_end().chars().all(|c| !c.is_control()), "{said:?}");
}
