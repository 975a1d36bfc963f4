//! What stands below a setup: the installed programs at work on a made-up session, and what is left to do.

use std::io::Write as _;
use std::path::Path;

use crate::base::shell::word;
use crate::base::text::clean;
use crate::host::{Host, process, terminal};
use crate::setup::report::Report;
use crate::store::atomic;

/// A session that has come far: its transcript, with nobody's words in it.
const SESSION: &str = include_str!("sample/session.jsonl");
/// How much of an export's first part is shown, in lines.
const SHOWN: usize = 14;
/// How long each program may take, in ms.
const LIMIT_MS: u64 = 5_000;

/// Shows what the installed programs make of the sample: its line, with this machine's settings, and where there
/// is no client to show more, how its wall comes about and an export. Nothing of it is kept.
pub fn show(report: &Report, host: &Host) {
    let _ = shown(report, host);
}

fn shown(report: &Report, host: &Host) -> std::io::Result<()> {
    let room = tempfile::Builder::new().prefix("longhaul-sample-").tempdir()?;
    let at = |name: &str| room.path().join(name);
    atomic::replace(&at("session.jsonl"), SESSION.as_bytes(), false)?;
    // It has no id, so nothing is kept of it.
    let payload = serde_json::json!({
        "session_id": "",
        "transcript_path": at("session.jsonl"),
        "model": { "id": "claude-opus-5-5", "display_name": "Opus 5.5" },
        "context_window": { "context_window_size": 1_000_000, "current_usage": {
            "input_tokens": 12, "cache_read_input_tokens": 829_500, "output_tokens": 938 } },
    });
    let payload = payload.to_string();
    let plain: &[(&str, &str)] = if terminal::stdout_takes_colour(host) { &[] } else { &[("NO_COLOR", "1")] };
    let run = |program: &str, args: &[&str], env: &[(&str, &str)]| {
        let ran = process::run(&report.programs.path.join(program), args, env, payload.as_bytes(), LIMIT_MS);
        ran.ok().filter(|ran| ran.code == Some(0)).map(|ran| ran.stdout).unwrap_or_default()
    };
    let mut out = std::io::stdout();
    let line = run("longhaul-statusline", &[], plain);
    if !line.is_empty() {
        out.write_all(b"\nThe gauge, for a made-up session under your settings:\n\n    ")?;
        out.write_all(&line)?;
    }
    if report.plugin.as_ref().is_none_or(|plugin| plugin.action != "absent") {
        return Ok(());
    }
    let wall = run("longhaul", &["explain", "--payload", "-"], &[("NO_COLOR", "1")]);
    indented(&mut out, "\nHow its wall comes about (longhaul explain):", &wall, usize::MAX)?;
    let (session, export) = (at("session.jsonl"), at("export"));
    let (Some(session), Some(export), Some(home)) = (session.to_str(), export.to_str(), room.path().to_str())
    else {
        return Ok(());
    };
    let args = ["export", "--transcript", session, "--out", export, "--budget", "100000"];
    let told = run("longhaul", &args, &[("HOME", home), ("CLAUDE_CONFIG_DIR", home)]);
    indented(
        &mut out,
        "\nIts export, for a fresh session to read in full (longhaul export):",
        &told,
        usize::MAX,
    )?;
    let mut parts: Vec<_> = fs_err::read_dir(export)?.flatten().map(|entry| entry.path()).collect();
    parts.sort();
    if let Some(first) = parts.iter().find(|path| path.is_file()) {
        indented(&mut out, "\nThe first part of it begins:", &fs_err::read(first)?, SHOWN)?;
    }
    Ok(())
}

fn indented(out: &mut impl std::io::Write, title: &str, text: &[u8], most: usize) -> std::io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}\n")?;
    for line in String::from_utf8_lossy(text).lines().take(most) {
        writeln!(out, "    {}", clean(line))?;
    }
    Ok(())
}

/// Says what is left to do where no setting draws the gauge and no session that has the plugin asks.
pub fn show_next(report: &Report, host: &Host) {
    if report.plugin.as_ref().is_some_and(|plugin| matches!(plugin.action, "added" | "updated" | "unchanged"))
    {
        let _ = writeln!(std::io::stdout(), "\nEvery new session of Claude Code shows it.");
        return;
    }
    let is_plugin = |dir: &&Path| dir.join(".claude-plugin/plugin.json").is_file();
    let exe = host.current_exe();
    let checkout = exe.as_deref().and_then(|exe| exe.ancestors().find(is_plugin));
    if let Some(checkout) = checkout.and_then(Path::to_str)
        && report.settings.action == "kept"
        && !host.has_env("CLAUDECODE")
    {
        let line = format!("claude --plugin-dir {}", word(checkout));
        let mut out = std::io::stdout();
        let _ = writeln!(
            out,
            "\nTo see it in Claude Code, start a session with the plugin:\n\n    {}",
            clean(&line)
        );
        let _ = writeln!(out, "\nREADME.md says how every session gets it.");
    }
}
