//! A transcript, from where the last look at it ended.

use std::path::Path;

use super::{Leaves, Subject};
use crate::client::transcript::{self, Advance, Progress, Tail, tail};
use crate::host::clock::Deadline;
use crate::host::files;
use crate::store::Store;
use crate::store::session::Slot;

/// The part of a transcript that is looked at when the whole cannot be caught up with in time, in bytes.
const TAIL: u64 = 8 << 20;
/// What is surely measured within a redraw's budget, in bytes.
const QUICK: u64 = 24 << 20;
/// From this many bytes on it is worth storing that they are measured: below, reading them again is cheaper
/// than replacing the record.
const WORTH_STORING: u64 = 64 << 10;

/// A transcript as far as it is measured.
#[derive(Default)]
pub(super) struct Measured {
    progress: Progress,
    tail: Option<Tail>,
    pub(super) complete: bool,
    pub(super) found: bool,
}

impl Measured {
    /// The whole's figures, with what the end says where the whole is not measured yet.
    pub(super) fn figures(&self) -> transcript::Figures {
        let mut figures = self.progress.figures();
        if let Some(tail) = &self.tail {
            figures.context.clone_from(&tail.context);
            figures.context_at = tail.context_at;
            figures.last_response = tail.last_response;
            figures.previous_context = tail.previous_context;
            figures.after_compaction = tail.after_compaction;
            figures.refused = tail.refused;
            figures.last_boundary = tail.last_boundary.or(figures.last_boundary);
        }
        figures
    }
}

/// Measures on from where the last look ended. A transcript too long to be caught up with now is looked at
/// from its end first.
pub(super) fn measure(path: &Path, subject: &Subject, store: Option<&Store>, deadline: Deadline) -> Measured {
    let Ok(file) = files::open_regular(path) else { return Measured::default() };
    let slot = subject.session.as_ref().zip(store);
    let saved = slot.and_then(|(id, store)| store.load(id, Slot::Scan));
    let mut progress = saved.as_deref().and_then(Progress::from_bytes).unwrap_or_default();
    let rest = file.metadata().map_or(0, |meta| meta.len()).saturating_sub(progress.offset());
    let look = || tail(&file, TAIL, Some(deadline)).ok();
    let early = (rest > QUICK).then(look).flatten();
    let failed = Advance { complete: false, changed: false, read: 0 };
    let advance = progress.advance(&file, Some(deadline)).unwrap_or(failed);
    let tail = if advance.complete { None } else { early.or_else(look) };
    if advance.read >= WORTH_STORING
        && subject.leaves != Leaves::Nothing
        && let Some((id, store)) = slot
    {
        let _ = store.save(id, Slot::Scan, &progress.to_bytes());
    }
    Measured { progress, tail, complete: advance.complete, found: true }
}
