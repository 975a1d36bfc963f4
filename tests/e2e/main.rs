//! End-to-end tests: the real client, in a home of its own, against a stand-in for the Messages API.
//!
//! `sh .ci/client` fetches the pinned client; `CLAUDE_BIN` names another. Without one the tests say how to get
//! it and pass, except under `CI=true`. `cargo test --test e2e walls::` runs the walls alone.

// Tests read the clock and the environment, start programs and panic where something is not as it must be.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]
// Said once here: nobody but these tests reads their items.
#![allow(missing_docs, clippy::missing_panics_doc)]
#![allow(dead_code)] // The harness offers more than every selection of tests uses.
#![cfg(unix)]

mod api;
mod bench;
mod branches;
#[path = "../support/checkout.rs"]
mod checkout;
mod client;
mod climb;
mod combos;
mod compaction;
mod complete;
mod doctor;
mod export;
mod fleet;
mod generations;
mod handoff;
mod headless;
mod http;
mod inbox;
mod lineage;
mod live;
#[cfg(feature = "testing")]
mod liveness;
mod longhaul;
mod market;
mod notices;
mod picture;
mod probe;
mod reader;
mod rows;
#[path = "../support/saga.rs"]
mod saga;
mod smoke;
mod terminal;
mod versions;
mod walls;
mod watches;
