//! A folder uses only folders below it: read off the `use crate::` lines and every other `crate::` path.

use std::collections::BTreeMap;
use std::path::Path;

/// Floors from the top. Folders of one floor may not use each other.
const FLOORS: [&[&str]; 6] =
    [&["hook", "line", "watcher", "cli"], &["setup"], &["gauge"], &["client", "store"], &["host"], &["base"]];

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

#[test]
fn a_wrong_arrow_is_seen() {
    assert_eq!(wrong_arrows("gauge", "use crate::client::event::Event;\nuse crate::gauge::x;"), [""; 0]);
    assert_eq!(wrong_arrows("client", "    crate::store::x()").len(), 1, "sideways");
    assert_eq!(wrong_arrows("base", "use crate::host::Host;").len(), 1, "up");
    assert_eq!(wrong_arrows("hook", "use crate::line::draw;").len(), 1, "a face uses no face");
}
