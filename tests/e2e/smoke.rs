//! The bench itself.

use serde_json::json;

use crate::api::{Answer, Kind};
use crate::bench::Bench;
use crate::headless::Headless;
use crate::probe::{self, Figures};

#[test]
fn a_prompt_reaches_the_stand_in_and_its_answer_comes_back() {
    let Some(bench) = Bench::open() else { return };
    bench.api.next([Answer::text("from the stand-in").used(1234)]);
    let result = bench.ask("to the stand-in", &[]);
    assert_eq!(result["result"], "from the stand-in");
    let requests = bench.api.of(Kind::Main);
    assert_eq!(requests.len(), 1);
    assert!(requests[0].new_text().contains("to the stand-in"));
}

#[test]
fn the_probe_reads_the_figures_the_client_has() {
    let Some(bench) = Bench::open() else { return };
    let bench = probe::install(bench).user(&json!({ "autoCompactWindow": 300_000 }));
    bench.ask("hello", &[]);
    let told = Figures {
        window: 1_000_000,
        raw: 300_000,
        enabled: true,
        threshold: Some(267_000),
        source: "settings".to_owned(),
    };
    assert_eq!(probe::read(&bench), Some(told));
}

#[test]
fn a_headless_session_goes_on_over_several_turns_and_its_tools_run() {
    let Some(bench) = Bench::open() else { return };
    let bench = bench.arg("--dangerously-skip-permissions").env("IS_SANDBOX", "1");
    bench
        .api
        .next([Answer::text("one"), Answer::tool("Bash", &json!({ "command": "echo tool-$((40 + 2))" }))]);
    let mut session = Headless::start(&bench);
    assert_eq!(session.say("first")["result"], "one");
    assert_eq!(session.say("second")["result"], "ok");
    session.end();
    let requests = bench.api.of(Kind::Main);
    assert_eq!(requests.len(), 3);
    assert!(requests[2].new_text().contains("tool-42"), "{}", requests[2].new_text());
}
