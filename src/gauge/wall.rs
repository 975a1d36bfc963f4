//! The wall by the client's own arithmetic: the one function that reckons it, and the client's constants.
//!
//! All of it measured by bisection on the real client, 2.1.197 to 2.1.332, to 20-40 tokens.

use serde::Serialize;

use super::inputs::{Effect, Inputs, Name};
use super::ledger::Ledger;
use super::parse;
use crate::client::figures::Figures;
use crate::client::models;

/// Most tokens that are kept free for a response: `effective = window - min(max output, this)`.
const RESERVE: u64 = 20_000;
/// Compaction fires this many tokens before the effective window ends.
pub(super) const TRIGGER_MARGIN: u64 = 13_000;
/// With compaction off, the client stops sending this many tokens before the effective window ends.
pub(super) const REFUSAL_MARGIN: u64 = 3_000;

/// What happens at the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// History is replaced by a summary.
    Compaction,
    /// The client stops sending.
    Refusal,
    /// The client has no trigger: the API's own limit ends it.
    Reactive,
}

/// How the number is known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The client's own inputs, handed over by the mod.
    Client,
    /// Evidence that contradicts the formula.
    Learned,
    /// The formula with an input that somebody set.
    Configured,
    /// The formula with nothing to confirm it.
    Assumed,
}

/// Where a session ends, in tokens of context, output counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Wall {
    /// The count.
    pub tokens: u64,
    /// What happens there.
    pub kind: Kind,
    /// How it is known.
    pub source: Source,
}

/// The arithmetic, step by step, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steps {
    /// The model's window after what caps or replaces it.
    pub model_window: u64,
    /// The explicit window, before the model caps it.
    pub explicit: Option<u64>,
    /// The window that counts.
    pub window: u64,
    /// Kept free for the response.
    pub reserve: u64,
    /// `window - reserve`.
    pub effective: u64,
    /// Percentage override.
    pub percent: Option<f64>,
    /// The trigger before the percentage; none with compaction off or no trigger.
    pub threshold: Option<u64>,
    /// Override of the refusal line.
    pub blocking: Option<u64>,
}

/// What the formula gives.
#[derive(Debug, Clone)]
pub struct Formula {
    /// The wall; source `configured` or `assumed`.
    pub wall: Wall,
    /// How it came about.
    pub steps: Steps,
    /// Whether compaction is on.
    pub enabled: bool,
    /// An explicit window above the model's: what the client silently makes of it.
    pub clamped: Option<u64>,
    /// The model's window is one that somebody set, larger than the model is known to have.
    pub unverified: bool,
    /// What each occurrence does, in the order of [`Inputs::list`].
    pub effects: Vec<Effect>,
}

/// Reckons the wall. `window` is the model's window in tokens as the client states it, or the best guess.
pub fn reckon(inputs: &Inputs, model: Option<&str>, window: u64) -> Formula {
    let mut ledger = Ledger::new(inputs);
    let off = switched_off(&mut ledger);
    let long_off = ledger.switch(Name::Disable1m);
    let known = model.map(|id| models::look_up(id, long_off.is_some()));
    let model_window = model_window(&mut ledger, known, window, long_off);
    let most_output = known.map_or(RESERVE, |model| model.max_output.min(RESERVE));
    let mut reserve = most_output.min(model_window);
    if let Some((at, most)) = ledger.number(Name::MaxOutput, parse::count, "a whole number of tokens") {
        let effect = if most < reserve {
            reserve = most;
            Effect::Applied(format!("{most} tokens are kept free for a response"))
        } else {
            Effect::NoEffect(format!("at most {reserve} tokens are kept free for a response"))
        };
        ledger.set(at, effect);
    }
    let explicit = explicit_window(&mut ledger, model_window, off);
    let percent = ledger.number(Name::Percent, parse::percent, "a percentage above 0 and up to 100");
    let enabled = !off;
    // With compaction off an explicit window does not matter.
    let counted = explicit.filter(|_| enabled).unwrap_or(model_window).min(model_window);
    let effective = counted.saturating_sub(reserve);
    let mut steps = Steps {
        model_window,
        explicit,
        window: counted,
        reserve,
        effective,
        percent: percent.map(|(_, percent)| percent),
        threshold: None,
        blocking: None,
    };
    let has_trigger = explicit.is_some() || known.is_none_or(|model| model.trigger);
    let blocking = ledger.number(Name::BlockingLimit, parse::count, "a whole number of tokens");
    steps.blocking = blocking.map(|(_, limit)| limit);
    let (tokens, kind) = if !enabled {
        let line = effective.saturating_sub(REFUSAL_MARGIN);
        if let Some((at, _)) = percent {
            ledger.set(at, Effect::NoEffect("compaction is off".into()));
        }
        if let Some((at, limit)) = blocking {
            ledger.set(at, Effect::Applied(format!("refusal at {limit}")));
        }
        (blocking.map_or(line, |(_, limit)| limit), Kind::Refusal)
    } else if has_trigger {
        let threshold = effective.saturating_sub(TRIGGER_MARGIN);
        steps.threshold = Some(threshold);
        let fires = percent.map_or(threshold, |(at, percent)| {
            let lowered = with_percent(threshold, percent);
            ledger.set(
                at,
                if lowered < threshold {
                    Effect::Applied(format!("{percent} % of {effective} is {lowered}"))
                } else {
                    Effect::NoEffect(format!("it can only lower the trigger at {threshold}"))
                },
            );
            lowered
        });
        // Measured: the refusal line lowers the trigger too, and never raises it.
        let fires = blocking.map_or(fires, |(at, limit)| {
            let effect = if limit < fires {
                Effect::Applied(format!("compaction at {limit}"))
            } else {
                Effect::NoEffect(format!("it can only lower the trigger at {fires}"))
            };
            ledger.set(at, effect);
            limit.min(fires)
        });
        (fires, Kind::Compaction)
    } else {
        for at in blocking.map(|(at, _)| at).into_iter().chain(percent.map(|(at, _)| at)) {
            ledger.set(at, Effect::NoEffect("this model has no trigger without an explicit window".into()));
        }
        (model_window, Kind::Reactive)
    };
    let set = ledger.number(Name::MaxContext, parse::count, "a whole number of tokens");
    let counts =
        set.is_some_and(|(_, size)| size == model_window) && ledger.switch(Name::DisableCompact).is_some();
    let unverified = counts && model_window > known.map_or(models::LARGE_WINDOW, |model| model.window);
    let source = if ledger.configured { Source::Configured } else { Source::Assumed };
    let clamped = explicit.filter(|explicit| enabled && *explicit > model_window).map(|_| model_window);
    Formula {
        wall: Wall { tokens, kind, source },
        steps,
        enabled,
        clamped,
        unverified,
        effects: ledger.finish(),
    }
}

/// The model's window after what replaces or caps it.
fn model_window(
    ledger: &mut Ledger<'_>,
    known: Option<models::Model>,
    window: u64,
    long_off: Option<usize>,
) -> u64 {
    if let Some((at, size)) = ledger.number(Name::MaxContext, parse::count, "a whole number of tokens") {
        // Of a model that the client knows it counts only with DISABLE_COMPACT on, of another always.
        let unknown = known.is_some_and(|model| !model.known && !model.long);
        if unknown || ledger.switch(Name::DisableCompact).is_some() {
            ledger.set(at, Effect::Applied(format!("model window {size}")));
            if let Some(at) = long_off {
                ledger.set(at, Effect::Overridden(format!("{} comes first", Name::MaxContext.as_str())));
            }
            return size;
        }
        ledger.set(at, Effect::NoEffect("for this model it counts only with DISABLE_COMPACT on".into()));
    }
    let Some(at) = long_off else { return window };
    if window > models::SMALL_WINDOW {
        ledger.set(at, Effect::Applied(format!("model window {}", models::SMALL_WINDOW)));
        return models::SMALL_WINDOW;
    }
    ledger.set(at, Effect::NoEffect("the model's window is no larger".into()));
    window
}

/// Whether an input switches compaction off.
fn switched_off(ledger: &mut Ledger<'_>) -> bool {
    let mut off = false;
    for name in [Name::DisableCompact, Name::DisableAutoCompact] {
        if let Some(at) = ledger.switch(name) {
            ledger.set(at, Effect::Applied("automatic compaction is off".into()));
            off = true;
        }
    }
    let mut decided = false;
    for (at, input) in ledger.all(Name::AutoCompactEnabled) {
        let effect = match input.value.as_bool() {
            // Values of another type are dropped, and a weaker scope's shows through (measured).
            None => Effect::Ignored("the client reads true or false here".into()),
            Some(_) if decided => continue,
            Some(false) => {
                off = true;
                Effect::Applied("automatic compaction is off".into())
            }
            Some(true) if off => Effect::NoEffect("it does not turn compaction on again".into()),
            Some(true) => Effect::NoEffect("on is what it is anyway".into()),
        };
        decided |= input.value.is_boolean();
        ledger.set(at, effect);
    }
    off
}

/// The explicit window: the first of environment, flag, and the settings scopes, strongest first.
fn explicit_window(ledger: &mut Ledger<'_>, model_window: u64, off: bool) -> Option<u64> {
    use parse::FlagWindow::{Auto, Tokens};
    let mut taken: Option<(Option<u64>, &'static str)> = None;
    let inputs = ledger.inputs;
    for (at, input) in inputs.list.iter().enumerate() {
        let (read, want) = match input.name {
            // A junk value in the strongest block still hides the weaker ones (measured).
            Name::Window if ledger.first(Name::Window).is_some_and(|(first, _)| first != at) => continue,
            Name::Window => (input.value.as_str().and_then(parse::tokens).map(Tokens), "a number of tokens"),
            Name::WindowFlag => {
                (input.value.as_str().and_then(parse::flag_window), "a number of tokens, or auto,")
            }
            Name::ModelWindow | Name::SettingsWindow => {
                (parse::settings_window(&input.value).map(Tokens), "a whole number from 100000 on")
            }
            _ => continue,
        };
        let effect = match (read, taken) {
            (None, _) => Effect::Ignored(format!("the client reads {want} here")),
            (Some(_), Some((_, by))) => Effect::Overridden(format!("{by} comes first")),
            (Some(Auto), None) => {
                taken = Some((None, input.name.as_str()));
                Effect::Applied("no explicit window, and none of the settings'".into())
            }
            (Some(Tokens(window)), None) => {
                let counted = window.max(parse::LEAST_WINDOW);
                taken = Some((Some(counted), input.name.as_str()));
                if off {
                    Effect::NoEffect("compaction is off".into())
                } else if counted > model_window {
                    Effect::Clamped(format!("the model's window is {model_window}"))
                } else if counted > window {
                    Effect::Clamped(format!("windows below {counted} count as {counted}"))
                } else {
                    Effect::Applied(format!("window {counted}"))
                }
            }
        };
        ledger.set(at, effect);
    }
    taken.and_then(|(window, _)| window)
}

/// The trigger with a percentage override, from the trigger without: the base is the *effective* window,
/// and the override can only lower it.
pub(super) fn with_percent(threshold: u64, percent: f64) -> u64 {
    let effective = threshold + TRIGGER_MARGIN;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let share = (effective as f64 * percent / 100.0).floor() as u64;
    share.min(threshold)
}

/// The wall by the client's own figures. `formula` gives what they leave out: the percentage and the
/// refusal line. `None` where they do not say enough.
pub fn of_client(figures: &Figures, formula: &Formula) -> Option<Wall> {
    let (tokens, kind) = match (figures.enabled?, figures.threshold) {
        (true, _) if figures.source.as_deref() == Some("auto") => (figures.raw_max?, Kind::Reactive),
        (true, Some(threshold)) => {
            let fires = formula.steps.percent.map_or(threshold, |p| with_percent(threshold, p));
            (fires.min(formula.steps.blocking.unwrap_or(fires)), Kind::Compaction)
        }
        (true, None) => return None,
        // Compaction is off and no threshold is given: the refusal line follows from the model's window.
        (false, _) if formula.wall.kind == Kind::Refusal => (formula.wall.tokens, Kind::Refusal),
        (false, _) => {
            let window = figures.window?;
            (window.saturating_sub(formula.steps.reserve + REFUSAL_MARGIN), Kind::Refusal)
        }
    };
    Some(Wall { tokens, kind, source: Source::Client })
}

#[cfg(test)]
mod tests;
