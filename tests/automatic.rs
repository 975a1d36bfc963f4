//! Exports that nobody asked for: made before a compaction, through the built programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::saga::{Saga, decision};
use crate::sandbox::{SESSION, Said, Sandbox, finish, program_path};

/// A sandbox whose session has this transcript.
fn sandbox(saga: &Saga) -> Sandbox {
    let sandbox = Sandbox::new();
    place(&sandbox, saga);
    sandbox
}

fn place(sandbox: &Sandbox, saga: &Saga) -> PathBuf {
    let dir = sandbox.config().join("projects/-work");
    fs_err::create_dir_all(&dir).unwrap();
    let path = dir.join(format!("{SESSION}.jsonl"));
    fs_err::write(&path, saga.bytes()).unwrap();
    path
}

fn said() -> Saga {
    let mut saga = Saga::new();
    saga.typed("the first requirement").answer(&decision("DECISION"));
    saga
}

/// PreCompact: the compaction begins. It is answered by nothing, whatever happens.
#[track_caller]
fn compacts(sandbox: &Sandbox) {
    silent(&sandbox.hook(&sandbox.event("PreCompact", &json!({ "trigger": "auto" }))));
}

#[track_caller]
fn silent(said: &Said) {
    assert_eq!((said.code, &*said.stdout, &*said.stderr), (0, "", ""), "{said:?}");
}

/// SessionStart: the compaction has come to its end. What the model hears.
#[track_caller]
fn told(sandbox: &Sandbox) -> String {
    let answer = sandbox.answer(&sandbox.event("SessionStart", &json!({ "source": "compact" })));
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs_err::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The exports that are there, each with its key, and no key without an export.
#[track_caller]
fn exports(sandbox: &Sandbox) -> Vec<PathBuf> {
    let ids = names(&sandbox.state().join("handoffs"));
    let mut keys = names(&sandbox.state().join("handoff-keys"));
    for key in &mut keys {
        key.truncate(key.len() - ".json".len());
    }
    keys.sort();
    assert_eq!(keys, ids, "half an export");
    ids.iter().map(|id| sandbox.state().join("handoffs").join(id)).collect()
}

/// The ids of the jobs that are left; those that nobody works at have no lock.
fn jobs(sandbox: &Sandbox) -> Vec<String> {
    let names = names(&sandbox.state().join("jobs"));
    names.iter().filter_map(|name| name.strip_suffix(".json")).map(str::to_owned).collect()
}

fn index(export: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(export.join("04-index.json")).unwrap()).unwrap()
}

fn text(export: &Path, file: &str) -> String {
    fs_err::read_to_string(export.join(file)).unwrap()
}

fn trace(sandbox: &Sandbox) -> String {
    fs_err::read_to_string(sandbox.state().join("trace.log")).unwrap_or_default()
}

fn add_to_config(sandbox: &Sandbox, config: &Value) {
    fs_err::create_dir_all(sandbox.state()).unwrap();
    fs_err::write(sandbox.state().join("config.json"), config.to_string()).unwrap();
}

#[test]
fn a_session_is_exported_before_it_is_compacted_and_the_model_hears_where() {
    let mut saga = said();
    let sandbox = sandbox(&saga);
    let before = saga.bytes().len();
    compacts(&sandbox);
    let [export] = &exports(&sandbox)[..] else { panic!("{:?}", exports(&sandbox)) };
    assert!(export.to_str().unwrap().ends_with("Z-3f2a9c1e-auto"), "{}", export.display());
    assert_eq!((index(export)["source"]["bytes"].as_u64(), jobs(&sandbox).len()), (Some(before as u64), 0));
    saga.compaction(true, 935_000, &[]);
    let transcript = place(&sandbox, &saga);
    let heard = told(&sandbox);
    for part in [export.to_str().unwrap(), "01-user-messages.md", "03-full-transcript.txt", "word for word"] {
        assert!(heard.contains(part), "{part:?} is not in {heard}");
    }
    assert!(heard.contains("lies in") && heard.contains(transcript.to_str().unwrap()), "{heard}");
    assert!(!heard.contains("05-dropped"), "there was no compaction before this one: {heard}");
    assert!(heard.len() < 1_100, "{} bytes: {heard}", heard.len());
}

#[test]
fn a_second_compaction_has_an_export_of_its_own_with_everything_in_it() {
    let mut saga = said();
    let sandbox = sandbox(&saga);
    compacts(&sandbox);
    saga.compaction(true, 935_000, &[]);
    saga.typed("the second requirement").answer("ok");
    place(&sandbox, &saga);
    let manual = json!({ "trigger": "manual", "custom_instructions": "keep the names" });
    silent(&sandbox.hook(&sandbox.event("PreCompact", &manual)));
    let all = exports(&sandbox);
    assert_eq!(all.len(), 2, "{all:?}");
    // Two of one second come in the order of their numbers.
    let last = all.iter().find(|export| told(&sandbox).contains(&format!(" {}:", export.display()))).unwrap();
    let said = text(last, "01-user-messages.md");
    assert!(said.contains("the first requirement") && said.contains("the second requirement"), "{said}");
    assert!(text(last, "05-dropped-context.md").contains("the first requirement"));
    assert!(told(&sandbox).contains("05-dropped-context.md what earlier compactions took"));
}

#[test]
fn where_nothing_new_was_said_there_is_no_second_one() {
    let mut saga = said();
    let sandbox = sandbox(&saga);
    compacts(&sandbox);
    compacts(&sandbox);
    assert_eq!(exports(&sandbox).len(), 1);
    saga.typed("more");
    place(&sandbox, &saga);
    compacts(&sandbox);
    assert_eq!(exports(&sandbox).len(), 2);
}

#[test]
fn only_the_session_itself_is_exported() {
    let sandbox = sandbox(&said());
    let in_agent = json!({ "trigger": "auto", "agent_id": "a1" });
    silent(&sandbox.hook(&sandbox.event("PreCompact", &in_agent)));
    silent(&sandbox.hook(&sandbox.event("PostCompact", &json!({ "trigger": "auto" }))));
    assert!(exports(&sandbox).is_empty());
}

#[test]
fn the_ancestors_words_are_in_it() {
    let sandbox = sandbox(&said());
    let parent = sandbox.state().join("handoffs/parents");
    fs_err::create_dir_all(&parent).unwrap();
    fs_err::write(parent.join("01-user-messages.md"), "## 1. then, typed\nASKED OF THE PARENT\n").unwrap();
    let entry = json!({ "id": "parents", "state": "accepted", "parent": { "session": "p" },
        "child": { "session": SESSION }, "directory": parent });
    let chains = json!({ "version": 1, "handoffs": [entry] });
    fs_err::write(sandbox.state().join("chains.json"), chains.to_string()).unwrap();
    compacts(&sandbox);
    let made = names(&sandbox.state().join("handoffs")).into_iter().find(|id| id.ends_with("-auto")).unwrap();
    let export = sandbox.state().join("handoffs").join(made);
    assert!(text(&export, "01-gen-1.md").contains("ASKED OF THE PARENT"));
}

/// So many compactions of a session that grows.
fn many(sandbox: &Sandbox, count: usize) {
    let mut saga = said();
    for n in 0..count {
        saga.typed(&format!("message {n}")).answer("ok");
        place(sandbox, &saga);
        compacts(sandbox);
    }
}

#[test]
fn the_last_three_of_a_session_stay_and_what_a_person_asked_for() {
    let sandbox = sandbox(&said());
    assert_eq!(sandbox.longhaul(&["export", "--session", SESSION]).code, 0);
    many(&sandbox, 5);
    let all = exports(&sandbox);
    assert_eq!(all.len(), 4, "{all:?}");
    let lengths: Vec<u64> =
        all.iter().map(|dir| index(dir)["messages"]["entries"].as_u64().unwrap()).collect();
    let mut sorted = lengths.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 4, 5, 6], "{lengths:?}");
    assert_eq!(names(&sandbox.state().join("handoffs")).iter().filter(|id| id.contains("-auto")).count(), 3);
}

#[test]
fn an_export_that_a_handoff_names_stays() {
    let sandbox = sandbox(&said());
    compacts(&sandbox);
    let first = exports(&sandbox).remove(0);
    let id = first.file_name().unwrap().to_str().unwrap();
    let entry =
        json!({ "id": id, "state": "prepared", "parent": { "session": SESSION }, "directory": first });
    let chains = json!({ "version": 1, "handoffs": [entry] });
    fs_err::write(sandbox.state().join("chains.json"), chains.to_string()).unwrap();
    add_to_config(&sandbox, &json!({ "automatic_exports_max_bytes": 1 }));
    many(&sandbox, 5);
    let all = exports(&sandbox);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(first.is_dir());
}

#[test]
fn a_list_of_handoffs_that_cannot_be_read_takes_nothing_away() {
    let sandbox = sandbox(&said());
    add_to_config(&sandbox, &json!({ "automatic_exports_max_bytes": 1 }));
    fs_err::write(sandbox.state().join("chains.json"), "{ broken").unwrap();
    many(&sandbox, 5);
    assert_eq!(exports(&sandbox).len(), 5);
    assert_eq!(text(&sandbox.state(), "chains.json"), "{ broken", "and is left as it is");
    assert!(trace(&sandbox).contains("not all old ones were taken away"), "{}", trace(&sandbox));
}

#[test]
fn the_size_of_all_is_capped_by_the_configuration_and_none_is_made_at_zero() {
    let sandbox = sandbox(&said());
    many(&sandbox, 2);
    assert_eq!(exports(&sandbox).len(), 2);
    add_to_config(&sandbox, &json!({ "automatic_exports_max_bytes": 1 }));
    many(&sandbox, 3);
    assert_eq!(exports(&sandbox).len(), 1, "the one just made");
    add_to_config(&sandbox, &json!({ "automatic_exports_max_bytes": 0 }));
    many(&sandbox, 6);
    assert_eq!(exports(&sandbox).len(), 1);
    // A configuration that cannot be read sets no cap: it may have been a larger one.
    add_to_config(&sandbox, &json!({ "automatic_exports_max_byte": 1 }));
    many(&sandbox, 7);
    assert_eq!(exports(&sandbox).len(), 3);
}

#[test]
fn twenty_at_once_make_one() {
    let mut saga = said();
    for n in 0..200 {
        saga.typed(&format!("message {n}")).answer(&decision("LONG"));
    }
    let sandbox = sandbox(&saga);
    let event = sandbox.event("PreCompact", &json!({ "trigger": "auto" }));
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..20).map(|_| scope.spawn(|| sandbox.hook(&event))).collect();
        for run in runs {
            silent(&run.join().unwrap());
        }
    });
    assert_eq!((exports(&sandbox).len(), jobs(&sandbox).len()), (1, 0), "{}", trace(&sandbox));
    assert_eq!(index(&exports(&sandbox)[0])["messages"]["entries"], 201);
}

#[test]
fn what_fails_is_silent_and_traced() {
    // No transcript, or none that can be read.
    let none = Sandbox::new();
    compacts(&none);
    assert!(trace(&none).contains("could not read the transcript"), "{}", trace(&none));
    let fifo = none.root.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [&*fifo, Path::new("/dev/zero"), none.root.path(), Path::new("relative.jsonl")] {
        silent(&none.hook(&none.event("PreCompact", &json!({ "transcript_path": path }))));
    }
    assert!(exports(&none).is_empty() && jobs(&none).is_empty());
    // No place for exports, or for jobs.
    for name in ["handoffs", "handoff-keys", "jobs"] {
        let blocked = sandbox(&said());
        fs_err::create_dir_all(blocked.state()).unwrap();
        fs_err::write(blocked.state().join(name), "a file in its place").unwrap();
        compacts(&blocked);
        assert!(trace(&blocked).contains("before a compaction: "), "{name}: {}", trace(&blocked));
        assert_eq!(text(&blocked.state(), name), "a file in its place");
        told(&blocked);
    }
    // No place at all.
    let nowhere = sandbox(&said()).without("HOME");
    compacts(&nowhere);
}

#[test]
fn a_limit_on_file_sizes_ends_the_export_and_not_the_hook() {
    let mut saga = said();
    saga.typed(&"words without an end ".repeat(20_000));
    let sandbox = sandbox(&saga);
    let event = sandbox.event("PreCompact", &json!({ "trigger": "auto" })).to_string();
    let mut shell = sandbox.other_command("/bin/sh");
    shell.args(["-c", "ulimit -f 100; exec \"$0\"", program_path("longhaul-hook")]);
    let mut child =
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
    silent(&finish(child));
    assert!(trace(&sandbox).contains("could not write the export"), "{}", trace(&sandbox));
    assert!(exports(&sandbox).is_empty());
    assert_eq!(jobs(&sandbox).len(), 1);
}

/// The watcher beside a client, until `done`; what it said then.
#[track_caller]
fn watched(sandbox: &Sandbox, mut done: impl FnMut() -> bool) -> Said {
    let mut client = Command::new("sleep").arg("600").spawn().unwrap();
    let mut command = sandbox.command("longhaul-watch");
    command.env("CLAUDE_PID", client.id().to_string()).stdin(Stdio::null());
    let watcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !done() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let in_time = done();
    client.kill().unwrap();
    client.wait().unwrap();
    let said = finish(watcher);
    assert!(in_time, "the watcher did not do it: {}", trace(sandbox));
    said
}

/// A job in the shape of this version.
fn job(sandbox: &Sandbox, until: u64) -> Value {
    let transcript = sandbox.config().join(format!("projects/-work/{SESSION}.jsonl"));
    json!({ "version": 1, "session": SESSION, "transcript": transcript, "until": until, "budget": 100_000,
        "due_ms": 1_796_000_000_000_i64 })
}

const JOB: &str = "20261130T000000Z-3f2a9c1e-auto";

fn write_job(sandbox: &Sandbox, id: &str, text: &str) {
    let dir = sandbox.state().join("jobs");
    fs_err::create_dir_all(&dir).unwrap();
    fs_err::write(dir.join(format!("{id}.json")), text).unwrap();
}

#[test]
fn the_watcher_finishes_what_was_left_and_says_nothing() {
    let mut saga = said();
    let until = saga.bytes().len() as u64;
    saga.compaction(true, 935_000, &[]);
    saga.typed("SAID AFTER IT");
    let sandbox = sandbox(&saga);
    write_job(&sandbox, JOB, &job(&sandbox, until).to_string());
    let said = watched(&sandbox, || jobs(&sandbox).is_empty());
    silent(&said);
    let export = &exports(&sandbox)[0];
    assert!(export.ends_with(JOB));
    assert_eq!(index(export)["source"]["bytes"], until);
    let words = text(export, "01-user-messages.md");
    assert!(words.contains("the first requirement") && !words.contains("SAID AFTER IT"), "{words}");
    let copy = fs_err::read(export.join("parent.jsonl.zst")).unwrap();
    assert_eq!(zstd::decode_all(&*copy).unwrap(), saga.bytes()[..usize::try_from(until).unwrap()]);
}

#[test]
fn the_next_command_about_the_session_finishes_what_was_left() {
    for command in [
        &["explain", "--session", SESSION][..],
        &["weigh", "--session", SESSION],
        &["export", "--session", SESSION],
        &["handoff", "snooze", "--session", SESSION],
    ] {
        let saga = said();
        let sandbox = sandbox(&saga);
        write_job(&sandbox, JOB, &job(&sandbox, saga.bytes().len() as u64).to_string());
        let mut other = job(&sandbox, 100);
        other["session"] = json!("another-session");
        write_job(&sandbox, "20261130T000000Z-another--auto", &other.to_string());
        // What a process left that was killed in the middle of it.
        let half = sandbox.state().join("handoffs/.lh-half");
        fs_err::create_dir_all(&half).unwrap();
        fs_err::write(half.join("03-full-transcript.txt"), "half").unwrap();
        fs_err::create_dir_all(sandbox.state().join("handoff-keys")).unwrap();
        fs_err::write(sandbox.state().join(format!("handoff-keys/{JOB}.json")), "{}").unwrap();
        let said = sandbox.longhaul(command);
        assert_eq!((said.code, &*said.stderr), (0, ""), "{command:?}: {said:?}");
        assert_eq!(jobs(&sandbox), ["20261130T000000Z-another--auto"], "{command:?}");
        let made = exports(&sandbox);
        assert!(made[0].ends_with(JOB) && !half.exists(), "{made:?}");
        assert_eq!(index(&made[0])["messages"]["entries"], 1);
    }
}

#[test]
fn a_job_whose_export_is_there_already_is_only_taken_away() {
    let saga = said();
    let sandbox = sandbox(&saga);
    compacts(&sandbox);
    let export = exports(&sandbox).remove(0);
    let before = text(&export, "04-index.json");
    let id = export.file_name().unwrap().to_str().unwrap();
    write_job(&sandbox, id, &job(&sandbox, saga.bytes().len() as u64).to_string());
    sandbox.longhaul(&["explain", "--session", SESSION]);
    assert_eq!((jobs(&sandbox).len(), text(&export, "04-index.json")), (0, before));
}

#[test]
fn a_job_that_fails_rests_and_one_that_can_never_be_done_goes() {
    let saga = said();
    let sandbox = sandbox(&saga);
    fs_err::create_dir_all(sandbox.state()).unwrap();
    fs_err::write(sandbox.state().join("handoffs"), "a file in its place").unwrap();
    write_job(&sandbox, JOB, &job(&sandbox, 100).to_string());
    let said = sandbox.longhaul(&["explain", "--session", SESSION]);
    assert_eq!(said.code, 0, "it is not what was asked for: {said:?}");
    assert!(said.stderr.contains("that a compaction left is not done"), "{said:?}");
    let left = || -> Value {
        let path = sandbox.state().join(format!("jobs/{JOB}.json"));
        serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
    };
    assert_eq!(left()["tries"], 1);
    assert!(left()["rests_until_ms"].as_i64().unwrap() > longhaul::host::clock::now_ms());
    for tries in 2..=8 {
        sandbox.longhaul(&["explain", "--session", SESSION]);
        assert_eq!(left()["tries"], tries);
    }
    let said = sandbox.longhaul(&["explain", "--session", SESSION]);
    assert!(said.stderr.contains("begun 8 times in vain") && jobs(&sandbox).is_empty(), "{said:?}");
    // A transcript that is gone will not come back.
    let mut gone = job(&sandbox, 100);
    gone["transcript"] = json!("/nowhere/t.jsonl");
    write_job(&sandbox, JOB, &gone.to_string());
    let said = sandbox.longhaul(&["explain", "--session", SESSION]);
    assert!(said.stderr.contains("could not read the transcript") && jobs(&sandbox).is_empty(), "{said:?}");
}

#[test]
fn hostile_jobs_harm_nobody() {
    let saga = said();
    let sandbox = sandbox(&saga);
    let dir = sandbox.state().join("jobs");
    fs_err::create_dir_all(&dir).unwrap();
    let with = |key: &str, value: Value| {
        let mut job = job(&sandbox, 100);
        job[key] = value;
        job.to_string()
    };
    let outside = sandbox.root.path().join("secret");
    fs_err::write(&outside, "a secret").unwrap();
    let bad = [
        ("..", job(&sandbox, 100).to_string()),
        ("", job(&sandbox, 100).to_string()),
        ("a b\u{1b}[2J", job(&sandbox, 100).to_string()),
        ("text", "not a job".to_owned()),
        ("nested", "[".repeat(100_000)),
        ("session", with("session", json!("../../x"))),
        ("relative", with("transcript", json!("../../t.jsonl"))),
        ("device", with("transcript", json!("/dev/zero"))),
        ("directory", with("transcript", json!("/"))),
        ("far", with("until", json!(u64::MAX))),
        ("no-words", with("transcript", json!(outside))),
        ("early", with("due_ms", json!(i64::MIN))),
        ("tired", with("tries", json!(u32::MAX))),
        ("later", json!({ "version": 2 }).to_string()),
    ];
    for (id, text) in &bad {
        write_job(&sandbox, id, text);
    }
    assert!(Command::new("mkfifo").arg(dir.join("fifo.json")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", dir.join("zero.json")).unwrap();
    std::os::unix::fs::symlink(dir.join("loop.json"), dir.join("loop.json")).unwrap();
    let good = job(&sandbox, saga.bytes().len() as u64).to_string();
    write_job(&sandbox, JOB, &good);
    let done = || {
        let rests = |id: &String| {
            let text = fs_err::read_to_string(dir.join(format!("{id}.json"))).unwrap_or_default();
            let job = serde_json::from_str::<Value>(&text);
            job.is_ok_and(|job| job["rests_until_ms"].as_i64() > Some(0))
        };
        let left = ["..", "", "a b\u{1b}[2J", "fifo", "later", "loop", "zero"];
        jobs(&sandbox).iter().all(|id| left.contains(&&**id) || rests(id))
    };
    let said = watched(&sandbox, done);
    silent(&said);
    assert!(index(&sandbox.state().join("handoffs").join(JOB))["messages"]["entries"] == 1);
    let said = sandbox.longhaul(&["explain", "--session", SESSION]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
    compacts(&sandbox);
    assert_eq!(fs_err::read_to_string(&outside).unwrap(), "a secret");
    exports(&sandbox);
}

/// Time is up at once: what is left is a job, which says how long the transcript was.
#[cfg(feature = "testing")]
#[test]
fn what_does_not_get_done_in_time_is_left_as_a_job() {
    let mut saga = said();
    let until = saga.bytes().len() as u64;
    let sandbox = sandbox(&saga).env("LONGHAUL_TEST_EXPORT_MS", "0");
    compacts(&sandbox);
    assert!(exports(&sandbox).is_empty());
    let left = jobs(&sandbox);
    let [id] = &left[..] else { panic!("{left:?}") };
    let path = sandbox.state().join(format!("jobs/{id}.json"));
    let job: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
    assert_eq!((&job["until"], &job["tries"]), (&json!(until), &json!(0)));
    assert!(trace(&sandbox).contains("left to be finished later"), "{}", trace(&sandbox));
    // The same compaction begins once more: it is the same job.
    compacts(&sandbox);
    assert_eq!(jobs(&sandbox), left);
    saga.compaction(true, 935_000, &[]);
    saga.typed("SAID AFTER IT");
    place(&sandbox, &saga);
    let heard = told(&sandbox);
    let export = sandbox.state().join("handoffs").join(id);
    assert!(heard.contains(&format!("will lie in {}:", export.display())), "{heard}");
    sandbox.longhaul(&["weigh", "--session", SESSION]);
    assert_eq!(exports(&sandbox)[..], [&*export]);
    assert_eq!(index(&export)["source"]["bytes"], until);
    assert!(!text(&export, "01-user-messages.md").contains("SAID AFTER IT"));
    assert!(told(&sandbox).contains(&format!("lies in {}:", export.display())));
}
