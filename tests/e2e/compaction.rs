//! Before the real client compacts a session, its words are exported; afterwards the model hears where.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::api::{Kind, Request};
use crate::bench::{Bench, LONG, wait};
use crate::export::said;
use crate::live::{bash, open, session, used};
use crate::longhaul::plugged;
use crate::terminal::Terminal;

/// The automatic exports that are there, in the order in which they were made.
fn exports(config: &Path) -> Vec<PathBuf> {
    let dirs = std::fs::read_dir(config.join("longhaul/handoffs")).into_iter().flatten().flatten();
    let done = dirs.map(|entry| entry.path()).filter(|dir| dir.join("04-index.json").is_file());
    let mut done: Vec<PathBuf> = done.filter(|dir| dir.to_str().unwrap().contains("-auto")).collect();
    done.sort();
    done
}

/// How many exports there were when each summary was asked for.
fn watch_summaries(bench: &Bench) -> Arc<Mutex<Vec<usize>>> {
    let counts = Arc::new(Mutex::new(Vec::new()));
    let (kept, config) = (Arc::clone(&counts), bench.config());
    bench.api.script(move |request| {
        if request.kind == Kind::Summary {
            kept.lock().unwrap().push(exports(&config).len());
        }
        None
    });
    counts
}

/// Turns in which a person says these things, at these sizes.
fn turns(bench: &Bench, session: &mut Terminal, turns: &[(&str, u64)]) {
    for (words, tokens) in turns {
        bench.api.usual(used(*tokens));
        session.say(words);
        session.wait_for(&format!("ANSWER-AT-{tokens}"));
    }
}

/// The last request of the conversation, and that it says where this export lies.
#[track_caller]
fn heard(bench: &Bench, export: &Path) -> Request {
    let request = bench.api.of(Kind::Main).pop().unwrap();
    let text = request.new_text();
    let lies = format!("lies in {}: 01-user-messages.md holds", export.display());
    assert_eq!(text.matches(&lies).count(), 1, "{lies:?} is not once in {text}");
    request
}

#[track_caller]
fn no_hook_failed(session: &Terminal) {
    let screen = session.screen();
    for sign in ["hook error", "failed", "validation", "timed out", "cancelled"] {
        assert!(!screen.contains(sign), "{sign:?}:\n{screen}");
    }
    // Where a compaction was asked for, the client names its hooks.
    for line in screen.lines().filter(|line| line.contains("Compact [")) {
        assert!(line.ends_with("completed successfully"), "{screen}");
    }
}

/// Between the end of each export and the boundary that came after it, there is no row of the conversation: what
/// the client still had in hand when the compaction began is in the export.
#[track_caller]
fn nothing_said_is_missing(bench: &Bench) {
    let path = bench.transcript_path(None).unwrap();
    for export in exports(&bench.config()) {
        let end = usize::try_from(index(&export)["source"]["bytes"].as_u64().unwrap()).unwrap();
        // The boundary reaches the file a moment after the answer reaches the screen.
        let first = wait("the boundary", LONG, || {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text[..end].ends_with('\n'), "it ends in the middle of a row");
            let rows = text[end..].lines().map_while(|line| serde_json::from_str::<Value>(line).ok());
            rows.into_iter().find(|row| row.get("uuid").is_some())
        });
        assert_eq!(first["subtype"], "compact_boundary", "{first}");
    }
}

fn index(export: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(export.join("04-index.json")).unwrap()).unwrap()
}

#[test]
fn an_automatic_compaction_waits_for_the_export_and_so_does_the_next_one() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let counts = watch_summaries(&bench);
    let mut session = session(&bench, &[]);
    let first =
        [("REQ-1", 20_000), ("REQ-2", 40_000), ("REQ-3", 50_000), ("REQ-4", 60_000), ("REQ-5", 371_000)];
    turns(&bench, &mut session, &first);
    turns(&bench, &mut session, &[("REQ-6", 30_000)]);
    assert_eq!(*counts.lock().unwrap(), [1], "exports when the summary was asked for");
    no_hook_failed(&session);
    let one = exports(&bench.config()).remove(0);
    heard(&bench, &one);
    // The prompt that set it off too, which the client had not written yet.
    assert_eq!(said(&one), ["REQ-1", "REQ-2", "REQ-3", "REQ-4", "REQ-5", "REQ-6"]);

    turns(&bench, &mut session, &[("REQ-7", 41_000), ("REQ-8", 51_000)]);
    let later = bench.api.of(Kind::Main).pop().unwrap().new_text();
    assert!(!later.contains(one.to_str().unwrap()), "said once: {later}");
    session.say("/compact");
    bench.api.wait_until("the second summary", LONG, |all| {
        all.iter().filter(|request| request.kind == Kind::Summary).count() == 2
    });
    session.wait_for("compacted 2x");
    turns(&bench, &mut session, &[("REQ-9", 31_000)]);
    assert_eq!(*counts.lock().unwrap(), [1, 2]);
    no_hook_failed(&session);
    let two = exports(&bench.config()).remove(1);
    let request = heard(&bench, &two);
    assert!(request.new_text().contains("05-dropped-context.md what earlier compactions took"));
    let all: Vec<String> = (1..=8).map(|n| format!("REQ-{n}")).collect();
    assert_eq!(said(&two), all);
    nothing_said_is_missing(&bench);
    assert!(std::fs::read_to_string(two.join("05-dropped-context.md")).unwrap().contains("REQ-3"));
    let left = std::fs::read_dir(bench.config().join("longhaul/jobs")).unwrap().count();
    assert_eq!(left, 1, "nothing but the lock of all jobs");
}

#[test]
fn a_compaction_that_is_asked_for_waits_too_and_its_instructions_are_words_of_the_person() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let counts = watch_summaries(&bench);
    let mut session = session(&bench, &[]);
    turns(&bench, &mut session, &[("REQ-1", 100_000), ("REQ-2", 228_000)]);
    session.say("/compact keep the names");
    session.wait_for("compacted 1x");
    turns(&bench, &mut session, &[("REQ-3", 30_000), ("REQ-4", 40_000)]);
    session.say("/compact");
    session.wait_for("compacted 2x");
    assert_eq!(*counts.lock().unwrap(), [1, 2]);
    no_hook_failed(&session);
    turns(&bench, &mut session, &[("REQ-5", 31_000)]);
    let two = exports(&bench.config()).remove(1);
    heard(&bench, &two);
    let words = said(&two);
    for wanted in ["REQ-1", "REQ-2", "/compact keep the names", "REQ-3", "REQ-4"] {
        assert!(words.iter().any(|text| text == wanted), "{wanted:?} is not in {words:?}");
    }
}

/// No time for it: the session's own watcher finishes it, and no turn comes of that.
#[cfg(feature = "testing")]
#[test]
fn what_is_left_the_watcher_finishes_without_a_turn() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench.env("LONGHAUL_TEST_EXPORT_MS", "0"));
    let counts = watch_summaries(&bench);
    let mut session = session(&bench, &[]);
    turns(&bench, &mut session, &[("REQ-1", 100_000), ("REQ-2", 228_000)]);
    session.say("/compact");
    session.wait_for("compacted 1x");
    no_hook_failed(&session);
    assert_eq!(counts.lock().unwrap().len(), 1);
    let export = wait("the export", LONG, || exports(&bench.config()).pop());
    assert_eq!(said(&export), ["REQ-1", "REQ-2"]);
    let asked = bench.api.of(Kind::Main).len();
    turns(&bench, &mut session, &[("REQ-3", 30_000)]);
    assert_eq!(bench.api.of(Kind::Main).len(), asked + 1, "the watcher's work costs no turn");
    let text = bench.api.of(Kind::Main).pop().unwrap().new_text();
    assert!(text.contains(&format!("lie in {}:", export.display())) || text.contains("lies in"), "{text}");
}

#[test]
fn a_compaction_in_the_middle_of_a_turn_loses_no_tool_result_and_no_message() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    let before = [("REQ-1", 20_000), ("REQ-2", 40_000), ("REQ-3", 50_000), ("REQ-4", 60_000)];
    turns(&bench, &mut session, &before);
    bench.api.next([bash("echo one").used(100_000), bash("echo two").used(371_000), used(30_000)]);
    session.say("go on by yourself");
    session.wait_for("ANSWER-AT-30000");
    let export = exports(&bench.config()).remove(0);
    nothing_said_is_missing(&bench);
    assert_eq!(index(&export)["tools"]["by_name"]["Bash"], 2);
    assert_eq!(said(&export).last().unwrap(), "go on by yourself");
    heard(&bench, &export);
    no_hook_failed(&session);
}
