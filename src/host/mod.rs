//! The machine: the only reader of clock, environment, processes and terminal. Everything above takes a
//! [`Host`] or plain values, so that a decision can be tested without a machine.

pub mod clock;
pub mod disk;
pub mod door;
pub mod files;
pub mod input;
pub mod process;
pub mod program;
pub mod random;
pub mod runnable;
pub mod stdout;
pub mod stop;
pub mod terminal;
pub mod worker;

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The environment and the clock, real or given.
#[derive(Debug, Clone)]
pub struct Host {
    given: Option<Given>,
}

#[derive(Debug, Clone)]
struct Given {
    env: Vec<(String, OsString)>,
    now_ms: i64,
}

impl Host {
    /// This machine.
    pub fn real() -> Self {
        Self { given: None }
    }

    /// A machine with this environment, where the time stands still at `now_ms`.
    pub fn fixed(env: &[(&str, &str)], now_ms: i64) -> Self {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        Self { given: Some(Given { env, now_ms }) }
    }

    /// An environment variable as it is.
    #[allow(clippy::disallowed_methods)]
    pub fn env_os(&self, name: &str) -> Option<OsString> {
        match &self.given {
            None => std::env::var_os(name),
            Some(given) => given.env.iter().find(|(have, _)| have == name).map(|(_, value)| value.clone()),
        }
    }

    /// The names of all environment variables.
    #[allow(clippy::disallowed_methods)]
    pub fn env_names(&self) -> Vec<OsString> {
        match &self.given {
            None => std::env::vars_os().map(|(name, _)| name).collect(),
            Some(given) => given.env.iter().map(|(name, _)| name.into()).collect(),
        }
    }

    /// An environment variable as text: unset and not Unicode are both `None`, empty is `Some("")`.
    pub fn env(&self, name: &str) -> Option<String> {
        self.env_os(name).and_then(|value| value.into_string().ok())
    }

    /// An environment variable that holds an absolute path.
    pub fn env_path(&self, name: &str) -> Option<PathBuf> {
        self.env_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Whether a variable is set to anything but nothing.
    pub fn has_env(&self, name: &str) -> bool {
        self.env_os(name).is_some_and(|value| !value.is_empty())
    }

    /// Epoch milliseconds.
    pub fn now_ms(&self) -> i64 {
        #[cfg(feature = "testing")]
        if let Some(fixed) = self.env("LONGHAUL_TEST_NOW_MS").and_then(|text| text.parse().ok()) {
            return fixed;
        }
        self.given.as_ref().map_or_else(clock::now_ms, |given| given.now_ms)
    }

    /// Milliseconds on the clock that stands still while the machine sleeps; see [`clock::mono_ms`].
    pub fn mono_ms(&self) -> i64 {
        #[cfg(feature = "testing")]
        for name in ["LONGHAUL_TEST_MONO_MS", "LONGHAUL_TEST_NOW_MS"] {
            if let Some(fixed) = self.env(name).and_then(|text| text.parse().ok()) {
                return fixed;
            }
        }
        self.given.as_ref().map_or_else(clock::mono_ms, |given| given.now_ms)
    }

    /// A name for this boot of the machine, where the system has one.
    pub fn boot_id(&self) -> Option<String> {
        if self.given.is_some() {
            return Some("given".to_owned());
        }
        let bytes = files::read_small(Path::new("/proc/sys/kernel/random/boot_id"), 128).ok()?;
        let text = String::from_utf8(bytes).ok()?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Where programs put what need not last.
    pub fn temp_dir(&self) -> Option<PathBuf> {
        let named = ["TMPDIR", "TEMP", "TMP"].iter().find_map(|name| self.env_path(name));
        named.or_else(|| cfg!(unix).then(|| PathBuf::from("/tmp")))
    }

    /// The person's home directory, from `HOME` (`USERPROFILE` on Windows).
    pub fn home(&self) -> Option<PathBuf> {
        self.env_path("HOME").or_else(|| if cfg!(windows) { self.env_path("USERPROFILE") } else { None })
    }

    /// The directory this process runs in.
    #[allow(clippy::disallowed_methods)]
    pub fn current_dir(&self) -> Option<PathBuf> {
        std::env::current_dir().ok()
    }

    /// This program's own file.
    #[allow(clippy::disallowed_methods)]
    pub fn current_exe(&self) -> Option<PathBuf> {
        std::env::current_exe().ok()
    }
}

/// Whether `path` lies in `dir`, links resolved as far as they exist.
pub fn lies_in(path: &Path, dir: &Path) -> bool {
    resolved(path).starts_with(resolved(dir))
}

/// The path with every link in its existing part resolved. A `..` behind that part takes back what stands before
/// it: so it is once the missing directories are made.
pub fn resolved(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(real) = at.canonicalize() {
            return rest.iter().rev().fold(real, |whole, part| match part {
                Component::ParentDir => whole.parent().map(Path::to_path_buf).unwrap_or(whole),
                part => whole.join(part),
            });
        }
        let mut parts = at.components();
        match parts.next_back() {
            Some(part @ (Component::Normal(_) | Component::ParentDir)) => {
                rest.push(part);
                at = parts.as_path();
            }
            _ => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_out_of_what_is_not_there_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs_err::create_dir(at("in")).unwrap();
        fs_err::write(at("file"), "").unwrap();
        for path in ["none/../in/a", "none/more/../../in/a", "in/none/../a", "file/../in/a", "in/./a"] {
            assert_eq!(resolved(&at(path)), at("in/a"), "{path}");
        }
        assert!(!lies_in(&at("in/none/../../file"), &at("in")));
        assert!(lies_in(&at("none/../in/a"), &at("in")));
        assert_eq!(resolved(Path::new("/none/../../..")), Path::new("/"));
    }

    #[cfg(unix)]
    #[test]
    fn a_way_back_goes_from_where_a_link_leads() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs_err::create_dir_all(root.join("a/b")).unwrap();
        fs_err::os::unix::fs::symlink(root.join("a/b"), root.join("way")).unwrap();
        assert_eq!(resolved(&root.join("way/none/../../x")), root.join("a/x"));
    }
}
