//! Watches that are made during a session: what they watch, when they speak, and who runs them.

pub mod follow;
pub mod lines;
