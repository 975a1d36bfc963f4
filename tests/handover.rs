//! What the module hands over, and what it is answered.

use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Sandbox};

/// The module's hand-over after a response.
fn handed(sandbox: &Sandbox, tokens: u64, threshold: u64) -> Value {
    json!({
        "session_id": SESSION, "cwd": sandbox.work(), "workspace": { "project_dir": sandbox.work() },
        "model": { "id": "claude-opus-5-5", "display_name": "Opus 5.5" },
        "longhaul": { "v": 1, "event": "step", "columns": 120, "figures": { "tokens": tokens, "output_tokens": 500,
            "window": 1_000_000, "autoCompactThreshold": threshold, "isAutoCompactEnabled": true,
            "rawMaxTokens": threshold + 33_000, "autocompactSource": "experiment" } },
    })
}

fn answered(sandbox: &Sandbox, payload: &Value) -> (String, String) {
    let said = sandbox.statusline(payload);
    assert_eq!((said.code, said.stdout.lines().count()), (0, 1), "{said:?}");
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    let text = |key: &str| answer[key].as_str().unwrap().to_owned();
    (text("text"), text("place"))
}

fn started() -> Sandbox {
    let sandbox = Sandbox::new().env("NO_COLOR", "1");
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    sandbox
}

#[test]
fn the_clients_own_figures_beat_the_formula_for_every_program() {
    let sandbox = started();
    let (text, place) = answered(&sandbox, &handed(&sandbox, 600_000, 667_000));
    assert_eq!((&*text, &*place), ("Opus 5.5 | █████████░ 90% 601k/667k | HANDOFF DUE (2)", "below"));
    let told = sandbox.longhaul_json(&["explain", "--session", SESSION, "--json"]);
    assert_eq!(told["wall"], json!({ "tokens": 667_000, "kind": "compaction", "source": "client" }));
    assert_eq!(told["context"], json!({ "tokens": 600_500, "estimated": false }), "there is no transcript");
    let answer = sandbox.answer(&sandbox.event("UserPromptSubmit", &json!({ "prompt": "go on" })));
    assert!(answer["systemMessage"].as_str().unwrap().contains("601k of 667k"), "{answer}");
}

#[test]
fn figures_of_other_inputs_or_another_model_say_nothing_of_the_wall() {
    let sandbox = started();
    answered(&sandbox, &handed(&sandbox, 600_000, 667_000));
    let mut payload = sandbox.payload(1_000_000, None, None);
    let wall = |sandbox: &Sandbox, payload: &Value| {
        sandbox.statusline(payload).stdout.split_once('/').unwrap().1.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(wall(&sandbox, &payload), "667k");
    let sandbox = sandbox.settings(&json!({ "autoCompactWindow": 500_000 }));
    assert_eq!(wall(&sandbox, &payload), "467k", "a setting changed since");
    let sandbox = sandbox.settings(&json!({}));
    assert_eq!(wall(&sandbox, &payload), "667k");
    payload["model"] = json!({ "id": "claude-sonnet-5", "display_name": "Sonnet 5" });
    assert_eq!(wall(&sandbox, &payload), "967k", "the model changed since");
}

/// Drawn once where both ways are there; a person's own line is kept.
#[test]
fn the_place_depends_on_whose_line_is_there() {
    let place = |command: Option<&str>| {
        let settings =
            command.map(|command| json!({ "statusLine": { "type": "command", "command": command } }));
        let sandbox = started().settings(&settings.unwrap_or(json!({})));
        answered(&sandbox, &handed(&sandbox, 5, 667_000)).1
    };
    assert_eq!(place(None), "below");
    assert_eq!(place(Some("~/bin/my-line.sh")), "below");
    assert_eq!(place(Some("/h/.claude/longhaul/bin/current/longhaul-statusline")), "replace");
    let sandbox = started().settings(&json!({ "statusLine": { "type": "command", "command": "mine" } }));
    fs_err::write(sandbox.state().join("config.json"), r#"{ "statusline": "off" }"#).unwrap();
    assert_eq!(answered(&sandbox, &handed(&sandbox, 5, 667_000)).1, "off");
}

#[test]
fn a_stamp_is_kept_and_answered_by_nothing() {
    let sandbox = started();
    let mut stamp = handed(&sandbox, 5, 667_000);
    stamp["longhaul"] = json!({ "v": 1, "event": "stream", "columns": 120, "figures": null });
    assert_eq!(sandbox.statusline(&stamp).stdout, "");
    let at = fs_err::read_to_string(sandbox.state().join(format!("gauge/{SESSION}.stream"))).unwrap();
    let age = longhaul::host::clock::now_ms() - at.parse::<i64>().unwrap();
    assert!((0..60_000).contains(&age), "{age}");
}

/// The transcript is written a moment after the client's figures are there.
#[test]
fn the_first_response_after_a_compaction_is_the_clients_figure() {
    let sandbox = started();
    let path = sandbox.transcript(&Rows::new().turns(&[900_000]).boundary("auto", 967_500, 20_000).rows);
    let mut payload = handed(&sandbox, 24_500, 967_000);
    payload["transcript_path"] = json!(path);
    assert!(answered(&sandbox, &payload).0.contains(" 25.0k/967k"));
    // Right after it the client has no count: the compaction's own is drawn, as an estimate.
    payload["longhaul"]["figures"]["tokens"] = Value::Null;
    payload["longhaul"]["figures"]["output_tokens"] = Value::Null;
    let fresh = started();
    payload["transcript_path"] =
        json!(fresh.transcript(&Rows::new().turns(&[9]).boundary("auto", 9, 20_000).rows));
    assert!(answered(&fresh, &payload).0.contains("~20.0k/967k"));
}
