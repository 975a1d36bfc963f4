//! Input that nobody meant well: whatever it is, the silent programs exit 0, in time, and write only where
//! longhaul's files are.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Said, Sandbox, finish};

/// A hang would be over 1 s; tests allow ten times that, so that a busy machine fails none.
const HANG: Duration = Duration::from_secs(10);

#[track_caller]
fn unharmed(program: &str, said: &Said) {
    assert_eq!((said.code, &*said.stderr), (0, ""), "{program}: {said:?}");
    assert!(said.took < HANG, "{program} took {:?}", said.took);
    match program {
        "longhaul-statusline" => {
            assert!(said.stdout.lines().count() == 1 && !said.stdout.trim().is_empty(), "{said:?}");
        }
        _ => {
            assert!(
                said.stdout.is_empty() || serde_json::from_str::<Value>(&said.stdout).is_ok(),
                "{said:?}"
            );
        }
    }
}

fn both(sandbox: &Sandbox) {
    let path = sandbox.config().join(format!("projects/-work/{SESSION}.jsonl"));
    unharmed("longhaul-statusline", &sandbox.statusline(&sandbox.payload(200_000, None, Some(&path))));
    for event in
        ["SessionStart", "UserPromptSubmit", "PostToolBatch", "PreCompact", "PostCompact", "SessionEnd"]
    {
        unharmed("longhaul-hook", &sandbox.hook(&sandbox.event(event, &json!({ "prompt": "x" }))));
    }
}

/// A small generator, the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}

/// Changes a payload somewhere: bytes, cuts, repeats, values of other types.
fn mutated(dice: &mut Dice, base: &Value) -> Vec<u8> {
    const ODD: [&str; 16] = [
        "null",
        "-1",
        "1e400",
        "\"\\ud800\"",
        "[]",
        "{}",
        "true",
        "18446744073709551616",
        "\"../../x\"",
        "\"\\u0000\\u001b[2J\"",
        "0.0000001",
        "\"/dev/zero\"",
        "[[[[[[[[[[]]]]]]]]]]",
        "\"\"",
        "9007199254740993",
        "\"\u{202e}\u{1b}]0;x\u{7}\"",
    ];
    let mut text = base.to_string().into_bytes();
    for _ in 0..=dice.below(3) {
        let at = dice.below(text.len());
        match dice.below(5) {
            0 => text.truncate(at),
            1 => text[at] = u8::try_from(dice.below(256)).unwrap(),
            2 => {
                let piece = text[at..(at + 20).min(text.len())].to_vec();
                text.splice(at..at, piece);
            }
            3 => text.insert(at, [b'{', b'[', b'"', b'\\', 0, 0xff][dice.below(6)]),
            _ => {
                // The value behind a colon becomes another one.
                if let Some(colon) = text[at..].iter().position(|b| *b == b':') {
                    let from = at + colon + 1;
                    let len = text[from..].iter().position(|b| matches!(b, b',' | b'}')).unwrap_or(0);
                    text.splice(from..from + len, ODD[dice.below(ODD.len())].bytes());
                }
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text
}

fn files_outside(sandbox: &Sandbox) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![sandbox.root.path().to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs_err::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            // Its own: the state directory, and the run directory that is named there.
            let run = path.parent().is_some_and(|dir| dir.ends_with("tmp"))
                && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("longhaul-"));
            if path == sandbox.state() || run {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(sandbox.root.path()).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// How many inputs each program is given; `LONGHAUL_MUTATIONS` sets another number.
fn mutations() -> usize {
    std::env::var("LONGHAUL_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_500)
}

#[test]
fn mutated_payloads_and_events_harm_nothing() {
    let seed = std::env::var("LONGHAUL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_130);
    let sandbox = Sandbox::new().env("CLAUDE_PROJECT_DIR", "/nowhere");
    let path = sandbox.transcript(&Rows::new().turns(&[100_000, 150_000, 160_000]).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let before = files_outside(&sandbox);
    let mut payload = sandbox.payload(200_000, Some(160_000), Some(&path));
    payload["longhaul"] = json!({ "v": 1, "event": "start", "columns": 80, "figures": { "tokens": 5,
        "output_tokens": 6, "window": 200_000, "autoCompactThreshold": 167_000, "isAutoCompactEnabled": true } });
    let started = ["SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "SessionEnd"];
    let worked = ["PreToolUse", "PermissionRequest", "PostToolBatch", "SubagentStart", "SubagentStop"];
    let told = ["Notification", "Stop", "StopFailure"];
    let events: Vec<_> = started
        .iter()
        .chain(&worked)
        .chain(&told)
        .map(|name| {
            let more = json!({ "prompt": "x", "source": "resume", "context_tokens": 160_000,
                "trigger": "auto", "model": "claude-opus-5-5", "estimated_cache_write_usd": 2.0,
                "prompt_id": "p", "tool_name": "Bash", "tool_use_id": "t", "error": "rate_limit",
                "tool_input": { "command": "make", "timeout": 5_000 }, "tool_calls": [{ "tool_use_id": "t" }],
                "background_tasks": [{ "id": "b", "type": "shell", "status": "running", "command": "x" }],
                "notification_type": "permission_prompt", "message": "m", "agent_type": "general-purpose" });
            sandbox.event(name, &more)
        })
        .collect();
    let mut dice = Dice(seed);
    for round in 0..mutations() {
        let input = mutated(&mut dice, &payload);
        let said = sandbox.run("longhaul-statusline", &[], &input);
        // A stamp of the mod's is answered by nothing.
        let shown = String::from_utf8_lossy(&input);
        assert!(
            said.code == 0 && said.stderr.is_empty() && said.took < HANG,
            "seed {seed}: {shown}: {said:?}"
        );
        assert!(said.stdout.lines().count() <= 1, "seed {seed}: {shown}: {said:?}");
        assert!(!said.stdout.contains("\u{1b}[2J") && !said.stdout.contains('\u{7}'), "seed {seed}: {shown}");
        let input = mutated(&mut dice, &events[round % events.len()]);
        let said = sandbox.run("longhaul-hook", &[], &input);
        let shown = String::from_utf8_lossy(&input);
        assert!(
            said.code == 0 && said.stderr.is_empty() && said.took < HANG,
            "seed {seed}: {shown}: {said:?}"
        );
        let json = said.stdout.is_empty() || serde_json::from_str::<Value>(&said.stdout).is_ok();
        assert!(json, "seed {seed}: {shown}: {said:?}");
    }
    assert_eq!(files_outside(&sandbox), before, "nothing is written outside the state directory");
}

#[test]
fn an_odd_state_directory_harms_nothing() {
    // A file in its place.
    let sandbox = Sandbox::new();
    fs_err::write(sandbox.state(), "x").unwrap();
    both(&sandbox);
    // A loop of links in its place.
    #[cfg(unix)]
    {
        let sandbox = Sandbox::new();
        std::os::unix::fs::symlink(sandbox.state(), sandbox.state()).unwrap();
        both(&sandbox);
    }
    // No home at all.
    both(&Sandbox::new().without("HOME"));
    both(&Sandbox::new().env("HOME", "relative"));
    both(&Sandbox::new().env("HOME", "/dev/null"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_harms_nothing() {
    // Every write to /dev/full fails; as a directory it cannot even be entered.
    both(&Sandbox::new().env("CLAUDE_CONFIG_DIR", "/dev/full"));
    both(&Sandbox::new().env("CLAUDE_CONFIG_DIR", "/proc"));
}

// Yeachan-Heo/oh-my-claudecode#3621: a render that never came to its end.
#[cfg(unix)]
#[test]
fn a_fifo_a_device_and_a_directory_are_no_transcripts() {
    let sandbox = Sandbox::new();
    let fifo = sandbox.root.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for path in [&fifo, std::path::Path::new("/dev/zero"), sandbox.root.path()] {
        let said = sandbox.statusline(&sandbox.payload(200_000, Some(100_000), Some(path)));
        unharmed("longhaul-statusline", &said);
        assert!(said.stdout.contains("100k/167k"), "{said:?}");
        let mut event = sandbox.event("UserPromptSubmit", &json!({ "prompt": "x" }));
        event["transcript_path"] = json!(path);
        unharmed("longhaul-hook", &sandbox.hook(&event));
    }
}

// Yeachan-Heo/oh-my-claudecode#3621.
#[test]
fn standard_input_that_is_never_closed_holds_nothing_up() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[83_400]).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    sandbox.statusline(&sandbox.payload(200_000, Some(83_400), Some(&path)));
    for program in ["longhaul-statusline", "longhaul-hook"] {
        let mut command = sandbox.command(program);
        command.env("CLAUDE_CODE_SESSION_ID", SESSION);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let open = child.stdin.take();
        let said = finish(child);
        unharmed(program, &said);
        if program == "longhaul-statusline" {
            assert!(said.stdout.contains("83.4k/167k"), "the last good figures are drawn: {said:?}");
        }
        drop(open);
    }
}

#[cfg(feature = "testing")]
#[test]
fn a_panic_inside_shows_nowhere_and_leaves_a_trace() {
    let sandbox = Sandbox::new().env("LONGHAUL_TEST_PANIC", "1");
    fs_err::create_dir_all(sandbox.state()).unwrap();
    unharmed("longhaul-statusline", &sandbox.statusline(&json!({})));
    unharmed("longhaul-hook", &sandbox.hook(&json!({})));
    unharmed("longhaul-watch", &sandbox.run("longhaul-watch", &[], b""));
    let trace = fs_err::read_to_string(sandbox.state().join("trace.log")).unwrap();
    assert_eq!(trace.lines().count(), 3, "{trace}");
}

/// A project's settings can move the configuration into the project: nothing is read or written there.
#[test]
fn a_state_directory_inside_the_project_is_not_used() {
    let sandbox = Sandbox::new();
    let trap = sandbox.work().join("trap");
    fs_err::create_dir_all(&trap).unwrap();
    let sandbox = sandbox.env("CLAUDE_CONFIG_DIR", trap.to_str().unwrap());
    both(&sandbox);
    assert_eq!(fs_err::read_dir(&trap).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn everything_that_is_kept_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    sandbox.transcript(&Rows::new().turns(&[160_000; 400]).rows);
    both(&sandbox);
    let mut open = vec![sandbox.state()];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        let mode = fs_err::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            open.extend(fs_err::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 2);
}

// CC#80708, CC#73785, danielmiessler/LifeOS#1998: a redraw every second, and each ended in the middle.
#[cfg(unix)]
#[test]
fn a_redraw_that_is_ended_is_gone_at_once_and_leaves_no_lock() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::os::unix::process::ExitStatusExt as _;
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[83_400]).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let payload = sandbox.payload(200_000, None, Some(&path)).to_string();
    for round in 0..60 {
        let mut command = sandbox.command("longhaul-statusline");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = std::io::Write::write_all(&mut stdin, payload.as_bytes());
        // Every other one is still waiting for the end of its input.
        if round % 2 == 0 {
            drop(stdin);
            std::thread::sleep(Duration::from_micros(round * 50));
        }
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let start = std::time::Instant::now();
        let status = child.wait().unwrap();
        assert!(start.elapsed() < HANG && (status.signal() == Some(15) || status.success()), "{status}");
    }
    let names = || {
        let files = fs_err::read_dir(sandbox.state().join("gauge")).unwrap();
        files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert!(
        names().iter().all(|name| name.starts_with(SESSION) || name.starts_with(".lh-")),
        "{:?}",
        names()
    );
    assert!(sandbox.statusline(&json!({ "session_id": SESSION })).stdout.contains("83.4k"));
    // What a kill in the middle of a write leaves is taken away a day later.
    fs_err::write(sandbox.state().join("gauge/.lh-left"), "half").unwrap();
    let home = sandbox.root.path().join("home");
    let host = longhaul::host::Host::fixed(&[("HOME", home.to_str().unwrap())], 0);
    let store = longhaul::store::Store::locate(&host, &[]).unwrap();
    let now = longhaul::host::clock::now_ms();
    store.prune(now + 3_600_000, 10_000);
    assert!(names().iter().any(|name| name == ".lh-left"), "another process may be writing it");
    store.prune(now + 2 * 24 * 3_600_000, 10_000);
    assert!(names().iter().all(|name| name.starts_with(SESSION)), "{:?}", names());
}

// CC#84124, ccstatusline#384: copies of a slow line piled up.
#[test]
fn twenty_redraws_at_once_all_draw() {
    let sandbox = Sandbox::new();
    let path = sandbox.transcript(&Rows::new().turns(&[83_400]).rows);
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let payload = sandbox.payload(200_000, None, Some(&path));
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..20).map(|_| scope.spawn(|| sandbox.statusline(&payload))).collect();
        for run in runs {
            let said = run.join().unwrap();
            unharmed("longhaul-statusline", &said);
            assert!(said.stdout.contains("83.4k"), "{said:?}");
        }
    });
}

// loopdive/js2#3658: work on a repository that hangs made the line vanish.
#[cfg(unix)]
#[test]
fn a_repository_is_never_looked_into() {
    let sandbox = Sandbox::new();
    let git = sandbox.work().join(".git");
    let made = std::process::Command::new("mkfifo").arg(&git).status().unwrap();
    assert!(made.success());
    let said = sandbox.statusline(&sandbox.payload(200_000, Some(100_000), None));
    unharmed("longhaul-statusline", &said);
    assert!(said.stdout.contains("100k/167k"), "{said:?}");
}

// cobra91/better-ccusage#54: a transcript of more than 512 MB was read whole, or not at all.
#[cfg(unix)]
#[test]
fn the_end_of_a_huge_transcript_is_found_at_once() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let sandbox = Sandbox::new();
    sandbox.hook(&sandbox.event("SessionStart", &json!({ "source": "startup" })));
    let path = sandbox.transcript(&Rows::new().turns(&[10_000]).rows);
    let end = Rows::new().turns(&[83_000, 83_400]).rows;
    let end = end.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    // A hole of 600 MB takes no place on the disk, and as long to read as anything else.
    let mut file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(600 << 20)).unwrap();
    file.write_all(format!("\n{end}\n").as_bytes()).unwrap();
    let said = sandbox.statusline(&sandbox.payload(200_000, None, Some(&path)));
    unharmed("longhaul-statusline", &said);
    assert!(said.stdout.contains("83.4k/167k"), "{said:?}");
}
