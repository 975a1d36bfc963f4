//! Whose a watch is: through /clear, resume, the end of a client, and between sessions of a project.

use super::*;

#[test]
fn clear_and_resume_carry_watches_along() {
    let sandbox = Sandbox::new();
    let mut session = Session::open(&sandbox, "one");
    let log = sandbox.work().join("a.log");
    session.add(&sandbox, &["--file", "a.log", "--bind", "session"]);
    append(&log, "first\n");
    hears(&sandbox, "one", 1);
    session.shows(&sandbox, "two");
    append(&log, "second\n");
    until("the line in the new session", || {
        lines(&sandbox, "two").contains(&"second".to_owned()).then_some(())
    });
    assert_eq!(watch(&sandbox, 1).maker.session.as_deref(), Some("two"));
    session.close();
    append(&log, "while it was closed\n");
    let other = Session::open(&sandbox, "other");
    let _resumed = Session::open(&sandbox, "two");
    until("the line after the resume", || {
        lines(&sandbox, "two").contains(&"while it was closed".to_owned()).then_some(())
    });
    assert!(heard(&sandbox, &other.id).is_empty(), "a session's own watch is nobody else's");
}

#[test]
fn what_could_not_be_written_down_is_tried_again() {
    let sandbox = Sandbox::new();
    let mut session = Session::open(&sandbox, "one");
    let number = session.add(&sandbox, &["--file", "a.log", "--bind", "session"]);
    is_run(&sandbox, number);
    // Nobody gets a lock that is a directory.
    let lock = sandbox.state().join("watches.lock");
    fs_err::remove_file(&lock).unwrap();
    fs_err::create_dir(&lock).unwrap();
    session.shows(&sandbox, "two");
    until("the failure in the trace", || trace(&sandbox).contains("watches.lock").then_some(()));
    fs_err::remove_dir(&lock).unwrap();
    until("the watch's new session", || {
        (watch(&sandbox, number).maker.session.as_deref() == Some("two")).then_some(())
    });
}

#[test]
fn a_watch_of_the_project_passes_to_its_oldest_open_session_and_to_no_other() {
    let sandbox = Sandbox::new();
    let elsewhere = Session::open_in(&sandbox, "elsewhere", &sandbox.root.path().join("other"));
    let first = Session::open(&sandbox, "first");
    // Two clients must not have started within one tick of the system's clock.
    std::thread::sleep(Duration::from_millis(30));
    let second = Session::open(&sandbox, "second");
    std::thread::sleep(Duration::from_millis(30));
    let third = Session::open(&sandbox, "third");
    let log = sandbox.work().join("a.log");
    second.add(&sandbox, &["--file", "a.log"]);
    append(&log, "one\n");
    hears(&sandbox, "second", 1);
    second.close();
    append(&log, "two\n");
    assert_eq!(hears(&sandbox, "first", 1), ["two"]);
    first.close();
    append(&log, "three\n");
    assert_eq!(hears(&sandbox, "third", 1), ["three"]);
    third.close();
    append(&log, "four\n");
    until("that nobody runs it", || (!store(&sandbox).watch_is_held(1)).then_some(()));
    let _again = Session::open(&sandbox, "again");
    assert_eq!(hears(&sandbox, "again", 1), ["four"], "with nobody open the place waits");
    assert!(heard(&sandbox, &elsewhere.id).is_empty(), "never another project's");
}

#[test]
fn its_maker_gets_it_back() {
    let sandbox = Sandbox::new();
    let (maker, heir) = (Session::open(&sandbox, "maker"), Session::open(&sandbox, "heir"));
    let log = sandbox.work().join("a.log");
    maker.add(&sandbox, &["--file", "a.log"]);
    maker.close();
    append(&log, "one\n");
    hears(&sandbox, "heir", 1);
    let _again = Session::open(&sandbox, "maker");
    let mut count = 0;
    until("a line for its maker", || {
        count += 1;
        append(&log, &format!("line {count}\n"));
        std::thread::sleep(Duration::from_millis(50));
        (!lines(&sandbox, "maker").is_empty()).then_some(())
    });
    append(&log, "the end\n");
    until("the last line", || lines(&sandbox, "maker").contains(&"the end".to_owned()).then_some(()));
    let all = [lines(&sandbox, "heir"), lines(&sandbox, "maker")].concat();
    let between = (1..=count).map(|n| format!("line {n}"));
    let expected: Vec<String> =
        ["one".to_owned()].into_iter().chain(between).chain(["the end".to_owned()]).collect();
    assert_eq!(all, expected, "each line went to one of them");
    drop(heir);
}

#[test]
fn a_command_of_the_model_ends_with_its_client_unless_a_person_keeps_it() {
    let sandbox = Sandbox::new();
    let session = Session::open(&sandbox, "one");
    let ends = session.add(&sandbox, &["--command", "cat a"]);
    let kept = session.add(&sandbox, &["--command", "cat b"]);
    let file = session.add(&sandbox, &["--file", "c"]);
    let refused = session.tool(&sandbox, &["watch", "keep", &kept.to_string()]);
    assert!(refused.code == 1 && refused.stderr.contains("only a person"), "{refused:?}");
    assert_eq!(person(&sandbox, &["watch", "keep", &kept.to_string()]).code, 0);
    session.close();
    let _resumed = Session::open(&sandbox, "one");
    until("the end of what nobody kept", || watch(&sandbox, ends).ended);
    for number in [kept, file] {
        is_run(&sandbox, number);
        assert!(watch(&sandbox, number).ended.is_none());
    }
    // What a person made needs nobody's word.
    let said = person(&sandbox, &["watch", "add", "--command", "/bin/cat b", "--session", "one", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let said = person(&sandbox, &["watch", "add", "--command", "/bin/cat b", "--json"]);
    let value: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&value["made_by"], &value["ends_with_client"]), (&json!("person"), &json!(false)));
    assert_eq!(value["session"], "one", "the one that is open in this directory");
}
