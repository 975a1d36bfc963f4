//! Files that grow, are cut, are replaced, and hold lines that no reader wants.

use std::cell::Cell;
use std::io::{Seek as _, SeekFrom};

use super::super::lines::{self, CHUNK, GIVEN_UP, LINE_MAX, Options, Place};
use super::*;
use crate::host::clock::Deadline;

/// A row of `length` bytes or a little more, most of them in one string, its usage behind it.
fn huge_response(length: usize, total: u64) -> Vec<u8> {
    let text = "word \\\"quoted\\\" \\n".repeat(length / 18 + 1);
    format!(
        "{{\"parentUuid\":null,\"message\":{{\"id\":\"huge\",\"model\":\"claude-opus-5-5\",\"content\":[{{\"type\":\"tool_use\",\
         \"id\":\"t\",\"input\":{{\"a\":\"{text}\"}}}}],\"usage\":{{\"input_tokens\":{total}}}}},\"type\":\"assistant\",\
         \"uuid\":\"h\",\"timestamp\":\"2026-11-30T17:31:34.400Z\"}}"
    )
    .into_bytes()
}

#[test]
fn long_lines_are_read_like_short_ones() {
    for length in [LINE_MAX - 300, LINE_MAX, LINE_MAX + 1, CHUNK + LINE_MAX, 9 << 20] {
        let mut log = Log::new();
        log.turns(1, 10_000).raw(huge_response(length, 55_000));
        let figures = log.figures();
        assert_eq!((figures.damaged, figures.responses, figures.tool_calls), (0, 2, 1), "{length}");
        assert_eq!(figures.context.unwrap().tokens, 55_000);
        log.response("after", 56_000, 3);
        assert_eq!(log.context(), Some((56_000, false)));
        assert_eq!(log.tail(1 << 20).context.unwrap().tokens, 56_000);
    }
}

#[test]
fn the_end_is_found_behind_rows_of_any_length() {
    let mut log = Log::new();
    log.turns(2, 10_000).raw(huge_response(1 << 20, 55_000));
    let result = json!({"type": "user", "uuid": "r", "parentUuid": "h", "message": {"content":
        [{"type": "tool_result", "content": "x".repeat(9 << 20)}]}});
    log.raw(result.to_string());
    assert_eq!(log.tail(64 << 20).context.unwrap().tokens, 55_000);
    // Not to be had within the bound: unknown, never a guess.
    assert_eq!(log.tail(1 << 20), Tail::default());
    let mut short = Log::new();
    short.turns(2, 10_000);
    assert!(short.tail(1 << 20).whole);
}

#[test]
fn the_end_knows_of_a_rewind_to_before_the_window() {
    let mut log = Log::new();
    log.prompt("first").response("m1", 20_000, 5);
    let hook = log.leaf();
    log.prompt(&"x".repeat(400_000)).response("m2", 200_000, 5);
    log.prompt("third").response("m3", 210_000, 5);
    log.back_to(&hook).prompt_at("other", 2);
    assert_eq!(log.tail(16 << 20).context.unwrap().tokens, 20_000);
}

#[test]
fn a_line_past_all_bounds_is_given_up_and_the_next_one_read() {
    let mut file = tempfile::tempfile().unwrap();
    let mut log = Log::new();
    log.turns(1, 10_000);
    file.write_all(&log.bytes).unwrap();
    // A hole in the file: NUL bytes that take no room.
    let length = log.bytes.len() as u64 + GIVEN_UP + 3 * CHUNK as u64;
    file.set_len(length).unwrap();
    let mut progress = Progress::default();
    progress.advance(&file, None).unwrap();
    assert_eq!(progress.offset(), length, "never looked at again");
    assert_eq!(progress.figures().damaged, 1);
    let mut progress = Progress::from_bytes(&progress.to_bytes()).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let whole = log.bytes.len();
    log.turns(1, 12_000);
    file.write_all(b"rest\n").unwrap();
    file.write_all(&log.bytes[whole..]).unwrap();
    progress.advance(&file, None).unwrap();
    let figures = progress.figures();
    assert_eq!((figures.damaged, figures.responses), (1, 2));
    assert_eq!(figures.context.unwrap().tokens, 12_000);
}

#[test]
fn a_long_line_of_many_small_values_is_counted_as_damaged() {
    let mut log = Log::new();
    log.turns(1, 10_000);
    let members: Vec<String> = (0..200_000).map(|n| format!("\"key{n}\":{n}")).collect();
    log.raw(format!("{{\"uuid\":\"x\",{}}}", members.join(","))).turns(1, 12_000);
    let figures = log.figures();
    assert_eq!((figures.damaged, figures.context.unwrap().tokens), (1, 12_000));
}

#[test]
fn lines_that_are_no_rows_are_counted_and_passed() {
    let mut log = Log::new();
    log.turns(1, 10_000);
    let rows = log.figures().rows;
    let deep = "[".repeat(200_000);
    let damaged: [&[u8]; 10] = [
        b"null",
        b"7",
        b"\"text\"",
        b"[1]",
        b"not json",
        b"{\"type\":\"assistant\",\"message\":{\"usa",
        b"\0\0\0\0",
        b"\0 \0",
        b"{\"type\":\"made-up\",\"cut",
        deep.as_bytes(),
    ];
    for line in damaged {
        log.raw(line);
    }
    for blank in ["", "   ", "\r", "\t"] {
        log.raw(blank);
    }
    let balanced = format!("{{\"deep\":{deep}{}}}", "]".repeat(200_000));
    log.raw(balanced).raw(r#"{"type":"user","uuid":"l","message":{"content":"\ud83e alone \ud800"}}"#);
    let figures = log.figures();
    assert_eq!((figures.damaged, figures.rows), (damaged.len() as u64, rows + 2));
    assert_eq!(figures.context.unwrap().tokens, 10_000);
    assert_eq!(figures.prompts, 1, "rows that say who began a turn came before");
}

#[test]
fn line_ends_and_lost_blocks_do_no_harm() {
    let mut log = Log::new();
    log.turns(2, 10_000);
    let want = log.figures();
    let crlf = String::from_utf8(log.bytes.clone()).unwrap().replace('\n', "\r\n");
    assert_eq!(figures_of(crlf.as_bytes()), want);
    let mut with_nul = vec![0; 4096];
    with_nul.extend_from_slice(&log.bytes);
    assert_eq!(figures_of(&with_nul), want, "the row behind the NUL bytes is whole");
}

#[test]
fn the_order_of_members_does_not_matter() {
    let line = |members: &[&str]| format!("{{{}}}\n", members.join(" , "));
    let mut members = [
        r#""type":"assistant""#,
        r#""uuid":"u""#,
        r#""message":{"content":[{"input":{"id":"no"},"id":"t","type":"tool_use"}],"usage":{"input_tokens":900},"model":"m","id":"i"}"#,
        r#""isSidechain":false"#,
        r#""timestamp":"2026-11-30T17:31:34.400Z""#,
    ];
    let want = figures_of(line(&members).as_bytes());
    assert_eq!((want.responses, want.tool_calls, want.context.as_ref().unwrap().tokens), (1, 1, 900));
    for _ in 0..members.len() {
        members.rotate_left(1);
        assert_eq!(figures_of(line(&members).as_bytes()), want);
    }
}

#[test]
fn nothing_added_changes_nothing() {
    let mut log = Log::new();
    log.turns(2, 10_000);
    let file = log.file();
    let mut progress = Progress::default();
    assert!(progress.advance(&file, None).unwrap().changed);
    let before = progress.clone();
    assert_eq!(progress.advance(&file, None).unwrap(), Advance { complete: true, changed: false, read: 0 });
    assert_eq!(progress, before);
    let empty = tempfile::tempfile().unwrap();
    let mut none = Progress::default();
    none.advance(&empty, None).unwrap();
    assert!(!none.advance(&empty, None).unwrap().changed);
}

#[test]
fn a_line_without_its_end_is_looked_at_once() {
    let mut log = Log::new();
    log.turns(2, 10_000);
    let whole = log.bytes.len() as u64;
    log.bytes.extend_from_slice(b"{\"type\":");
    let (mut place, mut lines) = (Place::default(), 0);
    assert!(lines::read(&log.file(), &mut place, None, &mut |_| lines += 1).unwrap());
    assert_eq!(place, Place { offset: whole, in_given_up: false, seen: log.bytes.len() as u64 });
    assert_eq!(lines, 4);
}

#[test]
fn a_file_that_was_cut_or_rewritten_is_measured_anew() {
    let mut log = Log::new();
    log.turns(4, 90_000);
    let mut other = Log::new();
    other.turns(2, 30_000);
    let mut file = log.file();
    let mut progress = Progress::default();
    progress.advance(&file, None).unwrap();

    // Cut, and written anew with less in it.
    file.set_len(0).unwrap();
    file.rewind().unwrap();
    file.write_all(&other.bytes).unwrap();
    assert!(progress.advance(&file, None).unwrap().changed);
    assert_eq!(progress.figures(), other.figures());

    // Anew with as many bytes.
    let same_length = String::from_utf8(other.bytes.clone()).unwrap().replace("go on", "no, on");
    let same_length = same_length.replace("\"isSidechain\":false,", "").into_bytes();
    let padded = [&b" ".repeat(other.bytes.len() - same_length.len())[..], &same_length].concat();
    file.rewind().unwrap();
    file.write_all(&padded).unwrap();
    assert!(progress.advance(&file, None).unwrap().changed);
    assert!(!progress.advance(&file, None).unwrap().changed, "it is known now");
    assert_eq!(progress.figures(), other.figures());

    // With more in it than before, from the first byte.
    other.wait(5_000).turns(9, 60_000);
    let mut longer = Log::new();
    longer.prompt("another beginning").turns(9, 60_000);
    file.set_len(0).unwrap();
    file.rewind().unwrap();
    file.write_all(&longer.bytes).unwrap();
    progress.advance(&file, None).unwrap();
    assert_eq!(progress.figures(), longer.figures());

    // The same beginning, another end.
    let mut fork = Log::new();
    fork.prompt("another beginning").turns(4, 60_000).compaction("manual", 60_000, 9_000).turns(9, 70_000);
    file.set_len(0).unwrap();
    file.rewind().unwrap();
    file.write_all(&fork.bytes).unwrap();
    progress.advance(&file, None).unwrap();
    assert_eq!(progress.figures(), fork.figures());
}

#[test]
fn the_beginning_of_a_line_may_be_taken_back() {
    let mut log = Log::new();
    log.turns(1, 10_000);
    let whole = log.bytes.len();
    let mut file = log.file();
    file.write_all(&[b'x'; 5_000]).unwrap();
    let mut progress = Progress::default();
    progress.advance(&file, None).unwrap();
    file.set_len(whole as u64).unwrap();
    progress.advance(&file, None).unwrap();
    log.turns(1, 12_000);
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&log.bytes[whole..]).unwrap();
    assert!(file.metadata().unwrap().len() < whole as u64 + 5_000, "shorter than what was taken back");
    progress.advance(&file, None).unwrap();
    assert_eq!(progress.figures(), log.figures());
}

#[test]
#[cfg(unix)]
fn another_file_of_the_same_name_is_measured_anew() {
    let (mut one, mut two) = (Log::new(), Log::new());
    one.turns(4, 90_000);
    two.turns(2, 30_000);
    let mut progress = Progress::default();
    for log in [&one, &two, &one] {
        progress.advance(&log.file(), None).unwrap();
        assert_eq!(progress.figures(), log.figures());
    }
}

#[test]
fn a_deadline_leaves_the_rest_for_later() {
    let mut file = tempfile::tempfile().unwrap();
    let truth = transcripts::write(&mut file, 3 << 20, 7).unwrap();
    let mut progress = Progress::default();
    let mut calls = 0;
    while !progress.advance(&file, Some(Deadline::after_ms(0))).unwrap().complete {
        calls += 1;
        progress = Progress::from_bytes(&progress.to_bytes()).unwrap();
    }
    assert!((8..=2 * truth.bytes / CHUNK as u64).contains(&calls), "about a chunk a call: {calls}");
    assert_eq!(progress.figures().responses, truth.responses);
    assert_eq!(progress.offset(), truth.bytes);
    let late = super::super::tail(&file, 8 << 20, Some(Deadline::after_ms(0))).unwrap();
    assert!(late == Tail::default() || late.context.unwrap().tokens == truth.context);
}

#[test]
fn a_deadline_waits_for_one_line_so_that_work_never_stands_still() {
    let mut log = Log::new();
    log.raw(huge_response(2 << 20, 55_000)).turns(1, 60_000).raw(huge_response(2 << 20, 70_000));
    let (file, mut progress, mut calls) = (log.file(), Progress::default(), 0);
    while !progress.advance(&file, Some(Deadline::after_ms(0))).unwrap().complete {
        calls += 1;
        assert!(calls < 20, "it stands still");
    }
    assert_eq!(progress.figures(), log.figures());
}

#[test]
fn a_made_up_session_is_measured_as_it_was_made() {
    for seed in 1..=4 {
        let mut file = tempfile::tempfile().unwrap();
        let truth = transcripts::write(&mut file, 2 << 20, seed).unwrap();
        let mut progress = Progress::default();
        progress.advance(&file, None).unwrap();
        let figures = progress.figures();
        assert_eq!(
            (figures.rows, figures.damaged, figures.responses, figures.tool_calls, figures.prompts),
            (truth.rows, 0, truth.responses, truth.tool_calls, truth.prompts)
        );
        assert_eq!((figures.first_at, figures.last_at), (Some(truth.first_at), Some(truth.last_at)));
        assert_eq!((figures.active_ms, figures.dropped), (truth.active_ms, truth.dropped));
        assert_eq!(figures.context.unwrap().tokens, truth.context);
        let tail = super::super::tail(&file, 1 << 20, None).unwrap();
        assert_eq!((tail.context.unwrap().tokens, tail.whole), (truth.context, false));
        assert!(progress.to_bytes().len() <= 40 * 1024);
    }
}

#[test]
fn whoever_wants_no_more_lines_ends_the_reading() {
    let mut log = Log::new();
    for _ in 0..8 {
        log.raw("x".repeat(CHUNK / 2));
    }
    let (stop, mut place) = (Cell::new(false), Place::default());
    let options = Options { stop: Some(&stop), ..Options::default() };
    let whole = lines::read_spans(&log.file(), &mut place, options, &mut |_, _| stop.set(true)).unwrap();
    assert!(!whole && place.seen <= CHUNK as u64, "{place:?}");
}
