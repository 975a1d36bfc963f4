//! What the person is told of sessions, through the programs: with short limits, a notifier that writes down what it
//! is given, and a clock that the test turns.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use longhaul::base::id::SessionId;
use longhaul::host::Host;
use longhaul::store::Store;
use serde_json::{Value, json};

use crate::liveness::{Fleet, batch, call, prompt};
use crate::sandbox::{SESSION, Said};

const OTHER: &str = "4a4a4a4a-0000-4000-8000-00000000000b";

/// A machine with a notifier of the person's own.
struct Told(Fleet);

impl Told {
    /// With short limits.
    fn new() -> Self {
        let told = Self(Fleet::new());
        let tell = told.program("tell", "cat >>told");
        told.configure(&json!({ "command": [tell], "waiting_after": 20 }));
        told
    }

    fn home(&self) -> PathBuf {
        self.0.sandbox.config().parent().unwrap().to_owned()
    }

    /// A script; it runs in the home directory.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.home().join("bin").join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("new");
        fs_err::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs_err::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        fs_err::rename(new, &path).unwrap();
        path
    }

    fn configure(&self, notify: &Value) {
        let liveness = json!({ "stale": 10, "stale_thinking": 10, "dead": 30 });
        let config = json!({ "liveness": liveness, "notify": notify });
        fs_err::create_dir_all(self.0.sandbox.state()).unwrap();
        fs_err::write(self.0.sandbox.state().join("config.json"), config.to_string()).unwrap();
    }

    /// A session in the middle of a turn, in a client of its own.
    fn working(&mut self, session: &str) -> u32 {
        let client = self.0.client();
        self.0.event(client, session, 0, "SessionStart", &json!({ "source": "startup" }));
        self.0.event(client, session, 1, "UserPromptSubmit", &prompt("p"));
        client
    }

    /// What a timer does.
    fn timer(&self, at: i64) -> Said {
        self.0.longhaul(at, &["--notify"])
    }

    /// All that the person was told, each as incident and title.
    fn told(&self) -> Vec<String> {
        let text = fs_err::read_to_string(self.home().join("told")).unwrap_or_default();
        let value = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let short = |value: Value| format!("{} {}", value["incident"], value["title"]).replace('"', "");
        text.lines().map(value).map(short).collect()
    }

    fn trace(&self) -> String {
        fs_err::read_to_string(self.0.sandbox.state().join("trace.log")).unwrap_or_default()
    }

    /// What another session's status line says now.
    fn line_of(&self, session: &str) -> String {
        let mut payload = self.0.sandbox.payload(1_000_000, Some(100_000), None);
        payload["session_id"] = json!(session);
        self.0.sandbox.statusline(&payload).stdout
    }
}

#[test]
fn an_incident_is_told_once_and_again_after_the_session_moved() {
    let mut told = Told::new();
    let client = told.working(SESSION);
    assert_eq!(told.timer(5).code, 0);
    assert_eq!(told.told(), [""; 0]);
    for at in [12, 15, 60] {
        assert_eq!((told.timer(at).code, told.told().len()), (0, 1), "at {at}");
    }
    assert_eq!(told.told(), ["stale? session 3f2a9c1e… may be stuck"], "stuck for longer is the same");
    told.0.event(client, SESSION, 70, "PostToolBatch", &batch(&[]));
    told.timer(71);
    assert_eq!(told.told().len(), 1);
    told.timer(82);
    assert_eq!(told.told().len(), 2, "it stands still anew");
    told.0.kill(client);
    told.timer(90);
    told.timer(95);
    assert_eq!(told.told()[2..], ["dead session 3f2a9c1e… has died"]);
    // The watch for timers goes by the same sessions.
    assert_eq!(told.0.longhaul(96, &["--check", "--notify"]).code, 1);
    assert_eq!(told.told().len(), 3);
}

#[test]
fn a_question_is_told_when_it_has_waited_and_each_once() {
    let mut told = Told::new();
    let client = told.working(SESSION);
    let ask = |at: i64| {
        let what = json!({ "tool_name": "Bash", "tool_input": { "command": "make" }, "prompt_id": "p" });
        told.0.event(client, SESSION, at, "PermissionRequest", &what);
    };
    ask(2);
    told.timer(20);
    assert_eq!(told.told(), [""; 0]);
    told.timer(23);
    told.timer(900);
    assert_eq!(told.told(), ["waiting session 3f2a9c1e… waits for you"]);
    told.0.event(client, SESSION, 901, "PostToolBatch", &batch(&[]));
    ask(902);
    told.timer(930);
    assert_eq!(told.told().len(), 2, "another question, and nobody looked in between");
}

#[test]
fn a_timer_with_an_empty_environment_finds_and_tells_the_same() {
    let mut told = Told::new();
    let runtime = told.0.sandbox.root.path().join("runtime");
    fs_err::create_dir(&runtime).unwrap();
    fs_err::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let client = told.0.client();
    for (at, name, more) in
        [(0, "SessionStart", json!({ "source": "startup" })), (1, "UserPromptSubmit", prompt("p"))]
    {
        let mut command = told.0.command("longhaul-hook", at);
        command.env("CLAUDE_PID", client.to_string()).env("XDG_RUNTIME_DIR", &runtime);
        told.0.send(command, SESSION, name, &more);
    }
    assert!(fs_err::read_dir(&runtime).unwrap().count() > 0, "beats lie there");
    // Nothing but HOME, as with `env -i`.
    told.timer(12);
    assert_eq!(told.told().len(), 1);
    assert_eq!(told.0.longhaul(13, &["--check"]).code, 1);
}

#[test]
fn the_watcher_and_a_timer_tell_each_incident_once_between_them() {
    let mut told = Told::new();
    let send = |told: &Told, client: u32, name: &str, more: &Value| {
        let mut command = told.0.sandbox.command("longhaul-hook");
        command.env("CLAUDE_PID", client.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        told.0.send(command, SESSION, name, more);
    };
    let config = json!({ "liveness": { "stale": 2, "stale_thinking": 2, "dead": 600 },
        "notify": { "command": [told.home().join("bin/tell")] } });
    fs_err::write(told.0.sandbox.state().join("config.json"), config.to_string()).unwrap();
    let client = told.0.client();
    send(&told, client, "SessionStart", &json!({ "source": "startup" }));
    send(&told, client, "UserPromptSubmit", &prompt("p"));
    let own = told.0.client();
    let watcher = Watcher::start(&told, own);
    wait("the watcher tells", || told.told().len() == 1);
    assert_eq!(told.0.sandbox.longhaul(&["sessions", "--notify"]).code, 0);
    assert_eq!(told.told().len(), 1, "a timer beside it");
    wait("the line", || told.line_of(OTHER).contains("1 stalled"));
    assert!(!told.line_of(SESSION).contains("stalled"), "not of itself");
    send(&told, client, "Stop", &json!({ "prompt_id": "p", "background_tasks": [] }));
    wait("it moved again", || !told.line_of(OTHER).contains("stalled"));
    send(&told, client, "UserPromptSubmit", &prompt("q"));
    wait("again", || told.told().len() == 2);
    // And when its process goes, long before any limit.
    told.0.kill(client);
    wait("its end", || told.told().len() == 3);
    assert!(told.told()[2].starts_with("dead "), "{:?}", told.told());
    wait("the line", || told.line_of(OTHER).contains("1 dead"));
    drop(watcher);
    assert_eq!(told.trace(), "");
}

#[test]
fn names_and_details_only_stand_where_they_are_shown() {
    let mut told = Told::new();
    let odd = "\u{1b}]0;x\u{7}\"; touch hurt; '$(touch hurt)`touch hurt`\\n<b>\u{202e}";
    let client = told.0.client();
    let shown = told.program("notify-send", "for arg; do printf '%s\\n' \"$arg\"; done >>shown");
    let tell = told.home().join("bin/tell");
    told.configure(&json!({ "command": [tell, "$(touch hurt)", "; touch hurt"], "desktop": true }));
    told.0.event(client, SESSION, 0, "SessionStart", &json!({ "source": "startup", "session_title": odd }));
    let run = call("a", "Bash", &json!({ "command": odd, "timeout": 1000 }));
    told.0.event(client, SESSION, 1, "PreToolUse", &run);
    let mut command = told.0.command("longhaul", 200);
    command.env("PATH", format!("{}:/usr/bin:/bin", shown.parent().unwrap().display()));
    let said = crate::sandbox::finish(command.args(["sessions", "--notify"]).spawn().unwrap());
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    let clean = |text: &str| !text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
    assert!(clean(&said.stdout));
    let shown = fs_err::read_to_string(told.home().join("shown")).unwrap();
    assert!(clean(&shown) && shown.lines().count() == 5, "{shown}");
    assert!(
        shown.contains(
            "\nlonghaul: ]0;x\"; touch hurt; '$(touch hurt)`touch hurt`\\n<b> is stuck, most likely"
        ),
        "{shown}"
    );
    assert!(shown.lines().last().unwrap().contains("\\\\n&lt;b&gt;"), "{shown}");
    assert_eq!(told.told().len(), 1);
    for dir in [told.home(), told.0.sandbox.work(), told.0.sandbox.state()] {
        assert!(!dir.join("hurt").exists());
    }
}

#[test]
fn a_notifier_that_does_not_work_is_said_once_and_changes_nothing_else() {
    let mut told = Told::new();
    let failing = told.program("failing", "echo 'no display' >&2; exit 4");
    let mut at = 12;
    for (command, why) in [
        (json!([failing]), "ended with 4: no display"),
        (json!(["no-such-program"]), "no program \"no-such-program\" on PATH"),
        (json!([told.home().join("bin/none")]), "cannot be followed to a file"),
    ] {
        told.configure(&json!({ "command": command }));
        for session in [format!("s-{at}-a"), format!("s-{at}-b")] {
            told.working(&session);
            let said = told.0.longhaul(at, &["--check", "--notify"]);
            assert_eq!(said.code, 1, "as without: {said:?}");
            assert!(said.stderr.contains(why), "{why}: {said:?}");
            assert_eq!(told.timer(at).stderr, "", "told or not, it is over");
        }
        assert_eq!(told.trace().matches(why).count(), 1, "{}", told.trace());
        at += 100;
    }
}

#[test]
fn what_no_notifier_could_tell_a_terminal_says_once() {
    let mut told = Told::new();
    told.configure(&json!({}));
    let empty = told.home().join("empty");
    fs_err::create_dir(&empty).unwrap();
    told.working(SESSION);
    let other = told.0.client();
    let mut command = told.0.command("longhaul", 12);
    command.env("PATH", &empty).args(["sessions", "--notify"]);
    let said = crate::sandbox::finish(command.spawn().unwrap());
    assert!(said.stderr.contains("no notify-send"), "{said:?}");
    let answer = |session: &str, name: &str, env: &[(&str, &str)]| {
        let mut command = told.0.command("longhaul-hook", 13);
        command.env("CLAUDE_PID", other.to_string()).envs(env.iter().copied());
        let more = json!({ "prompt_id": "p", "prompt": "x", "tool_name": "Read", "tool_use_id": "u" });
        crate::sandbox::finish(told.0.start(command, session, name, &more)).stdout
    };
    // A session does not ring of itself; one that nobody sits before does not ring.
    assert_eq!(answer(SESSION, "PreToolUse", &[]), "");
    for env in [
        ("CLAUDE_CODE_SESSION_ATTENDED", "0"),
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"),
        ("CLAUDE_JOB_DIR", "/tmp"),
    ] {
        assert_eq!(answer(OTHER, "PreToolUse", &[env]), "", "{env:?}");
    }
    assert_eq!(answer(OTHER, "PostToolBatch", &[]), "", "the client would not hand it on");
    let rung: Value = serde_json::from_str(&answer(OTHER, "PreToolUse", &[])).unwrap();
    let sequence = rung["terminalSequence"].as_str().unwrap();
    assert!(sequence.starts_with("\u{1b}]9;session 3f2a9c1e… may be stuck: "), "{sequence:?}");
    assert!(sequence.ends_with("\u{7}\u{7}") && sequence.matches('\u{1b}').count() == 1);
    assert_eq!(answer(OTHER, "PreToolUse", &[]), "", "once");
}

#[test]
fn a_session_that_asked_hears_of_it_and_no_other() {
    let mut told = Told::new();
    told.working(SESSION);
    for session in [OTHER, "unasked"] {
        let client = told.working(session);
        told.0.event(client, session, 8, "Stop", &json!({ "prompt_id": "p", "background_tasks": [] }));
    }
    let said = told.0.sandbox.longhaul(&["watch", "add", "--sessions", "--session", OTHER]);
    assert_eq!(said.code, 0, "{said:?}");
    told.timer(12);
    told.timer(13);
    let store = Store::locate(&Host::fixed(&[("HOME", told.home().to_str().unwrap())], 0), &[]).unwrap();
    let heard = |session: &str| {
        let mut inbox = store.inbox(&SessionId::parse(session).unwrap());
        inbox.refresh().unwrap();
        inbox.unacknowledged().map(|event| event.text.clone()).collect::<Vec<_>>()
    };
    let text = heard(OTHER);
    assert!(text.len() == 1 && text[0].starts_with("session 3f2a9c1e… may be stuck: "), "{text:?}");
    assert!(text[0].ends_with(&format!("[session {SESSION}]")), "it can be found");
    assert_eq!((heard("unasked").len(), heard(SESSION).len()), (0, 0));
}

#[test]
fn wrong_use_and_what_cannot_be_kept_are_said() {
    let mut told = Told::new();
    told.working(SESSION);
    assert_eq!(told.0.longhaul(12, &["--notify", "--project", "."]).code, 2);
    let state = told.0.sandbox.state();
    fs_err::write(state.join("config.json"), "{\n \"notify\": { \"command\": [] } }").unwrap();
    let said = told.timer(12);
    assert!(said.code == 1 && said.stderr.contains("names no program at line 2"), "{said:?}");
    assert_eq!(told.0.longhaul(12, &["--check", "--notify"]).code, 3);
    told.configure(&json!({ "command": [told.home().join("bin/tell")] }));
    fs_err::write(state.join("incidents.json"), "{\"v\":7}").unwrap();
    let said = told.0.longhaul(12, &["--check", "--notify"]);
    assert!(said.code == 3 && said.stderr.contains("later version"), "{said:?}");
    fs_err::write(state.join("incidents.json"), "damaged").unwrap();
    assert_eq!(told.timer(12).code, 0);
    assert_eq!(told.told().len(), 1);
    assert_eq!(fs_err::read_to_string(state.join("incidents.json.unreadable-1")).unwrap(), "damaged");
}

/// A watcher beside a client; it ends with the test.
struct Watcher(Child);

impl Watcher {
    fn start(told: &Told, client: u32) -> Self {
        let mut command = told.0.sandbox.command("longhaul-watch");
        command.env("CLAUDE_PID", client.to_string()).stdin(Stdio::null());
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each within ten times what the specification grants.
#[track_caller]
fn wait(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(100), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}
