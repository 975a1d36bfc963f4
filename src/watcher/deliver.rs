//! Which events are printed now: decisions, of what is open and of the time.
//!
//! The client takes a burst of ten notifications and then one in two seconds; the rest it drops for good, without
//! a word. So one is printed in two seconds at most, and what nobody acknowledged is printed again.

use std::collections::BTreeMap;

use crate::store::inbox::Event;

/// The time between two notifications, in ms.
const APART_MS: u64 = 2_000;
/// A turn that ended must have been over for so long before anything is printed again, in ms: as long as a tool
/// runs the client holds back what was printed.
const QUIET_MS: u64 = 60_000;
/// When what nobody acknowledged is printed again, in ms from the last time.
const AGAIN_MS: [u64; 3] = [60_000, 300_000, 900_000];
/// So many notifications wait in a client that works; what comes then is told together, later.
const WAITING: usize = 3;

/// The present, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// On a clock that stands still while the machine sleeps.
    pub ms: u64,
    /// The client's turn has ended.
    pub quiet: bool,
    /// The machine slept since the last time.
    pub slept: bool,
}

/// An event that was printed.
#[derive(Debug, Clone, Copy)]
struct Shown {
    at_ms: u64,
    again: usize,
}

/// What this watcher printed, and how the client stands.
#[derive(Debug, Default)]
pub struct Delivery {
    shown: BTreeMap<u64, Shown>,
    /// The highest number of each notification that may still wait in the client.
    waiting: Vec<u64>,
    last_ms: Option<u64>,
    quiet_since: Option<u64>,
}

impl Delivery {
    /// Takes in how the client stands, and what is still open.
    pub fn look(&mut self, moment: Moment, is_open: impl Fn(u64) -> bool) {
        let quiet = self.quiet_since.is_some();
        if moment.quiet {
            if !quiet || moment.slept {
                self.quiet_since = Some(moment.ms);
            }
        } else {
            self.quiet_since = None;
            if quiet {
                self.try_anew(moment.ms);
            }
        }
        self.shown.retain(|number, _| is_open(*number));
        self.waiting.retain(|number| is_open(*number));
    }

    /// A turn began, so the client listens: what was given up is tried again when that turn is over.
    fn try_anew(&mut self, ms: u64) {
        for shown in self.shown.values_mut().filter(|shown| shown.again >= AGAIN_MS.len()) {
            *shown = Shown { at_ms: ms, again: 0 };
        }
    }

    /// The numbers to print now, of those that are open.
    pub fn due<'a>(&self, open: impl Iterator<Item = &'a Event>, moment: Moment) -> Vec<u64> {
        let too_soon = self.last_ms.is_some_and(|last| moment.ms.saturating_sub(last) < APART_MS);
        if too_soon || (!moment.quiet && self.waiting.len() >= WAITING) {
            return Vec::new();
        }
        let rested = self.quiet_since.is_some_and(|since| moment.ms.saturating_sub(since) >= QUIET_MS);
        let is_due = |event: &&Event| match self.shown.get(&event.number) {
            None => true,
            Some(shown) => AGAIN_MS
                .get(shown.again)
                .is_some_and(|wait| rested && moment.ms.saturating_sub(shown.at_ms) >= *wait),
        };
        open.filter(is_due).map(|event| event.number).collect()
    }

    /// These were printed, as one notification.
    pub fn printed(&mut self, numbers: &[u64], moment: Moment) {
        for number in numbers {
            let again = self.shown.get(number).map_or(0, |shown| shown.again + 1);
            self.shown.insert(*number, Shown { at_ms: moment.ms, again });
        }
        self.waiting.extend(numbers.last());
        self.last_ms = Some(moment.ms);
    }

    /// The client goes on in another session, under which what was printed before may still arrive.
    pub fn adopt<'a>(&mut self, open: impl Iterator<Item = &'a Event>, moment: Moment) {
        self.waiting.clear();
        self.shown = open
            .filter(|event| event.printed > 0)
            .map(|event| (event.number, Shown { at_ms: moment.ms, again: 0 }))
            .collect();
    }

    /// How many were printed so often that they are not printed again before the next prompt.
    pub fn unheard(&self) -> usize {
        self.shown.values().filter(|shown| shown.again >= AGAIN_MS.len()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        Event {
            number,
            sign: "aaaa".into(),
            id: number.to_string(),
            at_ms: 0,
            source: "s".into(),
            text: "t".into(),
            printed: 0,
        }
    }

    fn at(ms: u64) -> Moment {
        Moment { ms, quiet: true, slept: false }
    }

    /// Time goes on second by second; when the numbers were printed, in seconds.
    fn run(
        delivery: &mut Delivery,
        open: &[Event],
        seconds: std::ops::Range<u64>,
        quiet: bool,
    ) -> Vec<(u64, Vec<u64>)> {
        let mut printed = Vec::new();
        for second in seconds {
            let moment = Moment { quiet, ..at(second * 1000) };
            delivery.look(moment, |number| open.iter().any(|event| event.number == number));
            let due = delivery.due(open.iter(), moment);
            if !due.is_empty() {
                delivery.printed(&due, moment);
                printed.push((second, due));
            }
        }
        printed
    }

    #[test]
    fn what_nobody_acknowledges_is_printed_three_times_more() {
        let mut delivery = Delivery::default();
        let printed = run(&mut delivery, &[event(1)], 0..4_000, true);
        assert_eq!(printed.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [0, 60, 360, 1260]);
        assert_eq!(delivery.unheard(), 1);
        // A turn begins: the client listens, and a minute after its end it is tried again.
        assert_eq!(run(&mut delivery, &[event(1)], 4_000..4_010, false), []);
        assert_eq!(run(&mut delivery, &[event(1)], 4_010..4_100, true), [(4_070, vec![1])]);
        assert_eq!(delivery.unheard(), 0);
        // Acknowledged, it is forgotten.
        assert_eq!(run(&mut delivery, &[], 4_100..6_000, true), []);
    }

    #[test]
    fn nothing_is_printed_again_while_the_client_works_or_before_it_has_rested() {
        let mut delivery = Delivery::default();
        let open = [event(1)];
        assert_eq!(run(&mut delivery, &open, 0..1_000, false), [(0, vec![1])]);
        assert_eq!(run(&mut delivery, &open, 1_000..1_059, true), []);
        assert_eq!(run(&mut delivery, &open, 1_059..1_061, true), [(1_060, vec![1])]);
        let mut delivery = Delivery::default();
        run(&mut delivery, &open, 0..50, true);
        delivery.look(Moment { slept: true, ..at(55_000) }, |_| true);
        assert_eq!(run(&mut delivery, &open, 56..120, true), [(115, vec![1])], "a grace after sleep");
    }

    #[test]
    fn one_notification_in_two_seconds_and_few_waiting() {
        let mut delivery = Delivery::default();
        let open: Vec<Event> = (1..=9).map(event).collect();
        for (second, count, expected) in [(0, 1, 1), (1, 2, 0), (2, 3, 2), (4, 4, 1), (6, 5, 0)] {
            let moment = Moment { quiet: false, ..at(second * 1000) };
            delivery.look(moment, |_| true);
            let due = delivery.due(open[..count].iter(), moment);
            assert_eq!(due.len(), expected, "{second}");
            if !due.is_empty() {
                delivery.printed(&due, moment);
            }
        }
        // One of them arrived.
        let moment = Moment { quiet: false, ..at(8_000) };
        delivery.look(moment, |number| number > 1);
        assert_eq!(delivery.due(open[1..].iter(), moment), [5, 6, 7, 8, 9]);
        // Or the client rests.
        assert_eq!(Delivery::default().due(open.iter(), at(0)).len(), 9);
    }

    #[test]
    fn in_another_session_what_was_printed_may_still_arrive() {
        let mut delivery = Delivery::default();
        let open = [Event { printed: 1, ..event(1) }, event(2)];
        delivery.adopt(open.iter(), at(0));
        assert_eq!(delivery.due(open.iter(), at(0)), [2]);
        // A new watcher knows of nothing that it could wait for.
        assert_eq!(Delivery::default().due(open.iter(), at(0)), [1, 2]);
    }
}
