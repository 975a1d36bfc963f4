//! longhaul's own files: every path and byte layout of ours, and nothing of Claude Code's formats.
//!
//! A feature asks the store for values, never for file names. Directories are 0700, files 0600, and every
//! file is replaced whole.

pub mod atomic;
pub mod automatic;
pub mod beats;
pub mod chains;
pub mod config;
pub mod exports;
pub mod fleet;
pub mod inbox;
pub mod incidents;
pub mod jobs;
mod keys;
pub mod learned;
pub mod left;
pub mod lock;
mod run;
pub mod session;
pub mod setup;
pub mod trace;
mod version;
pub mod watchers;
pub mod watches;

pub use run::RunDir;

use std::io;
use std::path::{Path, PathBuf};

use crate::host::{Host, lies_in, resolved};

/// Where longhaul keeps its files: `<config>/longhaul`, config being `CLAUDE_CONFIG_DIR` or `~/.claude`.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// The store of this environment, without writing anything. `None` without a home, and where a project
    /// among `untrusted` seems to have moved the directory into itself (its settings can set
    /// `CLAUDE_CONFIG_DIR`): links are resolved, then it must not lie in any of them.
    ///
    /// Two places count as the person's own. `~/.claude`, wherever links lead from there: it was not
    /// moved. And a project that holds the home directory, as when somebody works in `~` itself.
    /// A moved `HOME` cannot be told from a private one, and is taken as it is.
    pub fn locate(host: &Host, untrusted: &[&Path]) -> Option<Self> {
        let config = config_dir(host)?;
        let dir = config.join("longhaul");
        let home = host.home();
        let own = |project: &Path| home.as_ref().is_some_and(|home| lies_in(home, project));
        // Nothing is resolved where nothing was moved: a redraw comes through here.
        let moved = host.env_path("CLAUDE_CONFIG_DIR").is_some()
            && untrusted.iter().any(|project| lies_in(&dir, project) && !own(project))
            && home.as_ref().is_none_or(|home| resolved(&config) != resolved(&home.join(".claude")));
        (!moved).then_some(Self { dir })
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The configuration directory that it lies in.
    pub fn config(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// Makes a private directory below the store and gives its path.
    pub fn make_dir(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.dir.join(name);
        atomic::make_private(&self.dir)?;
        atomic::make_private(&dir)?;
        Ok(dir)
    }
}

/// Claude Code's configuration directory: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
pub fn config_dir(host: &Host) -> Option<PathBuf> {
    host.env_path("CLAUDE_CONFIG_DIR").or_else(|| Some(host.home()?.join(".claude")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(env: &[(&str, &Path)], untrusted: &[&Path]) -> Option<PathBuf> {
        let env: Vec<_> = env.iter().map(|(name, path)| (*name, path.to_str().unwrap())).collect();
        Store::locate(&Host::fixed(&env, 0), untrusted).map(|store| store.dir().to_owned())
    }

    // nilbuild/claude-statusline#35: CLAUDE_CONFIG_DIR was ignored.
    #[test]
    fn the_configuration_directory_can_be_moved() {
        let root = tempfile::tempdir().unwrap();
        let (home, other) = (root.path().join("home"), root.path().join("other"));
        assert_eq!(located(&[("HOME", &home)], &[]), Some(home.join(".claude/longhaul")));
        let both = [("HOME", &*home), ("CLAUDE_CONFIG_DIR", &*other)];
        assert_eq!(located(&both, &[]), Some(other.join("longhaul")));
        assert_eq!(located(&[("CLAUDE_CONFIG_DIR", &other)], &[]), Some(other.join("longhaul")));
        let relative = [("HOME", &*home), ("CLAUDE_CONFIG_DIR", Path::new("cfg"))];
        assert_eq!(located(&relative, &[]), Some(home.join(".claude/longhaul")), "only an absolute one");
        assert_eq!(located(&[], &[]), None);
    }

    #[test]
    fn a_project_cannot_move_the_store_into_itself() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let (home, project) = (at("home"), at("home/work/project"));
        fs_err::create_dir_all(project.join("sub")).unwrap();
        for config in
            [project.clone(), project.join("cfg"), project.join("sub/../cfg"), at("home/work/project/.")]
        {
            let env = [("HOME", &*home), ("CLAUDE_CONFIG_DIR", &*config)];
            assert_eq!(located(&env, &[&project]), None, "{}", config.display());
            // The person's own place among them vouches for nothing.
            assert_eq!(located(&env, &[&home, &project]), None);
            assert_eq!(located(&env[1..], &[&project]), None, "no home");
        }
        let beside = at("home/work/project-cfg");
        assert!(located(&[("HOME", &home), ("CLAUDE_CONFIG_DIR", &beside)], &[&project]).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_before_the_store_is_trusted() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs_err::create_dir_all(at("project/inner")).unwrap();
        fs_err::create_dir_all(at("home")).unwrap();
        fs_err::os::unix::fs::symlink(at("project/inner"), at("link")).unwrap();
        fs_err::os::unix::fs::symlink(at("project"), at("way")).unwrap();
        let home = at("home");
        assert_eq!(located(&[("HOME", &home), ("CLAUDE_CONFIG_DIR", &at("link"))], &[&at("project")]), None);
        assert_eq!(located(&[("HOME", &home), ("CLAUDE_CONFIG_DIR", &at("project/x"))], &[&at("way")]), None);
        // A person who keeps ~/.claude in a repository and works there.
        fs_err::os::unix::fs::symlink(at("project/inner"), at("home/.claude")).unwrap();
        assert!(located(&[("HOME", &home)], &[&at("project")]).is_some());
        assert!(located(&[("HOME", &home)], &[&at("home/.claude")]).is_some());
    }

    #[test]
    fn work_in_the_home_directory_itself_keeps_the_store() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs_err::create_dir_all(&home).unwrap();
        assert!(located(&[("HOME", &home)], &[&home]).is_some());
        let xdg = home.join(".config/claude");
        assert!(located(&[("HOME", &home), ("CLAUDE_CONFIG_DIR", &xdg)], &[&home, Path::new("/")]).is_some());
    }
}
