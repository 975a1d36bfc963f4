use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use proptest::prelude::*;

use super::*;

const ROOM: u64 = 8 << 20;

/// A directory with the watched file, and what was told of it.
struct Bench {
    root: tempfile::TempDir,
    follower: Follower,
    told: Vec<String>,
    now_ms: i64,
}

impl Bench {
    fn new(before: Option<&str>, from_start: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.log");
        if let Some(text) = before {
            fs::write(&path, text).unwrap();
        }
        let follower = Follower::at(&path, Follower::begin(&path, from_start).unwrap());
        Self { root, follower, told: Vec::new(), now_ms: 1_000_000 }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        use std::io::Write as _;
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.at(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    fn poll(&mut self) -> Step {
        self.now_ms += 1_000;
        let told = &mut self.told;
        let mut each = |line: Line| told.push(String::from_utf8_lossy(line.bytes).into_owned());
        self.follower.step(self.now_ms, ROOM, &mut each).unwrap()
    }

    /// Another process goes on from what was written down.
    fn restart(&mut self) {
        let place = serde_json::to_vec(&self.follower.place()).unwrap();
        let path = self.at("a.log");
        self.follower = Follower::at(&path, serde_json::from_slice(&place).unwrap());
    }

    #[track_caller]
    fn tells(&mut self, lines: &[&str]) {
        self.poll();
        assert_eq!(std::mem::take(&mut self.told), lines);
        self.poll();
        assert!(self.told.is_empty(), "told again: {:?}", self.told);
    }
}

#[test]
fn lines_from_now_on_or_from_the_start() {
    let mut bench = Bench::new(Some("old\nbeg"), false);
    bench.tells(&[]);
    bench.append("a.log", "un\nnew\n");
    bench.tells(&["begun", "new"]);
    let mut bench = Bench::new(Some("old\n"), true);
    bench.tells(&["old"]);
    let mut bench = Bench::new(None, false);
    bench.tells(&[]);
    bench.append("a.log", "first\n");
    bench.tells(&["first"]);
}

#[test]
fn a_beginning_that_nothing_follows_is_told_after_a_while_and_its_rest_too() {
    let mut bench = Bench::new(Some("there before"), false);
    for _ in 0..8 {
        bench.tells(&[]);
    }
    bench.append("a.log", ", and more");
    bench.tells(&[]);
    for _ in 0..5 {
        bench.poll();
    }
    assert_eq!(std::mem::take(&mut bench.told), ["there before, and more"]);
    bench.restart();
    bench.append("a.log", " behind\n");
    bench.tells(&[" behind"]);
    bench.append("a.log", "x");
    for _ in 0..8 {
        bench.poll();
    }
    bench.append("a.log", "\ny\n");
    bench.tells(&["x", "y"]);
}

#[test]
fn rotation_by_name_loses_nothing_not_even_what_comes_late() {
    for restarts in [false, true] {
        let mut bench = Bench::new(Some("old\n"), false);
        bench.append("a.log", "one\n");
        bench.tells(&["one"]);
        if restarts {
            bench.restart();
        }
        bench.append("a.log", "two\n");
        bench.rename("a.log", "a.log.1");
        bench.append("a.log", "three\n");
        bench.tells(&["two", "three"]);
        if restarts {
            bench.restart();
        }
        bench.append("a.log.1", "late\n");
        bench.append("a.log", "four\n");
        bench.tells(&["late", "four"]);
    }
}

#[test]
fn several_rotations_while_nobody_looks() {
    let mut bench = Bench::new(Some("old\n"), false);
    bench.append("a.log.1", "long ago\n");
    bench.append("a.log.gz", "no rotated file\n");
    bench.append("a.log", "one\n");
    bench.tells(&["one"]);
    let place = bench.follower.place();
    bench.append("a.log", "two\n");
    for n in 3..6 {
        for old in (1..n).rev() {
            if bench.at(&format!("a.log.{old}")).exists() {
                bench.rename(&format!("a.log.{old}"), &format!("a.log.{}", old + 1));
            }
        }
        bench.rename("a.log", "a.log.1");
        bench.append("a.log", &format!("line {n}\n"));
    }
    bench.follower = Follower::at(&bench.at("a.log"), place);
    bench.tells(&["two", "line 3", "line 4", "line 5"]);
}

#[test]
fn rotation_by_copying() {
    for restarts in [false, true] {
        let mut bench = Bench::new(Some("old\n"), false);
        bench.append("a.log", "one\n");
        bench.tells(&["one"]);
        if restarts {
            bench.restart();
        }
        bench.append("a.log", "two\n");
        fs::copy(bench.at("a.log"), bench.at("a.log-20261130")).unwrap();
        fs::write(bench.at("a.log"), "").unwrap();
        bench.append("a.log", "three, which is longer than all that was there before\n");
        bench.tells(&["two", "three, which is longer than all that was there before"]);
    }
}

#[test]
fn a_file_that_is_emptied_begins_anew() {
    let mut bench = Bench::new(Some("some lines\nof before\n"), false);
    fs::write(bench.at("a.log"), "a\n").unwrap();
    bench.tells(&["a"]);
    fs::write(bench.at("a.log"), "as long\n").unwrap();
    bench.tells(&["as long"]);
}

#[test]
fn a_file_that_is_replaced_deleted_and_comes_back() {
    let mut bench = Bench::new(Some("old\n"), false);
    bench.tells(&[]);
    bench.append("a.log", "one\n");
    bench.append("new", "other\n");
    bench.rename("new", "a.log");
    bench.tells(&["one", "other"]);
    // Saved by a program that writes all of it anew.
    bench.append("new", "other\nmore\n");
    bench.rename("new", "a.log");
    bench.tells(&["more"]);
    bench.append("a.log", "last");
    fs::remove_file(bench.at("a.log")).unwrap();
    bench.tells(&[]);
    for _ in 0..6 {
        bench.poll();
    }
    assert_eq!(std::mem::take(&mut bench.told), ["last"]);
    bench.append("a.log", "back\n");
    bench.tells(&["back"]);
    bench.rename("a.log", "away");
    bench.tells(&[]);
    bench.append("away", "meanwhile\n");
    bench.rename("away", "a.log");
    bench.append("a.log", "again\n");
    bench.tells(&["meanwhile", "again"]);
}

#[test]
fn what_nobody_can_know_any_more_is_said() {
    let mut bench = Bench::new(Some("old\n"), false);
    bench.append("a.log", "one\n");
    bench.tells(&["one"]);
    bench.restart();
    fs::remove_file(bench.at("a.log")).unwrap();
    bench.append("a.log", "fresh\n");
    assert!(bench.poll().lost);
    assert_eq!(bench.told, ["fresh"]);
    assert!(!bench.poll().lost);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_what_is_no_file_is_an_error() {
    use fs::os::unix::fs::symlink;
    let mut bench = Bench::new(None, false);
    bench.append("one", "1\n");
    symlink(bench.at("one"), bench.at("a.log")).unwrap();
    bench.tells(&["1"]);
    bench.append("one", "2\n");
    bench.append("two", "3\n");
    symlink(bench.at("two"), bench.at("link")).unwrap();
    bench.rename("link", "a.log");
    bench.tells(&["2", "3"]);
    fs::remove_file(bench.at("a.log")).unwrap();
    bench.tells(&[]);
    let path = bench.at("a.log");
    let mut fails = |why: &str| {
        let error = bench.follower.step(bench.now_ms, ROOM, &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{why}: {error}");
        assert!(Follower::begin(&path, false).is_err());
    };
    fs::create_dir(&path).unwrap();
    fails("a directory");
    fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fails("a FIFO that nobody writes to");
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    fails("a device");
    symlink(&path, bench.root.path().join("loop")).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(bench.root.path().join("loop"), &path).unwrap();
    assert!(bench.follower.step(bench.now_ms, ROOM, &mut |_| ()).is_err(), "links in a circle");
}

#[test]
fn what_is_not_text_and_what_has_no_end_come_through() {
    let mut bench = Bench::new(None, false);
    let mut bytes = b"\xff\xfe\0bad\n".to_vec();
    bytes.extend(vec![b'x'; 300_000]);
    bytes.extend(b"\nafter\n");
    fs::write(bench.at("a.log"), &bytes).unwrap();
    bench.poll();
    assert_eq!(bench.told.len(), 3);
    assert_eq!(
        (&*bench.told[0], bench.told[1].len(), &*bench.told[2]),
        ("\u{fffd}\u{fffd}\0bad", LINE_MOST, "after")
    );
}

/// A file with holes costs nothing to make, and as much as any other to read.
#[test]
fn two_gigabytes_are_passed_by_or_read_in_steps() {
    let mut bench = Bench::new(None, false);
    let path = bench.at("a.log");
    let file = fs::File::create(&path).unwrap();
    file.set_len(2 << 30).unwrap();
    bench.append("a.log", "\nthe end\n");
    let deadline = crate::host::clock::Deadline::after_ms(10_000);
    bench.follower = Follower::at(&path, Follower::begin(&path, false).unwrap());
    bench.append("a.log", "new\n");
    bench.tells(&["new"]);
    assert!(!deadline.passed(), "it read what was there before");
    bench.follower = Follower::at(&path, Follower::begin(&path, true).unwrap());
    assert!(bench.poll().more, "all of it in one step");
    assert_eq!(bench.told.len(), 1, "the beginning of a line without an end");
}

/// What happens to a file between two looks.
#[derive(Debug, Clone)]
enum Act {
    Append(u8),
    Begin,
    Rotate,
    Copy,
    Empty,
    Replace(u8),
    Save(u8),
    Delete,
    Late,
    Look,
    Restart,
    Wait,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (1_u8..4).prop_map(Act::Append),
        2 => Just(Act::Begin),
        2 => Just(Act::Rotate),
        2 => Just(Act::Copy),
        1 => Just(Act::Empty),
        1 => (0_u8..4).prop_map(Act::Replace),
        1 => (1_u8..3).prop_map(Act::Save),
        1 => Just(Act::Delete),
        1 => Just(Act::Late),
        6 => Just(Act::Look),
        2 => Just(Act::Restart),
        1 => Just(Act::Wait),
    ]
}

/// The model: which lines lie where, and which must be told.
#[derive(Default)]
struct Model {
    /// Lines, and the beginning of one, of the file that has the name.
    now: Option<(Vec<u32>, String)>,
    /// Of files with other names that were renamed.
    away: Vec<Vec<u32>>,
    must: BTreeSet<u32>,
    next: u32,
    /// The file that has the name is the one of the last look, or came after it by renaming alone.
    known: bool,
}

impl Model {
    fn line(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Lines that can be read at a look must be told.
    fn looked(&mut self) {
        let lines = self.now.iter().flat_map(|(lines, _)| lines).chain(self.away.iter().flatten());
        self.must.extend(lines.copied().collect::<Vec<_>>());
        self.known = self.now.is_some();
    }
}

fn text(line: u32) -> String {
    format!("line {line}\n")
}

fn shift(bench: &Bench) {
    for old in (1..30).rev() {
        if bench.at(&format!("a.log.{old}")).exists() {
            bench.rename(&format!("a.log.{old}"), &format!("a.log.{}", old + 1));
        }
    }
}

fn run(bench: &mut Bench, model: &mut Model, acts: &[Act]) {
    for act in acts {
        model.known &= !matches!(act, Act::Copy | Act::Empty | Act::Replace(_) | Act::Save(_) | Act::Delete);
        match act {
            Act::Append(count) => {
                for _ in 0..*count {
                    let line = model.line();
                    let (lines, begun) = model.now.get_or_insert_default();
                    lines.push(line);
                    let text = text(line);
                    bench.append("a.log", &text[begun.len().min(text.len())..]);
                    begun.clear();
                }
            }
            Act::Begin => {
                let next = text(model.next + 1);
                let (_, begun) = model.now.get_or_insert_default();
                if begun.is_empty() {
                    *begun = next[..3].to_owned();
                    bench.append("a.log", &next[..3]);
                }
            }
            Act::Rotate if model.now.is_some() => {
                shift(bench);
                bench.rename("a.log", "a.log.1");
                model.away.extend(model.now.take().map(|(lines, _)| lines).filter(|_| model.known));
            }
            Act::Copy if model.now.is_some() => {
                shift(bench);
                fs::copy(bench.at("a.log"), bench.at("a.log.1")).unwrap();
                fs::write(bench.at("a.log"), "").unwrap();
                model.now = Some((Vec::new(), String::new()));
            }
            Act::Empty if model.now.is_some() => {
                fs::write(bench.at("a.log"), "").unwrap();
                model.now = Some((Vec::new(), String::new()));
            }
            Act::Replace(count) => {
                let lines: Vec<u32> = (0..*count).map(|_| model.line()).collect();
                fs::write(bench.at("new"), lines.iter().map(|line| text(*line)).collect::<String>()).unwrap();
                bench.rename("new", "a.log");
                model.now = Some((lines, String::new()));
            }
            Act::Save(count)
                if model.now.as_ref().is_some_and(|(lines, begun)| !lines.is_empty() && begun.is_empty()) =>
            {
                let mut all = fs::read_to_string(bench.at("a.log")).unwrap();
                for _ in 0..*count {
                    let line = model.line();
                    all += &text(line);
                    model.now.as_mut().unwrap().0.push(line);
                }
                fs::write(bench.at("new"), all).unwrap();
                bench.rename("new", "a.log");
            }
            Act::Delete if model.now.is_some() => {
                fs::remove_file(bench.at("a.log")).unwrap();
                model.now = None;
            }
            Act::Late if bench.at("a.log.1").exists() && !model.away.is_empty() => {
                // Its writer does not know yet that the file was renamed; whether that is told depends on when.
                let line = model.line();
                bench.append("a.log.1", &format!("\n{}", text(line)));
            }
            Act::Look => {
                bench.poll();
                model.looked();
            }
            Act::Restart => bench.restart(),
            Act::Wait => {
                bench.poll();
                model.looked();
                bench.now_ms += 120_000;
                bench.poll();
                model.away.clear();
            }
            _ => {}
        }
    }
    // Beginnings that nothing follows are told in the end.
    for _ in 0..8 {
        bench.poll();
    }
    model.looked();
}

/// Each line is told at most once, and each that could be read at a look once.
fn check(acts: &[Act]) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(Some("line 0\n"), false);
    let mut model = Model { now: Some((vec![], String::new())), known: true, ..Model::default() };
    run(&mut bench, &mut model, acts);
    let mut told = BTreeMap::new();
    // The beginning of a line may have been told apart from its rest.
    let text = bench.told.join("\n").replace("lin\ne ", "line ");
    for line in text.lines().filter_map(|line| line.strip_prefix("line ")) {
        *told.entry(line.parse::<u32>().unwrap()).or_insert(0) += 1;
    }
    let again: Vec<_> = told.iter().filter(|(line, count)| **line == 0 || **count > 1).collect();
    prop_assert!(again.is_empty(), "told more than once: {again:?} in {:?}", bench.told);
    let missing: Vec<_> = model.must.iter().filter(|line| !told.contains_key(line)).collect();
    prop_assert!(missing.is_empty(), "not told: {missing:?} in {:?}", bench.told);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_line_that_could_be_read_is_told_once(acts in prop::collection::vec(act(), 1..30)) {
        check(&acts)?;
    }
}
