//! The wall by the client's own arithmetic: the one function that reckons it, and the client's constants.
//!
//! All of it measured by bisection on the real client, 2.1.197 to 2.1.332, to 20-40 tokens.

use serde::Serialize;

use super::inputs::{Effect, Input, Inputs, Name};
use super::parse;
use crate::client::figures::Figures;
use crate::client::models;

/// Most tokens that are kept free for a response: `effective = window - min(max output, this)`.
const RESERVE: u64 = 20_000;
/// Compaction fires this many tokens before the effective window ends.
const TRIGGER_MARGIN: u64 = 13_000;
/// With compaction off, the client stops sending this many tokens before the effective window ends.
const REFUSAL_MARGIN: u64 = 3_000;

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
    /// What each occurrence does, in the order of [`Inputs::list`].
    pub effects: Vec<Effect>,
}

/// Collects what each input does while the formula is reckoned.
struct Ledger<'a> {
    inputs: &'a Inputs,
    effects: Vec<Option<Effect>>,
    configured: bool,
}

impl<'a> Ledger<'a> {
    fn first(&self, name: Name) -> Option<(usize, &'a Input)> {
        self.all(name).next()
    }

    fn all(&self, name: Name) -> impl Iterator<Item = (usize, &'a Input)> + use<'a> {
        self.inputs.list.iter().enumerate().filter(move |(_, input)| input.name == name)
    }

    fn text(&self, name: Name) -> Option<(usize, String)> {
        let (at, input) = self.first(name)?;
        Some((at, input.value.as_str().map_or_else(|| input.value.to_string(), str::to_owned)))
    }

    fn set(&mut self, at: usize, effect: Effect) {
        self.configured |= matches!(effect, Effect::Applied(_) | Effect::Clamped(_));
        self.effects[at] = Some(effect);
    }

    /// The number an input gives, or the note that the client does not read it.
    fn number<T>(&mut self, name: Name, read: fn(&str) -> Option<T>, want: &str) -> Option<(usize, T)> {
        let (at, text) = self.text(name)?;
        let number = read(&text);
        if number.is_none() {
            self.set(at, Effect::Ignored(format!("the client reads {want} here")));
        }
        number.map(|number| (at, number))
    }

    /// Whether an environment switch is on, and in which occurrence.
    fn switch(&self, name: Name) -> Option<usize> {
        let on = |input: &Input| input.value.as_str().is_some_and(parse::switch);
        // DISABLE_COMPACT is on when either the `env` block or the process says so (measured); of every
        // other switch the strongest occurrence counts.
        let mut all = self.all(name);
        match name {
            Name::DisableCompact => all.find(|(_, input)| on(input)).map(|(at, _)| at),
            _ => all.next().filter(|(_, input)| on(input)).map(|(at, _)| at),
        }
    }

    fn finish(self) -> Vec<Effect> {
        let list = &self.inputs.list;
        let mut effects = Vec::with_capacity(list.len());
        for (at, (effect, input)) in self.effects.into_iter().zip(list).enumerate() {
            let first = list.iter().position(|other| other.name == input.name).unwrap_or(at);
            effects.push(effect.unwrap_or_else(|| {
                if first == at {
                    Effect::NoEffect("nothing here depends on it".into())
                } else {
                    Effect::Overridden(format!("{} stands in {}", input.name.as_str(), list[first].origin))
                }
            }));
        }
        effects
    }
}

/// Reckons the wall. `window` is the model's window in tokens as the client states it, or the best guess.
pub fn reckon(inputs: &Inputs, model: Option<&str>, window: u64) -> Formula {
    let mut ledger = Ledger { inputs, effects: vec![None; inputs.list.len()], configured: false };
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
    let explicit = explicit_window(&mut ledger, model_window, off.is_some());
    let percent = ledger.number(Name::Percent, parse::percent, "a percentage above 0 and up to 100");
    let enabled = off.is_none();
    let w = explicit.unwrap_or(model_window).min(model_window);
    let effective = w.saturating_sub(reserve);
    let mut steps = Steps {
        model_window,
        explicit,
        window: if enabled { w } else { model_window },
        reserve,
        effective: if enabled { effective } else { model_window.saturating_sub(reserve) },
        percent: percent.map(|(_, percent)| percent),
        threshold: None,
        blocking: None,
    };
    let has_trigger = explicit.is_some() || known.is_none_or(|model| model.trigger);
    let blocking = ledger.number(Name::BlockingLimit, parse::count, "a whole number of tokens");
    steps.blocking = blocking.map(|(_, limit)| limit);
    let (tokens, kind) = if !enabled {
        let line = steps.effective.saturating_sub(REFUSAL_MARGIN);
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
        if let Some((at, _)) = blocking {
            ledger.set(at, Effect::NoEffect("this model has no trigger without an explicit window".into()));
        }
        if let Some((at, _)) = percent {
            ledger.set(at, Effect::NoEffect("this model has no trigger without an explicit window".into()));
        }
        (model_window, Kind::Reactive)
    };
    let source = if ledger.configured { Source::Configured } else { Source::Assumed };
    let clamped = explicit.filter(|explicit| enabled && *explicit > model_window).map(|_| model_window);
    Formula { wall: Wall { tokens, kind, source }, steps, enabled, clamped, effects: ledger.finish() }
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

/// Which input switches compaction off, if one does.
fn switched_off(ledger: &mut Ledger<'_>) -> Option<Name> {
    let mut off = None;
    for name in [Name::DisableCompact, Name::DisableAutoCompact] {
        if let Some(at) = ledger.switch(name) {
            ledger.set(at, Effect::Applied("automatic compaction is off".into()));
            off = off.or(Some(name));
        }
    }
    let mut decided = false;
    for (at, input) in ledger.all(Name::AutoCompactEnabled) {
        let effect = match input.value.as_bool() {
            // Values of another type are dropped, and a weaker scope's shows through (measured).
            None => Effect::Ignored("the client reads true or false here".into()),
            Some(_) if decided => continue,
            Some(false) => {
                off = off.or(Some(Name::AutoCompactEnabled));
                Effect::Applied("automatic compaction is off".into())
            }
            Some(true) if off.is_some() => Effect::NoEffect("it does not turn compaction on again".into()),
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
    let text = |input: &'_ Input| input.value.as_str().map(str::to_owned);
    for (at, input) in inputs.list.iter().enumerate() {
        let (read, want) = match input.name {
            // A junk value in the strongest block still hides the weaker ones (measured).
            Name::Window if ledger.first(Name::Window).is_some_and(|(first, _)| first != at) => continue,
            Name::Window => {
                (text(input).as_deref().and_then(parse::tokens).map(Tokens), "a number of tokens")
            }
            Name::WindowFlag => {
                (text(input).as_deref().and_then(parse::flag_window), "a number of tokens, or auto,")
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
fn with_percent(threshold: u64, percent: f64) -> u64 {
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
mod tests {
    use super::*;
    use crate::client::settings::Origin;
    use serde_json::{Value, json};

    type Row = (&'static str, Vec<(Name, Value)>, (u64, Kind, Source));

    const OPUS: &str = "claude-opus-5-5";
    const HAIKU: &str = "claude-haiku-4-5";

    fn inputs(list: &[(Name, Value)]) -> Inputs {
        let list = list.iter().map(|(name, value)| Input {
            name: *name,
            origin: Origin::Environment,
            value: value.clone(),
        });
        Inputs { list: list.collect() }
    }

    fn wall(model: &str, list: &[(Name, Value)]) -> (u64, Kind, Source) {
        let formula = reckon(&inputs(list), Some(model), models::look_up(model, false).window);
        assert_eq!(formula.effects.len(), list.len());
        (formula.wall.tokens, formula.wall.kind, formula.wall.source)
    }

    #[test]
    fn every_measured_row_is_reckoned() {
        use Kind::{Compaction, Reactive, Refusal};
        use Name::*;
        use Source::{Assumed, Configured};
        let t = |text: &str| Value::from(text);
        let rows: Vec<Row> = vec![
            (OPUS, vec![], (967_000, Compaction, Assumed)),
            ("claude-sonnet-5", vec![], (967_000, Compaction, Assumed)),
            ("mystery", vec![], (967_000, Compaction, Assumed)),
            (OPUS, vec![(Window, t("200000"))], (167_000, Compaction, Configured)),
            (OPUS, vec![(Window, t("150000"))], (117_000, Compaction, Configured)),
            (OPUS, vec![(Window, t("50000"))], (67_000, Compaction, Configured)),
            (OPUS, vec![(Window, t("500k"))], (467_000, Compaction, Configured)),
            (OPUS, vec![(Window, t("abc"))], (967_000, Compaction, Assumed)),
            (OPUS, vec![(Window, t("1e6"))], (967_000, Compaction, Configured)),
            (OPUS, vec![(Window, t("5000000"))], (967_000, Compaction, Configured)),
            (OPUS, vec![(SettingsWindow, json!(400_000))], (367_000, Compaction, Configured)),
            (OPUS, vec![(SettingsWindow, json!("300k"))], (967_000, Compaction, Assumed)),
            (OPUS, vec![(SettingsWindow, json!(50_000))], (967_000, Compaction, Assumed)),
            (
                OPUS,
                vec![(ModelWindow, json!(250_000)), (SettingsWindow, json!(400_000))],
                (217_000, Compaction, Configured),
            ),
            (
                OPUS,
                vec![(Window, t("300000")), (SettingsWindow, json!(400_000))],
                (267_000, Compaction, Configured),
            ),
            (OPUS, vec![(Window, t("400000")), (WindowFlag, t("300000"))], (367_000, Compaction, Configured)),
            (
                OPUS,
                vec![(WindowFlag, t("300000")), (SettingsWindow, json!(400_000))],
                (267_000, Compaction, Configured),
            ),
            (OPUS, vec![(Disable1m, t("1"))], (167_000, Compaction, Configured)),
            (OPUS, vec![(Percent, t("50"))], (490_000, Compaction, Configured)),
            (OPUS, vec![(Percent, t("50")), (Window, t("200000"))], (90_000, Compaction, Configured)),
            (OPUS, vec![(Percent, t("30")), (Window, t("400000"))], (114_000, Compaction, Configured)),
            (OPUS, vec![(Percent, t("12.5"))], (122_500, Compaction, Configured)),
            (OPUS, vec![(Percent, t("99"))], (967_000, Compaction, Assumed)),
            (OPUS, vec![(Percent, t("0"))], (967_000, Compaction, Assumed)),
            (OPUS, vec![(MaxOutput, t("8000"))], (979_000, Compaction, Configured)),
            (OPUS, vec![(MaxOutput, t("64000"))], (967_000, Compaction, Assumed)),
            (OPUS, vec![(MaxContext, t("300000"))], (967_000, Compaction, Assumed)),
            (OPUS, vec![(AutoCompactEnabled, json!(false))], (977_000, Refusal, Configured)),
            (OPUS, vec![(DisableAutoCompact, t("1"))], (977_000, Refusal, Configured)),
            (OPUS, vec![(DisableCompact, t("1"))], (977_000, Refusal, Configured)),
            (OPUS, vec![(DisableCompact, t("1")), (MaxOutput, t("8000"))], (989_000, Refusal, Configured)),
            (
                OPUS,
                vec![(DisableCompact, t("1")), (BlockingLimit, t("300000"))],
                (300_000, Refusal, Configured),
            ),
            (HAIKU, vec![(DisableCompact, t("1"))], (177_000, Refusal, Configured)),
            (
                HAIKU,
                vec![(DisableCompact, t("1")), (MaxContext, t("1000000"))],
                (977_000, Refusal, Configured),
            ),
            (OPUS, vec![(BlockingLimit, t("300000"))], (300_000, Compaction, Configured)),
            (HAIKU, vec![(BlockingLimit, t("150000"))], (200_000, Reactive, Assumed)),
            (HAIKU, vec![(Percent, t("50"))], (200_000, Reactive, Assumed)),
            ("weird-model", vec![(MaxContext, t("300000"))], (267_000, Compaction, Configured)),
            ("claude-opus-4-6", vec![], (167_000, Compaction, Assumed)),
            ("claude-3-5-haiku", vec![(DisableCompact, t("1"))], (188_808, Refusal, Configured)),
            (HAIKU, vec![], (200_000, Reactive, Assumed)),
            ("claude-sonnet-4-5[1m]", vec![], (1_000_000, Reactive, Assumed)),
            (HAIKU, vec![(Window, t("150000"))], (117_000, Compaction, Configured)),
        ];
        for (model, list, expected) in rows {
            assert_eq!(wall(model, &list), expected, "{model} {list:?}");
        }
    }

    // CC#66144, CC#65966: switches are not undone by the setting; a window above the model's is capped.
    #[test]
    fn the_setting_does_not_turn_compaction_on_again_and_a_large_window_is_clamped() {
        let list = [(Name::DisableAutoCompact, json!("1")), (Name::AutoCompactEnabled, json!(true))];
        assert_eq!(wall(OPUS, &list).0, 977_000);
        let formula = reckon(&inputs(&[(Name::Window, json!("1000000"))]), Some(OPUS), 200_000);
        assert_eq!((formula.wall.tokens, formula.clamped), (167_000, Some(200_000)));
    }

    #[test]
    fn an_explicit_window_of_a_trigger_less_model_is_capped_and_turns_the_trigger_on() {
        assert_eq!(wall(HAIKU, &[(Name::Window, json!("5000000"))]).0, 167_000);
    }

    #[test]
    fn the_clients_figures_win_and_the_percentage_is_put_back() {
        let formula = reckon(&inputs(&[(Name::Percent, json!("50"))]), Some(OPUS), 1_000_000);
        let figures = Figures {
            threshold: Some(267_000),
            enabled: Some(true),
            raw_max: Some(300_000),
            source: Some("env".into()),
            ..Figures::default()
        };
        let wall = of_client(&figures, &formula).unwrap();
        assert_eq!((wall.tokens, wall.source), (140_000, Source::Client));
        let auto = Figures { source: Some("auto".into()), ..figures.clone() };
        assert_eq!(of_client(&auto, &formula).unwrap().kind, Kind::Reactive);
        let off = Figures { enabled: Some(false), window: Some(1_000_000), ..Figures::default() };
        let wall = of_client(&off, &formula).unwrap();
        assert_eq!((wall.tokens, wall.kind), (977_000, Kind::Refusal));
        assert!(of_client(&Figures::default(), &formula).is_none());
    }

    #[test]
    fn no_number_overflows() {
        for window in [0, 1, 19_999, u64::MAX] {
            for list in [vec![], vec![(Name::DisableCompact, json!("1"))], vec![(Name::Window, json!("1k"))]]
            {
                let _ = reckon(&inputs(&list), Some(OPUS), window);
            }
        }
        let huge = Figures { threshold: Some(u64::MAX >> 11), enabled: Some(true), ..Figures::default() };
        let formula = reckon(&inputs(&[(Name::Percent, json!("1"))]), None, 1_000_000);
        assert!(of_client(&huge, &formula).is_some());
    }
}
