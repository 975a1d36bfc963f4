//! The timer, by stand-ins for what makes it: no test comes near this machine's own.

use std::path::{Path, PathBuf};

use longhaul::setup::decide::Ask;
use longhaul::setup::extra::Wish;
use longhaul::setup::report::{Part, Report};
use longhaul::setup::{self, About, Request};

use super::{Machine, program, run};
use crate::sandbox::Sandbox;

/// Keeps what it is given beside itself, and says what it was told.
const CRONTAB: &str = r#"dir=${0%/*}
case $1 in
-l) if [ -f "$dir/tab" ]; then exec /bin/cat "$dir/tab"; fi
    echo "no crontab for me" >&2; exit 1 ;;
-) exec /bin/cat >"$dir/tab" ;;
-r) exec /bin/rm "$dir/tab" ;;
*) exit 2 ;;
esac"#;

/// A manager with an environment of its own, and what it was told in a file beside it.
const SYSTEMCTL: &str = r#"dir=${0%/*}
echo "$*" >>"$dir/told"
case $2 in
show-environment) [ ! -f "$dir/dead" ] || { echo "Failed to connect to bus" >&2; exit 1; }
    if [ -f "$dir/config" ]; then echo "XDG_CONFIG_HOME=$(/bin/cat "$dir/config")"; fi ;;
is-enabled) [ -f "$dir/on" ] ;;
enable) [ ! -f "$dir/refuses" ] || { echo "it will not" >&2; exit 1; }; : >"$dir/on" ;;
disable) /bin/rm -f "$dir/on" ;;
daemon-reload) ;;
*) exit 2 ;;
esac"#;

const LAUNCHCTL: &str = r#"echo "$*" >>"${0%/*}/told""#;

struct Timed {
    machine: Machine,
    tools: PathBuf,
}

impl Timed {
    fn new(tools: &[(&str, &str)]) -> Self {
        Self::at("home", tools)
    }

    fn at(home: &str, tools: &[(&str, &str)]) -> Self {
        let mut machine = Machine::with_home(home);
        let dir = machine.root.path().join("tools");
        fs_err::create_dir_all(&dir).unwrap();
        for (name, text) in tools {
            program(&dir.join(name), text);
        }
        machine.env.push(("PATH".to_owned(), dir.to_str().unwrap().to_owned()));
        machine.env.push(("DBUS_SESSION_BUS_ADDRESS".to_owned(), "unix:path=/run/user/7/bus".to_owned()));
        Self { machine, tools: dir }
    }

    fn tab(&self) -> PathBuf {
        self.tools.join("tab")
    }

    fn read(&self, name: &str) -> String {
        fs_err::read_to_string(self.tools.join(name)).unwrap_or_default()
    }

    fn install(&self, timer: Wish, dry_run: bool, agrees: bool) -> (Report, usize) {
        let request = Request { timer, ..self.machine.request(Ask::Leave, dry_run) };
        let mut asked = 0;
        let report = setup::install(&self.machine.host(), &self.machine.store(), &request, &mut |question| {
            assert_eq!(question.about, About::Timer);
            asked += 1;
            agrees
        });
        (report.unwrap(), asked)
    }

    #[track_caller]
    fn part(&self, timer: Wish) -> Part {
        self.install(timer, false, true).0.timer.unwrap()
    }

    fn undo(&self) -> Option<Part> {
        self.machine.undo().timer
    }

    fn home(&self) -> &Path {
        self.machine.config.parent().unwrap()
    }
}

#[test]
fn a_crontab_gets_one_line_and_keeps_all_others() {
    let timed = Timed::at("my home's 100% $HOME", &[("crontab", CRONTAB)]);
    let before: &[u8] = b"# mine \xff\nMAILTO=me\n\n*/5 * * * * echo 100\\% # by longhaul\r\n";
    fs_err::write(timed.tab(), before).unwrap();
    let (report, asked) = timed.install(Wish::Offer, false, true);
    assert_eq!((asked, report.timer.unwrap().action), (1, "added"));
    let after = fs_err::read(timed.tab()).unwrap();
    let line = std::str::from_utf8(after.strip_prefix(before).unwrap()).unwrap();
    assert!(line.starts_with("*/3 * * * * CLAUDE_CONFIG_DIR=") && line.ends_with('\n'), "{line}");
    assert!(line.contains(" DBUS_SESSION_BUS_ADDRESS='unix:path=/run/user/7/bus' "), "{line}");

    // What cron would run: the % without its backslash, by sh.
    let says = "echo \"$CLAUDE_CONFIG_DIR|$DBUS_SESSION_BUS_ADDRESS|$*\" >\"${0%/*}/ran\"";
    program(&timed.machine.store().current().join("longhaul"), says);
    let command = line.trim_start_matches("*/3 * * * * ").replace("\\%", "%");
    assert_eq!(run(&command, ""), (Some(0), String::new()));
    let ran = fs_err::read_to_string(timed.machine.store().current().join("ran")).unwrap();
    let config = timed.machine.config.display();
    assert_eq!(ran, format!("{config}|unix:path=/run/user/7/bus|sessions --check --notify\n"));

    let (report, asked) = timed.install(Wish::Offer, false, true);
    assert_eq!((asked, report.timer.unwrap().action), (0, "unchanged"));
    assert_eq!(fs_err::read(timed.tab()).unwrap(), after);
    assert_eq!(timed.undo().unwrap().action, "removed");
    assert_eq!(fs_err::read(timed.tab()).unwrap(), before);
    assert_eq!(timed.undo(), None);
}

#[test]
fn a_crontab_that_was_made_for_the_line_goes_with_it() {
    let timed = Timed::new(&[("crontab", CRONTAB)]);
    let (dry, asked) = timed.install(Wish::Bring, true, true);
    assert!(dry.timer.unwrap().diff.unwrap().contains("+*/3 * * * * CLAUDE_CONFIG_DIR="));
    assert!(asked == 0 && !timed.tab().exists());
    assert_eq!(timed.part(Wish::Bring).action, "added");
    assert!(timed.tab().exists());
    let dry = setup::undo(&timed.machine.host(), &timed.machine.store(), &[], true).unwrap();
    assert!(dry.timer.unwrap().diff.unwrap().contains("-*/3"));
    assert!(timed.tab().exists());
    timed.undo();
    assert!(!timed.tab().exists());
}

#[test]
fn an_interval_of_the_persons_own_stays_and_a_line_switched_off_stays_off() {
    let timed = Timed::new(&[("crontab", CRONTAB)]);
    timed.part(Wish::Bring);
    let edited = timed.read("tab").replace("*/3 *", "*/10 8-20");
    fs_err::write(timed.tab(), &edited).unwrap();
    assert_eq!(timed.part(Wish::Offer).action, "unchanged");
    let old = edited.replace("bin/current/longhaul", "bin/0.0.1/longhaul");
    fs_err::write(timed.tab(), old).unwrap();
    assert_eq!(timed.part(Wish::Leave).action, "updated");
    assert_eq!(timed.read("tab"), edited);

    let off = format!("#{edited}");
    fs_err::write(timed.tab(), &off).unwrap();
    assert_eq!(timed.part(Wish::Offer).action, "kept");
    assert_eq!(timed.part(Wish::Offer).action, "kept");
    assert_eq!(timed.undo(), None, "there is none any more");
    assert_eq!(timed.read("tab"), off);
    assert_eq!(timed.part(Wish::Bring).action, "added");
    assert_eq!(timed.part(Wish::Refuse).action, "removed");
    assert_eq!(timed.read("tab"), off);
    assert_eq!(timed.install(Wish::Offer, false, true).1, 0, "and none is offered");
}

#[test]
fn a_crontab_that_cannot_be_read_is_not_written() {
    let timed = Timed::new(&[("crontab", "echo 'you are not allowed' >&2; exit 1")]);
    let (report, _) = timed.install(Wish::Bring, false, true);
    assert!(report.failed());
    let part = report.timer.unwrap();
    assert!(part.reason.contains("you are not allowed") && part.reason.contains("nothing was changed"));
    assert_eq!(report.programs.action, "installed");
    // What nobody asked for does not fail.
    assert!(!timed.install(Wish::Offer, false, true).0.failed());
    assert!(!timed.install(Wish::Leave, false, true).0.failed());
}

#[test]
fn a_manager_that_answers_gets_a_timer_where_it_looks_for_one() {
    let timed = Timed::at("a b\"c\\d%e$f", &[("systemctl", SYSTEMCTL), ("crontab", CRONTAB)]);
    let config = timed.machine.root.path().join("elsewhere");
    fs_err::write(timed.tools.join("config"), config.to_str().unwrap()).unwrap();
    let before = timed.machine.snapshot();
    assert_eq!(timed.part(Wish::Bring).action, "added");
    let dir = config.join("systemd/user");
    let service = fs_err::read_to_string(dir.join("longhaul.service")).unwrap();
    let home = timed.home().to_str().unwrap().replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    assert!(service.contains(&format!("Environment=\"CLAUDE_CONFIG_DIR={home}/.claude\"\n")), "{service}");
    assert!(service.contains("Environment=\"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/7/bus\"\n"));
    let program = format!("\"{}/.claude/longhaul/bin/current/longhaul\"", home.replace('$', "$$"));
    let starts = format!("ExecStart=/bin/sh -c 'exec \"$$0\" \"$$@\"' {program} sessions --check --notify\n");
    assert!(service.contains(&starts), "{service}");
    assert!(fs_err::read_to_string(dir.join("longhaul.timer")).unwrap().contains("OnCalendar=*:0/3\n"));
    assert!(timed.read("told").contains("--user daemon-reload\n--user enable --now longhaul.timer\n"));
    assert!(!timed.tab().exists(), "one timer is enough");

    assert_eq!(timed.part(Wish::Offer).action, "unchanged");
    assert_eq!(timed.undo().unwrap().action, "removed");
    assert!(timed.read("told").contains("--user disable --now longhaul.timer\n"));
    assert!(!config.exists(), "what was made for it is gone");
    fs_err::remove_file(timed.tools.join("told")).unwrap();
    fs_err::remove_dir_all(timed.machine.store().dir()).unwrap();
    assert_eq!(timed.machine.snapshot(), before);
}

#[test]
fn a_timer_that_was_switched_off_stays_off_and_one_of_an_older_longhaul_is_renewed() {
    let timed = Timed::new(&[("systemctl", SYSTEMCTL)]);
    timed.part(Wish::Bring);
    let service = timed.home().join(".config/systemd/user/longhaul.service");
    let text = fs_err::read_to_string(&service).unwrap();
    fs_err::write(&service, text.replace("current", "0.0.1")).unwrap();
    assert_eq!(timed.part(Wish::Leave).action, "updated");
    assert_eq!(fs_err::read_to_string(&service).unwrap(), text);
    fs_err::remove_file(timed.tools.join("on")).unwrap();
    assert_eq!(timed.part(Wish::Offer).action, "kept");
    assert_eq!(timed.part(Wish::Bring).action, "added");
    fs_err::write(&service, "[Service]\nExecStart=/mine\n").unwrap();
    assert_eq!(timed.part(Wish::Bring).action, "kept", "somebody else's");
    timed.undo();
    assert_eq!(fs_err::read_to_string(&service).unwrap(), "[Service]\nExecStart=/mine\n");
}

#[test]
fn a_manager_that_refuses_leaves_nothing_behind_and_one_that_is_gone_holds_nothing_up() {
    let timed = Timed::new(&[("systemctl", SYSTEMCTL)]);
    fs_err::write(timed.tools.join("refuses"), "").unwrap();
    let (report, _) = timed.install(Wish::Bring, false, true);
    assert!(report.failed() && report.timer.unwrap().reason.contains("it will not"));
    assert!(!timed.home().join(".config").exists());

    fs_err::remove_file(timed.tools.join("refuses")).unwrap();
    timed.part(Wish::Bring);
    fs_err::write(timed.tools.join("dead"), "").unwrap();
    assert_eq!(timed.undo().unwrap().action, "removed");
    assert!(!timed.home().join(".config").exists());
}

#[test]
fn without_an_answering_manager_the_crontab_serves_and_without_either_it_is_said() {
    let timed = Timed::new(&[("systemctl", SYSTEMCTL), ("crontab", CRONTAB)]);
    fs_err::write(timed.tools.join("dead"), "").unwrap();
    assert_eq!(timed.part(Wish::Bring).action, "added");
    assert!(timed.tab().exists());

    let bare = Timed::new(&[]);
    let (report, _) = bare.install(Wish::Bring, false, true);
    assert!(report.failed());
    let part = report.timer.unwrap();
    assert!(part.reason.contains("sessions --check --notify"), "{}", part.reason);
    let (report, asked) = bare.install(Wish::Offer, false, true);
    assert_eq!((report.failed(), asked, report.timer.unwrap().action), (false, 0, "absent"));
}

#[test]
fn launchd_gets_an_agent() {
    let timed = Timed::at("a <b> & c", &[("launchctl", LAUNCHCTL), ("crontab", CRONTAB)]);
    assert_eq!(timed.part(Wish::Bring).action, "added");
    let plist = timed.home().join("Library/LaunchAgents/local.longhaul.sessions.plist");
    let text = fs_err::read_to_string(&plist).unwrap();
    assert!(text.contains("/a &lt;b&gt; &amp; c/.claude/longhaul/bin/current/longhaul</string>"), "{text}");
    assert!(text.contains("<key>StartInterval</key>\n  <integer>180</integer>"));
    assert!(timed.read("told").contains("bootstrap gui/"));
    assert_eq!(timed.part(Wish::Offer).action, "unchanged");
    assert_eq!(timed.undo().unwrap().action, "removed");
    assert!(timed.read("told").contains("bootout gui/") && !timed.home().join("Library").exists());
}

#[test]
fn each_configuration_directory_has_a_timer_of_its_own() {
    let mut timed = Timed::new(&[("crontab", CRONTAB)]);
    timed.part(Wish::Bring);
    let first = timed.read("tab");
    let other = timed.machine.root.path().join("other");
    timed.machine.env.push(("CLAUDE_CONFIG_DIR".to_owned(), other.to_str().unwrap().to_owned()));
    assert_eq!(timed.part(Wish::Bring).action, "added");
    assert_eq!(timed.read("tab").lines().count(), 2);
    timed.undo();
    assert_eq!(timed.read("tab"), first);
}

// A project's settings can set PATH: nothing of the project is run.
#[test]
fn a_crontab_program_of_the_project_is_not_run() {
    let timed = Timed::new(&[("crontab", ": >\"${0%/*}/ran\"")]);
    let request = Request {
        timer: Wish::Bring,
        untrusted: vec![timed.tools.clone()],
        ..timed.machine.request(Ask::Leave, false)
    };
    let report =
        setup::install(&timed.machine.host(), &timed.machine.store(), &request, &mut |_| true).unwrap();
    assert!(report.timer.unwrap().reason.contains("there is no way"));
    assert!(!timed.tools.join("ran").exists());
}

#[test]
fn yes_alone_makes_no_timer() {
    let timed = Timed::new(&[("crontab", CRONTAB)]);
    let sandbox = Sandbox::new().env("PATH", timed.tools.to_str().unwrap());
    let said = sandbox.longhaul(&["setup", "--yes", "--no-statusline"]);
    assert!(said.code == 0 && said.stdout.contains("timer: none was asked for"), "{said:?}");
    assert!(!timed.tab().exists());
    let said = sandbox.longhaul(&["setup", "--timer", "--no-statusline"]);
    assert!(said.code == 0 && timed.tab().exists(), "{said:?}");
    let said = sandbox.longhaul(&["setup", "--undo"]);
    assert!(said.code == 0 && !timed.tab().exists(), "{said:?}");
}
