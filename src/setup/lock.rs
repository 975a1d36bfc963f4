//! One setup at a time.

use std::fs::File;

use anyhow::{Context as _, Result, bail};

use crate::store::lock::{Held, try_hold};
use crate::store::{Store, atomic};

/// Holds the state directory for one setup; makes it where it is missing. `None` where the file system
/// knows no locks: comparing before each write then has to do.
pub fn take(store: &Store) -> Result<Option<Held>> {
    // Where no client was here yet, its directory is made as well: it will hold settings and their copies.
    atomic::make_private(store.config())
        .and_then(|()| atomic::make_private(store.dir()))
        .with_context(|| format!("could not make {}", store.dir().display()))?;
    // On Unix the directory itself is locked, so that nothing is left behind.
    let file = if cfg!(unix) {
        File::open(store.dir())
    } else {
        File::options().create(true).truncate(false).write(true).open(store.setup_lock())
    };
    let file = file.with_context(|| format!("could not open {}", store.dir().display()))?;
    match try_hold(file) {
        Ok(Ok(held)) => Ok(Some(held)),
        Ok(Err(_)) => {
            bail!("another longhaul setup works in {}: try again when it is done", store.dir().display())
        }
        Err(_) => Ok(None),
    }
}
