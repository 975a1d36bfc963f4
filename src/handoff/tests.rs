//! Laws of exports, on sessions made at random: nothing panics, and each of the person's messages stands in
//! 01 once.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::ancestor::Ancestor;
use super::branch::{self, Link, State, states};
use super::{Done, Request, export};
use crate::host::Host;
use crate::store::Store;

fn exported(bytes: &[u8], budget: u64) -> (tempfile::TempDir, Done) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::locate(&Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0), &[]).unwrap();
    let transcript = root.path().join("t.jsonl");
    fs_err::write(&transcript, bytes).unwrap();
    let request = Request { transcript, budget, now_ms: 1_796_059_311_000, ..Request::default() };
    let done = export(&request, &store, &mut ()).unwrap();
    (root, done)
}

/// The text of a kind of parts, without marks.
fn text(done: &Done, name: &str) -> String {
    let group = done.groups.iter().find(|group| group.name == name).unwrap();
    let mut text = String::new();
    for part in &group.parts {
        for line in fs_err::read_to_string(done.dir.join(&part.file)).unwrap().split_inclusive('\n') {
            if !line.starts_with(super::parts::MARK) {
                text.push_str(line);
            } else if line.contains("; the line goes on") {
                text.pop();
            }
        }
    }
    text
}

/// What a reader counts: `## 7`, `### Message 7`, `### Decision 7`.
fn looks_like_a_heading(line: &str) -> bool {
    let starts = ["## ", "### Message ", "### Decision "];
    starts.iter().filter_map(|start| line.strip_prefix(start)).any(|rest| rest.starts_with(char::is_numeric))
}

#[derive(Debug, Clone)]
enum Step {
    Say(String),
    Answer,
    Compact,
    /// Back to before the last this many prompts.
    Rewind(usize),
    MidTurn(String),
    Noise(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-zé测\u{1f600} \n\\[\\]\"\\\\<>#]{1,40}";
    let headings = "(\n## 7. x\n)|(\n### (Message|Decision) 7, x)|(\n## seven)";
    prop_oneof![
        4 => words.prop_map(Step::Say),
        1 => headings.prop_map(Step::Say),
        4 => Just(Step::Answer),
        1 => Just(Step::Compact),
        1 => (1_usize..4).prop_map(Step::Rewind),
        1 => words.prop_map(Step::MidTurn),
        1 => prop::collection::vec(any::<u8>(), 0..30).prop_map(Step::Noise),
    ]
}

/// Rows of the steps, and the serial numbers of what is live and of what was taken back.
fn told(steps: &[Step]) -> (Vec<u8>, Vec<usize>, Vec<usize>) {
    let (mut bytes, mut leaf): (Vec<u8>, Value) = (Vec::new(), Value::Null);
    let (mut live, mut gone): (Vec<(usize, Value)>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut floor = 0;
    for (n, step) in steps.iter().enumerate() {
        let uuid = json!(format!("u{n}"));
        let mut row = json!({ "uuid": uuid, "parentUuid": leaf, "isSidechain": false });
        match step {
            Step::Say(words) => {
                live.push((n, leaf.clone()));
                row["type"] = json!("user");
                row["turnOrigin"] = json!("human");
                row["promptId"] = json!(format!("p{n}"));
                row["message"] = json!({ "content": format!("#{n}# {words}") });
            }
            Step::MidTurn(words) => {
                live.push((n, Value::Bool(false)));
                row["type"] = json!("attachment");
                row["attachment"] = json!({ "type": "queued_command", "humanTurn": true,
                    "commandMode": "prompt", "prompt": format!("#{n}# {words}") });
            }
            Step::Answer => {
                row["type"] = json!("assistant");
                row["message"] =
                    json!({ "id": format!("m{n}"), "content": [{ "type": "text", "text": "ok" }] });
            }
            Step::Compact => {
                row["type"] = json!("system");
                row["subtype"] = json!("compact_boundary");
                row["parentUuid"] = Value::Null;
                row["logicalParentUuid"] = leaf.clone();
                row["compactMetadata"] = json!({ "trigger": "auto", "preTokens": 9, "postTokens": 1 });
                floor = live.len();
            }
            Step::Rewind(count) => {
                // To a prompt that has a parent, and not behind a compaction; the next prompt seals it.
                let Some(Step::Say(_)) = steps.get(n + 1) else { continue };
                let from = live.len().saturating_sub(*count).max(floor);
                if let Some((_, parent)) = live.get(from).filter(|(_, parent)| parent.is_string()) {
                    leaf = parent.clone();
                    gone.extend(live.drain(from..).map(|(n, _)| n));
                }
                continue;
            }
            Step::Noise(noise) => {
                bytes.extend(noise.iter().filter(|byte| **byte != b'\n'));
                bytes.push(b'\n');
                continue;
            }
        }
        leaf = uuid;
        bytes.extend(row.to_string().into_bytes());
        bytes.push(b'\n');
    }
    (bytes, live.into_iter().map(|(n, _)| n).collect(), gone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn each_live_message_stands_in_01_once_and_what_was_taken_back_does_not(
        steps in prop::collection::vec(step(), 1..40),
        budget in prop_oneof![Just(1_u64), Just(200), Just(1_000_000)],
    ) {
        let (bytes, live, gone) = told(&steps);
        let (_root, done) = exported(&bytes, budget);
        for part in done.groups.iter().flat_map(|group| &group.parts) {
            let text = fs_err::read_to_string(done.dir.join(&part.file)).unwrap();
            let headings = text.lines().filter(|line| looks_like_a_heading(line)).count();
            prop_assert_eq!(headings as u64, part.entries, "{}", text);
        }
        let said = text(&done, "01-user-messages");
        for n in live {
            prop_assert_eq!(said.matches(&format!("#{n}# ")).count(), 1, "{} in {}", n, said);
        }
        for n in gone {
            prop_assert_eq!(said.matches(&format!("#{n}# ")).count(), 0, "{} in {}", n, said);
        }
    }

    #[test]
    fn no_bytes_make_an_export_fail(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        rows in prop::collection::vec(r#"\{"type":"(user|assistant|system|attachment|x)","uuid":"[ab]","parentUuid":("[abc]"|null|7),"(message|attachment|toolUseResult)":(\{"content":(\[\{"type":"(text|tool_result|tool_use|image)","text":"x"\}\]|"y"|null)\}|"z"|\[\])\}"#, 0..12),
    ) {
        let mut all = rows.join("\n").into_bytes();
        all.extend(&bytes);
        exported(&all, 10);
    }

    #[test]
    fn every_row_is_decided_whatever_hangs_on_what(
        links in prop::collection::vec((0_u64..12, 0_u64..12, 0_u32..4, 0_u32..256), 0..40),
    ) {
        let links: Vec<Link> = links
            .into_iter()
            .map(|(uuid, parent, turn, flags)| Link { uuid: uuid + 1, parent, turn, flags })
            .collect();
        let states = states(&links);
        prop_assert_eq!(states.len(), links.len());
        prop_assert!(states.iter().all(|state| *state != State::Open));
    }
}

#[test]
fn a_ring_of_parents_ends() {
    let link = |uuid, parent| Link { uuid, parent, turn: 0, flags: branch::MOVES };
    assert_eq!(states(&[link(1, 2), link(2, 1), link(3, 3)]), [State::Live; 3]);
}

#[test]
fn an_export_holds_its_brief_and_the_words_of_its_ancestors() {
    let row = |n: u32, words: &str| {
        let row = json!({ "type": "user", "uuid": format!("u{n}"), "turnOrigin": "human", "message": { "content": words } });
        row.to_string().into_bytes()
    };
    let long = format!("REQUIREMENT-ONE {}", "never block the redraw, ".repeat(3_000));
    let (_first, parent) = exported(&row(1, &long), 1_000_000);
    let root = tempfile::tempdir().unwrap();
    let store = Store::locate(&Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0), &[]).unwrap();
    let transcript = root.path().join("t.jsonl");
    fs_err::write(&transcript, row(2, "REQUIREMENT-TWO")).unwrap();
    let request = Request {
        transcript,
        budget: 1_000_000,
        brief: Some("what is built".into()),
        ancestors: vec![Ancestor { export: parent.dir.clone(), reader: None }],
        ..Request::default()
    };
    let done = export(&request, &store, &mut ()).unwrap();
    let names: Vec<&str> = done.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["00-brief", "01-user-messages", "01-gen-1", "02-decisions"]);
    assert!(text(&done, "00-brief").contains("what is built"));
    assert!(text(&done, "01-gen-1").contains(&long), "whole, though it stood in several parts");
    let entries: u64 = done.groups[2].parts.iter().map(|part| part.entries).sum();
    assert_eq!(entries, 1, "its messages count as entries here too");
    assert!(!text(&done, "01-user-messages").contains("REQUIREMENT-ONE"));
}
