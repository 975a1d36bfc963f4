//! Exports, through the built program.

mod branches;
mod places;
mod redaction;
mod words;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::saga::{SESSION, Saga, decision, everything};
use crate::sandbox::Sandbox;

struct Export {
    dir: PathBuf,
    index: Value,
}

fn place(sandbox: &Sandbox, bytes: &[u8]) -> PathBuf {
    let dir = sandbox.config().join("projects/-work");
    fs_err::create_dir_all(&dir).unwrap();
    let path = dir.join(format!("{SESSION}.jsonl"));
    fs_err::write(&path, bytes).unwrap();
    path
}

#[track_caller]
fn export(sandbox: &Sandbox, args: &[&str]) -> Export {
    let words: Vec<&str> = ["export", "--session", SESSION].iter().chain(args).copied().collect();
    let said = sandbox.longhaul(&words);
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    let dir = PathBuf::from(said.stdout.lines().next().unwrap());
    let index = serde_json::from_slice(&fs_err::read(dir.join("04-index.json")).unwrap()).unwrap();
    Export { dir, index }
}

#[track_caller]
fn export_of(saga: &Saga) -> (Sandbox, Export) {
    let sandbox = Sandbox::new();
    place(&sandbox, &saga.bytes());
    let export = export(&sandbox, &[]);
    (sandbox, export)
}

impl Export {
    fn files(&self) -> Vec<String> {
        let entries = fs_err::read_dir(&self.dir).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The parts of a kind as the index names them, marks taken out and interrupted lines joined.
    fn text(&self, group: &str) -> String {
        let mut text = String::new();
        for part in self.parts(group) {
            let whole = fs_err::read_to_string(self.dir.join(part["file"].as_str().unwrap())).unwrap();
            for line in whole.split_inclusive('\n') {
                if !line.starts_with("[[longhaul mark ") {
                    text.push_str(line);
                } else if line.contains("; the line goes on") {
                    assert_eq!(text.pop(), Some('\n'));
                }
            }
        }
        text
    }

    fn parts(&self, group: &str) -> Vec<Value> {
        let groups = self.index["must_read"].as_array().unwrap();
        let found = groups.iter().find(|have| have["name"] == group);
        found.map(|group| group["parts"].as_array().unwrap().clone()).unwrap_or_default()
    }

    fn all_parts(&self) -> Vec<Value> {
        let groups = self.index["must_read"].as_array().unwrap();
        groups.iter().flat_map(|group| group["parts"].as_array().unwrap().clone()).collect()
    }

    fn full(&self) -> String {
        fs_err::read_to_string(self.dir.join("03-full-transcript.txt")).unwrap()
    }

    /// Bodies of entries, by their headings.
    fn entries(&self, group: &str) -> Vec<String> {
        bodies(&self.text(group), "## ")
    }
}

fn bodies(text: &str, heading: &str) -> Vec<String> {
    let mut bodies: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with(heading) {
            bodies.push(String::new());
        } else if let Some(body) = bodies.last_mut() {
            body.push_str(line);
        }
    }
    bodies.iter().map(|body| body.trim().to_owned()).collect()
}

#[test]
fn each_message_of_the_person_stands_in_01_once_and_nothing_else_does() {
    let saga = everything();
    let (_sandbox, export) = export_of(&saga);
    let mut expected: Vec<String> = saga.said.iter().map(|text| text.trim().to_owned()).collect();
    expected.dedup();
    let mut found = export.entries("01-user-messages");
    for body in &mut found {
        if let Some(at) = body.find("\n(with image/png") {
            body.truncate(at);
        }
    }
    assert_eq!(found, expected);
    let text = export.text("01-user-messages");
    for other in ["THE-SUMMARY", "A-NOTIFICATION", "BODY-OF-SKILL", "REWOUND", "[Image: source", "DECISION"] {
        assert!(!text.contains(other), "{other} is in 01");
    }
    assert!(text.contains("said 2 times: again 2026-"), "{text}");
    assert!(text.contains("(with image/png, about 300 bytes; row "));
    let messages = &export.index["messages"];
    assert_eq!(messages["entries"], expected.len());
    assert_eq!(messages["with_repeats"], saga.said.len());
    assert_eq!(messages["rewound"], 2);
}

#[test]
fn questions_stand_with_their_options_and_refusals_with_their_reason() {
    let (_sandbox, export) = export_of(&everything());
    let text = export.text("01-user-messages");
    assert!(
        text.contains("Question: Which store?\n  Option: A: the first\n  Option: B\nAnswer: B\n"),
        "{text}"
    );
    for label in [
        "sent while a turn ran",
        "slash command",
        "plan, accepted",
        "plan, rejected",
        "rejection",
        "said with a permission",
        "answer to a question",
    ] {
        assert!(text.contains(&format!(", {label}\n")), "{label}");
    }
}

#[test]
fn long_texts_of_the_live_branch_alone_are_decisions() {
    let saga = everything();
    let (_sandbox, export) = export_of(&saga);
    let expected: Vec<String> = saga.decided.iter().map(|text| text.trim().to_owned()).collect();
    assert_eq!(export.entries("02-decisions"), expected);
}

#[test]
fn what_was_taken_back_stands_in_03_alone_and_is_marked() {
    let (_sandbox, export) = export_of(&everything());
    let full = export.full();
    for text in ["REWOUND: paint it blue", "REWOUND: and green", "REWOUND-DECISION"] {
        let at = full.find(text).unwrap();
        let head = full[..at].lines().rev().find(|line| line.starts_with("== ")).unwrap();
        assert!(head.ends_with("[rewound]"), "{head}");
    }
    let live = full.find("paint it red").unwrap();
    let head = full[..live].lines().rev().find(|line| line.starts_with("== ")).unwrap();
    assert!(!head.contains("rewound"), "{head}");
    assert_eq!(export.index["rows"]["rewound"], 3);
}

#[test]
fn dropped_context_is_what_each_compaction_took_away() {
    let (_sandbox, export) = export_of(&everything());
    let text = export.text("05-dropped-context");
    let (_, rest) = text.split_once("## Compaction 1, ").unwrap();
    let (first, second) = rest.split_once("## Compaction 2, ").unwrap();
    assert!(first.contains(", automatic: 935k tokens before it, 30.0k after it"), "{first}");
    assert!(second.contains(", manual: 400k tokens before it"));
    for text in ["the first requirement", "DECISION-ONE", "paint it red", "sent mid-turn as blocks"] {
        assert!(first.contains(text) && !second.contains(text), "{text}");
    }
    for text in ["KEPT across the first compaction", "after the first compaction", "DECISION-TWO"] {
        assert!(second.contains(text) && !first.contains(text), "{text}");
    }
    assert!(!text.contains("what is this") && !text.contains("REWOUND"));
    let compactions = export.index["compactions"].as_array().unwrap();
    assert_eq!(compactions.len(), 2);
    assert_eq!(compactions[1]["messages_dropped"], 2);
    assert_eq!(compactions[1]["decisions_dropped"], 1);
}

#[test]
fn without_a_compaction_there_is_no_05() {
    let mut saga = Saga::new();
    saga.typed("hello").answer("hi");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(
        export.files(),
        [
            "01-user-messages.md",
            "02-decisions.md",
            "03-full-transcript.txt",
            "04-index.json",
            "parent.jsonl.zst"
        ]
    );
}

#[test]
fn every_row_stands_in_03_with_its_place() {
    let saga = everything();
    let (_sandbox, export) = export_of(&saga);
    let bytes = saga.bytes();
    let full = export.full();
    let heads: Vec<&str> = full.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(heads.len(), saga.lines.len());
    for (n, (head, line)) in heads.iter().zip(&saga.lines).enumerate() {
        let mut words = head.split(' ').skip(1);
        assert_eq!(words.next().unwrap().parse(), Ok(n + 1));
        let at: usize = words.next().unwrap()[1..].parse().unwrap();
        assert!(bytes[at..].starts_with(line), "{head}");
    }
}

#[test]
fn the_copy_is_the_transcript() {
    let saga = everything();
    let (_sandbox, export) = export_of(&saga);
    let copy = fs_err::read(export.dir.join("parent.jsonl.zst")).unwrap();
    assert_eq!(zstd::decode_all(&*copy).unwrap(), saga.bytes());
    assert_eq!(export.index["source"]["blake3"], blake3::hash(&saga.bytes()).to_hex().as_str());
}

#[test]
fn files_and_directories_are_the_owners_alone() {
    let (sandbox, export) = export_of(&everything());
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&export.dir), 0o700);
    for file in export.files() {
        assert_eq!(mode(&export.dir.join(&file)), 0o600, "{file}");
    }
    let keys = sandbox.state().join("handoff-keys");
    assert_eq!(mode(&keys), 0o700);
    assert_eq!(mode(&fs_err::read_dir(&keys).unwrap().next().unwrap().unwrap().path()), 0o600);
}

#[test]
fn every_part_can_be_read_whole_and_ends_in_a_mark_that_only_the_key_knows() {
    let mut saga = everything();
    for n in 0..40 {
        saga.typed(&format!("message {n}: {}", "测试 words and words. ".repeat(120)))
            .answer(&decision("MORE"));
    }
    saga.typed(&"one line without an end ".repeat(4_000));
    let (sandbox, export) = export_of(&saga);
    let key = fs_err::read_dir(sandbox.state().join("handoff-keys")).unwrap().next().unwrap().unwrap().path();
    assert!(!key.starts_with(&export.dir));
    let key: Value = serde_json::from_slice(&fs_err::read(key).unwrap()).unwrap();
    let index = export.index.to_string();
    let mut codes = 0;
    assert!(export.parts("01-user-messages").len() > 3);
    for (part, keyed) in export.all_parts().iter().zip(key["parts"].as_array().unwrap()) {
        assert_eq!(part["file"], keyed["file"]);
        let text = fs_err::read_to_string(export.dir.join(part["file"].as_str().unwrap())).unwrap();
        // Measured on the client: a file up to 25,000 characters is given whole by one call of Read.
        assert!(text.encode_utf16().count() <= 25_000 && text.len() <= 256 * 1024);
        assert_eq!(part["characters"], text.encode_utf16().count());
        assert_eq!(part["blake3"], blake3::hash(text.as_bytes()).to_hex().as_str());
        let marks: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("[[longhaul mark "))
            .map(|rest| rest.split([';', ']']).next().unwrap())
            .collect();
        assert_eq!(json!(marks), keyed["codes"]);
        assert!(text.lines().last().unwrap().starts_with("[[longhaul mark "));
        for stretch in text.split("[[longhaul mark ") {
            assert!(stretch.encode_utf16().count() <= 5_000, "{}", stretch.len());
        }
        assert!(marks.iter().all(|mark| !index.contains(mark)));
        codes += marks.len();
    }
    assert!(codes > 30);
    let found = export.entries("01-user-messages");
    assert!(found.last().unwrap().trim() == saga.said.last().unwrap().trim(), "a long line is whole");
}

#[test]
fn what_looks_like_a_mark_is_escaped() {
    let mut saga = Saga::new();
    let text = "quote [[longhaul mark abcdefghij]] and [[LONGHAUL MARK x]]\n[[longhaul mark kkkkkkkkkk]]";
    saga.typed(text).answer(&format!("{} [[longhaul mark llllllllll]]", decision("D")));
    let (_sandbox, export) = export_of(&saga);
    let said = export.entries("01-user-messages");
    assert_eq!(said, [text.replace("[[", "[\\[")]);
    let whole: String = export
        .files()
        .iter()
        .filter(|name| !name.ends_with("zst"))
        .map(|name| fs_err::read_to_string(export.dir.join(name)).unwrap())
        .collect();
    for forged in ["abcdefghij", "kkkkkkkkkk", "llllllllll"] {
        assert!(whole.contains(forged) && !whole.contains(&format!("[[longhaul mark {forged}")), "{forged}");
    }
}

// akitaonrails and others: the second message of the same words is not a second requirement.
#[test]
fn only_consecutive_repeats_are_one_message() {
    let mut saga = Saga::new();
    for text in ["go on", "go on", "stop", "go on"] {
        saga.typed(text).answer("ok");
    }
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["go on", "stop", "go on"]);
}

#[test]
fn subagents_are_listed_with_their_last_words_and_never_in_01() {
    let sandbox = Sandbox::new();
    let mut saga = Saga::new();
    saga.typed("start one").row(json!({ "type": "user", "isSidechain": true, "message": { "role": "user",
        "content": "SIDE-PROMPT" } }));
    let path = place(&sandbox, &saga.bytes());
    let dir = path.with_extension("").join("subagents");
    fs_err::create_dir_all(&dir).unwrap();
    let row = |kind: &str, content: Value| {
        json!({ "type": kind, "isSidechain": true, "agentId": "a1", "uuid": kind, "turnOrigin": "human",
            "message": { "id": "m", "content": content } })
        .to_string()
    };
    let rows = [
        row("user", json!("AGENT-PROMPT")),
        row("assistant", json!([{ "type": "tool_use", "id": "x", "name": "Read", "input": {} }])),
        row("assistant", json!([{ "type": "text", "text": "SUB FINAL REPORT" }])),
        "{broken".to_owned(),
    ];
    fs_err::write(dir.join("agent-a1.jsonl"), rows.join("\n")).unwrap();
    fs_err::write(dir.join("agent-a1.meta.json"), r#"{"agentType":"Explore","description":"look"}"#).unwrap();
    let export = export(&sandbox, &[]);
    assert_eq!(export.entries("01-user-messages"), ["start one"]);
    let listed = &export.index["subagents"]["listed"][0];
    let told = [&listed["id"], &listed["kind"], &listed["final_answer"]].map(|value| value.as_str().unwrap());
    assert_eq!(told, ["a1", "Explore", "SUB FINAL REPORT"]);
    assert_eq!(
        [&listed["rows"], &listed["tool_calls"], &listed["damaged"]].map(Value::as_u64),
        [4, 1, 1].map(Some)
    );
    assert_eq!(export.index["rows"]["of_subagents"], 1);
}

#[test]
fn damaged_input_is_exported_and_counted() {
    let mut saga = Saga::new();
    saga.typed("before").answer("ok");
    saga.raw("null").raw("[1,2]").raw("\"text\"").raw("{\"type\":\"user\",\"uuid\":").raw("");
    saga.raw(r#"{"type":"something-new","x":1}"#);
    // A lost block: alone it is damage, before a row it takes nothing from it; blank lines are none.
    saga.raw("\0\0\0\0").raw("\0 \0\r").raw("\0\0{\"type\":\"mode\"}").raw(" \r");
    let bad = json!({ "type": "user", "uuid": "bad-1", "parentUuid": saga.leaf(), "turnOrigin": "human",
        "promptId": "b", "message": { "role": "user", "content": "not all @ is text" } });
    let bad = bad.to_string().into_bytes();
    let at = bad.iter().position(|byte| *byte == b'@').unwrap();
    let broken = |with: &[u8]| [&bad[..at], with, &bad[at + 1..]].concat();
    saga.raw(broken(b"\xff\xfe"));
    let second = String::from_utf8(broken(br"\ud83d")).unwrap();
    saga.raw(second.replace(&saga.leaf(), "bad-1").replace(r#""uuid":"bad-1""#, r#""uuid":"bad-2""#));
    saga.to("bad-2");
    let huge = "x y z ".repeat(1_500_000);
    saga.typed(&huge);
    // Before a long row a lost block is no reason to cut it.
    saga.lines.last_mut().unwrap().insert(0, 0);
    saga.call("big", "Bash", json!({})).result("big", &"line of output\n".repeat(600_000), false, json!({}));
    saga.typed("after").answer("ok");
    let mut bytes = saga.bytes();
    bytes.extend_from_slice(br#"{"type":"user","uuid":"end","message":{"content":"cut he"#);
    let sandbox = Sandbox::new();
    place(&sandbox, &bytes);
    let export = export(&sandbox, &[]);
    let damage = &export.index["damage"];
    let kinds = json!({ "lone_surrogates": 1, "not_utf8": 1, "unfinished": 1, "unreadable": 6 });
    assert_eq!(damage["by_kind"], kinds);
    assert_eq!(damage["lines"], 9);
    let said = export.entries("01-user-messages");
    assert_eq!(said.len(), 5);
    assert!(said[1].starts_with("not all \u{fffd}") && said[2].starts_with("not all \u{fffd}"));
    assert_eq!(said[3].len(), huge.trim().len(), "9 MB of the person's words are whole");
    assert_eq!(said[4], "after");
    assert!(export.full().contains("something-new"));
}

#[test]
fn a_last_row_without_its_line_feed_counts() {
    let mut saga = Saga::new();
    saga.typed("one").answer("ok").typed("two");
    let sandbox = Sandbox::new();
    let bytes = saga.bytes();
    place(&sandbox, &bytes[..bytes.len() - 1]);
    let export = export(&sandbox, &[]);
    assert_eq!(export.entries("01-user-messages"), ["one", "two"]);
    assert_eq!(export.index["damage"]["lines"], 0);
}

#[test]
fn the_budget_moves_the_oldest_decisions_first_and_clips_pasted_blocks_second() {
    let mut saga = everything();
    for n in 0..20 {
        saga.typed(&format!("requirement {n}")).answer(&decision(&format!("NUMBER-{n}")));
    }
    let sandbox = Sandbox::new();
    place(&sandbox, &saga.bytes());
    let roomy = export(&sandbox, &[]);
    assert_eq!(roomy.index["budget"]["decisions_moved"], 0);
    assert_eq!(roomy.index["budget"]["fits"], true);
    let used = roomy.index["budget"]["uncut"].as_u64().unwrap();
    let some = export(&sandbox, &["--budget", &(used - 300).to_string()]);
    let moved = some.index["budget"]["decisions_moved"].as_u64().unwrap();
    assert!((1..10).contains(&moved), "{moved}");
    let older = fs_err::read_to_string(some.dir.join("02b-older-decisions.md")).unwrap();
    assert!(older.contains("DECISION-ONE") && !some.text("02-decisions").contains("DECISION-ONE"));
    assert!(some.text("05-dropped-context").contains("(in 02b-older-decisions.md)"));
    assert!(some.text("01-user-messages").contains("oldest decisions are in 02b"));
    assert_eq!(some.index["budget"]["blocks_clipped"], 0);
    let tight = export(&sandbox, &["--budget", "2500"]);
    assert_eq!(tight.index["budget"]["blocks_clipped"], 1);
    let said = tight.text("01-user-messages");
    assert!(said.contains("a pasted block of") && said.contains("of parent.jsonl.zst"), "{said}");
    for text in saga.said.iter().filter(|text| !text.contains("pasted_content")) {
        assert!(said.contains(text.as_str()), "{text}");
    }
    let least = export(&sandbox, &["--budget", "10"]);
    assert_eq!(least.index["budget"]["fits"], false);
}

#[test]
fn people_are_told_what_was_written_and_where() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let said = sandbox.longhaul(&["export", "--session", SESSION]);
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    let dir = Path::new(said.stdout.lines().next().unwrap());
    assert!(dir.starts_with(sandbox.state().join("handoffs")) && dir.is_dir());
    assert!(said.stdout.contains("01-user-messages") && said.stdout.contains("damaged lines 0"));
    let help = sandbox.longhaul(&["export", "--help"]);
    assert!(help.stdout.contains("Examples:\n  longhaul export --session "), "{help:?}");
}

#[test]
fn programs_are_told_the_whole_index() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let told = sandbox.longhaul_json(&["export", "--session", SESSION, "--json"]);
    let dir = PathBuf::from(told["directory"].as_str().unwrap());
    let on_disk: Value = serde_json::from_slice(&fs_err::read(dir.join("04-index.json")).unwrap()).unwrap();
    assert_eq!(told["index"], on_disk);
    assert_eq!((&told["session"], &told["id"]), (&json!(SESSION), &on_disk["id"]));
}
