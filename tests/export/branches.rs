//! Rewinds, interruptions, side branches and forks: which rows are live, and where a fork began.

use serde_json::{Value, json};

use super::{export, export_of, place};
use crate::saga::{SESSION, Saga, decision, everything};
use crate::sandbox::Sandbox;

#[test]
fn a_message_queued_before_an_esc_is_live_though_it_is_off_the_chain() {
    let mut saga = Saga::new();
    saga.typed("start").call("t1", "Bash", json!({ "command": "sleep 99" }));
    let call = saga.leaf();
    saga.said.push("QUEUED-ESC".into());
    saga.row(
        json!({ "type": "user", "promptId": "prompt-1", "promptSource": "queued", "turnOrigin": "human",
        "origin": { "kind": "human" }, "message": { "role": "user", "content": "QUEUED-ESC" } }),
    );
    saga.to(&call).result("t1", "User rejected tool use", true, json!({ "toolDenialKind": "user-rejected" }));
    saga.row(
        json!({ "type": "user", "rowSource": "harness", "promptId": "prompt-1", "message": { "role": "user",
        "content": [{ "type": "text", "text": "[Request interrupted by user for tool use]" }] } }),
    );
    saga.typed("next").answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["start", "QUEUED-ESC", "next"]);
}

#[test]
fn a_prompt_given_back_by_esc_is_taken_back() {
    let mut saga = Saga::new();
    saga.typed("start").answer("ok");
    let before = saga.leaf();
    saga.typed("GIVEN BACK");
    saga.rewind(&before, 1, 1).typed("said instead").taken_back().answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["start", "said instead"]);
    assert_eq!(export.index["messages"]["rewound"], 1);
}

#[test]
fn a_rewind_to_the_first_prompt_takes_everything_before_it_back() {
    for parent_is_null in [false, true] {
        let mut saga = Saga::new();
        saga.typed("ABANDONED one").answer("ok").typed("ABANDONED two").answer("ok");
        saga.said.clear();
        saga.set_index(0);
        let leaf = saga.leaf();
        if parent_is_null {
            saga.row(json!({ "type": "user", "parentUuid": null, "promptId": "again", "turnOrigin": "human",
                "turnPosition": { "promptIndex": 1, "turnIndex": 1 },
                "message": { "role": "user", "content": "the new first" } }));
        } else {
            // The client hangs it on the old leaf.
            saga.to(&leaf).typed("the new first");
        }
        saga.taken_back().answer("ok").typed("second").answer("ok");
        let (_sandbox, export) = export_of(&saga);
        assert_eq!(export.entries("01-user-messages"), ["the new first", "second"], "{parent_is_null}");
        assert_eq!(export.index["messages"]["rewound"], 2);
    }
}

#[test]
fn a_rewind_to_the_first_prompt_goes_back_behind_compactions() {
    let mut saga = Saga::new();
    saga.typed("ABANDONED one").answer("ok").typed("ABANDONED two").answer("ok");
    saga.compaction(false, 400_000, &[]).set_index(2).typed("ABANDONED three").answer("ok");
    saga.said.clear();
    // The client hangs it on the old leaf, and goes on counting prompts across a compaction.
    saga.set_index(0).typed("the new first").taken_back().answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["the new first"]);
    assert_eq!(export.index["messages"]["rewound"], 3);
    assert_eq!(export.index["compactions"], json!([]), "it was taken back with what it summarised");
    // A client that counted anew behind it would have gone back no further.
    let mut saga = Saga::new();
    saga.typed("one").answer("ok").compaction(false, 400_000, &[]).set_index(0);
    saga.typed("two").answer("ok").set_index(0).typed("three").taken_back().answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["one", "two", "three"]);
}

#[test]
fn a_rewind_to_a_message_sent_mid_turn_takes_it_back_and_what_followed() {
    let mut saga = Saga::new();
    saga.typed("run it").bash("t1");
    let before = saga.leaf();
    saga.mid_turn("ABANDONED sent meanwhile", false).answer("ok").typed("ABANDONED next").answer("ok");
    saga.to(&before).typed("instead").taken_back().answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["run it", "instead"]);
    assert_eq!(export.index["messages"]["rewound"], 2);
    // Without the note nothing says that it was taken back.
    let mut saga = Saga::new();
    saga.typed("run it").bash("t1");
    let before = saga.leaf();
    saga.mid_turn("sent meanwhile", false).to(&before).typed("next").answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["run it", "sent meanwhile", "next"]);
}

#[test]
fn results_of_calls_made_side_by_side_are_live() {
    let mut saga = Saga::new();
    saga.typed("both at once").call("t1", "Bash", json!({}));
    let one = saga.leaf();
    saga.call("t2", "Bash", json!({}));
    let two = saga.leaf();
    saga.to(&one).with_one_result("t1").to(&two).with_one_result("t2").answer("both done");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.index["rows"]["rewound"], 0);
    assert_eq!(export.index["tools"]["by_name"]["Bash"], 2);
}

impl Saga {
    fn with_one_result(&mut self, id: &str) -> &mut Self {
        self.result(id, "done", false, json!({}))
    }
}

// jhlee0409/claude-code-history-viewer#283: forks hold the rows of their origin.
#[test]
fn a_fork_holds_each_message_once() {
    let mut saga = Saga::new();
    saga.typed("before the fork").answer(&decision("SHARED"));
    let copies = saga.lines.clone();
    saga.lines.extend(copies);
    saga.typed("after the fork").answer("ok");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["before the fork", "after the fork"]);
    assert_eq!(export.entries("02-decisions").len(), 1);
    assert_eq!(export.index["rows"]["copies"], 2);
    // All rows that --fork-session copies carry the promptId of the new prompt.
    let mut fork = Saga::new();
    for text in ["one", "two", "three"] {
        let id = json!({ "type": "user", "promptId": "same", "turnOrigin": "human",
            "message": { "role": "user", "content": text } });
        fork.row(id).answer("ok");
    }
    let (_sandbox, export) = export_of(&fork);
    assert_eq!(export.entries("01-user-messages"), ["one", "two", "three"]);
}

/// What `--fork-session` writes: the rows from the last compaction on, in the name of another session.
fn forked(of: &[Vec<u8>], from: &str, to: &str) -> Vec<Vec<u8>> {
    let boundary = of.iter().rposition(|line| line.windows(16).any(|part| part == b"compact_boundary"));
    let copied = of[boundary.unwrap_or(0)..].iter().map(|line| {
        let mut row: Value = serde_json::from_slice(line).unwrap();
        if row["type"] == "assistant" {
            let asked_in = row["requestSessionId"].as_str().unwrap_or(from).to_owned();
            row["requestSessionId"] = json!(asked_in);
            // The session that the process began with: after /clear another one.
            row["session_id"] = json!("99999999-0000-4000-8000-1234567890ab");
        }
        row["sessionId"] = json!(to);
        row.to_string().into_bytes()
    });
    copied.collect()
}

#[test]
fn a_fork_begins_where_the_session_did_that_was_forked() {
    let (origin, between) = ("11111111-0000-4000-8000-1234567890ab", "22222222-0000-4000-8000-1234567890ab");
    let sandbox = Sandbox::new();
    let path = place(&sandbox, b"");
    let write = |id: &str, bytes: &[u8]| fs_err::write(path.with_file_name(format!("{id}.jsonl")), bytes);
    let mut saga = Saga::new();
    saga.typed("one").answer(&decision("DECISION-ONE"));
    let before = saga.leaf();
    saga.typed("REWOUND").answer("ok").rewind(&before, 1, 1).typed("two").taken_back().answer("ok");
    let kept = saga.leaf();
    saga.compaction(true, 500_000, &[kept]).typed("three").answer("ok");
    let (lines, leaf) = (saga.lines.clone(), saga.leaf());
    saga.typed("LATER: said in the first session after the fork").answer("ok");
    write(origin, &saga.bytes()).unwrap();
    // A fork of a fork that was not compacted in between, and a last one that was.
    saga.lines = forked(&lines, origin, between);
    saga.to(&leaf).typed("four").answer("ok");
    write(between, &saga.bytes()).unwrap();
    saga.lines = forked(&saga.lines, between, SESSION);
    saga.typed("five").answer("ok");
    write(SESSION, &saga.bytes()).unwrap();
    let whole = export(&sandbox, &[]);
    assert_eq!(whole.entries("01-user-messages"), ["one", "two", "three", "four", "five"]);
    assert_eq!(whole.entries("02-decisions").len(), 1);
    assert_eq!(whole.index["messages"]["rewound"], 1);
    assert_eq!(whole.index["compactions"][0]["messages_dropped"], 2);
    assert_eq!(whole.index["parent"]["session"], SESSION);
    let pieces = whole.index["source"]["pieces"].as_array().unwrap();
    assert_eq!(pieces.len(), 2);
    assert!(pieces[0]["transcript"].as_str().unwrap().contains(origin));
    // The copy holds what the pointers point into.
    let text = whole.text("01-user-messages") + &whole.full();
    assert!(text.contains("REWOUND") && !text.contains("LATER"), "{text}");
    let copy = zstd::decode_all(&*fs_err::read(whole.dir.join("parent.jsonl.zst")).unwrap()).unwrap();
    for head in whole.full().lines().filter(|line| line.starts_with("== ")) {
        let at: usize = head.split_once('@').unwrap().1.split(' ').next().unwrap().parse().unwrap();
        assert!(at == 0 || copy[at - 1] == b'\n', "{head}");
    }
    fs_err::remove_file(path.with_file_name(format!("{origin}.jsonl"))).unwrap();
    let alone = export(&sandbox, &[]);
    assert_eq!(alone.entries("01-user-messages"), ["three", "four", "five"], "as much as there is");
    for (export, whole) in [(&whole, true), (&alone, false)] {
        assert_eq!(export.index["source"]["from_the_beginning"], whole);
        assert_eq!(export.text("01-user-messages").contains("\nNot here: "), !whole);
    }
}

#[test]
fn a_lost_row_takes_nothing_back() {
    let mut saga = everything();
    let at = saga.lines.iter().position(|line| line.windows(7).any(|part| part == b"B it is"));
    saga.lines.remove(at.unwrap());
    let (_sandbox, export) = export_of(&saga);
    let mut expected: Vec<&str> = saga.said.iter().map(|text| text.trim()).collect();
    expected.dedup();
    assert_eq!(export.entries("01-user-messages").len(), expected.len());
}
