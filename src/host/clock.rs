//! Time: the wall clock, the one that stops while the machine sleeps, and deadlines.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Epoch milliseconds; a clock before 1970 counts as 0.
pub fn now_ms() -> i64 {
    epoch_ms(SystemTime::now())
}

/// The wall clock as files have it.
pub fn system_time() -> SystemTime {
    SystemTime::now()
}

/// Milliseconds on a clock that nobody sets and that stands still while the machine sleeps (Linux). Comparable
/// between processes of one boot.
#[cfg(unix)]
pub fn mono_ms() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000)
}

/// The wall clock, where no other can be compared between processes.
#[cfg(not(unix))]
pub fn mono_ms() -> i64 {
    now_ms()
}

/// Epoch milliseconds of a file's time.
pub fn epoch_ms(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

/// A point in time after which work is left undone.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// This many milliseconds from now.
    pub fn after_ms(ms: u64) -> Self {
        Self(Instant::now() + Duration::from_millis(ms))
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// What is left of it.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Time that has passed since it was made, on a clock that nobody sets and that stands still while the machine
/// sleeps (Linux, macOS).
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds.
    pub fn ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Waits.
pub fn sleep_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
