//! The verbs: what they take, what they say, and waiting where no watcher runs.

use super::*;

#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str], why: &str) {
    let said = person(sandbox, &[&["watch", "add"], args].concat());
    assert!(said.code != 0 && said.stderr.contains(why) && said.stdout.is_empty(), "{args:?}: {said:?}");
}

#[test]
fn what_cannot_be_watched_is_refused_with_the_way_to_do_it() {
    let sandbox = Sandbox::new().env("PATH", "/usr/bin:/bin");
    fs_err::create_dir(sandbox.work().join("dir")).unwrap();
    let fifo = sandbox.work().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused(&sandbox, &["--file", "dir"], "not a regular file");
    refused(&sandbox, &["--file", "fifo"], "not a regular file");
    refused(&sandbox, &["--file", "/dev/zero"], "not a regular file");
    refused(&sandbox, &["--file", "none/a.log"], "its directory is not there");
    refused(&sandbox, &["--file", "a.log", "--match", "("], "unclosed group");
    refused(&sandbox, &["--file", "a.log", "--match", r"(\w{500}){500}"], "size limit");
    refused(&sandbox, &["--file", "a.log", "--every", "60s"], "--every goes with --command");
    refused(&sandbox, &["--file", "a.log", "a text"], "a text goes with --after");
    refused(&sandbox, &["--process", "1", "--from", "start"], "--from goes with --file");
    refused(&sandbox, &["--file", "a.log", "--for", "0s"], "above 0");
    refused(&sandbox, &["--command", "a | b"], "--command 'sh -c '");
    refused(&sandbox, &["--command", "no-such-program-here"], "in PATH");
    refused(&sandbox, &["--command", "cat x", "--every", "1s"], "at least 5s");
    refused(&sandbox, &["--command", "cat x", "--timeout", "2h"], "--stream");
    refused(&sandbox, &["--command", "cat x"], "--session ID");
    refused(&sandbox, &["--process", "4194305"], "no process");
    refused(&sandbox, &["--after", "1h", "x", "--match", "y"], "have none");
    refused(&sandbox, &["--after", "soon"], "a whole number");
    for span in ["3654d", "106751991167d", "9223372036854775807s"] {
        refused(&sandbox, &["--after", span], "ten years");
        refused(&sandbox, &["--command", "cat x", "--every", span], "ten years");
        refused(&sandbox, &["--sessions", "--for", span], "ten years");
    }
    refused(&sandbox, &[], "required");
    refused(&sandbox, &["--file", "a", "--process", "1"], "cannot be used with");
    refused(&sandbox, &["--file", "a.log", "--session", "../x"], "no session id");
    assert!(!sandbox.state().join("watches.json").exists());
}

/// The command line that the refusal of a shell's signs names is taken.
#[test]
fn the_way_out_of_a_refusal_works() {
    let sandbox = Sandbox::new().env("PATH", "/usr/bin:/bin");
    let session = Session::without_watcher(&sandbox, "one", &sandbox.work());
    let said = session.tool(&sandbox, &["watch", "add", "--command", "echo 'a  b' | wc -c"]);
    let line = said.stderr.rsplit_once("named: ").unwrap().1.trim();
    let shell = format!("{} watch add --json {line}", crate::sandbox::program_path("longhaul"));
    let mut command = sandbox.other_command("/bin/sh");
    command.args(["-c", &shell]).env("CLAUDE_CODE_SESSION_ID", "one");
    let out = command.output().unwrap();
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["subject"]["argv"], json!(["sh", "-c", "echo 'a  b' | wc -c"]));
}

#[test]
fn watches_are_listed_shown_paused_resumed_and_removed() {
    let sandbox = Sandbox::new();
    assert!(person(&sandbox, &["watch", "list"]).stdout.contains("Nothing is watched"));
    let session = Session::open(&sandbox, "one");
    let log = sandbox.work().join("a.log");
    session.add(&sandbox, &["--file", "a.log", "--name", "the log", "--match", "e"]);
    session.add(&sandbox, &["--sessions", "--for", "2h"]);
    append(&log, "one\n");
    hears(&sandbox, "one", 1);
    let listed = person(&sandbox, &["watch", "list"]).stdout;
    assert!(
        listed.contains("active") && listed.contains("the log: file ") && listed.contains("told 1x"),
        "{listed}"
    );
    let shown = person(&sandbox, &["watch", "show", "1"]).stdout;
    assert!(shown.contains("lines that match 'e'") && shown.contains("within a session"), "{shown}");
    let value = sandbox.longhaul_json(&["watch", "show", "2", "--json"]);
    assert_eq!((&value["subject"]["kind"], &value["session"]), (&json!("sessions"), &json!("one")));
    person(&sandbox, &["watch", "pause", "1"]);
    until("that it rests", || (!store(&sandbox).watch_is_held(1)).then_some(()));
    append(&log, "meanwhile\n");
    assert!(person(&sandbox, &["watch", "list"]).stdout.contains("paused"));
    person(&sandbox, &["watch", "resume", "1"]);
    assert_eq!(hears(&sandbox, "one", 2)[1], "meanwhile");
    until("both in the log", || (store(&sandbox).told(1).0.len() == 2).then_some(()));
    let log = sandbox.longhaul_json(&["watch", "log", "1", "--json"]);
    let texts: Vec<&str> =
        log["told"].as_array().unwrap().iter().map(|told| told["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["one", "meanwhile"]);
    assert!(person(&sandbox, &["watch", "log", "1", "--since", "1h"]).stdout.contains("meanwhile"));
    assert!(
        person(&sandbox, &["watch", "log", "1", "--since", "2999-01-01T00:00:00Z"])
            .stdout
            .contains("nothing")
    );
    assert_eq!(person(&sandbox, &["watch", "log", "1", "--since", "lately"]).code, 1);
    assert_eq!(person(&sandbox, &["watch", "remove", "1"]).code, 0);
    until("that its files are gone", || (!sandbox.state().join("watches/1.json").exists()).then_some(()));
    assert!(person(&sandbox, &["watch", "show", "1"]).stderr.contains("no watch 1"));
    assert_eq!(session.add(&sandbox, &["--file", "a.log"]), 3, "a number is given once");
    let said = person(&sandbox, &["watch", "pause", "2", "9"]);
    assert!(said.code == 1 && sandbox.longhaul_json(&["watch", "show", "2", "--json"])["state"] == "active");
}

#[test]
fn past_the_hours_limit_the_log_has_what_the_session_has_not() {
    let sandbox = Sandbox::new();
    let session = Session::open(&sandbox, "one");
    let log = sandbox.work().join("a.log");
    session.add(&sandbox, &["--file", "a.log", "--most", "2"]);
    let told = || store(&sandbox).told(1).0.len();
    for n in 1..=4 {
        append(&log, &format!("line {n}\n"));
        until("the line in the log", || (told() >= n).then_some(()));
    }
    let heard = heard(&sandbox, "one");
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[1].starts_with("line 2\n[2 times within an hour"), "{heard:?}");
    let shown = person(&sandbox, &["watch", "show", "1"]).stdout;
    assert!(shown.contains("held back  2 times"), "{shown}");
    assert!(person(&sandbox, &["watch", "log", "1"]).stdout.contains("(summed up for the session)"));
}

/// Without a watcher: a task in the background that ends with the first event. Nothing falls between two of them.
#[test]
fn waits_print_each_thing_once_whatever_comes_between_them() {
    let sandbox = Sandbox::new();
    let session = Session::without_watcher(&sandbox, "one", &sandbox.work());
    let log = sandbox.work().join("a.log");
    let said = session.tool(&sandbox, &["watch", "add", "--file", "a.log"]);
    assert!(said.stdout.contains("longhaul watch wait 1"), "{said:?}");
    let other = session.add(&sandbox, &["--after", "40d"]);
    append(&log, "one\n");
    let said = session.tool(&sandbox, &["watch", "wait"]);
    assert_eq!((said.code, said.stdout.lines().nth(1)), (0, Some("  one")), "{said:?}");
    append(&log, "two\nthree\n");
    let other = other.to_string();
    let said = session.tool(&sandbox, &["watch", "wait", &other, "--timeout", "1s"]);
    assert_eq!((said.code, &*said.stdout), (3, ""), "{said:?}");
    let said = session.tool(&sandbox, &["watch", "wait", "1", &other, "--json"]);
    let value: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&value["text"], &value["from"]), (&json!("2 lines:\ntwo\nthree"), &json!("watch 1 a.log")));
    let said = session.tool(&sandbox, &["watch", "wait", "--timeout", "1s"]);
    assert_eq!((said.code, &*said.stdout), (3, ""), "{said:?}");
    person(&sandbox, &["watch", "pause", &other]);
    let said = session.tool(&sandbox, &["watch", "wait", &other]);
    assert!(said.code == 1 && said.stderr.contains("tells nothing more"), "{said:?}");
    let said = session.tool(&sandbox, &["watch", "wait", "77"]);
    assert!(said.code == 1 && said.stderr.contains("no watch 77"), "{said:?}");
}

/// A wait that is stopped leaves no program behind, and its place.
#[test]
fn a_wait_that_is_stopped_ends_in_order() {
    let sandbox = Sandbox::new();
    let session = Session::without_watcher(&sandbox, "one", &sandbox.work());
    session.add(&sandbox, &["--stream", "sh -c 'echo $$ >pid; exec sleep 300'"]);
    let mut command = sandbox.command("longhaul");
    command.args(["watch", "wait", "--session", "one"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.env("PATH", "/usr/bin:/bin").spawn().unwrap();
    let pid = || fs_err::read_to_string(sandbox.work().join("pid")).ok()?.trim().parse::<u32>().ok();
    let process = process::find(until("the program", pid)).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    let said = finish(child);
    assert_eq!((said.code, &*said.stdout), (128 + 15, ""), "{said:?}");
    assert!(!process.runs());
}

/// Every way that the skill names is one that this build knows, also where it stands in a sentence.
#[test]
fn the_skill_names_only_verbs_that_exist() {
    let sandbox = Sandbox::new().env("PATH", "/usr/bin:/bin");
    let skill = concat!(env!("CARGO_MANIFEST_DIR"), "/skills/watch/SKILL.md");
    let text = fs_err::read_to_string(skill).unwrap();
    let mut found = 0;
    for quoted in text.split('`').skip(1).step_by(2) {
        let options = quoted.starts_with("--").then(|| format!("watch add {quoted}"));
        let verb = quoted.strip_prefix("longhaul ").map(str::to_owned);
        let bare = ["pause", "resume", "log"].iter().any(|verb| quoted.starts_with(&format!("{verb} ")));
        let Some(line) = options.or(verb).or_else(|| bare.then(|| format!("watch {quoted}"))) else {
            continue;
        };
        let whole = ["--once", "--for 2h", "--name NAME", "--until-match", "--from start"];
        let line =
            if whole.iter().any(|option| line.ends_with(option)) { format!("{line} --file x") } else { line };
        let line = line.replace(" N ", " 1 ").replace("--until-match --file", "--until-match y --file");
        let line = line.strip_suffix(" N").map_or(line.clone(), |line| format!("{line} 1"));
        let words = longhaul::base::shell::words(&line).unwrap();
        let stands_for = |word| match word {
            "COMMAND" => "true",
            "PID" => "1",
            word => word,
        };
        let words: Vec<&str> = words.iter().map(|word| stands_for(&**word)).collect();
        let said = person(&sandbox, &words);
        assert!(said.code == 0 || said.code == 1, "{line}: {said:?}");
        found += 1;
    }
    assert!(found >= 12, "{found}");
}
