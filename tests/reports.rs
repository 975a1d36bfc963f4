//! Inputs from public reports about the client or tools of this kind, each with the right answer, through the
//! built programs. Numbers in comments name the report.

use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Sandbox};

const M: u64 = 1_000_000;

#[track_caller]
fn line(sandbox: &Sandbox, payload: &Value) -> String {
    let said = sandbox.statusline(payload);
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    let text = said.stdout.strip_suffix('\n').expect("a line").to_owned();
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
    strip(&text)
}

/// Without colours.
fn strip(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        rest = &rest[rest.find('m').map_or(rest.len(), |end| end + 1)..];
    }
    out + rest
}

#[track_caller]
fn shows(sandbox: &Sandbox, window: u64, used: u64, expected: &str) {
    let shown = line(sandbox, &sandbox.payload(window, Some(used), None));
    assert!(shown.contains(expected), "{expected:?} is not in {shown:?}");
}

#[track_caller]
fn wall(sandbox: &Sandbox, window: u64) -> (u64, String, String) {
    let told = sandbox.explain(&sandbox.payload(window, None, None));
    let text = |key: &str| told["wall"][key].as_str().unwrap().to_owned();
    (told["wall"]["tokens"].as_u64().unwrap(), text("kind"), text("source"))
}

fn compaction(tokens: u64, source: &str) -> (u64, String, String) {
    (tokens, "compaction".into(), source.into())
}

// CC#34537: the bar said 78 % where the client said 7 % left.
#[test]
fn a_200k_session_is_measured_against_its_trigger() {
    shows(&Sandbox::new(), 200_000, 156_000, "93% 156k/167k");
}

// CC#62210; sirmalloc/ccstatusline#389 and #390; CC#93901.
#[test]
fn a_window_in_settings_moves_the_wall() {
    let with = |window: u64| Sandbox::new().settings(&json!({ "autoCompactWindow": window }));
    shows(&with(400_000), M, 350_000, "95% 350k/367k");
    shows(&with(200_000), M, 70_000, "42% 70.0k/167k");
    shows(&with(500_000), M, 466_000, "99% 466k/467k");
}

// BaseInfinity/claude-sdlc-harness#207 and #531.
#[test]
fn window_and_percentage_compound() {
    let both = Sandbox::new()
        .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "400000")
        .env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "30");
    shows(&both, M, 100_000, "88% 100k/114k");
    let small = Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "150000");
    assert_eq!(wall(&small, M), compaction(117_000, "configured"));
}

// The suffix is read; what the client does not read is named and harms nothing.
#[test]
fn odd_windows_are_read_as_the_client_reads_them() {
    let with = |text: &str| Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", text);
    assert_eq!(wall(&with("500k"), M), compaction(467_000, "configured"));
    for junk in ["abc", "", "-5"] {
        let sandbox = with(junk);
        assert_eq!(wall(&sandbox, M), compaction(967_000, "assumed"), "{junk:?}");
        let told = sandbox.explain(&sandbox.payload(M, None, None));
        let warned = told["warnings"].to_string();
        assert!(warned.contains("CLAUDE_CODE_AUTO_COMPACT_WINDOW"), "{junk:?}: {warned}");
        assert_eq!(told["inputs"][0]["effect"], "ignored");
    }
    // Measured on 2.1.332: read as 1,000,000, which is no lower than the model's own. It is named too.
    let sandbox = with("1e6");
    assert_eq!(wall(&sandbox, M).0, 967_000);
    let told = sandbox.explain(&sandbox.payload(M, None, None));
    assert!(told["warnings"].to_string().contains("1e6"));
}

// CC#31806, CC#57567, CC#82761: above the default it is ignored, and it may have no effect at all.
#[test]
fn a_percentage_only_lowers_and_evidence_beats_it() {
    let high = Sandbox::new().env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "95");
    assert_eq!(wall(&high, 200_000).0, 167_000);
    let low = Sandbox::new().env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "40");
    let used = [50_000, 60_000, 80_000, 100_000, 130_000, 150_000, 166_000];
    let rows = Rows::new().turns(&used).boundary("auto", 167_400, 20_000).turns(&[21_000]);
    let path = low.transcript(&rows.rows);
    let told = low.explain(&low.payload(200_000, Some(21_000), Some(&path)));
    assert_eq!(told["wall"], json!({ "tokens": 167_400, "kind": "compaction", "source": "learned" }));
    assert!(told["warnings"].to_string().contains("override not effective"));
}

// ccstatusline#389 takes the percentage of the whole window; the client takes it of the effective one.
#[test]
fn the_percentage_is_of_the_effective_window() {
    shows(&Sandbox::new().env("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "60"), 200_000, 96_000, "89% 96.0k/108k");
}

// CC#65966.
#[test]
fn a_window_above_the_models_is_capped_and_said() {
    let sandbox = Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "1000000");
    shows(&sandbox, 200_000, 100_000, "CLAMPED 200k");
    assert_eq!(wall(&sandbox, 200_000).0, 167_000);
}

#[test]
fn each_switch_turns_compaction_off_and_the_setting_does_not_undo_it() {
    for name in ["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"] {
        for settings in [json!({}), json!({ "autoCompactEnabled": true })] {
            let sandbox = Sandbox::new().env(name, "1").settings(&settings);
            assert_eq!(
                wall(&sandbox, M),
                (977_000, "refusal".into(), "configured".into()),
                "{name} {settings}"
            );
        }
    }
}

// CC#63015, CC#66144, CC#63976, CC#64904, CC#63464: nothing fired at 100 %, and the bar hid it.
#[test]
fn past_the_wall_the_percent_goes_on_and_the_bar_stays() {
    let sandbox = Sandbox::new();
    let shown = line(&sandbox, &sandbox.payload(200_000, Some(199_000), None));
    assert!(shown.contains("past wall") && shown.contains("119%"), "{shown}");
    let shown = line(&sandbox, &sandbox.payload(200_000, Some(371_900), None));
    assert!(shown.contains("██████████ 223% 372k/167k"), "{shown}");
}

// CC#72600, CC#72414: it fired at 468k of 1M with nothing configured.
#[test]
fn a_compaction_teaches_where_the_wall_is() {
    let sandbox = Sandbox::new();
    let used = [50_000, 100_000, 200_000, 300_000, 400_000, 450_000, 467_000];
    let rows = Rows::new().turns(&used).boundary("auto", 468_102, 28_759).turns(&[30_000]);
    let path = sandbox.transcript(&rows.rows);
    let shown = line(&sandbox, &sandbox.payload(M, Some(30_000), Some(&path)));
    assert!(shown.contains("/468k") && shown.contains("learned"), "{shown}");
}

// CC#36014, CC#42375, CC#52981: a manual compaction says nothing of the trigger.
#[test]
fn only_an_automatic_compaction_teaches() {
    let used = [50_000, 100_000, 120_000, 140_000, 150_000, 160_000, 170_000];
    for (trigger, expected) in [("auto", 171_000), ("manual", 967_000)] {
        let sandbox = Sandbox::new();
        let rows = Rows::new().turns(&used).boundary(trigger, 171_000, 20_000).turns(&[21_000]);
        let path = sandbox.transcript(&rows.rows);
        let told = sandbox.explain(&sandbox.payload(M, Some(21_000), Some(&path)));
        assert_eq!(told["wall"]["tokens"], expected, "{trigger}");
    }
}

// CC#86863: the default moved under a running version.
#[test]
fn the_newest_compaction_counts() {
    let sandbox = Sandbox::new();
    let old = [50_000, 80_000, 100_000, 120_000, 150_000, 160_000, 166_000];
    let new = [30_000, 60_000, 90_000, 110_000, 130_000, 140_000, 145_000];
    let rows = Rows::new().turns(&old).boundary("auto", 167_000, 20_000);
    let rows = rows.turns(&new).boundary("auto", 146_000, 20_000).turns(&[21_000]);
    let path = sandbox.transcript(&rows.rows);
    let told = sandbox.explain(&sandbox.payload(200_000, Some(21_000), Some(&path)));
    assert_eq!(told["wall"]["tokens"], 146_000);
}

// CC#73399, CC#39467, ccstatusline#233, graykode/abtop#109: the wrong denominator for a large window.
#[test]
fn the_window_that_the_client_states_is_used() {
    let sandbox = Sandbox::new();
    let rows = Rows::new().prompt("x").response_of("claude-opus-4-6", 300_000);
    let path = sandbox.transcript(&rows.rows);
    let mut payload = sandbox.payload(M, Some(300_000), Some(&path));
    payload["model"]["id"] = json!("claude-opus-4-6[1m]");
    assert_eq!(
        sandbox.explain(&payload)["window"],
        json!({ "tokens": M, "source": "payload", "clamped": null })
    );
}

#[test]
fn the_large_window_can_be_switched_off() {
    let sandbox = Sandbox::new().env("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1");
    assert_eq!(wall(&sandbox, M), compaction(167_000, "configured"));
}

// CC#31526: the bar said 69 % while everything was refused.
#[test]
fn a_refused_session_is_at_its_wall_whatever_the_percent() {
    let sandbox = Sandbox::new();
    let rows = Rows::new().turns(&[100_000, 138_000]).prompt("x").too_long();
    let path = sandbox.transcript(&rows.rows);
    let shown = line(&sandbox, &sandbox.payload(200_000, Some(138_000), Some(&path)));
    assert!(shown.contains("at wall") && shown.contains("HANDOFF NOW"), "{shown}");
}

// CC#18944, CC#21651: figures that fit no default; certainty is never claimed.
#[test]
fn an_unconfirmed_wall_is_called_assumed() {
    shows(&Sandbox::new(), 200_000, 122_000, "73% 122k/167k");
    shows(&Sandbox::new(), 200_000, 122_000, "assumed");
}

// CC#58268, CC#86785, CC#19669, ccstatusline#524: zero or the old value after /compact.
#[test]
fn after_a_compaction_its_own_estimate_is_shown() {
    let sandbox = Sandbox::new();
    let rows = Rows::new().turns(&[100_000, 150_000]).boundary("manual", 150_000, 28_759);
    let path = sandbox.transcript(&rows.rows);
    let shown = line(&sandbox, &sandbox.payload(200_000, None, Some(&path)));
    assert!(shown.contains("~17% ~28.8k/167k"), "{shown}");
}

// CC#29651: the first payload after a compaction still carries the numbers from before.
#[test]
fn a_payload_from_before_the_compaction_is_overruled() {
    let sandbox = Sandbox::new().env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let rows = Rows::new().turns(&[90_000, 94_000]).boundary("auto", 94_000, 52_000);
    let path = sandbox.transcript(&rows.rows);
    let shown = line(&sandbox, &sandbox.payload(200_000, Some(94_000), Some(&path)));
    assert!(shown.contains("~52.0k/67.0k"), "{shown}");
    let answer = sandbox.answer(&sandbox.event("UserPromptSubmit", &json!({ "prompt": "go on" })));
    assert_eq!(answer, Value::Null, "an estimate offers nothing");
}

// CC#62268, CC#52648, claude-hud#329: nought after re-entry.
#[test]
fn a_resumed_session_shows_its_last_response() {
    let sandbox = Sandbox::new();
    let rows = Rows::new().turns(&[50_000, 83_400]);
    let path = sandbox.transcript(&rows.rows);
    let shown = line(&sandbox, &sandbox.payload(200_000, None, Some(&path)));
    assert!(shown.contains("83.4k/167k"), "{shown}");
}

// Haleclipse/CCometixLine#122.
#[test]
fn a_payload_without_a_transcript_still_draws() {
    let sandbox = Sandbox::new();
    let mut payload = sandbox.payload(200_000, Some(83_400), None);
    payload.as_object_mut().unwrap().remove("transcript_path");
    assert!(line(&sandbox, &payload).contains("83.4k/167k"));
}

// CCometixLine borrows a neighbour's number.
#[test]
fn a_fresh_session_never_shows_another_sessions_number() {
    let sandbox = Sandbox::new();
    let sibling = sandbox.transcript(&Rows::new().turns(&[150_000]).rows);
    let other = sibling.with_file_name("other.jsonl");
    fs_err::rename(&sibling, &other).unwrap();
    let shown = line(&sandbox, &sandbox.payload(200_000, None, Some(&sibling)));
    assert!(shown.contains('–') && !shown.contains("150"), "{shown}");
}

// Haleclipse/CCometixLine#8: a failed response counted as nought.
#[test]
fn a_synthetic_row_is_no_response() {
    let sandbox = Sandbox::new();
    let rows = Rows::new().turns(&[83_400]).prompt("x").response_of("<synthetic>", 0);
    let path = sandbox.transcript(&rows.rows);
    let shown = line(&sandbox, &sandbox.payload(200_000, None, Some(&path)));
    assert!(shown.contains("83.4k/167k"), "{shown}");
}

// CC#91775, ccstatusline#549 and #462, titeya/dms-claudecode#52: one response over several rows was counted once a row.
#[test]
fn a_response_over_several_rows_is_counted_once() {
    let sandbox = Sandbox::new();
    let mut rows = Rows::new().prompt("x").response(10).response(10).response(10);
    for (row, output) in rows.rows[1..].iter_mut().zip([1, 1, 217]) {
        row["message"]["id"] = json!("msg_same");
        row["message"]["usage"] = json!({ "input_tokens": 1_000, "output_tokens": output });
    }
    let path = sandbox.transcript(&rows.rows);
    let told = sandbox.longhaul_json(&["weigh", "--json", "--transcript", path.to_str().unwrap()]);
    assert_eq!((&told["responses"], &told["context"]["tokens"]), (&json!(1), &json!(1_217)));
}

// git-ai-project/git-ai#2268, letta-ai/letta-code#3580, NousResearch/hermes-agent#1193, CC#62851.
#[test]
fn damaged_rows_are_counted_and_block_nothing() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().raw(json!({ "type": "pr-link" })).turns(&[83_400]).rows);
    let mut bytes = fs_err::read(&path).unwrap();
    bytes.extend(b"{\"type\":\"user\",\"message\":\"\xff\xfe\"}\n{\"type\": oops}\nnull\n[1]\n");
    bytes.extend(br#"{"type":"assistant","message":{"usage":{"input_tok"#);
    fs_err::write(&path, bytes).unwrap();
    let told = sandbox.longhaul_json(&["weigh", "--json", "--transcript", path.to_str().unwrap()]);
    assert_eq!(told["context"]["tokens"], 83_400);
    assert!(told["damaged"].as_u64().unwrap() >= 1, "{told}");
}

// NoColor: no public report, but most peers ignore it.
#[test]
fn no_colour_means_no_escape() {
    let shown = |sandbox: Sandbox| sandbox.statusline(&sandbox.payload(M, Some(900_000), None)).stdout;
    assert!(shown(Sandbox::new()).contains('\u{1b}'));
    assert!(!shown(Sandbox::new().env("NO_COLOR", "1")).contains('\u{1b}'));
    assert!(!shown(Sandbox::new().env("TERM", "dumb")).contains('\u{1b}'));
}

// CC#21304, CC#43826, CC#29383, CC#83402: a bar that vanished.
#[test]
fn any_input_draws_something_and_exits_0() {
    let sandbox = Sandbox::new();
    for input in [&b""[..], b"{", b"null", b"[]", b"\xff\xfe", br#"{"context_window":null,"model":"x"}"#] {
        let said = sandbox.run("longhaul-statusline", &[], input);
        assert_eq!(said.code, 0);
        assert!(!said.stdout.trim().is_empty() && said.stdout.ends_with('\n'), "{said:?}");
    }
}

// williamzujkowski/statuslines#11, stormzhang/token-tracker#20: cells, not characters.
#[test]
fn the_line_never_exceeds_its_width() {
    for columns in ["1", "5", "8", "20", "40", "44", "60", "84", "120", "0", "junk", ""] {
        let sandbox = Sandbox::new().env("COLUMNS", columns);
        let rows =
            Rows::new().turns(&[600_000; 8]).boundary("auto", 967_500, 20_000).turns(&[900_000, 910_000]);
        let path = sandbox.transcript(&rows.rows);
        let mut payload = sandbox.payload(M, Some(910_000), Some(&path));
        payload["model"]["display_name"] = json!("测试项目-令牌追踪 👩‍👩‍👧 e\u{301}");
        payload["prompt_cache"] = json!({ "warm": false });
        let shown = line(&sandbox, &payload);
        let usable =
            columns.parse::<usize>().ok().filter(|c| *c > 0).map_or(80, |c| c.saturating_sub(4).max(1));
        let cells = longhaul::base::text::width(&shown);
        assert!(cells <= usable, "{cells} cells of {usable}: {shown:?}");
        if usable >= 13 {
            assert!(shown.contains("94%") && shown.contains("910k/967k"), "{shown:?}");
        }
    }
}

// The parent's session id is a name for files of ours: it is checked, not trusted.
#[test]
fn a_forged_session_id_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let mut event = sandbox.event("UserPromptSubmit", &json!({ "prompt": "x" }));
    event["session_id"] = json!("../../../x");
    assert_eq!(sandbox.answer(&event), Value::Null);
    let names = fs_err::read_dir(sandbox.state().join("gauge")).unwrap();
    for name in names.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        assert!(name.starts_with(SESSION), "{name}");
    }
}

/// A table can be wrong about a model: two responses running that exceed its window move it up.
#[test]
fn a_context_beyond_the_tables_window_moves_it_up() {
    let sandbox = Sandbox::new();
    let told = |used: &[u64]| {
        let mut rows = Rows::new();
        for used in used {
            rows = rows.prompt("x").response_of("claude-haiku-4-5", *used);
        }
        let path = sandbox.transcript(&rows.rows);
        let told = sandbox.longhaul_json(&["explain", "--json", "--transcript", path.to_str().unwrap()]);
        (told["window"]["tokens"].as_u64().unwrap(), told["window"]["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(told(&[100_000, 250_000]), (200_000, "table".into()));
    assert_eq!(told(&[100_000, 250_000, 260_000]), (1_000_000, "outgrown".into()));
}
