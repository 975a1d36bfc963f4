//! Where sessions came from, by the rows of the real client: forks, branches, /clear, and /resume, which is none.

use longhaul::client::transcript::came_from;

use crate::api::{Answer, Kind};
use crate::bench::{Bench, LONG, wait};
use crate::live::{open, session, session_id};
use crate::longhaul::plugged;

const FIRST: &str = "11111111-0000-4000-8000-000000000001";
const OTHER: &str = "22222222-0000-4000-8000-000000000002";

/// Once the session's transcript holds as many responses.
#[track_caller]
fn origins(bench: &Bench, session: &str, responses: usize) -> Vec<String> {
    let path = wait("the responses in the transcript", LONG, || {
        let rows = bench.transcript(Some(session));
        let found = rows.iter().filter(|row| row["type"] == "assistant").count();
        bench.transcript_path(Some(session)).filter(|_| found >= responses)
    });
    came_from(&path)
}

fn fork(bench: &Bench, of: &str) -> String {
    let row = bench.ask("go on elsewhere", &["--resume", of, "--fork-session"]);
    row["session_id"].as_str().unwrap().to_owned()
}

/// The id that the session's file shows once it is another one.
fn next_id(bench: &Bench, before: &[&str]) -> String {
    wait("another session", LONG, || Some(session_id(bench)).filter(|id| !before.contains(&&**id)))
}

#[test]
fn a_transcript_tells_what_its_session_came_from() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let say = |terminal: &mut crate::terminal::Terminal, text: &str| {
        let before = bench.api.of(Kind::Main).len();
        bench.api.usual(Answer::text(&format!("ANSWER-{before}")));
        terminal.say(text);
        terminal.wait_for(&format!("ANSWER-{before}"));
    };
    for id in [FIRST, OTHER] {
        bench.ask("first words", &["--session-id", id]);
    }
    let second = fork(&bench, FIRST);
    let third = fork(&bench, &second);
    assert_eq!(origins(&bench, FIRST, 1), [""; 0]);
    assert_eq!(origins(&bench, &second, 2), [FIRST]);
    assert_eq!(origins(&bench, &third, 3), [&*second, FIRST]);

    let mut terminal = session(&bench, &["--resume", &third]);
    terminal.wait_for("go on elsewhere");
    say(&mut terminal, "in the third");
    terminal.say("/branch");
    let branch = next_id(&bench, &[&third]);
    terminal.wait_for("Branched");
    say(&mut terminal, "in the branch");
    assert_eq!(origins(&bench, &branch, 5), [&*third, &second, FIRST]);

    terminal.say("/clear");
    let cleared = next_id(&bench, &[&third, &branch]);
    say(&mut terminal, "after all that");
    // The client names the session that the process began with; what hooks saw names the one before.
    assert_eq!(origins(&bench, &cleared, 1), [&*third]);
    let told = crate::longhaul::longhaul(&bench, &["handoff", "chain", &cleared, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let sessions: Vec<&str> =
        told["sessions"].as_array().unwrap().iter().map(|it| it["session"].as_str().unwrap()).collect();
    assert_eq!(sessions, [FIRST, &second, &third, &branch, &cleared]);

    terminal.say(&format!("/resume {OTHER}"));
    next_id(&bench, &[&third, &branch, &cleared]);
    terminal.wait_for("first words");
    say(&mut terminal, "resumed within");
    assert_eq!(origins(&bench, OTHER, 2), [""; 0], "the process began with another session");
}
