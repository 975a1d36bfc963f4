//! Which of the counts at hand is the newest.

/// A count and when it was true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Tokens in use, output counted.
    pub tokens: u64,
    /// Epoch ms.
    pub at_ms: i64,
}

/// What the transcript tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// The count on the live branch. None: nobody can say, as after a rewind to the first prompt.
    pub tokens: Option<u64>,
    /// Since when that is so, epoch ms; 0 where nothing was told yet.
    pub at_ms: i64,
    /// The count is an estimate: what a compaction left, with no response since.
    pub after_compaction: bool,
    /// The count before the last compaction.
    pub before: Option<u64>,
    /// The counts of the last two responses, on whatever branch; 0 where there is none.
    pub responses: [u64; 2],
}

/// The counts at hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Candidates {
    /// The client's own, handed over just now.
    pub client: Option<u64>,
    /// The status line payload's.
    pub payload: Option<u64>,
    /// One that was stated earlier, as by a session start.
    pub kept: Option<Stamped>,
    /// The transcript's.
    pub told: Told,
}

/// Tokens in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The count.
    pub tokens: u64,
    /// Whether it is an estimate.
    pub estimated: bool,
}

/// The newest count.
///
/// The client states its last response's count and the transcript is written a moment later, so a count that
/// the transcript does not know is newer. One that it knows may be of a branch that was left since: then the
/// transcript's is. What a compaction left overrules the payload until the next response, since the payload
/// still carries the count from before (CC#29651); the client's own figures carry none then (measured).
pub fn newest(from: &Candidates) -> Option<Context> {
    let told = &from.told;
    let exact = |tokens| Context { tokens, estimated: false };
    let is_news = |tokens: &u64| !told.responses.contains(tokens);
    if told.after_compaction {
        let next = from.client.filter(|tokens| is_news(tokens) && Some(*tokens) != told.before);
        let estimate = told.tokens.map(|tokens| Context { tokens, estimated: true });
        return next.map(exact).or(estimate);
    }
    if let Some(tokens) = from.client.or(from.payload).filter(is_news) {
        return Some(exact(tokens));
    }
    let kept = from.kept.filter(|kept| kept.at_ms > told.at_ms).map(|kept| kept.tokens);
    kept.or(told.tokens).map(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tokens: Option<u64>, responses: [u64; 2]) -> Told {
        Told { tokens, at_ms: 10, responses, ..Told::default() }
    }

    #[test]
    fn a_count_that_the_transcript_does_not_know_yet_is_newer() {
        let from = Candidates { payload: Some(7), told: told(Some(5), [5, 4]), ..Candidates::default() };
        assert_eq!(newest(&from).unwrap().tokens, 7);
        assert_eq!(newest(&Candidates { client: Some(8), ..from }).unwrap().tokens, 8);
        assert_eq!(newest(&Candidates { payload: Some(4), ..from }).unwrap().tokens, 5, "a late payload");
        assert_eq!(newest(&Candidates { payload: None, ..from }).unwrap().tokens, 5);
        assert_eq!(newest(&Candidates::default()), None);
    }

    #[test]
    fn after_a_rewind_the_transcript_knows_better() {
        let from = Candidates { payload: Some(5), told: told(Some(2), [5, 4]), ..Candidates::default() };
        assert_eq!(newest(&from).unwrap().tokens, 2);
        assert_eq!(newest(&Candidates { told: told(None, [5, 4]), ..from }), None, "to the first prompt");
    }

    #[test]
    fn a_kept_count_holds_until_the_transcript_says_more() {
        let kept = |at_ms| Some(Stamped { tokens: 9, at_ms });
        let from = Candidates { kept: kept(20), told: told(Some(5), [5, 4]), ..Candidates::default() };
        assert_eq!(newest(&from).unwrap().tokens, 9);
        assert_eq!(newest(&Candidates { kept: kept(9), ..from }).unwrap().tokens, 5);
    }

    // CC#29651: the first payload after a compaction still carries the numbers from before.
    #[test]
    fn a_compaction_overrules_every_older_count() {
        let told = Told {
            tokens: Some(52_000),
            at_ms: 50,
            after_compaction: true,
            before: Some(94_100),
            responses: [94_000, 90_000],
        };
        let from = Candidates { payload: Some(94_000), told, ..Candidates::default() };
        let estimate = Some(Context { tokens: 52_000, estimated: true });
        assert_eq!(newest(&from), estimate);
        assert_eq!(newest(&Candidates { payload: Some(93_000), ..from }), estimate);
        assert_eq!(newest(&Candidates { client: Some(94_000), ..from }), estimate);
        assert_eq!(newest(&Candidates { client: Some(94_100), ..from }), estimate);
        let next = newest(&Candidates { client: Some(54_000), ..from });
        assert_eq!(next, Some(Context { tokens: 54_000, estimated: false }));
    }
}
