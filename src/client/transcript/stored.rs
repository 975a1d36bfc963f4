//! [`Tally`]'s layout in bytes.

use super::branch::{Branches, Mark, Memory};
use super::bytes::{Reader, Writer};
use super::figures::{Boundary, Figures, Interval, Times};
use super::tally::{Since, Tally};

impl Tally {
    pub(super) fn write(&self, out: &mut Writer) {
        write_figures(&self.figures, out);
        out.i64(self.times.active_ms);
        for at in [self.times.first_at, self.times.last_at, self.times.clock] {
            out.maybe(at, Writer::i64);
        }
        self.mark.write(out);
        out.u64(u64::from(self.epoch));
        out.u64(self.message);
        out.u64(u64::from(self.message_total));
        out.u8(u8::try_from(self.models.len()).unwrap_or(0));
        for model in &self.models {
            out.text(model);
        }
        out.bool(self.says_origin);
        out.u64(self.turn);
        out.maybe(self.first_turn, Writer::u64);
        out.u64(self.prompt_index);
        for n in [self.since.turns, self.since.responses, self.since.answered, self.since.same_model] {
            out.u64(n);
        }
        out.bool(self.overruled);
        self.branches.write(out);
        self.seen.write(out);
    }

    pub(super) fn read(from: &mut Reader) -> Option<Self> {
        Some(Self {
            figures: read_figures(from)?,
            times: Times {
                active_ms: from.i64()?,
                first_at: from.maybe(Reader::i64)?,
                last_at: from.maybe(Reader::i64)?,
                clock: from.maybe(Reader::i64)?,
            },
            mark: Mark::read(from)?,
            epoch: u16::try_from(from.u64()?).ok()?,
            message: from.u64()?,
            message_total: u32::try_from(from.u64()?).ok()?,
            models: (0..from.u8()?).map(|_| from.text().map(str::to_owned)).collect::<Option<_>>()?,
            says_origin: from.bool()?,
            turn: from.u64()?,
            first_turn: from.maybe(Reader::u64)?,
            prompt_index: from.u64()?,
            since: Since {
                turns: from.u64()?,
                responses: from.u64()?,
                answered: from.u64()?,
                same_model: from.u64()?,
            },
            overruled: from.bool()?,
            branches: Branches::read(from)?,
            seen: Memory::read(from)?,
        })
    }
}

/// What [`Tally::figures`] derives is left out.
fn write_figures(figures: &Figures, out: &mut Writer) {
    for n in [
        figures.rows,
        figures.damaged,
        figures.responses,
        figures.tool_calls,
        figures.prompts,
        figures.turns,
        figures.max_since_boundary,
        figures.previous_context,
        figures.auto,
        figures.manual,
        figures.dropped,
    ] {
        out.u64(n);
    }
    for at in [figures.context_at, figures.last_prompt_at, figures.last_notice_at] {
        out.maybe(at, Writer::i64);
    }
    out.bool(figures.refused);
    out.maybe(figures.last_boundary, |out, boundary| {
        out.bool(boundary.auto);
        out.u64(boundary.pre);
        out.maybe(boundary.post, Writer::u64);
        out.i64(boundary.at_ms);
    });
    out.maybe(figures.interval.as_ref(), |out, interval| {
        for n in [interval.low, interval.pre, interval.turns, interval.responses] {
            out.u64(n);
        }
        out.i64(interval.at_ms);
        out.maybe(interval.model.as_deref(), Writer::text);
    });
}

fn read_figures(from: &mut Reader) -> Option<Figures> {
    Some(Figures {
        rows: from.u64()?,
        damaged: from.u64()?,
        responses: from.u64()?,
        tool_calls: from.u64()?,
        prompts: from.u64()?,
        turns: from.u64()?,
        max_since_boundary: from.u64()?,
        previous_context: from.u64()?,
        auto: from.u64()?,
        manual: from.u64()?,
        dropped: from.u64()?,
        context_at: from.maybe(Reader::i64)?,
        last_prompt_at: from.maybe(Reader::i64)?,
        last_notice_at: from.maybe(Reader::i64)?,
        refused: from.bool()?,
        last_boundary: from.maybe(|from| {
            Some(Boundary {
                auto: from.bool()?,
                pre: from.u64()?,
                post: from.maybe(Reader::u64)?,
                at_ms: from.i64()?,
            })
        })?,
        interval: from.maybe(|from| {
            Some(Interval {
                low: from.u64()?,
                pre: from.u64()?,
                turns: from.u64()?,
                responses: from.u64()?,
                at_ms: from.i64()?,
                model: from.maybe(|from| from.text().map(str::to_owned))?,
                discarded: false,
            })
        })?,
        ..Figures::default()
    })
}
