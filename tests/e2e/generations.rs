//! A handoff as it happens: the notice, the skill, the command in the background, the child that reads, the proof,
//! and the person who goes on there; three generations of it.

use serde_json::{Value, json};

use crate::api::{Answer, Kind, Request};
use crate::bench::{Bench, LONG};
use crate::handoff::client;
use crate::live::{open, session, used};
use crate::longhaul::plugged;
use crate::reader::{self, Manner};
use crate::terminal::Terminal;

const NOTICE: &str = "[longhaul] This session stands at";

/// The model of a session that is told of a handoff: it loads the skill, writes a brief, runs the command that the
/// skill names in the background, and says what that printed.
fn obeys(request: &Request, brief: &str) -> Option<Answer> {
    let new = request.new_text();
    if new.contains(NOTICE) {
        return Some(Answer::tool("Skill", &json!({ "skill": "longhaul:handoff" })).used(313_000));
    }
    if new.contains("# Hand this session over") {
        let line = new.lines().find(|line| line.contains("--brief FILE")).expect("the skill's command");
        let line = line.trim().trim_matches('`').replace("FILE", brief);
        std::fs::write(brief, "# Brief\nThe parser is built in src/parser.rs.\n").unwrap();
        let input = json!({ "command": line, "description": "hand over", "run_in_background": true });
        return Some(Answer::tool("Bash", &input).used(314_000));
    }
    if new.contains("<task-notification>") {
        return Some(Answer::text("HANDED-OVER").used(315_000));
    }
    None
}

fn entries(bench: &Bench) -> Vec<Value> {
    let read = std::fs::read(bench.config().join("longhaul/chains.json")).unwrap_or_default();
    let all: Value = serde_json::from_slice(&read).unwrap_or_default();
    all["handoffs"].as_array().cloned().unwrap_or_default()
}

/// Says the requirement, brings the session near its wall, and waits for the accepted handoff.
fn hands_over(bench: &Bench, terminal: &mut Terminal, requirement: &str, number: usize) -> Value {
    bench.api.usual(used(312_000));
    terminal.say(requirement);
    terminal.wait_for(" 312k/367k ");
    bench.api.usual(used(316_000));
    terminal.say("go on then");
    let accepted = |screen: &str| {
        let entry = entries(bench).get(number).cloned().unwrap_or_default();
        assert!(entry["state"] != "failed" && entry["state"] != "partial", "{entry:#}\n{screen}");
        (entry["state"] == "accepted").then_some(entry)
    };
    let entry = terminal.wait_until("an accepted handoff", accepted);
    terminal.wait_for("HANDED-OVER");
    entry
}

#[test]
fn three_generations_are_handed_over_by_the_skill_and_know_the_first_requirement() {
    let Some(bench) = open() else { return };
    let client = client(&bench);
    let bench = plugged(bench).env("CLAUDE_BIN", &client).arg("--allowedTools").arg("Skill");
    let brief = bench.path("brief.md").to_str().unwrap().to_owned();
    bench.api.script(move |request| {
        if request.kind != Kind::Main {
            return None;
        }
        if reader::is_reading(request) && reader::is_at_it(request) {
            return Some(reader::answer(request, Manner::Honest));
        }
        obeys(request, &brief)
    });
    let mut first = session(&bench, &["--name", "Build the parser"]);
    let one = hands_over(&bench, &mut first, "REQUIREMENT-ONE: never block the redraw", 0);
    assert_eq!((&one["name"], &one["generation"]), (&json!("Build the parser (cont. 2)"), &json!(2)));
    drop(first);
    // The skill's text reached the model, with the session's own id in its command.
    let parent = one["parent"]["session"].as_str().unwrap();
    let skill = format!("longhaul handoff --session {parent} --brief FILE");
    assert!(bench.api.of(Kind::Main).iter().any(|request| request.new_text().contains(&skill)), "{skill}");
    // The command that is printed opens the child, which has read it all.
    let child = one["child"]["session"].as_str().unwrap().to_owned();
    let mut second = session(&bench, &["--resume", &child]);
    second.wait_for("Build the parser (cont. 2)");
    let two = hands_over(&bench, &mut second, "REQUIREMENT-TWO: and keep it small", 1);
    assert_eq!((&two["name"], &two["generation"]), (&json!("Build the parser (cont. 3)"), &json!(3)));
    drop(second);
    assert_eq!(two["parent"]["session"], *child);
    let dir = std::path::PathBuf::from(two["directory"].as_str().unwrap());
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(
        read("01-gen-1.md").contains("REQUIREMENT-ONE")
            && read("01-gen-1.md").contains("The parser is built")
    );
    let said = read("01-user-messages.md");
    assert!(said.contains("REQUIREMENT-TWO") && !said.contains("REQUIREMENT-ONE"), "{said}");
    assert!(!said.contains("<longhaul-reading>"), "the reading prompt is no word of the person's: {said}");
    // And the third generation was given the first one's words.
    let third = two["child"]["session"].as_str().unwrap();
    let rows = bench.transcript(Some(third));
    assert!(rows.iter().any(|row| row["type"] == "user" && row.to_string().contains("REQUIREMENT-ONE")));
    let mut last = session(&bench, &["--resume", third]);
    last.wait_for("Build the parser (cont. 3)");
    bench.api.usual(used(50_000));
    last.say("hello");
    last.wait_for("ANSWER-AT-50000");
    bench.api.wait_until("its request", LONG, |all| {
        all.last().is_some_and(|one| one.text().contains("REQUIREMENT-ONE"))
    });
}
