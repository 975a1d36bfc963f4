//! Files that say of which version they are: one of a later version is never read, set aside or written over.

use std::io;
use std::path::Path;

use serde_json::Value;

/// The error for a file of a later version than `known`.
pub fn too_new(path: &Path, version: u64, known: u64) -> io::Error {
    io::Error::other(format!(
        "{} is of version {version} and this longhaul knows {known}: update longhaul",
        path.display()
    ))
}

/// The version that a file of another shape names, where that is later than `known`.
pub fn later(bytes: &[u8], known: u64) -> Option<u64> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    value.get("version")?.as_u64().filter(|version| *version > known)
}
