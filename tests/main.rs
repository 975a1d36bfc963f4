//! One integration program, a module for each matter, all on one sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that fails here says where.
#![allow(clippy::disallowed_methods)] // Tests start programs and watch the clock.

mod automatic;
mod chains;
#[cfg(unix)]
#[path = "support/checkout.rs"]
mod checkout;
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
#[cfg(target_os = "linux")] // It needs GNU tar.
mod release;
mod reports;
#[path = "support/saga.rs"]
mod saga;
mod sandbox;
mod setup;
mod watch;
mod watches;
