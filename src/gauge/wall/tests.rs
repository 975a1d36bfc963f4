use super::*;
use crate::client::settings::Origin;
use crate::gauge::inputs::Input;
use serde_json::{Value, json};

type Row = (&'static str, Vec<(Name, Value)>, (u64, Kind, Source));

const OPUS: &str = "claude-opus-5-5";
const HAIKU: &str = "claude-haiku-4-5";

fn inputs(list: &[(Name, Value)]) -> Inputs {
    let list = list.iter().map(|(name, value)| Input {
        name: *name,
        origin: Origin::Environment,
        value: value.clone(),
    });
    Inputs { list: list.collect() }
}

fn wall(model: &str, list: &[(Name, Value)]) -> (u64, Kind, Source) {
    let formula = reckon(&inputs(list), Some(model), models::look_up(model, false).window);
    assert_eq!(formula.effects.len(), list.len());
    (formula.wall.tokens, formula.wall.kind, formula.wall.source)
}

#[test]
fn every_measured_row_is_reckoned() {
    use Kind::{Compaction, Reactive, Refusal};
    use Name::*;
    use Source::{Assumed, Configured};
    let t = |text: &str| Value::from(text);
    let rows: Vec<Row> = vec![
        (OPUS, vec![], (967_000, Compaction, Assumed)),
        ("claude-sonnet-5", vec![], (967_000, Compaction, Assumed)),
        ("mystery", vec![], (967_000, Compaction, Assumed)),
        (OPUS, vec![(Window, t("200000"))], (167_000, Compaction, Configured)),
        (OPUS, vec![(Window, t("150000"))], (117_000, Compaction, Configured)),
        (OPUS, vec![(Window, t("50000"))], (67_000, Compaction, Configured)),
        (OPUS, vec![(Window, t("500k"))], (467_000, Compaction, Configured)),
        (OPUS, vec![(Window, t("abc"))], (967_000, Compaction, Assumed)),
        (OPUS, vec![(Window, t("1e6"))], (967_000, Compaction, Configured)),
        (OPUS, vec![(Window, t("5000000"))], (967_000, Compaction, Configured)),
        (OPUS, vec![(SettingsWindow, json!(400_000))], (367_000, Compaction, Configured)),
        (OPUS, vec![(SettingsWindow, json!("300k"))], (967_000, Compaction, Assumed)),
        (OPUS, vec![(SettingsWindow, json!(50_000))], (967_000, Compaction, Assumed)),
        (
            OPUS,
            vec![(ModelWindow, json!(250_000)), (SettingsWindow, json!(400_000))],
            (217_000, Compaction, Configured),
        ),
        (
            OPUS,
            vec![(Window, t("300000")), (SettingsWindow, json!(400_000))],
            (267_000, Compaction, Configured),
        ),
        (OPUS, vec![(Window, t("400000")), (WindowFlag, t("300000"))], (367_000, Compaction, Configured)),
        (
            OPUS,
            vec![(WindowFlag, t("300000")), (SettingsWindow, json!(400_000))],
            (267_000, Compaction, Configured),
        ),
        (OPUS, vec![(Disable1m, t("1"))], (167_000, Compaction, Configured)),
        (OPUS, vec![(Percent, t("50"))], (490_000, Compaction, Configured)),
        (OPUS, vec![(Percent, t("50")), (Window, t("200000"))], (90_000, Compaction, Configured)),
        (OPUS, vec![(Percent, t("30")), (Window, t("400000"))], (114_000, Compaction, Configured)),
        (OPUS, vec![(Percent, t("12.5"))], (122_500, Compaction, Configured)),
        (OPUS, vec![(Percent, t("99"))], (967_000, Compaction, Assumed)),
        (OPUS, vec![(Percent, t("0"))], (967_000, Compaction, Assumed)),
        (OPUS, vec![(MaxOutput, t("8000"))], (979_000, Compaction, Configured)),
        (OPUS, vec![(MaxOutput, t("64000"))], (967_000, Compaction, Assumed)),
        (OPUS, vec![(MaxContext, t("300000"))], (967_000, Compaction, Assumed)),
        (OPUS, vec![(AutoCompactEnabled, json!(false))], (977_000, Refusal, Configured)),
        (OPUS, vec![(DisableAutoCompact, t("1"))], (977_000, Refusal, Configured)),
        (OPUS, vec![(DisableCompact, t("1"))], (977_000, Refusal, Configured)),
        (OPUS, vec![(DisableCompact, t("1")), (MaxOutput, t("8000"))], (989_000, Refusal, Configured)),
        (OPUS, vec![(DisableCompact, t("1")), (BlockingLimit, t("300000"))], (300_000, Refusal, Configured)),
        (HAIKU, vec![(DisableCompact, t("1"))], (177_000, Refusal, Configured)),
        (HAIKU, vec![(DisableCompact, t("1")), (MaxContext, t("1000000"))], (977_000, Refusal, Configured)),
        (OPUS, vec![(BlockingLimit, t("300000"))], (300_000, Compaction, Configured)),
        (HAIKU, vec![(BlockingLimit, t("150000"))], (200_000, Reactive, Assumed)),
        (HAIKU, vec![(Percent, t("50"))], (200_000, Reactive, Assumed)),
        ("weird-model", vec![(MaxContext, t("300000"))], (267_000, Compaction, Configured)),
        ("claude-opus-4-6", vec![], (167_000, Compaction, Assumed)),
        ("claude-3-5-haiku", vec![(DisableCompact, t("1"))], (188_808, Refusal, Configured)),
        (HAIKU, vec![], (200_000, Reactive, Assumed)),
        ("claude-sonnet-4-5[1m]", vec![], (1_000_000, Reactive, Assumed)),
        (HAIKU, vec![(Window, t("150000"))], (117_000, Compaction, Configured)),
    ];
    for (model, list, expected) in rows {
        assert_eq!(wall(model, &list), expected, "{model} {list:?}");
    }
}

// CC#66144, CC#65966: switches are not undone by the setting; a window above the model's is capped.
#[test]
fn the_setting_does_not_turn_compaction_on_again_and_a_large_window_is_clamped() {
    let list = [(Name::DisableAutoCompact, json!("1")), (Name::AutoCompactEnabled, json!(true))];
    assert_eq!(wall(OPUS, &list).0, 977_000);
    let formula = reckon(&inputs(&[(Name::Window, json!("1000000"))]), Some(OPUS), 200_000);
    assert_eq!((formula.wall.tokens, formula.clamped), (167_000, Some(200_000)));
}

#[test]
fn a_window_set_by_hand_beyond_the_models_is_unverified() {
    let set = |tokens: &str| [(Name::DisableCompact, json!("1")), (Name::MaxContext, json!(tokens))];
    let of = |list: &[_], model| reckon(&inputs(list), Some(model), 200_000).unverified;
    assert!(of(&set("300000"), HAIKU) && of(&set("1000001"), OPUS));
    assert!(!of(&set("200000"), HAIKU) && !of(&set("1000000"), OPUS));
    assert!(!of(&set("300000")[1..], HAIKU), "without DISABLE_COMPACT it counts for nothing");
}

#[test]
fn an_explicit_window_of_a_trigger_less_model_is_capped_and_turns_the_trigger_on() {
    assert_eq!(wall(HAIKU, &[(Name::Window, json!("5000000"))]).0, 167_000);
}

#[test]
fn the_clients_figures_win_and_the_percentage_is_put_back() {
    let formula = reckon(&inputs(&[(Name::Percent, json!("50"))]), Some(OPUS), 1_000_000);
    let figures = Figures {
        threshold: Some(267_000),
        enabled: Some(true),
        raw_max: Some(300_000),
        source: Some("env".into()),
        ..Figures::default()
    };
    let wall = of_client(&figures, &formula).unwrap();
    assert_eq!((wall.tokens, wall.source), (140_000, Source::Client));
    let auto = Figures { source: Some("auto".into()), ..figures.clone() };
    assert_eq!(of_client(&auto, &formula).unwrap().kind, Kind::Reactive);
    let off = Figures { enabled: Some(false), window: Some(1_000_000), ..Figures::default() };
    let wall = of_client(&off, &formula).unwrap();
    assert_eq!((wall.tokens, wall.kind), (977_000, Kind::Refusal));
    assert!(of_client(&Figures::default(), &formula).is_none());
}

#[test]
fn no_number_overflows() {
    for window in [0, 1, 19_999, u64::MAX] {
        for list in [vec![], vec![(Name::DisableCompact, json!("1"))], vec![(Name::Window, json!("1k"))]] {
            let _ = reckon(&inputs(&list), Some(OPUS), window);
        }
    }
    let huge = Figures { threshold: Some(u64::MAX >> 11), enabled: Some(true), ..Figures::default() };
    let formula = reckon(&inputs(&[(Name::Percent, json!("1"))]), None, 1_000_000);
    assert!(of_client(&huge, &formula).is_some());
}
