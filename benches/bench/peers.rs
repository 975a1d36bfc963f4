//! Stub
pub fn run(_: &str, _: &str, _: &str, _: &str) {}
