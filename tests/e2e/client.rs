//! The program under test: where it is, and how many of it may run at once.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, Once};

/// The client these tests are held against; `.ci/client` fetches this one.
pub const PINNED: &str = include_str!("client.version");

/// The machine that runs these tests has two cores.
const AT_ONCE: usize = 2;

/// The pinned client's program, or `None` after saying once how to get it. Under `CI=true` its absence is a
/// failure.
pub fn find() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("CLAUDE_BIN").filter(|given| !given.is_empty()) {
        let path = PathBuf::from(given);
        assert!(path.is_file(), "CLAUDE_BIN names {}, which is no file", path.display());
        return Some(path);
    }
    let path = fetched(PINNED.trim());
    if path.is_file() {
        return Some(path);
    }
    let how = format!("no client at {}: run `sh .ci/client`, or set CLAUDE_BIN", path.display());
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{how}");
    SAID.call_once(|| say_skipped(&how));
    None
}

/// Another version of the client, where it was fetched.
pub fn find_version(version: &str) -> Option<PathBuf> {
    let path = fetched(version);
    if path.is_file() {
        return Some(path);
    }
    say_skipped(&format!("no client {version}: run `sh .ci/client {version}`"));
    None
}

static SAID: Once = Once::new();

/// Past the capture of the test's output: a skip must not look like a pass.
fn say_skipped(why: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr(), "e2e: skipped: {why}"));
}

fn fetched(version: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("target/client").join(version).join("node_modules/@anthropic-ai/claude-code/bin/claude.exe")
}

/// The right to run one client. Given back when it is dropped.
pub struct Permit(());

static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Permit {
    /// Waits until fewer than two clients run.
    pub fn take() -> Self {
        let running = RUNNING.0.lock().unwrap();
        *RUNNING.1.wait_while(running, |running| *running >= AT_ONCE).unwrap() += 1;
        Self(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Ok(mut running) = RUNNING.0.lock() {
            *running -= 1;
        }
        RUNNING.1.notify_one();
    }
}
