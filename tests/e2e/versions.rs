//! Other clients than the pinned one: the oldest that the README names, and the first that runs modules.
//!
//! `sh .ci/client VERSION` fetches one; without it these say so and pass.

use crate::api::Kind;
use crate::bench::Bench;
use crate::client;
use crate::climb::{Ending, climb};
use crate::live::{session, used};
use crate::longhaul::{explain, longhaul, plugged};
use crate::rows::WINDOW;

const OLDEST: &str = "2.1.197";
const FIRST_WITH_MODULES: &str = "2.1.287";

/// A bench of that client, whose sessions end at 117,000 tokens.
fn open(version: &str) -> Option<Bench> {
    let bench = Bench::with(client::find_version(version)?);
    Some(bench.env(WINDOW, "150000").model("claude-haiku-4-5"))
}

#[test]
fn the_oldest_client_ends_sessions_where_an_explicit_window_says() {
    let Some(bench) = open(OLDEST) else { return };
    assert_eq!(climb(&bench, 116_940), Ending::None);
    drop(bench);
    let over = climb(&open(OLDEST).unwrap(), 117_060);
    assert!(matches!(over, Ending::Compaction(_)), "{over:?}");
}

#[test]
fn the_oldest_client_ignores_the_module_and_runs_the_rest() {
    let Some(bench) = open(OLDEST) else { return };
    longhaul(&bench, &["setup", "--statusline", "--no-plugin", "--no-link"]);
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    for (tokens, share) in [(73_000, " 62% 73.0k/117k "), (100_000, " 85% 100k/117k ")] {
        bench.api.usual(used(tokens));
        session.say(&format!("to {tokens}"));
        session.wait_for(share);
    }
    bench.api.usual(used(101_000));
    session.say("due now");
    session.wait_for(" 101k/117k ");
    let requests = bench.api.of(Kind::Main);
    let told = |at: usize| requests[at].new_text().contains("[longhaul] This session stands at 85 %");
    assert_eq!([told(0), told(1), told(2)], [false, false, true]);
}

/// Modules hand the figures over from here on; they draw the status line from 2.1.332 on.
#[test]
fn the_first_client_with_modules_tells_its_figures_and_the_command_draws_them() {
    let Some(bench) = open(FIRST_WITH_MODULES) else { return };
    longhaul(&bench, &["setup", "--statusline", "--no-plugin", "--no-link"]);
    let bench = plugged(bench);
    let mut session = session(&bench, &[]);
    bench.api.usual(used(73_000));
    session.say("hello");
    session.wait_for(" 62% 73.0k/117k ");
    let id = crate::live::session_id(&bench);
    session.wait_until("the client's own figures", |_| {
        let told = explain(&bench, &["--session", &id], &[]);
        (told["wall"]["source"] == "client").then_some(())
    });
}
