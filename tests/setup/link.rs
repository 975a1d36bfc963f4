//! The link in `~/.local/bin`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use longhaul::setup::decide::Ask;
use longhaul::setup::extra::Wish;
use longhaul::setup::report::{Part, Report};
use longhaul::setup::{self, About, Request};

use super::{Machine, program};
use crate::sandbox::{Sandbox, program_path};

fn at(machine: &Machine) -> PathBuf {
    machine.config.parent().unwrap().join(".local/bin/longhaul")
}

fn install(machine: &Machine, link: Wish, dry_run: bool, agrees: bool) -> (Report, usize) {
    let request = Request { link, ..machine.request(Ask::Leave, dry_run) };
    let mut asked = 0;
    let report = setup::install(&machine.host(), &machine.store(), &request, &mut |question| {
        assert_eq!(question.about, About::Link);
        asked += 1;
        agrees
    });
    (report.unwrap(), asked)
}

fn part(report: Report) -> Part {
    report.link.unwrap()
}

#[test]
fn a_link_leads_to_the_program_through_updates_and_goes_with_undo() {
    let machine = Machine::with_home("my home's $HOME 日本");
    let before = machine.snapshot();
    let (report, asked) = install(&machine, Wish::Offer, false, true);
    assert_eq!((asked, part(report).action), (1, "added"));
    let to = machine.store().current().join("longhaul");
    assert_eq!(fs_err::read_link(at(&machine)).unwrap(), to);
    assert!(fs_err::read_to_string(at(&machine)).unwrap().contains("echo longhaul"));

    let set_up = machine.snapshot();
    let (report, asked) = install(&machine, Wish::Offer, false, true);
    assert_eq!((asked, part(report).action), (0, "unchanged"));
    assert_eq!(machine.snapshot(), set_up, "twice is a no-op");

    let dry = setup::undo(&machine.host(), &machine.store(), &[], true).unwrap();
    assert!(part(dry).diff.unwrap().contains("-link to "));
    assert_eq!(machine.snapshot(), set_up);
    assert_eq!(part(machine.undo()).action, "removed");
    assert_eq!(part(machine.undo()).action, "absent");
    // What was declined is remembered: the status line, by this setup's own wish.
    fs_err::remove_dir_all(machine.store().dir()).unwrap();
    assert_eq!(machine.snapshot(), before, "directories that were made for it are gone, too");
}

#[test]
fn what_somebody_else_put_there_stays() {
    let home = |machine: &Machine| fs_err::create_dir_all(at(machine).parent().unwrap()).unwrap();
    let makes: [fn(&Path); 4] = [
        |at| fs_err::write(at, "mine").unwrap(),
        |at| symlink("/none/such", at).unwrap(),
        |at| symlink("/other/longhaul/bin/current/longhaul", at).unwrap(),
        |at| fs_err::create_dir(at).unwrap(),
    ];
    for make in makes {
        let machine = Machine::new();
        home(&machine);
        make(&at(&machine));
        for wish in [Wish::Offer, Wish::Bring, Wish::Refuse] {
            let (report, asked) = install(&machine, wish, false, true);
            assert_eq!((asked, part(report).action), (0, "kept"), "{wish:?}");
        }
        let text = |machine: &Machine| {
            let meta = at(machine).symlink_metadata().unwrap();
            (meta.file_type(), fs_err::read_link(at(machine)).ok(), fs_err::read(at(machine)).ok())
        };
        let before = text(&machine);
        assert_eq!(part(machine.undo()).action, "absent");
        assert_eq!(text(&machine), before);
    }
}

#[test]
fn a_link_that_was_refused_or_removed_stays_away_until_asked_for_by_name() {
    let machine = Machine::new();
    let (report, asked) = install(&machine, Wish::Offer, false, false);
    assert_eq!((asked, part(report).action), (1, "kept"));
    let (report, asked) = install(&machine, Wish::Offer, false, true);
    assert_eq!((asked, part(report).action), (0, "kept"), "not asked twice");
    assert!(at(&machine).symlink_metadata().is_err());

    assert_eq!(part(install(&machine, Wish::Bring, false, true).0).action, "added");
    fs_err::remove_file(at(&machine)).unwrap();
    for _ in 0..2 {
        let (report, asked) = install(&machine, Wish::Offer, false, true);
        assert_eq!((asked, part(report).action), (0, "kept"));
    }
    assert_eq!(part(install(&machine, Wish::Bring, false, true).0).action, "added");
    assert_eq!(part(install(&machine, Wish::Refuse, false, true).0).action, "removed");
    assert!(at(&machine).symlink_metadata().is_err());
    assert_eq!(install(&machine, Wish::Offer, false, true).1, 0);
    assert_eq!(part(install(&machine, Wish::Leave, false, true).0).action, "kept");
}

#[test]
fn a_dry_run_shows_the_link_and_makes_none() {
    let machine = Machine::new();
    let before = machine.snapshot();
    let (report, asked) = install(&machine, Wish::Offer, true, true);
    let part = part(report);
    assert_eq!((asked, part.action), (0, "added"));
    assert!(part.diff.unwrap().contains("+link to "));
    assert_eq!(machine.snapshot(), before);
}

#[test]
fn a_home_that_takes_no_link_is_said_and_stops_nothing_else() {
    let machine = Machine::new();
    fs_err::write(machine.config.parent().unwrap().join(".local"), "a file").unwrap();
    let (report, _) = install(&machine, Wish::Bring, false, true);
    assert!(report.failed());
    assert_eq!(report.programs.action, "installed");
    let part = part(report);
    assert!(part.reason.contains("could not make"), "{}", part.reason);
}

#[test]
fn a_path_without_the_directory_is_told_in_the_shells_own_words() {
    for (shell, says) in [
        ("/bin/bash", "~/.bashrc"),
        ("/usr/bin/zsh", "~/.zshrc"),
        ("/usr/bin/fish", "fish_add_path"),
        ("", "your shell's profile"),
    ] {
        let mut machine = Machine::new();
        machine.env.push(("SHELL".to_owned(), shell.to_owned()));
        machine.env.push(("PATH".to_owned(), "/none".to_owned()));
        let (report, _) = install(&machine, Wish::Bring, false, true);
        let note = report.warnings.iter().find(|note| note.contains("PATH"));
        assert!(note.is_some_and(|note| note.contains(says)), "{shell}: {:?}", report.warnings);
        let dir = at(&machine).parent().unwrap().to_str().unwrap().to_owned();
        machine.env.last_mut().unwrap().1 = format!("/none:{dir}/");
        let (report, _) = install(&machine, Wish::Leave, false, true);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    }
}

/// `longhaul setup` itself, from a directory with all four programs.
#[test]
fn yes_makes_the_link_and_silence_does_not() {
    let sandbox = Sandbox::new().env("PATH", "/none");
    let link = sandbox.root.path().join("home/.local/bin/longhaul");
    let beside = Path::new(program_path("longhaul")).parent().unwrap();
    assert!(beside.join("longhaul-hook").is_file());
    let said = sandbox.longhaul(&["setup", "--no-statusline"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("link: ") && link.symlink_metadata().is_err(), "{said:?}");
    let said = sandbox.longhaul(&["setup", "--no-statusline", "--yes"]);
    assert!(said.stdout.contains(" added: it leads to ") && link.is_file(), "{said:?}");
    assert!(said.stdout.contains("is not on your PATH"), "{said:?}");
    let said = sandbox.longhaul(&["setup", "--undo"]);
    assert!(said.code == 0 && link.symlink_metadata().is_err(), "{said:?}");
}

#[test]
fn a_program_of_that_name_elsewhere_is_no_matter() {
    let machine = Machine::new();
    program(&machine.root.path().join("home/bin/longhaul"), "echo other");
    assert_eq!(part(install(&machine, Wish::Bring, false, true).0).action, "added");
}
