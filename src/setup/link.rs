//! `~/.local/bin/longhaul`: a link to the installed program, where a shell finds it.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::extra::{Step, There, Why, Wish, agreed, kept, step};
use super::report::{self, Part};
use super::{About, Question, command, dirs};
use crate::base::shell::word;
use crate::host::{Host, resolved};
use crate::store::Store;
use crate::store::setup::Extra;

/// Below the home directory.
const PLACE: &str = ".local/bin";
const NAME: &str = "longhaul";

/// The link and what is in its place.
#[derive(Debug)]
pub struct Link {
    at: PathBuf,
    to: PathBuf,
    there: There,
}

/// Where the link is or would be. `None` without a home directory, and on Windows, where a link takes rights
/// that people do not have.
pub fn look(host: &Host, store: &Store) -> Option<Link> {
    let at = host.home().filter(|_| cfg!(unix))?.join(PLACE).join(NAME);
    let to = command::installed(store, NAME);
    let there = match fs_err::read_link(&at) {
        Ok(have) if have == to => There::Current,
        Ok(_) => There::Foreign,
        Err(_) if at.symlink_metadata().is_ok() => There::Foreign,
        Err(_) => There::Absent,
    };
    Some(Link { at, to, there })
}

impl Link {
    /// Where it is or would be.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Brings it, takes it away or leaves it; with `dry_run` says which.
    pub fn carry_out(
        &self,
        wish: Wish,
        record: &mut Extra,
        dry_run: bool,
        confirm: &mut dyn FnMut(&Question<'_>) -> bool,
    ) -> Result<Part> {
        let diff = self.diff();
        let step = step(wish, self.there, record);
        let step = agreed(step, dry_run, confirm, About::Link, || diff.clone());
        let part = |action, reason: String| Part::of(action, reason, &self.at);
        Ok(match step {
            Step::Offer | Step::Bring if dry_run => part("added", self.leads()).with(diff),
            Step::Offer | Step::Bring => match self.make(record) {
                Ok(()) => part("added", self.leads()),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.keep(Why::Foreign),
                Err(e) => return Err(e).with_context(|| format!("could not make {}", self.at.display())),
            },
            Step::Take if dry_run => part("removed", "it is not wanted".to_owned()).with(diff),
            Step::Take => {
                self.take(record)?;
                record.declined = true;
                part("removed", "it is not wanted".to_owned())
            }
            Step::Keep(why) => {
                kept(why, record);
                self.keep(why)
            }
        })
    }

    /// Takes the link away where it leads to these programs; nothing else is touched.
    pub fn undo(&self, record: &mut Extra, dry_run: bool) -> Result<Part> {
        if self.there != There::Current {
            (record.brought, record.made) = (false, Vec::new());
            return Ok(Part::of("absent", "none of longhaul's is there".to_owned(), &self.at));
        }
        let part = Part::of("removed", "it led to the programs".to_owned(), &self.at);
        if dry_run {
            return Ok(part.with(self.diff()));
        }
        self.take(record)?;
        Ok(part)
    }

    fn make(&self, record: &mut Extra) -> io::Result<()> {
        let made = dirs::make_for(&self.at)?;
        let linked = link(&self.to, &self.at);
        if linked.is_err() {
            dirs::remove_empty(&made);
        }
        linked?;
        *record = Extra { brought: true, made, ..Extra::default() };
        Ok(())
    }

    fn take(&self, record: &mut Extra) -> Result<()> {
        fs_err::remove_file(&self.at).context("could not take the link away")?;
        dirs::remove_empty(&record.made);
        (record.brought, record.made) = (false, Vec::new());
        Ok(())
    }

    fn keep(&self, why: Why) -> Part {
        let (action, reason) = match why {
            Why::Current => ("unchanged", self.leads()),
            Why::Foreign => {
                ("kept", "what is there is not this longhaul's link, and stays; remove it to have one".into())
            }
            Why::Removed => ("kept", "there is none any more; `longhaul setup --link` makes it again".into()),
            Why::Refused => ("kept", "none is wanted; `longhaul setup --link` makes one".into()),
            Why::NotAsked => ("kept", "none was asked for; `longhaul setup --link` makes one".into()),
        };
        Part::of(action, reason, &self.at)
    }

    fn leads(&self) -> String {
        format!("it leads to {}", self.to.display())
    }

    fn diff(&self) -> String {
        let text = format!("link to {}\n", self.to.display());
        let (old, new) = match self.there {
            There::Absent => (None, Some(text.as_bytes())),
            _ => (Some(text.as_bytes()), None),
        };
        report::diff(&self.at, old, new)
    }

    /// Whether it is there and leads to the installed program.
    pub fn is_made(&self) -> bool {
        self.there == There::Current
    }

    /// What a setup says where the link's directory is not on the person's `PATH`.
    pub fn warning(&self, host: &Host) -> Option<String> {
        let how = self.off_path(host)?;
        Some(format!("{} is not on your PATH; {how}", self.at.parent()?.display()))
    }

    /// How to put the link's directory on the path of the person's shell, where it is not.
    pub fn off_path(&self, host: &Host) -> Option<String> {
        let dir = self.at.parent()?;
        let path = host.env_os("PATH").unwrap_or_default();
        let on_it =
            std::env::split_paths(&path).any(|have| have.is_absolute() && resolved(&have) == resolved(dir));
        (!on_it && matches!(self.there, There::Current | There::Absent)).then(|| {
            let line = |profile: &str| {
                format!(
                    "add this line to {profile}, then open a new shell: export PATH=\"$HOME/{PLACE}:$PATH\""
                )
            };
            let shell = host.env("SHELL").unwrap_or_default();
            match shell.rsplit('/').next().unwrap_or_default() {
                "fish" => format!("in fish: fish_add_path {}", word(&dir.to_string_lossy())),
                "zsh" => line("~/.zshrc"),
                "bash" => line("~/.bashrc"),
                _ => line("your shell's profile"),
            }
        })
    }
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    // Never over anything: the system refuses where the name is taken.
    fs_err::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(_to: &Path, _at: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
