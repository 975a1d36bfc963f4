//! The verbs of the chain registry, through the built program, on made-up registries.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::LazyLock;

use longhaul::base::text::clean;
use longhaul::host::clock::now_ms;
use serde_json::{Value, json};

use crate::sandbox::{Said, Sandbox, finish};

static NOW: LazyLock<i64> = LazyLock::new(now_ms);
const DAY: i64 = 86_400_000;
const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";
const C: &str = "cccccccc-0000-4000-8000-000000000003";

/// A home whose registry holds these handoffs, with an export and a key for each.
fn home(entries: &[Value]) -> Sandbox {
    let sandbox = Sandbox::new();
    for dir in ["handoffs", "handoff-keys"] {
        fs_err::create_dir_all(sandbox.state().join(dir)).unwrap();
    }
    for entry in entries {
        let id = entry["id"].as_str().unwrap();
        if longhaul::base::id::is_plain(id) && entry["directory"] == json!(export(id)) {
            let dir = directory(&sandbox, id);
            fs_err::create_dir_all(&dir).unwrap();
            fs_err::write(dir.join("01-user-messages.md"), "x".repeat(2_000)).unwrap();
            fs_err::write(key(&sandbox, id), "{}").unwrap();
        }
    }
    let placed: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let mut entry = entry.clone();
            if entry["directory"] == json!(export(entry["id"].as_str().unwrap())) {
                entry["directory"] = json!(directory(&sandbox, entry["id"].as_str().unwrap()));
            }
            entry
        })
        .collect();
    write(&sandbox, &json!({ "version": 1, "handoffs": placed }).to_string());
    sandbox
}

fn export(id: &str) -> String {
    format!("the export {id}")
}

fn directory(sandbox: &Sandbox, id: &str) -> PathBuf {
    sandbox.state().join("handoffs").join(id)
}

fn key(sandbox: &Sandbox, id: &str) -> PathBuf {
    sandbox.state().join("handoff-keys").join(format!("{id}.json"))
}

fn registry(sandbox: &Sandbox) -> PathBuf {
    sandbox.state().join("chains.json")
}

fn write(sandbox: &Sandbox, text: &str) {
    fs_err::write(registry(sandbox), text).unwrap();
}

fn entry(id: &str, state: &str, parent: &str, child: Option<&str>, days: i64) -> Value {
    json!({
        "id": id, "state": state, "parent": { "session": parent },
        "child": child.map(|child| json!({ "session": child })),
        "generation": 2, "parent_name": "the parser", "name": "the parser (cont. 2)",
        "directory": export(id), "cwd": "/work/it's here",
        "weight": { "tokens": 831_000, "wall": 977_000, "points": 5, "urgency": "due" },
        "times": { "began": *NOW - days * DAY },
    })
}

/// What the registry holds.
fn ids(sandbox: &Sandbox) -> Vec<String> {
    let told = sandbox.longhaul_json(&["handoff", "list", "--json"]);
    told["handoffs"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn said(sandbox: &Sandbox, args: &[&str]) -> String {
    let said = sandbox.longhaul(&[&["handoff"], args].concat());
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    said.stdout
}

#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str], code: i32, why: &str) -> Said {
    let said = sandbox.longhaul(&[&["handoff"], args].concat());
    assert_eq!((said.code, &*said.stdout), (code, ""), "{said:?}");
    assert!(said.stderr.contains(why), "{why:?} is missing: {said:?}");
    said
}

fn three() -> [Value; 3] {
    [
        entry("one", "accepted", A, Some(B), 9),
        entry("two", "failed", B, None, 2),
        entry("three", "partial", B, Some(C), 1),
    ]
}

#[test]
fn handoffs_are_listed_newest_first() {
    let sandbox = home(&three());
    assert_eq!(ids(&sandbox), ["three", "two", "one"]);
    assert_eq!(
        said(&sandbox, &["list"]),
        "three  partial      bbbbbbbb → cccccccc   24h    831k/977k  the parser (cont. 2)\n\
         two    failed       bbbbbbbb → –           2d    831k/977k  the parser (cont. 2)\n\
         one    accepted     aaaaaaaa → bbbbbbbb    9d    831k/977k  the parser (cont. 2)\n"
    );
    let none = Sandbox::new();
    assert_eq!(said(&none, &["list"]), "There are no handoffs yet.\n");
    assert_eq!(none.longhaul_json(&["handoff", "list", "--json"]), json!({ "handoffs": [] }));
    assert!(!none.state().exists(), "a look writes nothing");
}

#[cfg(unix)]
#[test]
fn on_a_terminal_states_are_coloured_and_names_cut_to_its_width() {
    let mut long = entry("one", "failed", A, None, 1);
    long["name"] =
        json!("a name that goes on and on and on for longer than any terminal is wide, and further");
    let sandbox = home(&[long]).env("TERM", "xterm-256color");
    let shown = sandbox.on_terminal(&["handoff", "list"]);
    assert!(shown.contains("\u{1b}[31mfailed"), "{shown:?}");
    assert!(shown.contains("…") && !shown.contains("and further"), "{shown:?}");
    let lines: Vec<&str> = shown.trim_end().lines().collect();
    assert_eq!(lines.len(), 1, "{shown:?}");
    let sandbox = sandbox.env("NO_COLOR", "1");
    let plain = sandbox.on_terminal(&["handoff", "list"]);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert!(longhaul::base::text::width(plain.trim_end()) <= 80, "{plain:?}");
}

#[test]
fn a_chain_is_shown_from_any_member_oldest_first() {
    let sandbox = home(&three());
    for member in [A, B, C, "one", "two", "three", &A[..8]] {
        let told = sandbox.longhaul_json(&["handoff", "chain", member, "--json"]);
        let of = |list: &str, name: &str| -> Vec<String> {
            let list = told[list].as_array().unwrap().iter();
            list.map(|it| it[name].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(of("sessions", "session"), [A, B, C], "{member}");
        assert_eq!(of("handoffs", "id"), ["one", "two", "three"], "{member}");
    }
    let text = said(&sandbox, &["chain", B]);
    let first = format!(
        "{A}  the oldest that is known\n{B}  went on from aaaaaaaa\n{C}  has not shown that it read all of bbbbbbbb\n"
    );
    assert!(text.starts_with(&first), "{text}");
    assert!(text.find("one ").unwrap() < text.find("three ").unwrap(), "{text}");
    refused(&sandbox, &["chain", "dddddddd"], 1, "`longhaul handoff list`");
    refused(&sandbox, &["chain", "../../x"], 1, "`longhaul handoff list`");
}

#[test]
fn a_failure_is_json_for_whoever_asked_for_json() {
    let sandbox = home(&three());
    for args in [
        &["show", "none"][..],
        &["chain", "none"],
        &["retry", "none"],
        &["forget", "none"],
        &["snooze", "--session", "none"],
        &["--session", "none"],
        &["--session", "../../x", "--prepare"],
    ] {
        let plain = refused(&sandbox, args, 1, "");
        let said = sandbox.longhaul(&[&["handoff"], args, &["--json"]].concat());
        let told: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!((said.code, &said.stderr), (1, &plain.stderr), "{args:?}");
        assert_eq!((&told["error"]["kind"], &told["error"]["code"]), (&json!("other"), &json!(1)));
        let message = format!("longhaul: {}\n", told["error"]["message"].as_str().unwrap());
        assert_eq!(message, plain.stderr, "{args:?}");
    }
    // What went is told beside what did not.
    fs_err::create_dir(sandbox.state().join("handoff-keys/two.lock")).unwrap();
    let said = sandbox.longhaul(&["handoff", "prune", "--older-than", "1d", "--json"]);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &told["failed"][0]["id"]), (1, &json!("two")), "{said:?}");
    assert!(said.stderr.starts_with("longhaul: could not remove 1 of them; two: "), "{said:?}");
}

#[test]
fn a_verb_asks_for_no_option_that_it_does_not_take() {
    let sandbox = home(&three());
    for args in [&["snooze"][..], &["--prepare"]] {
        let said = refused(&sandbox, args, 1, "name one with --session ID");
        assert!(!said.stderr.contains("--transcript") && !said.stderr.contains("--payload"), "{said:?}");
    }
}

/// What hooks see of processes, and what rows say, is followed without a handoff.
#[cfg(target_os = "linux")]
#[test]
fn a_session_after_clear_and_a_fork_belong_to_the_chain() {
    let sandbox = home(&three()).env("CLAUDE_PID", &std::process::id().to_string());
    let start = |session: &str, source: &str| {
        let transcript = format!("/none/{session}.jsonl");
        let more = json!({ "source": source, "session_id": session, "transcript_path": transcript });
        sandbox.answer(&sandbox.event("SessionStart", &more));
        // Two sessions do not begin within one millisecond.
        let began = now_ms();
        while now_ms() == began {
            std::hint::spin_loop();
        }
    };
    let (cleared, fork, resumed) = ("dddddddd-d", "eeeeeeee-e", "ffffffff-f");
    start(C, "resume");
    start(cleared, "clear");
    start(resumed, "resume");
    let projects = sandbox.config().join("projects/-work");
    fs_err::create_dir_all(&projects).unwrap();
    let row = json!({ "type": "assistant", "message": {}, "sessionId": fork, "requestSessionId": cleared });
    fs_err::write(projects.join(format!("{fork}.jsonl")), format!("{row}\n")).unwrap();
    let told = sandbox.longhaul_json(&["handoff", "chain", fork, "--json"]);
    let sessions: Vec<_> = told["sessions"].as_array().unwrap().iter().map(|it| &it["session"]).collect();
    assert_eq!(sessions, [A, B, C, cleared, fork]);
    assert_eq!(told["sessions"][3]["handed_over"], false);
    refused(&sandbox, &["chain", resumed], 1, "could not find");
}

#[test]
fn a_handoff_is_shown_with_what_is_missing_and_the_way_on() {
    let mut short = entry("three", "partial", B, Some(C), 1);
    short["proof"] = json!({ "accepted": false, "parts": 12, "marks": 240, "turns": 2,
        "shortfalls": [{ "part": "02-decisions.md", "check": "marks", "what": "3 of 20" }] });
    let sandbox = home(&[entry("one", "accepted", A, Some(B), 9), short]);
    let text = said(&sandbox, &["show", "three"]);
    for part in [
        "three  partial\n",
        "12 parts, 240 marks, 2 turns: 1 fall short",
        "02-decisions.md  marks: 3 of 20",
        "831k of 977k tokens, 5 points, due",
        "  cd '/work/it'\\''s here' && claude --resume cccccccc-0000-4000-8000-000000000003\n",
        "  longhaul handoff retry three\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    let told = sandbox.longhaul_json(&["handoff", "show", C, "--json"]);
    assert_eq!((&told["id"], &told["working"]), (&json!("three"), &json!(false)));
    let told = sandbox.longhaul_json(&["handoff", "show", A, "--json"]);
    assert_eq!(told["go_on"].as_array().unwrap().len(), 1, "an accepted one needs no retry: {told}");
}

#[test]
fn a_failure_is_told_and_an_abandoned_one_has_been_interrupted() {
    let mut failed = entry("one", "failed", A, None, 1);
    failed["failure"] = json!({ "kind": "timeout", "message": "no answer in 1800 s" });
    let sandbox = home(&[failed, entry("two", "reading", B, Some(C), 1)]);
    let text = said(&sandbox, &["show", "one"]);
    assert!(text.contains("timeout: no answer in 1800 s") && text.contains("handoff retry one"), "{text}");
    assert!(said(&sandbox, &["show", "two"]).starts_with("two  interrupted\n"));
    let held = hold(&sandbox, "two");
    let text = said(&sandbox, &["show", "two"]);
    assert!(text.starts_with("two  reading\n") && text.contains("works on it now"), "{text}");
    assert!(!text.contains("retry"), "{text}");
    drop(held);
}

/// Works on a handoff, as another process does.
fn hold(sandbox: &Sandbox, id: &str) -> longhaul::store::lock::Held {
    let home = sandbox.root.path().join("home");
    let host = longhaul::host::Host::fixed(&[("HOME", home.to_str().unwrap())], *NOW);
    let store = longhaul::store::Store::locate(&host, &[]).unwrap();
    store.hold_export(id).unwrap().unwrap()
}

#[test]
fn which_handoff_is_meant_must_be_clear() {
    let sandbox = home(&three());
    for verb in ["show", "forget"] {
        let said = refused(&sandbox, &[verb, B], 1, "name one by its own id");
        for id in ["one (accepted)", "two (failed)", "three (partial)"] {
            assert!(said.stderr.contains(id), "{id}: {said:?}");
        }
        refused(&sandbox, &[verb, "nobody"], 1, "`longhaul handoff list`");
        refused(&sandbox, &[verb, ""], 1, "`longhaul handoff list`");
        refused(&sandbox, &[verb], 2, "ID");
    }
    assert_eq!(ids(&sandbox).len(), 3);
    assert!(said(&sandbox, &["show", &A[..8]]).starts_with("one"), "as the list shows it");
    refused(&sandbox, &["show", &A[..7]], 1, "could not find");
}

#[test]
fn forgetting_takes_the_entry_and_nothing_else() {
    let sandbox = home(&three());
    let text = said(&sandbox, &["forget", "three"]);
    let export = directory(&sandbox, "three");
    assert!(text.starts_with("Forgot three. ") && text.contains(export.to_str().unwrap()), "{text}");
    assert!(export.join("01-user-messages.md").exists() && key(&sandbox, "three").exists());
    assert_eq!(ids(&sandbox), ["two", "one"]);
    let told = sandbox.longhaul_json(&["handoff", "forget", A, "--json"]);
    assert_eq!(told, json!({ "forgot": "one", "export": directory(&sandbox, "one") }));
    let held = hold(&sandbox, "two");
    refused(&sandbox, &["forget", "two"], 1, "is being worked on by another longhaul");
    drop(held);
    fs_err::remove_dir_all(directory(&sandbox, "two")).unwrap();
    assert!(said(&sandbox, &["forget", "two"]).contains("gone already"));
    let keys = fs_err::read_dir(sandbox.state().join("handoff-keys")).unwrap();
    assert_eq!(keys.count(), 3, "no hold is left behind");
}

#[test]
fn twenty_at_once_lose_nothing() {
    let names: Vec<String> = (0..40).map(|n| format!("handoff-{n}")).collect();
    let all: Vec<Value> = names.iter().map(|id| entry(id, "prepared", A, None, 1)).collect();
    let sandbox = home(&all);
    let forget = |id: &String| {
        let mut command = sandbox.command("longhaul");
        command.args(["handoff", "forget", id]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = names.iter().step_by(2).map(forget).collect();
    for child in running {
        let said = finish(child);
        assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    }
    let mut left = ids(&sandbox);
    left.sort();
    let mut wanted: Vec<String> = names.iter().skip(1).step_by(2).cloned().collect();
    wanted.sort();
    assert_eq!(left, wanted);
}

#[test]
fn pruning_takes_old_exports_and_never_what_a_chain_needs() {
    let mut elsewhere = entry("out", "prepared", "q", None, 90);
    let sandbox = Sandbox::new();
    let out = sandbox.root.path().join("out");
    fs_err::create_dir(&out).unwrap();
    elsewhere["directory"] = json!(out);
    let sandbox = home(&[
        entry("first", "accepted", A, Some(B), 90),
        entry("last", "accepted", B, Some(C), 80),
        entry("failed", "failed", C, None, 70),
        entry("held", "reading", "x", None, 60),
        entry("young", "failed", "y", None, 3),
        elsewhere,
    ]);
    fs_err::write(key(&sandbox, "out"), "{}").unwrap();
    let held = hold(&sandbox, "held");
    let dry = sandbox.longhaul_json(&["handoff", "prune", "--older-than", "30d", "--dry-run", "--json"]);
    assert_eq!(ids(&sandbox).len(), 6);
    assert!(directory(&sandbox, "first").exists());
    let mut told = sandbox.longhaul_json(&["handoff", "prune", "--older-than", "30d", "--json"]);
    assert_eq!(told["dry_run"], false);
    told["dry_run"] = json!(true);
    assert_eq!(told, dry, "what is said beforehand is what happens");
    let list = |name: &str| -> Vec<String> {
        let list = told[name].as_array().unwrap().iter();
        list.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("removed"), ["failed", "first", "out"]);
    assert_eq!(list("kept"), ["held", "last"]);
    assert_eq!(told["bytes"], 4_000);
    assert_eq!(ids(&sandbox), ["young", "held", "last"]);
    for (id, there) in [("first", false), ("failed", false), ("last", true), ("held", true), ("young", true)]
    {
        assert_eq!(directory(&sandbox, id).exists(), there, "{id}");
        assert_eq!(key(&sandbox, id).exists(), there, "{id}");
    }
    assert!(out.exists() && !key(&sandbox, "out").exists());
    let left = fs_err::read_dir(sandbox.state().join("handoffs")).unwrap().count();
    assert_eq!(left, 3, "nothing is left by half");
    drop(held);
    let text = said(&sandbox, &["prune", "--older-than", "8w"]);
    assert!(text.starts_with("Removed 1 handoff, 2 kB of exports.\n  held  2 kB\n"), "{text}");
    assert!(text.contains("last  the last export of a chain that goes on"), "{text}");
}

#[test]
fn a_span_that_is_none_is_wrong_usage() {
    let sandbox = home(&three());
    for bad in ["30", "d", "-1d", "1.5d", "30 days", "99999999999999999999w", ""] {
        refused(&sandbox, &["prune", &format!("--older-than={bad}")], 2, "as 30d");
    }
    refused(&sandbox, &["prune"], 2, "--older-than");
    assert_eq!(ids(&sandbox).len(), 3);
}

#[test]
fn a_registry_that_cannot_be_read_is_set_aside_and_named() {
    let sandbox = home(&three());
    for (n, broken) in ["{", r#"{"version":1,"handoffs":[{"id":7}]}"#, "\0\0\0"].iter().enumerate() {
        write(&sandbox, broken);
        let aside = sandbox.state().join(format!("chains.json.unreadable-{}", n + 1));
        let said = sandbox.longhaul(&["handoff", "list"]);
        assert_eq!((said.code, &*said.stdout), (0, "There are no handoffs yet.\n"), "{said:?}");
        assert!(said.stderr.contains(aside.to_str().unwrap()), "{said:?}");
        assert_eq!(fs_err::read_to_string(aside).unwrap(), *broken);
    }
    let later = r#"{"version":2,"handoffs":{}}"#;
    write(&sandbox, later);
    for args in [&["list"][..], &["chain", A], &["show", A], &["forget", A], &["prune", "--older-than", "1d"]]
    {
        refused(&sandbox, args, 1, "update longhaul");
    }
    assert_eq!(fs_err::read_to_string(registry(&sandbox)).unwrap(), later);
}

#[test]
fn a_ring_comes_to_an_end() {
    let sandbox = home(&[
        entry("one", "accepted", A, Some(B), 3),
        entry("two", "accepted", B, Some(A), 2),
        entry("self", "accepted", C, Some(C), 1),
        entry("one", "partial", A, Some(B), 1),
    ]);
    let told = sandbox.longhaul_json(&["handoff", "chain", A, "--json"]);
    assert_eq!(told["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(told["handoffs"].as_array().unwrap().len(), 2);
    said(&sandbox, &["chain", C]);
    let told = sandbox.longhaul_json(&["handoff", "prune", "--older-than", "0d", "--json"]);
    assert_eq!(told["removed"], json!([]), "each of them is the last of something");
}

#[test]
fn what_a_registry_claims_reaches_neither_files_nor_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{202e}\nname";
    let mut odd = entry("../../../outside", "prepared", "../../p\u{1b}[2J", Some(evil), 90);
    odd["name"] = json!(evil);
    odd["failure"] = json!({ "kind": evil, "message": evil });
    let mut away = entry("away", "prepared", A, None, 90);
    let sandbox = home(&[]);
    let mine = sandbox.root.path().join("home/outside");
    fs_err::create_dir_all(&mine).unwrap();
    fs_err::write(mine.join("mine"), "x").unwrap();
    odd["directory"] = json!(mine);
    away["directory"] = json!(mine);
    let mut option = entry("-rf", "partial", "p", Some("--dangerously"), 90);
    option["cwd"] = json!("/a\u{1b}b; rm -rf ~");
    write(&sandbox, &json!({ "version": 1, "handoffs": [odd, away, option] }).to_string());
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["show", "../../../outside"],
        &["chain", "../../../outside"],
        &["chain", evil],
        &["show", evil],
        &["show", evil, "--json"],
        &["show", "away"],
    ] {
        let text = said(&sandbox, args);
        let lines: String = text.split('\n').map(clean).collect::<Vec<_>>().join("\n");
        assert_eq!(lines, text, "{args:?}");
    }
    let told = sandbox.longhaul_json(&["handoff", "list", "--json"]);
    let outside = told["handoffs"].as_array().unwrap().iter().find(|it| it["name"] == evil);
    assert_eq!(outside.unwrap()["id"], "../../../outside", "programs get it as it is");
    let told = sandbox.longhaul_json(&["handoff", "show", "--json", "--", "-rf"]);
    assert_eq!(told["go_on"], json!([]), "no command is made of an option");
    let refused = refused(&sandbox, &["show", "\u{1b}[2Jx"], 1, "could not find");
    assert_eq!(refused.stderr.matches('\u{1b}').count(), 0);
    said(&sandbox, &["forget", "../../../outside"]);
    let told = sandbox.longhaul_json(&["handoff", "prune", "--older-than", "1d", "--json"]);
    assert_eq!(told["removed"].as_array().unwrap().len(), 2);
    assert!(mine.join("mine").exists());
    assert_eq!(ids(&sandbox), [""; 0]);
}

#[test]
fn every_verb_has_help_with_an_example() {
    let sandbox = Sandbox::new();
    for verb in ["list", "chain", "show", "forget", "prune"] {
        let text = said(&sandbox, &[verb, "--help"]);
        assert!(text.contains(&format!("longhaul handoff {verb}")) && text.contains("--json"), "{text}");
    }
}
