//! Values that know nothing of Claude Code, of files or of time's source: ids, token counts, spans, text width.

pub mod id;
pub mod span;
pub mod text;
pub mod tokens;
