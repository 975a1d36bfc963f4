//! longhaul's own files: every path and byte layout of ours, and nothing of Claude Code's formats.
//!
//! A feature asks the store for values, never for file names. Directories are 0700, files 0600, and every
//! file is replaced whole.

pub mod atomic;

use std::io;
use std::path::{Path, PathBuf};

use crate::host::{Host, lies_in};

/// Where longhaul keeps its files: `<config>/longhaul`, config being `CLAUDE_CONFIG_DIR` or `~/.claude`.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// The store of this environment, without touching the disk. `None` without a home, and where the
    /// directory would lie inside one of `untrusted` (a project's settings can move it there).
    pub fn locate(host: &Host, untrusted: &[&Path]) -> Option<Self> {
        let config = config_dir(host)?;
        let dir = config.join("longhaul");
        let caught = untrusted.iter().any(|project| lies_in(&dir, project) && !lies_in(project, &config));
        let home_is_project = host.home().is_some_and(|home| untrusted.iter().any(|p| lies_in(&home, p)));
        (!caught || home_is_project).then_some(Self { dir })
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
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
