//! Exports of sessions of the real client that were rewound, compacted, forked and branched: what was taken back
//! stands in 03 alone, what was summarised away in 05 too, what was copied once.

use std::path::Path;

use serde_json::Value;

use crate::api::{Answer, Kind};
use crate::bench::{Bench, LONG, wait};
use crate::complete::{held, let_go, turn, with_skill};
use crate::export::{export, part, said};
use crate::live::{open, session, session_id};
use crate::longhaul::plugged;
use crate::terminal::{CTRL_U, ENTER, ESCAPE, Terminal, UP};

/// The export of a session once these messages stand in 01, and nothing else.
#[track_caller]
fn holds(bench: &Bench, id: &str, wanted: &[&str]) -> (std::path::PathBuf, Value) {
    let mut found = Vec::new();
    let exported = wait_quietly(|| {
        bench.transcript_path(Some(id))?;
        let (dir, index) = export(bench, id);
        found = said(&dir);
        (found == wanted).then_some((dir, index))
    });
    exported.unwrap_or_else(|| panic!("01 holds {found:#?}, not {wanted:#?}"))
}

/// The client writes its transcript a moment late. Each look at it is an export, so the patience is short.
fn wait_quietly<T>(mut found: impl FnMut() -> Option<T>) -> Option<T> {
    (0..50).find_map(|_| {
        found().or_else(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            None
        })
    })
}

/// Goes back to before a message by the menu, and empties the box in which the client puts it.
#[track_caller]
fn rewind(terminal: &mut Terminal, to: &str) {
    // Esc twice. The client may take the first one for the end of something else, and the second one is then a
    // first: where no menu comes, both again.
    let has_come = |screen: &str| screen.contains("❯ (current)");
    for _ in 0..5 {
        terminal.key(ESCAPE);
        std::thread::sleep(std::time::Duration::from_millis(100));
        terminal.key(ESCAPE);
        if terminal.shows_within(std::time::Duration::from_secs(3), has_come) {
            break;
        }
    }
    terminal.wait_for_menu("❯ (current)");
    let chosen = format!("❯ {to}\n");
    for _ in 0..20 {
        let menu = |screen: &str| screen.rsplit("Rewind\n").next().unwrap().to_owned();
        let before = menu(&terminal.screen());
        if before.contains(&chosen) {
            break;
        }
        terminal.key(UP);
        terminal.wait_until("the choice to move", |screen| (menu(screen) != before).then_some(()));
    }
    terminal.key(ENTER);
    terminal.wait_for_menu("❯ 1. Restore conversation");
    terminal.key(ENTER);
    terminal.wait_for_end_of("Never mind");
    let is_back =
        |screen: &str| screen.lines().rev().find(|line| line.starts_with('❯'))?.ends_with(to).then_some(());
    terminal.wait_until("the message in the box", is_back);
    terminal.key(CTRL_U);
    terminal.wait_until("an empty box", |screen| screen.lines().any(|line| line == "❯").then_some(()));
}

/// Whether each of these stands in 03 once, marked as taken back or not.
#[track_caller]
fn in_03(dir: &Path, wanted: &[&str], rewound: bool) {
    let full = std::fs::read_to_string(dir.join("03-full-transcript.txt")).unwrap();
    for words in wanted {
        let rows = full.split("\n== ").filter(|row| {
            let (head, body) = row.split_once('\n').unwrap_or((row, ""));
            let spoken = head.contains(" user") || head.contains(" attachment");
            spoken && !head.contains("[summary]") && body.lines().any(|line| line.ends_with(words))
        });
        let marks: Vec<bool> = rows.map(|row| row.lines().next().unwrap().contains("[rewound]")).collect();
        assert_eq!(marks, [rewound], "{words:?} in 03");
    }
}

#[test]
fn what_was_rewound_stands_in_03_alone() {
    let Some(bench) = open() else { return };
    let bench = with_skill(bench);
    let mut terminal = session(&bench, &[]);
    turn(&bench, &mut terminal, "the first thing", []);
    bench.api.next([held(&bench), Answer::text("DONE-HELD")]);
    terminal.say("the second thing");
    terminal.wait_for("while [");
    terminal.say("sent meanwhile");
    terminal.wait_for("edit queued messages");
    let_go(&bench);
    terminal.wait_for("DONE-HELD");
    turn(&bench, &mut terminal, "the third thing", []);
    let id = session_id(&bench);
    // To a message sent mid-turn, to a prompt in the middle, to the very first.
    rewind(&mut terminal, "sent meanwhile");
    turn(&bench, &mut terminal, "instead of meanwhile", []);
    let (dir, index) = holds(&bench, &id, &["the first thing", "the second thing", "instead of meanwhile"]);
    assert_eq!(index["messages"]["rewound"], 2);
    in_03(&dir, &["sent meanwhile", "the third thing"], true);
    rewind(&mut terminal, "the second thing");
    turn(&bench, &mut terminal, "instead of the second", []);
    turn(&bench, &mut terminal, "/probe:hello on this branch", []);
    let wanted = ["the first thing", "instead of the second", "/probe:hello on this branch"];
    let (dir, index) = holds(&bench, &id, &wanted);
    assert_eq!(index["messages"]["rewound"], 4);
    in_03(&dir, &["the second thing", "sent meanwhile", "the third thing", "instead of meanwhile"], true);
    in_03(&dir, &wanted[..2], false);
    rewind(&mut terminal, "the first thing");
    turn(&bench, &mut terminal, "instead of all", []);
    turn(&bench, &mut terminal, "and what follows", []);
    let (dir, index) = holds(&bench, &id, &["instead of all", "and what follows"]);
    assert_eq!(index["messages"]["rewound"], 7);
    in_03(&dir, &wanted[..2], true);
    in_03(&dir, &["instead of all", "and what follows"], false);
}

/// With hooks the client hangs the new first prompt on the abandoned leaf, and the menu reaches behind a
/// compaction.
#[test]
fn what_was_rewound_from_behind_a_compaction_stands_in_03_alone() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut terminal = session(&bench, &[]);
    for words in ["the first thing", "the second thing", "the third thing"] {
        turn(&bench, &mut terminal, words, []);
    }
    terminal.say("/compact keep the names");
    terminal.wait_for("Compacted");
    turn(&bench, &mut terminal, "the fourth thing", []);
    let id = session_id(&bench);
    let wanted = [
        "the first thing",
        "the second thing",
        "the third thing",
        "/compact keep the names",
        "the fourth thing",
    ];
    holds(&bench, &id, &wanted);
    rewind(&mut terminal, "the first thing");
    turn(&bench, &mut terminal, "instead of all", []);
    let (dir, index) = holds(&bench, &id, &["instead of all"]);
    assert_eq!(index["messages"]["rewound"], 5);
    assert_eq!(index["compactions"].as_array().unwrap().len(), 0);
    in_03(&dir, &["the first thing", "the fourth thing"], true);
    in_03(&dir, &["instead of all"], false);
}

/// The messages that 05 holds, for each compaction.
fn dropped(dir: &Path) -> Vec<Vec<String>> {
    let text = part(dir, "05-dropped-context.md");
    let one = |section: &str| {
        let messages = section.split("\n### Message ").skip(1);
        messages.map(|entry| entry.split_once('\n').unwrap().1.trim().to_owned()).collect()
    };
    text.split("\n## Compaction ").skip(1).map(one).collect()
}

#[test]
fn compactions_forks_and_branches_lose_and_double_nothing() {
    let Some(bench) = open() else { return };
    let mut terminal = session(&bench, &[]);
    let to = |terminal: &mut Terminal, tokens: u64, words: &str| {
        let done = format!("DONE-AT-{tokens}");
        bench.api.next([Answer::text(&done).used(tokens)]);
        terminal.say(words);
        terminal.wait_for(&done);
    };
    // After /clear rows of the process still name the session that it began with.
    to(&mut terminal, 10_000, "of another session");
    let before = session_id(&bench);
    terminal.say("/clear");
    wait("another session", LONG, || (session_id(&bench) != before).then_some(()));
    to(&mut terminal, 20_000, "the first thing");
    to(&mut terminal, 40_000, "the second thing");
    terminal.say("/compact keep the names");
    terminal.wait_for("Compacted");
    for (tokens, words) in
        [(51_000, "the third thing"), (52_000, "the fourth thing"), (60_000, "the fifth thing")]
    {
        to(&mut terminal, tokens, words);
    }
    to(&mut terminal, 371_000, "the sixth thing");
    // Over the wall: compacted before this is asked.
    to(&mut terminal, 30_000, "the seventh thing");
    to(&mut terminal, 31_000, "the eighth thing");
    assert_eq!(bench.api.of(Kind::Summary).len(), 2);
    let id = session_id(&bench);
    let mut wanted = vec![
        "the first thing",
        "the second thing",
        "/compact keep the names",
        "the third thing",
        "the fourth thing",
        "the fifth thing",
        "the sixth thing",
        "the seventh thing",
        "the eighth thing",
    ];
    let gone = [wanted[..2].to_vec(), wanted[2..7].to_vec()];
    let (dir, index) = holds(&bench, &id, &wanted);
    assert_eq!(dropped(&dir), gone);
    assert_eq!(index["compactions"][0]["trigger"], "manual");
    assert_eq!(index["compactions"][1]["trigger"], "auto");
    terminal.hang_up();
    // A fork's transcript begins with the last compaction.
    let mut terminal = session(&bench, &["--resume", &id, "--fork-session"]);
    to(&mut terminal, 32_000, "said in the fork");
    let fork = session_id(&bench);
    assert_ne!(fork, id);
    wanted.push("said in the fork");
    let (dir, index) = holds(&bench, &fork, &wanted);
    assert_eq!(dropped(&dir), gone);
    assert_eq!(index["source"]["pieces"].as_array().unwrap().len(), 2);
    assert_eq!(index["messages"]["rewound"], 0);
    // A branch of the fork holds a copy of what the fork holds.
    terminal.say("/branch");
    terminal.wait_for("Branched session");
    to(&mut terminal, 33_000, "said in the branch");
    let branch = wait("the branch's id", LONG, || Some(session_id(&bench)).filter(|now| *now != fork));
    wanted.push("said in the branch");
    let (dir, _) = holds(&bench, &branch, &wanted);
    assert_eq!(dropped(&dir), gone);
    // What was said afterwards elsewhere is not the first session's.
    let (_, index) = holds(&bench, &id, &wanted[..9]);
    assert_eq!(index["source"]["pieces"].as_array().unwrap().len(), 1);
}
