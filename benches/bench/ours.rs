//! Our own programs against their targets.

use std::path::{Path, PathBuf};
use std::time::Instant;

use longhaul::client::transcript::Progress;
use longhaul::host::Host;
use longhaul::store::Store;
use longhaul::store::fleet::Fleet;
use longhaul::store::incidents::Kind;
use serde_json::{Value, json};

use super::scene::Scene;
use super::timing::{Start, Times, in_turns};

const ROUNDS: usize = 200;
const MB: u64 = 1 << 20;

pub fn run(programs: &str, floor: &str, launcher: &str, work: &str) {
    let scene = Scene::new(Path::new(work));
    let line = Path::new(programs).join("longhaul-statusline");
    let hook = Path::new(programs).join("longhaul-hook");
    let session = |name: &str, size| Session::new(&scene, name, size, &hook);
    let small = session("00000000-0000-4000-8000-000000000001", MB);
    let mut large = session("00000000-0000-4000-8000-000000000002", 1024 * MB);
    println!("transcripts of {} and {} bytes", small.bytes, large.bytes);

    first_redraws(&scene, &mut large, &line);
    small.catch_up(&scene, &line);
    large.catch_up(&scene, &line);

    let prompt = |session: &Session| scene.event("UserPromptSubmit", &session.id, &session.path);
    let large_payload = large.payload(&scene);
    let grown = session("00000000-0000-4000-8000-000000000004", MB);
    grown.catch_up(&scene, &line);
    let mut after = scene.start("redraw after a response", &line, &grown.payload(&scene));
    after.inputs.push(scene.payload(&grown.id, &grown.path, 150_100).to_string().into_bytes());
    after.grows = Some(grown.path.clone());
    let shell = which("sh");
    let mut through = scene.start("the hook through the launcher", &shell, &prompt(&large));
    through.arguments = vec![launcher.into(), "longhaul-hook".into()];
    install(&scene, &hook, launcher);
    let mut colon = scene.start("sh -c :", &shell, &Value::Null);
    colon.arguments = vec!["-c".into(), ":".into()];
    let mut beat = scene.start("hook PreToolUse, a beat alone", &hook, &Value::Null);
    beat.inputs = (0..ROUNDS).map(|at| call(&scene, &small, at).to_string().into_bytes()).collect();
    let starts = [
        scene.start("an empty program", floor, &large_payload),
        scene.start("redraw, 1 MB", &line, &small.payload(&scene)),
        scene.start("redraw, 1 GB", &line, &large_payload),
        after,
        scene.start("redraw for the mod, 1 GB", &line, &large.for_the_mod(&scene)),
        scene.start("hook UserPromptSubmit, 1 GB", &hook, &prompt(&large)),
        through,
        colon,
        beat,
    ];
    let others = Scene::new(&Path::new(work).join("others"));
    let beside = Session::new(&others, "00000000-0000-4000-8000-000000000005", MB, &hook);
    beside.catch_up(&others, &line);
    tell_of_others(&others);
    let starts: Vec<Start> = starts
        .into_iter()
        .chain([others.start("redraw that tells of others", &line, &beside.payload(&others))])
        .collect();
    assert!(starts[9].once().1.contains("48 stalled"), "{}", starts[9].once().1);
    let times = in_turns(&starts, ROUNDS);
    println!("\nmedians of {ROUNDS}, taking turns, all files in the cache");
    for (start, times) in starts.iter().zip(&times) {
        let (median, least, busy) = (times.ms(), times.least_ms(), times.busy_ms());
        println!("  {:<32} {median:7.3} ms (least {least:.3}, processor {busy:.3})", start.name);
    }
    judge(&times);
    for start in &starts[..6] {
        let target = if start.program == line { Some(4096.0) } else { None };
        say(&format!("peak memory, {}", start.name), start.peak() as f64, "KiB", target);
    }
    measurement(&scene);
    super::fleet::run(&scene, Path::new(programs));
}

/// As many sessions as are ever named to status lines need a look.
fn tell_of_others(scene: &Scene) {
    let host = Host::fixed(&[("HOME", scene.home.to_str().unwrap())], 0);
    let store = Store::locate(&host, &[]).unwrap();
    let kind = |at| if at % 4 == 0 { Kind::Waiting } else { Kind::Stale };
    let all = (0..64).map(|at| (format!("10000000-0000-4000-8000-{at:012}"), kind(at)));
    store.save_fleet(&Fleet { until_ms: i64::MAX, ..Fleet::of(all, false) }).unwrap();
}

/// A tool that is about to run, as the client says it.
fn call(scene: &Scene, session: &Session, at: usize) -> Value {
    let mut event = scene.event("PreToolUse", &session.id, &session.path);
    event["prompt_id"] = json!("8950696c-9a27-46d1-a491-6163c493716e");
    event["tool_name"] = json!("Bash");
    event["tool_use_id"] = json!(format!("toolu_01A09q90qw90lq91783{at:04}"));
    event["tool_input"] = json!({"command": "cargo test --locked", "description": "Runs the tests"});
    event
}

fn judge(times: &[Times]) {
    let [empty, small, large, after, moved, hook, through, colon, beat, others] = times else { return };
    let over = |what: &Times, floor: &Times| what.median() / floor.median();
    let busier = |what: &Times| what.busy_ms() / empty.busy_ms();
    println!();
    say("redraw, 1 MB / an empty program", over(small, empty), "times", Some(1.5));
    say("redraw, 1 GB / an empty program", over(large, empty), "times", Some(1.5));
    let apart = (over(large, small) - 1.0).abs() * 100.0;
    say("redraw, 1 GB and 1 MB apart", apart, "%", Some(10.0));
    say("redraw that tells of others / an empty program", over(others, empty), "times", Some(1.5));
    say("redraw that tells of others / one that does not", over(others, small), "times", None);
    say("redraw after a response / an empty program", over(after, empty), "times", Some(1.5));
    say("redraw for the mod / an empty program", over(moved, empty), "times", Some(1.5));
    say("hook, 1 GB / an empty program", over(hook, empty), "times", Some(1.5));
    say("hook, a beat alone / an empty program", over(beat, empty), "times", Some(1.5));
    say("  of processor time: redraw, 1 GB", busier(large), "times", None);
    say("  of processor time: redraw after a response", busier(after), "times", None);
    say("  of processor time: redraw for the mod", busier(moved), "times", None);
    say("  of processor time: hook, 1 GB", busier(hook), "times", None);
    say("  of processor time: a beat alone", busier(beat), "times", None);
    say("launcher and hook / sh -c :", over(through, colon), "times", None);
    say("launcher alone (less the hook)", through.ms() - hook.ms(), "ms", None);
    say("  of processor time", through.busy_ms() - hook.busy_ms(), "ms", None);
    say("  and sh -c : takes of it", colon.busy_ms(), "ms", None);
}

/// A figure, and whether it is at most what it should be.
pub fn say(what: &str, is: f64, unit: &str, most: Option<f64>) {
    let verdict = most.map_or_else(String::new, |most| {
        format!("   target <= {most} {unit}: {}", if is <= most { "reached" } else { "MISSED" })
    });
    println!("  {what:<48} {is:9.2} {unit}{verdict}");
}

/// A session with its transcript, after its start.
struct Session {
    id: String,
    path: PathBuf,
    bytes: u64,
}

impl Session {
    fn new(scene: &Scene, id: &str, size: u64, hook: &Path) -> Self {
        let (path, truth) = scene.transcript(id, size);
        // The start of a session comes before there is a transcript; it makes the place for the records.
        scene.start("start", hook, &scene.event("SessionStart", id, Path::new("/none"))).once();
        Self { id: id.to_owned(), path, bytes: truth.bytes }
    }

    fn payload(&self, scene: &Scene) -> Value {
        scene.payload(&self.id, &self.path, 150_000)
    }

    /// As the mod asks for it.
    fn for_the_mod(&self, scene: &Scene) -> Value {
        let mut payload = self.payload(scene);
        payload["longhaul"] = json!({"v": 1, "event": "step", "columns": 156, "figures": {
            "tokens": 149_500, "output_tokens": 500, "window": 1_000_000, "autoCompactThreshold": 967_000,
            "isAutoCompactEnabled": true, "rawMaxTokens": 1_000_000, "autocompactSource": "auto"}});
        payload
    }

    /// Redraws until the transcript is measured to its end.
    fn catch_up(&self, scene: &Scene, line: &Path) {
        let redraw = scene.start("redraw", line, &self.payload(scene));
        for _ in 0..5_000 {
            if redraw.once().1.contains("tc ") {
                return;
            }
        }
        panic!("{} was never measured to its end", self.path.display());
    }
}

/// The first redraw of a session whose long transcript nobody has measured yet, as after `--resume`.
fn first_redraws(scene: &Scene, large: &mut Session, line: &Path) {
    let redraw = scene.start("redraw", line, &large.payload(scene));
    let records = scene.home.join(".claude/longhaul/gauge");
    let mut times: Vec<u64> = (0..21)
        .map(|_| {
            for entry in std::fs::read_dir(&records).unwrap().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&large.id) {
                    std::fs::remove_file(entry.path()).unwrap();
                }
            }
            redraw.once().0
        })
        .collect();
    times.sort_unstable();
    println!("\nthe first redraw on 1 GB, 21 times");
    say("median", times[10] as f64 / 1e6, "ms", Some(60.0));
    say("longest", times[20] as f64 / 1e6, "ms", None);
    say("peak memory", redraw.peak() as f64, "KiB", None);
}

/// The whole of 256 MB, measured from the beginning.
fn measurement(scene: &Scene) {
    let (path, truth) = scene.transcript("00000000-0000-4000-8000-000000000003", 256 * MB);
    let file = std::fs::File::open(&path).unwrap();
    let mut speeds: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let mut progress = Progress::default();
            assert!(progress.advance(&file, None).unwrap().complete);
            assert_eq!(progress.figures().responses, truth.responses);
            truth.bytes as f64 / 1e9 / start.elapsed().as_secs_f64()
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    println!("\na full measurement of {} bytes, one core, 9 times", truth.bytes);
    let verdict = if speeds[4] >= 1.0 { "reached" } else { "MISSED" };
    println!("  {:<48} {:9.2} GB/s   target >= 1 GB/s: {verdict}", "median", speeds[4]);
    let own = std::env::current_exe().unwrap();
    let example = own.with_file_name("measure-transcript");
    let mut start: Start = scene.start("measure", example, &Value::Null);
    start.arguments = vec![path.into(), "--no-serde".into()];
    say("peak memory", start.peak() as f64, "KiB", Some(16.0 * 1024.0));
}

/// Puts the programs where the launcher looks first.
fn install(scene: &Scene, hook: &Path, launcher: &str) {
    let text = std::fs::read_to_string(launcher).unwrap();
    let version = text.lines().find_map(|line| line.strip_prefix("version=")).unwrap();
    let bin = scene.home.join(".claude/longhaul/bin").join(version);
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy(hook, bin.join("longhaul-hook")).unwrap();
}

fn which(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file()).unwrap()
}
