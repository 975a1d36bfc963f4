//! What the hook does with notifications of our own monitor.

use std::time::Duration;

use longhaul::client::notification::OURS;
use longhaul::host::process;
use longhaul::store::inbox::Event;
use longhaul::store::watchers::Stamp;
use serde_json::{Value, json};

use super::{Client, inbox, put, silent, store};
use crate::sandbox::{SESSION, Sandbox};

fn lines(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<task-notification>\n<task-id>b1</task-id>\n<summary>Monitor event: \"{OURS}\"</summary>\n\
         <event>{text}</event>\n</task-notification>"
    )
}

fn end() -> String {
    format!(
        "<task-notification>\n<task-id>b1</task-id>\n<output-file>/tmp/x</output-file>\n\
         <status>completed</status>\n<summary>Monitor \"{OURS}\" stream ended</summary>\n</task-notification>"
    )
}

fn submit(sandbox: &Sandbox, prompt: &str) -> Value {
    sandbox.answer(&sandbox.event("UserPromptSubmit", &json!({ "prompt": prompt })))
}

fn open(sandbox: &Sandbox, session: &str) -> Vec<Event> {
    let mut inbox = inbox(sandbox, session);
    inbox.refresh().unwrap();
    inbox.unacknowledged().cloned().collect()
}

/// The stamp of a watcher that runs: this test's own process is as good as any.
fn running(client: &Client) -> Stamp {
    let (me, client) = (process::find(std::process::id()).unwrap(), process::find(client.pid()).unwrap());
    Stamp {
        pid: me.pid,
        start: me.start,
        client: client.pid,
        client_start: client.start,
        session: Some(SESSION.to_owned()),
        ..Stamp::default()
    }
}

#[test]
fn a_notification_acknowledges_the_events_of_its_lines() {
    let sandbox = Sandbox::new();
    for n in 1..=6 {
        put(&sandbox, SESSION, &format!("e{n}"), "x");
    }
    let events = open(&sandbox, SESSION);
    let mark = |n: usize| events[n - 1].mark().to_string();
    let forged = format!("{} x\n  {} y\nx {} z", mark(1), mark(2), mark(3));
    assert_eq!(submit(&sandbox, &lines(&forged)), Value::Null);
    assert_eq!(open(&sandbox, SESSION).len(), 5, "only what stands in front counts");
    for other in [
        lines(&mark(4)).replace("longhaul", "another"),
        format!("{} is what I saw", mark(4)),
        lines("4-aaaa x"),
        lines("4 x"),
    ] {
        submit(&sandbox, &other);
        assert_eq!(open(&sandbox, SESSION).len(), 5, "{other}");
    }
    submit(&sandbox, &lines(&format!("{}..{} all", mark(2), mark(5))));
    assert_eq!(open(&sandbox, SESSION).iter().map(|event| event.number).collect::<Vec<_>>(), [6]);
    // Beside another, as a client at work hands them over.
    submit(&sandbox, &format!("{}\n{}", lines("[suppressed]"), lines(&format!("{} & <b>", mark(6)))));
    assert_eq!(open(&sandbox, SESSION), []);
}

#[test]
fn only_the_end_of_our_own_watcher_is_kept_from_the_model_and_once() {
    let client = Client::start();
    let sandbox = Sandbox::new().env("CLAUDE_PID", &client.pid().to_string());
    let blocked = |prompt: &str| submit(&sandbox, prompt)["decision"] == "block";
    assert!(!blocked(&end()), "nobody watched");
    store(&sandbox).save_watcher(&running(&client)).unwrap();
    assert!(!blocked(&end()), "a person pasted it: the watcher runs");
    let ended = Stamp { ended: Some("background".into()), ..running(&client) };
    store(&sandbox).save_watcher(&ended).unwrap();
    for other in [
        format!("{} what does that mean?", end()),
        end().replace("longhaul", "another"),
        lines("1-aaaa x"),
        "Monitor ended".to_owned(),
    ] {
        assert!(!blocked(&other), "{other}");
    }
    sandbox.answer(&sandbox.event("Stop", &json!({})));
    let answer = submit(&sandbox, &end());
    assert_eq!(answer["decision"], "block");
    assert!(answer["reason"].as_str().unwrap().contains("background"), "{answer}");
    let sessions = sandbox.longhaul_json(&["sessions", "--all", "--json"]);
    assert_eq!(sessions[0]["phase"], "idle", "what the model is not given begins no turn: {sessions:#}");
    assert_eq!(answer["hookSpecificOutput"]["suppressOriginalPrompt"], true);
    assert!(!blocked(&end()), "there was one end");
    // Killed, it left no word.
    let dead = Stamp { pid: 1, start: Some("0".into()), ..running(&client) };
    store(&sandbox).save_watcher(&dead).unwrap();
    let answer = submit(&sandbox, &end());
    assert!(answer["reason"].as_str().unwrap().contains("has ended"), "{answer}");
    assert!(!blocked(&end()));
    let line = sandbox.statusline(&sandbox.payload(1_000_000, Some(100_000), None));
    assert!(line.stdout.contains("watch off"), "{}", line.stdout);
    store(&sandbox).save_watcher(&running(&client)).unwrap();
    let line = sandbox.statusline(&sandbox.payload(1_000_000, Some(100_000), None));
    assert!(!line.stdout.contains("watch off"), "{}", line.stdout);
}

/// A watcher that was stopped in the middle of a line holds its inbox for as long as it is.
#[test]
fn no_hook_waits_for_who_holds_an_inbox() {
    let client = Client::start();
    let sandbox = Sandbox::new().env("CLAUDE_PID", &client.pid().to_string());
    store(&sandbox).save_watcher(&running(&client)).unwrap();
    put(&sandbox, SESSION, "a", "x");
    let mut inbox = inbox(&sandbox, SESSION);
    inbox.refresh().unwrap();
    let mark = inbox.unacknowledged().next().unwrap().mark();
    let lock = sandbox.state().join("inbox").join(SESSION).join("lock");
    let lock = std::fs::OpenOptions::new().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let prompt = json!({ "prompt": lines(&format!("{mark} x")) });
    let mut start = sandbox.event("SessionStart", &json!({ "source": "clear" }));
    start["session_id"] = json!("another");
    for event in [sandbox.event("UserPromptSubmit", &prompt), start] {
        // The quickest of some: the machine may be busy.
        let took = (0..5).map(|_| sandbox.hook(&event)).map(|said| {
            silent(&said);
            said.took
        });
        let took = took.min().unwrap();
        assert!(took < Duration::from_secs(1), "{took:?}: {event}");
    }
    drop(lock);
    inbox.refresh().unwrap();
    assert_eq!(inbox.unacknowledged().count(), 1, "it is told again");
}

#[test]
fn where_our_hooks_run_and_no_monitor_does_the_line_says_so() {
    let client = Client::start();
    let sandbox = Sandbox::new().env("CLAUDE_PID", &client.pid().to_string());
    let line = || sandbox.statusline(&sandbox.payload(1_000_000, Some(100_000), None)).stdout;
    let began = |seconds_ago: i64, kind: &str| {
        client.says(&sandbox, SESSION, "idle");
        let path = sandbox.config().join(format!("sessions/{}.json", client.pid()));
        let mut file: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        file["startedAt"] = json!(longhaul::host::clock::now_ms() - seconds_ago * 1_000);
        file["kind"] = json!(kind);
        fs_err::write(path, file.to_string()).unwrap();
    };
    began(3_600, "interactive");
    assert!(!line().contains("watch off"), "nobody's hooks run: there is no plugin that could watch");
    sandbox.answer(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    assert!(line().contains("watch off"), "{}", line());
    began(0, "interactive");
    assert!(!line().contains("watch off"), "it may be about to start");
    began(3_600, "bg");
    assert!(!line().contains("watch off"), "none is wanted there");
    began(3_600, "interactive");
    store(&sandbox).save_watcher(&running(&client)).unwrap();
    assert!(!line().contains("watch off"), "{}", line());
}

#[test]
fn what_was_printed_before_clear_is_acknowledged_after_it() {
    let client = Client::start();
    let sandbox = Sandbox::new().env("CLAUDE_PID", &client.pid().to_string());
    let old = "00000000-0000-4000-8000-000000000001";
    store(&sandbox).save_watcher(&Stamp { session: Some(old.to_owned()), ..running(&client) }).unwrap();
    put(&sandbox, old, "e1", "x");
    put(&sandbox, old, "e2", "y");
    let events = open(&sandbox, old);
    submit(&sandbox, &lines(&format!("{} x", events[0].mark())));
    assert_eq!(open(&sandbox, old).len(), 1);
    // The session goes on in this one, and so do its events.
    sandbox.answer(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    assert_eq!(open(&sandbox, old).len(), 1, "another session of its own");
    sandbox.answer(&sandbox.event("SessionStart", &json!({ "source": "clear" })));
    assert_eq!((open(&sandbox, old), open(&sandbox, SESSION).len()), (vec![], 1));
    submit(&sandbox, &lines(&format!("{} y", events[1].mark())));
    assert_eq!(open(&sandbox, SESSION), []);
}
