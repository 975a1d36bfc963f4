//! Verdicts on the real client, in the states that it really gets into. Where a limit has to pass, either limits
//! are set short or `longhaul sessions` is told by its clock that it is later: what it looks at is the client's.

use std::path::PathBuf;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::api::{Answer, Gate, Kind};
use crate::bench::{Bench, LONG, wait, write_json};
use crate::live::{open, session, session_id};
use crate::longhaul::{PROGRAMS, longhaul, plugged, plugged_without_module};
use crate::terminal::{ENTER, ESCAPE, Terminal};

/// All sessions as they look so many seconds from now.
fn sessions(bench: &Bench, ahead: i64) -> Vec<Value> {
    let line = [PROGRAMS[0].1, "sessions", "--all", "--json"].map(str::to_owned);
    let at = |now: i64| (now + ahead * 1000).to_string();
    let now = at(::longhaul::host::clock::now_ms());
    let mono = at(::longhaul::host::clock::mono_ms());
    let clocks = [("LONGHAUL_TEST_NOW_MS", &*now), ("LONGHAUL_TEST_MONO_MS", &*mono)];
    let out = bench.run(&line, &clocks, b"");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn find(bench: &Bench, id: &str, ahead: i64) -> Value {
    let all = sessions(bench, ahead);
    let of_it: Vec<_> = all.iter().filter(|session| session["session"] == id).collect();
    assert!(of_it.len() < 2, "a session has one row: {of_it:#?}");
    of_it.first().map_or(Value::Null, |session| (*session).clone())
}

/// Waits until a session is that, and gives it.
#[track_caller]
fn comes_to(bench: &Bench, id: &str, verdict: &str, phase: &str) -> Value {
    let mut last = Value::Null;
    let began = std::time::Instant::now();
    while began.elapsed() < LONG {
        last = find(bench, id, 0);
        if last["verdict"] == verdict && last["phase"].as_str().is_some_and(|have| have.starts_with(phase)) {
            return last;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never was {verdict} ({phase}): {last:#}");
}

/// What a session is when nothing happens for so long.
#[track_caller]
fn is_later(bench: &Bench, id: &str, ahead: i64, verdict: &str) -> Value {
    let session = find(bench, id, ahead);
    assert_eq!(session["verdict"], verdict, "in {ahead} s: {session:#}");
    session
}

/// A shell command that runs until a file is there.
fn until(bench: &Bench, name: &str, timeout_ms: u64) -> (Value, PathBuf) {
    let go = bench.work().join(name);
    let command = format!("for i in $(seq 1200); do [ -e {} ] && break; sleep 0.1; done", go.display());
    (json!({ "command": command, "description": name, "timeout": timeout_ms }), go)
}

#[track_caller]
fn ends(terminal: &Terminal, bench: &Bench, id: &str, said: &str) {
    terminal.wait_for(said);
    comes_to(bench, id, "idle", "idle");
}

#[test]
fn a_slow_response_is_no_alarm_and_a_request_that_hangs_is() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let config = json!({ "liveness": { "stale": 9, "stale_thinking": 60, "dead": 20 } });
    write_json(&bench.config().join("longhaul/config.json"), &config);
    let (hung, words) = (Gate::default(), "word ".repeat(64));
    bench.api.next([
        Answer::text("READY"),
        Answer::text(&(words + "END")).slowly(std::time::Duration::from_millis(250)),
        Answer::text("LATE").behind(&hung),
    ]);
    let mut terminal = session(&bench, &[]);
    let id = session_id(&bench);
    terminal.say("hello");
    terminal.wait_for("READY");
    comes_to(&bench, &id, "idle", "idle");
    terminal.say("at length");
    comes_to(&bench, &id, "working", "thinking");
    // Sixteen seconds, of which the last seven lie behind the limit.
    let mut longest = 0;
    while !terminal.screen().contains("END") {
        let now = find(&bench, &id, 0);
        assert!(["working", "idle"].contains(&now["verdict"].as_str().unwrap()), "{now:#}");
        longest = longest.max(now["facts"]["beat"]["ago_s"].as_i64().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(longest > 9, "the stream was not longer than the limit: {longest} s");
    comes_to(&bench, &id, "idle", "idle");
    terminal.say("never answered");
    comes_to(&bench, &id, "working", "thinking");
    let stale = comes_to(&bench, &id, "stale?", "thinking");
    assert_eq!((&stale["suspected"], &stale["facts"]["client"]["status"]), (&json!(false), &json!("busy")));
    is_later(&bench, &id, 20, "dead?");
    hung.open();
    ends(&terminal, &bench, &id, "LATE");
}

#[test]
fn tools_have_their_time_and_what_waits_for_the_person_waits() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let (long, long_go) = until(&bench, "long", 600_000);
    let (other, other_go) = until(&bench, "other", 900_000);
    let (cut, _) = until(&bench, "never", 120_000);
    let background =
        json!({ "command": "sleep 100; echo", "description": "the server", "run_in_background": true });
    let question = json!({ "questions": [{ "question": "Which one?", "header": "H", "multiSelect": false,
        "options": [{ "label": "Aaa", "description": "x" }, { "label": "Bbb", "description": "y" }] }] });
    let mut terminal = session(&bench, &[]);
    let id = session_id(&bench);
    comes_to(&bench, &id, "idle", "starting");

    bench.api.next([Answer::tool("Bash", &long), Answer::text("DONE-1")]);
    terminal.say("a long tool");
    let tool = comes_to(&bench, &id, "working", "tool:Bash");
    assert_eq!((&tool["detail"], &tool["facts"]["tools"][0]["allowed_s"]), (&json!("long"), &json!(600)));
    is_later(&bench, &id, 400, "working");
    assert_eq!(is_later(&bench, &id, 700, "stale?")["suspected"], false);
    is_later(&bench, &id, 1_400, "dead?");
    std::fs::write(long_go, "").unwrap();
    ends(&terminal, &bench, &id, "DONE-1");

    // The first of two is done at once; the batch has until the other's limit.
    let quick = json!({ "command": "true", "description": "quick" });
    bench.api.next([Answer::tool("Bash", &quick).and_tool("Bash", &other), Answer::text("DONE-2")]);
    terminal.say("two tools");
    wait("both tools", LONG, || {
        let tools = find(&bench, &id, 0)["facts"]["tools"].as_array().map(Vec::len);
        (tools == Some(2)).then_some(())
    });
    assert_eq!(is_later(&bench, &id, 800, "working")["detail"], "other");
    is_later(&bench, &id, 1_000, "stale?");
    std::fs::write(other_go, "").unwrap();
    ends(&terminal, &bench, &id, "DONE-2");

    bench.api.next([Answer::tool("AskUserQuestion", &question), Answer::text("DONE-3")]);
    terminal.say("ask me");
    terminal.wait_for_menu("Aaa");
    let waiting = comes_to(&bench, &id, "waiting", "waiting");
    assert_eq!(waiting["detail"], "Which one?");
    is_later(&bench, &id, 50_000, "waiting");
    terminal.key(ENTER);
    ends(&terminal, &bench, &id, "DONE-3");

    bench.api.next([Answer::tool("Bash", &cut)]);
    terminal.say("interrupted");
    comes_to(&bench, &id, "working", "tool:Bash");
    terminal.key(ESCAPE);
    comes_to(&bench, &id, "idle", "idle");
    is_later(&bench, &id, 50_000, "idle");

    bench.api.next([Answer::tool("Bash", &background), Answer::text("DONE-4")]);
    terminal.say("a server");
    terminal.wait_for("DONE-4");
    let running = comes_to(&bench, &id, "background", "background");
    assert_eq!(running["detail"], "the server");
    assert!(running["facts"]["tools"].as_array().unwrap().is_empty(), "nothing is left of the interrupt");

    terminal.say("/clear");
    assert_eq!(comes_to(&bench, &id, "completed", "ended")["detail"], "clear");
    let next = wait("the session after /clear", LONG, || Some(session_id(&bench)).filter(|next| *next != id));
    comes_to(&bench, &next, "idle", "starting");
}

#[test]
fn what_is_granted_works_and_what_was_killed_is_dead_until_it_is_resumed() {
    let Some(bench) = Bench::open() else { return };
    let bench = plugged_without_module(bench.env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"));
    let (asked, go) = until(&bench, "asked", 120_000);
    let held = Gate::default();
    let mut terminal = session(&bench, &["--permission-mode", "default", "--allowedTools", "Agent"]);
    let id = session_id(&bench);

    bench.api.next([Answer::tool("Bash", &asked), Answer::text("DONE-1")]);
    terminal.say("may I");
    terminal.wait_for_menu("Yes");
    let waiting = comes_to(&bench, &id, "waiting", "waiting");
    assert_eq!(waiting["detail"], "permission: Bash: asked");
    is_later(&bench, &id, 50_000, "waiting");
    terminal.key(ENTER);
    let granted = comes_to(&bench, &id, "working", "tool:Bash");
    assert_eq!(granted["facts"]["client"]["status"], "busy");
    is_later(&bench, &id, 170, "working");
    std::fs::write(go, "").unwrap();
    ends(&terminal, &bench, &id, "DONE-1");

    // A subagent thinks while its parent waits for it; nobody watches that stream.
    let gate = held.clone();
    bench.api.script(move |request| {
        (request.kind == Kind::Subagent).then(|| Answer::text("SUB DONE").behind(&gate))
    });
    let agent = json!({ "description": "looks", "prompt": "look", "subagent_type": "general-purpose" });
    bench.api.next([Answer::tool("Agent", &agent), Answer::text("DONE-2")]);
    terminal.say("delegate");
    wait("the subagent", LONG, || {
        let now = find(&bench, &id, 0);
        (now["facts"]["subagents"].as_array()?.len() == 1).then_some(())
    });
    is_later(&bench, &id, 800, "working");
    assert_eq!(is_later(&bench, &id, 1_000, "stale?")["suspected"], true);
    held.open();
    ends(&terminal, &bench, &id, "DONE-2");
    assert_eq!(find(&bench, &id, 0)["facts"]["subagents"], json!([]));

    let never = Gate::default();
    bench.api.next([Answer::text("NEVER").behind(&never)]);
    terminal.say("killed in this");
    let working = comes_to(&bench, &id, "working", "thinking");
    // Without the module a long thought and a hung request look the same.
    is_later(&bench, &id, 800, "working");
    assert_eq!(is_later(&bench, &id, 1_000, "stale?")["suspected"], true);
    kill_process(terminal.pid().unwrap(), Signal::KILL).unwrap();
    drop(terminal);
    let dead = comes_to(&bench, &id, "dead", "thinking");
    assert_eq!((&dead["pid"], &dead["facts"]["process_runs"]), (&working["pid"], &json!(false)));
    never.open();

    // Both ways to go on: the session itself, and a copy of it.
    let resumed = session(&bench, &["--resume", &id]);
    let alive = comes_to(&bench, &id, "idle", "");
    assert_ne!(alive["pid"], dead["pid"]);
    resumed.hang_up();
    assert_eq!(comes_to(&bench, &id, "completed", "ended")["detail"], "other");
    let _fork = session(&bench, &["--resume", &id, "--fork-session"]);
    let fork = wait("the fork", LONG, || {
        sessions(&bench, 0).into_iter().find(|one| one["verdict"] == "idle" && one["session"] != id)
    });
    assert_eq!(find(&bench, &id, 0)["verdict"], "completed", "the fork is not it: {fork:#}");
}

/// Starts a background session, which waits for its first answer behind a gate: its id and the gate.
#[track_caller]
fn in_background(bench: &Bench, prompt: &str) -> (String, Gate) {
    let held = Gate::default();
    bench.api.next([Answer::text("HELD").behind(&held)]);
    let out = bench.run(&bench.command_line(&["--bg", prompt]), &[], b"");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (session_id(bench), held)
}

/// A command of the client for a background session.
#[track_caller]
fn tell(bench: &Bench, verb: &str, id: &str) {
    // Without the arguments of a session.
    let client = bench.command_line(&[]).remove(0);
    let out = bench.run(&[client, verb.to_owned(), id[..8].to_owned()], &[], b"");
    assert!(out.status.success(), "{verb}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Puts into the past what the supervisor goes by: it stops who has rested for an hour, and looks once a minute.
fn rest_for_hours(bench: &Bench, id: &str) {
    let path = bench.config().join("jobs").join(&id[..8]).join("state.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    state["updatedAt"] = json!(::longhaul::base::span::stamp(::longhaul::host::clock::now_ms() - 36_000_000));
    write_json(&path, &state);
}

#[test]
fn a_background_session_that_its_supervisor_stops_at_rest_is_parked() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let (id, held) = in_background(&bench, "do one thing");
    held.open();
    bench.api.wait_for(1, LONG);
    let idle = comes_to(&bench, &id, "idle", "idle");
    assert_eq!(idle["kind"], "bg");
    let minutes = 5 * LONG;
    let parked = wait("the supervisor to stop it", minutes, || {
        let now = find(&bench, &id, 0);
        match now["verdict"].as_str().unwrap() {
            "parked" => Some(now),
            "idle" => {
                // The session writes there too.
                rest_for_hours(&bench, &id);
                std::thread::sleep(std::time::Duration::from_secs(1));
                None
            }
            other => panic!("{other}: {now:#}"),
        }
    });
    assert_eq!((&parked["phase"], &parked["facts"]["process_runs"]), (&json!("idle"), &json!(false)));
    is_later(&bench, &id, 50_000, "parked");
    longhaul(&bench, &["sessions", "--all", "--check"]);

    tell(&bench, "respawn", &id);
    let back = comes_to(&bench, &id, "idle", "");
    assert_ne!(back["pid"], parked["pid"]);
    wait("its own beat", LONG, || {
        (find(&bench, &id, 0)["facts"]["beat"]["phase"] == "starting").then_some(())
    });
}

#[test]
fn a_background_session_that_is_killed_comes_back_and_was_never_dead() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let (id, held) = in_background(&bench, "go on by yourself");
    let working = comes_to(&bench, &id, "working", "thinking");
    assert_eq!(working["kind"], "bg");
    // The supervisor resumes one whose transcript has begun.
    wait("a row", LONG, || bench.transcript(None).iter().any(|row| row["type"] == "user").then_some(()));
    killed_comes_back(&bench, &working);
    held.open();
    comes_to(&bench, &id, "idle", "idle");
    tell(&bench, "stop", &id);
    comes_to(&bench, &id, "completed", "ended");
}

#[test]
fn a_background_session_that_is_killed_before_it_has_begun_comes_back_too() {
    let Some(bench) = open() else { return };
    let bench = plugged(bench);
    let (id, held) = in_background(&bench, "go on by yourself");
    // The supervisor begins it anew, under the same id.
    let first = wait("its first beat", LONG, || {
        Some(find(&bench, &id, 0)).filter(|now| now["facts"]["beat"].is_object())
    });
    killed_comes_back(&bench, &first);
    comes_to(&bench, &id, "working", "thinking");
    held.open();
    comes_to(&bench, &id, "idle", "idle");
}

/// Kills a background session, and waits until its supervisor has started it again: after about 12 s.
#[track_caller]
fn killed_comes_back(bench: &Bench, before: &Value) {
    let pid = i32::try_from(before["pid"].as_i64().unwrap()).unwrap();
    kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let back = wait("the supervisor to start it again", 2 * LONG, || {
        let now = find(bench, before["session"].as_str().unwrap(), 0);
        assert_ne!(now["verdict"], "dead", "{now:#}");
        now["facts"]["restarted"].as_i64().map(|_| now)
    });
    assert_ne!(back["pid"], before["pid"]);
}
