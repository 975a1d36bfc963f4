//! End-to-end tests with the real client.
fn main() {}
