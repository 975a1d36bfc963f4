//! Values that know nothing of Claude Code, of files or of where time comes from: ids, token counts, spans,
//! text width, shell words.

pub mod id;
pub mod shell;
pub mod span;
pub mod text;
pub mod tokens;
