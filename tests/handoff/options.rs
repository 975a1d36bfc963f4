//! What can be asked for, what the child is given, and the chain that grows.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Desk;
use crate::saga::{SESSION, Saga, everything};

fn given(call: &Value, option: &str) -> Option<String> {
    let args: Vec<&str> = call["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    if let Some(joined) = args.iter().find_map(|arg| arg.strip_prefix(&format!("{option}="))) {
        return Some(joined.to_owned());
    }
    let at = args.iter().position(|arg| *arg == option)?;
    Some(args[at + 1].to_owned())
}

#[test]
fn nothing_is_handed_over_before_it_is_due() {
    let desk = Desk::new("honest");
    let said = desk.run(&["--session", SESSION]);
    assert_eq!((said.code, &*said.stdout), (3, ""), "{said:?}");
    assert!(said.stderr.contains("a handoff is not due: the session stands at "), "{said:?}");
    // The wall is what the session's own compaction taught.
    let room = "It would throw away a context that is warm and 935k tokens of room, to read 8 again";
    assert!(said.stderr.contains(room), "{said:?}");
    assert!(said.stderr.contains("--force hands over all the same"), "{said:?}");
    let said = desk.run(&["--session", SESSION, "--json"]);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &told["error"]["kind"], &told["error"]["code"]), (3, &json!("gate"), &json!(3)));
    assert!(desk.entries().is_empty() && desk.names("handoffs").is_empty());
    // Once it is, nobody has to force it.
    let mut text = fs_err::read_to_string(desk.transcript()).unwrap();
    text = text.replace("\"input_tokens\":3,", "\"input_tokens\":950000,");
    fs_err::write(desk.transcript(), text).unwrap();
    let said = desk.run(&["--session", SESSION]);
    assert_eq!(said.code, 0, "{said:?}");
    let weight = &desk.is_accepted()["weight"];
    assert!(weight["tokens"].as_u64().unwrap() >= 950_000 && weight["wall"].is_u64(), "{weight}");
}

#[test]
fn prepare_exports_at_any_fill_and_no_wake_leaves_the_reading_to_a_command() {
    for (args, code) in [(&["--prepare"][..], 0), (&["--no-wake"], 3), (&["--no-wake", "--force"], 0)] {
        let desk = Desk::new("honest");
        let said = desk.run(&[&["--session", SESSION], args].concat());
        assert_eq!(said.code, code, "{args:?} {said:?}");
        assert!(desk.calls().is_empty(), "{args:?}");
        if code == 0 {
            let entry = desk.entry();
            let id = entry["id"].as_str().unwrap();
            assert_eq!((&entry["state"], &entry["child"]), (&json!("prepared"), &Value::Null));
            assert!(said.stdout.starts_with(entry["directory"].as_str().unwrap()), "{said:?}");
            assert!(said.stdout.ends_with(&format!("longhaul handoff retry {id}\n")), "{said:?}");
            desk.is_finished_by_retry();
        }
    }
    let desk = Desk::new("honest");
    assert_eq!(desk.run(&["--session", SESSION, "--prepare", "--no-wake"]).code, 2);
}

#[test]
fn programs_are_told_the_entry_and_the_command_or_the_failure() {
    let desk = Desk::new("fails honest");
    let said = desk.go(&["--json"]);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    let entry = desk.entry();
    assert_eq!(told["error"]["kind"], "exit");
    assert_eq!((&told["error"]["code"], said.code), (&json!(8), 8));
    assert_eq!(told["error"]["message"], entry["failure"]["message"]);
    let id = entry["id"].as_str().unwrap();
    let said = desk.run(&["retry", id, "--json"]);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    let entry = desk.is_accepted();
    assert_eq!((said.code, &told["handoff"]), (0, &entry));
    let child = entry["child"]["session"].as_str().unwrap();
    assert_eq!(told["resume"], format!("cd {} && claude --resume {child}", desk.sandbox.work().display()));
    assert_eq!(told["retry"], Value::Null);
    let desk = Desk::new("honest");
    let said = desk.go(&["--prepare", "--json"]);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&told["handoff"], &told["resume"]), (&desk.entry(), &Value::Null));
    let retry = format!("longhaul handoff retry {}", desk.entry()["id"].as_str().unwrap());
    assert_eq!(told["retry"], retry, "the command that has it read");
}

#[test]
fn a_name_and_a_model_are_passed_through() {
    let desk = Desk::new("honest");
    let said = desk.go(&["--name", " --help $(x) 'q' 测试\n\u{1b}[31m ", "--model", "claude-haiku-4-5"]);
    assert_eq!(said.code, 0, "{said:?}");
    let (entry, call) = (desk.is_accepted(), desk.calls()[0].clone());
    let name = "--help $(x) 'q' 测试[31m";
    assert_eq!((&entry["name"], given(&call, "--name").as_deref()), (&json!(name), Some(name)));
    assert_eq!(given(&call, "--model").as_deref(), Some("claude-haiku-4-5"));
    assert_eq!(entry["wall"], 200_000, "the wall of that model");
    // The parent's where none is named.
    let desk = Desk::new("honest");
    assert_eq!(desk.go(&[]).code, 0);
    assert_eq!(given(&desk.calls()[0], "--model").as_deref(), Some("claude-opus-5-5"));
}

#[test]
fn a_name_without_end_is_cut() {
    let desk = Desk::new("honest");
    let said = desk.go(&["--name", &"长".repeat(10_000)]);
    assert_eq!(said.code, 0, "{said:?}");
    let name = desk.is_accepted()["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("长长长") && name.chars().count() <= 200, "{}", name.len());
    assert_eq!(given(&desk.calls()[0], "--name").as_deref(), Some(&*name));
}

#[test]
fn a_title_cannot_steer_a_terminal_nor_fill_it() {
    let odd = "fix\u{1b}]0;x\u{7} it\u{202e}\u{0}\nand more\r\n";
    for (title, name) in
        [(odd.to_owned(), "fix]0;x it (cont. 2)"), ("\u{1b}\n".to_owned(), "session (cont. 2)")]
    {
        let desk = Desk::new("honest");
        let mut bytes = everything().bytes();
        bytes.extend(
            json!({ "type": "custom-title", "customTitle": title, "sessionId": SESSION }).to_string().bytes(),
        );
        bytes.push(b'\n');
        desk.place(&bytes, &desk.sandbox.work());
        let said = desk.go(&["--redact"]);
        assert_eq!(said.code, 0, "{said:?}");
        let shown = said.stdout.replace('\n', "") + &said.stderr.replace('\n', "");
        assert_eq!(longhaul::base::text::clean(&shown), shown);
        assert_eq!(desk.is_accepted()["name"], name);
        assert_eq!(given(&desk.calls()[0], "--name").as_deref(), Some(name));
    }
}

#[test]
fn the_printed_command_works_in_a_shell_wherever_it_was() {
    for odd in [
        "with space",
        "it's \"quoted\"",
        "$HOME `id` $(id) & ;",
        "测试 \u{1f600}",
        "-dash",
        "back\\slash",
        "new\nline",
    ] {
        let desk = Desk::new("honest");
        let dir = desk.sandbox.root.path().join("odd").join(odd);
        fs_err::create_dir_all(&dir).unwrap();
        desk.place(&everything().bytes(), &dir);
        let said = desk.go(&["--json"]);
        assert_eq!(said.code, 0, "{odd}: {said:?}");
        let entry = desk.is_accepted();
        assert_eq!(desk.calls()[0]["cwd"], json!(dir.canonicalize().unwrap()), "{odd}");
        let told: Value = serde_json::from_str(&said.stdout).unwrap();
        let resume = told["resume"].as_str().unwrap();
        // In the shell: the stand-in finds its session there, and says what it was asked.
        let mut command = desk.sandbox.other_command("/bin/sh");
        command.env("PATH", desk.bin());
        let shown = resume.replace("claude --resume", "pwd; echo --resume");
        let output = command.args(["-c", &shown]).output().unwrap();
        let child = entry["child"]["session"].as_str().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(told, format!("{}\n--resume {child}\n", dir.display()), "{resume}");
    }
}

#[test]
fn odd_characters_in_the_transcripts_own_id_and_model_lead_nowhere() {
    for odd in ["../../x", "a/b", "\u{1b}[31m", "x\u{0}y", "$(touch pwned)", ""] {
        let desk = Desk::new("honest");
        let mut text = fs_err::read_to_string(desk.transcript()).unwrap();
        text = text.replace(&format!("\"{SESSION}\""), &json!(odd).to_string());
        text = text.replace("\"claude-opus-5-5\"", &json!(odd).to_string());
        fs_err::write(desk.transcript(), text).unwrap();
        let said = desk.go(&[]);
        assert_eq!(said.code, 0, "{odd:?} {said:?}");
        let entry = desk.is_accepted();
        assert!(entry["id"].as_str().unwrap().ends_with("Z-3f2a9c1e"), "{entry}");
        assert_eq!(entry["parent"]["session"], SESSION);
        assert!(!desk.sandbox.work().join("pwned").exists());
    }
}

#[test]
fn redaction_and_the_budget_reach_the_export() {
    let desk = Desk::new("honest");
    let mut saga = everything();
    for n in 0..30 {
        saga.typed(&format!("requirement {n}")).answer(&"a decision of some length. ".repeat(40));
    }
    saga.typed(
        "the key is sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    );
    desk.place(&saga.bytes(), &desk.sandbox.work());
    assert_eq!(desk.go(&["--redact", "--budget", "6000"]).code, 0);
    let entry = desk.is_accepted();
    assert_eq!((&entry["redact"], &entry["budget"]), (&json!(true), &json!(6_000)));
    let export = desk.export();
    assert!(export.join("02b-older-decisions.md").is_file() && !export.join("parent.jsonl.zst").exists());
    let said = fs_err::read_to_string(export.join("01-user-messages.md")).unwrap();
    assert!(said.contains("the key is ") && !said.contains("sk-ant-api03-aaaa"));
    assert_eq!(desk.run(&["--session", SESSION, "--budget", "0"]).code, 2);
}

/// A session of about 60k tokens of the person's words, and a wall of 67k.
fn heavy() -> Desk {
    let settings = json!({ "env": { "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000" } });
    let desk = Desk::new("honest");
    let desk = Desk { sandbox: desk.sandbox.settings(&settings) };
    let mut saga = Saga::new();
    for n in 0..12 {
        saga.typed(&format!("requirement {n}: {}", "never block the redraw, ".repeat(700))).answer("ok");
    }
    desk.place(&saga.bytes(), &desk.sandbox.work());
    desk
}

#[test]
fn what_is_too_large_for_the_child_is_not_read_and_says_what_would_do() {
    let desk = heavy();
    let entry = desk.fails(&[], 4, "more than half of the child's wall of 67000; ");
    assert_eq!((&entry["state"], &entry["failure"]["kind"]), (&json!("failed"), &json!("size")));
    let told = entry["failure"]["message"].as_str().unwrap();
    assert!(told.contains("hand over again with --model and a wall of "), "{told}");
    assert_eq!(desk.names("handoffs").len(), 1, "the export is kept");
    // It is as large the next time.
    let said = desk.run(&["retry", entry["id"].as_str().unwrap()]);
    assert_eq!(said.code, 4, "{said:?}");
    let desk = heavy();
    assert_eq!(desk.go(&["--no-wake"]).code, 4);
    assert!(desk.calls().is_empty());
    // The export alone is what is asked for here.
    let desk = heavy();
    let said = desk.go(&["--prepare"]);
    assert_eq!((said.code, &desk.entry()["state"]), (0, &json!("prepared")), "{said:?}");
    assert!(said.stderr.contains("more than half of the child's wall"), "{said:?}");
    // And what it says would do, does.
    let desk = heavy();
    desk.fails(
        &["--budget", "60000"],
        4,
        "hand over again with --budget 16750, or with --model and a larger window",
    );
}

#[test]
fn what_is_too_large_for_every_model_is_left_to_be_searched() {
    let desk = Desk::new("honest");
    let mut saga = Saga::new();
    for n in 0..12 {
        saga.typed(&format!("requirement {n}: {}", "never block the redraw, ".repeat(8_000))).answer("ok");
    }
    desk.place(&saga.bytes(), &desk.sandbox.work());
    let entry = desk.fails(&[], 4, "no known model has a wall for that");
    let told = entry["failure"]["message"].as_str().unwrap();
    assert!(told.ends_with(&format!("search the export {}", desk.export().display())), "{told}");
}

#[test]
fn the_child_is_given_the_login_and_the_wall_and_nothing_of_the_client_around_it() {
    let desk = Desk::new("honest");
    let (home, config) = (desk.sandbox.root.path().join("home"), desk.sandbox.config());
    let stays = [
        ("ANTHROPIC_API_KEY", "key"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "token"),
        ("CLAUDE_CONFIG_DIR", config.to_str().unwrap()),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "400000"),
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "90"),
        ("HOME", home.to_str().unwrap()),
        ("https_proxy", "http://127.0.0.1:1"),
    ];
    let goes = [
        "CLAUDECODE",
        "CLAUDE_PID",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_JOB_DIR",
        "CLAUDE_PLUGIN_ROOT",
        "CLAUDE_PLUGIN_OPTION_X",
        "CLAUDE_CODE_MESSAGING_SOCKET",
    ];
    let desk = stays.iter().fold(desk, |desk, (name, value)| desk.env(name, value));
    let desk = goes.iter().fold(desk, |desk, name| desk.env(name, "1"));
    let project = desk.sandbox.work();
    let desk = desk.env("CLAUDE_PROJECT_DIR", project.to_str().unwrap());
    let said = desk.go(&[]);
    assert_eq!(said.code, 0, "{said:?}");
    let call = desk.calls()[0].clone();
    for (name, value) in stays {
        assert_eq!(call["env"][name], value, "{name}");
    }
    for name in goes.into_iter().chain(["CLAUDE_PROJECT_DIR"]) {
        assert_eq!(call["env"][name], Value::Null, "{name}");
    }
    assert_eq!(call["cwd"], json!(project.canonicalize().unwrap()));
    let export = desk.export().canonicalize().unwrap();
    assert_eq!(given(&call, "--add-dir").map(PathBuf::from), Some(export));
}

/// From the child on: the third generation has the first one's words, wherever they are to be had.
#[test]
fn the_third_generation_has_the_words_of_the_first() {
    for gone in ["nothing", "export", "export and transcript"] {
        let desk = Desk::new("honest");
        fs_err::write(desk.sandbox.work().join("brief.md"), "BRIEF-OF-THE-FIRST").unwrap();
        assert_eq!(desk.go(&["--brief", "brief.md", "--name", "Fix the parser"]).code, 0);
        let first = desk.is_accepted();
        let child = first["child"]["session"].as_str().unwrap();
        if gone != "nothing" {
            fs_err::remove_dir_all(desk.export()).unwrap();
            fs_err::remove_file(desk.key()).unwrap();
        }
        if gone == "export and transcript" {
            fs_err::remove_file(desk.transcript()).unwrap();
        }
        let said = desk.run(&["--session", child, "--force"]);
        assert_eq!(said.code, 0, "{gone}: {said:?}");
        let entries = desk.entries();
        assert_eq!(entries.len(), 2);
        let second = &entries[1];
        assert_eq!(
            (&second["generation"], &second["name"]),
            (&json!(3), &json!("Fix the parser (cont. 3)")),
            "{gone}"
        );
        assert_eq!((&second["state"], &second["parent"]["session"]), (&json!("accepted"), &json!(child)));
        let export = Path::new(second["directory"].as_str().unwrap());
        let words = fs_err::read_to_string(export.join("01-gen-1.md")).unwrap();
        for said in ["the first requirement", "BRIEF-OF-THE-FIRST"] {
            assert!(words.contains(said), "{gone}: {said} is not in {words}");
        }
        // It is to be read in full, and its messages count.
        let index: Value =
            serde_json::from_slice(&fs_err::read(export.join("04-index.json")).unwrap()).unwrap();
        let group =
            index["must_read"].as_array().unwrap().iter().find(|group| group["name"] == "01-gen-1").unwrap();
        assert!(group["parts"][0]["entries"].as_u64().unwrap() > 3, "{group}");
        let own = fs_err::read_to_string(export.join("01-user-messages.md")).unwrap();
        assert!(!own.contains("the first requirement") && !own.contains("<longhaul-reading>"), "{own}");
    }
}
