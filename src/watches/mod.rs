//! Watches that are made during a session: what they watch, when they speak, and who runs them.
//!
//! Decisions are apart from the machine: who runs a watch (`pick`), what has become of a file (`follow/judge`), how
//! often one may speak (`hour`), what is told of it (`news`). `engine` carries them out.

pub mod engine;
pub mod filter;
pub mod follow;
pub mod hour;
pub mod lines;
mod news;
pub mod pick;
pub mod sessions;
pub mod wording;
mod work;
