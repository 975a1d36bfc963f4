//! How time goes for a watcher, and when the machine slept.

use crate::host::Host;
use crate::host::clock::Stopwatch;

/// A wall clock that goes so much further than the other one was set, or the machine slept, in ms.
const JUMP_MS: i64 = 10_000;
/// How long nothing is concluded from silence then, in ms.
const GRACE_MS: u64 = 60_000;

/// How many times faster than it is time goes: 1, but in tests.
#[derive(Debug, Clone, Copy)]
pub struct Pace(u64);

impl Pace {
    /// As it is; in tests `LONGHAUL_TEST_HASTE` times faster.
    pub fn of(host: &Host) -> Self {
        #[cfg(feature = "testing")]
        if let Some(haste) = host.env("LONGHAUL_TEST_HASTE").and_then(|text| text.parse().ok()) {
            return Self(u64::max(haste, 1));
        }
        let _ = host;
        Self(1)
    }

    #[cfg(test)]
    pub(super) fn times(haste: u64) -> Self {
        Self(haste)
    }

    /// What has passed, in ms.
    pub fn passed(self, watch: Stopwatch) -> u64 {
        watch.ms().saturating_mul(self.0)
    }

    /// How long is really waited for so many ms.
    pub fn wait(self, ms: u64) -> u64 {
        (ms / self.0).max(1)
    }

    /// A reading of the wall clock, which goes as fast.
    pub fn wall(self, ms: i64) -> i64 {
        ms.saturating_mul(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

/// The last readings of both clocks.
#[derive(Debug, Default)]
pub struct Clocks {
    last: Option<(u64, i64)>,
    grace_until: u64,
}

impl Clocks {
    /// Takes both clocks in. Whether the machine slept a moment ago.
    pub fn tick(&mut self, ms: u64, wall_ms: i64) -> bool {
        if let Some((last, last_wall)) = self.last.replace((ms, wall_ms)) {
            let passed = i64::try_from(ms.saturating_sub(last)).unwrap_or(i64::MAX);
            if wall_ms.saturating_sub(last_wall).saturating_sub(passed) > JUMP_MS {
                self.grace_until = ms.saturating_add(GRACE_MS);
            }
        }
        ms < self.grace_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_slept_is_given_a_grace() {
        let mut clocks = Clocks::default();
        assert!(!clocks.tick(0, 1_000_000));
        assert!(!clocks.tick(2_000, 1_002_000));
        assert!(clocks.tick(4_000, 1_904_000), "15 minutes that this machine knows nothing of");
        assert!(clocks.tick(63_000, 1_963_000));
        assert!(!clocks.tick(65_000, 1_965_000));
        assert!(!clocks.tick(67_000, 0), "a clock that is put back is no sleep");
    }
}
