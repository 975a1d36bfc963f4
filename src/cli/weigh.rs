//! `longhaul weigh`: seven signals, what they add up to, and what the gate holds back.

use anyhow::Result;
use serde_json::json;

use super::page::{Look, Page};
use super::select::Selector;
use super::{print, print_json};
use crate::base::span::hours;
use crate::base::tokens::short;
use crate::gauge::reading::Reading;
use crate::gauge::weight::{self, Signal, Urgency};
use crate::gauge::wording;
use crate::host::Host;

/// Weigh a session: signals, points, urgency, headroom
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul weigh\n  longhaul weigh --transcript FILE --json\n  \
                        longhaul weigh --session ID --subtasks 6")]
pub struct Args {
    #[command(flatten)]
    selector: Selector,
    /// The model, where the session does not say
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Distinct sub-tasks finished; only the model can say
    #[arg(long, value_name = "N", default_value_t = 0)]
    subtasks: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (subject, taken) = args.selector.read(host, args.model.as_ref(), args.subtasks)?;
    let reading = &taken.reading;
    let (facts, weight, figures) = (reading.facts(), reading.weight(), &reading.figures);
    let signals = weight::signals(&facts);
    if args.json {
        let value = json!({
            "session": subject.session.as_ref().map(ToString::to_string),
            "context": reading.context.map(|c| json!({ "tokens": c.tokens, "estimated": c.estimated })),
            "wall": reading.wall,
            "signals": signals,
            "points": weight.points,
            "urgency": weight.urgency,
            "gated": weight.gated,
            "headroom": weight.headroom,
            "responses": figures.responses,
            "tool_calls": figures.tool_calls,
            "active_ms": figures.active_ms,
            "span_ms": figures.span_ms(),
            "compactions": {
                "auto": figures.auto,
                "manual": figures.manual,
                "dropped_tokens": figures.dropped,
            },
            "rows": figures.rows,
            "damaged": figures.damaged,
            "complete": reading.complete,
        });
        return print_json(&value);
    }
    let mut page = Page::new(host);
    show(&mut page, reading, &signals);
    print(page.text())
}

fn show(page: &mut Page, reading: &Reading, signals: &[Signal]) {
    let weight = reading.weight();
    let word = match weight.urgency {
        Urgency::Critical => "critical: hand off now",
        Urgency::Due => "due: time for a handoff",
        Urgency::Soon => "soon: a handoff comes nearer",
        Urgency::None => "none: nothing to do",
    };
    let gate =
        if weight.gated { " (held back by the gate: below 62 % of the wall nothing is due)" } else { "" };
    let room = weight.headroom.map(|left| format!(", {} tokens free", short(left))).unwrap_or_default();
    page.line(&[(Look::of(weight.urgency), word), (Look::Plain, gate)]);
    page.line(&[(Look::Plain, &format!("The session stands at {}{room}.", wording::share(reading)))]);
    if reading.at_wall() {
        page.line(&[(Look::Bad, "The last request was refused: the prompt is too long.")]);
    }
    page.gap();
    for signal in signals {
        let row = format!(
            "  {:>2}  {:<32} {:>10}   counts at {}",
            signal.points, signal.name, signal.value, signal.threshold
        );
        page.line(&[(if signal.points > 0 { Look::Strong } else { Look::Faint }, &row)]);
    }
    page.line(&[(Look::Strong, &format!("  {:>2}  points", weight.points))]);
    page.gap();
    let figures = &reading.figures;
    let (active, span) = (hours(figures.active_ms), hours(figures.span_ms()));
    let (read, damaged) = (figures.rows, figures.damaged);
    let rows = format!(
        "Active {active} of {span}. The transcript has {read} rows that could be read and {damaged} damaged."
    );
    page.line(&[(Look::Plain, &rows)]);
}
