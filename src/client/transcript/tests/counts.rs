//! Counters, times and intervals.

use super::*;

fn turn_origin(log: &mut Log, origin: &str, id: &str, meta: bool) {
    log.row(json!({"type": "user", "message": {"content": "x"}, "promptId": id, "turnOrigin": origin, "isMeta": meta}));
}

#[test]
fn active_time_leaves_breaks_out() {
    // The example of the specification: 10:00 10:01 10:02 18:02 18:03 18:04.
    let mut log = Log::new();
    for minutes in [0, 1, 1, 480, 1, 1] {
        log.wait(minutes * 60_000 - 1000).row(json!({"type": "system", "subtype": "x"}));
    }
    let figures = log.figures();
    assert_eq!(figures.active_ms, 4 * 60_000);
    assert_eq!(figures.span_ms(), 484 * 60_000);
}

#[test]
fn a_gap_of_ten_minutes_is_a_break() {
    let active = |ms: i64| {
        let mut log = Log::new();
        log.prompt("a").wait(ms - 1000).response("m", 500, 1);
        log.figures().active_ms
    };
    assert_eq!(active(599_999), 599_999);
    assert_eq!(active(600_000), 0);
}

#[test]
fn rows_out_of_order_count_no_time_twice() {
    let mut log = Log::new();
    for offset in [1_000, 3_000, 2_000, 2_500, 4_000] {
        log.row(json!({"type": "system", "subtype": "x", "timestamp": transcripts::stamp(START + offset)}));
    }
    let figures = log.figures();
    assert_eq!((figures.active_ms, figures.span_ms()), (3_000, 3_000));
}

#[test]
fn a_clock_that_was_wrong_once_does_not_stop_time() {
    let mut log = Log::new();
    log.row(json!({"type": "system", "subtype": "x", "timestamp": "2199-01-01T00:00:00.000Z"}));
    log.prompt("a").response("m", 500, 1);
    assert_eq!(log.figures().active_ms, 1_000);
}

#[test]
fn stamps_of_every_form_are_read() {
    for (stamp, want) in [
        ("2026-11-30T17:31:34.400Z", Some(1_796_059_894_400)),
        ("2026-11-30T17:31:34Z", Some(1_796_059_894_000)),
        ("2026-11-30T18:31:34.400+01:00", Some(1_796_059_894_400)),
        ("2024-02-29T00:00:00.000Z", Some(1_709_164_800_000)),
        ("2023-02-29T00:00:00.000Z", None),
        ("2026-11-30T17:31:34.4x0Z", None),
        ("", None),
    ] {
        let mut log = Log::new();
        log.row(json!({"type": "user", "timestamp": stamp, "message": {"content": "a"}}));
        let figures = log.figures();
        assert_eq!((figures.first_at, figures.last_at), (want, want), "{stamp}");
        assert_eq!(figures.prompts, 1);
    }
}

#[test]
fn tool_calls_count_once_each() {
    let mut log = Log::new();
    let usage = json!({"input_tokens": 900, "output_tokens": 1});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"type": "tool_use", "id": "no"}});
    log.answer("m1", usage.clone(), json!([{"type": "text", "text": "a"}, call("t1")]));
    log.answer("m1", usage.clone(), json!([call("t1"), call("t2")]));
    log.answer(
        "m2",
        usage,
        json!([{"type": "tool_use", "name": "Bash"}, {"type": "tool_use", "name": "Bash"}]),
    );
    let figures = log.figures();
    assert_eq!((figures.responses, figures.tool_calls), (2, 4));
}

#[test]
fn turns_are_told_by_their_origin() {
    let mut log = Log::new();
    turn_origin(&mut log, "human", "p1", false);
    turn_origin(&mut log, "human", "p1", true); // the same turn's companion
    turn_origin(&mut log, "task_notification", "p2", false);
    turn_origin(&mut log, "scheduled", "p3", true);
    turn_origin(&mut log, "sdk", "p4", false);
    // Rows that begin no turn once rows say who began one.
    for text in ["<command-name>/compact</command-name>", "plain words", "[Request interrupted by user]"] {
        log.row(json!({"type": "user", "message": {"content": text}}));
    }
    log.result("t1");
    let figures = log.figures();
    assert_eq!((figures.turns, figures.prompts), (4, 1));
}

#[test]
fn older_turns_are_told_by_what_they_are_not() {
    let mut log = Log::new();
    for (text, meta) in [
        ("a question", false),
        ("<command-message>x</command-message><command-name>/x</command-name>", false),
        ("<command-name>/clear</command-name>", false),
        ("<local-command-stdout></local-command-stdout>", false),
        ("Caveat: the messages below …", true),
        ("[Request interrupted by user for tool use]", false),
        ("", false),
    ] {
        log.row(json!({"type": "user", "isMeta": meta, "message": {"content": text}}));
    }
    log.row(json!({"type": "user", "message": {"content": [{"type": "image", "source": {}}]}}));
    log.row(json!({"type": "user", "message": {"content": "<task-notification>…"}}));
    log.row(json!({"type": "user", "message": {"content": "x"}, "origin": {"kind": "task-notification"}}));
    log.row(json!({"type": "user", "message": {"content": "x"}, "promptSource": "system"}));
    log.row(json!({"type": "user", "message": {"content": "x"}, "promptSource": "queued"}));
    log.result("t1");
    let figures = log.figures();
    assert_eq!((figures.turns, figures.prompts), (7, 4));
}

#[test]
fn copies_of_a_fork_are_turns_of_their_own() {
    let mut log = Log::new();
    for index in 1..=3 {
        log.row(json!({"type": "user", "message": {"content": "x"}, "promptId": "the-forks", "turnOrigin": "human",
            "turnPosition": {"promptIndex": index, "turnIndex": index}}));
    }
    assert_eq!(log.figures().turns, 3);
}

#[test]
fn what_a_person_types_meanwhile_is_a_prompt() {
    let mut log = Log::new();
    log.prompt("go").response("m1", 900, 1);
    let first = log.figures();
    log.row(
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": [{"type": "text"}],
        "commandMode": "prompt", "origin": {"kind": "human"}, "humanTurn": true}}),
    );
    log.row(
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "<task-notification>",
        "commandMode": "task-notification", "origin": {"kind": "task-notification"}}}),
    );
    let figures = log.figures();
    assert_eq!((figures.prompts, figures.turns), (2, 1));
    assert_eq!(figures.last_prompt_at, first.last_at.map(|at| at + 1000));
}

#[test]
fn its_own_notice_is_found_by_name() {
    let mut log = Log::new();
    log.row(json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["other"]}}));
    assert_eq!(log.figures().last_notice_at, None);
    log.row(json!({"type": "attachment", "attachment": {"type": "hook_additional_context",
        "content": ["longhaul: 85 % of the wall"]}}));
    let at = log.figures().last_at;
    log.prompt("what is longhaul?");
    log.row(json!({"type": "attachment", "attachment": {"type": "file", "content": "longhaul"}}));
    assert_eq!(log.figures().last_notice_at, at);
}

#[test]
fn dropped_tokens_are_added_up() {
    let mut log = Log::new();
    log.turns(1, 100_000).compaction("auto", 100_500, 10_500);
    log.turns(1, 60_000).compaction("manual", 60_000, 20_000);
    let figures = log.figures();
    assert_eq!((figures.auto, figures.manual, figures.dropped), (1, 1, 130_000));
    // Where the client's own sum is larger, it knows of compactions that are not in this file.
    log.row(json!({"type": "system", "subtype": "compact_boundary", "compactMetadata":
        {"trigger": "auto", "preTokens": 50_000, "postTokens": 10_000, "cumulativeDroppedTokens": 400_000}}));
    assert_eq!(log.figures().dropped, 400_000);
    // A compaction that grew the context dropped nothing.
    log.compaction("manual", 5_000, 9_000);
    assert_eq!(log.figures().dropped, 400_000);
}

#[test]
fn a_short_conversation_teaches_nothing() {
    let mut log = Log::new();
    log.turns(6, 150_000).compaction("auto", 151_000, 20_000);
    let taught = log.figures().interval;
    assert_eq!(taught.as_ref().unwrap().pre, 151_000);
    log.turns(5, 900_000).compaction("auto", 977_000, 20_000);
    let figures = log.figures();
    assert_eq!(figures.interval.unwrap().pre, 151_000, "the older one stands");
    assert_eq!((figures.auto, figures.last_boundary.unwrap().pre), (2, 977_000));
}

#[test]
fn only_a_context_that_was_answered_is_below_the_trigger() {
    let mut log = Log::new();
    log.turns(6, 150_000).response("big", 300_000, 5).compaction("auto", 300_500, 20_000);
    let interval = log.figures().interval.unwrap();
    assert_eq!((interval.low, interval.pre), (150_000, 300_500));
}

#[test]
fn an_estimate_was_not_answered() {
    let mut log = Log::new();
    log.turns(1, 90_000).compaction("auto", 91_000, 50_000);
    log.turns(7, 40_000).compaction("auto", 52_000, 9_000);
    assert_eq!(log.figures().interval.unwrap().low, 39_000);
}

#[test]
fn copies_of_rows_count_nothing() {
    let mut log = Log::new();
    log.turns(3, 9_000);
    let (want, again) = (log.figures(), log.bytes.clone());
    log.bytes.extend_from_slice(&again);
    assert_eq!(log.figures(), Figures { rows: want.rows * 2, ..want });
}

#[test]
fn an_abandoned_context_was_not_answered() {
    let mut log = Log::new();
    log.turns(6, 150_000);
    let hook = log.leaf();
    log.prompt("big").response("big", 300_000, 5).back_to(&hook).prompt_at("small", 7);
    log.response("small", 151_000, 5).prompt("more").compaction("auto", 151_500, 20_000);
    assert_eq!(log.figures().interval.unwrap().low, 150_000);
}

#[test]
fn a_later_context_well_above_discards_the_interval() {
    let mut log = Log::new();
    log.turns(7, 150_000).compaction("auto", 151_000, 20_000);
    let discarded = |log: &Log| log.figures().interval.unwrap().discarded;
    log.response("a", 153_000, 5);
    assert!(!discarded(&log), "2,000 above is within the slack");
    log.response("b", 153_001, 5);
    assert!(discarded(&log));
    // A compaction after it: that context was only reached, not answered.
    log.compaction("manual", 153_100, 9_000);
    assert!(!discarded(&log));
    // Reached and answered: that stays, whatever a person does later.
    log.response("c", 160_000, 5).response("d", 161_000, 5).compaction("manual", 161_100, 9_000);
    assert!(discarded(&log));
    // Until there is a newer one.
    log.turns(7, 166_000).compaction("auto", 167_000, 9_000);
    assert!(!discarded(&log));
}

#[test]
fn another_models_context_discards_nothing() {
    let mut log = Log::new();
    log.turns(7, 150_000).compaction("auto", 151_000, 20_000);
    for n in 0..2 {
        log.row(json!({"type": "assistant", "message": {"id": n.to_string(), "model": "claude-other-9",
            "usage": {"input_tokens": 400_000}, "content": "ok"}}));
    }
    let figures = log.figures();
    assert!(!figures.interval.unwrap().discarded);
    assert_eq!(figures.context.unwrap().model.as_deref(), Some("claude-other-9"));
    assert_eq!(figures.max_since_boundary, 400_000);
}

#[test]
fn models_past_the_table_share_a_place_and_break_nothing() {
    let mut log = Log::new();
    for n in 0..40 {
        log.row(json!({"type": "assistant", "message": {"id": n.to_string(), "model": format!("m-{n}{}", "é".repeat(150)),
            "usage": {"input_tokens": 5}, "content": "ok"}}));
    }
    let model = log.figures().context.unwrap().model.unwrap();
    assert!(model.starts_with("m-39é") && model.len() <= 200);
}

#[test]
fn counts_beyond_reason_stay_numbers() {
    let mut log = Log::new();
    log.answer(
        "m",
        json!({"input_tokens": u64::MAX, "output_tokens": 1e300, "cache_read_input_tokens": -5,
        "cache_creation_input_tokens": "many"}),
        json!(null),
    );
    log.compaction("auto", u64::MAX, 1);
    let figures = log.figures();
    assert_eq!(figures.context.unwrap().tokens, 1);
    assert_eq!(figures.max_since_boundary, 0);
    assert_eq!((figures.auto, figures.responses, figures.damaged), (1, 1, 0));
}
