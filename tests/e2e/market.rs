//! The way a person gets it: from a marketplace that the release script made, on a machine without Rust, with
//! nothing else done; then another version, and away again.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use longhaul::host::Host;
use longhaul::store::Store;
use longhaul::store::watchers::Stamp;
use serde_json::Value;

use crate::api::Kind;
use crate::bench::{Bench, LONG, wait};
use crate::checkout;
use crate::live::{open, session, session_id, used};
use crate::longhaul::{PROGRAMS, longhaul};
use crate::terminal::Terminal;

/// Stands for the host that marketplaces are cloned from.
const HOST: &str = "https://github.com/";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const NEXT: &str = "99.0.0";

/// The person who releases: sources in a repository whose remote is a bare one on this disk.
struct Publisher<'b> {
    bench: &'b Bench,
    sources: PathBuf,
    programs: PathBuf,
}

impl<'b> Publisher<'b> {
    fn new(bench: &'b Bench) -> Self {
        let config = format!(
            "[url \"file://{}/\"]\n\tinsteadOf = {HOST}\n[protocol \"file\"]\n\tallow = always\n\
             [user]\n\tname = someone\n\temail = s@example.com\n",
            bench.path("host").display()
        );
        std::fs::write(bench.home().join(".gitconfig"), config).unwrap();
        let new = Self { bench, sources: bench.path("sources"), programs: bench.path("built") };
        std::fs::create_dir_all(bench.path("host/someone")).unwrap();
        std::fs::create_dir_all(&new.programs).unwrap();
        for (name, built) in PROGRAMS {
            checkout::put_program(built, &new.programs.join(name));
        }
        checkout::copy(&new.sources);
        let bare = bench.path("host/someone/longhaul.git");
        new.git(&["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().unwrap()]);
        new.git(&["init", "--quiet", "--initial-branch=main", "."]);
        new.git(&["remote", "add", "origin", &format!("{HOST}someone/longhaul.git")]);
        new.push("Everything");
        new
    }

    #[track_caller]
    fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.sources).env_clear().stdin(Stdio::null());
        let out = command.env("HOME", self.bench.home()).env("PATH", "/usr/bin:/bin").output().unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{program} {args:?}: {errors}");
        String::from_utf8(out.stdout).unwrap()
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        self.run("git", args)
    }

    fn push(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
        self.git(&["push", "--quiet", "origin", "main"]);
    }

    fn release(&self, version: &str) {
        let pair = format!("{}={}", checkout::platform(), self.programs.display());
        let out = self.bench.path(&format!("out-{version}"));
        self.run("sh", &[".ci/release", "--publish", "origin", out.to_str().unwrap(), &pair]);
    }

    /// The next version: its number in all places, and a `longhaul` that says so.
    fn release_next(&self) {
        self.git(&["pull", "--quiet", "origin", "main"]);
        let changes = [
            ("Cargo.toml", "version = \"", "\""),
            (".claude-plugin/plugin.json", "\"version\": \"", "\""),
            ("hooks/launcher", "\nversion=", "\n"),
            ("CHANGELOG.md", "\n## ", " "),
        ];
        for (file, before, after) in changes {
            let path = self.sources.join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            let new =
                text.replacen(&format!("{before}{VERSION}{after}"), &format!("{before}{NEXT}{after}"), 1);
            assert_ne!(new, text, "{file}");
            std::fs::write(&path, new).unwrap();
        }
        let program = self.programs.join("longhaul");
        std::fs::write(&program, format!("#!/bin/sh\necho longhaul {NEXT}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.push("The next version");
        self.release(NEXT);
    }
}

/// `claude plugin …`, as it is typed in a terminal.
#[track_caller]
fn plugin(bench: &Bench, args: &[&str]) -> String {
    let mut line = bench.command_line(&[]);
    line.truncate(1);
    line.push("plugin".to_owned());
    line.extend(args.iter().map(|&arg| arg.to_owned()));
    let out = bench.run(&line, &[], b"");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {said}");
    said
}

fn install(bench: &Bench) {
    plugin(bench, &["marketplace", "add", "someone/longhaul"]);
    plugin(bench, &["install", "longhaul@longhaul"]);
}

fn cache(bench: &Bench, version: &str) -> PathBuf {
    bench.config().join("plugins/cache/longhaul/longhaul").join(version)
}

/// A machine as most people have it: no Rust on the way to anything, wherever this one has its own.
fn without_rust() -> Option<Bench> {
    let bench = open()?;
    let tools = bench.path("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["/usr/bin", "/bin"].iter().flat_map(|dir| std::fs::read_dir(dir).unwrap().flatten()) {
        let name = tool.file_name();
        if !["cargo", "rustc", "rustup"].iter().any(|rust| name == *rust) {
            // The same tool may stand in both.
            let _ = std::os::unix::fs::symlink(tool.path(), tools.join(name));
        }
    }
    let path = tools.to_str().unwrap().to_owned();
    Some(bench.env("PATH", &path))
}

/// The watcher of this session's client, and the program that it is.
fn watcher(bench: &Bench, terminal: &Terminal) -> (Stamp, PathBuf) {
    let store = Store::locate(&Host::fixed(&[("HOME", bench.home().to_str().unwrap())], 0), &[]).unwrap();
    let client = u32::try_from(terminal.pid().unwrap().as_raw_nonzero().get()).unwrap();
    let stamp = wait("the watcher", LONG, || store.watcher(client).filter(Stamp::runs));
    let program = std::fs::read_link(format!("/proc/{}/exe", stamp.pid)).unwrap();
    (stamp, program)
}

/// Says something, and waits for the answer and for the gauge of it.
#[track_caller]
fn answers(bench: &Bench, session: &mut Terminal, tokens: u64, line: &str) {
    bench.api.usual(used(tokens));
    session.say(&format!("to {tokens}"));
    let screen = session.wait_for(line);
    assert!(!screen.to_lowercase().contains("error"), "{screen}");
}

#[test]
fn an_install_from_a_marketplace_is_whole_with_nothing_else_done() {
    let Some(bench) = without_rust() else { return };
    Publisher::new(&bench).release(VERSION);
    install(&bench);
    let before = std::fs::read_to_string(bench.config().join("settings.json")).unwrap();
    let mut session = session(&bench, &[]);
    answers(&bench, &mut session, 228_000, " 62% 228k/367k ");
    assert_eq!(std::fs::read_to_string(bench.config().join("settings.json")).unwrap(), before);
    assert!(!before.contains("statusLine"), "{before}");
    assert!(!bench.config().join("longhaul/bin").exists(), "nothing was installed beside the plugin");
    let (stamp, program) = watcher(&bench, &session);
    assert!(program.starts_with(cache(&bench, VERSION)), "{}", program.display());
    let id = session_id(&bench);
    assert_eq!(stamp.session.as_deref(), Some(&*id));
    wait("the turn's last beat", LONG, || {
        let rows: Value = serde_json::from_str(&longhaul(&bench, &["sessions", "--all", "--json"])).unwrap();
        let ours = rows.as_array()?.iter().find(|row| row["session"] == id)?;
        (ours["facts"]["beat"]["phase"].is_string() && ours["verdict"] == "idle").then_some(())
    });
}

#[test]
fn an_open_session_outlives_an_update_the_old_version_and_the_plugin() {
    let Some(bench) = without_rust() else { return };
    let publisher = Publisher::new(&bench);
    publisher.release(VERSION);
    install(&bench);
    let mut old = session(&bench, &[]);
    answers(&bench, &mut old, 100_000, " 27% 100k/367k ");
    let (first, _) = watcher(&bench, &old);

    publisher.release_next();
    plugin(&bench, &["marketplace", "update", "longhaul"]);
    plugin(&bench, &["update", "longhaul@longhaul"]);
    assert!(cache(&bench, NEXT).is_dir());
    // What an open session runs stays where it is until that ends: the client marks it as in use.
    assert!(cache(&bench, VERSION).is_dir());
    answers(&bench, &mut old, 312_000, " 85% 312k/367k ");
    wait("the answer's row", LONG, || {
        bench.transcript(None).iter().any(|row| row.to_string().contains("ANSWER-AT-312000")).then_some(())
    });
    // The prompt's hook is what tells the model.
    answers(&bench, &mut old, 120_000, " 33% 120k/367k ");
    let told = bench.api.of(Kind::Main).last().unwrap().new_text();
    assert!(told.contains("[longhaul] This session stands at 85 %"), "{told}");
    // Where it goes all the same the client itself holds the hooks back. The line and the watcher go on.
    std::fs::remove_dir_all(cache(&bench, VERSION)).unwrap();
    answers(&bench, &mut old, 125_000, " 34% 125k/367k ");
    assert_eq!(watcher(&bench, &old).0.pid, first.pid);
    let mut new = session(&bench, &[]);
    answers(&bench, &mut new, 130_000, " 35% 130k/367k ");
    let (second, program) = watcher(&bench, &new);
    assert!(program.starts_with(cache(&bench, NEXT)), "{}", program.display());

    plugin(&bench, &["uninstall", "longhaul@longhaul"]);
    std::fs::remove_dir_all(bench.config().join("plugins/cache/longhaul")).unwrap();
    for session in [&mut old, &mut new] {
        bench.api.usual(used(140_000));
        session.say("still there?");
        let screen = session.wait_for("ANSWER-AT-140000");
        assert!(!screen.to_lowercase().contains("error"), "{screen}");
    }
    assert!(bench.api.of(Kind::Main).len() >= 6);
    old.hang_up();
    new.hang_up();
    wait("the watchers' end", LONG, || (!first.runs() && !second.runs()).then_some(()));
    let mut bare = session(&bench, &[]);
    bare.say("and now");
    let screen = bare.wait_for("ANSWER-AT-140000");
    assert!(!screen.contains("/367k") && !screen.to_lowercase().contains("error"), "{screen}");
}

// The person's own text comes back however the client writes its settings.
#[test]
fn a_setup_in_a_checkout_shows_the_gauge_and_undo_leaves_the_settings_byte_for_byte() {
    let Some(bench) = open() else { return };
    let settings = bench.config().join("settings.json");
    let text = "{\n\t\"unknown\": {\"b\":1,  \"a\":2.50}\n}\n";
    std::fs::write(&settings, text).unwrap();
    let client = bench.command_line(&[]).swap_remove(0);
    let env = [("CLAUDE_BIN", client.as_str())];
    let setup = |args: &[&str]| {
        let line: Vec<_> = [PROGRAMS[0].1, "setup"].iter().chain(args).map(|&arg| arg.to_owned()).collect();
        let out = bench.run(&line, &env, b"");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    };
    setup(&["--yes", "--no-link"]);
    let now = std::fs::read_to_string(&settings).unwrap();
    assert!(now.starts_with(&text[..text.len() - 3]) && now.contains("longhaul@longhaul"), "{now}");
    let mut session = session(&bench, &[]);
    bench.api.usual(used(228_000));
    session.say("hello");
    session.wait_for(" 62% 228k/367k ");
    drop(session);
    setup(&["--undo"]);
    assert!(!bench.config().join("longhaul/marketplace").exists());
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), text);
}
