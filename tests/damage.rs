//! Figures, names and files that somebody made absurd: what is shown stays true or says that it is not known.

use serde_json::{Value, json};

use crate::sandbox::{Rows, Said, Sandbox};

const SIX: [u64; 6] = [100_000, 110_000, 120_000, 130_000, 140_000, 150_000];

#[track_caller]
fn shown(said: &Said) -> &str {
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 1, "{said:?}");
    said.stdout.trim_end()
}

/// One row with a count that no integer holds made every later look at its transcript fail.
#[test]
fn a_count_that_cannot_be_is_not_told() {
    for absurd in ["18446744073709551615", "1e300", "9223372036854775808", "1e999", "-7"] {
        let sandbox = Sandbox::new();
        let mut rows = Rows::new().turns(&SIX).boundary("auto", 4_711, 20_000).turns(&[30_000, 40_000]);
        let mut last = rows.rows.last().unwrap().clone();
        (last["uuid"], last["parentUuid"]) = (json!("x"), rows.rows.last().unwrap()["uuid"].clone());
        last["message"]["id"] = json!("x");
        for part in ["input_tokens", "output_tokens", "cache_read_input_tokens"] {
            last["message"]["usage"][part] = json!(4_711);
        }
        rows = rows.raw(last);
        let path = sandbox.transcript(&rows.rows);
        let text = fs_err::read_to_string(&path).unwrap().replace("4711", absurd);
        fs_err::write(&path, text).unwrap();
        let mut payload = sandbox.payload(200_000, Some(4_711), Some(&path)).to_string();
        payload = payload.replace("4711", absurd);
        sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
        let said = sandbox.run("longhaul-statusline", &[], payload.as_bytes());
        assert!(shown(&said).contains("40.0k/167k"), "{absurd}: {said:?}");
        let payload = payload.replace("200000", absurd);
        let said = sandbox.run("longhaul-statusline", &[], payload.as_bytes());
        assert!(shown(&said).contains("40.0k/167k"), "{absurd} as a window: {said:?}");
        let explained = sandbox.longhaul_json(&["explain", "--json", "--transcript", path.to_str().unwrap()]);
        assert_eq!(explained["context"]["tokens"], 40_000, "{absurd}");
    }
}

/// Its own figures, handed over by the module.
#[test]
fn absurd_figures_of_the_client_count_as_none() {
    let sandbox = Sandbox::new();
    let mut payload = sandbox.payload(200_000, Some(100_000), None);
    for absurd in [json!(u64::MAX), json!(1_u64 << 63), json!(1e300), json!("x"), json!(-1)] {
        payload["longhaul"] = json!({ "v": 1, "event": "measure", "columns": absurd, "figures": {
            "tokens": absurd, "output_tokens": absurd, "window": absurd, "autoCompactThreshold": absurd,
            "isAutoCompactEnabled": true, "rawMaxTokens": absurd, "autocompactSource": "auto" } });
        let said = sandbox.statusline(&payload);
        let answer: Value = serde_json::from_str(shown(&said)).unwrap();
        assert!(answer["text"].as_str().unwrap().contains("100k/167k"), "{absurd}: {answer}");
    }
}

/// A compaction that does not say at which count it came.
#[test]
fn a_compaction_without_its_count_teaches_no_wall() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&SIX).boundary("auto", 0, 20_000).rows);
    let said = sandbox.statusline(&sandbox.payload(200_000, None, Some(&path)));
    assert!(shown(&said).contains("~20.0k/167k"), "{said:?}");
}

/// A prompt cut within an emoji, a number that no float holds: the event, the payload are still heard.
#[test]
fn one_odd_field_takes_no_other_with_it() {
    let sandbox = Sandbox::new();
    sandbox.transcript(&Rows::new().turns(&[950_000, 960_000]).rows);
    let deep = "[".repeat(200) + &"]".repeat(200);
    for odd in ["\"\\ud83d\"", "1e999", &deep, "{\"id\":\"\\udc00\"}"] {
        let payload = sandbox.payload(200_000, Some(100_000), None).to_string();
        for field in ["version", "cwd", "prompt_cache", "longhaul", "model"] {
            let payload =
                format!("{{\"{field}\":{odd},{}", payload.replace("\"model\":", "\"m\":").split_off(1));
            let said = sandbox.run("longhaul-statusline", &[], payload.as_bytes());
            assert!(said.stdout.contains("100k/"), "{field} {odd}: {said:?}");
        }
        let event = sandbox.event("UserPromptSubmit", &json!({})).to_string();
        let event = format!("{{\"prompt\":{odd},{}", &event[1..]);
        let said = sandbox.run("longhaul-hook", &[], event.as_bytes());
        assert!(shown(&said).contains("hand off now"), "{odd}: {said:?}");
        fs_err::remove_dir_all(sandbox.state()).unwrap();
    }
}
