//! The gauge in live sessions: on the screen, right, and moving.
//!
//! The window is 400,000 tokens everywhere here, so the wall stands at 367,000.

use serde_json::{Value, json};

use crate::api::{Answer, Gate, Kind};
use crate::bench::{Bench, LONG, wait};
use crate::longhaul::{longhaul, plugged, plugged_without_module};
use crate::rows::{BLOCKING, OFF, WINDOW};
use crate::terminal::Terminal;

/// A bench whose sessions end at 367,000 tokens, in which tools run without a question.
pub fn open() -> Option<Bench> {
    let tools = ["--permission-mode", "default", "--allowedTools", "Bash Agent"];
    Some(tools.iter().fold(Bench::open()?.env(WINDOW, "400000"), |bench, arg| bench.arg(arg)))
}

/// An answer that leaves so many tokens in use.
pub fn used(tokens: u64) -> Answer {
    Answer::text(&format!("ANSWER-AT-{tokens}")).used(tokens)
}

pub fn bash(command: &str) -> Answer {
    Answer::tool("Bash", &json!({ "command": command, "description": "a step" }))
}

/// A session that is ready for its first prompt.
pub fn session(bench: &Bench, args: &[&str]) -> Terminal {
    let terminal = Terminal::open(bench, args);
    terminal.wait_for("❯");
    terminal
}

/// The id of the session that runs in this bench.
pub fn session_id(bench: &Bench) -> String {
    wait("the session's file", LONG, || {
        let file = std::fs::read_dir(bench.config().join("sessions"))
            .ok()?
            .flatten()
            .find(|file| file.path().extension().is_some_and(|kind| kind == "json"))?;
        let row: Value = serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()?;
        row["sessionId"].as_str().map(str::to_owned)
    })
}

/// What the line says at each size, the last of them past the wall.
const SIZES: [(u64, &str, &str); 5] = [
    (100_000, " 27% 100k/367k ", "267k free"),
    (228_000, " 62% 228k/367k ", "handoff soon (1)"),
    (312_000, " 85% 312k/367k ", "HANDOFF DUE"),
    (349_000, " 95% 349k/367k ", "HANDOFF NOW"),
    (371_000, " 101% 371k/367k ", "past wall"),
];

#[track_caller]
fn shows_every_size(bench: &Bench) {
    let mut session = session(bench, &[]);
    for (tokens, share, verdict) in SIZES {
        bench.api.usual(used(tokens));
        session.say(&format!("to {tokens}"));
        let screen = session.wait_for(share);
        assert!(screen.contains(verdict), "{verdict:?} is missing at {tokens}:\n{screen}");
        assert_eq!(screen.matches("/367k").count(), 1, "{screen}");
    }
}

#[test]
fn the_module_draws_the_line_with_no_setting_touched() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    shows_every_size(&bench);
    assert_eq!(std::fs::read_to_string(bench.config().join("settings.json")).unwrap(), "{}");
}

#[test]
fn the_command_draws_the_line_where_modules_are_not_to_be_had() {
    let Some(bench) = open() else { return };
    longhaul(&bench, &["setup", "--statusline", "--no-plugin", "--no-link"]);
    let bench = plugged_without_module(bench);
    shows_every_size(&bench);
}

#[test]
fn the_line_is_drawn_once_where_both_ways_are_there() {
    let Some(bench) = open() else { return };
    longhaul(&bench, &["setup", "--statusline", "--no-plugin", "--no-link"]);
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    for (tokens, share, _) in SIZES {
        bench.api.usual(used(tokens));
        session.say(&format!("to {tokens}"));
        session.wait_until(share, |screen| {
            assert!(screen.matches("/367k").count() <= 1, "drawn twice:\n{screen}");
            screen.contains(share).then_some(())
        });
    }
}

#[test]
fn a_persons_own_line_is_kept_and_ours_is_the_row_below_it() {
    let Some(bench) = open() else { return };
    let own = json!({ "statusLine": { "type": "command", "command": "echo THEIR-OWN-LINE" } });
    let bench = plugged(bench.user(&own));
    bench.api.usual(used(228_000));
    let mut session = session(&bench, &[]);
    session.say("hello");
    let screen = session.wait_until("both lines", |screen| {
        (screen.contains("THEIR-OWN-LINE") && screen.contains(" 62% 228k/367k ")).then(|| screen.to_owned())
    });
    let rows: Vec<&str> = screen.lines().collect();
    let at = |text: &str| rows.iter().position(|row| row.contains(text)).unwrap();
    assert_eq!(at("228k/367k"), at("THEIR-OWN-LINE") + 1, "{screen}");
}

#[test]
fn the_line_moves_inside_a_tool_loop_without_a_prompt() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let gates = [Gate::default(), Gate::default(), Gate::default()];
    bench.api.next([
        bash("echo one").used(100_000),
        bash("echo two").used(228_000).behind(&gates[0]),
        bash("echo three").used(312_000).behind(&gates[1]),
        used(313_000).behind(&gates[2]),
    ]);
    let mut session = session(&bench, &[]);
    session.say("go on by yourself");
    for ((_, share, _), gate) in SIZES.iter().zip(&gates) {
        session.wait_for(share);
        gate.open();
    }
    session.wait_for("ANSWER-AT-313000");
    bench.api.wait_for(4, LONG);
}

#[test]
fn after_a_compaction_the_line_says_about_what_is_left() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    for tokens in [100_000, 228_000] {
        bench.api.usual(used(tokens));
        session.say(&format!("to {tokens}"));
        session.wait_for(&format!(" {}k/367k ", tokens / 1000));
    }
    session.say("/compact");
    let screen = session.wait_for("compacted 1x");
    let line = screen.lines().find(|row| row.contains("/367k")).unwrap();
    assert!(line.contains(" ~") && !line.contains("228k"), "not an estimate: {line}");
    bench.api.usual(used(30_000));
    session.say("after it");
    session.wait_for(" 8% 30.0k/367k ");
    // The transcript tells of the compaction a moment after the client tells of the next response.
    session.wait_for("compacted 1x");
}

#[test]
fn an_automatic_compaction_is_counted_and_the_next_answer_is_the_size() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    for tokens in [20_000, 40_000, 50_000, 60_000, 371_000] {
        bench.api.usual(used(tokens));
        session.say(&format!("to {tokens}"));
        session.wait_for(&format!("ANSWER-AT-{tokens}"));
    }
    session.wait_for(" 101% 371k/367k ");
    bench.api.usual(used(30_000));
    session.say("over the wall");
    session.wait_for(" 8% 30.0k/367k ");
    // The transcript tells of the compaction a moment after the client tells of the next response.
    session.wait_for("compacted 1x");
    assert_eq!(bench.api.of(Kind::Summary).len(), 1);
    assert_eq!(bench.transcript(None).iter().filter(|row| row["subtype"] == "compact_boundary").count(), 1);
}

#[test]
fn after_clear_the_line_knows_nothing_of_the_session_before() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    bench.api.usual(used(228_000));
    let mut session = session(&bench, &[]);
    session.say("hello");
    session.wait_for(" 62% 228k/367k ");
    session.say("/clear");
    session.wait_for("| –/367k");
    bench.api.usual(used(100_000));
    session.say("anew");
    session.wait_for(" 27% 100k/367k ");
}

#[test]
fn a_resumed_session_shows_its_size_before_any_prompt() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    bench.api.usual(used(228_000));
    let mut before = session(&bench, &[]);
    let id = session_id(&bench);
    before.say("hello");
    before.wait_for(" 62% 228k/367k ");
    before.hang_up();
    let after = session(&bench, &["--resume", &id]);
    after.wait_for(" 62% 228k/367k ");
}

#[test]
fn a_narrower_terminal_gets_a_shorter_line() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    bench.api.usual(used(228_000));
    let mut session = session(&bench, &[]);
    session.say("hello");
    session.wait_for("Opus 5.5 | ██████░░░░ 62% 228k/367k ");
    session.resize(45, 50);
    session.wait_until("a line without the model", |screen| {
        let line = screen.lines().find(|row| row.contains("62% 228k/367k"))?;
        (!line.contains("Opus") && line.chars().count() <= 50).then_some(())
    });
}

#[test]
fn a_refused_session_shows_that_it_is_at_its_wall() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench.env(OFF, "1").env(BLOCKING, "300000"));
    let mut session = session(&bench, &[]);
    for tokens in [100_000, 200_000, 310_000] {
        bench.api.usual(used(tokens));
        session.say(&format!("to {tokens}"));
        session.wait_for(&format!(" {}k/300k ", tokens / 1000));
    }
    let before = bench.api.of(Kind::Main).len();
    session.say("one more");
    session.wait_for("Context limit reached");
    let screen = session.wait_for(" 103% 310k/300k ");
    for part in ["HANDOFF NOW", "past wall", "no-compact"] {
        assert!(screen.contains(part), "{part:?} is missing:\n{screen}");
    }
    assert_eq!(bench.api.of(Kind::Main).len(), before, "the client sent something after all");
}

#[test]
fn a_response_that_streams_for_long_is_stamped() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    // A stamp comes five seconds after the one before it at the earliest.
    let words = "word ".repeat(48);
    bench.api.next([Answer::text(&words).used(100_000).slowly(std::time::Duration::from_millis(250))]);
    let mut session = session(&bench, &[]);
    session.say("write at length");
    let stamped = || {
        let sessions = std::fs::read_dir(bench.config().join("longhaul/gauge")).ok()?;
        let stamp =
            sessions.flatten().find(|file| file.path().extension().is_some_and(|kind| kind == "stream"))?;
        std::fs::read_to_string(stamp.path()).ok()?.trim().parse::<i64>().ok()
    };
    let first = wait("the first stamp", LONG, stamped);
    assert!(session.screen().contains("–/367k"), "a stamp is no figure:\n{}", session.screen());
    wait("the second stamp", LONG, || stamped().filter(|&second| second > first));
    session.wait_for(" 27% 100k/367k ");
}
