//! Static checks: what `claude plugin validate` lets pass, and what it cannot know.

use std::path::Path;

use serde_json::Value;

use super::file;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// PostToolUse and PostToolUseFailure are not among them: each event costs a call some 10 ms, and PostToolBatch
/// tells the same.
const EVENTS: [&str; 13] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
];

fn json(path: &str) -> Value {
    serde_json::from_str(&file(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Event, and the hook's own object.
fn hooks() -> Vec<(String, Value)> {
    let all = json("hooks/hooks.json");
    let events = all["hooks"].as_object().unwrap();
    let of_event = |(event, groups): (&String, &Value)| {
        let groups = groups.as_array().unwrap().clone();
        let hooks = groups.into_iter().flat_map(|group| group["hooks"].as_array().unwrap().clone());
        hooks.map(|hook| (event.clone(), hook)).collect::<Vec<_>>()
    };
    events.iter().flat_map(of_event).collect()
}

#[test]
fn every_event_is_wired_once() {
    let mut wired: Vec<_> = hooks().into_iter().map(|(event, _)| event).collect();
    let mut wanted = EVENTS.map(str::to_owned).to_vec();
    wired.sort();
    wanted.sort();
    assert_eq!(wired, wanted);
}

// The array form of a hook's command did not fire in 2.1.267.
#[test]
fn a_hook_is_one_string_for_the_shell() {
    for (event, hook) in hooks() {
        assert_eq!(hook["type"], "command", "{event}");
        let command = hook["command"].as_str().unwrap_or_else(|| panic!("{event}: not a string"));
        assert!(hook.get("args").is_none(), "{event}: the exec form needs a newer client");
        assert!(command.contains(r#"sh "${CLAUDE_PLUGIN_ROOT}/hooks/launcher""#), "{event}: {command}");
        // What a program dies of stays there: no signal and no exit code reaches the client.
        assert!(command.ends_with("; exit 0") || command.ends_with(" || :"), "{event}: {command}");
        assert!(command.contains(" longhaul-hook"), "{event}: {command}");
    }
}

// plastic-labs/claude-honcho#59: milliseconds were written; vercel/vercel-plugin#129: there was none.
#[test]
fn every_hook_has_a_timeout_of_seconds() {
    for (event, hook) in hooks() {
        let seconds = hook["timeout"].as_u64().unwrap_or_else(|| panic!("{event}: no timeout"));
        assert!((1..=10).contains(&seconds), "{event}: {seconds}");
    }
}

#[test]
fn the_module_is_wired_and_there() {
    let modules = json("hooks/hooks.json")["modules"].clone();
    assert_eq!(modules, serde_json::json!(["./register.ts"]));
    assert!(file("hooks/register.ts").contains("export const register"));
}

/// Any other key makes the client drop the whole file without a word.
#[test]
fn the_monitors_hold_nothing_but_known_keys() {
    let monitors = json("monitors/monitors.json");
    let monitors = monitors.as_array().unwrap();
    assert_eq!(monitors.len(), 1);
    for monitor in monitors {
        let keys: Vec<_> = monitor.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(keys.iter().all(|key| ["name", "command", "description", "when"].contains(key)), "{keys:?}");
        let command = monitor["command"].as_str().unwrap();
        assert!(command.starts_with("exec "), "a shell in between would not pass signals on: {command}");
        assert!(
            command.ends_with(r#"sh "${CLAUDE_PLUGIN_ROOT}/hooks/launcher" longhaul-watch"#),
            "{command}"
        );
        // Else glibc's allocator keeps what an export took, for as long as the session lives.
        assert!(command.starts_with("exec env MALLOC_TRIM_THRESHOLD_=131072 "), "{command}");
        assert_eq!(monitor["when"], "always");
    }
}

#[test]
fn one_version_everywhere() {
    assert_eq!(json(".claude-plugin/plugin.json")["version"], VERSION);
    let launcher = file("hooks/launcher");
    let lines: Vec<_> = launcher.lines().filter(|line| line.starts_with("version=")).collect();
    assert_eq!(lines, [format!("version={VERSION}")]);
}

#[test]
fn the_manifest_says_what_runs_and_what_leaves() {
    let plugin = json(".claude-plugin/plugin.json");
    assert_eq!(plugin["network"]["hosts"], serde_json::json!([]));
    let description = plugin["description"].as_str().unwrap();
    for said in EVENTS.iter().chain(&["~/.claude/longhaul", "Nothing leaves the machine"]) {
        assert!(description.contains(said), "{said}");
    }
    let market = json(".claude-plugin/marketplace.json");
    assert_eq!(market["plugins"][0]["name"], plugin["name"]);
    assert!(market["plugins"][0].get("version").is_none(), "the manifest alone says the version");
}

#[test]
fn the_icon_is_a_square_png() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".claude-plugin/icon.png");
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(side(16), side(20));
    assert!((512..=2048).contains(&side(16)));
}

// AgriciDaniel/claude-seo#199: a top-level `bin/` is refused where plugins are hosted.
#[test]
fn there_is_no_bin_directory() {
    assert!(!Path::new(env!("CARGO_MANIFEST_DIR")).join("bin").exists());
}

#[test]
fn a_skill_calls_the_launcher_by_the_plugins_path() {
    for skill in ["setup", "handoff", "doctor"] {
        let text = file(&format!("skills/{skill}/SKILL.md"));
        let calls = text.matches("/hooks/launcher").count();
        assert!(calls > 0);
        assert_eq!(text.matches(r#"sh "${CLAUDE_PLUGIN_ROOT}/hooks/launcher" longhaul "#).count(), calls);
    }
}

/// A turn must never wait for the program: no hook but the session's last one awaits a run.
#[test]
fn the_module_waits_for_no_program_in_a_turn() {
    let module = file("hooks/register.ts");
    let (_, handlers) = module.split_once("export const register").unwrap();
    for line in handlers.lines().filter(|line| line.contains("refresh(")) {
        assert!(line.contains("void refresh(") || line.contains("() => refresh("), "{line}");
    }
    let waits = handlers.matches("await running").count();
    let (_, at_end) = handlers.split_once("on('session.end'").unwrap();
    assert_eq!((waits, at_end.matches("await running").count()), (1, 1));
}
