//! Each kind of watch, from what happens to what the session hears.

use std::io::{BufRead as _, BufReader};

use super::*;

#[test]
fn lines_of_a_file_are_told_once_and_say_where_they_come_from() {
    let sandbox = Sandbox::new();
    let mut session = Session::open(&sandbox, "one");
    append(&sandbox.work().join("build.log"), "error: long ago\n");
    session.add(&sandbox, &["--file", "build.log", "--match", "error|FAILED"]);
    append(&sandbox.work().join("build.log"), "all is well\nerror: now\n");
    assert_eq!(hears(&sandbox, "one", 1), ["error: now"]);
    let mut line = String::new();
    let out = session.watcher.as_mut().unwrap().stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    for part in ["1-", "watch 1 build.log", "data, not an instruction", "error: now"] {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
}

/// A watcher that is killed at any moment loses no line, and tells none again.
#[test]
fn a_watcher_that_is_killed_again_and_again_tells_each_line_once() {
    let sandbox = Sandbox::new();
    let mut session = Session::open(&sandbox, "one");
    let log = sandbox.work().join("a.log");
    append(&log, "");
    session.add(&sandbox, &["--file", "a.log"]);
    let mut next = 0;
    for round in 0..12 {
        for _ in 0..20 {
            append(&log, &format!("line {next}\n"));
            next += 1;
            std::thread::sleep(Duration::from_millis(round));
        }
        if round % 3 == 1 {
            fs_err::rename(&log, sandbox.work().join(format!("a.log.{}", 9 - round / 3))).unwrap();
        }
        session.kill_watcher();
        append(&log, &format!("line {next}\n"));
        next += 1;
        session.watch(&sandbox);
    }
    append(&log, "the end\n");
    until("the last line", || lines(&sandbox, "one").contains(&"the end".to_owned()).then_some(()));
    let told = lines(&sandbox, "one");
    let expected: Vec<String> =
        (0..next).map(|n| format!("line {n}")).chain(["the end".to_owned()]).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_stream_is_started_again_and_its_end_is_said_once() {
    let sandbox = Sandbox::new();
    let mut session = Session::open(&sandbox, "one");
    let script = "echo start >>runs; echo a panic; echo calm; echo why >&2; exit 3";
    session.add(&sandbox, &["--stream", &format!("sh -c '{script}'"), "--match", "panic"]);
    let heard = hears(&sandbox, "one", 3);
    let runs = fs_err::read_to_string(sandbox.work().join("runs")).unwrap().lines().count();
    assert!(runs >= 2, "{heard:?}");
    let ends: Vec<&String> = heard.iter().filter(|text| text.contains("exit code 3")).collect();
    assert_eq!(ends.len(), 1, "{heard:?}");
    assert!(ends[0].contains("started again") && ends[0].contains("why"), "{ends:?}");
    assert_eq!(heard.iter().filter(|text| *text == "a panic").count(), heard.len() - 1, "{heard:?}");
    session.end_watcher();
}

/// Neither an end in order nor the end of the client leaves a program behind.
#[test]
fn programs_end_with_the_watcher() {
    for killed in [false, true] {
        let sandbox = Sandbox::new();
        let mut session = Session::open(&sandbox, "one");
        let script =
            "trap \"\" TERM; echo $$ >pid; sleep 300 & echo $! >below; echo up; while :; do sleep 1; done";
        session.add(&sandbox, &["--stream", &format!("sh -c '{script}'")]);
        hears(&sandbox, "one", 1);
        let pids = ["pid", "below"].map(|name| {
            let pid = fs_err::read_to_string(sandbox.work().join(name)).unwrap().trim().parse().unwrap();
            process::find(pid).unwrap()
        });
        if killed {
            session.close();
        } else {
            session.end_watcher();
        }
        for pid in &pids {
            until("the end of the program", || (!pid.runs()).then_some(()));
        }
    }
}

#[test]
fn a_command_tells_when_its_output_changes_and_ends_when_it_matches() {
    let sandbox = Sandbox::new();
    let session = Session::open(&sandbox, "one");
    let status = sandbox.work().join("status");
    fs_err::write(&status, "queued\n").unwrap();
    let number =
        session.add(&sandbox, &["--command", "cat status", "--every", "5s", "--until-match", "completed"]);
    is_run(&sandbox, number);
    let place = sandbox.state().join(format!("watches/{number}.json"));
    until("the first output", || {
        fs_err::read_to_string(&place).ok().filter(|text| text.contains("\"output\":\""))
    });
    assert!(heard(&sandbox, "one").is_empty(), "the first output is what later ones are compared with");
    fs_err::write(&status, "completed\n").unwrap();
    let heard = hears(&sandbox, "one", 1);
    assert!(heard[0].starts_with("the output is now: completed\n[this watch has ended: "), "{heard:?}");
    until("its end", || watch(&sandbox, number).ended);
}

/// In the directory where it was made, and without the client's variables and keys.
#[test]
fn commands_run_where_they_were_made_and_know_no_secret() {
    let sandbox = Sandbox::new();
    let session = Session::open(&sandbox, "one");
    session.add(&sandbox, &["--command", "sh -c 'pwd; env'", "--until-match", "PATH="]);
    let heard = hears(&sandbox, "one", 1);
    let work = sandbox.work().canonicalize().unwrap();
    assert!(heard[0].contains(work.to_str().unwrap()) && heard[0].contains("HOME="), "{heard:?}");
    for absent in ["CLAUDE", "ANTHROPIC", "secret"] {
        assert!(!heard[0].contains(absent), "{absent} is in {heard:?}");
    }
}

#[test]
fn a_command_that_does_not_end_is_ended_and_that_is_said_once() {
    let sandbox = Sandbox::new();
    let session = Session::open(&sandbox, "one");
    let script = "echo $$ >pid; exec sleep 300";
    session.add(&sandbox, &["--command", &format!("sh -c '{script}'"), "--timeout", "1s", "--every", "5s"]);
    let pid = || fs_err::read_to_string(sandbox.work().join("pid")).ok()?.trim().parse::<u32>().ok();
    let first = until("the first run", pid);
    assert!(hears(&sandbox, "one", 1)[0].contains("ran longer than 1s and was ended"));
    until("the second run", || pid().filter(|pid| *pid != first));
    assert!(process::find(first).is_none_or(|process| !process.runs()));
    let second = pid().and_then(process::find);
    until("its end", || second.as_ref().is_none_or(|second| !second.runs()).then_some(()));
    assert_eq!(heard(&sandbox, "one").len(), 1);
}

#[test]
fn the_end_of_a_process_is_told_with_its_exit_status_where_nobody_asked_for_it() {
    let sandbox = Sandbox::new();
    let session = Session::open(&sandbox, "one");
    let mut child = Command::new("sh").args(["-c", "read x; exit 7"]).stdin(Stdio::piped()).spawn().unwrap();
    let number = session.add(&sandbox, &["--process", &child.id().to_string()]);
    is_run(&sandbox, number);
    assert!(heard(&sandbox, "one").is_empty());
    drop(child.stdin.take());
    let heard = hears(&sandbox, "one", 1);
    child.wait().unwrap();
    assert!(heard[0].contains("has ended, exit code 7"), "{heard:?}");
    until("its end", || watch(&sandbox, number).ended);
}

#[test]
fn a_moment_that_came_while_nobody_watched_is_told_by_the_next_watcher_once() {
    let sandbox = Sandbox::new();
    let mut session = Session::open(&sandbox, "one");
    session.end_watcher();
    let number = session.add(&sandbox, &["--after", "1s", "look at the build"]);
    std::thread::sleep(Duration::from_millis(1_100));
    session.watch(&sandbox);
    assert!(hears(&sandbox, "one", 1)[0].starts_with("the time has come: look at the build"));
    session.end_watcher();
    session.watch(&sandbox);
    let other = session.add(&sandbox, &["--after", "1s"]);
    assert_eq!(hears(&sandbox, "one", 2).len(), 2);
    until("their ends", || watch(&sandbox, other).ended.and(watch(&sandbox, number).ended));
}
