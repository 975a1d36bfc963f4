//! The parts of the line, and in which order they give way.

use owo_colors::{AnsiColors, OwoColorize as _};

use super::{Beside, Colour, UNKNOWN, Watch, model_name};
use crate::base::span::hours;
use crate::base::tokens::{percent, short};
use crate::gauge::reading::Reading;
use crate::gauge::wall::{Kind, Source};
use crate::gauge::weight::Urgency;
use crate::store::fleet::Counts;

/// A step of giving way. The percent with used and wall is never dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    Cache,
    Counters,
    Compacted,
    Model,
    Notes,
    VerdictWords,
    Fleet,
    Alarms,
    Bar,
    Verdict,
    Wall,
    Never,
}

impl Drop {
    /// The first to go comes first.
    pub const ORDER: [Self; 11] = [
        Self::Cache,
        Self::Counters,
        Self::Compacted,
        Self::Model,
        Self::Notes,
        Self::VerdictWords,
        Self::Fleet,
        Self::Alarms,
        Self::Bar,
        Self::Verdict,
        Self::Wall,
    ];
}

/// A part of the line.
#[derive(Debug, Clone)]
pub struct Segment {
    /// What it says.
    pub text: String,
    /// At which step it gives way.
    gives: Drop,
    /// What stays of it then and when that gives way in turn; the next form is the last in the list.
    shorter: Vec<(String, Drop)>,
    /// Whether it takes the colour of the share.
    coloured: bool,
    /// Whether it has the colour of a warning, whatever the share.
    warns: bool,
}

impl Segment {
    fn new(text: impl Into<String>, gives: Drop) -> Self {
        Self { text: text.into(), gives, shorter: Vec::new(), coloured: false, warns: false }
    }

    fn coloured(mut self) -> Self {
        self.coloured = true;
        self
    }

    fn warning(mut self) -> Self {
        self.warns = true;
        self
    }

    /// A shorter form, after those given before.
    fn then(mut self, shorter: impl Into<String>, gives: Drop) -> Self {
        self.shorter.insert(0, (shorter.into(), gives));
        self
    }

    /// The segment after this step.
    pub fn without(mut self, step: Drop) -> Option<Self> {
        if self.gives == step {
            (self.text, self.gives) = self.shorter.pop()?;
        }
        Some(self)
    }

    /// With colour.
    pub fn painted(&self, colour: Colour) -> String {
        let colour = match colour {
            _ if self.warns => AnsiColors::Yellow,
            _ if !self.coloured => return self.text.clone(),
            Colour::Plain => return self.text.clone(),
            Colour::Green => AnsiColors::Green,
            Colour::Yellow => AnsiColors::Yellow,
            Colour::Red => AnsiColors::Red,
        };
        self.text.color(colour).to_string()
    }
}

/// All parts of the line, in the order they are shown.
pub fn of(reading: &Reading, beside: Beside) -> Vec<Segment> {
    let mut line = Vec::with_capacity(10);
    line.extend(model_name(reading).map(|name| Segment::new(name, Drop::Model)));
    line.push(share(reading));
    line.extend(counters(reading).map(|text| Segment::new(text, Drop::Counters)));
    let (count, dropped) = reading.compactions();
    if count > 0 {
        let dropped = if dropped > 0 { format!(" -{}", short(dropped)) } else { String::new() };
        line.push(Segment::new(format!("compacted {count}x{dropped}"), Drop::Compacted));
    }
    if reading.cache_cold {
        line.push(Segment::new("cache cold", Drop::Cache));
    }
    line.extend(verdict(reading));
    line.extend(alarms(reading).map(|text| Segment::new(text, Drop::Alarms).coloured()));
    line.extend(notes(reading).map(|text| Segment::new(text, Drop::Notes)));
    line.extend(fleet(beside.fleet).map(|text| Segment::new(text, Drop::Fleet).warning()));
    line.extend(watch(beside.watch).map(|text| Segment::new(text, Drop::Fleet).warning()));
    line
}

/// Bar, percent, used and wall.
fn share(reading: &Reading) -> Segment {
    let wall = short(reading.wall.tokens);
    let Some(context) = reading.context else {
        return Segment::new(format!("{UNKNOWN}/{wall}"), Drop::Wall).then(UNKNOWN, Drop::Never);
    };
    let percent = percent(context.tokens, reading.wall.tokens);
    let mark = if context.estimated { "~" } else { "" };
    let bare = format!("{mark}{percent}%");
    let counts = format!("{bare} {mark}{}/{wall}", short(context.tokens));
    let whole = format!("{} {counts}", bar(percent));
    Segment::new(whole, Drop::Bar).then(counts, Drop::Wall).then(bare, Drop::Never).coloured()
}

fn bar(percent: u64) -> String {
    let full = usize::try_from(percent.min(100) / 10).unwrap_or(10);
    "█".repeat(full) + &"░".repeat(10 - full)
}

/// Responses, tool calls and active hours: only when the whole transcript is measured.
fn counters(reading: &Reading) -> Option<String> {
    let figures = &reading.figures;
    let known = reading.has_transcript && reading.complete && figures.responses > 0;
    known.then(|| format!("{}t {}tc {}", figures.responses, figures.tool_calls, hours(figures.active_ms)))
}

fn verdict(reading: &Reading) -> Option<Segment> {
    let weight = reading.weight();
    let points = weight.points;
    let (long, brief) = match weight.urgency {
        Urgency::Critical => ("HANDOFF NOW".to_owned(), "NOW".to_owned()),
        Urgency::Due => (format!("HANDOFF DUE ({points})"), "DUE".to_owned()),
        Urgency::Soon if !below_gate(reading) => (format!("handoff soon ({points})"), "soon".to_owned()),
        _ => {
            let headroom = short(weight.headroom?);
            (format!("{headroom} free"), format!("+{headroom}"))
        }
    };
    Some(Segment::new(long, Drop::VerdictWords).then(brief, Drop::Verdict).coloured())
}

fn below_gate(reading: &Reading) -> bool {
    let reached =
        |tokens| crate::base::tokens::at_least(tokens, reading.wall.tokens, crate::gauge::weight::GATE);
    !reading.context.is_some_and(|context| reached(context.tokens))
}

/// What must be seen.
fn alarms(reading: &Reading) -> impl Iterator<Item = String> {
    let past = if reading.at_wall() {
        Some("at wall".to_owned())
    } else {
        reading.past_wall().then(|| "past wall".to_owned())
    };
    let clamped = reading.formula.clamped.filter(|_| reading.wall.kind != Kind::Refusal);
    past.into_iter().chain(clamped.map(|window| format!("CLAMPED {}", whole(window))))
}

/// The other sessions that somebody should look at.
fn fleet(counts: Counts) -> impl Iterator<Item = String> {
    let said = |(count, what): (usize, &str)| (count > 0).then(|| format!("{count} {what}"));
    [(counts.stalled, "stalled"), (counts.dead, "dead"), (counts.waiting, "waiting for you")]
        .into_iter()
        .filter_map(said)
}

/// What the watcher cannot say itself.
fn watch(watch: Watch) -> Option<String> {
    match watch {
        Watch::Fine => None,
        Watch::Off => Some("watch off".to_owned()),
        Watch::Unheard(1) => Some("1 event unheard".to_owned()),
        Watch::Unheard(count) => Some(format!("{count} events unheard")),
    }
}

/// What explains the number.
fn notes(reading: &Reading) -> impl Iterator<Item = &'static str> {
    let kind = match reading.wall.kind {
        Kind::Refusal => Some("no-compact"),
        Kind::Reactive => Some("reactive"),
        Kind::Compaction => None,
    };
    let source = match reading.wall.source {
        Source::Learned => Some("learned"),
        Source::Assumed => Some("assumed"),
        Source::Client | Source::Configured => None,
    };
    let unverified = reading.formula.unverified.then_some("unverified");
    kind.into_iter().chain(unverified).chain(source)
}

/// A window without decimals: `200k`, `1M`.
fn whole(tokens: u64) -> String {
    if tokens > 0 && tokens.is_multiple_of(1_000_000) {
        format!("{}M", tokens / 1_000_000)
    } else {
        short(tokens)
    }
}
