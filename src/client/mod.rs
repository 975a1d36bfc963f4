//! Claude Code's own formats, and nothing else: what it hands us, what it reads back, what it keeps on disk.
//! A new client version is a change here and in the fixtures.

pub mod edit;
pub mod event;
pub mod figures;
pub mod flags;
pub mod headless;
pub mod job;
pub mod lenient;
pub mod models;
pub mod notification;
pub mod payload;
pub mod plugins;
pub mod program;
pub mod projects;
pub mod reply;
pub mod session_file;
pub mod settings;
pub mod shown;
pub mod transcript;
pub mod wiring;
