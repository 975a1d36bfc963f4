//! The library behind longhaul's four programs.
//!
//! Floors, each using only those below it: faces (`hook`, `line`, `watcher`, `cli`), features
//! (`handoff`, `setup`, then `gauge`, `liveness`), ground (`client`, `store`, then `host`, then `base`).
//! `tests/layers.rs` fails on an arrow that runs up or sideways.

pub mod base;
pub mod cli;
pub mod client;
pub mod gauge;
pub mod handoff;
pub mod hook;
pub mod host;
pub mod line;
pub mod liveness;
pub mod setup;
pub mod store;
pub mod watcher;
pub mod watches;
