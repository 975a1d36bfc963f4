//! `longhaul setup` on a machine of its own: a temporary HOME, programs that are scripts, a fixed clock.
#![cfg(unix)] // The scripts, links and permissions are; decisions and edits are tested beside their code.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use clap::Parser as _;
use longhaul::cli::setup::SetupArgs;
use longhaul::host::{Host, process};
use longhaul::setup::decide::Ask;
use longhaul::setup::report::Report;
use longhaul::setup::{self, Request, VERSION, programs::PROGRAMS};
use longhaul::store::Store;

mod compaction;
mod link;
mod plugin;
mod timer;

const NOW_MS: i64 = 1_796_059_311_000;
const STAMP: &str = "20261130T172151Z";

struct Machine {
    root: tempfile::TempDir,
    config: PathBuf,
    env: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        Self::with_home("home")
    }

    fn with_home(home: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let config = root.path().join(home).join(".claude");
        let env = vec![("HOME".to_owned(), root.path().join(home).to_str().unwrap().to_owned())];
        let machine = Self { root, config, env };
        fs_err::create_dir_all(&machine.config).unwrap();
        for name in PROGRAMS {
            program(&machine.source().join(name), &format!("echo {name}; cat >/dev/null"));
        }
        machine
    }

    fn source(&self) -> PathBuf {
        self.root.path().join("target")
    }

    fn client(&mut self, version: &str) {
        let bin = self.root.path().join("client");
        program(&bin.join("claude"), &format!("echo '{version} (Claude Code)'"));
        self.env.push(("PATH".to_owned(), bin.to_str().unwrap().to_owned()));
    }

    fn host(&self) -> Host {
        let env: Vec<_> = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Host::fixed(&env, NOW_MS)
    }

    fn store(&self) -> Store {
        Store::locate(&self.host(), &[]).unwrap()
    }

    fn settings(&self) -> PathBuf {
        self.config.join("settings.json")
    }

    fn write(&self, text: &str) {
        fs_err::write(self.settings(), text).unwrap();
    }

    fn text(&self) -> String {
        fs_err::read_to_string(self.settings()).unwrap()
    }

    fn command(&self) -> String {
        let value: serde_json::Value = serde_json::from_str(&self.text()).unwrap();
        value["statusLine"]["command"].as_str().unwrap().to_owned()
    }

    fn request(&self, ask: Ask, dry_run: bool) -> Request {
        Request { ask, source: self.source(), dry_run, ..Request::default() }
    }

    fn try_setup(&self, ask: Ask) -> anyhow::Result<Report> {
        setup::install(&self.host(), &self.store(), &self.request(ask, false), &mut |_| true)
    }

    #[track_caller]
    fn setup(&self, ask: Ask) -> Report {
        self.try_setup(ask).unwrap()
    }

    fn fails(&self, ask: Ask) -> String {
        format!("{:#}", self.try_setup(ask).unwrap_err())
    }

    #[track_caller]
    fn undo(&self) -> Report {
        setup::undo(&self.host(), &self.store(), &[], false).unwrap()
    }

    /// Every file, link and directory below the root with its content and permissions.
    fn snapshot(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs_err::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let content = if meta.is_symlink() {
                    fs_err::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                } else if meta.is_dir() {
                    dirs.push(path.clone());
                    Vec::new()
                } else {
                    fs_err::read(&path).unwrap()
                };
                found.push((path, meta.mode(), content));
            }
        }
        found.sort();
        found
    }

    fn backups(&self) -> Vec<PathBuf> {
        let entries = fs_err::read_dir(&self.config).unwrap();
        let mut found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| path.to_string_lossy().contains(".bak"));
        found.sort();
        found
    }
}

fn program(path: &Path, says: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, format!("#!/bin/sh\n{says}\n")).unwrap();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a status line command as the client does, with this on standard input.
fn run(command: &str, stdin: &str) -> (Option<i32>, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), stdin).unwrap();
    let line = format!("exec <'{}'; {command}", file.path().display());
    let ran = process::run(Path::new("/bin/sh"), &["-c", &line], &[], b"", 10_000).unwrap();
    (ran.code, String::from_utf8(ran.stdout).unwrap())
}

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_machine_without_a_client_is_set_up_and_taken_back() {
    let machine = Machine::new();
    let before = machine.snapshot();
    let report = machine.setup(Ask::Auto);
    assert_eq!((report.programs.action, report.settings.action), ("installed", "added"));
    assert_eq!(report.settings.backup, None, "there was nothing to copy");
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert_eq!(run(&machine.command(), "{}"), (Some(0), "longhaul-statusline\n".to_owned()));
    assert_eq!(mode(&machine.settings()), 0o600);
    let state = machine.config.join("longhaul");
    let version = state.join("bin").join(VERSION);
    for dir in [&state, &state.join("bin"), &version] {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
    for name in PROGRAMS {
        assert_eq!(mode(&version.join(name)), 0o700);
    }
    assert_eq!(fs_err::read_link(state.join("bin/current")).unwrap(), Path::new(VERSION));

    assert_eq!(machine.undo().settings.action, "removed");
    assert_eq!(machine.snapshot(), before, "nothing is left behind");
    let again = machine.undo();
    assert_eq!((again.settings.action, again.programs.action), ("unchanged", "absent"));
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn a_second_setup_touches_nothing() {
    let machine = Machine::new();
    machine.write("{\n  \"model\": \"opus\"\n}\n");
    machine.setup(Ask::Auto);
    let before = machine.snapshot();
    let inode = |path: &Path| fs_err::metadata(path).unwrap().ino();
    let program = machine.store().current().join("longhaul");
    let inodes = (inode(&machine.settings()), inode(&program));
    for ask in [Ask::Auto, Ask::Ours, Ask::Wrap] {
        let report = machine.setup(ask);
        assert_eq!((report.programs.action, report.settings.action), ("unchanged", "unchanged"));
        assert_eq!(machine.snapshot(), before);
        assert_eq!((inode(&machine.settings()), inode(&program)), inodes);
    }
}

#[test]
fn the_mod_draws_where_the_client_lets_it() {
    for (version, action) in [("2.1.331", "added"), ("2.1.332", "kept"), ("junk", "kept")] {
        let mut machine = Machine::new();
        machine.client(version);
        assert_eq!(machine.setup(Ask::Auto).settings.action, action, "{version}");
        assert_eq!(machine.settings().exists(), action == "added");
        assert_eq!(
            machine.setup(Ask::Ours).settings.action,
            if action == "added" { "unchanged" } else { "added" }
        );
    }
}

// CC#64074, 52079, 18517, 17789; melodic-software/claude-code-plugins#1251; arbiterForge/codeArbiter#49:
// settings pinned a versioned path, and the line went blank when that was pruned.
#[test]
fn the_command_outlives_versions_and_the_programs_themselves() {
    let machine = Machine::with_home("my home's $HOME");
    let bin = machine.store().bin();
    machine.setup(Ask::Ours);
    let command = machine.command();
    assert!(!command.contains(VERSION));
    // An update: another version beside, made current, and the first one pruned.
    fs_err::rename(bin.join(VERSION), bin.join("0.0.1")).unwrap();
    fs_err::remove_file(bin.join("current")).unwrap();
    symlink("0.0.1", bin.join("current")).unwrap();
    assert_eq!(run(&command, "{}"), (Some(0), "longhaul-statusline\n".to_owned()));
    let report = machine.setup(Ask::Auto);
    assert_eq!(report.settings.action, "unchanged");
    assert_eq!(report.programs.removed, ["0.0.1"]);
    assert!(!bin.join("0.0.1").exists());
    assert_eq!(run(&command, "{}"), (Some(0), "longhaul-statusline\n".to_owned()));

    fs_err::remove_dir_all(machine.store().dir()).unwrap();
    let (code, text) = run(&command, "{}");
    assert_eq!((code, text.as_str()), (Some(0), "longhaul is not installed here\n"));
}

// EveryInc/compound-engineering-plugin#130: an update renamed what settings called.
#[test]
fn a_command_of_an_older_longhaul_is_brought_up_to_date_and_keeps_its_neighbours() {
    let mut machine = Machine::new();
    machine.client("2.1.332");
    let old = "{\n  \"statusLine\": {\"command\": \"/old/1.0.0/longhaul-statusline\", \"padding\": 0, \"type\": \"command\"}\n}";
    machine.write(old);
    let report = machine.setup(Ask::Auto);
    assert_eq!(report.settings.action, "updated");
    let ours = machine.command();
    assert_eq!(machine.text(), old.replace("/old/1.0.0/longhaul-statusline", &ours));
    assert_eq!(fs_err::read_to_string(report.settings.backup.unwrap()).unwrap(), old);
    machine.undo();
    assert_eq!(machine.text(), "{}", "what an older one put there goes as well");
}

// jarrodwatts/claude-hud#545; musistudio/claude-code-router#1577: a foreign status line was overwritten.
#[test]
fn somebody_elses_status_line_stays() {
    let machine = Machine::new();
    let text = "{\"statusLine\": {\"type\": \"command\", \"command\": \"npx ccusage statusline\"}}";
    machine.write(text);
    for ask in [Ask::Auto, Ask::Ours, Ask::Leave] {
        let report = machine.setup(ask);
        assert_eq!(report.settings.action, "kept");
        assert_eq!(machine.text(), text);
        if ask != Ask::Leave {
            assert!(report.settings.reason.contains("somebody else's"), "{}", report.settings.reason);
        }
    }
    machine.undo();
    assert_eq!(machine.text(), text);
    assert!(machine.backups().is_empty());
}

#[test]
fn a_wrapped_status_line_gets_the_same_input_and_comes_back() {
    let machine = Machine::with_home("a b'c");
    let theirs = "printf 'it'\\''s \"%s\"' \"$(cat)\"";
    let text = serde_json::json!({"statusLine": {"type": "command", "command": theirs, "padding": 2}});
    let text = format!("{text:#}\n");
    machine.write(&text);
    program(&machine.source().join("longhaul-statusline"), "printf 'ours %s' \"$(cat)\"");
    assert_eq!(machine.setup(Ask::Wrap).settings.action, "wrapped");
    let command = machine.command();
    let input = "{\"a\": \"%s \\\\n $HOME\"}";
    let (code, shown) = run(&command, input);
    assert_eq!(code, Some(0));
    assert_eq!(shown, format!("it's \"{input}\"\nours {input}\n"));
    let value: serde_json::Value = serde_json::from_str(&machine.text()).unwrap();
    assert_eq!(value["statusLine"]["padding"], 2);

    let script = machine.store().dir().join("statusline-wrapper.sh");
    assert_eq!(mode(&script), 0o600);
    fs_err::remove_file(&script).unwrap();
    assert_eq!(run(&command, input).0, Some(0), "without the script");
    assert_eq!(machine.setup(Ask::Auto).settings.action, "unchanged");
    assert!(script.exists(), "written again");
    machine.undo();
    assert_eq!(machine.text(), text);
    assert!(!script.exists() && machine.backups().is_empty());
}

#[test]
fn either_half_of_a_wrapped_line_may_fail() {
    let machine = Machine::new();
    let set = |theirs: &str, ours: &str| {
        machine.write(&serde_json::json!({"statusLine": {"type": "command", "command": theirs}}).to_string());
        program(&machine.source().join("longhaul-statusline"), ours);
        machine.setup(Ask::Wrap);
        let shown = run(&machine.command(), &"x".repeat(300_000));
        machine.undo();
        shown
    };
    for (theirs, ours, shown) in [
        ("echo a; exit 3", "cat >/dev/null; echo b", "a\nb\n"),
        ("exit 3", "cat >/dev/null; echo b", "b\n"),
        ("/none/such", "cat >/dev/null; echo b", "b\n"),
        ("echo a", "exit 4", "a\n"),
        ("syntax ( error", "echo b", "b\n"),
        ("true", "true", ""),
    ] {
        assert_eq!(set(theirs, ours), (Some(0), shown.to_owned()), "{theirs} / {ours}");
    }
}

#[test]
fn an_edited_file_loses_only_our_keys_on_undo() {
    let machine = Machine::new();
    machine.write("{\n  \"model\": \"opus\"\n}\n");
    let backup = machine.setup(Ask::Ours).settings.backup.unwrap();
    machine.write(&machine.text().replace("opus", "sonnet"));
    let report = machine.undo();
    assert_eq!(report.settings.action, "removed");
    assert_eq!(machine.text(), "{\n  \"model\": \"sonnet\"\n}\n");
    assert!(report.warnings.iter().any(|w| w.contains(backup.to_str().unwrap())), "{:?}", report.warnings);
    assert!(backup.exists());

    let theirs = "{\"statusLine\": {\"type\": \"command\", \"command\": \"th\\u0065irs\"}}";
    machine.write(theirs);
    machine.setup(Ask::Wrap);
    machine.write(&machine.text().replace('{', "{ "));
    machine.undo();
    assert_eq!(machine.text(), theirs.replace('{', "{ "), "their own bytes, escapes included");
}

// supermemoryai/claude-supermemory#107: put in again after the person removed it.
#[test]
fn what_a_person_removed_stays_removed_until_asked_for_by_name() {
    let machine = Machine::new();
    machine.setup(Ask::Auto);
    machine.write("{}");
    for _ in 0..3 {
        assert_eq!(machine.setup(Ask::Auto).settings.action, "kept");
        assert_eq!(machine.text(), "{}");
    }
    machine.undo();
    assert_eq!(machine.setup(Ask::Auto).settings.action, "kept", "an undo does not forget it");
    assert_eq!(machine.setup(Ask::Ours).settings.action, "added");
    machine.undo();
    assert_eq!(machine.text(), "{}");

    let other = Machine::new();
    assert_eq!(other.setup(Ask::Leave).settings.action, "kept");
    assert_eq!(other.setup(Ask::Auto).settings.action, "kept");
    assert!(!other.settings().exists());
}

#[test]
fn a_refused_change_is_not_made_and_not_asked_again() {
    let machine = Machine::new();
    let mut asked = Vec::new();
    let request = machine.request(Ask::Auto, false);
    let report = setup::install(&machine.host(), &machine.store(), &request, &mut |question| {
        asked.push(question.diff.to_owned());
        false
    });
    assert_eq!(report.unwrap().settings.action, "kept");
    assert!(asked[0].contains("+  \"statusLine\": {"), "{asked:?}");
    assert!(!machine.settings().exists());
    assert_eq!(machine.setup(Ask::Auto).settings.action, "kept");
}

// ulises-jeremias/agent-toolkit#56: the file was copied wholesale.
#[test]
fn only_our_key_moves() {
    let machine = Machine::new();
    let before =
        "\u{feff}{\r\n\t\"z\": [1,2],\r\n\t\"unknown\": {\"b\":1,  \"a\":2.50},\r\n\t\"é\": \"\\u00e9\"\r\n}";
    machine.write(before);
    fs_err::set_permissions(machine.settings(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let report = machine.setup(Ask::Ours);
    let after = machine.text();
    let start = &before[..before.len() - 3];
    assert!(
        after.starts_with(&format!("{start},\r\n\t\"statusLine\": {{\r\n\t\t\"type\": \"command\",\r\n")),
        "{after:?}"
    );
    assert!(after.ends_with("\r\n\t}\r\n}"), "{after:?}");
    assert_eq!(mode(&machine.settings()), 0o640);
    let backup = report.settings.backup.unwrap();
    assert_eq!(backup, machine.config.join(format!("settings.json.longhaul-{STAMP}.bak")));
    assert_eq!((mode(&backup), fs_err::read_to_string(&backup).unwrap().as_str()), (0o600, before));
    machine.undo();
    assert_eq!(machine.text(), before);
    assert_eq!(mode(&machine.settings()), 0o640);
    assert!(machine.backups().is_empty());
}

#[test]
fn links_to_the_settings_stay_links() {
    let machine = Machine::new();
    let dots = machine.root.path().join("dots");
    fs_err::create_dir_all(dots.join("deep")).unwrap();
    fs_err::write(dots.join("deep/real.json"), "{}\n").unwrap();
    symlink("deep/real.json", dots.join("second")).unwrap();
    symlink("../../dots/second", machine.settings()).unwrap();
    machine.setup(Ask::Ours);
    assert_eq!(fs_err::read_link(machine.settings()).unwrap(), Path::new("../../dots/second"));
    assert!(fs_err::read_to_string(dots.join("deep/real.json")).unwrap().contains("longhaul-statusline"));
    assert_eq!(fs_err::read_dir(dots.join("deep")).unwrap().count(), 1, "no copy in somebody's repository");
    machine.undo();
    assert_eq!(fs_err::read_to_string(dots.join("deep/real.json")).unwrap(), "{}\n");
    assert!(machine.settings().is_symlink());

    // A link to a file that is not there yet.
    fs_err::remove_file(dots.join("deep/real.json")).unwrap();
    machine.setup(Ask::Ours);
    assert!(machine.settings().is_symlink() && dots.join("deep/real.json").is_file());
    machine.undo();
    assert!(machine.settings().is_symlink() && !dots.join("deep/real.json").exists());
}

#[test]
fn settings_that_cannot_be_edited_stop_everything_before_it_begins() {
    let machine = Machine::new();
    let refused = |says: &[&str]| {
        let before = machine.snapshot();
        for ask in [Ask::Auto, Ask::Ours, Ask::Wrap] {
            let error = machine.fails(ask);
            for part in says {
                assert!(error.contains(part), "{error:?} should say {part:?}");
            }
            assert!(error.contains("settings.json") || error.contains("real"), "{error}");
            let _ = fs_err::remove_dir(machine.store().dir());
            assert_eq!(machine.snapshot(), before);
        }
        let undone = setup::undo(&machine.host(), &machine.store(), &[], false);
        assert_eq!(machine.snapshot(), before);
        undone
    };
    machine.write("{\n  \"a\": 1,\n  oops\n}");
    assert!(refused(&["line 3, column 3", "nothing was written"]).is_err());
    machine.write("[]");
    assert!(refused(&["one object"]).is_err());
    machine.write("{\"statusLine\": null,\n \"statusLine\": null}");
    assert!(refused(&["line 2, column 2", "second time"]).is_err());
    fs_err::write(machine.settings(), b"{\"a\": \"\xff\"}").unwrap();
    assert!(refused(&["line 1, column 8", "UTF-8"]).is_err());
    machine.write("{}");
    fs_err::set_permissions(machine.settings(), std::fs::Permissions::from_mode(0o444)).unwrap();
    assert!(refused(&["read-only", "chmod"]).is_ok(), "there is nothing to undo");
    fs_err::remove_file(machine.settings()).unwrap();
    fs_err::create_dir(machine.settings()).unwrap();
    assert!(refused(&["is a directory"]).is_err());
    fs_err::remove_dir(machine.settings()).unwrap();
    symlink("real", machine.settings()).unwrap();
    symlink("settings.json", machine.config.join("real")).unwrap();
    assert!(refused(&["circle"]).is_err());
    fs_err::remove_file(machine.settings()).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(machine.settings()).status().unwrap();
    assert!(fifo.success());
    assert!(machine.fails(Ask::Ours).contains("not a regular file"));
}

#[test]
fn a_target_that_cannot_be_written_leaves_no_trace() {
    let machine = Machine::new();
    symlink("/proc/longhaul/settings.json", machine.settings()).unwrap();
    assert!(machine.fails(Ask::Ours).contains("could not write /proc/longhaul/settings.json"));
    assert!(machine.backups().is_empty());
    assert!(!machine.store().setup_record().exists(), "nothing was done that could be undone");
}

#[test]
fn an_empty_file_is_an_object_without_keys() {
    let machine = Machine::new();
    machine.write("");
    assert_eq!(machine.setup(Ask::Ours).settings.action, "added");
    assert!(machine.command().contains("longhaul-statusline"));
    machine.undo();
    assert_eq!(machine.text(), "");
}

#[test]
fn comments_are_kept_and_their_price_is_said() {
    let machine = Machine::new();
    let text = "{\n  // mine\n  \"a\": 1, // one\n}\n";
    machine.write(text);
    let report = machine.setup(Ask::Ours);
    assert!(report.warnings[0].contains("line 2: a comment"), "{:?}", report.warnings);
    assert!(machine.text().starts_with(&text[..text.len() - 3]));
    machine.undo();
    assert_eq!(machine.text(), text);
}

#[test]
fn a_file_that_somebody_writes_meanwhile_is_read_again() {
    let machine = Machine::new();
    machine.write("{\"a\": 1}");
    let mut times = 0;
    let request = machine.request(Ask::Auto, false);
    let report = setup::install(&machine.host(), &machine.store(), &request, &mut |_| {
        times += 1;
        if times == 1 {
            machine.write("{\"a\": 2}");
        }
        true
    });
    assert_eq!(report.unwrap().settings.action, "added");
    let value: serde_json::Value = serde_json::from_str(&machine.text()).unwrap();
    assert_eq!(value["a"], 2);
    assert_eq!(machine.backups().len(), 1);
    machine.undo();
    assert_eq!(machine.text(), "{\"a\": 2}");

    let request = machine.request(Ask::Auto, false);
    let error = setup::install(&machine.host(), &machine.store(), &request, &mut |_| {
        times += 1;
        machine.write(&format!("{{\"a\": {times}}}"));
        true
    });
    assert!(error.unwrap_err().to_string().contains("somebody else keeps writing it"));
    assert_eq!(machine.text(), format!("{{\"a\": {times}}}"));
    assert!(machine.backups().is_empty());
}

#[test]
fn a_dry_run_shows_the_exact_change_and_touches_nothing() {
    let machine = Machine::new();
    machine.write("{\n  \"a\": 1\n}\n");
    let before = machine.snapshot();
    let dry = |ask| {
        setup::install(&machine.host(), &machine.store(), &machine.request(ask, true), &mut |_| true).unwrap()
    };
    let report = dry(Ask::Ours);
    assert_eq!(machine.snapshot(), before);
    assert!(report.dry_run);
    assert_eq!((report.programs.action, report.programs.copied.len()), ("installed", 4));
    let diff = report.settings.diff.unwrap();
    machine.setup(Ask::Ours);
    let after = machine.text();
    machine.undo();
    fs_err::write(machine.root.path().join("d"), diff).unwrap();
    let settings = machine.settings();
    let patch = format!("patch -s '{}' '{}'", settings.display(), machine.root.path().join("d").display());
    let ran = process::run(Path::new("/bin/sh"), &["-c", &patch], &[], b"", 10_000).unwrap();
    assert_eq!(ran.code, Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(machine.text(), after, "the diff is the change");

    machine.write("{\"statusLine\": {\"type\": \"command\", \"command\": \"theirs\"}}");
    let diff = dry(Ask::Wrap).settings.diff.unwrap();
    assert!(diff.contains("-{\"statusLine\"") && diff.contains("+theirs=$("), "{diff}");

    machine.write("{\n  \"a\": 1\n}\n");
    machine.setup(Ask::Ours);
    let before = machine.snapshot();
    let report = setup::undo(&machine.host(), &machine.store(), &[], true).unwrap();
    assert_eq!(report.settings.action, "restored");
    assert!(report.settings.diff.unwrap().contains("-  \"statusLine\": {"));
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn a_record_that_cannot_be_read_is_set_aside() {
    let machine = Machine::new();
    machine.setup(Ask::Ours);
    fs_err::write(machine.store().setup_record(), "{\"v\":1").unwrap();
    let report = machine.setup(Ask::Ours);
    let aside = machine.store().dir().join(format!("setup.json.unreadable-{STAMP}"));
    assert!(report.warnings[0].contains(aside.to_str().unwrap()), "{:?}", report.warnings);
    assert_eq!(fs_err::read_to_string(aside).unwrap(), "{\"v\":1");
    // Ours is known by its text even so.
    assert_eq!(machine.undo().settings.action, "removed");
    assert_eq!(machine.text(), "{}\n");

    fs_err::write(machine.store().setup_record(), "{\"v\":9,\"version\":\"7.0.0\"}").unwrap();
    assert!(machine.fails(Ask::Ours).contains("longhaul 7.0.0 wrote it"));
    assert!(machine.store().setup_record().exists());
}

#[test]
fn a_wrapper_without_its_record_is_never_undone_by_guessing() {
    let machine = Machine::new();
    machine.write("{\"statusLine\": {\"type\": \"command\", \"command\": \"theirs\"}}");
    machine.setup(Ask::Wrap);
    fs_err::remove_file(machine.store().setup_record()).unwrap();
    let before = machine.snapshot();
    let error = setup::undo(&machine.host(), &machine.store(), &[], false).unwrap_err().to_string();
    assert!(error.contains("statusline-wrapper.sh"), "{error}");
    assert_eq!(machine.snapshot(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_version_that_still_runs_stays() {
    let machine = Machine::new();
    let bin = machine.store().bin();
    for version in ["0.0.1", "0.0.2"] {
        fs_err::create_dir_all(bin.join(version)).unwrap();
        fs_err::copy("/bin/sleep", bin.join(version).join("longhaul-watch")).unwrap();
    }
    fs_err::write(bin.join("0.0.2/notes.txt"), "mine").unwrap();
    let mut running = std::process::Command::new(bin.join("0.0.1/longhaul-watch")).arg("60").spawn().unwrap();
    let report = machine.setup(Ask::Leave);
    let kept = bin.join("0.0.1/longhaul-watch").exists();
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(kept);
    assert!(bin.join("0.0.2/notes.txt").exists(), "only our own files go");
    assert!(report.warnings.iter().any(|w| w.contains("0.0.2")), "{:?}", report.warnings);
    assert_eq!(machine.setup(Ask::Leave).programs.removed, ["0.0.1"]);
}

#[test]
fn a_running_program_is_never_written_into() {
    let machine = Machine::new();
    machine.setup(Ask::Leave);
    let installed = machine.store().current().join("longhaul-watch");
    let open = fs_err::File::open(&installed).unwrap();
    program(&machine.source().join("longhaul-watch"), "echo new");
    let report = machine.setup(Ask::Leave);
    assert_eq!(report.programs.copied, ["longhaul-watch"]);
    let old = std::io::read_to_string(open).unwrap();
    assert!(old.contains("echo longhaul-watch"), "the file that was open is as it was");
    assert!(fs_err::read_to_string(installed).unwrap().contains("echo new"));
}

#[test]
fn a_missing_program_is_named_before_anything_is_done() {
    let machine = Machine::new();
    fs_err::remove_file(machine.source().join("longhaul-hook")).unwrap();
    let before = machine.snapshot();
    let error = machine.fails(Ask::Ours);
    assert!(error.contains("target/longhaul-hook") && error.contains("cargo build"), "{error}");
    assert_eq!(machine.snapshot(), before);
}

// nilbuild/claude-statusline#35: CLAUDE_CONFIG_DIR was ignored.
#[test]
fn a_moved_configuration_directory_is_honoured() {
    let mut machine = Machine::new();
    machine.config = machine.root.path().join("elsewhere/cfg");
    machine.env.push(("CLAUDE_CONFIG_DIR".to_owned(), machine.config.to_str().unwrap().to_owned()));
    machine.setup(Ask::Ours);
    assert!(machine.command().contains("/elsewhere/cfg/longhaul/bin/current/"));
    assert_eq!(mode(&machine.config), 0o700, "made by us");
    assert_eq!(run(&machine.command(), "").1, "longhaul-statusline\n");
    assert_eq!(fs_err::read_dir(machine.root.path().join("home/.claude")).unwrap().count(), 0);
}

#[test]
fn one_setup_at_a_time() {
    let machine = Machine::new();
    let request = machine.request(Ask::Auto, false);
    let mut second = String::new();
    setup::install(&machine.host(), &machine.store(), &request, &mut |_| {
        second = machine.fails(Ask::Ours);
        true
    })
    .unwrap();
    assert!(second.contains("another longhaul setup works"), "{second}");
}

#[derive(Debug, clap::Parser)]
struct Cli {
    #[command(flatten)]
    args: SetupArgs,
}

#[test]
fn a_flag_that_is_not_known_is_a_usage_error_and_never_an_install() {
    for bad in [&["--dry"][..], &["--undo", "--statusline"], &["--statusline", "--wrap-statusline"], &["now"]]
    {
        let error = Cli::try_parse_from([&["setup"], bad].concat()).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{bad:?}");
    }
    let yes = Cli::try_parse_from(["setup", "--yes"]).unwrap().args;
    assert!(yes.yes && !yes.wrap_statusline && !yes.statusline);
}
