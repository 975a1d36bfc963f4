//! Exports, through the built program.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::saga::{SESSION, Saga, decision, everything};
use crate::sandbox::{Said, Sandbox};

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

#[test]
fn rows_from_before_marks_are_understood() {
    let mut saga = Saga::new();
    for content in [
        json!("an old prompt"),
        json!([{ "type": "text", "text": "<system-reminder>no</system-reminder>" }, { "type": "text", "text": "blocks" }]),
        json!("<local-command-stdout>no</local-command-stdout>"),
        json!("[Request interrupted by user]"),
        json!("<command-name>/compact</command-name>\n<command-args>keep the API notes</command-args>"),
        json!("<command-name>/clear</command-name>\n<command-args></command-args>"),
        json!("<bash-input>make test</bash-input>"),
    ] {
        saga.row(json!({ "type": "user", "message": { "role": "user", "content": content } })).answer("ok");
    }
    saga.call("t", "Write", json!({}));
    saga.result(
        "t",
        "The user doesn't want to proceed with this tool use. the user said:\nold reason",
        true,
        json!({}),
    );
    let (_sandbox, export) = export_of(&saga);
    let expected = ["an old prompt", "blocks", "/compact keep the API notes", "!make test", "old reason"];
    assert_eq!(export.entries("01-user-messages"), expected);
}

/// What the client marks as typed is the person's, whatever it begins with.
#[test]
fn a_prompt_that_begins_like_a_text_of_the_client_is_kept() {
    let texts = [
        "[Request interrupted by user for tool use] stands in the log: why?",
        "<system-reminder> is shown to me, what is it?",
        "<longhaul-reading> stands at the top of that session",
        "<bash-stdout>x</bash-stdout> is what it printed",
        "<local-command-stdout> too",
        "<task-notification> came twice",
        "<command-name>/foo</command-name> must be escaped",
        "<bash-input>ls</bash-input> must be escaped",
    ];
    let mut saga = Saga::new();
    for text in texts {
        saga.typed(text).answer("ok");
        saga.mid_turn(&format!("{text} (again)"), false).answer("ok");
    }
    let reminder = json!({ "type": "text", "text": "<system-reminder>no</system-reminder>" });
    saga.prompt_row(json!([reminder, { "type": "text", "text": "[Request interrupted by user] once more" }]));
    saga.answer("ok").slash("probe:hello", "and <b>");
    let (_sandbox, export) = export_of(&saga);
    let mut expected: Vec<String> =
        texts.iter().flat_map(|text| [(*text).to_owned(), format!("{text} (again)")]).collect();
    expected.push("[Request interrupted by user] once more".to_owned());
    expected.push("/probe:hello and <b>".to_owned());
    assert_eq!(export.entries("01-user-messages"), expected);
}

#[test]
fn a_command_for_the_shell_is_the_persons_and_its_output_is_not() {
    let mut saga = Saga::new();
    let shell = |saga: &mut Saga, text: &str, origin: Value| {
        let content = json!({ "role": "user", "content": text });
        saga.row(json!({ "type": "user", "promptId": "sh", "message": content, "turnOrigin": origin }));
    };
    saga.typed("before").answer("ok");
    // The client says of neither who typed it, and begins the turn with the output.
    shell(&mut saga, "<bash-input>make test</bash-input>", Value::Null);
    shell(&mut saga, "<bash-stdout>all well</bash-stdout><bash-stderr></bash-stderr>", json!("human"));
    saga.answer("noted").typed("after");
    let (_sandbox, export) = export_of(&saga);
    assert_eq!(export.entries("01-user-messages"), ["before", "!make test", "after"]);
}

/// A question without its options' descriptions.
fn question(text: &str, options: &[&str]) -> Value {
    let options: Vec<Value> = options.iter().map(|label| json!({ "label": label })).collect();
    json!({ "question": text, "options": options })
}

#[test]
fn questions_stand_in_the_order_in_which_they_were_asked() {
    let mut saga = Saga::new();
    let questions = json!([question("Zebra?", &["A"]), question("Apple?", &["B"])]);
    saga.typed("ask me").call("t", "AskUserQuestion", json!({ "questions": questions }));
    let answers = json!({ "Apple?": "B", "Zebra?": "(notes only)", "Unknown?": "C" });
    let notes = json!({ "Zebra?": { "notes": "my note" } });
    let given = json!({ "questions": questions, "answers": answers, "annotations": notes });
    saga.result("t", "answered", false, json!({ "toolUseResult": given }));
    // Another tool's answers are nobody's words; nor do odd calls end the export.
    saga.call("odd", "AskUserQuestion", json!(["questions"]));
    saga.call("u", "mcp__quiz__run", json!({}));
    saga.result("u", "done", false, json!({ "toolUseResult": { "answers": { "Q?": "A" } } }));
    let (_sandbox, export) = export_of(&saga);
    let expected = "Question: Zebra?\n  Option: A\nAnswer: (notes only)\nNote: my note\n\
                    Question: Apple?\n  Option: B\nAnswer: B\nQuestion: Unknown?\nAnswer: C";
    assert_eq!(export.entries("01-user-messages"), ["ask me", expected]);
}

/// A session in which questions were put off by "Chat about this".
fn chatted(questions: &Value, told: &str) -> Saga {
    let mut saga = Saga::new();
    saga.typed("ask me").call("t", "AskUserQuestion", json!({ "questions": questions }));
    let feedback = format!("The user wants to clarify these questions.\n    Start by asking.\n\n{told}");
    let more = json!({ "toolUseResult": "Error: no", "toolDenialKind": "user-rejected",
        "userFeedback": feedback, "holdsPersonsWords": true });
    saga.result("t", "no", true, more);
    saga
}

#[test]
fn chatting_about_a_question_is_not_said_by_the_person() {
    let questions = json!([question("Which?", &["A", "B"])]);
    for told in ["", "    Questions asked:\n- \"Which?\"\n  (No answer provided)"] {
        let (_sandbox, export) = export_of(&chatted(&questions, told));
        assert_eq!(export.entries("01-user-messages"), ["ask me"], "{told:?}");
    }
}

#[test]
fn answers_given_before_chatting_about_the_rest_are_kept() {
    let questions = json!([
        question("Which?", &["A", "B"]),
        question("How many?", &["1"]),
        question("What for?", &["x"])
    ]);
    let told = "    Questions asked:\n- \"Which?\"\n  Answer: my own\nwords\n- \"How many?\"\n  \
                (No answer provided)\n- \"What for?\"\n  Answer: x";
    let (_sandbox, export) = export_of(&chatted(&questions, told));
    let expected = "Question: Which?\n  Option: A\n  Option: B\nAnswer: my own\nwords\n\
                    Question: What for?\n  Option: x\nAnswer: x";
    assert_eq!(export.entries("01-user-messages"), ["ask me", expected]);
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

#[track_caller]
fn fails(sandbox: &Sandbox, args: &[&str], says: &str) -> Said {
    let said = sandbox.longhaul(&[&["export"], args].concat());
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains(says) && said.stdout.is_empty(), "{said:?}");
    said
}

fn nothing_is_left(sandbox: &Sandbox) {
    for dir in ["handoffs", "handoff-keys"] {
        let entries = fs_err::read_dir(sandbox.state().join(dir)).map_or(0, Iterator::count);
        assert_eq!(entries, 0, "{dir}");
    }
}

#[test]
fn a_missing_or_unreadable_transcript_is_an_error_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &["--transcript", "none.jsonl"], "could not read the transcript");
    fails(&sandbox, &["--transcript", "none.jsonl", "--budget", "9"], "could not read the transcript");
    fails(&sandbox, &["--transcript", ".", "--budget", "9"], "could not read the transcript");
    fails(&sandbox, &["--session", SESSION], "could not find session");
    fails(&sandbox, &["--session", "../x"], "is no session id");
    nothing_is_left(&sandbox);
    assert_eq!(sandbox.longhaul(&["export"]).code, 2);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let file = sandbox.work().join("a-file");
    fs_err::write(&file, "").unwrap();
    let below = file.join("out");
    fails(&sandbox, &["--session", SESSION, "--out", below.to_str().unwrap()], "could not write the export");
    let full = sandbox.work().join("full");
    fs_err::create_dir(&full).unwrap();
    fs_err::write(full.join("mine"), "kept").unwrap();
    fails(&sandbox, &["--session", SESSION, "--out", full.to_str().unwrap()], "is not empty");
    assert_eq!(fs_err::read(full.join("mine")).unwrap(), b"kept");
    assert_eq!(fs_err::read_dir(sandbox.work()).unwrap().count(), 2, "no litter");
    nothing_is_left(&sandbox);
}

#[test]
fn a_given_directory_is_used_and_its_key_lies_elsewhere() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let out = sandbox.work().join("made/here");
    let made = export(&sandbox, &["--out", out.to_str().unwrap()]);
    assert_eq!(made.dir, out);
    let id = made.index["id"].as_str().unwrap();
    assert!(id.ends_with("Z-3f2a9c1e"), "{id}");
    assert!(sandbox.state().join("handoff-keys").join(format!("{id}.json")).is_file());
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

/// Twenty credentials that are none, in the shapes of their issuers; put together here so that no scanner
/// finds one in this file.
fn planted() -> Vec<(String, String)> {
    let run = |n: usize| "q7Rk2mXw9Lp4Tz8Vb3Nc6Hd1Jf5Gs0Ya".chars().cycle().take(n).collect::<String>();
    let hex = |n: usize| "0a1b2c3d4e5f6789".chars().cycle().take(n).collect::<String>();
    let upper = |n: usize| run(n).to_uppercase();
    let bare = [
        format!("sk-{}-api03-{}", "ant", run(40)),
        format!("sk-{}-{}", "proj", run(48)),
        format!("AK{}{}", "IA", upper(16)),
        format!("gh{}_{}", "p", run(36)),
        format!("github_{}_{}", "pat", run(60)),
        format!("gl{}-{}", "pat", run(20)),
        format!("xo{}-{}", "xb", run(30)),
        format!("AI{}{}", "za", run(35)),
        format!("sk_{}_{}", "live", run(24)),
        format!("np{}_{}", "m", run(36)),
        format!("py{}-{}", "pi", run(60)),
        format!("h{}_{}", "f", run(34)),
        format!("S{}.{}.{}", "G", run(22), run(43)),
        format!("ey{0}{1}.ey{0}{1}.{1}", "J", run(30)),
        format!("12345678:{}", run(35)),
        format!("do{}_v1_{}", "p", hex(64)),
    ];
    let mut all: Vec<(String, String)> = bare.into_iter().map(|secret| (secret.clone(), secret)).collect();
    for (before, after) in
        [("AWS_SECRET_ACCESS_KEY=", ""), ("postgres://me:", "@db.local/x"), ("\"password\": \"", "\"")]
    {
        let secret = run(30 + all.len());
        all.push((format!("{before}{secret}{after}"), secret));
    }
    let body = format!("{}\n{}", run(64), run(50));
    all.push((format!("-----BEGIN {0} KEY-----\n{body}\n-----END {0} KEY-----", "OPENSSH PRIVATE"), body));
    all
}

#[test]
fn redaction_finds_every_planted_credential_in_every_file() {
    let planted = planted();
    assert_eq!(planted.len(), 20);
    let mut saga = Saga::new();
    for (n, (text, _)) in planted.iter().enumerate() {
        let id = format!("c{n}");
        match n % 5 {
            0 => saga.typed(&format!("use\n{text}\nthere")).answer("ok"),
            1 => saga.typed("what is it").answer(&format!("{} {text} it is", decision("D"))),
            2 => saga.call(&id, "Bash", json!({ "command": format!("curl\n{text}\n") })).result(
                &id,
                "ok",
                false,
                json!({}),
            ),
            3 => saga.call(&id, "Read", json!({})).result(&id, &format!("a\n{text}\nb"), false, json!({})),
            _ => saga.mid_turn(&format!("{}{text}", "x ".repeat(290)), n % 2 == 0).answer(text),
        };
    }
    saga.raw(json!({ "type": "custom-title", "customTitle": planted[0].0 }).to_string());
    let sandbox = Sandbox::new();
    let path = place(&sandbox, &saga.bytes());
    let agents = path.with_extension("").join("subagents");
    fs_err::create_dir_all(&agents).unwrap();
    let row = json!({ "type": "assistant", "message": { "id": "m", "content": [{ "type": "text", "text": planted[3].0 }] } });
    fs_err::write(agents.join("agent-a.jsonl"), row.to_string()).unwrap();
    let redacted = export(&sandbox, &["--redact"]);
    assert!(!redacted.files().contains(&"parent.jsonl.zst".to_owned()), "{:?}", redacted.files());
    for name in redacted.files() {
        let text = fs_err::read_to_string(redacted.dir.join(&name)).unwrap();
        for (_, secret) in &planted {
            for piece in secret.lines() {
                assert!(!text.contains(piece), "{name}: {piece}");
            }
        }
    }
    assert!(redacted.index["redaction"]["masked"].as_u64().unwrap() >= 20);
    let open = export(&sandbox, &[]);
    let all: String = open
        .files()
        .iter()
        .filter(|name| !name.ends_with("zst"))
        .map(|name| fs_err::read_to_string(open.dir.join(name)).unwrap())
        .collect();
    assert!(
        planted.iter().all(|(text, _)| all.contains(text.lines().next().unwrap())),
        "they were there to find"
    );
    let said = sandbox.longhaul(&["export", "--session", SESSION, "--redact"]);
    assert!(
        said.stdout.contains("masked ") && said.stdout.contains("there is no compressed copy"),
        "{said:?}"
    );
}

#[test]
fn twenty_at_once_have_twenty_places() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let running: Vec<_> = (0..20)
        .map(|_| {
            let mut command = sandbox.command("longhaul");
            command
                .args(["export", "--session", SESSION])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    for dir in ["handoffs", "handoff-keys"] {
        assert_eq!(fs_err::read_dir(sandbox.state().join(dir)).unwrap().count(), 20, "{dir}");
    }
}

#[test]
fn what_a_killed_export_left_is_gone_after_the_next() {
    let sandbox = Sandbox::new();
    let mut saga = everything();
    for _ in 0..40 {
        saga.typed(&"words without an end ".repeat(20_000));
    }
    place(&sandbox, &saga.bytes());
    let count = |dir: &str| fs_err::read_dir(sandbox.state().join(dir)).map_or(0, Iterator::count);
    let mut command = sandbox.command("longhaul");
    command.args(["export", "--session", SESSION]).stdout(std::process::Stdio::null());
    let mut killed = command.spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let begun = || {
        let drafts = fs_err::read_dir(sandbox.state().join("handoffs")).into_iter().flatten().flatten();
        drafts.flat_map(|draft| fs_err::read_dir(draft.path())).any(|mut files| files.next().is_some())
    };
    while !begun() {
        assert!(std::time::Instant::now() < until, "no export was begun");
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    assert!(!killed.wait().unwrap().success(), "it was done before it was killed");
    assert_eq!((count("handoffs"), count("handoff-keys")), (1, 1), "what is to be taken away");
    export(&sandbox, &[]);
    assert_eq!((count("handoffs"), count("handoff-keys")), (1, 1));
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
