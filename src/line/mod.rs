//! One line out of a reading: what it says, what gives way first when the width is short, and its colours.

pub mod redraw;
mod segments;

use crate::base::text::{clean, fit, width};
use crate::base::tokens;
use crate::gauge::reading::Reading;
use crate::gauge::weight::{DUE, GATE};
use crate::store::fleet::Counts;
use segments::{Drop, Segment};

/// How the line is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Usable width in cells.
    pub width: usize,
    /// Whether colour is written.
    pub colour: bool,
}

/// What the line says beside the reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// How the watcher stands.
    pub watch: Watch,
    /// How many other sessions somebody should look at.
    pub fleet: Counts,
}

/// How the watcher of this client stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Watch {
    /// It runs, or nothing is known of one.
    #[default]
    Fine,
    /// It has ended: nothing is told.
    Off,
    /// So many events were told again and again, and nobody acknowledged them.
    Unheard(usize),
}

/// The line when nothing is known.
pub const UNKNOWN: &str = "–";

const BETWEEN: &str = " | ";

/// Draws a reading. Always at least one visible character, never wider than the style says.
pub fn draw(reading: &Reading, beside: Beside, style: Style) -> String {
    let mut segments = segments::of(reading, beside);
    for step in Drop::ORDER {
        if total(&segments) <= style.width {
            break;
        }
        segments = segments.into_iter().filter_map(|segment| segment.without(step)).collect();
    }
    let plain = segments.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join(BETWEEN);
    if plain.is_empty() {
        return UNKNOWN.to_owned();
    }
    if width(&plain) > style.width {
        // Part of a number would be another number.
        return "…".to_owned();
    }
    if !style.colour {
        return plain;
    }
    let colour = colour_of(reading);
    segments.iter().map(|segment| segment.painted(colour)).collect::<Vec<_>>().join(BETWEEN)
}

fn total(segments: &[Segment]) -> usize {
    let between = BETWEEN.len() * segments.len().saturating_sub(1);
    segments.iter().map(|segment| width(&segment.text)).sum::<usize>() + between
}

/// Colours by the share of the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Plain,
    Green,
    Yellow,
    Red,
}

fn colour_of(reading: &Reading) -> Colour {
    let Some(context) = reading.context else {
        return if reading.at_wall() { Colour::Red } else { Colour::Plain };
    };
    let reached = |line| tokens::at_least(context.tokens, reading.wall.tokens, line);
    if reading.at_wall() || reached(DUE) {
        Colour::Red
    } else if reached(GATE) {
        Colour::Yellow
    } else {
        Colour::Green
    }
}

/// The model's name, fit for a terminal.
fn model_name(reading: &Reading) -> Option<String> {
    let name = clean(reading.model_name.as_deref().or(reading.model.as_deref())?);
    let name = fit(name.trim(), 32);
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
