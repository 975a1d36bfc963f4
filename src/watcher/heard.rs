//! Which printed lines reached the model, by the session's transcript: for where the hook did not see them.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::base::id::SessionId;
use crate::client::notification::{Notification, ours, text_of_row};
use crate::client::projects;
use crate::client::transcript::lines::{Line, Place, read};
use crate::host::clock::Deadline;
use crate::host::files;
use crate::store::inbox::Mark;

/// A watcher that begins looks at so much of the transcript's end, in bytes.
const BACK: u64 = 1 << 20;
/// How long one look may take, in ms; the next goes on from there.
const BUDGET_MS: u64 = 50;

/// How far a transcript was read.
#[derive(Debug, Default)]
pub struct Heard {
    file: Option<(PathBuf, File)>,
    place: Place,
}

impl Heard {
    /// The marks that the transcript shows since the last look.
    pub fn look(&mut self, config: &Path, session: &SessionId) -> Vec<Mark> {
        if self.file.is_none() {
            let Some(path) = projects::transcript(config, session) else { return Vec::new() };
            let Ok(file) = files::open_regular(&path) else { return Vec::new() };
            let offset = file.metadata().map_or(0, |meta| meta.len().saturating_sub(BACK));
            self.place = Place { offset, ..Place::default() };
            self.file = Some((path, file));
        }
        let mut marks = Vec::new();
        let Some((_, file)) = &self.file else { return marks };
        let length = file.metadata().map_or(0, |meta| meta.len());
        if length < self.place.offset {
            // It was written anew.
            self.place = Place::default();
        } else if length == self.place.seen {
            return marks;
        }
        let deadline = Some(Deadline::after_ms(BUDGET_MS));
        let done = read(file, &mut self.place, deadline, &mut |line| {
            if let Line::Whole(line) = line {
                marks.extend(text_of_row(line).iter().flat_map(|text| marks_of(text)));
            }
        });
        if done.is_err() {
            self.file = None;
        }
        marks
    }
}

fn marks_of(text: &str) -> Vec<Mark> {
    let lines = ours(text).into_iter().filter_map(|notification| match notification {
        Notification::Lines(lines) => Some(lines),
        Notification::Ended => None,
    });
    lines.flatten().filter_map(|line| Mark::leading(&line)).collect()
}
