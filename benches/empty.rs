//! An empty program: the floor that redraws and hooks are measured against.
fn main() {}
