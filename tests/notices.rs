//! What the hook tells the model and the person, through the built program.

use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Sandbox};

/// A session at this many of 167k tokens.
fn at(used: u64) -> Sandbox {
    let sandbox = Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000");
    sandbox.transcript(&Rows::new().turns(&[used / 2, used - 10, used]).rows);
    sandbox
}

fn prompt(sandbox: &Sandbox) -> Value {
    sandbox.answer(&sandbox.event("UserPromptSubmit", &json!({ "prompt": "go on" })))
}

fn batch(sandbox: &Sandbox) -> Value {
    sandbox.answer(&sandbox.event("PostToolBatch", &json!({ "tool_calls": [] })))
}

#[track_caller]
fn context(answer: &Value, event: &str) -> String {
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], event, "{answer}");
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

const QUIET: Value = Value::Null;

#[test]
fn an_offer_comes_once_when_it_is_due() {
    let sandbox = at(145_000);
    let answer = prompt(&sandbox);
    let text = context(&answer, "UserPromptSubmit");
    for part in ["87 % of its wall", "145k of 167k", "summary", "keep going", "do not ask again", SESSION] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(answer["systemMessage"].as_str().unwrap().contains("a handoff is due"));
    assert_eq!(prompt(&sandbox), QUIET);
}

/// Facts first, in this order, and nothing that was not measured.
#[test]
fn a_notice_states_its_facts_in_order() {
    let sandbox = Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000");
    let rows = Rows::new().turns(&[100_000; 7]).boundary("auto", 167_400, 20_000).turns(&[140_000, 145_000]);
    sandbox.transcript(&rows.rows);
    let text = context(&prompt(&sandbox), "UserPromptSubmit");
    let facts = [
        "87 % of its wall (145k of 167k tokens)",
        "reckoned from what is configured",
        "replaces the conversation by a summary",
        "Active time 0.1h in the 0.1h since it began, 9 responses, 0 tool calls",
        "Compacted once already, 147k tokens dropped",
        "(1) hand off now",
        "(2) keep going",
        "(3) do not ask again in this session",
        "these 145k tokens with every request",
        "22.0k tokens from here",
        "Session 3f2a9c1e",
        " explain --session ",
    ];
    let places = facts.map(|fact| text.find(fact).unwrap_or_else(|| panic!("{fact:?} is not in {text}")));
    assert!(places.is_sorted(), "{places:?}: {text}");
    assert!(text.len() < 1_500, "{} bytes: {text}", text.len());
}

#[test]
fn a_refused_session_hears_why_it_is_at_its_wall() {
    let sandbox = Sandbox::new();
    sandbox.transcript(&Rows::new().turns(&[100_000, 138_000]).prompt("x").too_long().rows);
    let answer = batch(&sandbox);
    let said = "The last request was refused";
    assert!(context(&answer, "PostToolBatch").contains(said), "{answer}");
    assert!(answer["systemMessage"].as_str().unwrap().contains(said), "{answer}");
}

#[test]
fn below_the_gate_nothing_is_offered() {
    assert_eq!(prompt(&at(100_000)), QUIET);
    assert_eq!(batch(&at(150_000)), QUIET, "due waits for a prompt");
}

#[test]
fn critical_reaches_a_run_without_prompts() {
    let sandbox = at(160_000);
    let text = context(&batch(&sandbox), "PostToolBatch");
    assert!(text.contains("hand off before anything else"), "{text}");
    assert_eq!(batch(&sandbox), QUIET);
    assert_eq!(prompt(&sandbox), QUIET);
}

#[test]
fn machines_and_subagents_are_told_nothing() {
    let sandbox = at(160_000);
    for more in [
        json!({ "prompt": "<task-notification><task-id>x</task-id></task-notification>" }),
        json!({ "prompt": "x", "source": "loop_wakeup" }),
        json!({ "prompt": "x", "agent_id": "a1" }),
    ] {
        assert_eq!(sandbox.answer(&sandbox.event("UserPromptSubmit", &more)), QUIET, "{more}");
    }
    let in_agent = json!({ "agent_id": "a1" });
    assert_eq!(sandbox.answer(&sandbox.event("PostToolBatch", &in_agent)), QUIET);
    context(&prompt(&sandbox), "UserPromptSubmit");
}

#[test]
fn unattended_there_is_no_question() {
    let text = context(&prompt(&at(145_000).env("CLAUDE_CODE_SESSION_ATTENDED", "0")), "UserPromptSubmit");
    assert!(!text.contains("ask the person") && text.contains("87 %"), "{text}");
    let text = context(&prompt(&at(160_000).env("CLAUDE_CODE_SESSION_ATTENDED", "0")), "UserPromptSubmit");
    assert!(text.contains("hand off before anything else"), "{text}");
}

/// A project's settings can move the configuration into the project: hooks look for nothing there.
#[test]
fn a_snooze_is_not_kept_where_no_hook_looks() {
    let sandbox = Sandbox::new();
    let moved = sandbox.work().join("moved");
    fs_err::create_dir_all(moved.join("projects/-work")).unwrap();
    let transcript = sandbox.transcript(&Rows::new().turns(&[145_000]).rows);
    fs_err::rename(transcript, moved.join(format!("projects/-work/{SESSION}.jsonl"))).unwrap();
    let sandbox = sandbox.env("CLAUDE_CONFIG_DIR", moved.to_str().unwrap());
    let said = sandbox.longhaul(&["handoff", "snooze", "--session", SESSION]);
    assert_eq!((said.code, said.stderr.contains("outside the project")), (1, true), "{said:?}");
    assert!(!moved.join("longhaul").exists());
}

#[test]
fn a_snooze_silences_the_model_and_can_be_taken_back() {
    let sandbox = at(145_000);
    let told = sandbox.longhaul_json(&["handoff", "snooze", "--session", SESSION, "--json"]);
    assert_eq!(told, json!({ "session": SESSION, "snoozed": true }));
    assert_eq!(prompt(&sandbox), QUIET);
    sandbox.transcript(&Rows::new().turns(&[100_000, 159_000, 160_000]).rows);
    let answer = prompt(&sandbox);
    assert_eq!(answer["hookSpecificOutput"], QUIET);
    assert!(answer["systemMessage"].as_str().unwrap().contains("hand off now"));
    sandbox.longhaul(&["handoff", "snooze", "--session", SESSION, "--off"]);
    sandbox.transcript(&Rows::new().turns(&[100_000, 110_000]).rows);
    assert_eq!(prompt(&sandbox), QUIET);
    sandbox.transcript(&Rows::new().turns(&[100_000, 159_000, 160_000]).rows);
    context(&prompt(&sandbox), "UserPromptSubmit");
}

/// Every command in backquotes is one that this build knows.
#[test]
fn an_offer_names_only_commands_that_exist() {
    let sandbox = at(145_000);
    let text = context(&prompt(&sandbox), "UserPromptSubmit");
    let commands: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands.len(), 3, "{text}");
    for command in commands {
        let words = command.split_once(' ').unwrap().1;
        runs(&sandbox, words);
    }
}

/// Runs what is said after `longhaul`, with a brief where one is named, and without starting a client.
#[track_caller]
fn runs(sandbox: &Sandbox, words: &str) {
    let brief = sandbox.root.path().join("brief.md");
    fs_err::write(&brief, "# State\n").unwrap();
    let mut words: Vec<&str> = words.split(' ').collect();
    if let Some(file) = words.iter_mut().find(|word| **word == "FILE") {
        *file = brief.to_str().unwrap();
        words.push("--prepare");
    }
    let said = sandbox.longhaul(&words);
    // On this machine without a client there is something to find.
    let wanted = i32::from(words[0] == "doctor");
    assert_eq!(said.code, wanted, "{words:?}: {said:?}");
}

/// Every command that a skill names is one that this build knows.
#[test]
fn skills_name_only_commands_that_exist() {
    const LAUNCHER: &str = "sh \"${CLAUDE_PLUGIN_ROOT}/hooks/launcher\" longhaul ";
    let sandbox = at(145_000);
    let skills = fs_err::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/skills")).unwrap();
    let mut found = 0;
    for skill in skills {
        let text = fs_err::read_to_string(skill.unwrap().path().join("SKILL.md")).unwrap();
        for rest in text.split(LAUNCHER).skip(1) {
            let words = rest.split(['`', '\n']).next().unwrap();
            runs(&sandbox, &words.replace("${CLAUDE_SESSION_ID}", SESSION));
            found += 1;
        }
    }
    assert!(found >= 4, "{found}");
}

#[test]
fn a_start_tells_what_resuming_costs_when_it_is_worth_a_choice() {
    let start = |sandbox: &Sandbox, tokens: u64, cold: bool| {
        let more = json!({ "source": "resume", "context_tokens": tokens, "seconds_since_last_response": 9000,
            "prompt_cache_likely_expired": cold, "estimated_cache_write_usd": 1.5 });
        sandbox.answer(&sandbox.event("SessionStart", &more))
    };
    let small = Sandbox::new();
    assert_eq!(start(&small, 20_000, true), QUIET);
    let told = start(&Sandbox::new(), 300_000, true);
    let text = told["systemMessage"].as_str().unwrap();
    assert!(text.contains("300k of 967k") && text.contains("$1.50"), "{text}");
    assert_eq!(start(&Sandbox::new(), 300_000, false), QUIET);
    assert!(start(&Sandbox::new(), 700_000, false)["systemMessage"].is_string());
}

#[test]
fn after_a_compaction_the_model_hears_what_was_dropped_and_where_it_is() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[150_000]).boundary("auto", 150_000, 20_000).rows);
    let answer = sandbox.answer(&sandbox.event("SessionStart", &json!({ "source": "compact" })));
    let text = context(&answer, "SessionStart");
    assert!(text.contains(path.to_str().unwrap()) && text.contains("150k"), "{text}");
    for event in ["PreCompact", "PostCompact"] {
        let more = json!({ "trigger": "auto", "compact_summary": "x" });
        assert_eq!(sandbox.answer(&sandbox.event(event, &more)), QUIET, "{event} answers nothing at all");
    }
}

// thedotmack/claude-mem#3434, JuliusBrussee/caveman#799: a locked or full state directory held the prompt up.
#[test]
fn without_a_place_to_remember_it_speaks_at_most_once_an_hour() {
    let sandbox = at(145_000);
    fs_err::write(sandbox.state(), "a file where the directory should be").unwrap();
    let answer = prompt(&sandbox);
    let text = context(&answer, "UserPromptSubmit");
    // What the client writes down of it is what the next prompt goes by.
    let now = longhaul::base::span::stamp(longhaul::host::clock::now_ms());
    let told = json!({ "type": "attachment", "timestamp": now, "uuid": "n1", "isSidechain": false,
        "attachment": { "type": "hook_additional_context", "hookEvent": "UserPromptSubmit", "content": [text] } });
    let rows = Rows::new().turns(&[72_000, 144_990, 145_000]).raw(told);
    sandbox.transcript(&rows.rows);
    assert_eq!(prompt(&sandbox), QUIET);
}

/// A compaction is kept as a lesson for later sessions under the same inputs, and for no others.
#[test]
fn a_later_session_knows_what_an_earlier_one_learned() {
    let sandbox = Sandbox::new();
    sandbox
        .answer(&sandbox.event("SessionStart", &json!({ "source": "startup", "model": "claude-opus-5-5" })));
    let mut rows = Rows::new().turns(&[50_000, 100_000, 200_000, 300_000, 400_000, 450_000, 467_000]);
    rows = rows.boundary("auto", 468_102, 28_759);
    let later = longhaul::base::span::stamp(longhaul::host::clock::now_ms() + 60_000);
    for row in rows.rows.iter_mut().rev().take(2) {
        row["timestamp"] = json!(later);
    }
    sandbox.transcript(&rows.rows);
    sandbox.answer(&sandbox.event("PostCompact", &json!({ "trigger": "auto" })));
    let mut payload = sandbox.payload(1_000_000, Some(5_000), None);
    payload["session_id"] = json!("another-session");
    let told = sandbox.explain(&payload);
    assert_eq!(told["wall"], json!({ "tokens": 468_102, "kind": "compaction", "source": "learned" }));
    let other = sandbox.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "900000");
    assert_eq!(other.explain(&payload)["wall"]["tokens"], 867_000);
}
