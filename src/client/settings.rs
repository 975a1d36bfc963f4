//! Settings files in every scope, in the order of their strength.

use std::fmt;
use std::path::{Path, PathBuf};

use super::flags::Flags;
use crate::host::files;

mod values;

pub use values::Values;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The administrator's settings.
    Managed,
    /// `--settings` on the client's command line.
    CommandLine,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `.claude/settings.json` of the project.
    Project,
    /// `settings.json` of the person.
    User,
    /// The client's own `.claude.json`.
    Global,
    /// The process environment.
    Environment,
    /// A flag on the client's command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed settings",
            Self::CommandLine => "--settings",
            Self::Local => "local settings",
            Self::Project => "project settings",
            Self::User => "user settings",
            Self::Global => "the client's .claude.json",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

/// A scope: where, and what stands there.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Which scope.
    pub origin: Origin,
    /// Its file; none where `--settings` held JSON.
    pub path: Option<PathBuf>,
    /// Its values.
    pub values: Values,
}

/// A settings file that could not be read. The client ignores such a file, and so does longhaul.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or `--settings`.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// Every scope that is there, the strongest first.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// Files that could not be read.
    pub problems: Vec<Problem>,
}

/// A settings file larger than this is not read, in bytes.
const MOST: u64 = 8 << 20;

#[cfg(target_os = "macos")]
const MANAGED: &str = "/Library/Application Support/ClaudeCode/managed-settings.json";
#[cfg(windows)]
const MANAGED: &str = r"C:\Program Files\ClaudeCode\managed-settings.json";
#[cfg(not(any(target_os = "macos", windows)))]
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

impl Settings {
    /// Reads every scope. `config` is the client's configuration directory, `project` where the session
    /// was started.
    pub fn load(config: Option<&Path>, project: Option<&Path>, flags: &Flags) -> Self {
        let mut settings = Self::default();
        settings.add_managed(Path::new(MANAGED));
        if let Some(given) = &flags.settings {
            if given.trim_start().starts_with('{') {
                settings.add(Origin::CommandLine, None, given.as_bytes());
            } else {
                let path = project.unwrap_or(Path::new("")).join(given);
                settings.add_file(Origin::CommandLine, path);
            }
        }
        let local = |dir: &Path| dir.join(".claude/settings.local.json");
        if let Some(project) = project.filter(|_| flags.reads("local")) {
            // The repository's own comes before the directory's (measured); nothing in between is read.
            let root = project.ancestors().find(|dir| dir.join(".git").exists());
            if let Some(root) = root.filter(|root| *root != project) {
                settings.add_file(Origin::Local, local(root));
            }
            settings.add_file(Origin::Local, local(project));
        }
        if let Some(project) = project.filter(|_| flags.reads("project")) {
            settings.add_file(Origin::Project, project.join(".claude/settings.json"));
        }
        if let Some(config) = config.filter(|_| flags.reads("user")) {
            settings.add_file(Origin::User, config.join("settings.json"));
        }
        settings
    }

    /// The administrator's file, and the folder of more beside it, of which the last name is the strongest.
    fn add_managed(&mut self, file: &Path) {
        let mut more: Vec<PathBuf> = std::fs::read_dir(file.with_extension("d"))
            .map(|dir| dir.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        more.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        more.sort_unstable();
        for path in more.into_iter().rev() {
            self.add_file(Origin::Managed, path);
        }
        self.add_file(Origin::Managed, file.to_path_buf());
    }

    fn add_file(&mut self, origin: Origin, path: PathBuf) {
        match files::read_small(&path, MOST) {
            Ok(bytes) => self.add(origin, Some(path), &bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => self.problems.push(Problem { place: path.display().to_string(), what: e.to_string() }),
        }
    }

    fn add(&mut self, origin: Origin, path: Option<PathBuf>, bytes: &[u8]) {
        match Values::parse(bytes) {
            Ok(values) if values.void.is_some() && origin != Origin::Managed => {
                let key = values.void.unwrap_or_default();
                let place = path.map_or_else(|| origin.to_string(), |p| p.display().to_string());
                let what =
                    format!("`{key}` is of the wrong type, and the client drops the whole file for it");
                self.problems.push(Problem { place, what });
            }
            Ok(values) => self.scopes.push(Scope { origin, path, values }),
            Err(e) => self.problems.push(Problem {
                place: path.map_or_else(|| origin.to_string(), |p| p.display().to_string()),
                what: format!("not valid JSON: {e}"),
            }),
        }
    }

    /// The first scope that has something to say, strongest first.
    pub fn first<'a, T>(&'a self, pick: impl Fn(&'a Values) -> Option<T>) -> Option<(T, Origin)> {
        self.scopes.iter().find_map(|scope| Some((pick(&scope.values)?, scope.origin)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_scope_wins() {
        let root = tempfile::tempdir().unwrap();
        let (config, project) = (root.path().join("c"), root.path().join("p"));
        fs_err::create_dir_all(project.join(".claude")).unwrap();
        fs_err::create_dir_all(&config).unwrap();
        fs_err::write(config.join("settings.json"), r#"{"env":{"X":"user","Y":"user"}}"#).unwrap();
        fs_err::write(project.join(".claude/settings.json"), r#"{"env":{"X":"project"}}"#).unwrap();
        fs_err::write(project.join(".claude/settings.local.json"), "{bad").unwrap();
        let settings = Settings::load(Some(&config), Some(&project), &Flags::default());
        let strongest = |settings: &Settings, name: &str| {
            let text =
                |values: &Values| values.env.iter().find(|(have, _)| have == name).map(|e| e.1.clone());
            settings.first(text)
        };
        assert_eq!(strongest(&settings, "X"), Some(("project".to_owned(), Origin::Project)));
        assert_eq!(strongest(&settings, "Y"), Some(("user".to_owned(), Origin::User)));
        assert_eq!(settings.problems.len(), 1);
        let flags = Flags { settings: Some(r#"{"env":{"X":"flag"}}"#.into()), ..Flags::default() };
        let settings = Settings::load(Some(&config), Some(&project), &flags);
        assert_eq!(strongest(&settings, "X"), Some(("flag".to_owned(), Origin::CommandLine)));
    }
}
