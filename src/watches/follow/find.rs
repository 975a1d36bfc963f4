//! Files by what they are, not by their names: where a rotated one went, a copy of one that was emptied.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::judge::{is_later, rotated};
use crate::base::id::digest;
use crate::host::clock::epoch_ms;
use crate::host::files;
use crate::store::watches::Mark;

/// How many bytes at the beginning and before the place a file is known by.
pub const WITNESS: usize = 512;
/// Fewer bytes than these tell no copy from any other file.
const COPY_LEAST: u64 = 8;
/// So many neighbours are looked at.
const NEIGHBOURS: usize = 10_000;

/// The bytes that a file is known by at a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Witness {
    /// What a file has there; `None` where it is shorter.
    pub fn of(file: &File, offset: u64) -> io::Result<Option<Self>> {
        let length = usize::try_from(offset).unwrap_or(usize::MAX).min(WITNESS);
        let (mut head, mut tail) = (vec![0; length], vec![0; length]);
        let whole = files::read_at(file, 0, &mut head)? == length
            && files::read_at(file, offset - length as u64, &mut tail)? == length;
        Ok(whole.then_some(Self { head, tail }))
    }

    /// Whether the file still has it.
    pub fn holds(&self, file: &File, offset: u64) -> io::Result<bool> {
        Ok(Self::of(file, offset)?.as_ref() == Some(self))
    }

    /// Goes on by bytes that were read at the place.
    pub fn go_on(&mut self, bytes: &[u8]) {
        let room = WITNESS - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let bytes = &bytes[bytes.len().saturating_sub(WITNESS)..];
        self.tail.extend_from_slice(bytes);
        self.tail.drain(..self.tail.len().saturating_sub(WITNESS));
    }

    /// Writes it down.
    pub fn mark(&self, mark: &mut Mark) {
        (mark.head, mark.tail) = (digest(&[&self.head]), digest(&[&self.tail]));
    }

    /// Whether it is what was written down.
    pub fn is(&self, mark: &Mark) -> bool {
        (mark.head, mark.tail) == (digest(&[&self.head]), digest(&[&self.tail]))
    }
}

/// A file that was read so far, wherever it is now; not one that merely has its number.
pub fn again(watched: &Path, mark: &Mark) -> Option<(File, PathBuf, Witness)> {
    let is_it = |path: &Path| {
        let file = files::open_regular(path).ok()?;
        let meta = file.metadata().ok()?;
        if files::identity(&meta) != (mark.device, mark.inode) || meta.len() < mark.offset {
            return None;
        }
        let witness = Witness::of(&file, mark.offset).ok()??;
        witness.is(mark).then(|| (file, path.to_path_buf(), witness))
    };
    let there = [watched, &*mark.path].into_iter().find_map(is_it);
    there.or_else(|| neighbours(watched, mark).into_iter().find_map(|(_, path)| is_it(&path)))
}

/// A copy of a file as it was before it was emptied, with all that was read of it: the newest.
pub fn copy(watched: &Path, mark: &Mark) -> Option<(File, PathBuf)> {
    if mark.offset < COPY_LEAST {
        return None;
    }
    let name = mark.path.file_name()?.to_str()?.to_owned();
    let mut copies = Vec::new();
    for (neighbour, path) in neighbours(watched, mark) {
        if rotated(&name, &neighbour).is_none() {
            continue;
        }
        let Ok(file) = files::open_regular(&path) else { continue };
        let Ok(meta) = file.metadata() else { continue };
        // A copy is no older than what it is of.
        let other =
            files::identity(&meta) != (mark.device, mark.inode) && changed_ms(&meta) >= mark.changed_ms;
        if other && Witness::of(&file, mark.offset).ok().flatten().is_some_and(|witness| witness.is(mark)) {
            copies.push((meta.modified().ok(), file, path));
        }
    }
    copies.into_iter().max_by_key(|(at, ..)| *at).map(|(_, file, path)| (file, path))
}

/// When a file was written last, epoch milliseconds.
pub fn changed_ms(meta: &std::fs::Metadata) -> i64 {
    meta.modified().map_or(0, epoch_ms)
}

/// Files that had the name after the one that is now called `from` and before the one that has it now, the oldest
/// first.
pub fn between(watched: &Path, mark: &Mark, from: &Path) -> Vec<(File, PathBuf)> {
    let name = mark.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(own) = from.file_name().and_then(|own| rotated(name, own.to_str()?)) else { return Vec::new() };
    let mut later: Vec<(String, PathBuf)> = neighbours(watched, mark)
        .into_iter()
        .filter_map(|(neighbour, path)| Some((rotated(name, &neighbour)?.to_owned(), path)))
        .filter(|(suffix, _)| is_later(own, suffix))
        .collect();
    // The oldest is the one that all others are later than.
    later.sort_by(
        |(a, _), (b, _)| {
            if is_later(a, b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        },
    );
    later.into_iter().filter_map(|(_, path)| Some((files::open_regular(&path).ok()?, path))).collect()
}

/// What lies beside the watched name, and beside the file that it led to.
fn neighbours(watched: &Path, mark: &Mark) -> Vec<(String, PathBuf)> {
    let mut dirs: Vec<&Path> = [watched, &*mark.path].into_iter().filter_map(Path::parent).collect();
    dirs.dedup();
    let entries = dirs.into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
    let entries = entries.flat_map(|entries| entries.flatten().take(NEIGHBOURS));
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.to_owned(), entry.path()))).collect()
}
