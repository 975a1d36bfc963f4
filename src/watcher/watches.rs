//! The duty of running the watches that fall to this watcher's session.

use super::duties::{Duty, Whose};
use crate::watches::engine::{Engine, Who};

/// Runs them for as long as this watcher lives; programs of theirs end with it.
pub fn duty() -> Duty {
    let mut engine: Option<Engine> = None;
    let run = move |work: &super::duties::Work| {
        let (Some(session), Some(client)) = (work.session.clone(), work.client.cloned()) else {
            return Ok(());
        };
        let directory = work.host.env_path("CLAUDE_PROJECT_DIR").or_else(|| work.host.current_dir());
        let who = Who { client, session, directory: directory.unwrap_or_default() };
        let engine = engine.get_or_insert_with(|| Engine::new(work.host, work.store));
        // A large file is read in pieces.
        while engine.tick(&who, work.host.now_ms()).again_ms == 0 && !work.rest.asked() {}
        Ok(())
    };
    Duty { name: "watches", every_ms: 1_000, whose: Whose::Each, run: Box::new(run) }
}
