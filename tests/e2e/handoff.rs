//! Handoffs with the real client as the child, on made-up parents: the proof, the child's reach, failures.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Answer, Kind};
use crate::bench::{Bench, LONG, wait};
use crate::longhaul::{PROGRAMS, plugged};
use crate::reader::{self, Manner};
use crate::saga;

/// A bench with a made-up session in it, which was worked on there.
fn open() -> Option<Bench> {
    let bench = plugged(Bench::open()?);
    let projects = bench.config().join("projects/-parent");
    std::fs::create_dir_all(&projects).unwrap();
    let path = projects.join(format!("{}.jsonl", saga::SESSION));
    let text = String::from_utf8(saga::everything().bytes()).unwrap();
    std::fs::write(path, text.replace("\"/home/someone/work\"", &json!(bench.work()).to_string())).unwrap();
    Some(bench)
}

pub fn command(bench: &Bench, args: &[&str]) -> Vec<String> {
    let mut line = vec![PROGRAMS[0].1.to_owned(), "handoff".to_owned()];
    line.extend(args.iter().map(|&arg| arg.to_owned()));
    line.push("--json".to_owned());
    assert!(!bench.environment().contains_key("CLAUDE_BIN"));
    line
}

pub fn client(bench: &Bench) -> String {
    bench.command_line(&[])[0].clone()
}

/// `longhaul handoff …`: exit code, what it printed as JSON, and its errors.
pub fn handoff(bench: &Bench, args: &[&str]) -> (i32, Value, String) {
    let out = bench.run(&command(bench, args), &[("CLAUDE_BIN", &client(bench))], b"");
    let value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    (out.status.code().unwrap_or(-1), value, String::from_utf8_lossy(&out.stderr).into_owned())
}

const GO: [&str; 3] = ["--session", saga::SESSION, "--force"];

pub fn reads(bench: &Bench, manner: Manner) {
    bench.api.script(move |request| reader::is_reading(request).then(|| reader::answer(request, manner)));
}

/// The only entry of the registry.
fn entry(bench: &Bench) -> Value {
    let path = bench.config().join("longhaul/chains.json");
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(all["handoffs"].as_array().unwrap().len(), 1, "{all}");
    all["handoffs"][0].clone()
}

fn checks(entry: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let falls = entry["proof"]["shortfalls"].as_array().unwrap().iter();
    falls.map(|fall| (text(&fall["part"]), text(&fall["check"]))).collect()
}

#[test]
fn a_child_that_reads_everything_is_accepted_and_nothing_of_ours_speaks_in_its_turn() {
    let Some(bench) = open() else { return };
    reads(&bench, Manner::Honest);
    let (code, told, errors) = handoff(&bench, &GO);
    assert_eq!(code, 0, "{told} {errors}");
    let entry = &told["handoff"];
    assert_eq!(entry["state"], "accepted");
    assert_eq!((&entry["generation"], &entry["proof"]["turns"]), (&json!(2), &json!(1)));
    let child = entry["child"]["session"].as_str().unwrap();
    let resume = told["resume"].as_str().unwrap();
    assert!(resume.ends_with(&format!("claude --resume {child}")), "{resume}");
    // Its name and its id are those that were chosen.
    let name = entry["name"].as_str().unwrap();
    assert!(name.ends_with(" (cont. 2)"), "{name}");
    let rows = bench.transcript(Some(child));
    assert!(rows.iter().any(|row| row["type"] == "custom-title" && row["customTitle"] == name));
    let requests = bench.api.of(Kind::Main);
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| !request.text().contains("[longhaul]")), "a hook of ours spoke");
    let tools = |request: &crate::api::Request| {
        let tools = request.body["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let usable = ["Read", "DeferredToolPlaceholder", "StructuredOutput"];
    assert!(tools(&requests[0]).iter().all(|tool| usable.contains(&&**tool)), "{:?}", tools(&requests[0]));
    // It is there to go on with, and then ours speak again: nothing is left of the reading.
    bench.api.script(|_| None);
    let went_on = bench.ask("go on", &["--resume", child]);
    assert_eq!(went_on["session_id"], child);
    assert!(bench.api.of(Kind::Main)[2].text().contains("<longhaul-reading>"), "its context is the reading");
    let left = std::fs::read_dir(bench.config().join("longhaul/gauge")).unwrap().flatten();
    assert!(left.into_iter().all(|file| !file.file_name().to_string_lossy().ends_with(".reading")));
}

#[test]
fn a_part_that_is_skipped_is_asked_for_once_more() {
    let Some(bench) = open() else { return };
    reads(&bench, Manner::Skips { always: false });
    let (code, told, errors) = handoff(&bench, &GO);
    assert_eq!(code, 0, "{told} {errors}");
    assert_eq!(
        (&told["handoff"]["state"], &told["handoff"]["proof"]["turns"]),
        (&json!("accepted"), &json!(2))
    );
    let second = bench
        .api
        .of(Kind::Main)
        .into_iter()
        .find(|request| request.text().contains("not complete yet"))
        .unwrap();
    assert!(second.text().contains("05-dropped-context.md (read)"), "{}", second.last_text());
}

#[test]
fn whoever_does_not_read_is_refused_with_part_and_check_and_retry_goes_on_in_the_same_child() {
    let Some(bench) = open() else { return };
    reads(&bench, Manner::Skips { always: true });
    let (code, told, errors) = handoff(&bench, &GO);
    assert_eq!((code, &told["error"]["kind"]), (1, &json!("partial")), "{told} {errors}");
    assert!(errors.contains("05-dropped-context.md (read)"), "{errors}");
    let before = entry(&bench);
    assert_eq!(before["state"], "partial");
    let (id, child) = (before["id"].as_str().unwrap(), before["child"]["session"].clone());
    assert!(checks(&before).iter().all(|(part, _)| part == "05-dropped-context.md"), "{before}");
    reads(&bench, Manner::Honest);
    let (code, told, errors) = handoff(&bench, &["retry", id]);
    assert_eq!(code, 0, "{told} {errors}");
    let after = entry(&bench);
    assert_eq!(
        (&after["state"], &after["child"]["session"], &after["retries"]),
        (&json!("accepted"), &child, &json!(1))
    );
    assert_eq!(after["failure"], Value::Null);
    // And once it is accepted, there is nothing to do.
    let requests = bench.api.requests().len();
    assert_eq!(handoff(&bench, &["retry", id]).0, 0);
    assert_eq!(bench.api.requests().len(), requests);
}

#[test]
fn cheating_is_refused() {
    let Some(bench) = open() else { return };
    for (manner, kind, code) in [
        (Manner::CopiesTheIndex, "partial", 1),
        (Manner::Disorders, "partial", 1),
        (Manner::Prose, "answer", 10),
    ] {
        let _ = std::fs::remove_file(bench.config().join("longhaul/chains.json"));
        reads(&bench, manner);
        let (ended, told, errors) = handoff(&bench, &GO);
        assert_eq!((ended, &told["error"]["kind"]), (code, &json!(kind)), "{manner:?} {told} {errors}");
        let entry = entry(&bench);
        let checks = checks(&entry);
        match manner {
            Manner::CopiesTheIndex => {
                assert!(
                    checks.iter().any(|(_, check)| check == "read")
                        && checks.iter().any(|(_, check)| check == "marks")
                );
                assert!(
                    checks.iter().all(|(_, check)| check != "count"),
                    "the counts themselves are right: {entry}"
                );
            }
            Manner::Disorders => {
                assert!(!checks.is_empty() && checks.iter().all(|(_, check)| check == "marks"), "{entry}");
            }
            _ => assert_eq!(entry["state"], "failed"),
        }
    }
}

/// An MCP server with one tool.
const MCP: &str = r"
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method } = JSON.parse(line)
  const info = { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
  const result = method === 'initialize' ? info : { tools: [{ name: 'touch', inputSchema: { type: 'object' } }] }
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
})
";

/// The way from a directory to a file by the root.
fn back_to(dir: &str, file: &Path) -> String {
    "/..".repeat(dir.matches('/').count()) + file.to_str().unwrap()
}

/// Whatever the person's settings allow, the child reaches its export and nothing else.
#[test]
fn a_child_reads_its_export_and_reaches_nothing_else() {
    let Some(bench) = open() else { return };
    std::fs::write(bench.path("mcp.js"), MCP).unwrap();
    let server = json!({ "type": "stdio", "command": "node", "args": [bench.path("mcp.js")] });
    let allow = ["Read", "Read(//**)", "Bash", "Bash(*)", "Write", "WebFetch", "mcp__x", "mcp__x__touch"];
    let bench = bench
        .user(&json!({ "permissions": { "allow": allow, "defaultMode": "bypassPermissions" }, "disableAllHooks": true }))
        .global(&json!({ "mcpServers": { "x": server } }));
    let secret = bench.path("secret.txt");
    std::fs::write(&secret, "THE-SECRET").unwrap();
    let pwned = bench.path("pwned");
    let mut began = false;
    bench.api.script(move |request| {
        if !reader::is_reading(request) {
            return None;
        }
        if std::mem::replace(&mut began, true) {
            return Some(reader::answer(request, Manner::Honest));
        }
        let dir = reader::directory(request);
        // A link that somebody put there beforehand.
        std::os::unix::fs::symlink(&secret, PathBuf::from(&dir).join("link.md")).unwrap();
        let touch = format!("touch {}", pwned.display());
        let tries = [
            ("Bash", json!({ "command": touch, "description": "x" })),
            ("Write", json!({ "file_path": pwned, "content": "x" })),
            ("WebFetch", json!({ "url": "http://127.0.0.1:1/", "prompt": "x" })),
            ("mcp__x__touch", json!({})),
            ("Read", json!({ "file_path": secret })),
            ("Read", json!({ "file_path": format!("{dir}/link.md") })),
            ("Read", json!({ "file_path": format!("{dir}/../../../../.claude.json") })),
            // The client takes `..` by the text alone, before it asks the hook (2.1.197 to 2.1.332).
            ("Read", json!({ "file_path": format!("{dir}/none/..{}", back_to(&dir, &secret)) })),
            (
                "Read",
                json!({ "file_path": format!("{dir}/01-user-messages.md/..{}", back_to(&dir, &secret)) }),
            ),
            ("Glob", json!({ "pattern": "/**" })),
            ("Agent", json!({ "description": "x", "prompt": "x", "subagent_type": "general-purpose" })),
        ];
        let first = Answer::tool(tries[0].0, &tries[0].1);
        Some(tries[1..].iter().fold(first, |answer, (tool, input)| answer.and_tool(tool, input)))
    });
    let (code, told, errors) = handoff(&bench, &GO);
    assert_eq!(code, 0, "{told} {errors}");
    assert!(!bench.path("pwned").exists());
    let requests = bench.api.of(Kind::Main);
    let blocks = requests[1].messages().iter().filter_map(|message| message["content"].as_array()).flatten();
    let results: Vec<&Value> = blocks.filter(|block| block["type"] == "tool_result").collect();
    assert_eq!(results.len(), 11, "{results:#?}");
    for result in &results {
        assert_eq!(result["is_error"], true, "{result}");
    }
    // By our own hook, not by chance: it names the place that is open.
    assert!(
        results
            .iter()
            .filter(|result| result.to_string().contains("no other tool and no other place"))
            .count()
            >= 5,
        "{results:#?}"
    );
    assert!(bench.api.requests().iter().all(|request| !request.text().contains("THE-SECRET")));
    assert!(bench.api.of(Kind::Subagent).is_empty());
}

#[test]
fn a_timeout_and_an_error_of_the_api_each_have_their_own_end_and_retry_goes_on() {
    let Some(bench) = open() else { return };
    bench.api.script(|request| reader::is_reading(request).then(|| Answer::error(400, "no more credit")));
    let (code, told, errors) = handoff(&bench, &GO);
    assert_eq!((code, &told["error"]["kind"]), (8, &json!("exit")), "{told} {errors}");
    assert!(errors.contains("no more credit"), "{errors}");
    let failed = entry(&bench);
    assert_eq!(failed["state"], "failed");
    let id = failed["id"].as_str().unwrap().to_owned();
    bench.api.script(|request| {
        reader::is_reading(request).then(|| Answer::text("late").after(Duration::from_secs(30)))
    });
    let (code, told, errors) = handoff(&bench, &["retry", &id, "--timeout", "4"]);
    assert_eq!((code, &told["error"]["kind"]), (7, &json!("timeout")), "{told} {errors}");
    reads(&bench, Manner::Honest);
    let (code, told, errors) = handoff(&bench, &["retry", &id]);
    assert_eq!(code, 0, "{told} {errors}");
    assert_eq!(entry(&bench)["retries"], 2);
}

/// Ends a handoff in the middle of the child's turn, and takes it up again.
fn is_taken_up_again_after(signal: rustix::process::Signal) {
    let Some(bench) = open() else { return };
    bench.api.script(|request| {
        reader::is_reading(request).then(|| Answer::text("late").after(Duration::from_secs(3)))
    });
    let mut command = bench.command(&command(&bench, &GO));
    command
        .env("CLAUDE_BIN", client(&bench))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut running = command.spawn().unwrap();
    bench
        .api
        .wait_until("the child's first request", LONG, |requests| requests.iter().any(reader::is_reading));
    let pid = rustix::process::Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
    let status = wait("its end", LONG, || running.try_wait().unwrap());
    let left = entry(&bench);
    if signal == rustix::process::Signal::TERM {
        assert_eq!((status.code(), &left["state"]), (Some(143), &json!("interrupted")));
        assert_eq!(left["child"]["pid"], Value::Null, "its child was ended with it");
    } else {
        assert_eq!(left["state"], "reading");
    }
    reads(&bench, Manner::Honest);
    let (code, told, errors) = handoff(&bench, &["retry", left["id"].as_str().unwrap()]);
    assert_eq!(code, 0, "{told} {errors}");
    assert_eq!(told["handoff"]["state"], "accepted");
}

#[test]
fn a_handoff_that_was_told_to_end_is_taken_up_again() {
    is_taken_up_again_after(rustix::process::Signal::TERM);
}

#[test]
fn a_handoff_that_was_killed_is_taken_up_again() {
    is_taken_up_again_after(rustix::process::Signal::KILL);
}

/// The words by which a refused id is known.
#[test]
fn the_client_says_that_an_id_is_in_use() {
    let Some(bench) = Bench::open() else { return };
    let id = "7f2a9c1e-0000-4000-8000-1234567890ab";
    bench.ask("hello", &["--session-id", id]);
    let out = bench.run(&bench.command_line(&["-p", "hello", "--session-id", id]), &[], b"");
    assert_eq!(out.status.code(), Some(1));
    assert!(
        longhaul::client::headless::says_id_is_taken(&out.stderr),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}
