//! A folder uses only folders below it: read off the `use crate::` lines and every other `crate::` path.

use std::collections::BTreeMap;
use std::path::Path;

/// Floors from the top. Folders of one floor may not use each other.
const FLOORS: [&[&str]; 6] = [
    &["hook", "line", "watcher", "cli"],
    &["setup", "handoff", "watches"],
    &["gauge", "liveness"],
    &["client", "store"],
    &["host"],
    &["base"],
];

fn floors() -> BTreeMap<&'static str, usize> {
    FLOORS
        .iter()
        .enumerate()
        .flat_map(|(floor, names)| names.iter().map(move |name| (*name, floor)))
        .collect()
}

/// Arrows that run up or sideways, as text.
fn wrong_arrows(from: &str, source: &str) -> Vec<String> {
    let floors = floors();
    let mut wrong = Vec::new();
    for (number, line) in source.lines().enumerate() {
        for rest in line.split("crate::").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // `use crate::{a, b}` would hide its arrows from this test.
            assert!(!rest.starts_with('{'), "{from}:{}: one `use crate::` line a folder", number + 1);
            let (Some(own), Some(other)) = (floors.get(from), floors.get(&*name)) else {
                wrong.push(format!("{from}:{}: `{name}` stands on no floor", number + 1));
                continue;
            };
            if name != from && other <= own {
                wrong.push(format!("{from}:{}: {line}", number + 1));
            }
        }
    }
    wrong
}

fn visit(dir: &Path, top: &str, wrong: &mut Vec<String>) {
    for entry in fs_err::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            visit(&entry.path(), top, wrong);
        } else if entry.path().extension().is_some_and(|ending| ending == "rs") {
            let source = fs_err::read_to_string(entry.path()).unwrap();
            wrong.extend(
                wrong_arrows(top, &source).iter().map(|arrow| format!("{}: {arrow}", entry.path().display())),
            );
        }
    }
}

#[test]
fn arrows_run_down() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for entry in fs_err::read_dir(src).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(floors().contains_key(&*name), "src/{name} stands on no floor");
            visit(&entry.path(), &name, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files that may start a process: those that set up, hand over or watch, and the one floor that can.
const STARTERS: &[&str] = &[
    "host/process.rs",
    "host/process/started.rs",
    "client/program.rs",
    "cli/sample.rs",
    "handoff/turn.rs",
    "liveness/notify.rs",
    "setup/command.rs",
    "setup/doctor/gather/programs.rs",
    "setup/tools.rs",
    "watches/work.rs",
];

/// What a source names that a redraw or a hook must have no part in.
fn forbidden(file: &str, source: &str) -> Vec<&'static str> {
    let starts = [
        "process::run(",
        "process::start(",
        "process::start_in(",
        "process::start_stream(",
        "Command::new",
        "std::process::Command",
    ];
    let network = ["std::net", "TcpStream", "UdpSocket", "UnixStream", "ToSocketAddrs"];
    let starts = starts.iter().filter(|_| !STARTERS.iter().any(|starter| file.ends_with(starter)));
    starts.chain(&network).copied().filter(|name| source.contains(name)).collect()
}

// CC#84124, ccstatusline#384, ccusage/ccusage#459: a line that started processes, itself among them.
// ticpu/ccusage-statusline-rs: a line that needed the network.
#[test]
fn nothing_but_setup_handoffs_and_watches_starts_a_process_and_nothing_opens_a_connection() {
    fn visit(dir: &Path, found: &mut Vec<String>) {
        for path in fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let source = fs_err::read_to_string(&path).unwrap();
                let name = path.display().to_string();
                found.extend(forbidden(&name, &source).iter().map(|what| format!("{name}: {what}")));
            }
        }
    }
    let mut found = Vec::new();
    for door in ["src", "hooks", "statusline", "monitors"] {
        visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join(door), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(forbidden("src/line/mod.rs", "process::run(a); std::net::x"), ["process::run(", "std::net"]);
}

#[test]
fn a_wrong_arrow_is_seen() {
    assert_eq!(wrong_arrows("gauge", "use crate::client::event::Event;\nuse crate::gauge::x;"), [""; 0]);
    assert_eq!(wrong_arrows("client", "    crate::store::x()").len(), 1, "sideways");
    assert_eq!(wrong_arrows("base", "use crate::host::Host;").len(), 1, "up");
    assert_eq!(wrong_arrows("hook", "use crate::line::draw;").len(), 1, "a face uses no face");
}
