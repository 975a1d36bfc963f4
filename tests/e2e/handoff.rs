//! Handoffs with the real client as parent and child.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::api::Kind;
use crate::bench::Bench;
use crate::longhaul::{PROGRAMS, plugged};
use crate::reader::{self, Manner};
use crate::saga;

/// A made-up session of this bench, worked on in its directory.
fn parent(bench: &Bench) -> PathBuf {
    let projects = bench.config().join("projects/-parent");
    std::fs::create_dir_all(&projects).unwrap();
    let path = projects.join(format!("{}.jsonl", saga::SESSION));
    let text = String::from_utf8(saga::everything().bytes()).unwrap();
    std::fs::write(&path, text.replace("\"/home/someone/work\"", &json!(bench.work()).to_string())).unwrap();
    path
}

/// `longhaul …`: exit code, what it printed as JSON, and its errors.
fn handoff(bench: &Bench, args: &[&str]) -> (i32, Value, String) {
    let mut line = vec![PROGRAMS[0].1.to_owned(), "handoff".to_owned()];
    line.extend(args.iter().map(|&arg| arg.to_owned()));
    line.push("--json".to_owned());
    let client = bench.command_line(&[])[0].clone();
    let out = bench.run(&line, &[("CLAUDE_BIN", &client)], b"");
    let value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    (out.status.code().unwrap_or(-1), value, String::from_utf8_lossy(&out.stderr).into_owned())
}

fn reads(bench: &Bench, manner: Manner) {
    bench.api.script(move |request| reader::is_reading(request).then(|| reader::answer(request, manner)));
}

#[test]
fn a_child_that_reads_everything_is_accepted_and_opens() {
    let Some(bench) = Bench::open() else { return };
    let bench = plugged(bench);
    parent(&bench);
    reads(&bench, Manner::Honest);
    let (code, told, errors) = handoff(&bench, &["--session", saga::SESSION, "--force"]);
    assert_eq!(code, 0, "{told} {errors}");
    let entry = &told["handoff"];
    assert_eq!(entry["state"], "accepted");
    println!("{told:#}\n{errors}");
    assert_eq!(bench.api.of(Kind::Main).len(), 2);
}
