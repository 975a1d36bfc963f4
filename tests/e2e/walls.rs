//! The wall, a row of measurements at a time: what is predicted, and what the client does 60 tokens on either
//! side of it. A client that moves a constant fails here, with the row named.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::climb::{Ending, climb, climb_to_the_limit};
use crate::headless::Headless;
use crate::longhaul::{explain, explain_payload, plugged};
use crate::rows::{BLOCKING, CONTEXT, Kind, NO_1M, NOT_AUTO, OFF, OUTPUT, PCT, Row, WINDOW, at, plain};

/// How far a prediction may lie from where a session really ends, in tokens.
const NEAR: u64 = 60;

macro_rules! rows {
    ($($name:ident: $row:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn is_where_sessions_end() {
                super::is_where_sessions_end(&$row);
            }

            #[test]
            fn is_told_by_the_client() {
                super::is_told_by_the_client(&$row);
            }
        }
    )*};
}

rows! {
    nothing_set: at(967_000);
    sonnet: plain("claude-sonnet-5", 1_000_000, 967_000, Kind::Compaction);
    unknown_model: plain("some-other-model", 1_000_000, 967_000, Kind::Compaction);
    env_window_200000: at(167_000).env(WINDOW, "200000").set();
    env_window_150000: at(117_000).env(WINDOW, "150000").set();
    env_window_below_the_floor: at(67_000).env(WINDOW, "50000").set();
    env_window_with_a_suffix: at(467_000).env(WINDOW, "500k").set();
    env_window_junk: at(967_000).env(WINDOW, "abc");
    env_window_with_an_exponent: at(967_000).env(WINDOW, "1e6").set();
    env_window_above_the_model: at(967_000).env(WINDOW, "5000000").set();
    settings_window: at(367_000).user(json!({ "autoCompactWindow": 400_000 })).set();
    settings_window_as_text: at(967_000).user(json!({ "autoCompactWindow": "300k" }));
    settings_window_below_the_floor: at(967_000).user(json!({ "autoCompactWindow": 50_000 }));
    settings_env_block: at(267_000).user(json!({ "env": { WINDOW: "300000" } })).set();
    model_settings_over_settings: at(217_000).user(json!({
        "modelSettings": { "claude-opus-5-5": { "autoCompactWindow": 250_000 } }, "autoCompactWindow": 400_000 })).set();
    env_over_settings: at(267_000).user(json!({ "autoCompactWindow": 400_000 })).env(WINDOW, "300000").set();
    env_over_flag: at(367_000).flag("300000").env(WINDOW, "400000").set();
    flag_over_settings: at(267_000).flag("300000").user(json!({ "autoCompactWindow": 400_000 })).set();
    flag_auto_over_settings: at(967_000).flag("auto").user(json!({ "autoCompactWindow": 400_000 })).set();
    flag_in_thousands: at(267_000).flag("300").set();
    no_1m: at(167_000).env(NO_1M, "1").set();
    pct_50: at(490_000).env(PCT, "50").set();
    pct_50_and_window: at(90_000).env(PCT, "50").env(WINDOW, "200000").set();
    pct_30_and_window: at(114_000).env(PCT, "30").env(WINDOW, "400000").set();
    pct_with_a_fraction: at(122_500).env(PCT, "12.5").set();
    pct_99: at(967_000).env(PCT, "99");
    pct_0: at(967_000).env(PCT, "0");
    output_8000: at(979_000).env(OUTPUT, "8000").set();
    output_64000: at(967_000).env(OUTPUT, "64000");
    context_alone: at(967_000).env(CONTEXT, "300000");
    not_enabled: at(977_000).user(json!({ "autoCompactEnabled": false })).refusing();
    not_auto: at(977_000).env(NOT_AUTO, "1").refusing();
    off: at(977_000).env(OFF, "1").refusing();
    off_with_output_8000: at(989_000).env(OFF, "1").env(OUTPUT, "8000").refusing();
    off_with_a_limit: at(300_000).env(OFF, "1").env(BLOCKING, "300000").refusing();
    off_with_a_window: at(977_000).env(OFF, "1").env(WINDOW, "300000").refusing();
    limit_with_compaction_on: at(300_000).env(BLOCKING, "300000").set();
    haiku_4_5_off: plain("claude-haiku-4-5", 200_000, 177_000, Kind::Refusal).env(OFF, "1").refusing();
    haiku_4_5_off_with_context: plain("claude-haiku-4-5", 1_000_000, 977_000, Kind::Refusal)
        .env(OFF, "1").env(CONTEXT, "1000000").refusing();
    haiku_4_5: plain("claude-haiku-4-5", 200_000, 200_000, Kind::Reactive);
    sonnet_4_5: plain("claude-sonnet-4-5", 200_000, 200_000, Kind::Reactive);
    sonnet_4_5_1m: plain("claude-sonnet-4-5[1m]", 1_000_000, 1_000_000, Kind::Reactive);
    opus_4_5: plain("claude-opus-4-5", 200_000, 200_000, Kind::Reactive);
    opus_4_6: plain("claude-opus-4-6", 200_000, 167_000, Kind::Compaction);
    opus_4_6_1m: plain("claude-opus-4-6[1m]", 1_000_000, 1_000_000, Kind::Reactive);
    opus_4_8: plain("claude-opus-4-8", 1_000_000, 967_000, Kind::Compaction);
    haiku_4_5_with_window: plain("claude-haiku-4-5", 200_000, 117_000, Kind::Compaction).env(WINDOW, "150000").set();
    unknown_model_with_context: plain("some-other-model", 300_000, 267_000, Kind::Compaction)
        .env(CONTEXT, "300000").set();
}

/// Held 60 tokens on either side of what is predicted.
#[track_caller]
fn is_where_sessions_end(row: &Row) {
    let Some(bench) = row.bench() else { return };
    let wall = predicted(row, &bench);
    drop(bench);
    if row.kind == Kind::Reactive {
        return ends_at_the_api(row);
    }
    assert_eq!(climb(&open(row), wall - NEAR), Ending::None, "{NEAR} tokens under the wall of {row:?}");
    let over = climb(&open(row), wall + NEAR);
    match row.kind {
        Kind::Compaction => {
            assert!(matches!(over, Ending::Compaction(_)), "{over:?} over the wall of {row:?}");
        }
        _ => assert_eq!(over, Ending::Refusal, "{NEAR} tokens over the wall of {row:?}"),
    }
}

/// What `explain` says beside a client of this configuration, before its first turn.
#[track_caller]
fn predicted(row: &Row, bench: &Bench) -> u64 {
    let client = Headless::start(bench);
    let told = explain_payload(bench, row.model, row.window, client.pid());
    let source = if row.configured { "configured" } else { "assumed" };
    near(row, &told, source)
}

/// After one turn with the plugin loaded the client's own figures stand behind the wall.
#[track_caller]
fn is_told_by_the_client(row: &Row) {
    let Some(bench) = row.bench() else { return };
    let bench = plugged(bench);
    let result = bench.ask("hello", &[]);
    let session = result["session_id"].as_str().expect("a session");
    near(row, &explain(&bench, &["--session", session], &[]), "client");
}

#[track_caller]
fn near(row: &Row, told: &Value, source: &str) -> u64 {
    let wall = &told["wall"];
    let tokens = wall["tokens"].as_u64().expect("a wall");
    assert!(tokens.abs_diff(row.wall) <= NEAR, "measured {} under {row:?}, told {told:#}", row.wall);
    assert_eq!(wall["kind"], row.kind.word(), "{row:?}: {told:#}");
    assert_eq!(wall["source"], source, "{row:?}: {told:#}");
    tokens
}

#[track_caller]
fn ends_at_the_api(row: &Row) {
    let beyond = row.wall + row.wall / 4;
    assert_eq!(climb(&open(row), beyond), Ending::None, "{beyond} tokens under {row:?}");
    let refused = climb_to_the_limit(&open(row), row.wall);
    assert!(matches!(refused, Ending::Compaction(_)), "{refused:?} at the API's limit under {row:?}");
}

fn open(row: &Row) -> Bench {
    row.bench().expect("the client was there a moment ago")
}
