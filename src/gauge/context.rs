//! Which of the counts at hand is the newest.

/// A count and when it was true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Tokens in use, output counted.
    pub tokens: u64,
    /// Epoch ms.
    pub at_ms: i64,
}

/// The transcript's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The count.
    pub is: Stamped,
    /// It is an estimate: what a compaction left, with no response since.
    pub after_compaction: bool,
    /// The count before the last compaction.
    pub before: Option<u64>,
}

/// The counts at hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Candidates {
    /// The mod's.
    pub client: Option<Stamped>,
    /// The status line payload's, or what a session start stated.
    pub stated: Option<Stamped>,
    /// The transcript's.
    pub transcript: Option<Told>,
    /// The transcript says that nothing is known since then: rewound to before the first response, or
    /// compacted by a client that does not say what is left.
    pub unknown_since_ms: Option<i64>,
}

/// Tokens in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The count.
    pub tokens: u64,
    /// Whether it is an estimate.
    pub estimated: bool,
}

/// The newest count. What a compaction left overrules everything until the next response: the payload and
/// the mod still carry the count from before (CC#29651).
pub fn newest(from: &Candidates) -> Option<Context> {
    if let Some(told) = from.transcript.filter(|told| told.after_compaction) {
        // The client gives no count after a compaction until the next response (measured), which it tells
        // of a moment before the transcript does.
        let next = |count: &Stamped| count.at_ms > told.is.at_ms && Some(count.tokens) != told.before;
        if let Some(count) = from.client.filter(next) {
            return Some(Context { tokens: count.tokens, estimated: false });
        }
        return Some(Context { tokens: told.is.tokens, estimated: true });
    }
    let transcript = from.transcript.map(|told| told.is);
    let floor = from.unknown_since_ms.unwrap_or(i64::MIN);
    // Of equal times the last one in this list wins: the mod's is the most exact.
    [transcript, from.stated, from.client]
        .into_iter()
        .flatten()
        .filter(|count| count.at_ms >= floor)
        .max_by_key(|count| count.at_ms)
        .map(|count| Context { tokens: count.tokens, estimated: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tokens: u64, at_ms: i64) -> Stamped {
        Stamped { tokens, at_ms }
    }

    #[test]
    fn the_newest_count_wins() {
        let told = |tokens, at_ms| Told { is: at(tokens, at_ms), after_compaction: false, before: None };
        let from = Candidates {
            client: Some(at(3, 30)),
            stated: Some(at(2, 20)),
            transcript: Some(told(1, 10)),
            unknown_since_ms: None,
        };
        assert_eq!(newest(&from).unwrap().tokens, 3);
        // A rewind: the transcript knows of a prompt on an older branch.
        let from = Candidates { transcript: Some(told(1, 40)), ..from };
        assert_eq!(newest(&from).unwrap().tokens, 1);
        let from = Candidates { unknown_since_ms: Some(50), ..from };
        assert_eq!(newest(&from), None);
        assert_eq!(newest(&Candidates::default()), None);
    }

    // CC#29651: the first payload after a compaction still carries the numbers from before.
    #[test]
    fn a_compaction_overrules_every_older_count() {
        let from = Candidates {
            stated: Some(at(94_000, 99)),
            transcript: Some(Told { is: at(52_000, 50), after_compaction: true, before: Some(94_000) }),
            ..Candidates::default()
        };
        let estimate = Some(Context { tokens: 52_000, estimated: true });
        assert_eq!(newest(&from), estimate);
        assert_eq!(newest(&Candidates { client: Some(at(94_000, 60)), ..from }), estimate);
        assert_eq!(newest(&Candidates { client: Some(at(93_000, 40)), ..from }), estimate);
        let next = newest(&Candidates { client: Some(at(54_000, 60)), ..from });
        assert_eq!(next, Some(Context { tokens: 54_000, estimated: false }));
    }
}
