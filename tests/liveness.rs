//! Sequences of events through the built hook, and what `longhaul sessions` says of them at a later moment.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::sandbox::{SESSION, Said, Sandbox, finish};

mod harm;

/// A person's machine with sessions on it, and a clock that the test turns.
pub struct Fleet {
    pub sandbox: Sandbox,
    /// The moment that all others are counted from, epoch ms. About now: files are stamped by the real clock.
    began: i64,
    clients: Vec<Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for client in &mut self.clients {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

impl Fleet {
    pub fn new() -> Self {
        Self { sandbox: Sandbox::new(), began: longhaul::host::clock::now_ms(), clients: Vec::new() }
    }

    /// A process that stands in for a client.
    pub fn client(&mut self) -> u32 {
        let client = Command::new("sleep").arg("600").spawn().unwrap();
        self.clients.push(client);
        self.clients.last().unwrap().id()
    }

    pub fn kill(&mut self, pid: u32) {
        let at = self.clients.iter().position(|client| client.id() == pid).unwrap();
        let mut client = self.clients.remove(at);
        client.kill().unwrap();
        client.wait().unwrap();
    }

    /// A program as it runs so many seconds after the beginning.
    pub fn command(&self, program: &str, at: i64) -> Command {
        let mut command = self.sandbox.command(program);
        let now = self.began + at * 1000;
        command.env("LONGHAUL_TEST_NOW_MS", now.to_string()).env("LONGHAUL_TEST_MONO_MS", now.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// An event of a session in a client's process; it must be answered by nothing.
    #[track_caller]
    pub fn event(&self, client: u32, session: &str, at: i64, name: &str, more: &Value) {
        let mut command = self.command("longhaul-hook", at);
        command.env("CLAUDE_PID", client.to_string());
        self.send(command, session, name, more);
    }

    #[track_caller]
    pub fn send(&self, command: Command, session: &str, name: &str, more: &Value) {
        let said = finish(self.start(command, session, name, more));
        assert_eq!((said.code, &*said.stdout, &*said.stderr), (0, "", ""), "{name}: {said:?}");
    }

    pub fn start(&self, mut command: Command, session: &str, name: &str, more: &Value) -> Child {
        let mut event = self.sandbox.event(name, more);
        event["session_id"] = json!(session);
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        child
    }

    /// What the client's own file says.
    pub fn says(&self, client: u32, session: &str, status: &str, at: i64) {
        let dir = self.sandbox.config().join("sessions");
        fs_err::create_dir_all(&dir).unwrap();
        let now = self.began + at * 1000;
        let start = longhaul::host::process::find(client).and_then(|process| process.start);
        let file = json!({ "pid": client, "sessionId": session, "cwd": self.sandbox.work(), "procStart": start,
            "startedAt": self.began - 1000, "kind": "interactive", "entrypoint": "cli", "name": "work-da",
            "status": status, "updatedAt": now, "statusUpdatedAt": now });
        fs_err::write(dir.join(format!("{client}.json")), file.to_string()).unwrap();
    }

    pub fn longhaul(&self, at: i64, args: &[&str]) -> Said {
        finish(self.command("longhaul", at).arg("sessions").args(args).stdin(Stdio::null()).spawn().unwrap())
    }

    #[track_caller]
    pub fn sessions(&self, at: i64, args: &[&str]) -> Vec<Value> {
        let said = self.longhaul(at, &[&["--json"], args].concat());
        assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }

    /// The only session.
    #[track_caller]
    pub fn only(&self, at: i64) -> Value {
        let mut all = self.sessions(at, &["--all"]);
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    #[track_caller]
    pub fn is(&self, at: i64, verdict: &str) -> Value {
        let session = self.only(at);
        assert_eq!(session["verdict"], verdict, "at {at}: {session:#}");
        session
    }

    /// Where beats lie.
    pub fn beats(&self) -> std::path::PathBuf {
        let record = fs_err::read_to_string(self.sandbox.state().join("run-dir")).unwrap();
        self.sandbox.state().join(record.trim_end()).join("beats")
    }

    pub fn main_beat(&self) -> Value {
        serde_json::from_slice(&fs_err::read(self.beats().join(SESSION).join("main")).unwrap()).unwrap()
    }

    pub fn rewrite_main(&self, change: impl Fn(&mut Value)) {
        let mut beat = self.main_beat();
        change(&mut beat);
        fs_err::write(self.beats().join(SESSION).join("main"), beat.to_string()).unwrap();
    }
}

pub fn prompt(id: &str) -> Value {
    json!({ "prompt": "x", "prompt_id": id })
}

pub fn call(id: &str, tool: &str, input: &Value) -> Value {
    json!({ "prompt_id": "p", "tool_name": tool, "tool_use_id": id, "tool_input": input })
}

pub fn batch(ids: &[&str]) -> Value {
    let calls: Vec<_> = ids.iter().map(|id| json!({ "tool_use_id": id })).collect();
    json!({ "prompt_id": "p", "tool_calls": calls })
}

/// A session in the middle of its first turn.
fn working() -> (Fleet, u32) {
    let mut fleet = Fleet::new();
    let client = fleet.client();
    fleet.event(client, SESSION, 0, "SessionStart", &json!({ "source": "startup" }));
    fleet.event(client, SESSION, 1, "UserPromptSubmit", &prompt("p"));
    (fleet, client)
}

#[test]
fn a_turn_from_its_start_to_its_end() {
    let (fleet, client) = working();
    let thinking = fleet.is(10, "working");
    assert_eq!((&thinking["phase"], &thinking["silence_s"]), (&json!("thinking"), &json!(9)));
    assert_eq!(thinking["kind"], "interactive");
    fleet.event(
        client,
        SESSION,
        20,
        "PreToolUse",
        &call("a", "Bash", &json!({ "command": "make", "timeout": 600_000 })),
    );
    // zylos-ai/zylos-core/issues/259: a long tool was called stuck.
    let tool = fleet.is(380, "working");
    assert_eq!((&tool["phase"], &tool["detail"]), (&json!("tool:Bash"), &json!("make")));
    assert_eq!(tool["facts"]["tools"][0]["allowed_s"], 600);
    // openclaw/openclaw/issues/96168: 30 minutes past its timeout.
    fleet.is(20 + 661, "stale?");
    fleet.is(20 + 2_400, "dead?");
    fleet.event(client, SESSION, 30, "PostToolBatch", &batch(&["a"]));
    assert_eq!(fleet.is(40, "working")["phase"], "thinking");
    fleet.event(client, SESSION, 50, "Stop", &json!({ "prompt_id": "p", "background_tasks": [] }));
    fleet.is(100_000, "idle");
    fleet.event(client, SESSION, 60, "SessionEnd", &json!({ "reason": "prompt_input_exit" }));
    let ended = fleet.is(70, "completed");
    assert_eq!((&ended["phase"], &ended["detail"]), (&json!("ended"), &json!("prompt_input_exit")));
    assert_eq!(fleet.sessions(70, &[]), [] as [Value; 0], "not among those that are open");
}

#[test]
fn a_request_that_is_never_answered_is_suspected() {
    let (fleet, client) = working();
    fleet.is(900, "working");
    let stale = fleet.is(903, "stale?");
    assert_eq!((&stale["suspected"], &stale["facts"]["stream"]), (&json!(true), &Value::Null));
    assert_eq!(fleet.is(1503, "dead?")["suspected"], true);
    // With the mod's stamp of this very process it is known early.
    fleet.says(client, SESSION, "busy", 1);
    fs_err::write(fleet.sandbox.state().join("gauge").join(format!("{SESSION}.stream")), "0").unwrap();
    let stale = fleet.is(303, "stale?");
    assert_eq!((&stale["suspected"], &stale["facts"]["stream"]), (&json!(false), &json!({ "ago_s": null })));
    let moved = fleet.began + 600_000;
    fs_err::write(fleet.sandbox.state().join("gauge").join(format!("{SESSION}.stream")), moved.to_string())
        .unwrap();
    let slow = fleet.is(620, "working");
    assert_eq!(slow["silence_s"], 20);
}

#[test]
fn of_two_tools_the_longer_counts_when_the_first_is_done() {
    let (fleet, client) = working();
    for (id, timeout) in [("a", 5_000), ("b", 1_200_000)] {
        let input = json!({ "command": id, "timeout": timeout });
        fleet.event(client, SESSION, 10, "PreToolUse", &call(id, "Bash", &input));
    }
    assert_eq!(fleet.is(1_200, "working")["detail"], "b");
    assert_eq!(fleet.only(20)["facts"]["tools"].as_array().unwrap().len(), 2);
    fleet.is(1_300, "stale?");
    fleet.event(client, SESSION, 1_000, "PostToolBatch", &batch(&["a", "b"]));
    assert_eq!(fleet.only(1_001)["facts"]["tools"], json!([]));
}

#[test]
fn a_subagent_beats_for_itself() {
    let (fleet, client) = working();
    fleet.event(client, SESSION, 10, "PreToolUse", &call("a", "Agent", &json!({ "description": "looks" })));
    let agent = |more: &Value| {
        let mut event = json!({ "agent_id": "x1", "agent_type": "general-purpose", "prompt_id": "p" });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    fleet.event(client, SESSION, 11, "SubagentStart", &agent(&json!({})));
    fleet.is(900, "working");
    let bash = call("b", "Bash", &json!({ "command": "make", "timeout": 1_800_000 }));
    fleet.event(client, SESSION, 900, "PreToolUse", &agent(&bash));
    assert_eq!(fleet.main_beat()["phase"], "tool:Agent", "the session's own beat is its own");
    let busy = fleet.is(2_600, "working");
    assert_eq!(busy["facts"]["subagents"][0]["phase"], "tool:Bash");
    // One comes with every compaction.
    fleet.event(client, SESSION, 2_610, "SubagentStop", &json!({ "agent_id": "x1", "agent_type": "" }));
    assert_eq!(fleet.only(2_611)["facts"]["subagents"].as_array().unwrap().len(), 1);
    fleet.event(client, SESSION, 2_620, "PostToolBatch", &agent(&batch(&["b"])));
    fleet.event(client, SESSION, 2_621, "SubagentStop", &agent(&json!({})));
    let done = fleet.only(2_622);
    assert_eq!(
        (&done["facts"]["subagents"], done["facts"]["tools"].as_array().unwrap().len()),
        (&json!([]), 1)
    );
}

// CC#77804: a question was shown as busy. Agent-orchestrator#3738: a late notification stuck.
#[test]
fn what_is_asked_waits_until_it_is_answered() {
    let (fleet, client) = working();
    let question = json!({ "questions": [{ "question": "Which one?" }] });
    fleet.event(client, SESSION, 10, "PreToolUse", &call("q", "AskUserQuestion", &question));
    fleet.event(client, SESSION, 10, "PermissionRequest", &call("", "AskUserQuestion", &question));
    let notice =
        json!({ "notification_type": "permission_prompt", "message": "Claude needs your permission" });
    fleet.event(client, SESSION, 16, "Notification", &notice);
    let waiting = fleet.is(5_000, "waiting");
    assert_eq!(waiting["detail"], "Which one?");
    assert_eq!(waiting["since"], fleet.began.div_euclid(1000) + 10, "since it was asked");
    fleet.event(client, SESSION, 5_010, "PostToolBatch", &batch(&["q"]));
    fleet.is(5_011, "working");
    fleet.event(client, SESSION, 5_020, "Stop", &json!({ "prompt_id": "p" }));
    fleet.event(client, SESSION, 5_021, "Notification", &notice);
    fleet.is(5_030, "idle");
}

#[test]
fn a_permission_that_is_granted_starts_the_tools_time() {
    let (fleet, client) = working();
    let write = json!({ "file_path": "/w/out.txt" });
    fleet.event(client, SESSION, 10, "PreToolUse", &call("w", "Write", &write));
    fleet.event(client, SESSION, 10, "PermissionRequest", &call("", "Write", &write));
    fleet.says(client, SESSION, "waiting", 10);
    let waiting = fleet.is(4_000, "waiting");
    assert_eq!(waiting["detail"], "permission: Write: /w/out.txt");
    fleet.says(client, SESSION, "busy", 4_000);
    fleet.is(4_100, "working");
    fleet.is(4_302, "stale?");
}

// agent-of-empires/agent-of-empires/pull/2909: an interrupt fires no event.
#[test]
fn an_interrupt_leaves_nothing_that_the_next_turn_could_be_judged_by() {
    let (fleet, client) = working();
    fleet.event(client, SESSION, 10, "PreToolUse", &call("a", "Bash", &json!({ "timeout": 1_000 })));
    fleet.says(client, SESSION, "shell", 20);
    fleet.is(5_000, "idle");
    fleet.says(client, SESSION, "busy", 5_000);
    // Typed into the running turn a prompt takes no call away; the next turn's takes all.
    fleet.event(client, SESSION, 15, "UserPromptSubmit", &prompt("p"));
    assert_eq!(fleet.only(16)["facts"]["tools"].as_array().unwrap().len(), 1);
    fleet.event(client, SESSION, 5_001, "UserPromptSubmit", &prompt("q"));
    let next = fleet.is(5_100, "working");
    assert_eq!((&next["phase"], &next["facts"]["tools"]), (&json!("thinking"), &json!([])));
}

#[test]
fn only_other_tasks_than_ours_run_on() {
    let (fleet, client) = working();
    let ours =
        json!({ "id": "m", "type": "monitor", "status": "running", "command": "exec sh x longhaul-watch" });
    let shell = json!({ "id": "b", "type": "shell", "status": "running", "description": "the build" });
    let stop = |tasks: Value| json!({ "prompt_id": "p", "background_tasks": tasks });
    fleet.says(client, SESSION, "shell", 10);
    fleet.event(client, SESSION, 10, "Stop", &stop(json!([ours])));
    fleet.is(20, "idle");
    fleet.event(client, SESSION, 30, "Stop", &stop(json!([ours, shell])));
    assert_eq!(fleet.is(9_000, "background")["detail"], "the build");
    fleet.event(client, SESSION, 9_100, "StopFailure", &json!({ "error": "rate_limit" }));
    assert_eq!(fleet.is(9_200, "idle")["phase"], "failed:rate_limit");
}

// can1357/oh-my-pi/issues/4434: it was counted as another session.
#[test]
fn a_compaction_is_not_a_new_session() {
    let (fleet, client) = working();
    fleet.event(client, SESSION, 10, "PreCompact", &json!({ "trigger": "auto" }));
    assert_eq!(fleet.is(20, "working")["phase"], "compacting");
    let mut command = fleet.command("longhaul-hook", 30);
    command.env("CLAUDE_PID", client.to_string());
    finish(fleet.start(command, SESSION, "SessionStart", &json!({ "source": "compact" })));
    assert_eq!(fleet.is(40, "working")["phase"], "thinking");
    fleet.event(client, SESSION, 50, "PreCompact", &json!({ "trigger": "manual" }));
    fleet.event(client, SESSION, 60, "PostCompact", &json!({ "trigger": "manual" }));
    fleet.is(9_000, "idle");
}

// fusedio/fused-render/pull/892, pmcfadin/cqlite/issues/3284: a process that is gone was not noticed.
#[test]
fn a_client_that_was_killed_is_dead_at_once() {
    let (mut fleet, client) = working();
    fleet.says(client, SESSION, "busy", 1);
    fleet.kill(client);
    let dead = fleet.is(20, "dead");
    assert_eq!((&dead["facts"]["process_runs"], &dead["pid"]), (&json!(false), &json!(client)));
    assert_eq!(dead["detail"], "the process is gone; it was thinking");
    // Resumed in another terminal it is one session, and lives.
    let other = fleet.client();
    fleet.event(other, SESSION, 30, "SessionStart", &json!({ "source": "resume" }));
    fleet.event(other, SESSION, 31, "UserPromptSubmit", &prompt("q"));
    assert_eq!(fleet.is(40, "working")["pid"], other);
}

// EdamAme-x/pentect#1299 and #1301: a number that is used again is another process.
#[cfg(target_os = "linux")]
#[test]
fn a_number_that_is_anothers_now_and_another_boot_are_dead() {
    let (fleet, _client) = working();
    fleet.is(20, "working");
    fleet.rewrite_main(|beat| beat["proc_start"] = json!("1"));
    fleet.is(20, "dead");
    let (fleet, _client) = working();
    fleet.rewrite_main(|beat| beat["boot"] = json!("another"));
    fleet.is(20, "dead");
    let (fleet, _client) = working();
    fleet.rewrite_main(|beat| beat["pid_space"] = json!("pid:[1]"));
    let elsewhere = fleet.is(20, "working");
    assert_eq!(elsewhere["facts"]["process_runs"], Value::Null, "in another container");
}

#[test]
fn a_machine_that_slept_or_a_clock_that_was_set_is_no_silence() {
    let (fleet, client) = working();
    fleet.says(client, SESSION, "busy", 1);
    for jump in [8 * 3_600_000, -8 * 3_600_000] {
        let mut command = fleet.command("longhaul", 20);
        command.env("LONGHAUL_TEST_NOW_MS", (fleet.began + 20_000 + jump).to_string());
        let said = finish(command.args(["sessions", "--json"]).spawn().unwrap());
        let all: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(all[0]["verdict"], "working", "{jump}: {all:#}");
        // Beats are stamped in whole seconds.
        let silence = all[0]["silence_s"].as_i64().unwrap();
        assert!((18..=19).contains(&silence), "{jump}: {all:#}");
    }
}

#[test]
fn an_end_stands_against_events_that_were_on_their_way() {
    let (fleet, client) = working();
    for round in 0..20 {
        let at = 100 + round * 10;
        fleet.event(client, SESSION, at, "SessionStart", &json!({ "source": "startup" }));
        let events = [
            ("Stop", json!({})),
            ("SessionEnd", json!({ "reason": "other" })),
            ("PostToolBatch", batch(&["a"])),
            ("UserPromptSubmit", prompt("z")),
            ("PreToolUse", call("a", "Bash", &json!({}))),
        ];
        let start = |(name, more): &(&str, Value)| {
            let mut command = fleet.command("longhaul-hook", at + 1);
            command.env("CLAUDE_PID", client.to_string());
            fleet.start(command, SESSION, name, more)
        };
        let children: Vec<_> = events.iter().map(start).collect();
        for child in children {
            assert_eq!(finish(child).code, 0);
        }
        fleet.is(at + 5, "completed");
        fleet.event(client, SESSION, at + 6, "Stop", &json!({}));
        fleet.is(at + 7, "completed");
    }
}

#[test]
fn an_end_in_one_terminal_does_not_end_what_another_goes_on_with() {
    let (mut fleet, first) = working();
    let second = fleet.client();
    fleet.event(second, SESSION, 10, "SessionStart", &json!({ "source": "resume" }));
    fleet.event(second, SESSION, 11, "UserPromptSubmit", &prompt("q"));
    fleet.event(first, SESSION, 12, "SessionEnd", &json!({ "reason": "other" }));
    assert_eq!(fleet.is(20, "working")["pid"], second);
    fleet.event(second, SESSION, 30, "SessionEnd", &json!({ "reason": "other" }));
    fleet.is(40, "completed");
    // CC#28692: /clear without an event; the client's file alone says so.
    let (fleet, client) = working();
    fleet.says(client, "another", "idle", 5);
    let all = fleet.sessions(20, &["--all"]);
    let verdicts: Vec<_> =
        all.iter().map(|one| (one["session"].as_str().unwrap(), &one["verdict"])).collect();
    assert!(verdicts.contains(&(SESSION, &json!("completed"))), "{verdicts:?}");
    assert!(verdicts.contains(&("another", &json!("idle"))), "{verdicts:?}");
}

// CC#79789, CC#81868: a session that was killed and brought back in another process is the same one, and was restarted.
#[test]
fn a_background_session_is_given_time_to_come_back() {
    let mut fleet = Fleet::new();
    let client = fleet.client();
    let job = fleet.sandbox.config().join("jobs/j1");
    fs_err::create_dir_all(&job).unwrap();
    let state = |state: &Value| fs_err::write(job.join("state.json"), state.to_string()).unwrap();
    let event = |fleet: &Fleet, client: u32, at: i64, name: &str, more: &Value| {
        let mut command = fleet.command("longhaul-hook", at);
        command.env("CLAUDE_PID", client.to_string()).env("CLAUDE_JOB_DIR", &job);
        fleet.send(command, SESSION, name, more);
    };
    event(&fleet, client, 0, "SessionStart", &json!({ "source": "startup" }));
    event(&fleet, client, 1, "UserPromptSubmit", &prompt("p"));
    state(&json!({ "state": "working", "tempo": "blocked", "needs": "answer: Which?" }));
    let waiting = fleet.is(5, "waiting");
    assert_eq!((&waiting["kind"], &waiting["detail"]), (&json!("bg"), &json!("answer: Which?")));
    let at = |at: i64| longhaul::base::span::stamp(fleet.began + at * 1000);
    state(&json!({ "state": "crashed", "updatedAt": at(100) }));
    fleet.kill(client);
    fleet.is(110, "working");
    fleet.is(140, "dead");
    let next = fleet.client();
    event(&fleet, next, 115, "SessionStart", &json!({ "source": "resume" }));
    assert_eq!(fleet.main_beat()["restarted"], fleet.began.div_euclid(1000) + 115);
    event(&fleet, next, 116, "Stop", &json!({}));
    state(&json!({ "state": "working", "tempo": "idle" }));
    fleet.is(120, "idle");
    fleet.kill(next);
    fleet.is(4_000, "parked");
}

/// The supervisor begins a session anew that died before its transcript had a row; the notice of a monitor's end can
/// then come before the start (2.1.332).
#[test]
fn whichever_event_comes_first_shows_that_a_background_session_was_started_again() {
    let mut fleet = Fleet::new();
    let event = |fleet: &Fleet, client: u32, at: i64, name: &str, more: &Value| {
        let mut command = fleet.command("longhaul-hook", at);
        command.env("CLAUDE_PID", client.to_string()).env("CLAUDE_JOB_DIR", fleet.sandbox.work().join("j1"));
        fleet.send(command, SESSION, name, more);
    };
    let startup = json!({ "source": "startup" });
    let first = fleet.client();
    event(&fleet, first, 0, "UserPromptSubmit", &prompt("p"));
    event(&fleet, first, 1, "SessionStart", &startup);
    assert_eq!(fleet.main_beat()["restarted"], Value::Null);
    fleet.kill(first);
    let next = fleet.client();
    let then = fleet.began.div_euclid(1000) + 12;
    for (at, name, more) in [
        (12, "UserPromptSubmit", prompt("n")),
        (13, "SessionStart", startup),
        (14, "UserPromptSubmit", prompt("q")),
    ] {
        event(&fleet, next, at, name, &more);
        assert_eq!(fleet.main_beat()["restarted"], then, "{name}");
    }
    // Whoever goes on with it in a terminal is nobody's restart.
    fleet.kill(next);
    let person = fleet.client();
    fleet.event(person, SESSION, 60, "UserPromptSubmit", &prompt("r"));
    assert_eq!(fleet.main_beat()["restarted"], Value::Null);
}

#[test]
fn a_session_that_reads_its_parent_beats_and_says_nothing() {
    let mut fleet = Fleet::new();
    let client = fleet.client();
    fleet.event(client, SESSION, 0, "SessionStart", &json!({ "source": "startup" }));
    let me = longhaul::host::process::find(std::process::id()).unwrap();
    let reading = format!("{} {}", me.pid, me.start.unwrap_or_default());
    fs_err::write(fleet.sandbox.state().join("gauge").join(format!("{SESSION}.reading")), reading).unwrap();
    fleet.event(client, SESSION, 1, "UserPromptSubmit", &prompt("p"));
    fleet.is(5, "working");
}

#[test]
fn a_check_tells_by_its_exit_code() {
    let mut fleet = Fleet::new();
    assert_eq!(fleet.longhaul(0, &["--check"]).code, 0, "nobody has run anything");
    let client = fleet.client();
    fleet.says(client, SESSION, "busy", 0);
    let said = fleet.longhaul(0, &["--check"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.stderr.contains("no session has left a beat yet"), "{said:?}");
    assert_eq!(fleet.longhaul(0, &[]).code, 0, "a list can be shown all the same");
    fleet.event(client, SESSION, 0, "SessionStart", &json!({ "source": "startup" }));
    fleet.event(client, SESSION, 1, "UserPromptSubmit", &prompt("p"));
    assert_eq!(fleet.longhaul(10, &["--check"]).code, 0);
    assert_eq!(fleet.longhaul(10, &["--check", "--stale", "5"]).code, 1);
    assert_eq!(fleet.longhaul(10, &["--stale", "5"]).code, 0, "a list is no check");
    assert_eq!(fleet.longhaul(10, &["--check", "--stale", "5", "--project", "/nowhere"]).code, 0);
    assert_eq!(fleet.longhaul(10, &["--check", "--stale", "soon"]).code, 2);
    assert_eq!(fleet.longhaul(903, &["--check"]).code, 1);
    let config = fleet.sandbox.state().join("config.json");
    fs_err::write(&config, r#"{"liveness": {"stale": 5, "stale_thinking": 6, "dead": 10}}"#).unwrap();
    fleet.is(8, "stale?");
    fleet.is(13, "dead?");
    fs_err::write(&config, "{\"liveness\":\n{\"stale\": 0}}").unwrap();
    let said = fleet.longhaul(10, &["--check"]);
    assert!(
        said.code == 3 && said.stderr.contains("config.json") && said.stderr.contains("line 2"),
        "{said:?}"
    );
    fs_err::remove_file(config).unwrap();
    fs_err::write(fleet.sandbox.state().join("run-dir"), "nowhere").unwrap();
    let said = fleet.longhaul(10, &["--check"]);
    assert!(said.code == 3 && said.stderr.contains("run-dir"), "{said:?}");
}

#[test]
fn a_timer_with_no_environment_finds_the_same() {
    let mut fleet = Fleet::new();
    let runtime = fleet.sandbox.root.path().join("runtime");
    fs_err::create_dir(&runtime).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs_err::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let client = fleet.client();
    let event = |at: i64, name: &str, more: &Value| {
        let mut command = fleet.command("longhaul-hook", at);
        command.env("CLAUDE_PID", client.to_string()).env("XDG_RUNTIME_DIR", &runtime);
        fleet.send(command, SESSION, name, more);
    };
    event(0, "SessionStart", &json!({ "source": "startup" }));
    event(1, "UserPromptSubmit", &prompt("p"));
    assert!(fleet.beats().starts_with(&runtime));
    let mut bare = fleet.command("longhaul", 2_000);
    bare.env_remove("TMPDIR").args(["sessions", "--check", "--json"]);
    let mut full = fleet.command("longhaul", 2_000);
    full.env("XDG_RUNTIME_DIR", &runtime).args(["sessions", "--check", "--json"]);
    let (bare, full) = (finish(bare.spawn().unwrap()), finish(full.spawn().unwrap()));
    assert_eq!((bare.code, &bare.stdout), (1, &full.stdout));
    assert!(bare.stdout.contains("dead?"), "{bare:?}");
}

#[test]
fn the_list_begins_with_the_longest_silence() {
    let mut fleet = Fleet::new();
    let clients = [fleet.client(), fleet.client(), fleet.client()];
    for (at, client) in clients.into_iter().enumerate() {
        let at = i64::try_from(at).unwrap();
        let id = format!("s{at}");
        fleet.event(client, &id, at, "SessionStart", &json!({ "source": "startup" }));
        fleet.event(client, &id, 2_000 - at * 1_000, "UserPromptSubmit", &prompt("p"));
        fleet.says(client, &id, "busy", 0);
    }
    let said = fleet.longhaul(2_000, &[]);
    assert_eq!(said.code, 0, "{said:?}");
    let lines: Vec<_> = said.stdout.lines().collect();
    let begins = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let wanted = ["dead? 2000s work-da", "stale? 1000s work-da", "working 0s work-da"];
    assert_eq!(lines.iter().map(|line| begins(line)).collect::<Vec<_>>(), wanted, "{said:?}");
    assert!(lines[0].contains("(thinking, suspected)") && lines[0].contains("  work  "), "{}", lines[0]);
    let project = fleet.sandbox.work();
    assert_eq!(fleet.sessions(2_000, &["--project", project.to_str().unwrap()]).len(), 3);
    assert_eq!(fleet.sessions(2_000, &["--project", "/nowhere"]).len(), 0);
}
