//! Other status lines on the same payloads and transcripts, in the same minutes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::scene::Scene;
use super::timing::{Start, in_turns};

const ROUNDS: usize = 21;
const FRESH: usize = 5;
const KB: u64 = 1 << 10;

/// One status line.
struct Peer {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
}

pub fn run(programs: &str, floor: &str, peers: &str, work: &str) {
    let ours = Path::new(programs);
    let peers = all(ours, Path::new(peers));
    let work = Path::new(work);

    let scene = scene(&work.join("usual"));
    let short = session(&scene, ours, 1, 400 * KB);
    let empty = scene.start("", floor, &Value::Null);
    let starts: Vec<Start> = peers.iter().map(|peer| peer.start(&scene, &short)).chain([empty]).collect();
    let usual = in_turns(&starts, ROUNDS);

    let long = session(&scene, ours, 2, 100 * KB * KB);
    let mut firsts = vec![Vec::new(); peers.len()];
    let mut nexts = firsts.clone();
    for n in 0..FRESH {
        // A home in which nobody has kept anything yet.
        let fresh = self::scene(&work.join(format!("fresh-{n}")));
        let long = moved(&scene, &fresh, ours, &long);
        for (at, peer) in peers.iter().enumerate() {
            let start = peer.start(&fresh, &long);
            firsts[at].push(start.once().0);
            nexts[at].push(start.once().0);
        }
    }

    let cases = cases();
    let heads: Vec<String> = cases.iter().map(|case| format!("{}: {}", case.what, case.truth)).collect();
    println!(
        "| status line | 0.4 MB, median of {ROUNDS} | 100 MB, first / next | peak at 100 MB | {} |",
        heads.join(" | ")
    );
    println!("|---|---|---|---|{}", "---|".repeat(cases.len()));
    for (at, peer) in peers.iter().enumerate() {
        let peak = peer.start(&scene, &long).peak() as f64 / 1024.0;
        let told: Vec<String> = cases
            .iter()
            .enumerate()
            .map(|(n, case)| {
                let scene = self::scene(&work.join(format!("case-{n}")));
                let (said, right) = case.ask(&scene, ours, peer);
                format!("{said} {}", if right { "right" } else { "**wrong**" })
            })
            .collect();
        println!(
            "| {} | {:.2} ms | {:.1} / {:.1} ms | {peak:.1} MB | {} |",
            peer.name,
            usual[at].ms(),
            median(&mut firsts[at]),
            median(&mut nexts[at]),
            told.join(" | ")
        );
    }
    println!("\nan empty program in the same turns: {:.2} ms", usual[peers.len()].ms());
}

fn median(times: &mut [u64]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e6
}

/// Ours, and those that were installed.
fn all(ours: &Path, peers: &Path) -> Vec<Peer> {
    let modules = peers.join("node_modules");
    let node: Vec<OsString> = vec![modules.join("ccstatusline/dist/ccstatusline.js").into()];
    let list = [
        ("longhaul", ours.join("longhaul-statusline"), Vec::new()),
        ("ccstatusline 2.2.30 (Node)", on_path("node"), node),
        ("ccline 1.1.2 (Rust)", modules.join("@cometix/ccline-linux-x64/ccline"), Vec::new()),
        (
            "ccusage 20.0.24 statusline --offline (Rust)",
            modules.join("@ccusage/ccusage-linux-x64/bin/ccusage"),
            vec!["statusline".into(), "--offline".into()],
        ),
        ("claude-code-status-line 1.4.0 (Rust)", peers.join("bin/claude-code-status-line"), Vec::new()),
    ];
    let mut peers = Vec::new();
    for (name, program, arguments) in list {
        let script = arguments.first().map(PathBuf::from).filter(|path| path.is_absolute());
        if program.is_file() && script.is_none_or(|script| script.is_file()) {
            peers.push(Peer { name, program, arguments });
        } else {
            println!("{name} is not there: left out");
        }
    }
    peers
}

fn on_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|dir| dir.join(name)).filter(|file| file.is_file());
    found.next().unwrap_or_default()
}

impl Peer {
    fn start(&self, scene: &Scene, payload: &Value) -> Start {
        let mut start = scene.start(self.name, &self.program, payload);
        start.arguments.clone_from(&self.arguments);
        // Some keep caches there.
        start.env.push(("TMPDIR".into(), scene.home.join("tmp").into()));
        start
    }
}

/// A home, with the one peer that shows no percent by itself told to show both it knows.
fn scene(work: &Path) -> Scene {
    let scene = Scene::new(work);
    fs::create_dir_all(scene.home.join("tmp")).unwrap();
    fs::create_dir_all(scene.home.join(".config/ccstatusline")).unwrap();
    let widgets = ["model", "context-length", "context-percentage", "context-percentage-usable"];
    let line: Vec<Value> =
        widgets.iter().zip(1..).map(|(kind, id)| json!({"id": format!("{id}"), "type": kind})).collect();
    scene.write(".config/ccstatusline/settings.json", &json!({"version": 3, "lines": [line, [], []]}));
    scene
}

fn id(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

/// A session of that much transcript; gives its payload.
fn session(scene: &Scene, ours: &Path, n: usize, size: u64) -> Value {
    let (path, _) = scene.transcript(&id(n), size);
    begin(scene, ours, &id(n));
    scene.payload(&id(n), &path, 150_000)
}

fn begin(scene: &Scene, ours: &Path, id: &str) {
    scene.start("", ours.join("longhaul-hook"), &scene.event("SessionStart", id, Path::new("/none"))).once();
}

/// The same session in another home.
fn moved(from: &Scene, to: &Scene, ours: &Path, payload: &Value) -> Value {
    let old = Path::new(payload["transcript_path"].as_str().unwrap());
    let new = to.home.join(old.strip_prefix(&from.home).unwrap());
    fs::hard_link(old, &new).unwrap();
    begin(to, ours, payload["session_id"].as_str().unwrap());
    to.payload(payload["session_id"].as_str().unwrap(), &new, 150_000)
}

/// A payload whose truth is known: measured against the client.
struct Case {
    what: &'static str,
    truth: &'static str,
    /// Set in the person's settings.
    settings: Value,
    env: &'static [(&'static str, &'static str)],
    /// Tokens in use by the last response.
    used: u64,
    /// What a compaction after it left.
    left: Option<u64>,
    /// What any right answer holds.
    right: fn(&str) -> bool,
}

fn cases() -> [Case; 4] {
    let usual =
        Case { what: "", truth: "", settings: json!({}), env: &[], used: 0, left: None, right: |_| false };
    [
        Case {
            what: "`autoCompactWindow` 200000, 70k in use",
            truth: "42 %",
            settings: json!({"autoCompactWindow": 200_000}),
            used: 70_000,
            right: |said| near(said, 41.9),
            ..usual
        },
        Case {
            what: "window 400000 and 30 % by variables, 100k in use",
            truth: "88 %",
            env: &[("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "400000"), ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "30")],
            used: 100_000,
            right: |said| near(said, 87.7),
            settings: json!({}),
            ..usual
        },
        Case {
            what: "just compacted",
            truth: "28.8k",
            used: 468_102,
            left: Some(28_759),
            right: |said| {
                ["28.8k", "28.7k", "28.76k", "29k", "28,759", "28759"].iter().any(|form| said.contains(form))
            },
            settings: json!({}),
            ..usual
        },
        Case {
            what: "`DISABLE_COMPACT=1`, 830k in use",
            truth: "85 %",
            env: &[("DISABLE_COMPACT", "1")],
            used: 830_450,
            right: |said| near(said, 85.0),
            settings: json!({}),
            ..usual
        },
    ]
}

impl Case {
    /// What a status line says of it, shortened, and whether that is right.
    fn ask(&self, scene: &Scene, ours: &Path, peer: &Peer) -> (String, bool) {
        let path = scene.home.join(".claude/projects/-home-work-project").join(id(9) + ".jsonl");
        fs::write(&path, self.transcript()).unwrap();
        let text = fs::read_to_string(scene.home.join(".claude/settings.json")).unwrap();
        let mut settings: Value = serde_json::from_str(&text).unwrap();
        for (key, value) in self.settings.as_object().unwrap() {
            settings[key] = value.clone();
        }
        scene.write(".claude/settings.json", &settings);
        begin(scene, ours, &id(9));
        let mut payload = scene.payload(&id(9), &path, self.used);
        if self.left.is_some() {
            // As the client writes it until the next response.
            let window = &mut payload["context_window"];
            window["current_usage"] = Value::Null;
            window["used_percentage"] = Value::Null;
            window["remaining_percentage"] = Value::Null;
            window["total_input_tokens"] = json!(0);
            window["total_output_tokens"] = json!(0);
            payload["exceeds_200k_tokens"] = json!(false);
        }
        let mut start = peer.start(scene, &payload);
        start.env.extend(self.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        let said = plain(&start.once().1);
        (brief(&said, self.left.is_some()), (self.right)(&said))
    }

    fn transcript(&self) -> String {
        let now = jiff::Timestamp::now();
        let at = |seconds: i64| (now - jiff::SignedDuration::from_secs(seconds)).to_string();
        let row = |kind: &str, n: u64, more: Value| {
            let parent = if n == 1 { Value::Null } else { json!(format!("row-{}", n - 1)) };
            let mut row = json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/w",
                "sessionId": id(9), "version": "2.1.332", "gitBranch": "", "type": kind,
                "uuid": format!("row-{n}"), "timestamp": at(60 - i64::try_from(n).unwrap())});
            row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            row.to_string() + "\n"
        };
        let prompt = json!({"message": {"role": "user", "content": "Please begin."}, "promptId": "p"});
        let usage = json!({"input_tokens": 4, "output_tokens": 500, "cache_creation_input_tokens": 1_500,
            "cache_read_input_tokens": self.used - 2_004, "service_tier": "standard"});
        let answer = json!({"requestId": "req_1", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "claude-opus-5-5", "content": [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn", "usage": usage}});
        let mut text = row("user", 1, prompt) + &row("assistant", 2, answer);
        if let Some(left) = self.left {
            text += &row(
                "system",
                3,
                json!({"subtype": "compact_boundary", "parentUuid": null, "logicalParentUuid": "row-2",
                "content": "Conversation compacted", "isMeta": false, "level": "info", "compactMetadata":
                {"trigger": "auto", "preTokens": self.used, "postTokens": left}}),
            );
            text += &row(
                "user",
                4,
                json!({"isCompactSummary": true, "isVisibleInTranscriptOnly": true,
                "message": {"role": "user", "content": "What was done so far."}}),
            );
        }
        text
    }
}

/// Whether one of the percentages said is within one of this.
fn near(said: &str, truth: f64) -> bool {
    percentages(said).any(|percent| (percent - truth).abs() <= 1.0)
}

fn percentages(said: &str) -> impl Iterator<Item = f64> {
    said.match_indices('%').filter_map(|(end, _)| {
        let before = said[..end].trim_end();
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        before[before.trim_end_matches(digits).len()..].parse().ok()
    })
}

/// The percentages of it, or its counts.
fn brief(said: &str, counts: bool) -> String {
    let percents: Vec<String> = percentages(said).map(|percent| format!("{percent} %")).collect();
    if !counts && !percents.is_empty() {
        return percents.join(", ");
    }
    let shown: String = said.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
    if shown.is_empty() {
        "nothing".to_owned()
    } else {
        format!("`{}`", shown.chars().take(60).collect::<String>())
    }
}

/// Without escape sequences and what else has no width.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\x1b' {
            if rest.next_if_eq(&'[').is_some() {
                while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
            }
        } else {
            plain.push(if c == '\u{a0}' { ' ' } else { c });
        }
    }
    plain
}
