//! How often a watch may speak: so many times an hour at once, the rest summed up when the hour is over.

use crate::base::span::HOUR_MS;
use crate::store::watches::Window;

/// What is to be done with something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Told at once.
    Now,
    /// The same, and it is said that the rest of the hour is summed up.
    LastNow,
    /// Kept for the sum.
    Later,
}

/// What was kept back in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Things that would have been told.
    pub times: u64,
    /// Their lines.
    pub lines: u64,
}

impl Window {
    fn is_over(&self, now_ms: i64) -> bool {
        let since = now_ms.saturating_sub(self.began_ms);
        !(0..HOUR_MS).contains(&since)
    }

    /// When it ends, epoch milliseconds.
    pub fn ends_ms(&self) -> i64 {
        self.began_ms.saturating_add(HOUR_MS)
    }

    /// Something of so many lines has come.
    pub fn take(&mut self, most: u64, now_ms: i64, lines: u64) -> Say {
        if self.spoken == 0 || self.is_over(now_ms) {
            *self = Self { began_ms: now_ms, ..Self::default() };
        }
        if self.spoken >= most {
            self.held = self.held.saturating_add(1);
            self.held_lines = self.held_lines.saturating_add(lines);
            return Say::Later;
        }
        self.spoken += 1;
        if self.spoken == most { Say::LastNow } else { Say::Now }
    }

    /// What was kept back in an hour that is over; it counts as told in the next one.
    pub fn sum(&mut self, now_ms: i64) -> Option<Sum> {
        if self.held == 0 || !self.is_over(now_ms) {
            return None;
        }
        let sum = Sum { times: self.held, lines: self.held_lines };
        *self = Self { began_ms: now_ms, spoken: 1, ..Self::default() };
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_times_an_hour_and_then_a_sum() {
        let mut window = Window::default();
        let said: Vec<Say> = (0..5).map(|n| window.take(3, 1_000 + n, 2)).collect();
        assert_eq!(said, [Say::Now, Say::Now, Say::LastNow, Say::Later, Say::Later]);
        assert_eq!(window.sum(1_000 + HOUR_MS - 1), None);
        assert_eq!(window.sum(1_000 + HOUR_MS), Some(Sum { times: 2, lines: 4 }));
        assert_eq!(window.sum(9 * HOUR_MS), None, "once");
        let said: Vec<Say> = (0..3).map(|_| window.take(3, 2_000 + HOUR_MS, 1)).collect();
        assert_eq!(said, [Say::Now, Say::LastNow, Say::Later]);
        // Never more than that in any hour of it, the sum with them.
        assert_eq!(window.sum(1_000 + 2 * HOUR_MS), Some(Sum { times: 1, lines: 1 }));
    }

    #[test]
    fn a_quiet_hour_begins_anew_and_a_clock_that_is_set_back_ends_one() {
        let mut window = Window::default();
        window.take(1, HOUR_MS, 1);
        assert_eq!(window.take(1, 2 * HOUR_MS, 1), Say::LastNow);
        assert_eq!(window.take(1, 2 * HOUR_MS, 1), Say::Later);
        assert_eq!(window.sum(HOUR_MS), Some(Sum { times: 1, lines: 1 }));
    }
}
