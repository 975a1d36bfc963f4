//! Where an export goes, what stands in its way, and what is left of one that was killed.

use super::{export, place};
use crate::saga::{SESSION, everything};
use crate::sandbox::{Said, Sandbox};

#[track_caller]
fn fails(sandbox: &Sandbox, args: &[&str], says: &str) -> Said {
    let said = sandbox.longhaul(&[&["export"], args].concat());
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains(says) && said.stdout.is_empty(), "{said:?}");
    said
}

fn nothing_is_left(sandbox: &Sandbox) {
    for dir in ["handoffs", "handoff-keys"] {
        let entries = fs_err::read_dir(sandbox.state().join(dir)).map_or(0, Iterator::count);
        assert_eq!(entries, 0, "{dir}");
    }
}

#[test]
fn a_missing_or_unreadable_transcript_is_an_error_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &["--transcript", "none.jsonl"], "could not read the transcript");
    fails(&sandbox, &["--transcript", "none.jsonl", "--budget", "9"], "could not read the transcript");
    fails(&sandbox, &["--transcript", ".", "--budget", "9"], "could not read the transcript");
    fails(&sandbox, &["--session", SESSION], "could not find session");
    fails(&sandbox, &["--session", "../x"], "is no session id");
    nothing_is_left(&sandbox);
    assert_eq!(sandbox.longhaul(&["export"]).code, 2);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let file = sandbox.work().join("a-file");
    fs_err::write(&file, "").unwrap();
    let below = file.join("out");
    fails(&sandbox, &["--session", SESSION, "--out", below.to_str().unwrap()], "could not write the export");
    let full = sandbox.work().join("full");
    fs_err::create_dir(&full).unwrap();
    fs_err::write(full.join("mine"), "kept").unwrap();
    fails(&sandbox, &["--session", SESSION, "--out", full.to_str().unwrap()], "is not empty");
    assert_eq!(fs_err::read(full.join("mine")).unwrap(), b"kept");
    assert_eq!(fs_err::read_dir(sandbox.work()).unwrap().count(), 2, "no litter");
    nothing_is_left(&sandbox);
}

#[test]
fn a_given_directory_is_used_and_its_key_lies_elsewhere() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let out = sandbox.work().join("made/here");
    let made = export(&sandbox, &["--out", out.to_str().unwrap()]);
    assert_eq!(made.dir, out);
    let id = made.index["id"].as_str().unwrap();
    assert!(id.ends_with("Z-3f2a9c1e"), "{id}");
    assert!(sandbox.state().join("handoff-keys").join(format!("{id}.json")).is_file());
}

#[test]
fn twenty_at_once_have_twenty_places() {
    let sandbox = Sandbox::new();
    place(&sandbox, &everything().bytes());
    let running: Vec<_> = (0..20)
        .map(|_| {
            let mut command = sandbox.command("longhaul");
            command
                .args(["export", "--session", SESSION])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    for dir in ["handoffs", "handoff-keys"] {
        assert_eq!(fs_err::read_dir(sandbox.state().join(dir)).unwrap().count(), 20, "{dir}");
    }
}

#[test]
fn what_a_killed_export_left_is_gone_after_the_next() {
    let sandbox = Sandbox::new();
    let mut saga = everything();
    for _ in 0..40 {
        saga.typed(&"words without an end ".repeat(20_000));
    }
    place(&sandbox, &saga.bytes());
    let count = |dir: &str| fs_err::read_dir(sandbox.state().join(dir)).map_or(0, Iterator::count);
    let mut command = sandbox.command("longhaul");
    command.args(["export", "--session", SESSION]).stdout(std::process::Stdio::null());
    let mut killed = command.spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let begun = || {
        let drafts = fs_err::read_dir(sandbox.state().join("handoffs")).into_iter().flatten().flatten();
        drafts.flat_map(|draft| fs_err::read_dir(draft.path())).any(|mut files| files.next().is_some())
    };
    while !begun() {
        assert!(std::time::Instant::now() < until, "no export was begun");
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    assert!(!killed.wait().unwrap().success(), "it was done before it was killed");
    assert_eq!((count("handoffs"), count("handoff-keys")), (1, 1), "what is to be taken away");
    export(&sandbox, &[]);
    assert_eq!((count("handoffs"), count("handoff-keys")), (1, 1));
}
