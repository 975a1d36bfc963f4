//! Inputs from public reports, each with its reference.

use super::*;

fn usage(total: u64) -> Value {
    json!({"input_tokens": total, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 0})
}

// CC#72600, CC#72414: fired at 468k on a window of 1M with nothing configured.
#[test]
fn an_automatic_compaction_gives_an_interval() {
    let mut log = Log::new();
    log.turns(8, 467_000).compaction("auto", 468_102, 28_759);
    let interval = log.figures().interval.unwrap();
    assert_eq!((interval.low, interval.pre, interval.turns, interval.responses), (466_000, 468_102, 8, 8));
    assert_eq!(interval.model.as_deref(), Some("claude-opus-5-5"));
    assert!(!interval.discarded);
}

// CC#36014, 42375, 52981: a person's own compaction says nothing about the trigger.
#[test]
fn a_manual_compaction_teaches_nothing() {
    let mut log = Log::new();
    log.turns(8, 170_000).compaction("manual", 171_000, 9_000);
    let figures = log.figures();
    assert_eq!(figures.interval, None);
    assert_eq!((figures.auto, figures.manual), (0, 1));
}

// CC#86863: the trigger moved from 167k to 146k; the newest evidence counts.
#[test]
fn the_newest_interval_wins() {
    let mut log = Log::new();
    log.turns(8, 166_000).compaction("auto", 167_100, 20_000);
    log.turns(8, 145_000).compaction("auto", 146_200, 20_000);
    assert_eq!(log.figures().interval.unwrap().pre, 146_200);
}

// CC#31526: the bar says 69 %, the API says no.
#[test]
fn a_prompt_that_is_too_long_is_a_refusal_in_any_case() {
    for text in ["Prompt is too long", "API Error: 400 prompt is too long: 210000 tokens > 200000 maximum"] {
        let mut log = Log::new();
        log.turns(2, 138_000).prompt("more").api_error(text);
        log.row(json!({"type": "system", "subtype": "turn_duration", "durationMs": 5}));
        let figures = log.figures();
        assert!(figures.refused, "{text}");
        assert_eq!(figures.context.unwrap().tokens, 138_000);
        assert_eq!(figures.responses, 2, "the client's own words are no response");
        assert!(log.tail(1 << 20).refused);
    }
}

#[test]
fn a_refusal_may_stand_in_the_details_alone() {
    let mut log = Log::new();
    log.turns(2, 138_000).row(
        json!({"type": "assistant", "isApiErrorMessage": true, "error": "invalid_request",
        "errorDetails": "400 {\"message\":\"Prompt is too long: 210000 tokens\"}",
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 400"}]}}),
    );
    assert!(log.figures().refused);
}

#[test]
fn a_refusal_ends_with_the_next_answer_prompt_or_compaction() {
    let refused = |then: fn(&mut Log) -> &mut Log| {
        let mut log = Log::new();
        then(log.turns(2, 138_000).api_error("Prompt is too long"));
        log.figures().refused
    };
    assert!(refused(|log| log));
    assert!(!refused(|log| log.response("m9", 90_000, 5)));
    assert!(!refused(|log| log.prompt("again")));
    assert!(!refused(|log| log.compaction("auto", 138_500, 20_000)));
    assert!(!refused(|log| log.api_error("API Error: 529 overloaded")), "another error is no wall");
    // A person who quotes the words, and a model that says them, refuse nothing.
    let mut log = Log::new();
    log.prompt("why is my prompt is too long?").answer(
        "m1",
        usage(500),
        json!([{"type": "text", "text": "Prompt is too long"}]),
    );
    assert!(!log.figures().refused);
}

// CC#58268, 86785, 19669; ccstatusline PR 524; CC#29651.
#[test]
fn after_a_compaction_its_own_estimate_counts() {
    let mut log = Log::new();
    log.turns(3, 94_000).compaction("manual", 94_100, 28_759);
    let figures = log.figures();
    let context = figures.context.unwrap();
    assert_eq!((context.tokens, context.estimated, context.after_compaction), (28_759, true, true));
    assert!(figures.after_compaction);
    assert_eq!(figures.context_at, figures.last_boundary.map(|boundary| boundary.at_ms));
    assert_eq!(log.tail(1 << 20).context.unwrap().tokens, 28_759);

    log.prompt("on").response("m20", 31_000, 20);
    let figures = log.figures();
    assert_eq!(log.context(), Some((31_000, false)));
    assert!(!figures.after_compaction);
}

// CC#62268, 52648; claude-hud#329: a resumed session starts with what its last response left.
#[test]
fn a_resumed_session_has_its_last_context() {
    let mut log = Log::new();
    log.turns(3, 83_400);
    log.row(json!({"type": "system", "subtype": "turn_duration", "durationMs": 5}));
    log.raw(r#"{"type":"last-prompt","leafUuid":"uuid-9","sessionId":"s"}"#);
    assert_eq!(log.context(), Some((83_400, false)));
}

// CCometixLine: no transcript, no number.
#[test]
fn nothing_read_is_nothing_known() {
    let figures = figures_of(b"\n");
    assert_eq!(figures, Figures::default());
    assert_eq!(Progress::default().figures().context, None);
}

// Haleclipse/CCometixLine#8: the counter falls to zero after a failed response.
#[test]
fn the_clients_own_words_do_not_empty_the_context() {
    let mut log = Log::new();
    log.turns(2, 61_000).row(json!({"type": "assistant", "message": {"id": "x", "model": "<synthetic>",
        "content": [{"type": "text", "text": "No response requested."}],
        "usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}}}));
    let figures = log.figures();
    assert_eq!(figures.context.unwrap().tokens, 61_000);
    assert_eq!(figures.responses, 2);
}

// CC#91775; ccstatusline#549, PR 462; titeya/dms-claudecode#52: totals 1.4 to 2.5 times too large.
#[test]
fn a_response_over_three_rows_counts_once_with_its_largest_output() {
    let mut log = Log::new();
    log.prompt("go");
    for output in [1, 1, 217] {
        let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 5_000, "output_tokens": output});
        log.answer(
            "msg_1",
            usage,
            json!([{"type": "tool_use", "id": format!("t{output}"), "name": "Bash",
            "input": {}}]),
        );
    }
    let figures = log.figures();
    assert_eq!((figures.responses, figures.tool_calls), (1, 2));
    assert_eq!(figures.context.unwrap().tokens, 5_210 + 217);
    // The last one may also be smaller: the figure of a row that was repeated before it was complete.
    log.answer("msg_1", json!({"input_tokens": 5_210, "output_tokens": 1}), json!([]));
    assert_eq!(log.context(), Some((5_427, false)));
}

// jhlee0409/claude-code-history-viewer#283.
#[test]
fn a_response_without_an_id_is_told_by_its_uuid() {
    let mut log = Log::new();
    for _ in 0..2 {
        log.row(json!({"type": "assistant", "message": {"model": "m", "usage": usage(7), "content": "ok"}}));
    }
    assert_eq!(log.figures().responses, 2);
    let again = log.bytes.clone();
    log.bytes.extend_from_slice(&again);
    assert_eq!(log.figures().responses, 2, "the same rows once more are copies");
}

// git-ai-project/git-ai#2268: one bad byte blocks all.
#[test]
fn a_bad_byte_spoils_nothing() {
    let mut log = Log::new();
    log.turns(1, 10_000);
    log.raw(b"{\"type\":\"user\",\"message\":{\"content\":\"\xff\xfe\"},\"uuid\":\"x\",\"parentUuid\":\"uuid-2\"}");
    log.raw(b"\xff\xfe").turns(1, 12_000);
    let figures = log.figures();
    assert_eq!(figures.context.unwrap().tokens, 12_000);
    assert_eq!((figures.damaged, figures.rows, figures.responses), (1, 5, 2));
}

// letta-ai/letta-code#3580; NousResearch/hermes-agent#1193.
#[test]
fn a_last_line_without_its_end_waits() {
    let mut log = Log::new();
    log.turns(1, 10_000);
    let whole = log.bytes.clone();
    log.response("m9", 20_000, 5);
    let cut = whole.len() + 60;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&log.bytes[..cut]).unwrap();
    let mut progress = Progress::default();
    progress.advance(&file, None).unwrap();
    assert_eq!(progress.figures(), figures_of(&whole));
    assert_eq!(progress.figures().damaged, 0);
    assert!(!progress.advance(&file, None).unwrap().changed);
    file.write_all(&log.bytes[cut..]).unwrap();
    let done = progress.advance(&file, None).unwrap();
    assert!(done.complete && done.changed && done.read > 0);
    assert_eq!(progress.figures(), log.figures());
}

// CC#62851: a transcript that begins with a `pr-link` row.
#[test]
fn unknown_rows_pass() {
    let mut log = Log::new();
    log.raw(r#"{"type":"pr-link","prNumber":7,"prUrl":"https://example.com/7","sessionId":"s"}"#);
    log.turns(1, 10_000);
    log.raw(r#"{"type":"made-up-tomorrow","usage":{"input_tokens":1}}"#)
        .raw(r#"{"sessionId":"s"}"#)
        .raw("{}");
    let figures = log.figures();
    assert_eq!(figures.context.unwrap().tokens, 10_000);
    assert_eq!((figures.damaged, figures.rows), (0, 6));
}

// anneschuth/claude-threads#60: a result's usage is the sum of all requests.
#[test]
fn a_results_usage_is_no_context() {
    let mut log = Log::new();
    log.turns(1, 10_000);
    let sum = json!({"input_tokens": 900_000, "output_tokens": 5_000});
    log.row(json!({"type": "result", "usage": sum, "message": {"id": "r", "model": "m", "usage": sum}}));
    log.raw(
        r#"{"usage":{"input_tokens":900000},"type":"result","message":{"usage":{"input_tokens":900000}}}"#,
    );
    log.raw(r#"{"type":"result","message":{"usage":{"input_tokens":900000}}}"#);
    let figures = log.figures();
    assert_eq!(figures.context.unwrap().tokens, 10_000);
    assert_eq!(figures.responses, 1);
}
