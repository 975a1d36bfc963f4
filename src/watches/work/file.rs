//! Lines that a file gets.

use std::io;
use std::path::{Path, PathBuf};

use super::Found;
use crate::store::watches::Place;
use crate::watches::filter::{Filter, Gather};
use crate::watches::follow::Follower;
use crate::watches::wording::found;

/// From one look to the next, ms.
pub const POLL_MS: i64 = 1_000;
/// Bytes of one look; what is more comes with the next, at once.
const BUDGET: u64 = 4 << 20;

/// A file and the place in it.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    from_start: bool,
    /// `None` as long as no place could be found in it.
    follower: Option<Follower>,
}

impl Lines {
    /// From its place; without one, from now on or from the start.
    pub fn start(path: &Path, from_start: bool, place: Option<&Place>) -> Self {
        let follower = match place {
            Some(Place::File(place)) => Some(Follower::at(path, place.clone())),
            _ => None,
        };
        Self { path: path.to_path_buf(), from_start, follower }
    }

    /// Where it is.
    pub fn place(&self) -> Option<Place> {
        self.follower.as_ref().map(|follower| Place::File(follower.place()))
    }

    fn follower(&mut self) -> io::Result<&mut Follower> {
        let follower = match self.follower.take() {
            Some(follower) => follower,
            None => Follower::at(&self.path, Follower::begin(&self.path, self.from_start)?),
        };
        Ok(self.follower.insert(follower))
    }

    /// Reads what is new.
    pub fn look(&mut self, filter: &Filter, now_ms: i64) -> Found {
        let mut gather = Gather::new(filter);
        let begins = self.follower.is_none();
        let follower = self.follower();
        let step = follower.and_then(|follower| follower.step(now_ms, BUDGET, &mut |line| gather.take(line)));
        let mut answer = Found::nothing(now_ms + POLL_MS);
        match step {
            Ok(step) => {
                answer.well = true;
                answer.keep = begins;
                answer.more = step.more && !gather.ended;
                if step.lost {
                    let name = self.path.display();
                    answer.fails = Some(format!(
                        "{name} was replaced or emptied while nobody watched: lines of what it was may be missing"
                    ));
                }
            }
            Err(error) => answer.fails = Some(format!("could not read {}: {error}", self.path.display())),
        }
        if gather.lines > 0 {
            let rest = format!("in {}", self.path.display());
            answer.text = Some(found(&gather.text, gather.lines, gather.shown, &rest));
            answer.lines = gather.lines;
        }
        answer.ends = gather.ended.then(|| "the line that it waited for has come".to_owned());
        answer
    }
}
