//! A session handed over: written out, read in full by a fresh one, and proved to have been.
//!
//! `export` writes it out; `continuation` takes it from there to a child that has read it, each step kept in the
//! registry first, so that `retry` goes on wherever it ended. `turn` has the child read, `guard` keeps it to the
//! export meanwhile, and `proof` judges, without a file, what its transcript shows and what it answered. `chain`
//! reckons who went on in whom, from the registry and from what `origin` knows of /clear and forks. `automatic`
//! exports before a compaction, without a child.
//!
//! An export is made in two readings of the transcript: `survey` finds the live branch and the compactions
//! ([`branch`] decides), `collect` writes every row to 03 and keeps what was said and decided. `assemble` then
//! makes the parts that are read in full, within the budget; `parts` cuts them so that one Read call returns each whole
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
