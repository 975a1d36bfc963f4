use super::*;
use crate::base::id::SessionId;
use crate::host::clock::sleep_ms;
use crate::liveness::sweep::Session;
use crate::liveness::verdict::{Facts, Judged, Verdict};
use crate::store::beats::{self, Phase};
use std::os::unix::fs::PermissionsExt as _;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.at(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
        std::io::Write::write_all(&mut file, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
        file.into_temp_path().persist(&path).unwrap();
        path
    }

    /// With its own programs, and the system's for what scripts need.
    fn host(&self) -> Host {
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        Host::fixed(&[("PATH", &path), ("HOME", self.0.path().to_str().unwrap())], 0)
    }

    fn said(&self, name: &str) -> String {
        fs_err::read_to_string(self.at(name)).unwrap_or_default()
    }
}

fn news(name: &str, kind: Kind) -> News {
    let session = Session {
        id: SessionId::parse("s").unwrap(),
        name: Some(name.into()),
        project: None,
        pid: None,
        kind: beats::Kind::Interactive,
        judged: Judged {
            verdict: Verdict::Stale,
            suspected: false,
            phase: Phase::Thinking,
            detail: None,
            silence: 301_000,
        },
        since: 0,
        at: 0,
        restarted: None,
        facts: Facts::default(),
    };
    News::of(&format!("id {name}"), kind, &session, 0)
}

fn own_program(program: &str, args: &[&str]) -> Notify {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Notify { command: Some(Argv { program: program.into(), args }), ..Notify::default() }
}

/// All that came of it.
#[track_caller]
fn told(host: &Host, config: &Notify, untrusted: &[PathBuf], news: &[News]) -> Vec<Outcome> {
    let mut teller = Teller::default();
    teller.tell(host, config, untrusted, news);
    let deadline = Deadline::after_ms(60_000);
    let mut all = Vec::new();
    while !teller.is_idle() {
        assert!(!deadline.passed(), "it never ends: {teller:?}");
        all.extend(teller.turn(host));
        sleep_ms(2);
    }
    all
}

const ODD: &str = "-x $(touch hurt) `touch hurt` \"'; <b>&amp;\\n";

#[test]
fn a_program_of_the_persons_gets_each_incident_on_its_standard_input() {
    let place = Place::new();
    let program = place.program("own/tell", "{ echo \"$@\"; cat; } >>said");
    let config = own_program(program.to_str().unwrap(), &["--to", "$HOME"]);
    let outcomes = told(&place.host(), &config, &[], &[news(ODD, Kind::Stale)]);
    assert_eq!(outcomes.len(), 1);
    assert_eq!((&outcomes[0].ids[..], &outcomes[0].trouble), (&[format!("id {ODD}")][..], &None));
    let said = place.said("said");
    let (args, input) = said.split_once('\n').unwrap();
    assert_eq!(args, "--to $HOME", "no shell reads them");
    let value: serde_json::Value = serde_json::from_str(input).unwrap();
    assert_eq!((&value["name"], &value["incident"]), (&ODD.into(), &"stale?".into()));
    assert!(!place.at("hurt").exists());
}

#[test]
fn a_desktop_gets_texts_as_arguments_that_it_can_only_show() {
    let place = Place::new();
    place.program("bin/notify-send", "for arg; do printf '%s\\n' \"$arg\"; done >>said");
    let outcomes = told(&place.host(), &Notify::default(), &[], &[news(ODD, Kind::Dead)]);
    assert_eq!(outcomes[0].trouble, None);
    let said = place.said("said");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[..3], ["--app-name=longhaul", "--urgency=critical", "--"]);
    assert_eq!(lines[3], format!("longhaul: {ODD} has died"));
    assert!(lines[4].starts_with("its process is gone; ") && lines.len() == 5, "{said}");
    assert_eq!(marked_up("<b>&\\n"), "&lt;b&gt;&amp;\\\\n");
    assert!(!place.at("hurt").exists());
}

#[test]
fn a_script_of_the_systems_is_given_texts_as_its_arguments() {
    let job = shown(&Way::OsaScript("/usr/bin/osascript".into()), "-x \"", "<b>", false, Vec::new());
    assert_eq!(job.args[4..], ["-e", "end run", "longhaul: -x \"", "<b>"]);
    assert!(job.args[..6].iter().all(|arg| !arg.contains('"') && !arg.contains("<b>")));
}

#[test]
fn many_at_once_are_one_notification_and_each_for_a_program() {
    let place = Place::new();
    place.program("bin/notify-send", "echo \"$4\" >>shown");
    place.program("bin/tell", "cat >>said");
    let many: Vec<_> = (0..9).map(|n| news(&n.to_string(), Kind::Waiting)).collect();
    let config = Notify { desktop: Some(true), ..own_program("tell", &[]) };
    let outcomes = told(&place.host(), &config, &[], &many);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.ids.len() == 9).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.ids.len() == 1).count(), 9);
    assert!(outcomes.iter().all(|outcome| outcome.trouble.is_none()), "{outcomes:?}");
    assert_eq!(place.said("shown"), "longhaul: 9 sessions need a look\n");
    assert_eq!(place.said("said").lines().count(), 9);
}

#[test]
fn one_that_fails_is_gone_or_not_to_be_trusted_is_named() {
    let place = Place::new();
    let failing = place.program("own/failing", "echo out; echo '  no display ' >&2; exit 4");
    let trouble = |program: &str, untrusted: &[PathBuf]| {
        let outcomes = told(&place.host(), &own_program(program, &[]), untrusted, &[news("a", Kind::Dead)]);
        assert_eq!((outcomes.len(), outcomes[0].ids.len(), outcomes[0].may_ring), (1, 1, false));
        outcomes[0].trouble.clone().unwrap()
    };
    assert!(trouble(failing.to_str().unwrap(), &[]).ends_with("own/failing ended with 4: no display"));
    assert!(trouble("no-such-program", &[]).contains("there is no program \"no-such-program\" on PATH"));
    assert!(trouble("/no/such", &[]).contains("/no/such cannot be followed"));
    place.program("bin/tell", "exit 0");
    assert!(trouble("tell", &[place.at("bin")]).contains("lies in the project: not run"));
    fs_err::set_permissions(&failing, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(trouble(failing.to_str().unwrap(), &[]).contains("can be written by others: not run"));
}

#[test]
fn without_a_notifier_a_terminal_may_say_it_unless_nobody_wants_that() {
    let place = Place::new();
    let nowhere = Host::fixed(&[("PATH", place.at("bin").to_str().unwrap())], 0);
    if cfg!(target_os = "macos") {
        return;
    }
    let outcomes = told(&nowhere, &Notify::default(), &[], &[news("a", Kind::Dead)]);
    assert!(outcomes[0].may_ring && outcomes[0].trouble.as_ref().unwrap().contains("no notify-send"));
    let silent = Notify { desktop: Some(false), ..Notify::default() };
    let outcomes = told(&nowhere, &silent, &[], &[news("a", Kind::Dead)]);
    assert_eq!((outcomes[0].may_ring, &outcomes[0].trouble), (false, &None));
}

#[test]
fn one_that_hangs_is_ended_with_all_that_it_started_and_holds_nobody_up() {
    let place = Place::new();
    let hanging = place.program("own/hang", "trap '' TERM; sleep 600 & echo $$ >pid; wait; sleep 600");
    let mut teller = Teller::default();
    let config = own_program(hanging.to_str().unwrap(), &[]);
    teller.tell(&place.host(), &config, &[], &[news("a", Kind::Dead)]);
    let deadline = Deadline::after_ms(20_000);
    while place.said("pid").is_empty() {
        assert!(!deadline.passed());
        assert_eq!(teller.turn(&place.host()), [], "it goes on");
        sleep_ms(5);
    }
    let process = process::find(place.said("pid").trim().parse().unwrap()).unwrap();
    // Its time is over.
    teller.running[0].1 = Deadline::after_ms(0);
    let outcomes = teller.turn(&place.host());
    assert!(outcomes[0].trouble.as_ref().unwrap().contains("was not done after 10 s"), "{outcomes:?}");
    assert!(teller.is_idle() && !process.runs());
    teller.tell(&place.host(), &config, &[], &[news("b", Kind::Dead)]);
    fs_err::remove_file(place.at("pid")).unwrap();
    while place.said("pid").is_empty() {
        assert!(!deadline.passed());
        teller.turn(&place.host());
        sleep_ms(5);
    }
    let process = process::find(place.said("pid").trim().parse().unwrap()).unwrap();
    drop(teller);
    assert!(!process.runs(), "it ends with whoever started it");
}

#[test]
fn what_only_the_client_needs_is_kept_from_it() {
    let place = Place::new();
    let program = place.program("own/tell", "exit 0");
    let home = place.0.path().to_str().unwrap().to_owned();
    let host = Host::fixed(&[("HOME", &home), ("CLAUDE_PID", "7"), ("PATH", "/usr/bin:/bin")], 0);
    let mut teller = Teller::default();
    teller.tell(&host, &own_program(program.to_str().unwrap(), &[]), &[], &[news("a", Kind::Dead)]);
    for name in ["CLAUDE_PID", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"] {
        assert!(teller.without.contains(&name.into()), "{name}");
    }
}
