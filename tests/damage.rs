//! Figures, names and files that somebody made absurd: what is shown stays true or says that it is not known.

use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Said, Sandbox};

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

/// Whether a terminal would act on any of it; colours are meant.
fn acts(text: &str) -> bool {
    let plain = text.replace("\u{1b}[3", "").replace('\n', "");
    plain != longhaul::base::text::clean(&plain)
}

const ODD: &str = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{61c}\u{7f}\u{e0041}\rb";

#[test]
fn a_name_can_neither_steer_the_terminal_nor_fill_it() {
    let sandbox = Sandbox::new();
    let mut payload = sandbox.payload(200_000, Some(100_000), None);
    for name in [ODD.to_owned(), "a".to_owned() + &"\u{301}".repeat(1_500), "\u{200b}".repeat(1_300)] {
        payload["model"]["display_name"] = json!(name);
        let said = sandbox.statusline(&payload);
        assert!(!acts(shown(&said)) && said.stdout.len() < 1_000, "{said:?}");
    }
}

#[test]
fn no_command_shows_what_a_terminal_would_act_on() {
    let settings = json!({ "env": { "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": ODD }, "autoCompactWindow": ODD });
    let sandbox = Sandbox::new().settings(&settings);
    let path = sandbox.transcript(&Rows::new().response_of(ODD, 100_000).rows);
    let mut payload = sandbox.payload(200_000, Some(100_000), Some(&path));
    payload["model"] = json!({ "id": ODD, "display_name": ODD });
    let file = sandbox.root.path().join(format!("p{}", ODD.replace('\0', "")));
    fs_err::write(&file, payload.to_string()).unwrap();
    let (file, path) = (file.to_str().unwrap(), path.to_str().unwrap());
    let none = format!("{file}-none");
    for args in [
        &["explain", "--payload", file][..],
        &["explain", "--json", "--payload", file],
        &["explain", "--transcript", path],
        &["explain", "--json", "--transcript", path],
        &["weigh", "--payload", file],
        &["weigh", "--json", "--payload", file],
        &["explain", "--transcript", &none],
        &["explain", "--payload", &none],
        &["weigh", "--session", ODD],
        &["handoff", "snooze", "--session", ODD],
        &["weigh", "--subtasks", ODD],
        &[ODD],
    ] {
        let said = sandbox.longhaul(args);
        let code =
            if args.contains(&"--subtasks") || args == [ODD] { 2 } else { i32::from(said.stdout.is_empty()) };
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        assert!(!acts(&said.stdout) && !acts(&said.stderr), "{args:?}: {said:?}");
        if args.contains(&"--json") {
            serde_json::from_str::<Value>(&said.stdout).unwrap();
        }
    }
    for home in [format!("h{ODD}"), "h'\"$(id)\n".to_owned()] {
        let home = sandbox.root.path().join(home);
        fs_err::create_dir_all(home.join(".claude")).unwrap();
        fs_err::write(home.join(".claude/settings.json"), "{").unwrap();
        let sandbox = Sandbox::new().env("HOME", home.to_str().unwrap());
        for args in
            [&["setup", "--statusline"][..], &["setup", "--undo"], &["setup", "--json", "--no-statusline"]]
        {
            let said = sandbox.longhaul(args);
            assert_eq!(said.code, i32::from(!args.contains(&"--json")), "{said:?}");
            assert!(!acts(&said.stdout) && !acts(&said.stderr), "{args:?}: {said:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_gone_is_no_error_and_a_full_one_is_one() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&SIX).rows);
    let path = path.to_str().unwrap();
    for args in [
        &["explain", "--transcript", path][..],
        &["explain", "--json", "--transcript", path],
        &["weigh", "--transcript", path],
        &["handoff", "snooze", "--session", SESSION],
        &["setup", "--dry-run"],
    ] {
        let mut command = sandbox.command("longhaul");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.args(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{args:?}: {output:?}");
        if cfg!(target_os = "linux") {
            let full = fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap().into_parts().0;
            let output = command.stdout(full).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
            assert!(said.starts_with("longhaul: could not write") && said.lines().count() == 1, "{said}");
        }
    }
}

#[cfg(unix)]
fn fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// What teaches a lesson takes the lock: nothing may wait on it, nor write through it.
#[cfg(unix)]
#[test]
fn a_fifo_or_a_link_in_place_of_the_lock_is_neither_waited_on_nor_followed() {
    let rows = Rows::new().turns(&SIX).turns(&[160_000]);
    let now = Rows::later().boundary("auto", 163_000, 20_000).rows;
    for kind in ["fifo", "link"] {
        let sandbox = Sandbox::new();
        sandbox.transcript(&rows.rows);
        sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
        let (lock, outside) = (sandbox.state().join("learned.lock"), sandbox.root.path().join("outside"));
        if kind == "fifo" {
            fifo(&lock);
        } else {
            fs_err::os::unix::fs::symlink(&outside, &lock).unwrap();
        }
        sandbox.transcript(&[rows.rows.clone(), now.clone()].concat());
        let said = sandbox.hook(&sandbox.event("PostCompact", &json!({ "trigger": "auto" })));
        assert_eq!((said.code, &*said.stdout, &*said.stderr), (0, "", ""), "{kind}: {said:?}");
        assert!(!outside.exists(), "{kind}");
        fs_err::remove_file(&lock).unwrap();
        sandbox.hook(&sandbox.event("PostCompact", &json!({ "trigger": "auto" })));
        assert!(sandbox.state().join("learned.json").exists(), "the lesson is kept as soon as it can be");
    }
}

#[cfg(unix)]
#[test]
fn setup_waits_on_no_fifo() {
    for place in ["home/.claude/longhaul", "home/.claude/settings.json", "home/.claude"] {
        let sandbox = Sandbox::new();
        let path = sandbox.root.path().join(place);
        if path.is_dir() {
            fs_err::remove_dir(&path).unwrap();
        }
        fifo(&path);
        for args in [&["setup", "--statusline"][..], &["setup", "--dry-run"], &["setup", "--undo"]] {
            let said = sandbox.longhaul(args);
            assert!(said.code == 1 || args.contains(&"--dry-run"), "{place}: {said:?}");
            assert!(said.code == 0 || said.stderr.lines().count() == 1, "{place}: {said:?}");
        }
    }
    let sandbox =
        Sandbox::new().settings(&json!({ "statusLine": { "type": "command", "command": "echo x" } }));
    fs_err::create_dir_all(sandbox.state()).unwrap();
    fifo(&sandbox.state().join("statusline-wrapper.sh"));
    for args in [&["setup", "--wrap-statusline", "--dry-run"][..], &["setup", "--wrap-statusline"]] {
        let said = sandbox.longhaul(args);
        assert_eq!(said.code, 0, "{said:?}");
    }
}

/// A limit on file sizes ends a process that writes past it.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_file_sizes_ends_nobody() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&SIX).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    for (program, input) in [
        ("longhaul-statusline", sandbox.payload(200_000, Some(160_000), Some(&path))),
        ("longhaul-hook", sandbox.event("UserPromptSubmit", &json!({ "prompt": "x" }))),
    ] {
        let mut command = sandbox.other_command("/bin/sh");
        command.args(["-c", "ulimit -f 0; exec \"$0\"", crate::sandbox::program_path(program)]);
        let pipe = std::process::Stdio::piped;
        let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.to_string().as_bytes()).unwrap();
        let said = crate::sandbox::finish(child);
        assert_eq!((said.code, &*said.stderr), (0, ""), "{program}: {said:?}");
        assert!(program == "longhaul-hook" || said.stdout.contains("160k/167k"), "{said:?}");
    }
}

/// The moments between which a setup can be ended: nothing but the record written; the copy as well; the
/// settings as well.
#[test]
fn a_setup_that_was_ended_in_between_is_healed_by_the_next() {
    let ours = "{\n  \"model\": \"opus\"\n}\n";
    for moment in ["record", "copy", "settings"] {
        for next in [&["setup", "--yes"][..], &["setup", "--undo"]] {
            let sandbox = Sandbox::new();
            let settings = sandbox.config().join("settings.json");
            fs_err::write(&settings, ours).unwrap();
            assert_eq!(sandbox.longhaul(&["setup", "--statusline"]).code, 0);
            let record = sandbox.state().join("setup.json");
            let mut told: Value = serde_json::from_slice(&fs_err::read(&record).unwrap()).unwrap();
            told["pending"] = told["settings"].take();
            fs_err::write(&record, told.to_string()).unwrap();
            let copy = told["pending"]["backups"][0]["path"].as_str().unwrap().to_owned();
            if moment == "record" {
                fs_err::remove_file(&copy).unwrap();
            }
            if moment != "settings" {
                fs_err::write(&settings, ours).unwrap();
                fs_err::write(sandbox.config().join(".lh-AbCdEf"), "{").unwrap();
            }
            assert_eq!(sandbox.longhaul(&["setup", "--dry-run"]).code, 0);
            assert_eq!(
                fs_err::read(&record).unwrap(),
                told.to_string().as_bytes(),
                "a dry run heals nothing"
            );
            assert_eq!(sandbox.longhaul(next).code, 0);
            let now = fs_err::read_to_string(&settings).unwrap();
            assert_eq!(now.contains("longhaul-statusline"), next[1] == "--yes", "{moment} {next:?}: {now}");
            assert_eq!(sandbox.longhaul(&["setup", "--undo"]).code, 0);
            assert_eq!(fs_err::read_to_string(&settings).unwrap(), ours, "{moment} {next:?}");
            let left = fs_err::read_dir(sandbox.config()).unwrap().map(|entry| entry.unwrap().file_name());
            assert_eq!(left.collect::<Vec<_>>(), ["settings.json"], "{moment} {next:?}");
        }
    }
}

/// The clock was years ahead while a count was stated, and is right again.
#[cfg(feature = "testing")]
#[test]
fn a_count_from_a_clock_that_was_ahead_is_not_the_newest_for_years() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[100_000]).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let sandbox = sandbox.env("LONGHAUL_TEST_NOW_MS", "2500000000000");
    let mut payload = sandbox.payload(200_000, Some(100_000), Some(&path));
    payload["longhaul"] = json!({ "v": 1, "event": "measure", "columns": 80, "figures": { "tokens": 100_000,
        "output_tokens": 1, "window": 200_000, "autoCompactThreshold": 167_000, "isAutoCompactEnabled": true } });
    sandbox.statusline(&payload);
    let sandbox = sandbox.env("LONGHAUL_TEST_NOW_MS", "1796000100000");
    sandbox.transcript(&Rows::new().turns(&[100_000, 160_000]).rows);
    let said = sandbox.statusline(&sandbox.payload(200_000, None, Some(&path)));
    assert!(shown(&said).contains("160k/167k"), "{said:?}");
    for now in ["-9223372036854775808", "9223372036854775807", "0"] {
        let sandbox = Sandbox::new().env("LONGHAUL_TEST_NOW_MS", now);
        sandbox.transcript(&Rows::new().turns(&[150_000, 160_000]).rows);
        for event in ["SessionStart", "UserPromptSubmit", "PostToolBatch", "PostCompact", "SessionEnd"] {
            let said =
                sandbox.hook(&sandbox.event(event, &json!({ "source": "resume", "context_tokens": 9 })));
            assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
        }
        assert!(!sandbox.state().join("trace.log").exists(), "{now}");
    }
}
