//! Seven signals of how heavy a session has become, and how urgent that makes a handoff.

use serde::Serialize;

use crate::base::span::HOUR_MS;
use crate::base::tokens::at_least;

/// Share of the wall from which anything is due at all, in percent: below it the other signals are proxies
/// for a pressure that is measured directly.
pub const GATE: u64 = 62;
/// Share of the wall that is due by itself, in percent.
pub const DUE: u64 = 85;
/// Share of the wall that is critical, in percent.
pub const CRITICAL: u64 = 95;

const RESPONSES: u64 = 900;
const TOOL_CALLS: u64 = 600;
const ACTIVE_MS: i64 = 4 * HOUR_MS;
const SUBTASKS: u64 = 5;
const DUE_POINTS: u64 = 3;
const SOON_POINTS: u64 = 2;

/// What is weighed. Counts are of the main thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// Tokens in use, where known.
    pub context: Option<u64>,
    /// The wall in tokens, where known.
    pub wall: Option<u64>,
    /// Assistant responses.
    pub responses: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Active working time, in ms.
    pub active_ms: i64,
    /// Automatic compactions.
    pub auto_compactions: u64,
    /// Distinct sub-tasks finished; only the model can say.
    pub subtasks: u64,
}

/// How urgent a handoff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Urgency {
    /// Nothing to say.
    None,
    /// Worth knowing.
    Soon,
    /// An offer is made.
    Due,
    /// Act now.
    Critical,
}

/// One signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signal {
    /// What is looked at.
    pub name: &'static str,
    /// What it shows.
    pub value: String,
    /// From where on it counts.
    pub threshold: &'static str,
    /// What it adds.
    pub points: u64,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Weight {
    /// Sum of the signals.
    pub points: u64,
    /// The urgency, after the gate.
    pub urgency: Urgency,
    /// Whether the gate held something back.
    pub gated: bool,
    /// Tokens left before the wall.
    pub headroom: Option<u64>,
}

/// Points for the share of the wall.
fn share_points(facts: &Facts) -> u64 {
    match (facts.context, facts.wall) {
        (Some(used), Some(wall)) if at_least(used, wall, DUE) => 2,
        (Some(used), Some(wall)) if at_least(used, wall, GATE) => 1,
        _ => 0,
    }
}

fn points(facts: &Facts) -> [u64; 6] {
    [
        share_points(facts),
        u64::from(facts.responses >= RESPONSES),
        u64::from(facts.tool_calls >= TOOL_CALLS),
        u64::from(facts.active_ms >= ACTIVE_MS),
        if facts.auto_compactions > 0 { 2 } else { 0 },
        u64::from(facts.subtasks >= SUBTASKS),
    ]
}

/// Weighs the facts.
pub fn weigh(facts: &Facts) -> Weight {
    let points = points(facts).iter().sum();
    let reached = |line| matches!((facts.context, facts.wall), (Some(u), Some(w)) if at_least(u, w, line));
    let raw = if reached(CRITICAL) {
        Urgency::Critical
    } else if points >= DUE_POINTS || reached(DUE) {
        Urgency::Due
    } else if points >= SOON_POINTS || reached(GATE) {
        Urgency::Soon
    } else {
        Urgency::None
    };
    let gated = raw > Urgency::Soon && !reached(GATE);
    let headroom = facts.wall.zip(facts.context).map(|(wall, used)| wall.saturating_sub(used));
    Weight { points, urgency: if gated { Urgency::Soon } else { raw }, gated, headroom }
}

/// The signals one by one, for people.
pub fn signals(facts: &Facts) -> Vec<Signal> {
    let [share, responses, tools, active, compacted, subtasks] = points(facts);
    let signal = |name, value, threshold, points| Signal { name, value, threshold, points };
    let percent = facts.context.zip(facts.wall).map(|(u, w)| crate::base::tokens::percent(u, w));
    let shown = percent.map_or_else(|| "unknown".to_owned(), |p| format!("{p} %"));
    let (high, low) = if share == 2 { (2, 0) } else { (0, share) };
    vec![
        signal("context of the wall, red", shown.clone(), ">= 85 %", high),
        signal("context of the wall, yellow", shown, ">= 62 % (and < 85 %)", low),
        signal("assistant responses", facts.responses.to_string(), ">= 900", responses),
        signal("tool calls", facts.tool_calls.to_string(), ">= 600", tools),
        signal("active time", crate::base::span::hours(facts.active_ms), ">= 4 h", active),
        signal("automatic compactions", facts.auto_compactions.to_string(), ">= 1", compacted),
        signal("sub-tasks finished", facts.subtasks.to_string(), ">= 5", subtasks),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_of_the_specification() {
        let facts = |context| Facts {
            context: Some(context),
            wall: Some(977_000),
            responses: 696,
            tool_calls: 402,
            active_ms: 21_852_000,
            auto_compactions: 3,
            subtasks: 0,
        };
        for (context, points, urgency, gated) in [
            (100_000, 3, Urgency::Soon, true),
            (500_000, 3, Urgency::Soon, true),
            (605_739, 3, Urgency::Soon, true),
            (605_740, 4, Urgency::Due, false),
            (700_000, 4, Urgency::Due, false),
            (830_449, 4, Urgency::Due, false),
            (830_450, 5, Urgency::Due, false),
            (928_150, 5, Urgency::Critical, false),
        ] {
            let weight = weigh(&facts(context));
            assert_eq!((weight.points, weight.urgency, weight.gated), (points, urgency, gated), "{context}");
            assert_eq!(signals(&facts(context)).iter().map(|s| s.points).sum::<u64>(), points);
        }
    }

    #[test]
    fn nothing_known_is_nothing_due() {
        let weight =
            weigh(&Facts { responses: 2_000, tool_calls: 2_000, auto_compactions: 1, ..Facts::default() });
        assert_eq!((weight.points, weight.urgency, weight.gated), (4, Urgency::Soon, true));
        assert_eq!(weight.headroom, None);
        assert_eq!(weigh(&Facts::default()).urgency, Urgency::None);
    }
}
