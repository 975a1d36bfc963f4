//! What each input does, noted down while the wall is reckoned.

use super::inputs::{Effect, Input, Inputs, Name};
use super::parse;

/// Collects what each input does while the formula is reckoned.
pub(super) struct Ledger<'a> {
    pub(super) inputs: &'a Inputs,
    effects: Vec<Option<Effect>>,
    /// Whether one of them decides something.
    pub(super) configured: bool,
}

impl<'a> Ledger<'a> {
    /// Nothing is known of any input yet.
    pub(super) fn new(inputs: &'a Inputs) -> Self {
        Self { inputs, effects: vec![None; inputs.list.len()], configured: false }
    }

    pub(super) fn first(&self, name: Name) -> Option<(usize, &'a Input)> {
        self.all(name).next()
    }

    pub(super) fn all(&self, name: Name) -> impl Iterator<Item = (usize, &'a Input)> + use<'a> {
        self.inputs.list.iter().enumerate().filter(move |(_, input)| input.name == name)
    }

    pub(super) fn text(&self, name: Name) -> Option<(usize, String)> {
        let (at, input) = self.first(name)?;
        Some((at, input.value.as_str().map_or_else(|| input.value.to_string(), str::to_owned)))
    }

    pub(super) fn set(&mut self, at: usize, effect: Effect) {
        self.configured |= matches!(effect, Effect::Applied(_) | Effect::Clamped(_));
        self.effects[at] = Some(effect);
    }

    /// The number an input gives, or the note that the client does not read it.
    pub(super) fn number<T>(
        &mut self,
        name: Name,
        read: fn(&str) -> Option<T>,
        want: &str,
    ) -> Option<(usize, T)> {
        let (at, text) = self.text(name)?;
        let number = read(&text);
        if number.is_none() {
            self.set(at, Effect::Ignored(format!("the client reads {want} here")));
        }
        number.map(|number| (at, number))
    }

    /// Whether an environment switch is on, and in which occurrence.
    pub(super) fn switch(&self, name: Name) -> Option<usize> {
        let on = |input: &Input| input.value.as_str().is_some_and(parse::switch);
        // DISABLE_COMPACT is on when either the `env` block or the process says so (measured); of every
        // other switch the strongest occurrence counts.
        let mut all = self.all(name);
        match name {
            Name::DisableCompact => all.find(|(_, input)| on(input)).map(|(at, _)| at),
            _ => all.next().filter(|(_, input)| on(input)).map(|(at, _)| at),
        }
    }

    pub(super) fn finish(self) -> Vec<Effect> {
        let list = &self.inputs.list;
        let mut effects = Vec::with_capacity(list.len());
        for (at, (effect, input)) in self.effects.into_iter().zip(list).enumerate() {
            let first = list.iter().position(|other| other.name == input.name).unwrap_or(at);
            effects.push(effect.unwrap_or_else(|| {
                if first == at && input.name.is_switch() {
                    Effect::NoEffect("only 1, true, yes and on switch it on".into())
                } else if first == at {
                    Effect::NoEffect("nothing here depends on it".into())
                } else {
                    Effect::Overridden(format!("{} stands in {}", input.name.as_str(), list[first].origin))
                }
            }));
        }
        effects
    }
}
