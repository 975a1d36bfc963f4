//! What speaks for or against a wall, in sentences.

use super::inputs::{Effect, Name};
use super::learned::{TOLERANCE, Verdict};
use super::reading::Reading;
use super::wall::{Kind, REFUSAL_MARGIN, Source, TRIGGER_MARGIN, with_percent};
use crate::client::settings::Settings;

/// The arithmetic, a line a step, and which result counts.
pub fn arithmetic(reading: &Reading) -> Vec<String> {
    let formula = &reading.formula;
    let steps = &formula.steps;
    let mut lines = vec![format!("model window {}", steps.model_window)];
    if let Some(explicit) = steps.explicit.filter(|_| formula.enabled) {
        lines.push(format!("explicit window {explicit}, so the window is {}", steps.window));
    }
    let effective = steps.effective;
    lines.push(format!("effective = {} - {} kept for a response = {effective}", steps.window, steps.reserve));
    match (formula.wall.kind, steps.threshold) {
        (Kind::Compaction, Some(threshold)) => {
            lines.push(format!("trigger = {effective} - {TRIGGER_MARGIN} = {threshold}"));
            if let Some(percent) = steps.percent {
                let lowered = with_percent(threshold, percent);
                lines.push(format!("with {percent} %: min(trigger, {percent} % of {effective}) = {lowered}"));
            }
            if let Some(limit) = steps.blocking {
                lines.push(format!("not above the refusal line at {limit}: {}", formula.wall.tokens));
            }
        }
        (Kind::Refusal, _) => lines.push(steps.blocking.map_or_else(
            || {
                format!(
                    "compaction is off: refusal = {effective} - {REFUSAL_MARGIN} = {}",
                    formula.wall.tokens
                )
            },
            |limit| format!("compaction is off, and the refusal line is set: {limit}"),
        )),
        _ => lines.push("no trigger without an explicit window: the API's own limit ends it".to_owned()),
    }
    lines.extend(overruled(reading));
    lines
}

/// What counts instead of the formula.
fn overruled(reading: &Reading) -> Option<String> {
    let wall = reading.wall.tokens;
    match (reading.wall.source, &reading.client) {
        (Source::Client, Some(client)) => {
            let told = match (client.enabled, client.threshold) {
                (Some(false), _) => "compaction off".to_owned(),
                (_, Some(threshold)) => format!("trigger {threshold} before the percentage"),
                _ => "no trigger".to_owned(),
            };
            let raw = client.raw_max.map(|raw| format!(", window {raw}")).unwrap_or_default();
            let from = client.source.as_ref().map(|from| format!(" from \"{from}\"")).unwrap_or_default();
            Some(format!("the client itself says: {told}{raw}{from}, so the wall is {wall}"))
        }
        (Source::Learned, _) => Some(format!("a compaction fired elsewhere, so the wall is {wall}")),
        _ => None,
    }
}

/// What was seen. `before` is the wall before the inputs were last seen to change.
pub fn lines(reading: &Reading, before: Option<u64>) -> Vec<String> {
    let figures = &reading.figures;
    let mut lines = Vec::new();
    if let Some(interval) = &reading.interval {
        let (low, pre) = (interval.low, interval.pre);
        lines.push(match &reading.evidence {
            Verdict::Confirmed => {
                format!("an automatic compaction fired between {low} and {pre} tokens: the formula stands")
            }
            Verdict::Contradicted(_) => format!(
                "an automatic compaction fired between {low} and {pre} tokens, which no formula gives here"
            ),
            Verdict::Silent => format!("an automatic compaction fired between {low} and {pre} tokens"),
        });
    }
    let most = figures.max_since_boundary;
    let wall = reading.wall.tokens;
    if most > wall.saturating_add(TOLERANCE) {
        lines.push(format!("a response at {most} tokens, past the wall, and no compaction after it"));
    } else if most > 0 {
        let place = if most < wall { "below" } else { "at" };
        lines.push(format!(
            "the largest context since the last compaction was {most} tokens, {place} the wall"
        ));
    }
    if let Some(before) = before.filter(|before| *before != wall) {
        lines.push(if before < wall && most > before.saturating_add(TOLERANCE) {
            format!(
                "the last change took effect: a response at {most} tokens passed the wall of before, {before}"
            )
        } else {
            format!("the wall was {before} before the last change; nothing shows yet that it took effect")
        });
    }
    if reading.at_wall() {
        lines
            .push("the last row says that the prompt is too long: the session stands at its wall".to_owned());
    }
    if reading.wall.source == Source::Client {
        lines.push("the client's own figures are at hand for these very inputs".to_owned());
    }
    lines
}

/// What a person should know.
pub fn warnings(reading: &Reading, settings: &Settings) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for problem in &settings.problems {
        warnings.push(format!("{} is not read by the client either: {}", problem.place, problem.what));
    }
    for (input, effect) in reading.inputs.list.iter().zip(&reading.formula.effects) {
        let name = input.name.as_str();
        let value = input.value.as_str().map_or_else(|| input.value.to_string(), |text| format!("'{text}'"));
        match effect {
            Effect::Ignored(why) => {
                warnings.push(format!("{name}={value} in the {} is ignored: {why}", input.origin));
            }
            Effect::Clamped(why) => {
                warnings.push(format!("{name}={value} in the {} is CLAMPED: {why}", input.origin));
            }
            Effect::Applied(why) if !is_plain(&input.value) => {
                warnings
                    .push(format!("{name}={value} in the {} is an unusual spelling: {why}", input.origin));
            }
            _ => {}
        }
    }
    let contradicted = matches!(reading.evidence, Verdict::Contradicted(_));
    if contradicted && reading.formula.steps.percent.is_some() {
        warnings
            .push(format!("{}: override not effective, compaction fires elsewhere", Name::Percent.as_str()));
    }
    if reading.past_wall() {
        warnings.push("the context is past the wall and no compaction has come yet".to_owned());
    }
    if reading.figures.damaged > 0 {
        warnings.push(format!("{} rows of the transcript could not be read", reading.figures.damaged));
    }
    if reading.has_transcript && !reading.complete {
        warnings.push("the transcript is not measured to its end yet".to_owned());
    }
    warnings
}

/// Whether a value is spelled as anybody would read it: digits, with a point or a `k` or `m`.
fn is_plain(value: &serde_json::Value) -> bool {
    let Some(text) = value.as_str() else { return true };
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M']);
    let number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.len() <= digits.len() + 1;
    let word = ["true", "yes", "on", "auto"].iter().any(|word| text.eq_ignore_ascii_case(word));
    (number && !digits.is_empty()) || word
}
