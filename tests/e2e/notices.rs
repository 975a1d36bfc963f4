//! What the model is told in live sessions, and when it is not.

use serde_json::{Value, json};

use crate::api::{Answer, Gate, Kind, Request};
use crate::bench::{Bench, LONG, wait, write_json};
use crate::live::{bash, open, session, session_id, used};
use crate::longhaul::{longhaul, plugged};
use crate::terminal::{CTRL_U, Terminal, UP};

const NOTICE: &str = "[longhaul] This session stands at";

fn notices(request: &Request) -> usize {
    request.new_text().matches(NOTICE).count()
}

#[test]
fn the_offer_comes_once_with_the_prompt_at_due_and_not_before() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    for (turn, tokens) in [100_000, 220_000, 312_000, 314_000, 316_000].into_iter().enumerate() {
        bench.api.usual(used(tokens));
        session.say(&format!("turn {turn}"));
        session.wait_for(&format!(" {}k/367k ", tokens / 1000));
        session.wait_until("the turn's end", |screen| (!screen.contains("esc to interrupt")).then_some(()));
        // The client writes an answer's row up to a second after it; until then the count is the module's alone.
        let answer = format!("ANSWER-AT-{tokens}");
        wait("the answer's row", LONG, || {
            bench
                .transcript(None)
                .iter()
                .any(|row| row["type"] == "assistant" && row.to_string().contains(&answer))
                .then_some(())
        });
    }
    let told: Vec<usize> = bench.api.of(Kind::Main).iter().map(notices).collect();
    // The fourth prompt is the first one after the answer at 85 %.
    assert_eq!(told, [0, 0, 0, 1, 0]);
    let offer = bench.api.of(Kind::Main)[3].new_text();
    let id = session_id(&bench);
    for part in ["85 % of its wall (312k of 367k tokens)", "from the client's own figures", &id] {
        assert!(offer.contains(part), "{part:?} is not in {offer}");
    }
    assert!(session.screen().contains("a handoff is due"), "the person is not told:\n{}", session.screen());
    // What it names can be run as it stands there.
    let commands: Vec<&str> = offer.split('`').filter(|part| part.contains(" --session ")).collect();
    assert_eq!(commands.len(), 3, "{offer}");
    let brief = bench.path("brief.md");
    std::fs::write(&brief, "# State").unwrap();
    for command in commands {
        let command = command.replace("FILE", &format!("{} --prepare", brief.display()));
        let out = bench.run(&["sh".to_owned(), "-c".to_owned(), command.clone()], &[], b"");
        assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn after_a_snooze_the_model_is_not_asked_to_offer_again() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    bench.api.usual(used(312_000));
    session.say("turn 0");
    session.wait_for(" 312k/367k ");
    longhaul(&bench, &["handoff", "snooze", "--session", &session_id(&bench)]);
    bench.api.usual(used(335_000));
    session.say("turn 1");
    session.wait_for(" 335k/367k ");
    assert_eq!(bench.api.of(Kind::Main).iter().map(notices).sum::<usize>(), 0);
}

/// A session whose notice falls due inside a turn, and goes with the prompt that is typed while it runs. The gate holds
/// the turn's last answer, at 314k.
fn due_inside_a_turn(bench: &Bench) -> (Terminal, Gate) {
    let mut session = session(bench, &[]);
    bench.api.usual(used(300_000));
    session.say("turn 0");
    session.wait_for(" 300k/367k ");
    let gate = Gate::default();
    bench.api.next([bash("sleep 1").used(313_000), used(314_000).behind(&gate)]);
    session.say("turn 1");
    bench.api.wait_for(3, LONG);
    session.wait_for(" 313k/367k ");
    session.say("MEANWHILE");
    // The hook has run when it is in the queue.
    wait("the prompt to be queued", LONG, || is_in_queue(bench, "enqueue"));
    let kept = bench.config().join("longhaul/gauge").join(format!("{}.notice.json", session_id(bench)));
    assert!(kept.exists(), "nothing was said with it");
    (session, gate)
}

/// Whether that has happened to the prompt typed meanwhile.
fn is_in_queue(bench: &Bench, operation: &str) -> Option<()> {
    let is_it = |row: &Value| row["operation"] == operation && row["content"] == "MEANWHILE";
    bench.transcript(None).iter().any(is_it).then_some(())
}

#[test]
fn a_notice_that_goes_with_a_prompt_in_the_queue_arrives_with_it() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let (mut session, gate) = due_inside_a_turn(&bench);
    bench.api.usual(used(315_000));
    gate.open();
    session.wait_for(" 315k/367k ");
    bench.api.usual(used(316_000));
    session.say("turn 2");
    session.wait_for(" 316k/367k ");
    assert_eq!(bench.api.of(Kind::Main).iter().map(notices).collect::<Vec<_>>(), [0, 0, 0, 1, 0]);
}

#[test]
fn a_notice_that_went_with_a_prompt_taken_back_is_given_with_the_next() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let (mut session, gate) = due_inside_a_turn(&bench);
    session.key(UP);
    wait("the prompt to be taken back", LONG, || is_in_queue(&bench, "popAll"));
    session.key(CTRL_U);
    gate.open();
    session.wait_for(" 314k/367k ");
    // For so long a row may be late.
    std::thread::sleep(std::time::Duration::from_secs(6));
    bench.api.usual(used(316_000));
    session.say("turn 2");
    session.wait_for(" 316k/367k ");
    assert_eq!(bench.api.of(Kind::Main).iter().map(notices).collect::<Vec<_>>(), [0, 0, 0, 1]);
}

#[test]
fn a_monitors_notification_gets_no_offer_and_the_next_prompt_does() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let dir = bench.path("bell");
    for part in [".claude-plugin", "monitors"] {
        std::fs::create_dir_all(dir.join(part)).unwrap();
    }
    let manifest = json!({ "name": "bell", "version": "0.0.1", "description": "tests only" });
    write_json(&dir.join(".claude-plugin/plugin.json"), &manifest);
    let rings = "while [ ! -e ring ]; do sleep 0.05; done; echo THE-BELL-RINGS; exec sleep 600";
    let monitor = json!([{ "name": "bell", "description": "a bell", "command": rings }]);
    write_json(&dir.join("monitors/monitors.json"), &monitor);
    let bench = bench.plugin(&dir);
    let mut session = session(&bench, &[]);
    bench.api.usual(used(312_000));
    session.say("turn 0");
    session.wait_for(" 312k/367k ");
    bench.api.usual(used(313_000));
    std::fs::write(bench.work().join("ring"), "").unwrap();
    session.wait_for(" 313k/367k ");
    bench.api.usual(used(314_000));
    session.say("turn 1");
    session.wait_for(" 314k/367k ");
    let requests = bench.api.of(Kind::Main);
    assert!(requests[1].new_text().contains("THE-BELL-RINGS"), "{}", requests[1].new_text());
    assert_eq!(requests.iter().map(notices).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn a_subagent_is_told_nothing() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    bench.api.usual(used(350_000));
    session.say("turn 0");
    session.wait_for(" 350k/367k ");
    let mut asked = 0;
    bench.api.script(move |request| {
        if request.kind != Kind::Subagent {
            return None;
        }
        asked += 1;
        Some(if asked < 3 { bash("echo below").used(2000) } else { Answer::text("THE REPORT").used(2500) })
    });
    let task = json!({ "description": "a task", "prompt": "do it", "subagent_type": "general-purpose" });
    bench.api.next([Answer::tool("Agent", &task).used(351_000)]);
    bench.api.usual(used(352_000));
    session.say("turn 1");
    bench.api.wait_until("the subagent's report", LONG, |requests| {
        requests.iter().any(|request| request.kind == Kind::Main && request.new_text().contains("THE REPORT"))
    });
    let below = bench.api.of(Kind::Subagent);
    assert_eq!(below.len(), 3);
    assert!(below.iter().all(|request| !request.text().contains(NOTICE)));
    // The prompt was told once; its batches, and the report's own turn, were not.
    assert_eq!(bench.api.of(Kind::Main).iter().map(notices).sum::<usize>(), 1);
}

#[test]
fn a_run_without_prompts_is_told_at_critical_between_two_batches() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    bench.api.next([
        bash("echo one").used(100_000),
        bash("echo two").used(312_000),
        // The client writes an answer's row up to a second after it: by the end of such a step it is there.
        bash("sleep 1; echo three").used(351_000),
        bash("sleep 1; echo four").used(352_000),
        bash("echo five").used(353_000),
        used(354_000),
    ]);
    bench.ask("go on by yourself", &[]);
    let requests = bench.api.of(Kind::Main);
    let told: Vec<usize> = requests.iter().map(notices).collect();
    assert_eq!(told.iter().sum::<usize>(), 1, "{told:?}");
    // The answer at 96 % is the third; its row may reach the disk after the hook of its own batch.
    let at = told.iter().position(|&count| count == 1).unwrap();
    assert!((3..=4).contains(&at), "{told:?}");
    assert!(requests[at].new_text().contains("hand off before anything else"), "{}", requests[at].new_text());
}
