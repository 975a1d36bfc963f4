//! Briefs, transcripts and registries that are not what they should be.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::Desk;
use crate::saga::SESSION;

fn fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Changes a file that holds JSON.
fn forge(path: &Path, change: &dyn Fn(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
    change(&mut value);
    fs_err::write(path, value.to_string()).unwrap();
}

/// A failure before there is anything to keep: this code and these words, and nothing is left.
#[track_caller]
fn leaves_nothing(desk: &Desk, args: &[&str], words: &str) {
    let said = desk.go(args);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains(words), "{words:?} is not in {said:?}");
    assert!(desk.entries().is_empty() && desk.calls().is_empty());
    for dir in ["handoffs", "handoff-keys"] {
        assert_eq!(desk.names(dir), [""; 0]);
    }
}

#[test]
fn a_brief_that_cannot_be_read_is_named_before_anything_is_done() {
    let desk = Desk::new("honest");
    let work = desk.sandbox.work();
    fs_err::write(work.join("latin.md"), b"caf\xe9").unwrap();
    fs_err::write(work.join("huge.md"), vec![b'x'; (1 << 20) + 1]).unwrap();
    fifo(&work.join("fifo.md"));
    for (name, why) in [
        ("none.md", "No such file"),
        (".", "is not a regular file"),
        ("latin.md", "it is not UTF-8: "),
        ("huge.md", "is larger than"),
        ("fifo.md", "is not a regular file"),
    ] {
        leaves_nothing(&desk, &["--brief", name], &format!("could not read the brief {}", work.display()));
        leaves_nothing(&desk, &["--brief", name], why);
    }
    // A name that the registry could not keep.
    let odd = work.join(std::ffi::OsStr::from_bytes(b"caf\xe9.md"));
    fs_err::write(&odd, "a brief").unwrap();
    let mut command = desk.sandbox.command("longhaul");
    command.args(["handoff", "--session", SESSION, "--force", "--brief"]).arg(&odd);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("could not read the brief") && said.contains("UTF-8"), "{said}");
}

#[test]
fn a_brief_is_read_first_by_the_child() {
    let desk = Desk::new("honest");
    fs_err::write(desk.sandbox.work().join("brief.md"), "WHAT-IS-BUILT\n## 1. not an entry").unwrap();
    assert_eq!(desk.go(&["--brief", "brief.md"]).code, 0);
    let entry = desk.is_accepted();
    let export = Path::new(entry["directory"].as_str().unwrap());
    assert!(fs_err::read_to_string(export.join("00-brief.md")).unwrap().contains("WHAT-IS-BUILT"));
    let schema = desk.calls()[0]["args"].to_string();
    assert!(schema.contains("00-brief.md"));
}

#[test]
fn a_transcript_that_is_missing_odd_or_empty_is_named() {
    let desk = Desk::new("honest");
    let path = desk.transcript();
    fs_err::remove_file(&path).unwrap();
    leaves_nothing(&desk, &[], &format!("could not find session {SESSION}: no transcript of it lies below"));
    fs_err::create_dir(&path).unwrap();
    leaves_nothing(&desk, &[], "could not find session");
    fs_err::remove_dir(&path).unwrap();
    fifo(&path);
    leaves_nothing(&desk, &[], "could not find session");
    fs_err::remove_file(&path).unwrap();
    fs_err::write(&path, "").unwrap();
    leaves_nothing(&desk, &[], "is empty: there is nothing to hand over");
    if !rustix::process::geteuid().is_root() {
        fs_err::write(&path, "{}\n").unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
        leaves_nothing(&desk, &[], "could not read the transcript");
    }
}

/// The export was ended, and then the transcript went: the entry stays, and says why.
#[test]
fn a_transcript_that_is_gone_before_a_retry_is_named_and_the_handoff_is_kept() {
    let desk = Desk::new("honest");
    fs_err::write(desk.sandbox.work().join("brief.md"), "a brief").unwrap();
    assert_eq!(desk.go(&["--prepare", "--brief", "brief.md"]).code, 0);
    let mut entry = desk.entry();
    let id = entry["id"].as_str().unwrap().to_owned();
    (entry["state"], entry["times"]["exported"]) = (json!("interrupted"), Value::Null);
    desk.write_registry(&[entry]);
    fs_err::remove_dir_all(desk.sandbox.state().join("handoffs").join(&id)).unwrap();
    let kept = desk.sandbox.work().join("kept");
    let brief = desk.sandbox.work().join("brief.md");
    for (path, words) in
        [(desk.transcript(), "could not read the transcript"), (brief, "could not read the brief")]
    {
        fs_err::rename(&path, &kept).unwrap();
        let said = desk.run(&["retry", &id]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.stderr.contains(words), "{said:?}");
        let entry = desk.entry();
        assert_eq!(entry["state"], "failed");
        assert!(entry["failure"]["message"].as_str().unwrap().contains(words), "{entry}");
        fs_err::rename(&kept, &path).unwrap();
    }
    assert_eq!(desk.is_finished_by_retry()["retries"], 3);
}

type Damage<'a> = &'a dyn Fn(&Desk);

#[test]
fn an_export_that_is_not_whole_any_more_is_not_read() {
    let part = |desk: &Desk| desk.export().join("01-user-messages.md");
    let damages: [(&str, Damage); 10] = [
        ("01-user-messages.md is gone or changed", &|desk| fs_err::remove_file(part(desk)).unwrap()),
        ("01-user-messages.md is gone or changed", &|desk| fs_err::write(part(desk), "other words").unwrap()),
        ("01-user-messages.md is gone or changed", &|desk| {
            fs_err::remove_file(part(desk)).unwrap();
            fifo(&part(desk));
        }),
        // The child could not read it: a link is where it leads.
        ("01-user-messages.md is gone or changed", &|desk| {
            let elsewhere = desk.sandbox.work().join("elsewhere.md");
            fs_err::rename(part(desk), &elsewhere).unwrap();
            fs_err::os::unix::fs::symlink(&elsewhere, part(desk)).unwrap();
        }),
        ("No such file", &|desk| fs_err::remove_dir_all(desk.export()).unwrap()),
        ("04-index.json", &|desk| fs_err::remove_file(desk.export().join("04-index.json")).unwrap()),
        ("04-index.json", &|desk| fs_err::write(desk.export().join("04-index.json"), "{").unwrap()),
        ("its key", &|desk| fs_err::remove_file(desk.key()).unwrap()),
        ("its index and its key do not agree", &|desk| fs_err::write(desk.key(), "{}").unwrap()),
        ("its index and its key do not agree", &|desk| {
            forge(&desk.key(), &|key| {
                key["parts"].as_array_mut().unwrap().pop();
            });
        }),
    ];
    for (words, damage) in damages {
        let desk = Desk::new("honest");
        assert_eq!(desk.go(&["--no-wake"]).code, 0);
        let (id, export) = (desk.entry()["id"].as_str().unwrap().to_owned(), desk.export());
        damage(&desk);
        for _ in 0..2 {
            let said = desk.run(&["retry", &id]);
            assert_eq!(said.code, 1, "{said:?}");
            let told = format!("the export {} is not whole: ", export.display());
            assert!(said.stderr.contains(&told) && said.stderr.contains(words), "{words} {said:?}");
            assert!(said.stderr.contains("hand the session over anew"), "{said:?}");
        }
        assert!(desk.calls().is_empty());
        assert_eq!(desk.entry()["failure"]["kind"], "damaged");
    }
}

/// Names that lead out of the export, and parts without codes.
#[test]
fn a_forged_index_or_key_leads_nowhere() {
    for (file, codes) in [
        ("../../../settings.json", json!(["a"])),
        ("/etc/hostname", json!(["a"])),
        (".hidden", json!(["a"])),
        ("..", json!(["a"])),
        ("", json!(["a"])),
        ("a\u{0}b", json!(["a"])),
        ("01.md\n9. Then run", json!(["a"])),
        ("01-user-messages.md", json!([])),
        ("01-user-messages.md", json!([7])),
        ("01-user-messages.md", json!("a")),
    ] {
        let desk = Desk::new("honest");
        assert_eq!(desk.go(&["--no-wake"]).code, 0);
        let index = desk.export().join("04-index.json");
        if file.contains('\n') {
            // One that is there, and would stand in the prompt as a line of its own.
            fs_err::copy(desk.export().join("01-user-messages.md"), desk.export().join(file)).unwrap();
        }
        forge(&index, &|index| index["must_read"][0]["parts"][0]["file"] = json!(file));
        forge(&desk.key(), &|key| {
            key["parts"][0] = json!({ "file": file, "codes": codes });
        });
        let said = desk.run(&["retry", desk.entry()["id"].as_str().unwrap()]);
        assert_eq!(said.code, 1, "{file:?} {said:?}");
        assert!(said.stderr.contains("is not whole"), "{file:?} {said:?}");
        assert!(desk.calls().is_empty(), "{file:?}");
    }
}

#[test]
fn a_registry_that_points_elsewhere_is_not_followed() {
    let desk = Desk::new("honest");
    assert_eq!(desk.go(&["--no-wake"]).code, 0);
    let entry = desk.entry();
    let elsewhere = desk.sandbox.work().join("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    for (id, words) in [
        ("../../x", "is no id of an export"),
        ("", "is no id"),
        ("a/b", "is no id"),
        ("x\u{1b}[31m", "is no id"),
    ] {
        let mut forged = entry.clone();
        (forged["id"], forged["directory"]) = (json!(id), json!(elsewhere));
        desk.write_registry(&[forged]);
        let said = desk.run(&["retry", id]);
        assert_eq!(said.code, 1, "{id:?} {said:?}");
        assert!(said.stderr.contains(words) && !said.stderr.contains('\u{1b}'), "{id:?} {said:?}");
        assert!(desk.calls().is_empty());
    }
    // The child is given the export, wherever the registry says that it lies.
    let mut forged = entry.clone();
    forged["directory"] = json!(elsewhere);
    desk.write_registry(&[forged]);
    let said = desk.run(&["retry", entry["id"].as_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!desk.calls()[0]["args"].to_string().contains("elsewhere"));
    assert_eq!(
        desk.run(&["retry", "unheard-of"]).stderr,
        "longhaul: could not find a handoff of that id or session: unheard-of; `longhaul handoff list` shows them all\n"
    );
}

#[test]
fn a_registry_that_is_broken_is_set_aside_and_the_handoff_goes_on() {
    let desk = Desk::new("honest");
    fs_err::create_dir_all(desk.sandbox.state()).unwrap();
    let registry = desk.sandbox.state().join("chains.json");
    fs_err::write(&registry, "{\"version\":1,\"handoffs\":[{").unwrap();
    let said = desk.go(&[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("chains.json.unreadable-1, and a new one begins"), "{said:?}");
    desk.is_accepted();
    let aside = fs_err::read_to_string(desk.sandbox.state().join("chains.json.unreadable-1")).unwrap();
    assert_eq!(aside, "{\"version\":1,\"handoffs\":[{");
}

#[test]
fn a_registry_that_is_broken_while_the_child_reads_loses_nothing_of_it() {
    for broken in [Some("{"), None, Some("{\"version\":1,\"handoffs\":[]}")] {
        let desk = Desk::new("honest:30");
        let running = desk.start(&["--session", SESSION, "--force"]);
        super::kills::wait("the child in the registry", || {
            desk.entries().first().is_some_and(|entry| entry["child"]["pid"].is_u64())
        });
        let registry = desk.sandbox.state().join("chains.json");
        match broken {
            Some(text) => fs_err::write(&registry, text).unwrap(),
            None => fs_err::remove_file(&registry).unwrap(),
        }
        let said = crate::sandbox::finish_within(running, super::LONG);
        assert_eq!(said.code, 0, "{broken:?} {said:?}");
        desk.is_accepted();
    }
}

#[test]
fn a_registry_of_a_later_version_is_left_alone() {
    let desk = Desk::new("honest");
    fs_err::create_dir_all(desk.sandbox.state()).unwrap();
    let later = "{\"version\":9,\"handoffs\":[]}";
    fs_err::write(desk.sandbox.state().join("chains.json"), later).unwrap();
    leaves_nothing(&desk, &[], "update longhaul");
    assert_eq!(fs_err::read_to_string(desk.sandbox.state().join("chains.json")).unwrap(), later);
}

#[test]
fn without_a_home_there_is_no_place_for_it() {
    let desk = Desk::new("honest");
    let config = desk.sandbox.config().to_str().unwrap().to_owned();
    let desk = Desk { sandbox: desk.sandbox.without("HOME") };
    let said = desk.go(&[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("set HOME or CLAUDE_CONFIG_DIR"), "{said:?}");
    let desk = desk.env("CLAUDE_CONFIG_DIR", &config);
    assert_eq!(desk.go(&[]).code, 0);
    desk.is_accepted();
}
