//! Directories that others laid out, ids that are forged, and a hundred thousand beats that nobody took away.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Fleet, call, prompt};
use crate::sandbox::{SESSION, finish};

/// All files below a directory.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() && !path.is_symlink() { files(&path) } else { vec![path] })
        .collect()
}

#[test]
fn a_run_directory_that_others_laid_out_is_passed_over_in_silence() {
    type LayOut = fn(&Path, &Path);
    let ways: [(&str, LayOut); 4] = [
        ("a link", |dir, other| fs_err::os::unix::fs::symlink(other, dir).unwrap()),
        ("open to all", |dir, _| {
            fs_err::create_dir(dir).unwrap();
            fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("a file", |dir, _| fs_err::write(dir, "").unwrap()),
        ("a fifo", |dir, _| {
            assert!(std::process::Command::new("mkfifo").arg(dir).status().unwrap().success());
        }),
    ];
    for (what, lay) in ways {
        // Where it would be, told by a machine of the same paths.
        let mut fleet = Fleet::new();
        let client = fleet.client();
        fleet.event(client, SESSION, 0, "UserPromptSubmit", &prompt("p"));
        let dir = fleet.beats().parent().unwrap().to_owned();
        assert!(dir.starts_with(fleet.sandbox.root.path().join("tmp")), "{}", dir.display());
        fs_err::remove_dir_all(&dir).unwrap();
        let trap = fleet.sandbox.root.path().join("trap");
        fs_err::create_dir(&trap).unwrap();
        lay(&dir, &trap);
        let said = fleet.longhaul(5, &["--check"]);
        assert!(said.code == 3 && said.stderr.contains("run-dir"), "{what}: a reader refuses it: {said:?}");
        fleet.event(client, SESSION, 5, "UserPromptSubmit", &prompt("p"));
        assert_eq!(fleet.beats(), fleet.sandbox.state().join("run/beats"), "{what}");
        fleet.is(10, "working");
        assert_eq!(files(&trap).len(), 0, "{what}");
    }
}

#[test]
fn a_place_that_takes_nothing_is_left_for_another() {
    // Nothing can be made in these.
    for temp in ["/proc", "/dev/full", "/nowhere/at/all"] {
        let mut fleet = Fleet::new();
        let client = fleet.client();
        let mut command = fleet.command("longhaul-hook", 0);
        command.env("CLAUDE_PID", client.to_string()).env("TMPDIR", temp);
        fleet.send(command, SESSION, "UserPromptSubmit", &prompt("p"));
        assert_eq!(fleet.beats(), fleet.sandbox.state().join("run/beats"), "{temp}");
        fleet.is(10, "working");
    }
    // One that was good and can no longer be written: the next beat goes elsewhere.
    let mut fleet = Fleet::new();
    let client = fleet.client();
    fleet.event(client, SESSION, 0, "UserPromptSubmit", &prompt("p"));
    let beats = fleet.beats();
    fs_err::remove_dir_all(&beats).unwrap();
    fs_err::write(&beats, "in its place").unwrap();
    fleet.event(client, SESSION, 5, "UserPromptSubmit", &prompt("p"));
    assert_ne!(fleet.beats(), beats);
    fleet.is(10, "working");
}

#[test]
fn a_forged_id_becomes_no_path() {
    let mut fleet = Fleet::new();
    let client = fleet.client();
    fleet.event(client, SESSION, 0, "UserPromptSubmit", &prompt("p"));
    let before = files(fleet.sandbox.root.path()).len();
    for id in ["../../../escaped", "/escaped", "a/b", "..", ".", "", "a\u{0}b", "a\nb"] {
        fleet.event(client, id, 1, "PreToolUse", &call("t", "Bash", &json!({})));
    }
    assert_eq!(files(fleet.sandbox.root.path()).len(), before, "of no such session");
    for id in ["../../../escaped", "/escaped", "a/b", "..", ""] {
        fleet.event(client, SESSION, 2, "PreToolUse", &call(id, "../Bash", &json!({})));
        let mut agent = call(id, "Bash", &json!({}));
        agent["agent_id"] = json!(id);
        fleet.event(client, SESSION, 3, "PreToolUse", &agent);
    }
    let dir = fleet.beats().join(SESSION);
    let outside = files(fleet.sandbox.root.path()).into_iter().filter(|path| !path.starts_with(&dir));
    assert_eq!(outside.count(), before - 1, "all in the session's own directory");
    assert_eq!(fleet.beats().read_dir().unwrap().count(), 1);
    for path in files(&dir) {
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn beats_that_cannot_be_read_are_not_there() {
    let mut fleet = Fleet::new();
    let client = fleet.client();
    fleet.event(client, SESSION, 0, "PreToolUse", &call("t", "Bash", &json!({})));
    let dir = fleet.beats().join(SESSION);
    fs_err::remove_file(dir.join("main")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(dir.join("main")).status().unwrap().success());
    assert_eq!(fleet.sessions(1, &["--all"]).len(), 0, "nobody waits for it");
    fleet.event(client, SESSION, 2, "UserPromptSubmit", &prompt("p"));
    fleet.is(3, "working");
    fs_err::write(dir.join("main"), "x".repeat(1 << 20)).unwrap();
    fs_err::write(fleet.beats().join("stranger"), "").unwrap();
    fs_err::create_dir(fleet.beats().join("not an id")).unwrap();
    assert_eq!(fleet.sessions(4, &["--all"]).len(), 0);
}

#[test]
fn a_hundred_thousand_old_beats_hurt_nobody_and_go() {
    const MANY: usize = 100_000;
    // In memory where that is to be had: a busy disk takes minutes for so many directories.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut fleet = Fleet::new();
    fleet.sandbox = crate::sandbox::Sandbox::new().env("TMPDIR", memory.path().to_str().unwrap());
    let client = fleet.client();
    fleet.event(client, SESSION, 0, "UserPromptSubmit", &prompt("p"));
    fleet.says(client, SESSION, "busy", 0);
    let mut beat = fleet.main_beat();
    beat["proc_start"] = json!("1");
    let text = beat.to_string();
    let beats = fleet.beats();
    for at in 0..MANY {
        let dir = beats.join(format!("old-{at}"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("main"), &text).unwrap();
    }
    // Two days later; the session itself goes on.
    let day = 86_400;
    fleet.event(client, SESSION, 2 * day, "UserPromptSubmit", &prompt("p"));
    let began = Instant::now();
    fleet.event(client, SESSION, 2 * day, "PreToolUse", &call("t", "Bash", &json!({})));
    assert!(began.elapsed() < Duration::from_secs(1), "a beat took {:?}", began.elapsed());
    let left = || std::fs::read_dir(&beats).unwrap().count();
    for round in 0.. {
        assert_eq!(fleet.is(2 * day + 5, "working")["session"], SESSION);
        if left() == 1 {
            break;
        }
        assert!(round < 400, "{} are left", left());
    }
    let said = finish(fleet.command("longhaul", 2 * day + 5).args(["sessions", "--check"]).spawn().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
}
