//! One writer at a time. Never on the redraw path, and never waited for longer than a hook can afford.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::host::clock::{Deadline, sleep_ms};

/// How long a lock is waited for, in ms.
const PATIENCE_MS: u64 = 200;

/// A held lock; let go when dropped.
#[derive(Debug)]
pub struct Held(#[allow(dead_code)] File);

/// Takes the lock of this name. A link in its place is not followed, and a FIFO not waited on.
pub fn hold(path: &Path) -> io::Result<Held> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    let file = options.open(path)?.into_parts().0;
    let deadline = Deadline::after_ms(PATIENCE_MS);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Held(file)),
            Err(TryLockError::WouldBlock) if !deadline.passed() => sleep_ms(5),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other(format!("{} is held by another process", path.display())));
            }
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}
