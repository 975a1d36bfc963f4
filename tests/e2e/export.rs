//! Exports of what the real client writes, read by its own Read tool.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::{Answer, Gate, Kind};
use crate::bench::{Bench, LONG, wait};
use crate::live::{bash, session, session_id};
use crate::longhaul::{longhaul, plugged};
use crate::saga;
use crate::terminal::ESCAPE;

/// An export of a session of this bench, and its index.
#[track_caller]
pub fn export(bench: &Bench, id: &str) -> (PathBuf, Value) {
    let told = longhaul(bench, &["export", "--session", id]);
    let dir = PathBuf::from(told.lines().next().unwrap());
    let index = serde_json::from_slice(&std::fs::read(dir.join("04-index.json")).unwrap()).unwrap();
    (dir, index)
}

fn parts(index: &Value) -> Vec<String> {
    let groups = index["must_read"].as_array().unwrap().iter();
    let parts = groups.flat_map(|group| group["parts"].as_array().unwrap());
    parts.map(|part| part["file"].as_str().unwrap().to_owned()).collect()
}

/// A part without its marks.
pub fn part(dir: &Path, file: &str) -> String {
    let text = std::fs::read_to_string(dir.join(file)).unwrap();
    text.split_inclusive('\n').filter(|line| !line.starts_with("[[longhaul mark")).collect()
}

/// The messages of 01, in order: how each was said, as its heading has it behind the date, and what.
pub fn entries(dir: &Path) -> Vec<(String, String)> {
    let text = part(dir, "01-user-messages.md");
    let entry = |entry: &str| {
        let (heading, words) = entry.split_once('\n').unwrap();
        (heading.split_once(", ").unwrap().1.to_owned(), words.trim().to_owned())
    };
    text.split("\n## ").skip(1).map(entry).collect()
}

/// The messages of 01, in order.
pub fn said(dir: &Path) -> Vec<String> {
    entries(dir).into_iter().map(|(_, words)| words).collect()
}

#[test]
fn one_read_call_returns_each_part_whole() {
    let Some(bench) = Bench::open() else { return };
    let mut saga = saga::everything();
    for n in 0..12 {
        let paste = format!("message {n}: {}", "测试 \"words\" and 👩‍👩‍👧 signs. ".repeat(200));
        saga.typed(&paste).answer(&saga::decision("MORE"));
    }
    let lines = (0..9_000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    saga.typed(&lines).typed(&"one line without an end ".repeat(3_000));
    let projects = bench.config().join("projects/-parent");
    std::fs::create_dir_all(&projects).unwrap();
    std::fs::write(projects.join(format!("{}.jsonl", saga::SESSION)), saga.bytes()).unwrap();
    let (dir, index) = export(&bench, saga::SESSION);
    let files = parts(&index);
    assert!(files.len() > 8, "{files:?}");
    let read = |file: &String| json!({ "file_path": dir.join(file) });
    let first = Answer::tool("Read", &read(&files[0]));
    bench.api.next([files[1..].iter().fold(first, |answer, file| answer.and_tool("Read", &read(file)))]);
    let bench = bench.arg("--add-dir").arg(dir.to_str().unwrap());
    bench.ask("read it", &["--allowedTools", "Read"]);
    let told = bench.api.of(Kind::Main)[1].new_text();
    assert!(!told.contains("PARTIAL view") && !told.contains("exceeds maximum"), "cut");
    // Read numbers the lines; each stands there whole and in order. Results come in any order.
    for file in &files {
        let text = std::fs::read_to_string(dir.join(file)).unwrap();
        let mut rest = &*told;
        for (n, line) in (1..).zip(text.lines()) {
            let numbered = format!("{n}\t{line}");
            let at = rest.find(&numbered).unwrap_or_else(|| panic!("{file}:{n} was not given: {line:.60}"));
            rest = &rest[at + numbered.len()..];
        }
    }
}

#[test]
fn what_a_person_says_to_the_real_client_stands_in_01() {
    let Some(bench) = crate::live::open() else { return };
    let bench = plugged(bench);
    let decision = saga::decision("DECISION");
    bench.api.next([
        Answer::text(&decision),
        bash("echo step"),
        Answer::text("DONE-TWO"),
        Answer::text("DONE-THREE"),
    ]);
    let mut terminal = session(&bench, &[]);
    terminal.say("the first requirement");
    terminal.wait_for("DECISION");
    terminal.say("run it");
    terminal.wait_for("DONE-TWO");
    terminal.say("for the record 测试");
    terminal.wait_for("DONE-THREE");
    let id = session_id(&bench);
    let wanted = ["the first requirement", "run it", "for the record 测试"];
    let found = wait("three messages in 01", LONG, || {
        let (dir, index) = export(&bench, &id);
        (index["messages"]["entries"] == 3).then(|| (said(&dir), index))
    });
    assert_eq!(found.0, wanted);
    assert_eq!(found.1["damage"]["lines"], 0);
    assert_eq!(found.1["tools"]["by_name"]["Bash"], 1);
    assert_eq!(found.1["decisions"]["entries"], 1);
    assert_eq!(found.1["rows"]["rewound"], 0);
}

#[test]
fn words_sent_meanwhile_are_kept_and_a_prompt_given_back_is_not() {
    let Some(bench) = crate::live::open() else { return };
    let gate = Gate::default();
    bench.api.next([
        bash("sleep 4"),
        Answer::text("DONE-ONE"),
        Answer::text("NEVER-SEEN").behind(&gate),
        Answer::text("DONE-TWO"),
    ]);
    let mut terminal = session(&bench, &[]);
    terminal.say("run it");
    terminal.wait_for("sleep 4");
    terminal.say("sent meanwhile");
    terminal.wait_for("DONE-ONE");
    terminal.say("GIVEN-BACK");
    bench.api.wait_for(3, LONG);
    // Esc before any output puts the prompt back into the box, which Ctrl-U empties.
    terminal.wait_for("esc to interrupt");
    terminal.key(ESCAPE);
    terminal.wait_until("the turn's end", |screen| (!screen.contains("esc to interrupt")).then_some(()));
    terminal.wait_for("GIVEN-BACK");
    terminal.key("\u{15}");
    terminal.wait_until("an empty box", |screen| (!screen.contains("GIVEN-BACK")).then_some(()));
    terminal.say("said instead");
    terminal.wait_for("DONE-TWO");
    let id = session_id(&bench);
    let (said, index) = wait("the last message in 01", LONG, || {
        let (dir, index) = export(&bench, &id);
        let said = said(&dir);
        said.contains(&"said instead".to_owned()).then_some((said, index))
    });
    assert_eq!(said, ["run it", "sent meanwhile", "said instead"]);
    assert_eq!(index["messages"]["by_kind"]["mid_turn"], 1);
    assert_eq!(index["messages"]["rewound"], 1);
    gate.open();
}
