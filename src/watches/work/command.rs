//! Outputs of a command, compared from run to run.

use super::{FAREWELL_MS, Found, Program, last_words};
use crate::base::id::digest;
use crate::base::span::rough;
use crate::host::process::{Ran, Running};
use crate::store::watches::{Place, RunPlace};
use crate::watches::filter::{Filter, beginning};

/// From one start to the next, at the least and at the most, ms, whatever the list of watches says.
const EVERY_LEAST_MS: i64 = 1_000;
const EVERY_MOST_MS: i64 = 3_653 * 24 * 3_600_000;
/// From one look to the next while it runs, ms.
const POLL_MS: i64 = 250;
/// Of an output so much is told, in bytes.
const SHOWN: usize = 8 << 10;

/// A command, its run, and the output before.
#[derive(Debug)]
pub struct Runs {
    program: Program,
    every_ms: i64,
    timeout_ms: i64,
    running: Option<Running>,
    place: RunPlace,
    next_ms: i64,
}

impl Runs {
    /// Not yet run.
    pub fn start(program: Program, every_ms: i64, timeout_ms: i64, place: Option<&Place>) -> Self {
        let place = match place {
            Some(Place::Runs(place)) => place.clone(),
            _ => RunPlace::default(),
        };
        let every_ms = every_ms.clamp(EVERY_LEAST_MS, EVERY_MOST_MS);
        // One that is taken up again keeps to its pace.
        let next_ms = place.began_ms.saturating_add(every_ms);
        Self { program, every_ms, timeout_ms, running: None, place, next_ms }
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        Place::Runs(self.place.clone())
    }

    /// The run.
    pub fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// Looks at the run, and begins one when it is time.
    pub fn look(&mut self, filter: &Filter, failing: bool, now_ms: i64) -> Found {
        if let Some(running) = &mut self.running {
            let ran = match running.poll() {
                Ok(None) if now_ms.saturating_sub(self.place.began_ms) < self.timeout_ms => {
                    return Found::nothing(now_ms + POLL_MS);
                }
                Ok(None) => {
                    running.end_within(FAREWELL_MS);
                    Err(format!("the command ran longer than {} and was ended", rough(self.timeout_ms)))
                }
                Ok(Some(ran)) => Ok(ran),
                Err(error) => Err(format!("could not ask after the command: {error}")),
            };
            self.running = None;
            let mut answer = match ran {
                Ok(ran) => self.judge(&ran, filter, failing),
                Err(fails) => Found { fails: Some(fails), ..Found::default() },
            };
            answer.next_ms = Some(self.next_ms.max(now_ms));
            return answer;
        }
        // A clock that was set back does not hold it up.
        if now_ms < self.next_ms && self.next_ms.saturating_sub(now_ms) <= self.every_ms {
            return Found::nothing(self.next_ms);
        }
        (self.place.began_ms, self.place.runs) = (now_ms, self.place.runs.saturating_add(1));
        self.next_ms = now_ms.saturating_add(self.every_ms);
        match self.program.start(false) {
            Ok(running) => {
                self.running = Some(running);
                Found::nothing(now_ms + POLL_MS)
            }
            Err(error) => Found { fails: Some(error), ..Found::nothing(self.next_ms) },
        }
    }

    /// What a run that came to its end means.
    fn judge(&mut self, ran: &Ran, filter: &Filter, failing: bool) -> Found {
        let whole = String::from_utf8_lossy(&ran.stdout);
        let counted = filter.apply(&whole);
        let ends = filter.ends(&whole).then(|| "the output that it waited for has come".to_owned());
        if ran.code != Some(0) && ends.is_none() {
            let how =
                ran.code.map_or_else(|| "by a signal".to_owned(), |code| format!("with exit code {code}"));
            let words = if ran.stderr.is_empty() { &ran.stdout } else { &ran.stderr };
            let words = last_words(words);
            let colon = if words.is_empty() { "" } else { ": " };
            return Found {
                fails: Some(format!("the command ended {how}{colon}{words}")),
                ..Found::default()
            };
        }
        let output = format!("{:016x}", digest(&[counted.as_bytes()]));
        let changed = match &self.place.output {
            Some(before) => *before != output,
            // What it says first is what later outputs are compared with, unless it was said that it fails.
            None => failing,
        };
        let keep = self.place.output.replace(output).is_none();
        let mut answer = Found { well: true, ends, keep, ..Found::default() };
        if changed || answer.ends.is_some() {
            let shown = if answer.ends.is_some() && counted.is_empty() { &whole } else { &*counted };
            let (shown, cut) = beginning(shown.trim_end(), SHOWN);
            let what = if changed { "the output is now" } else { "the output is" };
            let text = if shown.is_empty() { "empty" } else { shown };
            let join = if text.contains('\n') { ":\n" } else { ": " };
            answer.text = Some(format!("{what}{join}{text}{}", if cut { "…" } else { "" }));
            answer.lines = shown.lines().count().max(1) as u64;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::watches::tests::watch;
    use crate::store::watches::{Subject, Watch};

    fn runs() -> Runs {
        let argv = ["true".to_owned()];
        let watch = watch(Subject::Sessions);
        Runs::start(Program::of(&argv, &watch, &[]), 60_000, 10_000, None)
    }

    fn ran(code: i32, stdout: &str, stderr: &str) -> Ran {
        Ran { code: Some(code), stdout: stdout.into(), stderr: stderr.into() }
    }

    fn filter(matching: Option<&str>, until: Option<&str>) -> Filter {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Filter::of(&Watch { matching: own(matching), until: own(until), ..watch(Subject::Sessions) }).unwrap()
    }

    #[test]
    fn no_pace_is_without_a_rest() {
        let watch = Watch { directory: "/".into(), ..watch(Subject::Sessions) };
        for every_ms in [i64::MIN, -1, 0, 1, i64::MAX] {
            let program = || Program::of(&["true".to_owned()], &watch, &[]);
            let mut runs = Runs::start(program(), every_ms, 10_000, None);
            let now_ms = 1_800_000_000_000;
            assert!(runs.look(&filter(None, None), false, now_ms).fails.is_none() && runs.running.is_some());
            assert!(runs.next_ms >= now_ms + EVERY_LEAST_MS, "{every_ms}");
            let place = Place::Runs(RunPlace { began_ms: i64::MAX, ..RunPlace::default() });
            Runs::start(program(), every_ms, 10_000, Some(&place)).look(&filter(None, None), false, now_ms);
        }
    }

    #[test]
    fn an_output_is_told_when_it_changes() {
        let (mut runs, filter) = (runs(), filter(None, Some("completed")));
        let mut said = |stdout: &str| {
            let found = runs.judge(&ran(0, stdout, ""), &filter, false);
            (found.text, found.ends.is_some())
        };
        assert_eq!(said("queued\n"), (None, false), "the first is what later ones are compared with");
        assert_eq!(said("queued\n"), (None, false));
        assert_eq!(said("running\n"), (Some("the output is now: running".into()), false));
        assert_eq!(said(""), (Some("the output is now: empty".into()), false));
        assert_eq!(said("a\nb\n"), (Some("the output is now:\na\nb".into()), false));
        assert_eq!(said("completed"), (Some("the output is now: completed".into()), true));
        let first = self::runs().judge(&ran(0, "completed", ""), &filter, false);
        assert_eq!(first.text.as_deref(), Some("the output is: completed"));
    }

    #[test]
    fn only_lines_that_match_are_compared() {
        let (mut runs, filter) = (runs(), filter(Some("^state"), None));
        let mut changed = |stdout: &str| runs.judge(&ran(0, stdout, ""), &filter, false).text.is_some();
        assert_eq!(
            [changed("at 1\nstate a"), changed("at 2\nstate a"), changed("at 3\nstate b")],
            [false, false, true]
        );
    }

    #[test]
    fn a_run_that_fails_is_no_output_and_what_comes_after_is_told() {
        let (mut runs, filter) = (runs(), filter(None, Some("FAILED")));
        let found = runs.judge(&ran(1, "", "no\nnetwork\n"), &filter, false);
        assert_eq!(found.fails.as_deref(), Some("the command ended with exit code 1: no network"));
        let found = runs.judge(&ran(0, "up", ""), &filter, true);
        assert_eq!((found.text.as_deref(), found.well), (Some("the output is now: up"), true));
        assert!(runs.judge(&ran(1, "", "x"), &filter, false).text.is_none());
        assert!(runs.judge(&ran(0, "up", ""), &filter, true).text.is_none(), "as before");
        assert!(runs.judge(&ran(2, "tests FAILED", ""), &filter, false).ends.is_some());
    }
}
