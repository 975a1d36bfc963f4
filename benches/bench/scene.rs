//! A person's machine in a temporary directory: home, settings of usual size, a project, transcripts.

use std::ffi::OsString;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::timing::Start;
use super::transcripts::{self, Message, Truth};

/// Where everything lies.
pub struct Scene {
    /// The home directory.
    pub home: PathBuf,
    /// The project that the session works in.
    pub project: PathBuf,
}

impl Scene {
    /// Makes a home with settings in the scopes of person and project.
    pub fn new(work: &Path) -> Self {
        let scene = Self { home: work.join("home"), project: work.join("home/work/project") };
        fs::create_dir_all(scene.home.join("tmp")).unwrap();
        for dir in [".git", ".claude", "src"] {
            fs::create_dir_all(scene.project.join(dir)).unwrap();
        }
        fs::create_dir_all(scene.home.join(".claude/projects/-home-work-project")).unwrap();
        let allow: Vec<String> = (0..60).map(|n| format!("Bash(make target-{n}:*)")).collect();
        let hook = json!([{"hooks": [{"type": "command", "command": "~/bin/note --quiet", "timeout": 10}]}]);
        let user = json!({
            "env": {"EDITOR": "vi", "GREETING": "hello", "MAX_THINKING_TOKENS": "31999"},
            "permissions": {"allow": allow, "deny": ["Read(./.env)"], "defaultMode": "acceptEdits"},
            "model": "opus",
            "statusLine": {"type": "command", "command": "~/.claude/longhaul/bin/longhaul-statusline"},
            "hooks": {"PreToolUse": hook, "Stop": hook},
            "enabledPlugins": {"longhaul@longhaul": true},
            "theme": "dark",
        });
        scene.write(".claude/settings.json", &user);
        let project = json!({"permissions": {"allow": ["Bash(cargo test:*)"]}, "env": {"CI": "0"}});
        fs::write(scene.project.join(".claude/settings.json"), project.to_string()).unwrap();
        let local = json!({"permissions": {"allow": ["Bash(cargo bench:*)", "WebFetch(domain:docs.rs)"]}});
        fs::write(scene.project.join(".claude/settings.local.json"), local.to_string()).unwrap();
        let known: Value = (0..40)
            .map(|n| (format!("/home/x/work/project-{n}"), json!({"history": ["x".repeat(1_000)]})))
            .collect();
        scene.write(".claude.json", &json!({"numStartups": 812, "projects": known}));
        scene
    }

    /// Writes a file below the home.
    pub fn write(&self, name: &str, value: &Value) {
        fs::write(self.home.join(name), serde_json::to_string_pretty(value).unwrap()).unwrap();
    }

    /// Writes a transcript of a session and gives its path.
    pub fn transcript(&self, session: &str, size: u64) -> (PathBuf, Truth) {
        let (path, mut out) = self.create(session);
        let truth = transcripts::write(&mut out, size, 1).unwrap();
        (path, truth)
    }

    /// The same with serial numbers in what the person said.
    pub fn numbered_transcript(&self, session: &str, size: u64) -> (PathBuf, Truth, Vec<Message>) {
        let (path, mut out) = self.create(session);
        let (truth, said) = transcripts::write_numbered(&mut out, size, 1).unwrap();
        (path, truth, said)
    }

    fn create(&self, session: &str) -> (PathBuf, BufWriter<fs::File>) {
        let path = self.home.join(format!(".claude/projects/-home-work-project/{session}.jsonl"));
        let out = BufWriter::with_capacity(1 << 18, fs::File::create(&path).unwrap());
        (path, out)
    }

    /// The environment that a client gives to what it starts.
    pub fn env(&self) -> Vec<(String, OsString)> {
        let mut env: Vec<(String, OsString)> = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.home.clone().into()),
            ("TMPDIR", self.home.join("tmp").into()),
            ("CLAUDE_PROJECT_DIR", self.project.clone().into()),
            // Any process that lives: its command line is read.
            ("CLAUDE_PID", std::process::id().to_string().into()),
            ("COLUMNS", "160".into()),
            ("TERM", "xterm-256color".into()),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/sh".into()),
            ("CLAUDECODE", "1".into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        env.extend((0..20).map(|n| (format!("OTHER_VARIABLE_{n}"), "some value of some length".into())));
        env
    }

    /// The payload of a redraw.
    pub fn payload(&self, session: &str, transcript: &Path, used: u64) -> Value {
        json!({
            "session_id": session,
            "transcript_path": transcript,
            "cwd": self.project,
            "version": "2.1.332",
            "model": {"id": transcripts::MODEL, "display_name": "Opus 5.5"},
            "workspace": {"current_dir": self.project, "project_dir": self.project, "added_dirs": []},
            "output_style": {"name": "default"},
            "cost": {"total_cost_usd": 1.25, "total_duration_ms": 5_400_000, "total_api_duration_ms": 900_000,
                "total_lines_added": 120, "total_lines_removed": 30},
            "context_window": {
                "context_window_size": 1_000_000,
                "total_input_tokens": used - 500,
                "total_output_tokens": 500,
                "used_percentage": used / 10_000,
                "remaining_percentage": 100 - used / 10_000,
                "current_usage": {"input_tokens": 4, "output_tokens": 500,
                    "cache_creation_input_tokens": 1_500, "cache_read_input_tokens": used - 2_004},
            },
            "exceeds_200k_tokens": used > 200_000,
        })
    }

    /// A hook's event.
    pub fn event(&self, name: &str, session: &str, transcript: &Path) -> Value {
        json!({
            "session_id": session, "transcript_path": transcript, "cwd": self.project,
            "hook_event_name": name, "permission_mode": "default",
            "source": "startup", "model": transcripts::MODEL, "prompt": "Please go on with the next part.",
        })
    }

    /// One way of starting a program here.
    pub fn start(&self, name: &str, program: impl Into<PathBuf>, input: &Value) -> Start {
        Start {
            name: name.to_owned(),
            program: program.into(),
            arguments: Vec::new(),
            env: self.env(),
            dir: self.project.clone(),
            inputs: vec![input.to_string().into_bytes()],
            grows: None,
            clears: Vec::new(),
        }
    }
}
