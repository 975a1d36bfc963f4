//! `longhaul doctor` on a machine where everything is well, and on the same machine with one thing broken.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use longhaul::host::{clock, process};
use serde_json::{Value, json};

use crate::sandbox::{Rows, SESSION, Said, Sandbox, finish, program_path};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAMS: [&str; 4] = ["longhaul", "longhaul-hook", "longhaul-statusline", "longhaul-watch"];

/// A machine on which everything is well: a client, the plugin from a marketplace, the programs, one open session
/// with its watcher.
struct Machine {
    sandbox: Sandbox,
    client: Child,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

impl Machine {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let bin = sandbox.root.path().join("bin");
        let path = bin.to_str().unwrap().to_owned();
        let client = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let machine = Self { sandbox: sandbox.env("PATH", &path), client };
        machine.claude("2.1.332");
        for dir in [machine.state(), machine.state().join("bin"), machine.installed("")] {
            fs_err::create_dir_all(&dir).unwrap();
            mode(&dir, 0o700);
        }
        for name in PROGRAMS {
            // A link costs nothing; another file system needs the copy.
            if fs_err::hard_link(program_path(name), machine.installed(name)).is_err() {
                fs_err::copy(program_path(name), machine.installed(name)).unwrap();
            }
        }
        symlink(VERSION, machine.state().join("bin/current")).unwrap();
        symlink(machine.state().join("bin/current/longhaul"), machine.path("bin/longhaul")).unwrap();
        for file in [".claude-plugin/plugin.json", "hooks/launcher", "monitors/monitors.json"] {
            let there = fs_err::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
            write(&machine.plugin(file), there);
        }
        let entry = json!({ "scope": "user", "installPath": machine.plugin(""), "version": VERSION });
        let list = json!({ "version": 2, "plugins": { "longhaul@longhaul": [entry] } });
        write(&machine.config("plugins/installed_plugins.json"), list.to_string());
        machine.settings(&json!({ "enabledPlugins": { "longhaul@longhaul": true } }));
        machine.says("interactive");
        machine.watcher(&json!({ "pid": machine.client.id(), "start": machine.started() }));
        machine.beats();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.root.path().join(name)
    }

    fn config(&self, name: &str) -> PathBuf {
        self.sandbox.config().join(name)
    }

    fn state(&self) -> PathBuf {
        self.sandbox.state()
    }

    fn installed(&self, name: &str) -> PathBuf {
        self.state().join("bin").join(VERSION).join(name)
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.config("plugins/cache/longhaul/longhaul").join(VERSION).join(name)
    }

    fn claude(&self, version: &str) {
        let script = format!("#!/bin/sh\necho '{version} (Claude Code)'\n");
        write(&self.path("bin/claude"), script);
        mode(&self.path("bin/claude"), 0o755);
    }

    fn settings(&self, settings: &Value) {
        write(&self.config("settings.json"), settings.to_string());
    }

    /// What setup remembers of itself.
    fn record(&self, more: &Value) {
        let mut record = json!({ "v": 1, "version": VERSION });
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        write(&self.state().join("setup.json"), record.to_string());
    }

    fn project(&self, settings: &str) -> PathBuf {
        let path = self.sandbox.work().join(".claude/settings.json");
        write(&path, settings);
        path
    }

    fn started(&self) -> Option<String> {
        process::find(self.client.id()).unwrap().start
    }

    /// What the client says of the session, which it has shown for a minute.
    fn says(&self, kind: &str) {
        let now = clock::now_ms();
        let file = json!({ "pid": self.client.id(), "sessionId": SESSION, "cwd": self.sandbox.work(),
            "procStart": self.started(), "startedAt": now - 60_000, "version": "2.1.332", "kind": kind,
            "entrypoint": "cli", "status": "idle", "updatedAt": now, "statusUpdatedAt": now });
        write(&self.config(&format!("sessions/{}.json", self.client.id())), file.to_string());
    }

    fn stamp(&self) -> PathBuf {
        self.state().join(format!("watchers/{}.json", self.client.id()))
    }

    fn watcher(&self, more: &Value) {
        let mut stamp =
            json!({ "client": self.client.id(), "client_start": self.started(), "session": SESSION });
        stamp.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        write(&self.stamp(), stamp.to_string());
    }

    fn beats(&self) {
        let mut command = self.sandbox.command("longhaul-hook");
        command.env("CLAUDE_PID", self.client.id().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let event = self.sandbox.event("UserPromptSubmit", &json!({ "prompt": "hello" }));
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.to_string().as_bytes()).unwrap();
        let said = finish(child);
        assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    }

    fn run_dir(&self) -> PathBuf {
        fs_err::read_to_string(self.state().join("run-dir")).unwrap().trim_end().into()
    }

    fn doctor(&self) -> (i32, BTreeMap<String, Value>) {
        let said = self.sandbox.longhaul(&["doctor", "--json"]);
        assert_eq!(said.stderr, "", "{said:?}");
        let value: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(value["healthy"], json!(said.code == 0));
        let checks = value["checks"].as_array().unwrap().iter();
        (said.code, checks.map(|line| (line["name"].as_str().unwrap().to_owned(), line.clone())).collect())
    }

    /// One thing is broken: exactly these lines say so, the first in these words and with this fix.
    #[track_caller]
    fn finds(&self, broken: &[&str], what: &str, fix: &str) {
        let (code, lines) = self.doctor();
        let found: Vec<_> = lines.values().filter(|line| line["status"] == "broken").collect();
        let mut names: Vec<_> = found.iter().map(|line| line["name"].as_str().unwrap()).collect();
        let mut wanted = broken.to_vec();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{found:#?}");
        assert_eq!(code, 1);
        let line = &lines[broken[0]];
        assert!(line["what"].as_str().unwrap().contains(what), "{line:#}");
        let fix = fix.replace("STATE", self.state().to_str().unwrap());
        let fix = fix.replace("CONFIG", self.sandbox.config().to_str().unwrap());
        let fix = fix.replace("WORK", self.sandbox.work().to_str().unwrap());
        let repair = format!("{} setup", program_path("longhaul"));
        assert_eq!(line["fix"], json!(fix.replace("REPAIR", &repair)), "{line:#}");
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    // Never into a file that has another name.
    let _ = fs_err::remove_file(path);
    fs_err::write(path, bytes).unwrap();
}

fn mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Every file below, with its content and when it was last written.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs_err::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
        let small = meta.is_file() && meta.len() < 1 << 20;
        let bytes = if small { fs_err::read(&path).unwrap() } else { Vec::new() };
        found.insert(path.clone(), (meta.modified().unwrap(), bytes));
        if meta.is_dir() {
            found.extend(everything(&path));
        }
    }
    found
}

const RESUME: &str = "leave it with /exit, then claude --resume 3f2a9c1e-0000-4000-8000-1234567890ab";

#[test]
fn where_all_is_well_nothing_is_broken_and_nothing_is_written() {
    let machine = Machine::new();
    let before = everything(machine.sandbox.root.path());
    let (code, lines) = machine.doctor();
    let odd: Vec<_> = lines.values().filter(|line| line["status"] != "ok").collect();
    // The programs were linked, so they have the mode of a build, not that of an installed one.
    assert!(odd.iter().all(|line| line["name"] == "programs"), "{odd:#?}");
    assert_eq!(code, 0);
    assert_eq!(lines.len(), 19);
    assert!(lines["hooks"]["what"].as_str().unwrap().starts_with("newest beat "), "{}", lines["hooks"]);
    assert_eq!(lines["monitor"]["what"], "armed in 1 open session");
    let said = machine.sandbox.longhaul(&["doctor"]);
    assert!(said.stdout.ends_with("\nNothing is broken.\n"), "{said:?}");
    assert!(said.stdout.contains("\nok      client       Claude Code 2.1.332, "), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    assert_eq!(everything(machine.sandbox.root.path()), before);
}

#[test]
fn a_terminal_sees_colours_and_no_color_is_honoured() {
    let machine = Machine::new();
    fs_err::remove_file(machine.stamp()).unwrap();
    let shown = machine.sandbox.on_terminal(&["doctor"]);
    for coloured in ["\u{1b}[31mbroken", "\u{1b}[32mok", "\u{1b}[31m1 thing is broken."] {
        assert!(shown.contains(coloured), "{shown}");
    }
    let client = std::process::Command::new("true").spawn().unwrap();
    let plain = Machine { sandbox: Sandbox::new().env("NO_COLOR", "1"), client };
    assert!(!plain.sandbox.on_terminal(&["doctor"]).contains('\u{1b}'));
}

/// What is broken on a machine: how, the lines that say so, a part of the first one's words, and its whole fix.
type Case = (fn(&Machine), &'static [&'static str], &'static str, &'static str);

#[track_caller]
fn each(cases: &[Case]) {
    for (break_it, lines, what, fix) in cases {
        let machine = Machine::new();
        break_it(&machine);
        machine.finds(lines, what, fix);
    }
}

#[test]
fn broken_programs_are_found() {
    let cases: &[Case] = &[
        (
            |m| fs_err::remove_file(m.installed("longhaul-hook")).unwrap(),
            &["programs"],
            "the plugin longhaul@longhaul finds no longhaul-hook",
            "REPAIR",
        ),
        (
            |m| fs_err::remove_file(m.state().join("bin/current")).unwrap(),
            &["programs", "path"],
            "leads nowhere",
            "REPAIR",
        ),
        (
            |m| {
                write(&m.plugin(".claude-plugin/plugin.json"), r#"{"name":"longhaul","version":"9.9.9"}"#);
            },
            &["version"],
            "says 9.9.9 and its launcher",
            "claude plugin update longhaul@longhaul",
        ),
        (
            |m| {
                write(&m.installed("longhaul"), "#!/bin/sh\necho longhaul 0.0.1\n");
                mode(&m.installed("longhaul"), 0o700);
            },
            &["version"],
            "says that it is 0.0.1",
            "REPAIR",
        ),
        (
            |m| {
                write(&m.installed("longhaul"), "#!/bin/sh\nexit 3\n");
                mode(&m.installed("longhaul"), 0o700);
            },
            &["runnable"],
            "does not answer --version",
            "REPAIR",
        ),
        // thedotmack/claude-mem#1547: built for another processor, and nobody said so.
        (
            |m| {
                let mut elf = fs_err::read(m.installed("longhaul-watch")).unwrap();
                elf[18] = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
                write(&m.installed("longhaul-watch"), elf);
                mode(&m.installed("longhaul-watch"), 0o700);
            },
            &["runnable"],
            "is built for linux ",
            "REPAIR",
        ),
        (
            |m| {
                let elf = fs_err::read(m.installed("longhaul-statusline")).unwrap();
                write(&m.installed("longhaul-statusline"), &elf[..elf.len() / 2]);
                mode(&m.installed("longhaul-statusline"), 0o700);
            },
            &["runnable"],
            "cut short",
            "REPAIR",
        ),
        (
            |m| write(&m.installed("longhaul-hook"), "version https://git-lfs.github.com/spec/v1\n"),
            &["runnable"],
            "is text in a program's place",
            "REPAIR",
        ),
        (
            |m| {
                let elf = fs_err::read(m.installed("longhaul-hook")).unwrap();
                write(&m.installed("longhaul-hook"), elf);
                mode(&m.installed("longhaul-hook"), 0o600);
            },
            &["runnable"],
            "has lost its execute bit",
            "chmod 700 STATE/bin/0.1.0/longhaul-hook",
        ),
        (
            |m| {
                fs_err::remove_file(m.path("bin/longhaul")).unwrap();
                symlink("/no/such/longhaul", m.path("bin/longhaul")).unwrap();
            },
            &["path"],
            "is a link that leads nowhere",
            "ln -sfn STATE/bin/current/longhaul WORK/../bin/longhaul",
        ),
    ];
    let linux = cfg!(target_os = "linux");
    for (break_it, lines, what, fix) in cases.iter().filter(|case| linux || !case.2.contains("linux")) {
        let machine = Machine::new();
        break_it(&machine);
        let fix = fix.replace("WORK/..", machine.sandbox.root.path().to_str().unwrap());
        machine.finds(lines, what, &fix);
    }
}

#[test]
fn a_broken_plugin_and_a_broken_client_are_found() {
    each(&[
        (
            |m| m.claude("2.1.100"),
            &["client", "status-line"],
            "below what longhaul is tested with",
            "claude update",
        ),
        (
            |m| mode(&m.path("bin/claude"), 0o757),
            &["client", "status-line"],
            "can be written by others: not run",
            "take it off PATH and out of CLAUDE_BIN, or make it yours alone: chmod go-w",
        ),
        (
            |m| m.settings(&json!({ "enabledPlugins": { "longhaul@longhaul": false } })),
            &["plugin", "status-line"],
            "disabled in the user settings",
            "claude plugin enable longhaul@longhaul",
        ),
        // CC#62486, CC#46921, CC#3123: the client itself drops keys.
        (
            |m| m.settings(&json!({})),
            &["plugin", "status-line"],
            "no settings enable it",
            "claude plugin enable longhaul@longhaul",
        ),
        (
            |m| fs_err::remove_dir_all(m.plugin("")).unwrap(),
            &["plugin", "status-line"],
            "is gone",
            "claude plugin install longhaul@longhaul",
        ),
        (
            |m| fs_err::remove_file(m.config("plugins/installed_plugins.json")).unwrap(),
            &["plugin", "status-line"],
            "enabled in the user settings and not installed",
            "claude plugin install longhaul@longhaul",
        ),
        (
            |m| write(&m.plugin("monitors/monitors.json"), r#"{"monitors":[]}"#),
            &["plugin"],
            "not a list of monitors",
            "claude plugin update longhaul@longhaul",
        ),
    ]);
}

#[test]
fn broken_settings_are_found() {
    each(&[
        (
            |m| drop(m.project("{\n  \"model\": \"opus\",\n  \"x\": }\n")),
            &["settings"],
            "at line 3",
            "mend WORK/.claude/settings.json there",
        ),
        (
            |m| drop(m.project("{\n  \"model\": \"opus\",\n  \"env\": []\n}\n")),
            &["settings"],
            "settings.json: line 3: `env` is of the wrong type",
            "mend WORK/.claude/settings.json there",
        ),
        (
            |m| drop(m.project(r#"{"env":{"LONGHAUL_X":"tools/longhaul"}}"#)),
            &["project"],
            "sets LONGHAUL_X to tools/longhaul, in the project",
            "take LONGHAUL_X out of WORK/.claude/settings.json",
        ),
        (
            |m| write(&m.state().join("config.json"), "{\n  \"stale\": 5\n}\n"),
            &["config"],
            "config.json: unknown field `stale`, expected one of",
            "mend it there, or delete the file",
        ),
        (
            |m| drop(m.project(r#"{"disableAllHooks":true}"#)),
            &["hooks", "monitor"],
            "no hook runs, and no status line",
            "take disableAllHooks out of WORK/.claude/settings.json",
        ),
    ]);
}

// CC#62486, CC#46921, CC#3123: the client itself drops keys.
#[test]
fn a_key_that_setup_wrote_and_that_was_dropped_is_found() {
    let machine = Machine::new();
    let key = |name: &str| json!({ "path": ["env", name], "wrote": "\"1\"", "previous": null, "made_object": true });
    let path = machine.config("settings.json");
    let wrote = json!({ "path": path, "wrote": { "len": 1, "fnv": "0" }, "created": false, "command": "",
        "previous": null, "backups": [], "restorable": true, "keys": [key("DISABLE_COMPACT")] });
    machine.record(&json!({ "settings": wrote }));
    let fix = "longhaul setup --disable-compact --window N, or longhaul setup --undo";
    machine.finds(&["settings"], "setup wrote env.DISABLE_COMPACT, and the file holds it no more", fix);
    let on = json!({ "longhaul@longhaul": true });
    machine.settings(&json!({ "enabledPlugins": on, "env": { "DISABLE_COMPACT": "1" } }));
    let (code, lines) = machine.doctor();
    assert_eq!((code, &lines["settings"]["status"]), (0, &json!("ok")), "{lines:#?}");
}

#[test]
fn sessions_that_nobody_watches_are_found() {
    each(&[
        (
            |m| fs_err::remove_dir_all(m.run_dir().join("beats")).unwrap(),
            &["hooks"],
            "no session ever left a beat, though 1 session is open",
            RESUME,
        ),
        (|m| fs_err::remove_file(m.stamp()).unwrap(), &["monitor"], "none was started there", RESUME),
        (
            |m| m.watcher(&json!({ "pid": 1, "start": "1", "ended": "nobody reads" })),
            &["monitor"],
            "1 of 1 open session without a watcher",
            RESUME,
        ),
        (
            |m| {
                fs_err::remove_file(m.stamp()).unwrap();
                fs_err::remove_dir_all(m.run_dir().join("beats")).unwrap();
                m.says("bg");
            },
            &["background", "hooks"],
            "1 background session with neither a watcher nor a timer",
            "longhaul setup --timer",
        ),
        (
            |m| {
                m.record(&json!({ "timer": { "brought": true, "way": "systemd" } }));
            },
            &["timer"],
            "longhaul.timer is gone",
            "longhaul setup --timer",
        ),
        (
            |m| {
                m.record(&json!({ "timer": { "brought": true, "way": "systemd" } }));
                write(&m.path("home/.config/systemd/user/longhaul.timer"), "[Timer]\n");
            },
            &["timer"],
            "longhaul.timer is not enabled",
            "longhaul setup --timer",
        ),
    ]);
}

#[test]
fn a_gauge_that_nobody_draws_and_a_wall_without_figures_are_found() {
    each(&[
        (|m| m.claude("2.1.331"), &["status-line"], "by a setting only", "longhaul setup --statusline"),
        // CC#62486, CC#46921, CC#3123: the client itself drops keys.
        (
            |m| {
                let said =
                    m.sandbox.longhaul(&["setup", "--statusline", "--no-plugin", "--no-link", "--yes"]);
                assert_eq!(said.code, 0, "{said:?}");
                let enabled = json!({ "enabledPlugins": { "longhaul@longhaul": true } });
                m.settings(&enabled);
            },
            &["status-line"],
            "setup wrote a statusLine, and the settings hold none any more",
            "longhaul setup --statusline (or --no-statusline, where it is to stay away)",
        ),
        (
            |m| {
                let line = json!({ "type": "command", "command": "/gone/longhaul-statusline" });
                let on = json!({ "longhaul@longhaul": true });
                m.settings(&json!({ "enabledPlugins": on, "statusLine": line }));
            },
            &["status-line"],
            "runs /gone/longhaul-statusline, which is gone",
            "longhaul setup --statusline",
        ),
        (
            |m| drop(m.sandbox.transcript(&Rows::later().turns(&[100_000]).rows)),
            &["wall"],
            "handed no figures of session",
            RESUME,
        ),
    ]);
}

#[test]
fn broken_places_are_found() {
    let entry = |session: &str| {
        json!({ "id": "20261130T172151Z-3f2a9c1e", "state": "accepted", "parent": { "session": session },
            "directory": "/x" })
    };
    each(&[
        (|m| mode(&m.state(), 0o755), &["state"], "can be entered by others", "chmod 700 STATE"),
        (|m| mode(&m.run_dir(), 0o755), &["run-dir"], "can be entered by others", "rm STATE/run-dir"),
        (
            |m| write(&m.state().join("chains.json"), r#"{"version":2}"#),
            &["leftovers"],
            "a later longhaul wrote ",
            "claude plugin update longhaul@longhaul, then longhaul setup",
        ),
        (
            |m| write(&m.state().join("watches.json"), "{"),
            &["leftovers"],
            "watches.json is not valid JSON",
            "the next longhaul that writes it sets it aside and begins anew; copy what you need",
        ),
    ]);
    let machine = Machine::new();
    let list = json!({ "version": 1, "handoffs": [entry(SESSION)] });
    write(&machine.state().join("chains.json"), list.to_string());
    let transcript = machine.sandbox.transcript(&[]);
    let old = SystemTime::now() - Duration::from_secs(28 * 86_400);
    fs_err::File::options().write(true).open(transcript).unwrap().set_modified(old).unwrap();
    let fix = "\"cleanupPeriodDays\": 365 in CONFIG/settings.json";
    machine.finds(&["transcripts"], "the client deletes 1 transcript of handoff chains", fix);
    machine.settings(&json!({ "enabledPlugins": { "longhaul@longhaul": true }, "cleanupPeriodDays": 365 }));
    assert_eq!(machine.doctor().0, 0);
}

#[track_caller]
fn only_line<'s>(said: &'s Said, name: &str) -> &'s str {
    let is_it = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    said.stdout.lines().find(is_it).unwrap_or_else(|| panic!("{said:?}"))
}

#[test]
fn without_a_place_for_files_that_is_said() {
    let said = Sandbox::new().without("HOME").longhaul(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(only_line(&said, "state").starts_with("broken"), "{said:?}");
    let sandbox = Sandbox::new();
    let moved = sandbox.work().join("cfg");
    let text = moved.to_str().unwrap().to_owned();
    let settings = json!({ "env": { "CLAUDE_CONFIG_DIR": text } });
    write(&sandbox.work().join(".claude/settings.json"), settings.to_string());
    let said = sandbox.env("CLAUDE_CONFIG_DIR", &text).longhaul(&["doctor"]);
    assert_eq!(said.code, 1);
    assert!(only_line(&said, "project").contains("sets CLAUDE_CONFIG_DIR to "), "{said:?}");
    assert!(!moved.exists());
}

#[test]
fn nothing_of_the_project_is_run_and_no_escape_of_anybodys_is_shown() {
    let machine = Machine::new();
    let (evil, ran) = (machine.sandbox.work().join("bin/claude"), machine.path("ran"));
    write(&evil, format!("#!/bin/sh\ntouch {}\n", ran.display()));
    mode(&evil, 0o755);
    machine.project(r#"{"env":{"CLAUDE_BIN":"bin/claude","LONGHAUL_X":"\u001b]0;x\u0007./y"}}"#);
    write(&machine.state().join("config.json"), r#"{"\u001b[31mred": 1}"#);
    let both = format!("{}:{}", evil.parent().unwrap().display(), machine.path("bin").display());
    for args in [&["doctor"][..], &["doctor", "--json"]] {
        let mut command = machine.sandbox.command("longhaul");
        command.env("CLAUDE_BIN", &evil).env("PATH", &both).args(args);
        let said = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.stdout.contains("lies in the project: not run"), "{said:?}");
        assert!(said.stdout.contains("sets CLAUDE_BIN to bin/claude, in the project"), "{said:?}");
        assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    }
    assert!(!ran.exists());
}

#[test]
fn in_a_session_the_project_is_the_one_it_was_started_in() {
    let machine = Machine::new();
    machine.project(r#"{"disableAllHooks":true}"#);
    let mut command = machine.sandbox.command("longhaul");
    command.current_dir(machine.sandbox.root.path()).env("CLAUDE_CODE_SESSION_ID", SESSION).arg("doctor");
    let said = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert!(only_line(&said, "hooks").starts_with("broken"), "{said:?}");
}

#[test]
fn a_session_in_the_background_or_headless_says_why_nothing_is_armed() {
    let machine = Machine::new();
    fs_err::remove_file(machine.stamp()).unwrap();
    fs_err::remove_dir_all(machine.run_dir().join("beats")).unwrap();
    machine.says("bg");
    let mut command = machine.sandbox.command("longhaul");
    command.env("CLAUDE_CODE_SESSION_ID", SESSION).env("CLAUDE_PID", machine.client.id().to_string());
    let said = finish(command.arg("doctor").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert!(only_line(&said, "background").starts_with("broken"), "{said:?}");
    let line = only_line(&said, "monitor");
    assert!(line.starts_with("note") && line.contains("in a background session"), "{said:?}");
}

/// What is put into a file's place, by its name.
type Junk = (&'static str, fn(&Path));

fn junk() -> Vec<Junk> {
    vec![
        ("nothing", |path| write(path, "")),
        ("half of it", |path| write(path, "{")),
        ("a list", |path| write(path, "[[]]")),
        ("a number", |path| write(path, "7")),
        ("null", |path| write(path, "null")),
        ("odd members", |path| {
            let odd = r#"{"plugins":{"longhaul@longhaul":[7]},"longhaul":[],"settings":{"path":1,"keys":[{"path":[1]}]},
                "version":"x","v":-1,"handoffs":[{}],"pid":"x","timer":7,"enabledPlugins":[],"cleanupPeriodDays":-1e300}"#;
            write(path, odd);
        }),
        ("depth", |path| write(path, "[".repeat(100_000))),
        ("bytes", |path| write(path, [0xff, 0, 0x1b, 0xfe].repeat(1000))),
        ("a directory", |path| {
            let _ = fs_err::remove_file(path);
            fs_err::create_dir_all(path.join("in")).unwrap();
        }),
        ("a pipe", |path| {
            let _ = fs_err::remove_file(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
        ("a loop of links", |path| {
            let _ = fs_err::remove_file(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(path, path).unwrap();
        }),
    ]
}

/// Files that it reads.
fn read_by_doctor(machine: &Machine) -> Vec<PathBuf> {
    let mut all = vec![machine.stamp(), machine.installed("longhaul"), machine.installed("longhaul-watch")];
    let state = ["run-dir", "setup.json", "chains.json", "watches.json", "config.json", "learned.json"];
    all.extend(state.map(|name| machine.state().join(name)));
    let config = ["settings.json", "plugins/installed_plugins.json", "plugins/known_marketplaces.json"];
    all.extend(config.map(|name| machine.config(name)));
    all.push(machine.config(&format!("sessions/{}.json", machine.client.id())));
    let plugin = ["hooks/launcher", ".claude-plugin/plugin.json", "monitors/monitors.json"];
    all.extend(plugin.map(|name| machine.plugin(name)));
    all.push(machine.sandbox.work().join(".claude/settings.json"));
    all
}

#[test]
fn whatever_stands_in_a_files_place_every_line_is_there() {
    let look = |machine: &Machine, what: &str| {
        let said = machine.sandbox.longhaul(&["doctor", "--json"]);
        assert!(said.code == 1 || said.code == 0, "{what}: {said:?}");
        assert_eq!(said.stderr, "", "{what}");
        let value: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(value["checks"].as_array().unwrap().len(), 19, "{what}");
    };
    let places = read_by_doctor(&Machine::new()).len();
    for (name, put) in junk() {
        let machine = Machine::new();
        for path in read_by_doctor(&machine) {
            put(&path);
        }
        look(&machine, name);
    }
    for at in 0..places {
        let machine = Machine::new();
        let path = read_by_doctor(&machine).swap_remove(at);
        let (name, put) = junk().swap_remove(at % junk().len());
        put(&path);
        look(&machine, &format!("{name} in place of {}", path.display()));
    }
}

#[test]
fn a_link_whose_directory_is_not_on_path_needs_that_alone() {
    let machine = Machine::new();
    fs_err::remove_file(machine.path("bin/longhaul")).unwrap();
    let made = machine.path("home/.local/bin/longhaul");
    fs_err::create_dir_all(made.parent().unwrap()).unwrap();
    symlink(machine.state().join("bin/current/longhaul"), &made).unwrap();
    let (code, lines) = machine.doctor();
    let line = &lines["path"];
    assert_eq!((code, &line["status"]), (0, &json!("note")), "{line:#}");
    assert!(line["fix"].as_str().unwrap().ends_with("export PATH=\"$HOME/.local/bin:$PATH\""), "{line:#}");
    fs_err::remove_file(&made).unwrap();
    let (_, lines) = machine.doctor();
    assert!(lines["path"]["fix"].as_str().unwrap().ends_with("longhaul setup --link"), "{lines:#?}");
}

#[test]
fn the_list_of_sessions_rounds_as_the_gauge_does() {
    let machine = Machine::new();
    machine.sandbox.transcript(&Rows::new().prompt("hello").response(831_000).rows);
    let said = machine.sandbox.longhaul(&["weigh", "--session", SESSION]);
    assert!(said.stdout.contains("86 % of its wall (831k of 967k"), "{said:?}");
    let said = machine.sandbox.longhaul(&["sessions", "--json"]);
    let all: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(all[0]["context_percent"], json!(86), "{said:?}");
}

#[test]
fn the_readme_explains_every_line() {
    let machine = Machine::new();
    let readme = fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, lines) = machine.doctor();
    for name in lines.keys() {
        assert!(
            readme.contains(&format!("\n| `{name}` | ")),
            "README.md says nothing of doctor's line {name}"
        );
    }
}
