//! What automatic compactions prove about the wall.

use serde::{Deserialize, Serialize};

use super::wall::{Kind, Source, Wall};

/// How far the formula may lie outside an interval and still stand, in tokens.
pub const TOLERANCE: u64 = 2_000;

/// The trigger lies in `(low, pre]`: the first was answered without compacting, the second was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Largest context answered without compacting since the boundary before, in tokens.
    pub low: u64,
    /// `preTokens` of the boundary.
    pub pre: u64,
    /// When, epoch ms.
    pub at_ms: i64,
}

/// What the evidence says of a formula's wall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is none.
    Silent,
    /// The formula lies inside the newest interval.
    Confirmed,
    /// It does not; this wall was seen.
    Contradicted(Wall),
}

/// Judges the formula's wall by the newest interval.
pub fn judge(formula: &Wall, newest: Option<&Interval>) -> Verdict {
    let Some(interval) = newest else { return Verdict::Silent };
    let below = formula.tokens.saturating_add(TOLERANCE) < interval.low;
    let above = formula.tokens > interval.pre.saturating_add(TOLERANCE);
    // A refusal never compacts by itself, so a boundary seen before it was switched off says nothing.
    match formula.kind {
        Kind::Refusal => Verdict::Silent,
        Kind::Compaction | Kind::Reactive if !below && !above => Verdict::Confirmed,
        _ => Verdict::Contradicted(Wall {
            tokens: interval.pre,
            kind: Kind::Compaction,
            source: Source::Learned,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(tokens: u64) -> Wall {
        Wall { tokens, kind: Kind::Compaction, source: Source::Assumed }
    }

    // CC#72600, CC#36014, CC#31806: compaction fired elsewhere than any formula said.
    #[test]
    fn the_wall_that_was_seen_beats_the_formula() {
        let seen = Interval { low: 455_000, pre: 468_102, at_ms: 1 };
        let Verdict::Contradicted(learned) = judge(&wall(967_000), Some(&seen)) else {
            panic!("not learned")
        };
        assert_eq!((learned.tokens, learned.source), (468_102, Source::Learned));
        let low = Interval { low: 150_000, pre: 171_000, at_ms: 1 };
        assert!(matches!(judge(&wall(72_000), Some(&low)), Verdict::Contradicted(w) if w.tokens == 171_000));
    }

    #[test]
    fn a_formula_inside_the_interval_stands() {
        let seen = Interval { low: 150_000, pre: 169_500, at_ms: 1 };
        assert_eq!(judge(&wall(167_000), Some(&seen)), Verdict::Confirmed);
        assert_eq!(judge(&wall(171_000), Some(&seen)), Verdict::Confirmed);
        assert!(matches!(judge(&wall(172_000), Some(&seen)), Verdict::Contradicted(_)));
        assert_eq!(judge(&wall(167_000), None), Verdict::Silent);
        let refusal = Wall { kind: Kind::Refusal, ..wall(977_000) };
        assert_eq!(judge(&refusal, Some(&seen)), Verdict::Silent);
    }
}
