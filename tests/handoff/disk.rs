//! Disks that are full, limits on file sizes, and places that cannot be written.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Desk, LONG};
use crate::saga::{SESSION, everything};
use crate::sandbox::{Said, finish_within, program_path};

/// Runs a script with the program as `$LH`, in mounts of its own; `None` where that is not to be had.
fn mounted(desk: &Desk, script: &str) -> Option<Said> {
    let mut tried = Command::new("unshare");
    tried.args(["-m", "/bin/sh", "-c", "mount -t tmpfs none \"$0\""]).arg(desk.sandbox.root.path());
    if !tried.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: nobody may mount here");
        return None;
    }
    let path = format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", desk.bin().display());
    let mut command = desk.sandbox.other_command("unshare");
    command.args(["-m", "/bin/sh", "-euc", script]).env("PATH", path).env("LH", program_path("longhaul"));
    command.env("STATE", desk.sandbox.state()).env("SESSION", SESSION);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Some(finish_within(child, LONG))
}

fn larger(desk: &Desk) {
    let mut saga = everything();
    for n in 0..20 {
        saga.typed(&format!("requirement {n} {}", "never block the redraw ".repeat(40)));
    }
    desk.place(&saga.bytes(), &desk.sandbox.work());
}

/// At every size at which it can be full: in the export, in its key, in the registry before and after it. What
/// remains is finished once there is room.
#[test]
fn a_full_disk_leaves_nothing_half_written_and_what_is_kept_is_finished_later() {
    let mut codes = std::collections::BTreeMap::new();
    for pages in 1..45 {
        let desk = Desk::new("honest");
        larger(&desk);
        let script = format!(
            "mkdir -p \"$STATE\" && mount -t tmpfs -o size={}k,mode=0700 none \"$STATE\"\n\
             code=0; \"$LH\" handoff --session \"$SESSION\" --force || code=$?\n\
             mount -o remount,size=64m \"$STATE\"; cp -a \"$STATE\" ../full; umount \"$STATE\"\n\
             rmdir \"$STATE\"; cp -a ../full \"$STATE\"; exit $code",
            4 * pages
        );
        let Some(said) = mounted(&desk, &script) else { return };
        let left = desk.entries().first().map_or("nothing".to_owned(), |entry| entry["state"].to_string());
        *codes.entry((said.code, left)).or_insert(0) += 1;
        desk.nothing_runs();
        match desk.entries().first() {
            _ if said.code == 0 => {}
            Some(entry) => {
                let id = entry["id"].as_str().unwrap();
                let again = desk.run(&["retry", id]);
                assert_eq!(again.code, 0, "{pages} pages: {said:?} {again:?} {entry:#}");
            }
            None => {
                assert!(said.stderr.contains("No space left on device"), "{pages} pages: {said:?}");
                desk.nothing_is_half_written();
                assert_eq!(desk.go(&[]).code, 0);
            }
        }
        desk.is_accepted();
    }
    println!("{codes:?}");
    let some = |code: i32, left: &str| codes.contains_key(&(code, left.to_owned()));
    assert!(some(0, "\"accepted\"") && some(1, "nothing"), "{codes:?}");
}

/// Full since the export: the registry cannot be written.
#[test]
fn a_disk_that_is_full_before_the_reading_loses_nothing() {
    let desk = Desk::new("honest");
    let script = "mkdir -p \"$STATE\" && mount -t tmpfs -o size=2m,mode=0700 none \"$STATE\"\n\
         \"$LH\" handoff --session \"$SESSION\" --force --no-wake\n\
         for id in $(ls \"$STATE/handoffs\"); do :; done\n\
         head -c 4m /dev/zero >\"$STATE/fill\" || :\n\
         code=0; \"$LH\" handoff retry \"$id\" || code=$?\n\
         rm \"$STATE/fill\"; cp -a \"$STATE\" ../full; umount \"$STATE\"\n\
         rmdir \"$STATE\"; cp -a ../full \"$STATE\"; exit $code";
    let Some(said) = mounted(&desk, script) else { return };
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("could not keep the handoff in longhaul's files: "), "{said:?}");
    assert!(desk.calls().is_empty(), "no child that nobody could know of");
    assert_eq!(desk.entry()["state"], "prepared");
    desk.is_finished_by_retry();
}

#[test]
fn a_limit_on_file_sizes_is_told_and_what_is_kept_is_finished_without_it() {
    let mut codes = std::collections::BTreeMap::new();
    for blocks in [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 40, 64, 100] {
        let desk = Desk::new("honest");
        larger(&desk);
        let mut command = desk.sandbox.other_command("/bin/sh");
        let script = format!("ulimit -f {blocks}; exec \"$LH\" handoff --session {SESSION} --force");
        command.args(["-c", &script]).env("LH", program_path("longhaul")).env("PATH", desk.bin());
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = finish_within(child, LONG);
        assert!(said.code > 0, "the client is limited as well, or nobody is: {blocks} {said:?}");
        *codes.entry(said.code).or_insert(0) += 1;
        desk.nothing_runs();
        if let Some(entry) = desk.entries().first() {
            let again = desk.run(&["retry", entry["id"].as_str().unwrap()]);
            assert_eq!(again.code, 0, "{blocks}: {said:?} {again:?}");
        } else {
            assert!(said.stderr.contains("could not"), "{said:?}");
            desk.nothing_is_half_written();
            assert_eq!(desk.go(&[]).code, 0);
        }
        desk.is_accepted();
    }
    println!("{codes:?}");
    assert!(codes.contains_key(&1), "{codes:?}");
}

/// Everything below a directory: names and contents.
fn all(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(all(&path));
        } else {
            found.push((path.display().to_string(), fs_err::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_state_directory_that_cannot_be_written_is_told_and_stays_as_it_is() {
    let desk = Desk::new("honest");
    assert_eq!(desk.go(&["--no-wake"]).code, 0);
    let id = desk.entry()["id"].as_str().unwrap().to_owned();
    let before = all(&desk.sandbox.state());
    let with = |mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(desk.sandbox.state(), mode).unwrap();
    };
    for rest in [&["--session", SESSION, "--force"][..], &["retry", &id]] {
        // Whoever is root may write everywhere, but not where nothing can be written.
        let said = if rustix::process::geteuid().is_root() {
            let script = "mount --bind \"$STATE\" \"$STATE\" && mount -o remount,bind,ro \"$STATE\"\n\
                 \"$LH\" handoff ";
            let Some(said) = mounted(&desk, &format!("{script}{}", rest.join(" "))) else { return };
            assert!(said.stderr.contains("Read-only file system"), "{said:?}");
            said
        } else {
            with(0o500);
            let said = desk.run(rest);
            with(0o700);
            assert!(said.stderr.contains("Permission denied"), "{said:?}");
            said
        };
        assert_eq!((said.code, &*said.stdout), (1, ""), "{said:?}");
        assert!(said.stderr.contains("could not"), "{said:?}");
        assert_eq!(all(&desk.sandbox.state()), before);
        assert!(desk.calls().is_empty());
    }
    desk.is_finished_by_retry();
}

#[test]
fn what_stands_in_the_place_of_a_directory_is_told_and_left_alone() {
    for name in ["", "handoffs", "handoff-keys"] {
        let desk = Desk::new("honest");
        // Without the slash that joining nothing leaves.
        let path: PathBuf = desk.sandbox.state().join(name).components().collect();
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "mine").unwrap();
        let said = desk.go(&[]);
        assert_eq!(said.code, 1, "{name}: {said:?}");
        assert!(said.stderr.contains("could not"), "{name}: {said:?}");
        assert_eq!(fs_err::read(&path).unwrap(), b"mine");
        assert!(desk.calls().is_empty());
        fs_err::remove_file(&path).unwrap();
        assert!(desk.entries().is_empty(), "{name}");
        assert_eq!(desk.go(&[]).code, 0);
        desk.is_accepted();
    }
}
