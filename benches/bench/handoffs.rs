//! Other ways of writing a session out, on the same transcripts and in the same minutes: how long, how much
//! memory, and what is left of the person's words, since speed alone says nothing.
//!
//! claude-handoff without `--llm` asks no model and opens no connection. It is asked for both of its documents:
//! the one it writes by itself, and the longest that it can write.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use longhaul::handoff::{Request, export};
use longhaul::host::Host;
use longhaul::store::Store;
use serde_json::Value;

use super::scene::Scene;
use super::timing::{Start, Times, in_turns};
use super::transcripts::{Message, Said};

const ROUNDS: usize = 5;
const MB: u64 = 1 << 20;
/// Quarter of the wall of a window of a million tokens: what the verb takes by itself there.
const BUDGET: u64 = 241_750;

/// One way of writing a session out.
struct Way {
    start: Start,
    outcome: Outcome,
}

/// Where its words are.
enum Outcome {
    /// The messages' parts in the directory that it names on its first line.
    Export,
    /// A file.
    File(PathBuf),
}

pub fn run(programs: &str, peers: &str, work: &str) {
    println!(
        "whole: the message stands there word for word, white space aside, looked for in 01-user-messages and in \
         the handoff file.\nclaude-handoff is asked for the documents it makes without a model (no --llm).\n"
    );
    for (n, size) in [(1, 10), (2, 100)] {
        let scene = Scene::new(&Path::new(work).join(format!("handoff-{size}")));
        let session = format!("00000000-0000-4000-8000-{n:012}");
        let (transcript, truth, said) = scene.numbered_transcript(&session, size * MB);
        println!(
            "a transcript of {} bytes, {} rows; medians of {ROUNDS}, taking turns",
            truth.bytes, truth.rows
        );
        let ways = all(&scene, Path::new(programs), Path::new(peers), &transcript);
        table(&ways, &said);
        println!();
    }
}

fn table(ways: &[Way], said: &[Message]) {
    let kept: Vec<Kept> = ways.iter().map(|way| Kept::count(&way.words(), said)).collect();
    let starts: Vec<Start> = ways.iter().map(|way| way.start.clone()).collect();
    let times = in_turns(&starts, ROUNDS);
    let peaks: Vec<u64> = starts.iter().map(Start::peak).collect();
    println!(
        "| asked | processor time | clock | peak memory | typed, whole | mid-turn, whole | over 8,000 characters, \
         whole | cut | rewound, there |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let busy = |times: &Times| times.busy_ms();
    for (at, start) in starts.iter().enumerate() {
        println!(
            "| {} | {:.0} ms, x {:.2} | {:.0} ms, x {:.2} | {:.1} MB, x {:.2} | {} |",
            start.name,
            busy(&times[at]),
            busy(&times[at]) / busy(&times[0]),
            times[at].ms(),
            times[at].ms() / times[0].ms(),
            peaks[at] as f64 / 1024.0,
            peaks[at] as f64 / peaks[0] as f64,
            kept[at].told()
        );
    }
}

/// Ours, the first of which the ratios are against, and those that were installed.
fn all(scene: &Scene, programs: &Path, peers: &Path, transcript: &Path) -> Vec<Way> {
    let way = |name: &str, program: PathBuf, arguments: &[&str], outcome| {
        let mut start = scene.start(name, program, &Value::Null);
        start.arguments = arguments.iter().map(OsString::from).collect();
        Way { start, outcome }
    };
    let file = transcript.to_str().unwrap();
    let ours = programs.join("longhaul");
    let export = ["export", "--transcript", file];
    let mut ways = vec![
        way("`longhaul export`", ours.clone(), &export, Outcome::Export),
        way(
            "the same without its compressed copy",
            std::env::current_exe().unwrap(),
            &["export", file],
            Outcome::Export,
        ),
        way("`longhaul export --redact`", ours, &[&export[..], &["--redact"]].concat(), Outcome::Export),
    ];
    let python = peers.join("python");
    let program = python.join("bin/claude-handoff");
    if !program.is_file() {
        println!("claude-handoff is not there: left out");
        return ways;
    }
    for (n, more) in [&[][..], &["--full", "--max-chars", "1000000000"]].into_iter().enumerate() {
        let written = scene.home.join(format!("handoff-{n}.md"));
        let arguments = [&[file][..], more, &["-o", written.to_str().unwrap()]].concat();
        let name = [&["`claude-handoff FILE"][..], more, &["-o handoff.md`"]].concat().join(" ");
        let mut way = way(&name, program.clone(), &arguments, Outcome::File(written.clone()));
        way.start.env.push(("PYTHONPATH".into(), python.clone().into()));
        ways.push(way);
    }
    ways
}

impl Way {
    /// Runs it, and gives what it wrote for the next one to read.
    fn words(&self) -> String {
        let told = self.start.once().1;
        match &self.outcome {
            Outcome::Export => parts(Path::new(told.lines().next().unwrap())),
            Outcome::File(path) => fs::read_to_string(path).unwrap(),
        }
    }
}

/// What the person said, by an export: its parts in order, without read marks.
fn parts(dir: &Path) -> String {
    let mut words = String::new();
    for n in 1.. {
        let more = if n == 1 { String::new() } else { format!("-{n}") };
        let Ok(part) = fs::read_to_string(dir.join(format!("01-user-messages{more}.md"))) else { break };
        words.extend(part.split_inclusive('\n').filter(|line| !line.starts_with("[[longhaul mark")));
    }
    words
}

/// How many messages of each kind are whole, of how many.
#[derive(Default)]
struct Kept {
    typed: [usize; 2],
    mid_turn: [usize; 2],
    long: [usize; 2],
    /// Live ones of which only the beginning is there.
    cut: usize,
    /// Of the rewound ones: there in whatever form.
    rewound: [usize; 2],
}

impl Kept {
    fn count(words: &str, said: &[Message]) -> Self {
        let words = plain(words);
        let mut kept = Self::default();
        for message in said {
            let text: String = serde_json::from_str(&format!("\"{}\"", message.text)).unwrap();
            let begun = words.contains(&message.serial);
            let whole = begun && words.contains(&plain(&text));
            let (of, there) = match message.kind {
                Said::Typed => (&mut kept.typed, whole),
                Said::MidTurn => (&mut kept.mid_turn, whole),
                Said::Long => (&mut kept.long, whole),
                Said::Rewound => (&mut kept.rewound, begun),
            };
            of[0] += usize::from(there);
            of[1] += 1;
            kept.cut += usize::from(message.kind != Said::Rewound && begun && !whole);
        }
        kept
    }

    fn told(&self) -> String {
        let of = |[kept, all]: [usize; 2]| format!("{kept} of {all}");
        let (typed, mid_turn, long, rewound) =
            (of(self.typed), of(self.mid_turn), of(self.long), of(self.rewound));
        format!("{typed} | {mid_turn} | {long} | {} | {rewound}", self.cut)
    }
}

/// With one space for whatever white space there is.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The verb writes its copy always; this is the rest of it. Says where it is.
pub fn without_copy(transcript: &str) {
    let host = Host::real();
    let store = Store::locate(&host, &[]).unwrap();
    let request = Request {
        transcript: transcript.into(),
        budget: BUDGET,
        no_copy: true,
        now_ms: host.now_ms(),
        ..Request::default()
    };
    println!("{}", export(&request, &store, &mut ()).unwrap().dir.display());
}
