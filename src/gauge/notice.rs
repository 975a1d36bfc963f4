//! When the model is told, and never more often than it helps.

use serde::{Deserialize, Serialize};

use super::reading::Reading;
use super::weight::Urgency;
use crate::base::span::{HOUR_MS, MINUTE_MS};

/// No two notices within this, in ms, except the first at critical.
const PAUSE_MS: i64 = 15 * MINUTE_MS;
/// The client writes rows up to a second late (measured); within this, in ms, a missing one says nothing.
const LATE_MS: i64 = 5_000;
/// A row's time is not the hook's: a prompt that waited carries the moment it was typed. In ms.
const BEFORE_MS: i64 = 5_000;
/// So often a notice that did not arrive is said again; a client may leave no row of what it gave the model.
const AGAIN: u8 = 2;
/// Responses that make a new tier.
const TIER_RESPONSES: u64 = 200;

/// What was said in a session so far; one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The tier of the last notice: responses ÷ 200, tenths of the wall.
    pub tier: Option<(u64, u64)>,
    /// When that was, epoch ms.
    pub at_ms: i64,
    /// Whether critical was said since the context last shrank.
    pub critical: bool,
    /// The person does not want to be asked again in this session.
    pub snoozed: bool,
    /// The prompt that the last notice went with, until it is known whether it arrived.
    pub said_with: Option<String>,
    /// How often in a row a notice did not arrive.
    pub unheard: u8,
}

impl State {
    /// Whether the last notice reached the model; none while nobody can say.
    ///
    /// A prompt that is taken back, from the queue or before the first word of the answer, takes its notice with it:
    /// the hook has run, the model is given nothing (2.1.332). One that arrived stands in the transcript, with a
    /// response behind it.
    fn arrived(&self, standing: &Standing<'_>) -> Option<bool> {
        let said_with = self.said_with.as_deref()?;
        // What is typed while a turn runs carries that turn's prompt, and may still wait.
        if standing.prompt.is_none_or(|prompt| prompt == said_with) || !standing.complete {
            return None;
        }
        let there = standing.last_notice_ms.filter(|&at| at >= self.at_ms.saturating_sub(BEFORE_MS));
        if there.is_some_and(|notice| standing.last_response_ms.is_some_and(|at| at >= notice)) {
            return Some(true);
        }
        let newest = standing.last_response_ms.map_or(self.at_ms, |at| at.max(self.at_ms));
        has_passed(LATE_MS, newest, standing.now_ms).then_some(false)
    }

    /// What is remembered once that is known.
    fn settled(&self, standing: &Standing<'_>) -> Self {
        let next = Self { said_with: None, ..self.clone() };
        match self.arrived(standing) {
            None => self.clone(),
            Some(true) => Self { unheard: 0, ..next },
            Some(false) if self.unheard >= AGAIN => next,
            Some(false) => Self { tier: None, at_ms: 0, critical: false, unheard: self.unheard + 1, ..next },
        }
    }
}

/// Where a notice would ride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// With a person's prompt.
    Prompt,
    /// Between two batches of tools, in a long run without a prompt.
    Batch,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// To the model and the person: a handoff is due, or must be made now.
    Offer(Urgency),
    /// To the person alone: critical, and the model was told not to ask.
    PersonOnly,
}

/// Where a session stands, for this decision.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// How urgent it is.
    pub urgency: Urgency,
    /// Tier: responses ÷ 200, tenths of the wall.
    pub tier: (u64, u64),
    /// Context and wall are known, and the context is no estimate.
    pub known: bool,
    /// Responses since the last compaction; none where there was none.
    pub since_compaction: Option<u64>,
    /// The prompt of the turn that the event falls into.
    pub prompt: Option<&'a str>,
    /// The transcript was read to its end.
    pub complete: bool,
    /// When the model was last told something by longhaul, by the transcript's rows, epoch ms.
    pub last_notice_ms: Option<i64>,
    /// When it last answered, by the same, epoch ms.
    pub last_response_ms: Option<i64>,
    /// Epoch ms.
    pub now_ms: i64,
}

impl<'a> Standing<'a> {
    /// Of a reading, at an event of this prompt.
    pub fn of(reading: &Reading, prompt: Option<&'a str>, now_ms: i64) -> Self {
        let exact = reading.context.filter(|context| !context.estimated);
        let used = reading.context.map_or(0, |context| context.tokens);
        let tenth = used.saturating_mul(10) / reading.wall.tokens.max(1);
        let figures = &reading.figures;
        Self {
            urgency: reading.weight().urgency,
            tier: (figures.responses / TIER_RESPONSES, tenth),
            known: exact.is_some() || reading.at_wall(),
            since_compaction: figures.last_boundary.as_ref().map(|_| figures.responses_since_boundary),
            prompt,
            complete: reading.complete,
            last_notice_ms: figures.last_notice_at,
            last_response_ms: figures.context_at,
            now_ms,
        }
    }
}

/// Decides, and says what is to be remembered.
pub fn decide(state: &State, moment: Moment, standing: &Standing<'_>) -> (Option<Say>, State) {
    if !standing.known {
        return (None, state.clone());
    }
    let mut next = state.settled(standing);
    if next.tier.is_some_and(|(_, tenth)| standing.tier.1 < tenth) {
        // The context shrank: what was said belongs to a session that is no more.
        next.tier = None;
        // A step back and forth inside critical is no first time.
        next.critical &= standing.urgency == Urgency::Critical;
    }
    // The first response after a compaction makes no offer by itself.
    let settled = standing.since_compaction.is_none_or(|responses| responses > 1);
    let critical = standing.urgency == Urgency::Critical;
    let wanted = match moment {
        Moment::Prompt => standing.urgency >= Urgency::Due,
        Moment::Batch => critical,
    };
    let grown =
        next.tier.is_none_or(|(responses, tenth)| standing.tier.0 > responses || standing.tier.1 > tenth);
    let first_critical = critical && !next.critical;
    let rested = has_passed(PAUSE_MS, next.at_ms, standing.now_ms) || next.at_ms == 0;
    if !wanted || !settled || !(first_critical || (grown && rested)) {
        return (None, next);
    }
    next.tier = Some(standing.tier);
    next.at_ms = standing.now_ms;
    next.critical |= critical;
    next.said_with = None;
    if !state.snoozed {
        next.said_with = standing.prompt.map(str::to_owned);
        return (Some(Say::Offer(standing.urgency)), next);
    }
    (critical.then_some(Say::PersonOnly), next)
}

/// Where nothing can be remembered: at most one notice an hour, by the transcript's own rows.
pub fn may_repeat(last_notice_ms: Option<i64>, now_ms: i64) -> bool {
    last_notice_ms.is_none_or(|at| has_passed(HOUR_MS, at, now_ms))
}

/// Whether this long has passed since then. What lies further ahead than that was written by a clock that
/// was wrong, and would silence everything until then.
fn has_passed(pause_ms: i64, since_ms: i64, now_ms: i64) -> bool {
    now_ms.abs_diff(since_ms) >= pause_ms.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(urgency: Urgency, tier: (u64, u64), minutes: i64) -> Standing<'static> {
        Standing {
            urgency,
            tier,
            known: true,
            since_compaction: None,
            prompt: None,
            complete: true,
            last_notice_ms: None,
            last_response_ms: None,
            now_ms: 1_000_000 + minutes * MINUTE_MS,
        }
    }

    fn run(state: &mut State, moment: Moment, standing: Standing<'_>) -> Option<Say> {
        let (say, next) = decide(state, moment, &standing);
        *state = next;
        say
    }

    const DUE: Option<Say> = Some(Say::Offer(Urgency::Due));
    const CRITICAL: Option<Say> = Some(Say::Offer(Urgency::Critical));

    #[test]
    fn an_offer_comes_once_a_tier_and_never_within_a_quarter_of_an_hour() {
        let mut state = State::default();
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Soon, (1, 6), 0)), None);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (1, 6), 0)), DUE);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (1, 6), 60)), None, "same tier");
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (1, 7), 61)), DUE, "a tenth more");
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (2, 8), 70)), None, "too soon");
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (2, 8), 77)), DUE);
    }

    #[test]
    fn the_first_critical_does_not_wait() {
        let mut state = State::default();
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (1, 9), 0)), DUE);
        assert_eq!(run(&mut state, Moment::Batch, standing(Urgency::Due, (9, 9), 20)), None, "only critical");
        assert_eq!(run(&mut state, Moment::Batch, standing(Urgency::Critical, (9, 9), 21)), CRITICAL);
        assert_eq!(run(&mut state, Moment::Batch, standing(Urgency::Critical, (9, 9), 22)), None);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Critical, (9, 10), 23)), None);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Critical, (9, 10), 37)), CRITICAL);
    }

    #[test]
    fn a_clock_that_was_ahead_silences_nothing_for_longer_than_the_pause() {
        let at_ms = 1_000_000 + 10 * 365 * 24 * HOUR_MS;
        let ahead = State { tier: Some((1, 6)), at_ms, ..State::default() };
        let (say, next) = decide(&ahead, Moment::Prompt, &standing(Urgency::Due, (1, 7), 0));
        assert_eq!((say, next.at_ms), (DUE, 1_000_000));
        assert!(may_repeat(Some(at_ms), 1_000_000));
        assert!(!may_repeat(Some(1_000_001), 1_000_000));
    }

    #[test]
    fn a_snooze_silences_the_model_and_at_critical_the_person_still_hears() {
        let mut state = State { snoozed: true, ..State::default() };
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (1, 7), 0)), None);
        assert_eq!(
            run(&mut state, Moment::Prompt, standing(Urgency::Critical, (1, 9), 1)),
            Some(Say::PersonOnly)
        );
        assert!(state.snoozed);
    }

    #[test]
    fn a_shrunken_context_starts_over() {
        let mut state = State::default();
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Critical, (4, 9), 0)), CRITICAL);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Soon, (4, 1), 20)), None);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Due, (4, 6), 40)), DUE);
        assert_eq!(run(&mut state, Moment::Prompt, standing(Urgency::Critical, (4, 9), 41)), CRITICAL);
    }

    #[test]
    fn a_step_back_within_critical_is_no_first_time() {
        let mut state = State::default();
        assert_eq!(run(&mut state, Moment::Batch, standing(Urgency::Critical, (4, 10), 0)), CRITICAL);
        assert_eq!(run(&mut state, Moment::Batch, standing(Urgency::Critical, (4, 9), 1)), None);
        assert_eq!(run(&mut state, Moment::Batch, standing(Urgency::Critical, (4, 9), 16)), CRITICAL);
    }

    #[test]
    fn a_notice_that_went_with_a_prompt_taken_back_is_said_again() {
        let due = |prompt, seconds: i64| {
            let now_ms = 1_000_000 + seconds * 1000;
            Standing { prompt: Some(prompt), now_ms, ..standing(Urgency::Due, (1, 8), 0) }
        };
        let say = |state: &mut State, standing| run(state, Moment::Prompt, standing);
        let mut state = State::default();
        assert_eq!(say(&mut state, due("p", 0)), DUE);
        assert_eq!(say(&mut state, due("p", 60)), None, "it may still wait");
        assert_eq!(say(&mut state, due("q", 4)), None, "its row may be late");
        assert_eq!(say(&mut state, Standing { complete: false, ..due("q", 60) }), None, "nobody has looked");
        let told = |at: i64, answered: i64, standing| Standing {
            last_notice_ms: Some(1_000_000 + at * 1000),
            last_response_ms: Some(1_000_000 + answered * 1000),
            ..standing
        };
        let mut heard = state.clone();
        assert_eq!(say(&mut heard, told(1, 9, due("q", 60))), None, "it was answered");
        assert_eq!(heard.said_with, None);
        assert_eq!(say(&mut state, told(1, -9, due("q", 60))), DUE, "taken back before the answer");
        assert_eq!(say(&mut state, told(-3_600, -9, due("r", 120))), DUE, "another notice than this");
        // A client that leaves no rows of it is no reason to say it with every prompt.
        assert_eq!(say(&mut state, due("s", 180)), None);
        assert_eq!(say(&mut state, due("t", 240)), None);
    }

    // CC#29651: nothing is offered on the strength of a compaction's own estimate, nor of one response.
    #[test]
    fn nothing_is_offered_right_after_a_compaction_or_while_unknown() {
        let due = standing(Urgency::Due, (1, 7), 0);
        let first = Standing { since_compaction: Some(1), ..due };
        assert_eq!(decide(&State::default(), Moment::Prompt, &first).0, None);
        let second = Standing { since_compaction: Some(2), ..due };
        assert_eq!(decide(&State::default(), Moment::Prompt, &second).0, DUE);
        let unknown = Standing { known: false, ..due };
        assert_eq!(decide(&State::default(), Moment::Prompt, &unknown), (None, State::default()));
    }

    #[test]
    fn without_a_memory_it_is_once_an_hour() {
        assert!(may_repeat(None, 0));
        assert!(!may_repeat(Some(0), HOUR_MS - 1));
        assert!(may_repeat(Some(0), HOUR_MS));
    }
}
