//! One integration program, a module for each matter, all on one sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that fails here says where.
#![allow(clippy::disallowed_methods)] // Tests start programs and watch the clock.

mod automatic;
mod chains;
mod commands;
mod damage;
#[cfg(unix)]
mod doctor;
mod export;
#[cfg(all(unix, feature = "testing"))]
mod handoff;
mod handover;
mod hostile;
#[cfg(all(unix, feature = "testing"))]
mod incidents;
mod layers;
#[cfg(all(unix, feature = "testing"))]
mod liveness;
mod notices;
mod plugin;
mod readme;
mod reports;
#[path = "support/saga.rs"]
mod saga;
mod sandbox;
mod setup;
mod watch;
mod watches;
