//! Files of ours that another program reads: written where nothing or an older one of ours is, and taken away.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::MARK;
use crate::host::files;
use crate::setup::extra::There;
use crate::setup::{dirs, remove_if_there, report};
use crate::store::atomic;

/// Larger than any of ours, in bytes.
const MOST: u64 = 1 << 20;

/// Files with what they are to hold.
#[derive(Debug)]
pub struct Units(pub Vec<(PathBuf, String)>);

impl Units {
    /// What is there in their places, all together.
    pub fn there(&self) -> There {
        let each: Vec<_> = self.0.iter().map(|(path, text)| one(path, text)).collect();
        let all = |there| each.iter().all(|one| *one == there);
        if each.contains(&There::Foreign) {
            There::Foreign
        } else if all(There::Absent) {
            There::Absent
        } else if all(There::Current) {
            There::Current
        } else {
            There::Old
        }
    }

    /// Them brought, or taken away.
    pub fn diff(&self, brings: bool) -> String {
        let one = |(path, text): &(PathBuf, String)| {
            let have = files::read_small(path, MOST).ok();
            let new = brings.then_some(text.as_bytes());
            if have.is_none() && new.is_none() {
                String::new()
            } else {
                report::diff(path, have.as_deref(), new)
            }
        };
        self.0.iter().map(one).collect()
    }

    /// Writes them; gives the directories that were made, outermost first.
    pub fn write(&self) -> Result<Vec<PathBuf>> {
        let mut made = Vec::new();
        for (path, text) in &self.0 {
            let mut write = || {
                made.extend(dirs::make_for(path)?);
                atomic::replace(path, text.as_bytes(), true)
            };
            write().with_context(|| format!("could not write {}", path.display()))?;
        }
        Ok(made)
    }

    /// Takes those of ours away, and what was made for them and holds nothing more.
    pub fn remove(&self, made: &[PathBuf]) -> Result<()> {
        for (path, text) in &self.0 {
            if one(path, text) != There::Foreign {
                remove_if_there(path).context("could not take the timer away")?;
            }
        }
        dirs::remove_empty(made);
        Ok(())
    }
}

fn one(path: &Path, text: &str) -> There {
    match files::read_small(path, MOST) {
        Ok(have) if have == text.as_bytes() => There::Current,
        Ok(have) if String::from_utf8_lossy(&have).contains(MARK) => There::Old,
        Err(_) if path.symlink_metadata().is_err() => There::Absent,
        _ => There::Foreign,
    }
}
