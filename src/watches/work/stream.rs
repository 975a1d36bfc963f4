//! Lines of a command that goes on. When it ends it is started again, later and later.

use super::{Found, Program, last_words};
use crate::base::span::rough;
use crate::host::process::{Ran, Running};
use crate::store::watches::{Inside, Place, RunPlace};
use crate::watches::filter::{Filter, Gather};
use crate::watches::lines::{Line, rest, split};
use crate::watches::wording::found;

/// From one look to the next while it runs, ms.
const POLL_MS: i64 = 1_000;
/// The first wait before it is started again, and the longest, ms.
const BACK_OFF_MS: i64 = 1_000;
const BACK_OFF_MOST_MS: i64 = 300_000;
/// One that ran so long did not fall at once, ms.
const RAN_MS: i64 = 60_000;
/// One that runs so long is well, ms: that it ended before is over.
const WELL_MS: i64 = 600_000;
/// A beginning of a line that nothing followed for so long is told as it is, ms.
const STILL_MS: i64 = 5_000;

/// A command and its last words.
#[derive(Debug)]
pub struct Stream {
    program: Program,
    running: Option<Running>,
    place: RunPlace,
    next_ms: i64,
    pieces: Pieces,
}

/// How long until the next start, after so many ends one soon after the other.
pub fn back_off(falls: u32) -> i64 {
    BACK_OFF_MS.saturating_mul(1 << falls.min(20)).min(BACK_OFF_MOST_MS)
}

impl Stream {
    /// Not yet started.
    pub fn start(program: Program, place: Option<&Place>) -> Self {
        let place = match place {
            Some(Place::Runs(place)) => place.clone(),
            _ => RunPlace::default(),
        };
        Self { program, running: None, place, next_ms: i64::MIN, pieces: Pieces::default() }
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        Place::Runs(self.place.clone())
    }

    /// The command.
    pub fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// Reads what it said, and starts it where it does not run.
    pub fn look(&mut self, filter: &Filter, now_ms: i64) -> Found {
        let mut answer = Found::nothing(now_ms + POLL_MS);
        if self.running.is_none() {
            // A clock that was set back does not hold it up.
            if now_ms < self.next_ms && self.next_ms - now_ms <= BACK_OFF_MOST_MS {
                return Found::nothing(self.next_ms);
            }
            (self.place.began_ms, self.place.runs) = (now_ms, self.place.runs.saturating_add(1));
            match self.program.start(true) {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    answer.fails = Some(error);
                    self.fell(now_ms);
                    answer.next_ms = Some(self.next_ms);
                    return answer;
                }
            }
        }
        let Some(running) = &mut self.running else { return answer };
        let mut gather = Gather::new(filter);
        self.pieces.push(&running.take(), now_ms, &mut |line| gather.take(line));
        answer.well = now_ms.saturating_sub(self.place.began_ms) >= WELL_MS;
        match running.poll() {
            Ok(None) => {}
            Ok(Some(ran)) => {
                self.pieces.push(&ran.stdout, now_ms, &mut |line| gather.take(line));
                self.pieces.finish(&mut |line| gather.take(line));
                self.running = None;
                answer.fails = Some(self.ended(&ran, now_ms));
                answer.next_ms = Some(self.next_ms);
            }
            Err(error) => answer.fails = Some(format!("could not ask after the command: {error}")),
        }
        if gather.lines > 0 {
            answer.text = Some(found(&gather.text, gather.lines, gather.shown, "which are not kept"));
            answer.lines = gather.lines;
        }
        answer.ends = gather.ended.then(|| "the line that it waited for has come".to_owned());
        answer
    }

    fn ended(&mut self, ran: &Ran, now_ms: i64) -> String {
        let how = ran.code.map_or_else(|| "by a signal".to_owned(), |code| format!("with exit code {code}"));
        self.fell(now_ms);
        let words = last_words(&ran.stderr);
        let colon = if words.is_empty() { "" } else { ": " };
        let next = rough((self.next_ms - now_ms).max(1_000));
        format!("the command ended {how}, and is started again in {next}{colon}{words}")
    }

    fn fell(&mut self, now_ms: i64) {
        let ran_ms = now_ms.saturating_sub(self.place.began_ms);
        self.place.falls = if ran_ms >= RAN_MS { 0 } else { self.place.falls };
        self.next_ms = now_ms + back_off(self.place.falls);
        self.place.falls = self.place.falls.saturating_add(1);
    }
}

/// What came of a line so far.
#[derive(Debug, Default)]
struct Pieces {
    left: Vec<u8>,
    inside: Inside,
    since_ms: i64,
}

impl Pieces {
    fn push(&mut self, bytes: &[u8], now_ms: i64, each: &mut dyn FnMut(Line)) {
        if bytes.is_empty() {
            if !self.left.is_empty() && now_ms.saturating_sub(self.since_ms) >= STILL_MS {
                rest(&self.left, self.inside, each);
                self.left.clear();
                self.inside = Inside::Begun;
            }
            return;
        }
        self.left.extend_from_slice(bytes);
        let (done, inside) = split(&self.left, self.inside, each);
        self.left.drain(..done);
        (self.inside, self.since_ms) = (inside, now_ms);
    }

    fn finish(&mut self, each: &mut dyn FnMut(Line)) {
        rest(&self.left, self.inside, each);
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_started_again_later_and_later() {
        let waits: Vec<i64> = [0, 1, 2, 8, 9, 100].map(back_off).to_vec();
        assert_eq!(waits, [1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
    }

    #[test]
    fn pieces_become_lines_and_a_beginning_is_told_when_nothing_follows() {
        let mut said = Vec::new();
        let mut pieces = Pieces::default();
        let mut push = |bytes: &[u8], now_ms| {
            pieces
                .push(bytes, now_ms, &mut |line| said.push(String::from_utf8_lossy(line.bytes).into_owned()));
        };
        push(b"one\ntw", 0);
        push(b"o\nlog", 1_000);
        push(b"", 5_999);
        push(b"", 6_000);
        push(b"", 60_000);
        push(b"in:\nnext\n", 61_000);
        assert_eq!(said, ["one", "two", "log", "in:", "next"]);
    }
}
