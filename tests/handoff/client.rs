//! The client in every way of failing.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::Desk;
use crate::saga::SESSION;

#[test]
fn a_child_that_reads_it_all_is_accepted() {
    let desk = Desk::new("honest");
    let said = desk.go(&[]);
    assert_eq!(said.code, 0, "{said:?}");
    let entry = desk.is_accepted();
    let child = entry["child"]["session"].as_str().unwrap();
    let work = desk.sandbox.work();
    assert!(
        said.stdout.contains(&format!("\n  cd {} && claude --resume {child}\n", work.display())),
        "{said:?}"
    );
    assert_eq!((&entry["generation"], &entry["client_version"]), (&json!(2), &json!("2.1.332")));
    assert_eq!(entry["child"]["pid"], Value::Null);
    assert_eq!(desk.calls().len(), 1);
    assert_eq!(entry["outlook"]["next"], "go on with the parser");
}

#[test]
fn without_a_client_the_export_waits_for_one() {
    let desk = Desk::new("honest");
    let path = desk.bin().join("claude");
    fs_err::rename(&path, desk.bin().join("other")).unwrap();
    let entry =
        desk.fails(&[], 5, "could not find Claude Code: no trustworthy `claude` on PATH; set CLAUDE_BIN");
    assert_eq!((&entry["state"], &entry["failure"]["kind"]), (&json!("failed"), &json!("client")));
    assert_eq!(desk.names("handoffs").len(), 1, "the export is kept");
    fs_err::rename(desk.bin().join("other"), &path).unwrap();
    desk.is_finished_by_retry();
}

/// A program that would leave a trace.
fn trap(desk: &Desk, dir: &str, mode: u32) -> String {
    let dir = desk.sandbox.root.path().join(dir);
    fs_err::create_dir_all(&dir).unwrap();
    let trace = desk.sandbox.root.path().join("trapped");
    let path = dir.join("claude");
    fs_err::write(&path, format!("#!/bin/sh\n: >'{}'\n", trace.display())).unwrap();
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    dir.to_str().unwrap().to_owned()
}

#[test]
fn a_client_in_the_project_or_that_others_can_write_is_passed_over_and_named() {
    let desk = Desk::new("honest");
    let (project, open) = (trap(&desk, "work/bin", 0o755), trap(&desk, "open", 0o757));
    let desk = desk.env("PATH", &format!("{project}:{open}:bin:."));
    let entry = desk.fails(&[], 5, "could not find Claude Code");
    let told = entry["failure"]["message"].as_str().unwrap();
    assert!(told.contains(&format!("{project}/claude lies in the project: not run")), "{told}");
    assert!(told.contains(&format!("{open}/claude can be written by others: not run")), "{told}");
    assert!(!desk.sandbox.root.path().join("trapped").exists());
}

/// The directory of this shell is a project too, wherever the session was worked on.
#[test]
fn a_client_in_this_directory_is_passed_over_whatever_the_transcript_says() {
    for cwd in [None, Some("elsewhere")] {
        let desk = Desk::new("honest");
        let text = fs_err::read_to_string(desk.transcript()).unwrap();
        let cwd = cwd.map(|name| desk.sandbox.root.path().join(name));
        if let Some(dir) = &cwd {
            fs_err::create_dir(dir).unwrap();
        }
        let work = json!(desk.sandbox.work()).to_string();
        fs_err::write(desk.transcript(), text.replace(&work, &json!(cwd).to_string())).unwrap();
        let project = trap(&desk, "work/bin", 0o755);
        let desk = desk.env("PATH", &project);
        desk.fails(&[], 5, &format!("{project}/claude lies in the project: not run"));
        assert!(!desk.sandbox.root.path().join("trapped").exists());
    }
}

#[test]
fn a_client_that_cannot_be_started_is_named_with_the_reason() {
    let desk = Desk::new("honest");
    let gone = desk.sandbox.root.path().join("gone");
    let bytes = fs_err::read(desk.transcript()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let work = json!(desk.sandbox.work()).to_string();
    fs_err::write(desk.transcript(), text.replace(&work, &json!(gone).to_string())).unwrap();
    let entry = desk.fails(&[], 6, &format!("could not start {}", desk.bin().join("claude").display()));
    let told = entry["failure"]["message"].as_str().unwrap();
    assert!(
        told.contains(&format!("in {}: No such file", gone.display())) && told.contains("retry"),
        "{told}"
    );
    assert_eq!(entry["child"], Value::Null);
    fs_err::create_dir(&gone).unwrap();
    desk.is_finished_by_retry();
}

#[test]
fn a_client_that_is_no_program_cannot_be_started() {
    let desk = Desk::new("honest");
    let odd = desk.sandbox.root.path().join("odd");
    fs_err::write(&odd, b"\x7fELF and nothing more").unwrap();
    fs_err::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
    let desk = desk.env("CLAUDE_BIN", odd.to_str().unwrap());
    let entry = desk.fails(&[], 6, &format!("could not start {}", odd.display()));
    assert_eq!((&entry["state"], &entry["failure"]["kind"]), (&json!("failed"), &json!("start")));
    let good = desk.bin().join("claude");
    let desk = desk.env("CLAUDE_BIN", good.to_str().unwrap());
    desk.is_finished_by_retry();
}

#[test]
fn a_child_that_hangs_is_ended_at_the_deadline_though_it_does_not_want_to() {
    let desk = Desk::new("hangs honest");
    let entry = desk.fails(&["--timeout", "1"], 7, "did not finish within 1 s");
    assert_eq!((&entry["state"], &entry["child"]["pid"]), (&json!("failed"), &Value::Null));
    let child = entry["child"]["session"].clone();
    let entry = desk.is_finished_by_retry();
    assert_eq!(entry["child"]["session"], child, "it goes on in the same session");
}

#[test]
fn an_exit_code_and_what_was_said_are_told() {
    let desk = Desk::new("fails honest");
    let entry =
        desk.fails(&[], 8, "the client ended with exit code 3: no more credit[31m; `longhaul handoff retry");
    assert_eq!(entry["failure"]["kind"], "exit");
    desk.is_finished_by_retry();
}

#[test]
fn an_id_in_use_is_replaced_and_kept() {
    let desk = Desk::new("in-use in-use honest");
    assert_eq!(desk.go(&[]).code, 0);
    let entry = desk.is_accepted();
    let taken = entry["ids_in_use"].as_array().unwrap();
    let given: Vec<Value> = desk.calls().iter().map(|call| call["args"][2].clone()).collect();
    assert_eq!(given.len(), 3);
    assert_eq!((&given[..2], &given[2]), (&taken[..], &entry["child"]["session"]));
    assert!(given[0] != given[1] && given[1] != given[2]);

    let desk = Desk::new("in-use in-use in-use honest");
    let entry = desk.fails(&[], 9, "each of 3 new session ids is already in use");
    assert_eq!(entry["ids_in_use"].as_array().unwrap().len(), 3);
    assert_eq!((&entry["child"], &entry["failure"]["kind"]), (&Value::Null, &json!("id")));
    desk.is_finished_by_retry();
}

#[test]
fn whatever_is_no_answer_is_told_and_asked_for_again() {
    for (manner, says) in [
        ("silent", "it said nothing"),
        ("malformed", "{\"is_error\":"),
        ("prose", "I have read it all."),
        ("huge", &"x".repeat(600)),
    ] {
        let desk = Desk::new(&format!("{manner} {manner} honest"));
        let entry = desk.fails(&[], 10, &format!("gave no answer that can be checked ({says})"));
        assert_eq!(
            (&entry["state"], &entry["failure"]["kind"]),
            (&json!("failed"), &json!("answer")),
            "{manner}"
        );
        assert_eq!(desk.calls().len(), 2, "{manner}");
        desk.is_finished_by_retry();
    }
}

#[test]
fn a_part_that_was_not_read_is_named_and_asked_for() {
    let desk = Desk::new("skips skips honest");
    let entry = desk.fails(&[], 1, "05-dropped-context.md (read)");
    assert_eq!((&entry["state"], &entry["proof"]["turns"]), (&json!("partial"), &json!(2)));
    let entry = desk.is_finished_by_retry();
    assert_eq!(entry["retries"], 1);
    let last = desk.calls().pop().unwrap();
    assert_eq!((&last["args"][1], &last["args"][2]), (&json!("--resume"), &entry["child"]["session"]));
}

#[test]
fn a_child_that_dies_in_the_middle_goes_on_where_it_was() {
    for manner in ["dies", "half-line"] {
        let desk = Desk::new(&format!("{manner} honest"));
        let entry = desk.fails(&[], 8, "the client ended with a signal: it said nothing");
        let child = entry["child"]["session"].clone();
        assert_eq!(desk.is_finished_by_retry()["child"]["session"], child, "{manner}");
    }
}

#[test]
fn what_a_child_leaves_running_is_ended_with_it_and_never_waited_for() {
    let desk = Desk::new("leaves");
    let began = std::time::Instant::now();
    let said = desk.go(&[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(began.elapsed() < std::time::Duration::from_secs(45), "what lingers would end after 90 s");
    desk.is_accepted();
    let left = fs_err::read_to_string(desk.bin().join("left")).unwrap();
    let (own, apart) = left.split_once(' ').unwrap();
    let (own, apart): (u64, i32) = (own.parse().unwrap(), apart.parse().unwrap());
    assert!(!desk.runs(own), "one of its group");
    let apart = rustix::process::Pid::from_raw(apart).unwrap();
    rustix::process::kill_process(apart, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_session_without_a_brief_or_a_name_needs_neither() {
    let desk = Desk::new("honest");
    let said = desk.run(&["--session", SESSION, "--force", "--json"]);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(told["handoff"], desk.is_accepted());
}
