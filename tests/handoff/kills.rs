//! Handoffs that are ended at any moment, and several at once: what is there afterwards is whole, and `retry`
//! finishes it.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Desk, LONG};
use crate::saga::{SESSION, everything};
use crate::sandbox::{Said, finish_within};

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

/// Waits until something is so.
#[track_caller]
pub fn wait(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Random moments, the same in every run; LONGHAUL_SEED gives others.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        Self(std::env::var("LONGHAUL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7))
    }

    fn within(&mut self, span: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        span.mul_f64((self.0 >> 40) as f64 / f64::from(1 << 24))
    }
}

/// Ends a handoff after this long by a signal, and finishes it. Where it was.
#[track_caller]
fn is_finished_after(desk: &Desk, after: Duration, signal: Signal) -> String {
    let mut running = desk.start(&["--session", SESSION, "--force"]);
    std::thread::sleep(after);
    send(&running, signal);
    let status = running.wait().unwrap();
    let said = finish_within(running, LONG);
    let entries = desk.entries();
    assert!(entries.len() <= 1, "{entries:#?}");
    let state = entries.first().map_or("none", |entry| entry["state"].as_str().unwrap()).to_owned();
    let by_signal = status.code().is_none();
    let code = 128 + signal.as_raw();
    let as_told = match &*state {
        "accepted" => [0, code].contains(&said.code) || by_signal,
        "interrupted" => said.code == code && said.stderr.contains("goes on"),
        // Before it listened, or by one that nobody hears.
        _ => by_signal || said.code == code,
    };
    assert!(as_told, "{state} {signal:?} {said:?}");
    if signal != Signal::KILL {
        desk.nothing_runs();
    }
    match entries.first() {
        None => assert_eq!(desk.go(&[]).code, 0),
        Some(entry) => {
            let said = desk.run(&["retry", entry["id"].as_str().unwrap()]);
            assert_eq!(said.code, 0, "{state} {signal:?} {after:?}: {said:?}");
        }
    }
    let entry = desk.is_accepted();
    assert_eq!(
        entry["parent_name"].as_str().map(|name| format!("{name} (cont. 2)")),
        entry["name"].as_str().map(str::to_owned)
    );
    for name in desk.names("handoff-keys") {
        // A key that has no name yet is taken away when it has aged.
        let own = name.starts_with(entry["id"].as_str().unwrap()) || name.starts_with(".lh-");
        assert!(own, "{name}");
    }
    state
}

fn is_finished_whenever_it_is_ended(points: u32, manner: &str, bytes: &[u8], reads: bool) {
    let whole = Desk::new(manner);
    whole.place(bytes, &whole.sandbox.work());
    let more: &[&str] = if reads { &[] } else { &["--prepare"] };
    let span = whole.go(more).took;
    let (mut moments, mut states) = (Moments::new(), std::collections::BTreeMap::new());
    for n in 0..points {
        let desk = Desk::new(manner);
        desk.place(bytes, &desk.sandbox.work());
        let signal = [Signal::TERM, Signal::KILL, Signal::INT, Signal::HUP][n as usize % 4];
        let state = is_finished_after(&desk, moments.within(span), signal);
        *states.entry(state).or_insert(0) += 1;
    }
    println!("{states:?} of {points} within {span:?}");
    assert!(states.len() > 1, "all at one moment: {states:?}");
}

#[test]
fn a_handoff_ended_at_any_moment_of_the_reading_is_finished_by_retry() {
    is_finished_whenever_it_is_ended(40, "honest:15", &everything().bytes(), true);
}

#[test]
fn a_handoff_ended_at_any_moment_of_the_export_is_finished_by_retry() {
    let mut saga = everything();
    for n in 0..300 {
        let id = format!("t{n}");
        saga.call(&id, "Bash", json!({ "command": "make" }));
        saga.result(&id, &"words without an end ".repeat(2_000), false, json!({}));
    }
    is_finished_whenever_it_is_ended(24, "honest", &saga.bytes(), false);
}

/// The moments that a signal hardly ever meets: made by hand.
#[test]
fn an_export_ended_just_before_or_after_it_has_its_name_is_one_export() {
    for named in [true, false] {
        let desk = Desk::new("honest");
        assert_eq!(desk.go(&["--prepare"]).code, 0);
        let mut entry = desk.entry();
        let id = entry["id"].as_str().unwrap().to_owned();
        entry["state"] = json!("exporting");
        desk.write_registry(&[entry.clone()]);
        if !named {
            fs_err::remove_dir_all(desk.sandbox.state().join("handoffs").join(&id)).unwrap();
        }
        let after = desk.is_finished_by_retry();
        assert_eq!((&after["id"], &after["name"]), (&json!(id), &entry["name"]), "{named}");
        assert_eq!(after["times"]["began"], entry["times"]["began"], "{named}");
    }
}

#[test]
fn two_retries_at_once_are_one() {
    let desk = Desk::new("honest:60");
    assert_eq!(desk.go(&["--no-wake"]).code, 0);
    let id = desk.entry()["id"].as_str().unwrap().to_owned();
    let first = desk.start(&["retry", &id]);
    wait("the first child", || !desk.calls().is_empty());
    let second = desk.run(&["retry", &id, "--json"]);
    assert_eq!(second.code, 1, "{second:?}");
    let told: Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(told["error"]["kind"], "busy");
    assert!(second.stderr.contains("is being worked on by another longhaul"), "{second:?}");
    let first = finish_within(first, LONG);
    assert_eq!(first.code, 0, "{first:?}");
    let entry = desk.is_accepted();
    assert_eq!((desk.calls().len(), &entry["retries"]), (1, &json!(1)));

    // And where both begin in the same moment.
    let desk = Desk::new("dies honest:60");
    assert_eq!(desk.go(&[]).code, 8);
    let id = desk.entry()["id"].as_str().unwrap().to_owned();
    let both = [desk.start(&["retry", &id]), desk.start(&["retry", &id])];
    are_one(both);
    desk.is_accepted();
    assert_eq!(desk.calls().len(), 2);
}

/// One is told that it is busy, or that all is done.
#[track_caller]
fn are_one(both: [Child; 2]) {
    let said = both.map(|child| finish_within(child, LONG));
    let good = |said: &Said| said.code == 0 || (said.code == 1 && said.stderr.contains("being worked on"));
    assert!(said.iter().all(good) && said.iter().any(|said| said.code == 0), "{said:?}");
}

#[test]
fn two_retries_of_an_export_that_was_ended_are_one() {
    let desk = Desk::new("honest:30");
    assert_eq!(desk.go(&["--prepare"]).code, 0);
    let mut entry = desk.entry();
    let id = entry["id"].as_str().unwrap().to_owned();
    (entry["state"], entry["times"]["exported"]) = (json!("exporting"), Value::Null);
    desk.write_registry(&[entry]);
    fs_err::remove_dir_all(desk.sandbox.state().join("handoffs").join(&id)).unwrap();
    let both = [desk.start(&["retry", &id]), desk.start(&["retry", &id])];
    are_one(both);
    desk.is_accepted();
    assert_eq!(desk.calls().len(), 1);
}

#[test]
fn twenty_at_once_are_twenty_handoffs() {
    let desk = Desk::new("honest");
    let running: Vec<Child> = (0..20).map(|_| desk.start(&["--session", SESSION, "--force"])).collect();
    let said: Vec<Said> = running.into_iter().map(|child| finish_within(child, LONG)).collect();
    assert!(said.iter().all(|said| said.code == 0), "{said:#?}");
    let entries = desk.entries();
    let distinct = |key: &dyn Fn(&Value) -> Value| {
        let mut all: Vec<String> = entries.iter().map(|entry| key(entry).to_string()).collect();
        all.sort();
        all.dedup();
        all.len()
    };
    assert!(entries.iter().all(|entry| entry["state"] == "accepted"), "{entries:#?}");
    assert_eq!(distinct(&|entry| entry["id"].clone()), 20);
    assert_eq!(distinct(&|entry| entry["child"]["session"].clone()), 20);
    assert_eq!(desk.names("handoffs").len(), 20);
    desk.nothing_is_half_written();
    desk.nothing_runs();
}

/// The child of a killed longhaul plays this on, alone.
#[track_caller]
fn killed_while_its_child_reads(manner: &str) -> (Desk, Value) {
    let desk = Desk::new(manner);
    let mut running = desk.start(&["--session", SESSION, "--force"]);
    wait("the child in the registry", || {
        desk.entries().first().is_some_and(|entry| entry["child"]["pid"].is_u64())
    });
    running.kill().unwrap();
    running.wait().unwrap();
    let entry = desk.entry();
    (desk, entry)
}

/// A killed longhaul leaves its child reading, which is let finish and not asked again.
#[test]
fn a_child_that_outlives_its_longhaul_is_waited_for() {
    let (desk, entry) = killed_while_its_child_reads("honest:40");
    let id = entry["id"].as_str().unwrap().to_owned();
    let said = desk.run(&["retry", &id]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("the child of an earlier run still reads (process "), "{said:?}");
    desk.is_accepted();
    assert_eq!(desk.calls().len(), 1);
}

/// Killed between starting the child and keeping its process: the client's own file says that it runs.
#[test]
fn a_child_whose_process_was_not_kept_is_waited_for() {
    let (desk, mut entry) = killed_while_its_child_reads("honest:40");
    let child = entry["child"].take();
    entry["child"] = json!({ "session": child["session"] });
    desk.write_registry(&[entry.clone()]);
    let sessions = desk.sandbox.config().join("sessions");
    fs_err::create_dir_all(&sessions).unwrap();
    let file = json!({ "pid": child["pid"], "sessionId": child["session"], "procStart": child["started"] });
    fs_err::write(sessions.join(format!("{}.json", child["pid"])), file.to_string()).unwrap();
    let said = desk.run(&["retry", entry["id"].as_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("the child of an earlier run still reads (process "), "{said:?}");
    desk.is_accepted();
    assert_eq!(desk.calls().len(), 1);
}

#[test]
fn a_child_that_outlives_its_longhaul_and_hangs_is_named() {
    let (desk, entry) = killed_while_its_child_reads("hangs honest");
    let pid = entry["child"]["pid"].as_u64().unwrap();
    let said = desk.run(&["retry", entry["id"].as_str().unwrap(), "--timeout", "1"]);
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.stderr.contains(&format!("end its process {pid}, or give")), "{said:?}");
    assert!(desk.runs(pid), "who did not start it does not end it");
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    desk.is_finished_by_retry();
}
