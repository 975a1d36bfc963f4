//! The text of a notice: stated facts, then the offer. It names only commands that exist in this build.

use super::reading::Reading;
use super::wall::{Kind, Source};
use super::weight::Urgency;
use crate::base::id::SessionId;
use crate::base::span::hours;
use crate::base::tokens::{percent, short};

/// How the reader can run longhaul, as one shell word or several.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// For instance `longhaul`, or a quoted path.
    pub command: &'a str,
}

/// `85 % of its wall (831k of 977k tokens)`.
pub fn share(reading: &Reading) -> String {
    let wall = reading.wall.tokens;
    match reading.context {
        Some(context) => {
            let about = if context.estimated { "about " } else { "" };
            let percent = percent(context.tokens, wall);
            format!("{about}{percent} % of its wall ({} of {} tokens)", short(context.tokens), short(wall))
        }
        None => format!("an unknown share of its wall ({} tokens)", short(wall)),
    }
}

/// Where the wall's number comes from.
pub fn source(source: Source) -> &'static str {
    match source {
        Source::Client => "from the client's own figures",
        Source::Learned => "learned from where compaction really fired",
        Source::Configured => "reckoned from what is configured",
        Source::Assumed => "assumed, nothing confirms it",
    }
}

/// What happens at the wall.
pub fn consequence(kind: Kind) -> &'static str {
    match kind {
        Kind::Compaction => "At the wall the client replaces the conversation by a summary of it.",
        Kind::Refusal => "At the wall the client refuses to send anything more; compaction is off.",
        Kind::Reactive => {
            "The client has no trigger of its own here: the API refuses at the wall, then the client compacts."
        }
    }
}

/// The notice for the model.
pub fn notice(
    reading: &Reading,
    urgency: Urgency,
    attended: bool,
    session: &SessionId,
    way: Way<'_>,
) -> String {
    let mut text = format!(
        "[longhaul] This session stands at {}; the wall is {}. {}{}",
        share(reading),
        source(reading.wall.source),
        consequence(reading.wall.kind),
        refusal(reading),
    );
    text += &past(reading);
    text.push('\n');
    text += &match (urgency, attended) {
        (Urgency::Critical, _) => format!(
            "What to do: bring the step at hand to a safe end, then hand off before anything else, without asking: \
             {}",
            how(session, way),
        ),
        (_, true) => format!(
            "What to do: finish the answer at hand, then ask the person once which of three it shall be: \
             (1) hand off now, to a fresh session that has read this one in full; (2) keep going; (3) do not ask \
             again in this session: then run `{command} handoff snooze --session {session}`. {} After a yes to (1): \
             {}",
            price(reading),
            how(session, way),
            command = way.command,
        ),
        (_, false) => "Nobody is there to be asked; these are figures to plan by.".to_owned(),
    };
    text += &format!(
        "\nSession {session}. Where the numbers come from: `{} explain --session {session}`.",
        way.command
    );
    text
}

/// How a handoff is made.
fn how(session: &SessionId, way: Way) -> String {
    format!(
        "follow the skill longhaul:handoff. In short: write a brief to a file (what is built and where it runs, \
         decisions with their reasons, state, open items, standing instructions), then run in the background \
         `{command} handoff --session {session} --brief FILE`, and tell the person the command that it prints.",
        command = way.command
    )
}

/// What the API said last, where that was no.
fn refusal(reading: &Reading) -> &'static str {
    if reading.at_wall() { " The last request was refused: the prompt is too long." } else { "" }
}

/// Work done and context lost so far; nothing while the transcript is not measured to its end, since a part
/// of a count is another count.
fn past(reading: &Reading) -> String {
    if !reading.has_transcript || !reading.complete {
        return String::new();
    }
    let figures = &reading.figures;
    let mut text = format!(
        " Active time {} in the {} since it began, {}, {}.",
        hours(figures.active_ms),
        hours(figures.span_ms()),
        counted(figures.responses, "response"),
        counted(figures.tool_calls, "tool call"),
    );
    let (count, dropped) = reading.compactions();
    if count > 0 {
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let lost = if dropped > 0 { format!(", {} tokens dropped", short(dropped)) } else { String::new() };
        text += &format!(" Compacted {times} already{lost}.");
    }
    text
}

/// `1 response`, `2 responses`.
fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// What each choice costs.
fn price(reading: &Reading) -> String {
    let used = reading.context.map_or_else(|| "all".to_owned(), |context| short(context.tokens));
    let left = short(reading.weight().headroom.unwrap_or(0));
    let read = short(reading.wall.tokens / 4);
    format!(
        "A handoff takes some minutes, and the fresh session reads up to {read} tokens with a cold cache. Going on \
         sends these {used} tokens with every request, and meets the wall {left} tokens from here."
    )
}

/// The line for the person.
pub fn message(reading: &Reading, urgency: Urgency) -> String {
    let word = if urgency == Urgency::Critical { "hand off now" } else { "a handoff is due" };
    format!("longhaul: {word}, this session stands at {}.{}", share(reading), refusal(reading))
}
