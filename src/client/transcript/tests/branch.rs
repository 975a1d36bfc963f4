//! The live branch: rewinds, their traps, side branches, and compactions.

use super::*;

/// Three turns with contexts of 20k, 40k and 60k; the row that each prompt hangs on, and the leaf.
fn three_turns(log: &mut Log) -> [String; 4] {
    log.row(json!({"type": "system", "subtype": "informational"}));
    let mut hooks = vec![log.leaf()];
    for n in 1..=3 {
        log.prompt("p").response(&format!("m{n}"), n * 20_000, 50);
        log.row(json!({"type": "system", "subtype": "turn_duration", "durationMs": 5}));
        hooks.push(log.leaf());
    }
    hooks.try_into().unwrap()
}

#[test]
fn a_rewind_goes_back_to_the_parents_context_at_once() {
    let mut log = Log::new();
    let hooks = three_turns(&mut log);
    assert_eq!(log.context(), Some((60_000, false)));
    log.back_to(&hooks[2]).prompt_at("other", 3);
    let figures = log.figures();
    assert_eq!(log.context(), Some((40_000, false)));
    assert_eq!(figures.context_at, figures.last_at, "it became so with the prompt");
    log.response("m4", 47_000, 50);
    assert_eq!(log.context(), Some((47_000, false)));
    assert_eq!(log.figures().responses, 4, "abandoned responses were given all the same");
}

#[test]
fn a_rewind_is_found_however_long_ago_its_prompt_was() {
    let mut log = Log::new();
    let hooks = three_turns(&mut log);
    log.back_to(&hooks[3]).prompt("long");
    for n in 0..5_000 {
        log.answer(
            &format!("long{n}"),
            json!({"input_tokens": 70_000 + n, "output_tokens": 1}),
            json!([{"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": {}}]),
        );
        log.result(&format!("t{n}"));
    }
    log.back_to(&hooks[1]).prompt_at("other", 2);
    assert_eq!(log.context(), Some((20_000, false)));
}

#[test]
fn rewound_to_the_first_prompt_nothing_is_known_until_the_next_response() {
    for parent_is_null in [true, false] {
        let mut log = Log::new();
        let hooks = three_turns(&mut log);
        // Both seen on 2.1.332: a new root, and a prompt on the abandoned leaf.
        log.back_to(&hooks[3]);
        if parent_is_null {
            log.leaf = None;
        }
        log.prompt_at("anew", 1);
        log.raw(
            r#"{"type":"last-prompt","leafUuid":"00000000-0000-0000-0000-000000000000","explicit":true}"#,
        );
        log.row(json!({"type": "attachment", "attachment": {"type": "date"}}));
        let figures = log.figures();
        assert_eq!(figures.context, None, "null: {parent_is_null}");
        assert_eq!(log.tail(1 << 20).context, None);
        assert!(!figures.after_compaction);
        log.response("m4", 21_000, 50);
        assert_eq!(log.context(), Some((21_000, false)));
    }
}

#[test]
fn the_first_prompt_stays_the_first_when_its_turn_has_more_rows() {
    let mut log = Log::new();
    log.prompt("/skill").response("m1", 20_000, 5);
    // A background task's notice repeats the promptIndex.
    log.row(json!({"type": "user", "message": {"content": "<task-notification>…"}, "promptId": "other",
        "origin": {"kind": "task-notification"}, "turnOrigin": "task_notification", "promptSource": "system",
        "turnPosition": {"promptIndex": 1, "turnIndex": 2}}));
    assert_eq!(log.context(), Some((20_000, false)));
    let figures = log.figures();
    assert_eq!((figures.prompts, figures.turns), (1, 2));
    // So does a late row of the first turn itself.
    let first = "prompt-0";
    log.row(json!({"type": "user", "message": {"content": "late"}, "promptId": first, "turnOrigin": "human",
        "turnPosition": {"promptIndex": 1, "turnIndex": 1}}));
    assert_eq!(log.context(), Some((20_000, false)));
}

#[test]
fn a_prompt_without_marks_that_begins_anew_is_unknown() {
    let mut log = Log::new();
    log.row(json!({"type": "user", "message": {"content": "one"}})).response("m1", 20_000, 5);
    log.leaf = None;
    log.row(json!({"type": "user", "message": {"content": "two"}}));
    assert_eq!(log.context(), None);
}

#[test]
fn the_leaf_that_a_compaction_continues_stands_behind_it() {
    let mut log = Log::new();
    log.turns(2, 90_000);
    let leaf = log.leaf();
    log.compaction("manual", 90_100, 7_000).back_to(&leaf).prompt("on the old leaf");
    assert_eq!(log.context(), Some((7_000, true)));
}

#[test]
fn a_prompt_on_a_row_nobody_remembers_is_unknown_only_when_it_steps_back() {
    let mut log = Log::new();
    three_turns(&mut log);
    log.back_to("never-seen").prompt("next");
    assert_eq!(log.context(), Some((60_000, false)));
    log.back_to("never-seen-either").prompt_at("back", 2);
    assert_eq!(log.context(), None);
}

#[test]
fn a_prompt_taken_back_before_any_output_leaves_its_siblings_context() {
    let mut log = Log::new();
    let hooks = three_turns(&mut log);
    log.prompt("taken back").back_to(&hooks[3]).prompt_at("sent", 4);
    assert_eq!(log.context(), Some((60_000, false)));
}

#[test]
fn parallel_results_and_a_queued_prompt_are_one_branch() {
    let mut log = Log::new();
    log.prompt("go");
    let usage = json!({"input_tokens": 9_000, "output_tokens": 10});
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]);
    log.answer("m1", usage.clone(), call("t1"));
    let first = log.leaf();
    log.answer("m1", usage, call("t2"));
    let second = log.leaf();
    log.back_to(&first).result("t1").back_to(&second).result("t2");
    let result = log.leaf();
    // QUEUED-ESC: a person's row beside the result; the chain goes on through the result.
    log.back_to(&second).prompt("queued");
    log.back_to(&result).response("m2", 9_900, 20);
    let figures = log.figures();
    assert_eq!(log.context(), Some((9_900, false)));
    assert_eq!((figures.responses, figures.tool_calls), (2, 2));
}

#[test]
fn notes_that_come_late_on_older_rows_move_nothing() {
    let mut log = Log::new();
    let hooks = three_turns(&mut log);
    log.back_to(&hooks[1]).row(json!({"type": "attachment", "attachment": {"type": "hook_success"}}));
    log.back_to(&hooks[1]).row(json!({"type": "system", "subtype": "stop_hook_summary"}));
    assert_eq!(log.context(), Some((60_000, false)));
}

#[test]
fn rows_kept_across_a_compaction_stand_behind_it() {
    let mut log = Log::new();
    log.turns(6, 118_000).prompt("go");
    let (tail, head) = (log.leaf(), "uuid-12".to_owned());
    log.leaf = None;
    log.row(json!({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": tail,
        "compactMetadata": {"trigger": "auto", "preTokens": 118_606, "postTokens": 3_188,
            "cumulativeDroppedTokens": 115_418, "preservedSegment": {"headUuid": head, "tailUuid": tail},
            "preservedMessages": {"uuids": [head, tail], "allUuids": [head, tail]}}}));
    log.row(json!({"type": "user", "isCompactSummary": true, "message": {"content": "…"}}));
    for kept in [&head, &tail] {
        log.back_to(kept).result("t");
        assert_eq!(log.context(), Some((3_188, true)));
        log.back_to(kept).prompt("next");
        assert_eq!(log.context(), Some((3_188, true)));
    }
}

#[test]
fn a_late_row_from_before_a_compaction_does_not_undo_it() {
    let mut log = Log::new();
    let hooks = three_turns(&mut log);
    log.compaction("auto", 61_000, 5_000);
    log.back_to(&hooks[1]).result("late");
    assert_eq!(log.context(), Some((5_000, true)));
    // A person can only be there by a rewind.
    log.back_to(&hooks[1]).prompt_at("far back", 2);
    assert_eq!(log.context(), Some((20_000, false)));
    assert!(!log.figures().after_compaction);
}

#[test]
fn a_rewind_behind_a_compaction_has_its_estimate() {
    let mut log = Log::new();
    log.turns(3, 94_000).compaction("manual", 94_100, 28_759);
    let summary = log.leaf();
    log.turns(2, 35_000).back_to(&summary).prompt_at("other", 2);
    assert_eq!(log.context(), Some((28_759, true)));
    assert!(log.figures().after_compaction);
}

#[test]
fn a_compaction_that_does_not_tell_leaves_the_context_unknown() {
    let mut log = Log::new();
    log.turns(3, 94_000).row(json!({"type": "system", "subtype": "compact_boundary",
        "compactMetadata": {"trigger": "auto", "preTokens": 94_100}}));
    let figures = log.figures();
    assert_eq!(figures.context, None);
    assert!(figures.after_compaction);
    assert_eq!(figures.last_boundary.unwrap().post, None);
}

#[test]
fn subagents_are_not_the_conversation() {
    let mut log = Log::new();
    log.turns(2, 50_000);
    let before = log.figures();
    let usage = json!({"input_tokens": 700_000, "output_tokens": 9});
    log.wait(60_000);
    log.row(json!({"type": "user", "isSidechain": true, "message": {"content": "do it"}}));
    log.row(
        json!({"type": "assistant", "isSidechain": true, "message": {"id": "s", "model": "m", "usage": usage,
        "content": [{"type": "tool_use", "id": "st", "name": "Bash", "input": {}}]}}),
    );
    log.row(json!({"type": "system", "subtype": "compact_boundary", "isSidechain": true,
        "compactMetadata": {"trigger": "auto", "preTokens": 700_100, "postTokens": 9_000}}));
    assert_eq!(log.figures(), Figures { rows: before.rows + 3, ..before });
}
