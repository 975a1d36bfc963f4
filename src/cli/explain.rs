//! `longhaul explain`: every input of the wall, whether it took effect and why, the arithmetic, the evidence.

use anyhow::Result;
use serde_json::{Value, json};

use super::page::{Look, Page};
use super::select::Selector;
use super::{print, print_json};
use crate::base::tokens::{percent, short};
use crate::gauge::inputs::Effect;
use crate::gauge::learned::Verdict;
use crate::gauge::reading::{Reading, WindowSource};
use crate::gauge::wall::{Kind, Source};
use crate::gauge::{evidence, wording};
use crate::host::Host;

/// Explain the wall: every input, its origin, its effect, the arithmetic, the evidence
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul explain\n  longhaul explain --session ID --json\n  \
                        longhaul explain --payload payload.json\n  longhaul explain --transcript FILE --model \
                        claude-haiku-4-5")]
pub struct Args {
    #[command(flatten)]
    selector: Selector,
    /// The model, where the session does not say
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (subject, taken) = args.selector.read(host, args.model.as_ref(), 0)?;
    let reading = &taken.reading;
    let mut warnings = evidence::warnings(reading, &taken.settings);
    if args.selector.borrows_environment(host, &subject) {
        warnings.push("this session's environment was never seen: this shell's stands in for it".to_owned());
    }
    let before = taken.seen.wall_before;
    let session = subject.session.as_ref().map(ToString::to_string);
    if args.json {
        let inputs = reading.inputs.list.iter().zip(&reading.formula.effects).map(|(input, effect)| {
            let (effect, why) = parts(effect);
            json!({ "name": input.name.as_str(), "origin": input.origin.to_string(), "value": input.value,
                "effect": effect, "why": why })
        });
        let value = json!({
            "session": session,
            "model": reading.model,
            "wall": reading.wall,
            "window": {
                "tokens": reading.window,
                "source": reading.window_source,
                "clamped": reading.formula.clamped,
            },
            "context": reading.context.map(|c| json!({ "tokens": c.tokens, "estimated": c.estimated })),
            "compaction_enabled": reading.formula.enabled,
            "arithmetic": reading.formula.steps,
            "client": reading.client,
            "inputs": inputs.collect::<Vec<Value>>(),
            "evidence": evidence::lines(reading, before),
            "warnings": warnings,
        });
        print_json(&value)
    } else {
        let mut page = Page::new(host);
        show(&mut page, reading, session.as_deref(), before, &warnings);
        print(page.text())
    }
}

fn parts(effect: &Effect) -> (&'static str, &str) {
    match effect {
        Effect::Applied(why) => ("applied", why),
        Effect::Clamped(why) => ("clamped", why),
        Effect::Overridden(why) => ("overridden", why),
        Effect::Ignored(why) => ("ignored", why),
        Effect::NoEffect(why) => ("no effect", why),
    }
}

fn show(page: &mut Page, reading: &Reading, session: Option<&str>, before: Option<u64>, warnings: &[String]) {
    summary(page, reading, session);
    page.gap();
    page.line(&[(Look::Strong, "Inputs")]);
    if reading.inputs.list.is_empty() {
        page.line(&[(Look::Plain, "  none is set")]);
    }
    for (input, effect) in reading.inputs.list.iter().zip(&reading.formula.effects) {
        let (word, why) = parts(effect);
        let value =
            input.value.as_str().map_or_else(|| input.value.to_string(), |text| format!("\"{text}\""));
        let set = format!("  {} = {value}", input.name.as_str());
        page.line(&[(Look::Plain, &set), (Look::Faint, &format!("  ({})", input.origin))]);
        page.line(&[(Look::Plain, "      "), (look(effect), word), (Look::Plain, &format!(": {why}"))]);
    }
    page.block("Arithmetic", Look::Plain, &evidence::arithmetic(reading));
    page.block("Evidence", Look::Plain, &evidence::lines(reading, before));
    page.block("Warnings", Look::Warn, warnings);
    if matches!(reading.wall.source, Source::Assumed) && !matches!(reading.evidence, Verdict::Confirmed) {
        page.gap();
        let wall = short(reading.wall.tokens);
        let doubt =
            format!("The wall at {wall} is an assumption: no input sets it and no evidence confirms it.");
        page.line(&[(Look::Faint, &doubt)]);
    }
}

fn summary(page: &mut Page, reading: &Reading, session: Option<&str>) {
    let wall = &reading.wall;
    let kind = match wall.kind {
        Kind::Compaction => "compaction",
        Kind::Refusal => "refusal",
        Kind::Reactive => "reactive",
    };
    let tokens = format!("{} tokens", wall.tokens);
    let how = format!(", {kind}, {}", wording::source(wall.source));
    page.line(&[(Look::Plain, "Wall     "), (Look::Strong, &tokens), (Look::Plain, &how)]);
    page.line(&[(Look::Faint, &format!("         {}", wording::consequence(wall.kind)))]);
    let label = (Look::Plain, "Context  ");
    match reading.context {
        Some(context) => {
            let about = if context.estimated { "about " } else { "" };
            let share = percent(context.tokens, wall.tokens);
            let used = format!("{about}{} tokens, {share} % of the wall", context.tokens);
            page.line(&[label, (Look::Plain, &used)]);
        }
        None => page.line(&[label, (Look::Plain, "unknown: no response yet, or no transcript to read")]),
    }
    let model = reading.model.as_deref().unwrap_or("unknown");
    let window = window_source(reading.window_source);
    page.line(&[(Look::Plain, &format!("Model    {model}, window {} tokens ({window})", reading.window))]);
    if let Some(session) = session {
        page.line(&[(Look::Plain, &format!("Session  {session}"))]);
    }
}

fn look(effect: &Effect) -> Look {
    match effect {
        Effect::Applied(_) => Look::Good,
        Effect::Clamped(_) => Look::Warn,
        Effect::Ignored(_) => Look::Bad,
        Effect::Overridden(_) | Effect::NoEffect(_) => Look::Faint,
    }
}

fn window_source(source: WindowSource) -> &'static str {
    match source {
        WindowSource::Payload => "stated by the client",
        WindowSource::Stored => "stated by the client earlier",
        WindowSource::Client => "from the client's own figures",
        WindowSource::Table => "from the table of known models",
        WindowSource::Outgrown => "larger than the table says, since the context outgrew that",
        WindowSource::Default => "a guess: the model is not known",
    }
}
