//! Exports that a compaction of the session left to be finished: the next command about it does.

use std::io::Write as _;

use super::progress::Exporting;
use crate::base::id::SessionId;
use crate::base::text::clean;
use crate::handoff::automatic;
use crate::host::Host;
use crate::store::Store;

/// Finishes them. What fails is said on standard error and holds nothing up: it is not what was asked for.
pub fn finish(host: &Host, store: &Store, session: &SessionId) {
    for (id, _) in store.jobs().into_iter().filter(|(_, job)| job.is_of(session)) {
        let Ok(Some(claim)) = store.claim(&id) else { continue };
        let mut progress = Exporting::new();
        let finished = automatic::finish(store, claim, host.now_ms(), &mut progress);
        progress.end();
        if let Err(error) = finished {
            let text = format!("longhaul: the export {id} that a compaction left is not done: {error}");
            let _ = writeln!(std::io::stderr(), "{}", clean(&text));
        }
    }
}
