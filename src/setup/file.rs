//! One settings file: followed through links, read, backed up and replaced, with nothing of it lost.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::host::files;
use crate::store::{atomic, setup::free_name};

/// Settings are small; a file beyond this is something else.
const MAX_BYTES: u64 = 16 << 20;
/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// A settings file as it was read.
#[derive(Debug, Clone)]
pub struct File {
    /// The path that the client opens.
    pub named: PathBuf,
    /// The file at the end of its links; it need not exist.
    pub real: PathBuf,
    /// What it holds; `None` where there is no file.
    pub bytes: Option<Vec<u8>>,
}

impl File {
    /// Reads a file. One that is missing is no error; a directory, a device or a loop of links is.
    pub fn read(named: &Path) -> Result<Self> {
        let real = follow(named)?;
        let bytes = match files::read_small(&real, MAX_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(_) if real.is_dir() => {
                bail!("could not read {}: it is a directory; move it away", real.display())
            }
            Err(e) => return Err(e).with_context(|| format!("could not read {}", named.display())),
        };
        Ok(Self { named: named.to_owned(), real, bytes })
    }

    /// Why it could not be replaced, found before anything is written.
    pub fn check_writable(&self) -> Result<()> {
        match std::fs::metadata(&self.real) {
            Ok(meta) if meta.permissions().readonly() => {
                bail!(
                    "could not change {}: the file is read-only; make it writable first (chmod u+w), or edit it \
                     where it is generated",
                    self.real.display()
                )
            }
            _ => Ok(()),
        }
    }

    /// Where a copy of it would be; none where there is no file.
    pub fn backup_name(&self, stamp: &str) -> Option<PathBuf> {
        self.bytes.as_ref()?;
        let mut name = self.named.as_os_str().to_owned();
        name.push(format!(".longhaul-{stamp}.bak"));
        Some(free_name(Path::new(&name)))
    }

    /// Copies it there, for its owner alone.
    pub fn back_up(&self, path: &Path) -> Result<()> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        let write = || {
            let mut options = fs_err::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            {
                use fs_err::os::unix::fs::OpenOptionsExt as _;
                options.mode(0o600);
            }
            let mut file = options.open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write()
            .inspect_err(|e| {
                if e.kind() != io::ErrorKind::AlreadyExists {
                    drop(fs_err::remove_file(path));
                }
            })
            .context("could not back up the settings")
    }

    /// Whether it still holds what was read.
    pub fn unchanged(&self) -> Result<bool> {
        let now = Self::read(&self.named)?;
        Ok(now.bytes == self.bytes && now.real == self.real)
    }

    /// Puts new bytes in its place in one step: links and permissions stay, a new file is its owner's alone.
    pub fn replace(&self, bytes: &[u8]) -> Result<()> {
        let write = || {
            if let Some(dir) = self.real.parent().filter(|dir| !dir.is_dir()) {
                atomic::make_private(dir)?;
            }
            let mode = std::fs::metadata(&self.real).ok().map(|meta| meta.permissions());
            atomic::replace_as(&self.real, bytes, true, mode)
        };
        write().with_context(|| {
            let dir = self.real.parent().unwrap_or(&self.real).display();
            format!("could not write {}: it is as it was; {dir} must be writable", self.real.display())
        })
    }

    /// Takes away what a setup that was ended in the middle of writing left beside the file. Only the holder of
    /// the lock may: nobody else writes here under such names.
    pub fn remove_litter(&self) {
        let Some(dir) = self.real.parent() else { return };
        super::programs::remove_litter(dir);
    }

    /// Removes the file at the end of its links.
    pub fn remove(&self) -> Result<()> {
        fs_err::remove_file(&self.real).context("could not remove the settings file that setup had made")
    }
}

/// The file at the end of a chain of links, which need not exist.
fn follow(named: &Path) -> Result<PathBuf> {
    let mut at = named.to_owned();
    for _ in 0..MAX_LINKS {
        if !at.is_symlink() {
            return Ok(at);
        }
        let to = fs_err::read_link(&at)?;
        at = at.parent().unwrap_or(Path::new("")).join(to);
    }
    bail!("could not read {}: its links lead in a circle; point it at a file", named.display())
}
