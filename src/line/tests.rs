use super::*;
use crate::client::flags::Flags;
use crate::client::settings::{Origin, Settings};
use crate::client::transcript::Figures;
use crate::gauge::context::Context;
use crate::gauge::inputs::{Input, Inputs, Name};
use crate::gauge::learned::Verdict;
use crate::gauge::reading::WindowSource;
use crate::gauge::wall;

const WIDE: Style = Style { width: 200, colour: false };

/// The session of the specification's example, at this many tokens.
fn reading(used: Option<u64>) -> Reading {
    let mut inputs = Inputs::collect(|_| None, &Settings::default(), &Flags::default(), None);
    inputs.list.push(Input { name: Name::DisableCompact, origin: Origin::Environment, value: "1".into() });
    let formula = wall::reckon(&inputs, Some("claude-opus-5-5"), 1_000_000);
    let figures = Figures {
        responses: 696,
        tool_calls: 402,
        active_ms: 21_852_000,
        auto: 3,
        dropped: 1_400_000,
        ..Figures::default()
    };
    Reading {
        model: Some("claude-opus-5-5".into()),
        model_name: Some("Opus 5.5".into()),
        window: 1_000_000,
        window_source: WindowSource::Payload,
        wall: formula.wall,
        formula,
        inputs,
        client: None,
        evidence: Verdict::Silent,
        interval: None,
        context: used.map(|tokens| Context { tokens, estimated: false }),
        figures,
        complete: true,
        has_transcript: true,
        cache_cold: false,
        subtasks: 0,
    }
}

fn drawn(reading: &Reading, style: Style) -> String {
    draw(reading, Beside::default(), style)
}

#[test]
fn a_watcher_that_is_off_is_named_and_so_is_what_nobody_heard() {
    let line = |watch, width| {
        draw(&reading(Some(830_500)), Beside { watch, ..Beside::default() }, Style { width, ..WIDE })
    };
    assert!(line(Watch::Off, 200).contains("HANDOFF DUE (5) | no-compact | watch off"));
    assert!(line(Watch::Unheard(3), 200).ends_with(" | 3 events unheard"));
    assert!(!line(Watch::Fine, 200).contains("watch"));
    assert!(!line(Watch::Off, 40).contains("watch"), "the gauge comes first");
}

#[test]
fn other_sessions_that_need_a_look_are_counted_and_give_way_late() {
    let fleet = Counts { stalled: 2, dead: 1, waiting: 3 };
    let beside = Beside { fleet, ..Beside::default() };
    let mut odd = reading(Some(990_000));
    odd.formula.clamped = Some(200_000);
    let line = |width| draw(&odd, beside, Style { width, ..WIDE });
    assert!(line(200).ends_with(" | no-compact | 2 stalled | 1 dead | 3 waiting for you"), "{}", line(200));
    let mut shown: Vec<String> = (1..=130).rev().map(line).collect();
    shown.dedup();
    let first_without = |what: &str| shown.iter().position(|line| !line.contains(what)).unwrap();
    for (earlier, later) in [
        ("no-compact", "HANDOFF NOW"),
        ("HANDOFF NOW", "stalled"),
        ("stalled", "past wall"),
        ("waiting for you", "past wall"),
        ("past wall", "█"),
    ] {
        assert!(first_without(earlier) < first_without(later), "{earlier} before {later}: {shown:#?}");
    }
    let one = Beside { fleet: Counts { waiting: 1, ..Counts::default() }, ..Beside::default() };
    let plain = draw(&odd, one, WIDE);
    assert!(
        plain.ends_with(" | 1 waiting for you") && !plain.contains("stalled") && !plain.contains('\u{1b}')
    );
    let coloured = draw(&reading(Some(100_000)), one, Style { width: 200, colour: true });
    assert!(coloured.contains("\u{1b}[33m1 waiting for you\u{1b}[39m"), "{coloured:?}");
}

#[test]
fn the_example_of_the_specification() {
    assert_eq!(
        drawn(&reading(Some(830_500)), WIDE),
        "Opus 5.5 | ████████░░ 85% 831k/977k | 696t 402tc 6.1h | compacted 3x -1.40M | HANDOFF DUE (5) | no-compact"
    );
}

#[test]
fn parts_give_way_in_their_order() {
    let mut cold = reading(Some(990_000));
    cold.cache_cold = true;
    let mut shown: Vec<String> = (1..=120).rev().map(|width| drawn(&cold, Style { width, ..WIDE })).collect();
    shown.dedup();
    insta::assert_snapshot!(shown.join("\n"));
    for (width, line) in (1..=120).rev().map(|width| (width, drawn(&cold, Style { width, ..WIDE }))) {
        assert!(crate::base::text::width(&line) <= width, "{width}: {line}");
    }
}

#[test]
fn verdicts_and_marks() {
    let tail = |used| drawn(&reading(used), WIDE).rsplit(" | ").nth(1).unwrap().to_owned();
    assert_eq!(tail(Some(100_000)), "877k free", "below the gate headroom counts, not points");
    assert_eq!(tail(Some(605_740)), "HANDOFF DUE (4)");
    assert_eq!(tail(Some(928_150)), "HANDOFF NOW");
    let mut young = reading(Some(610_000));
    (young.figures.auto, young.figures.active_ms) = (0, 0);
    assert!(drawn(&young, WIDE).contains("handoff soon (1)"));
    let mut estimate = reading(None);
    estimate.context = Some(Context { tokens: 28_759, estimated: true });
    assert!(drawn(&estimate, WIDE).contains("~3% ~28.8k/977k"));
    assert!(drawn(&reading(None), WIDE).contains("| –/977k |"));
}

#[test]
fn counters_wait_until_the_whole_is_measured() {
    let mut partial = reading(Some(600_000));
    partial.complete = false;
    assert!(!drawn(&partial, WIDE).contains("696t"));
}

#[test]
fn colours_follow_the_share() {
    let colour = |used| drawn(&reading(Some(used)), Style { width: 200, colour: true });
    assert!(colour(605_739).contains("\u{1b}[32m"));
    assert!(colour(605_740).contains("\u{1b}[33m"));
    assert!(colour(830_450).contains("\u{1b}[31m"));
    assert!(!drawn(&reading(Some(830_450)), WIDE).contains('\u{1b}'));
}

#[test]
fn names_cannot_act_on_the_terminal() {
    let mut odd = reading(Some(100_000));
    odd.model_name = Some("a\u{1b}[2J\u{7}\u{202e}b\nc".into());
    assert!(drawn(&odd, WIDE).starts_with("a[2Jbc | "));
    odd.model_name = Some("\u{1b}\u{7}".into());
    assert!(drawn(&odd, WIDE).starts_with("█"), "an empty name is no segment");
}

#[test]
fn a_window_set_by_hand_beyond_the_models_is_unverified() {
    let mut odd = reading(Some(990_000));
    odd.formula.unverified = true;
    let line = drawn(&odd, WIDE);
    assert!(line.ends_with(" | no-compact | unverified"), "{line}");
}
