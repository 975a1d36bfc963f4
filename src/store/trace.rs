//! A bounded trace of what went wrong inside a program that must stay silent.

use super::{Store, atomic};
use crate::base::span::stamp;
use crate::base::text::{clean, fit};
use crate::host::Host;
use crate::host::door::guarded;

/// The trace starts over at this size, in bytes; the one before is kept once.
const MOST: u64 = 64 << 10;

/// Leaves a line about a program that failed inside, where there is a place for it.
pub fn failed(host: &Host, program: &str, what: &str) {
    let project = host.env_path("CLAUDE_PROJECT_DIR");
    let untrusted: Vec<_> = project.as_deref().into_iter().collect();
    let _ = guarded(|| {
        if let Some(store) = Store::locate(host, &untrusted) {
            store.trace(host.now_ms(), program, what);
        }
    });
}

impl Store {
    /// Adds one line. Whatever fails here is let go: there is nobody to tell.
    pub fn trace(&self, now_ms: i64, program: &str, what: &str) {
        let path = self.dir().join("trace.log");
        if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > MOST) {
            let _ = std::fs::rename(&path, self.dir().join("trace.log.1"));
        }
        let line = format!("{} {program}: {}\n", stamp(now_ms), fit(&clean(what), 400));
        let _ = atomic::append_private(&path, line.as_bytes());
    }
}
