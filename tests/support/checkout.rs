//! A copy of this checkout's own files, for tests of the scripts that work in one.

use std::path::Path;
use std::process::Command;

/// Copies the files that belong to the checkout, as they are now.
pub fn copy(to: &Path) {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::create_dir_all(to).unwrap();
    // What was taken away and not yet committed is still listed.
    let copy = "git ls-files -co --exclude-standard -z | xargs -0 sh -c 'for f; do [ ! -e \"$f\" ] || printf \
                \"%s\\0\" \"$f\"; done' sh | tar -c --null -T - | tar -x -C \"$1\"";
    let done = Command::new("sh").args(["-c", copy, "sh", to.to_str().unwrap()]).current_dir(root).status();
    assert!(done.unwrap().success());
}

/// The launcher's name for this machine.
pub fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "macos" } else { "linux" };
    format!("{system}-{}", std::env::consts::ARCH)
}

/// Puts a built program there, without what debuggers look up: most of it, and slow to pack.
pub fn put_program(built: &str, to: &Path) {
    let stripped = Command::new("strip").arg("-o").arg(to).arg(built).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(built, to).unwrap();
    }
}
