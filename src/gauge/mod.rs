//! How full a session is, against the wall that really ends it.
//!
//! `wall` reckons, `learned` judges by evidence, `context` picks the newest count, `weight` decides how
//! urgent it is, `notice` decides what the model is told; all of them take facts and return values.
//! `gather` alone reads files and stores results.

pub mod context;
pub mod evidence;
pub mod gather;
pub mod inputs;
pub mod learned;
mod ledger;
pub mod notice;
pub mod parse;
pub mod reading;
pub mod records;
pub mod wall;
pub mod weight;
pub mod wording;
