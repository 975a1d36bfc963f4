//! The client's own program: where it is, and which version.

use std::path::{Path, PathBuf};

use crate::host::program::{self, refusal};
use crate::host::{Host, process};

/// A version of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

/// The first version on which a plugin's module can draw the status line (measured: 2.1.332 does; 2.1.310 to
/// 2.1.331 load the module and hand its figures over, and never ask it to draw).
pub const FIRST_THAT_DRAWS: Version = Version(2, 1, 332);
/// The first version whose modules hand the client's own figures over (measured).
pub const FIRST_WITH_FIGURES: Version = Version(2, 1, 287);
/// The oldest version that the tests run against (`.ci/run` fetches it).
pub const OLDEST_TESTED: Version = Version(2, 1, 197);
/// The newest one, which they are held against (`tests/e2e/client.version`).
pub const NEWEST_TESTED: Version = Version(2, 1, 332);

impl Version {
    /// Reads `2.1.332 (Claude Code)` or the bare number.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.split_ascii_whitespace().next()?;
        let number = number.split(['-', '+']).next()?;
        let mut parts = number.split('.').map(|part| part.parse().ok());
        let version = Self(parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(version)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// What was found of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// No program of that name.
    Nothing,
    /// One that did not say its version.
    Unknown(PathBuf),
    /// One of this version.
    Is(PathBuf, Version),
}

/// Looks for the client: the program that process `running` was started from, `CLAUDE_BIN`, then `PATH`, and asks
/// the first trustworthy one for its version. The environment may have been written by a project's settings: a program under one of `untrusted`, or
/// one that others can write, is passed over, and a sentence about it goes to `warnings`.
pub fn find(host: &Host, running: Option<u32>, untrusted: &[PathBuf], warnings: &mut Vec<String>) -> Found {
    // A client that is a script runs in another program.
    let running =
        running.and_then(process::running_file).filter(|path| refusal(host, path, untrusted).is_none());
    if let Some((path, version)) =
        running.and_then(|path| Some((path.clone(), says(&path, "(Claude Code)")?)))
    {
        return Found::Is(path, version);
    }
    for path in candidates(host) {
        if !path.is_file() {
            continue;
        }
        if let Some(why) = refusal(host, &path, untrusted) {
            warnings.push(format!("{} {why}: not run", path.display()));
            continue;
        }
        return match says(&path, "") {
            Some(version) => Found::Is(path, version),
            None => Found::Unknown(path),
        };
    }
    Found::Nothing
}

/// The version that a program says it is, with these words beside it.
fn says(path: &Path, words: &str) -> Option<Version> {
    let ran = process::run(path, &["--version"], &[], b"", 10_000).ok().filter(|ran| ran.code == Some(0))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    Version::parse(&text).filter(|_| text.contains(words))
}

fn candidates(host: &Host) -> Vec<PathBuf> {
    let names: &[&str] = if cfg!(windows) { &["claude.exe", "claude.cmd"] } else { &["claude"] };
    host.env_path("CLAUDE_BIN").into_iter().chain(program::on_path(host, names)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        assert_eq!(Version::parse("2.1.332 (Claude Code)\n"), Some(Version(2, 1, 332)));
        assert_eq!(Version::parse("2.1.0-beta.1"), Some(Version(2, 1, 0)));
        for bad in ["", "claude", "2.1", "2.1.x", "1.2.3.4", "-1.2.3"] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
        assert!(Version(2, 1, 197) < FIRST_THAT_DRAWS && Version(2, 10, 0) > FIRST_THAT_DRAWS);
    }

    #[test]
    fn the_tested_range_is_what_the_tests_run_against() {
        let newest = include_str!("../../tests/e2e/client.version");
        assert_eq!(Version::parse(newest), Some(NEWEST_TESTED));
        let ci = include_str!("../../.ci/run");
        let fetched = ci.lines().filter_map(|line| Version::parse(line.strip_prefix("sh .ci/client ")?));
        assert_eq!(fetched.min(), Some(OLDEST_TESTED));
        let manifest = include_str!("../../.claude-plugin/plugin.json");
        assert!(manifest.contains(&format!("\">={OLDEST_TESTED}\"")), "what the plugin asks for");
    }

    #[cfg(unix)]
    mod on_unix {
        use super::*;
        use std::os::unix::fs::PermissionsExt as _;

        fn program(path: &Path, says: &str, mode: u32) {
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, format!("#!/bin/sh\n{says}\n")).unwrap();
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn the_first_trustworthy_client_answers() {
            let root = tempfile::tempdir().unwrap();
            let at = |name: &str| root.path().join(name);
            program(&at("project/bin/claude"), "echo 9.9.9", 0o755);
            program(&at("open/claude"), "echo 9.9.8", 0o757);
            program(&at("good/claude"), "echo '2.1.300 (Claude Code)'", 0o755);
            let path = std::env::join_paths([at("none"), at("project/bin"), at("open"), at("good")]).unwrap();
            let path = path.to_str().unwrap().to_owned();
            let home = at("home").to_str().unwrap().to_owned();
            let host = Host::fixed(&[("HOME", &home), ("PATH", &path)], 0);
            let mut warnings = Vec::new();
            let found = find(&host, None, &[at("project")], &mut warnings);
            assert_eq!(found, Found::Is(at("good/claude"), Version(2, 1, 300)));
            assert_eq!(warnings.len(), 2, "{warnings:?}");
            assert!(warnings[0].contains("lies in the project"));
            assert!(warnings[1].contains("can be written by others"));

            let named = at("good/odd");
            program(&named, "exit 3", 0o755);
            let host = Host::fixed(&[("CLAUDE_BIN", named.to_str().unwrap()), ("PATH", &path)], 0);
            assert_eq!(find(&host, None, &[], &mut warnings), Found::Unknown(named));
            assert_eq!(find(&Host::fixed(&[("PATH", "bin:.")], 0), None, &[], &mut warnings), Found::Nothing);
        }

        #[test]
        fn a_link_out_of_or_into_the_project_is_not_run() {
            let root = tempfile::tempdir().unwrap();
            let at = |name: &str| root.path().join(name);
            program(&at("project/evil"), "echo 9.9.9", 0o755);
            program(&at("good/claude"), "echo 9.9.9", 0o755);
            fs_err::create_dir_all(at("bin")).unwrap();
            fs_err::os::unix::fs::symlink(at("project/evil"), at("bin/claude")).unwrap();
            fs_err::os::unix::fs::symlink(at("good/claude"), at("project/claude")).unwrap();
            for dir in ["bin", "project"] {
                let path = at(dir).to_str().unwrap().to_owned();
                let found =
                    find(&Host::fixed(&[("PATH", &path)], 0), None, &[at("project")], &mut Vec::new());
                assert_eq!(found, Found::Nothing, "{dir}");
            }
        }
    }
}
