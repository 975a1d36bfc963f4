//! Our programs: whether they are there, of the plugin's version, and can run on this machine.

use std::path::{Path, PathBuf};

use super::line::{Line, some};
use crate::base::shell::word;
use crate::host::runnable::Hindrance;

/// A program's file.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name, without `.exe`.
    pub name: &'static str,
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What keeps it from running.
    pub hindrance: Option<Hindrance>,
}

/// Who starts our programs: a plugin's launcher, or the person.
#[derive(Debug, Clone, Default)]
pub struct Starter {
    /// How a person knows it.
    pub label: String,
    /// The version that it says it is; `None` where it cannot be read.
    pub version: Option<String>,
    /// The version of which its launcher starts the programs.
    pub starts: String,
    /// What it finds, a program each: the installed one of that version, else the one it came with, as the launcher
    /// chooses.
    pub finds: Vec<Program>,
    /// What brings another version of it.
    pub update: Option<String>,
}

/// Everything about programs.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// The version of the longhaul that looks.
    pub own: String,
    /// The installed versions.
    pub installed: Vec<String>,
    /// The one that stable paths lead to; `None` where they lead nowhere.
    pub current: Option<String>,
    /// What an installed `longhaul` said when it was asked for its version, with the version it is installed as.
    pub said: Vec<(String, Option<String>)>,
    /// Who starts them.
    pub starters: Vec<Starter>,
    /// A build beside the longhaul that looks that is not the installed one of the same version.
    pub newer_build: Option<PathBuf>,
    /// What installs the programs.
    pub repair: String,
}

/// Whether each starter finds all programs.
pub fn present(facts: &Programs) -> Line {
    const NAME: &str = "programs";
    for starter in &facts.starters {
        let missing = starter.finds.iter().filter(|program| program.hindrance == Some(Hindrance::Missing));
        let names: Vec<_> = missing.map(|program| program.name.to_owned()).collect();
        if names.is_empty() {
            continue;
        }
        let there = if facts.installed.is_empty() {
            "none is installed".to_owned()
        } else {
            format!("installed: {}", some(&facts.installed))
        };
        let what = format!("{} finds no {} {}; {there}", starter.label, some(&names), starter.starts);
        let behind = starter.starts != facts.own && facts.installed.contains(&facts.own);
        let fix = starter.update.clone().filter(|_| behind).unwrap_or_else(|| facts.repair.clone());
        return Line::broken(NAME, what, fix);
    }
    if facts.current.is_none() && !facts.installed.is_empty() {
        return Line::broken(NAME, "the stable path to the installed programs leads nowhere", &facts.repair);
    }
    let from = facts.starters.first().and_then(|starter| starter.finds.first()?.path.parent());
    let what = format!("all 4, {}", from.map_or_else(String::new, |dir| dir.display().to_string()));
    match &facts.newer_build {
        Some(build) => {
            Line::note(NAME, format!("{what}; {} is another build of the same version", build.display()))
                .fix(format!("{} setup", word(&build.join("longhaul").to_string_lossy())))
        }
        None => Line::ok(NAME, what),
    }
}

/// Whether programs and plugin are of one version.
pub fn version(facts: &Programs) -> Line {
    const NAME: &str = "version";
    for (version, said) in &facts.said {
        let Some(said) = said else { continue };
        if said != version {
            let what = format!("the longhaul installed as {version} says that it is {said}");
            return Line::broken(NAME, what, &facts.repair);
        }
    }
    for starter in &facts.starters {
        let Some(version) = &starter.version else { continue };
        if *version != starter.starts {
            let what = format!(
                "{} says {version} and its launcher {}: its files are of two versions",
                starter.label, starter.starts
            );
            let fix = starter.update.clone().unwrap_or_else(|| "git status, in that checkout".to_owned());
            return Line::broken(NAME, what, fix);
        }
    }
    let versions: Vec<_> = facts.starters.iter().map(|starter| &starter.starts).collect();
    let differs = facts.starters.iter().find(|starter| Some(&starter.starts) != versions.first().copied());
    if let Some(other) = differs {
        let first = &facts.starters[0];
        let what = format!(
            "{} is {} and {} is {}: sessions differ by the one they load",
            first.label, first.starts, other.label, other.starts
        );
        return match other.update.as_ref().or(first.update.as_ref()) {
            Some(update) => Line::broken(NAME, what, update),
            None => Line::note(NAME, what),
        };
    }
    if let Some(current) = facts.current.as_ref().filter(|current| versions.iter().all(|v| v != current))
        && !versions.is_empty()
    {
        let what = format!("the plugin is {} and the stable path leads to {current}", versions[0]);
        return Line::broken(NAME, what, &facts.repair);
    }
    Line::ok(NAME, format!("{} everywhere", versions.first().map_or(&facts.own, |version| *version)))
}

/// Whether what would be started can run here.
pub fn runnable(facts: &Programs) -> Line {
    const NAME: &str = "runnable";
    let found = facts.starters.iter().flat_map(|starter| &starter.finds);
    let mut there = 0;
    for program in found {
        match &program.hindrance {
            None => there += 1,
            Some(Hindrance::Missing) => {}
            Some(hindrance) => return hindered(NAME, &program.path, hindrance, &facts.repair),
        }
    }
    for (version, said) in &facts.said {
        if said.is_none() {
            let what = format!("the longhaul installed as {version} does not answer --version");
            return Line::broken(NAME, what, &facts.repair);
        }
    }
    if there == 0 {
        return Line::note(NAME, "there is no program to look at");
    }
    Line::ok(NAME, format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))
}

fn hindered(name: &'static str, path: &Path, hindrance: &Hindrance, repair: &str) -> Line {
    let file = path.display();
    let quoted = word(&path.to_string_lossy());
    let here = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let again = || repair.to_owned();
    let (what, fix) = match hindrance {
        Hindrance::Missing => (format!("{file} is not there"), again()),
        Hindrance::Link => (format!("{file} is a link, and only a file itself is run"), again()),
        Hindrance::NoFile => (format!("{file} is no file"), again()),
        Hindrance::OtherOwner => (format!("{file} belongs to another user"), again()),
        Hindrance::NotExecutable => {
            (format!("{file} has lost its execute bit"), format!("chmod 700 {quoted}"))
        }
        Hindrance::NoExec => (
            format!("{file} lies on a file system from which nothing is run (noexec)"),
            "mount it without noexec, or set CLAUDE_CONFIG_DIR to a directory elsewhere and run setup again"
                .into(),
        ),
        Hindrance::CutShort => (format!("{file} is cut short or damaged"), again()),
        Hindrance::Text => (format!("{file} is text in a program's place: it never came"), again()),
        Hindrance::OtherMachine(built) => (format!("{file} is built for {built}, this is {here}"), again()),
        Hindrance::Unreadable(why) => (format!("{file} cannot be read: {why}"), again()),
    };
    Line::broken(name, what, fix)
}

#[cfg(test)]
mod tests {
    use super::super::line::broken;
    use super::*;

    const REPAIR: &str = "./target/release/longhaul setup";

    fn program(name: &'static str, hindrance: Option<Hindrance>) -> Program {
        Program { name, path: Path::new("/s/bin/1.0.0").join(name), hindrance }
    }

    fn starter(version: &str) -> Starter {
        Starter {
            label: "the plugin".into(),
            version: Some(version.into()),
            starts: version.into(),
            finds: vec![program("longhaul", None), program("longhaul-hook", None)],
            update: Some("claude plugin update longhaul@longhaul".into()),
        }
    }

    fn healthy() -> Programs {
        Programs {
            own: "1.0.0".into(),
            installed: vec!["1.0.0".into()],
            current: Some("1.0.0".into()),
            said: vec![("1.0.0".into(), Some("1.0.0".into()))],
            starters: vec![starter("1.0.0")],
            newer_build: None,
            repair: REPAIR.into(),
        }
    }

    #[test]
    fn all_is_well() {
        let facts = healthy();
        for line in [present(&facts), version(&facts), runnable(&facts)] {
            assert_eq!(line.mark, super::super::line::Mark::Ok, "{line:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_who_misses_it() {
        let mut facts = healthy();
        facts.starters[0].finds[1].hindrance = Some(Hindrance::Missing);
        broken(&present(&facts), "the plugin finds no longhaul-hook 1.0.0", REPAIR);
        facts.starters[0] = Starter { finds: facts.starters[0].finds.clone(), ..starter("0.9.0") };
        broken(&present(&facts), "installed: 1.0.0", "claude plugin update longhaul@longhaul");
        facts = Programs { current: None, ..healthy() };
        broken(&present(&facts), "leads nowhere", REPAIR);
        facts = Programs { newer_build: Some("/c/target/release".into()), ..healthy() };
        assert_eq!(present(&facts).fix.as_deref(), Some("/c/target/release/longhaul setup"));
        assert!(!present(&facts).is_broken());
    }

    #[test]
    fn versions_that_differ_are_named() {
        let mut facts = healthy();
        facts.said[0].1 = Some("0.9.0".into());
        broken(&version(&facts), "installed as 1.0.0 says that it is 0.9.0", REPAIR);
        facts = healthy();
        facts.starters[0].version = Some("1.1.0".into());
        broken(&version(&facts), "two versions", "claude plugin update longhaul@longhaul");
        facts = healthy();
        facts.starters.push(starter("0.9.0"));
        broken(&version(&facts), "sessions differ", "claude plugin update longhaul@longhaul");
        facts = Programs { current: Some("0.8.0".into()), ..healthy() };
        broken(&version(&facts), "leads to 0.8.0", REPAIR);
    }

    #[test]
    fn what_cannot_run_is_named_with_its_own_fix() {
        let mut facts = healthy();
        for (hindrance, part, fix) in [
            (Hindrance::OtherMachine("linux aarch64".into()), "built for linux aarch64", REPAIR),
            (Hindrance::CutShort, "cut short", REPAIR),
            (Hindrance::Text, "never came", REPAIR),
            (Hindrance::Link, "is a link", REPAIR),
            (Hindrance::NotExecutable, "execute bit", "chmod 700 /s/bin/1.0.0/longhaul-hook"),
        ] {
            facts.starters[0].finds[1].hindrance = Some(hindrance);
            broken(&runnable(&facts), part, fix);
        }
        facts.starters[0].finds[1].hindrance = Some(Hindrance::NoExec);
        assert!(runnable(&facts).fix.unwrap().contains("noexec"));
        facts = healthy();
        facts.said[0].1 = None;
        broken(&runnable(&facts), "does not answer", REPAIR);
    }
}
