//! A session written out so that another one can read it in full.
//!
//! Two readings of the transcript: `survey` finds the live branch and the compactions ([`branch`]
//! decides), `collect` writes every row to 03 and keeps what was said and decided. `assemble` then makes the
//! parts that are read in full, within the budget; `parts` cuts them so that one Read call returns each whole
//! and sets the read marks; `index` counts it all.
//!
//! Memory is bounded: 29 bytes a row of the conversation, what a message takes, one message or line at a time.

mod ancestor;
mod ask;
mod assemble;
pub mod automatic;
pub mod branch;
pub mod chain;
mod collect;
pub mod continuation;
mod copy;
mod entry;
pub mod export;
mod exporting;
pub mod failure;
pub mod guard;
mod index;
mod lineage;
pub mod name;
pub mod origin;
pub mod parts;
pub mod proof;
mod reader;
pub mod redact;
mod render;
mod source;
mod subagents;
mod survey;
mod turn;

pub use export::{Automatic, Done, Failed, Follow, Request, export};

#[cfg(test)]
mod tests;
