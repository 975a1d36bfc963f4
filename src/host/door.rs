//! What every silent program does at its door: nothing that fails inside may show outside.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use super::Host;

/// Runs `inside`; a panic in it is kept from the terminal and comes back as its message.
pub fn guarded<T>(inside: impl FnOnce() -> T) -> Result<T, String> {
    set_hook(Box::new(|_| {}));
    catch_unwind(AssertUnwindSafe(inside)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
    })
}

/// Writes to standard output; a reader that has gone is nobody's error.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// For tests alone: panics when it is asked to.
#[allow(clippy::missing_panics_doc)]
pub fn test_panic(host: &Host) {
    #[cfg(feature = "testing")]
    assert!(!host.has_env("LONGHAUL_TEST_PANIC"), "asked to panic");
    let _ = host;
}
