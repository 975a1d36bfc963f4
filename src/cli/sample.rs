//! What stands below a setup: the gauge of a made-up session, and what is left to do.

use std::io::Write as _;
use std::path::Path;

use crate::base::shell::word;
use crate::base::text::clean;
use crate::host::{Host, process, terminal};
use crate::setup::report::Report;

/// A session that has come far, as the client would describe it. It has no id, so nothing is kept of it.
const SAMPLE: &str = r#"{"session_id":"","model":{"id":"claude-opus-5-5","display_name":"Opus 5.5"},
    "context_window":{"context_window_size":1000000,
    "current_usage":{"input_tokens":12,"cache_read_input_tokens":829500,"output_tokens":938}}}"#;

/// Shows what the installed program draws for the sample, with this machine's settings.
pub fn show_gauge(programs: &Path, host: &Host) {
    let program = programs.join("longhaul-statusline");
    let plain: &[(&str, &str)] = if terminal::stdout_takes_colour(host) { &[] } else { &[("NO_COLOR", "1")] };
    let drawn = process::run(&program, &[], plain, SAMPLE.as_bytes(), 5_000);
    let line = drawn.ok().filter(|ran| ran.code == Some(0)).map(|ran| ran.stdout).unwrap_or_default();
    if !line.is_empty() {
        let mut out = std::io::stdout();
        let _ = out.write_all(b"\nThe gauge, for a made-up session under your settings:\n\n    ");
        let _ = out.write_all(&line);
    }
}

/// Says what is left to do where no setting draws the gauge and no session that has the plugin asks.
pub fn show_next(report: &Report, host: &Host) {
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
