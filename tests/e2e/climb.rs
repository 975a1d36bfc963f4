//! One session that climbs to a given size, and what became of it.

use serde_json::Value;

use crate::api::Answer;
use crate::bench::Bench;
use crate::headless::Headless;

/// How a session ended at the size it was brought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It went on.
    None,
    /// Its history gave way to a summary, at this many tokens.
    Compaction(u64),
    /// The client sent nothing more.
    Refusal,
}

/// Hundredths of the size that the turns before the last two report: a conversation of a few short turns does not
/// compact at the trigger, so there are six in all.
const BEFORE: [u64; 4] = [2, 4, 5, 6];

/// Six turns in one headless session: four small ones, one that leaves `size` tokens in use, and one more that
/// makes the client decide.
#[track_caller]
pub fn climb(bench: &Bench, size: u64) -> Ending {
    let mut session = Headless::start(bench);
    for (turn, share) in BEFORE.iter().enumerate() {
        bench.api.usual(Answer::text("ok").used(size * share / 100));
        session.say(&format!("go on {turn}"));
    }
    bench.api.usual(Answer::text("ok").used(size));
    let reached = session.say("go on 4");
    assert_ne!(reached["is_error"], true, "the session ended before it reached {size}: {reached}");
    bench.api.usual(Answer::text("ok").used(1000));
    let decided = session.say("go on 5");
    session.end();
    ending(bench, &decided)
}

/// The last answer of a session that the API refuses at its own limit, and whether it compacted then.
#[track_caller]
pub fn climb_to_the_limit(bench: &Bench, size: u64) -> Ending {
    let limit = format!("prompt is too long: {} tokens > {size} maximum", size + 1);
    let mut session = Headless::start(bench);
    for turn in 0..5 {
        bench.api.usual(Answer::text("ok").used(size - 1000));
        session.say(&format!("go on {turn}"));
    }
    bench.api.next([Answer::error(400, &limit)]);
    bench.api.usual(Answer::text("ok").used(1000));
    let decided = session.say("go on 5");
    session.end();
    ending(bench, &decided)
}

fn ending(bench: &Bench, result: &Value) -> Ending {
    let rows = bench.transcript(None);
    assert!(!rows.is_empty(), "the session left no transcript");
    let boundary = rows.iter().find(|row| row["subtype"] == "compact_boundary");
    if let Some(boundary) = boundary {
        let of = &boundary["compactMetadata"];
        assert_eq!(of["trigger"], "auto", "{boundary}");
        return Ending::Compaction(of["preTokens"].as_u64().unwrap_or_default());
    }
    if result["is_error"] == true {
        let text = result["result"].as_str().unwrap_or_default();
        assert!(text.contains("too long"), "the session failed for another reason: {result}");
        return Ending::Refusal;
    }
    Ending::None
}
