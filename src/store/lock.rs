//! One writer at a time. Never on the redraw path, and never waited for longer than a hook can afford.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use super::atomic;
use super::keys::is_same;
use crate::host::clock::{Deadline, sleep_ms, system_time};

/// How long a lock is waited for, in ms.
const PATIENCE_MS: u64 = 200;

/// A held lock; let go when dropped.
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Whether its file still has this name, so that whoever comes finds it held.
    pub fn has_name(&self, path: &Path) -> bool {
        let held = self.0.metadata();
        held.is_ok_and(|held| std::fs::symlink_metadata(path).is_ok_and(|now| is_same(&now, &held)))
    }

    /// Shows by its file's time that whoever holds it is at work.
    pub fn show(&self) -> io::Result<()> {
        self.0.set_modified(system_time())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing alone would leave it held as long as a child that was just forked has the file too.
        let _ = self.0.unlock();
    }
}

/// Takes the lock of an open file or directory, which comes back where somebody else holds it. An error is a
/// file system that knows no locks.
pub fn try_hold(file: File) -> io::Result<Result<Held, File>> {
    match file.try_lock() {
        Ok(()) => Ok(Ok(Held(file))),
        Err(TryLockError::WouldBlock) => Ok(Err(file)),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Takes the lock of a file that goes with what it guards, waiting this long for whoever holds it, in ms. `None`:
/// it is held.
pub fn hold_while_there(path: &Path, patience_ms: u64) -> io::Result<Option<Held>> {
    let deadline = Deadline::after_ms(patience_ms);
    loop {
        let file = atomic::private().write(true).create(true).truncate(false).open(path)?.into_parts().0;
        let opened = file.metadata()?;
        if let Ok(held) = try_hold(file)? {
            // Whoever held it before may have taken it away meanwhile: then there is another, or none.
            if std::fs::symlink_metadata(path).is_ok_and(|now| is_same(&now, &opened)) {
                return Ok(Some(held));
            }
        } else if deadline.passed() {
            return Ok(None);
        }
        sleep_ms(5);
    }
}

/// Takes the lock of this name. A link in its place is not followed, and a FIFO not waited on.
pub fn hold(path: &Path) -> io::Result<Held> {
    hold_for(path, PATIENCE_MS)
}

/// The same, waiting this long for whoever holds it, in ms.
pub fn hold_for(path: &Path, patience_ms: u64) -> io::Result<Held> {
    let mut file = atomic::private().write(true).create(true).truncate(false).open(path)?.into_parts().0;
    let deadline = Deadline::after_ms(patience_ms);
    loop {
        file = match try_hold(file)? {
            Ok(held) => return Ok(held),
            Err(file) if !deadline.passed() => file,
            Err(_) => {
                return Err(io::Error::other(format!("{} is held by another process", path.display())));
            }
        };
        sleep_ms(5);
    }
}
