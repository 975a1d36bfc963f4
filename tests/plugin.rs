//! The plugin's own files as the client reads them, and the launcher under every shell there is here.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test plays the client: it starts processes and waits for them"
)]

#[cfg(unix)]
mod launcher;
mod manifests;
#[cfg(unix)]
mod waiting;

use std::path::Path;

/// A file of the checkout.
fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}
