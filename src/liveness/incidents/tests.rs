use super::*;
use crate::base::id::SessionId;
use crate::liveness::verdict::{Facts, Judged};
use crate::store::beats::{self, Phase};

const RULES: Rules = Rules { waiting_after: 120_000, most: 100 };

/// A time line: seconds since the machine was started, which is at that minute of some day.
fn at(second: i64) -> Moment {
    Moment { ms: 1_800_000_000_000 + second * 1000, mono_ms: second * 1000, boot: Some("boot".into()) }
}

fn session(id: &str, verdict: Verdict, still_s: i64, since: &Moment) -> Session {
    Session {
        id: SessionId::parse(id).unwrap(),
        name: None,
        project: None,
        pid: None,
        kind: beats::Kind::Interactive,
        judged: Judged {
            verdict,
            suspected: false,
            phase: Phase::Thinking,
            detail: None,
            silence: still_s * 1000,
        },
        since: since.ms / 1000,
        at: 0,
        restarted: None,
        facts: Facts::default(),
    }
}

/// What is told, of one session that is so.
fn told(known: &mut Vec<Incident>, second: i64, verdict: Verdict, still_s: i64) -> Vec<&'static str> {
    let sessions = [session("s", verdict, still_s, &at(second - still_s))];
    observe(known, &sessions, &at(second), &RULES).iter().map(|due| due.kind.word()).collect()
}

/// Whoever tells has told.
fn done(known: &mut [Incident]) {
    for incident in known {
        incident.told = Told::Yes;
    }
}

#[test]
fn an_incident_is_told_once_and_again_after_the_session_moved() {
    let mut known = Vec::new();
    assert_eq!(told(&mut known, 1_000, Verdict::Working, 200), [""; 0]);
    assert_eq!(told(&mut known, 1_101, Verdict::Stale, 301), ["stale?"]);
    done(&mut known);
    for second in [1_105, 1_110, 1_700] {
        assert_eq!(told(&mut known, second, Verdict::Stale, second - 800), [""; 0]);
    }
    assert_eq!(told(&mut known, 1_705, Verdict::Working, 3), [""; 0]);
    assert!(known[0].ended_ms.is_some());
    assert_eq!(told(&mut known, 2_010, Verdict::Stale, 305), ["stale?"]);
    assert_eq!(known.len(), 1);
}

#[test]
fn a_movement_that_nobody_saw_counts() {
    let mut known = Vec::new();
    assert_eq!(told(&mut known, 1_000, Verdict::Stale, 301), ["stale?"]);
    done(&mut known);
    assert_eq!(told(&mut known, 1_600, Verdict::Stale, 500), ["stale?"], "a timer that looks rarely");
}

#[test]
fn what_may_be_stuck_and_then_is_has_not_moved() {
    let mut known = Vec::new();
    assert_eq!(told(&mut known, 1_000, Verdict::Stale, 301), ["stale?"]);
    done(&mut known);
    assert_eq!(told(&mut known, 1_600, Verdict::DeadLike, 901), [""; 0]);
    assert_eq!(known[0].kind, Kind::DeadLike, "a status line says what it is now");
    assert_eq!(told(&mut known, 1_700, Verdict::Dead, 1_001), ["dead"], "its process is another matter");
}

#[test]
fn other_limits_and_facts_that_come_and_go_tell_nothing_twice() {
    let mut known = Vec::new();
    assert_eq!(told(&mut known, 1_000, Verdict::Stale, 60), ["stale?"], "a timer with --stale 60");
    done(&mut known);
    assert_eq!(told(&mut known, 1_005, Verdict::Working, 65), [""; 0], "the watcher, with its own");
    assert_eq!(told(&mut known, 1_060, Verdict::Stale, 120), [""; 0]);
    assert_eq!(told(&mut known, 1_300, Verdict::Stale, 360), [""; 0]);
}

#[test]
fn waiting_is_told_after_its_time_and_each_question_once() {
    let mut known = Vec::new();
    let wait = |known: &mut Vec<Incident>, second: i64, since: i64| {
        let sessions = [session("s", Verdict::Waiting, 1, &at(since))];
        observe(known, &sessions, &at(second), &RULES).len()
    };
    assert_eq!(wait(&mut known, 1_119, 1_000), 0);
    assert_eq!(known, [], "no incident yet");
    assert_eq!(wait(&mut known, 1_120, 1_000), 1);
    done(&mut known);
    assert_eq!(wait(&mut known, 1_500, 1_000), 0);
    // Answered, and asked again, with nobody looking in between.
    assert_eq!(wait(&mut known, 1_700, 1_550), 1);
    // The client says busy for a moment, of another tool.
    done(&mut known);
    assert_eq!(told(&mut known, 1_710, Verdict::Working, 1), [""; 0]);
    assert_eq!(wait(&mut known, 1_720, 1_550), 0);
}

#[test]
fn a_machine_that_slept_tells_nothing_twice() {
    let mut known = Vec::new();
    assert_eq!(told(&mut known, 1_000, Verdict::Stale, 301), ["stale?"]);
    let sessions = [session("w", Verdict::Waiting, 1, &at(800))];
    assert_eq!(observe(&mut known, &sessions, &at(1_000), &RULES).len(), 1);
    done(&mut known);
    // Eight hours, which the one clock does not know of.
    let slept = |second: i64| Moment { ms: at(second).ms + 8 * 3_600_000, ..at(second) };
    let sessions =
        [session("s", Verdict::Stale, 311, &slept(1_010)), session("w", Verdict::Waiting, 1, &at(800))];
    assert_eq!(observe(&mut known, &sessions, &slept(1_010), &RULES), []);
}

#[test]
fn a_restart_of_the_machine_is_told_once() {
    let mut known = Vec::new();
    let after = |second: i64| Moment {
        ms: at(second).ms,
        mono_ms: (second - 2_000) * 1000,
        boot: Some("another".into()),
    };
    let dead = |second: i64| [session("s", Verdict::Dead, second - 700, &at(700))];
    assert_eq!(told(&mut known, 1_001, Verdict::Stale, 301), ["stale?"]);
    assert_eq!(observe(&mut known, &dead(2_100), &after(2_100), &RULES).len(), 1);
    done(&mut known);
    assert_eq!(observe(&mut known, &dead(2_200), &after(2_200), &RULES), []);
    let again = Moment { boot: Some("a third".into()), ..after(9_000) };
    assert_eq!(observe(&mut known, &dead(9_000), &again, &RULES), [], "and not after the next one");
}

#[test]
fn a_session_that_was_started_again_is_told_once_for_each_time() {
    let mut known = Vec::new();
    let told = |known: &mut Vec<Incident>, second: i64, stamp: i64| {
        let working = session("s", Verdict::Working, 1, &at(second));
        let sessions = [Session { restarted: Some(at(stamp).ms / 1000), ..working }];
        observe(known, &sessions, &at(second), &RULES).iter().map(|due| due.kind.word()).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut known, 5_000, 1_000), [""; 0], "news of long ago is none");
    assert_eq!(told(&mut known, 5_000, 4_990), ["restarted"]);
    done(&mut known);
    assert_eq!(told(&mut known, 5_004, 4_990), [""; 0]);
    assert_eq!(told(&mut known, 5_100, 5_090), ["restarted"]);
    assert_eq!(trouble(&session("s", Verdict::Working, 1, &at(0)), at(5_104).ms, &RULES), None);
}

#[test]
fn whoever_was_about_to_tell_and_has_not_is_followed_by_another() {
    let mut known = Vec::new();
    assert_eq!(told(&mut known, 1_000, Verdict::Dead, 10).len(), 1);
    assert_eq!(told(&mut known, 1_004, Verdict::Dead, 14).len(), 0, "it is at it");
    assert_eq!(told(&mut known, 1_121, Verdict::Dead, 131).len(), 1);
    assert_eq!(told(&mut known, 1_300, Verdict::Dead, 310).len(), 1);
    assert_eq!(told(&mut known, 1_900, Verdict::Dead, 910).len(), 0, "not without end");
}

#[test]
fn of_many_some_are_told_at_once_and_the_others_next() {
    let mut known = Vec::new();
    let sessions: Vec<_> = (0..5).map(|n| session(&n.to_string(), Verdict::Dead, 9, &at(9))).collect();
    let rules = Rules { most: 2, ..RULES };
    let of = |known: &mut Vec<Incident>| {
        observe(known, &sessions, &at(1_000), &rules).iter().map(|due| due.at).collect::<Vec<_>>()
    };
    assert_eq!((of(&mut known), of(&mut known), of(&mut known)), (vec![0, 1], vec![2, 3], vec![4]));
    assert_eq!(of(&mut known), [0; 0]);
    assert_eq!(known.len(), 5);
}

#[test]
fn what_is_long_over_is_forgotten() {
    let mut known = Vec::new();
    told(&mut known, 1_000, Verdict::Dead, 10);
    assert_eq!(observe(&mut known, &[], &at(1_010), &RULES), []);
    assert_eq!(known.len(), 1);
    observe(&mut known, &[], &at(1_010 + 86_399), &RULES);
    assert_eq!(known.len(), 1);
    observe(&mut known, &[], &at(1_010 + 86_400), &RULES);
    assert_eq!(known, []);
}
