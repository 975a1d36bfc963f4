//! The way a person gets it: from a marketplace, with nothing else done.

use std::path::Path;
use std::process::Command;

use crate::bench::Bench;
use crate::live::{open, session, used};
use crate::longhaul::{install, stage};

/// Stands for the host that marketplaces are cloned from.
const HOST: &str = "https://github.com/";

#[test]
fn an_install_from_a_marketplace_shows_the_gauge_with_no_setting_touched() {
    let Some(bench) = open() else { return };
    let dir = bench.path("host/someone/longhaul.git");
    stage(&dir);
    commit(&bench, &dir);
    let config = format!(
        "[url \"file://{}/\"]\n\tinsteadOf = {HOST}\n[protocol \"file\"]\n\tallow = always\n",
        bench.path("host").display()
    );
    std::fs::write(bench.home().join(".gitconfig"), config).unwrap();
    for args in [["marketplace", "add", "someone/longhaul"].as_slice(), &["install", "longhaul@longhaul"]] {
        let mut line = bench.command_line(&[]);
        line.truncate(1);
        line.push("plugin".to_owned());
        line.extend(args.iter().map(|&arg| arg.to_owned()));
        let out = bench.run(&line, &[], b"");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    install(&bench);
    let mut session = session(&bench, &[]);
    bench.api.usual(used(228_000));
    session.say("hello");
    session.wait_for(" 62% 228k/367k ");
    let settings = std::fs::read_to_string(bench.config().join("settings.json")).unwrap();
    assert!(!settings.contains("statusLine"), "{settings}");
}

#[track_caller]
fn commit(bench: &Bench, dir: &Path) {
    for args in [
        ["init", "--quiet", "."].as_slice(),
        &["add", "--all"],
        &["-c", "user.name=someone", "-c", "user.email=s@example.com", "commit", "--quiet", "-m", "all"],
    ] {
        let status =
            Command::new("git").args(args).current_dir(dir).env("HOME", bench.home()).status().expect("git");
        assert!(status.success(), "git {args:?}");
    }
}
