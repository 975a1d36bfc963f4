//! What a compaction does: it sets the context, counts, and teaches where the trigger lies.

use super::branch::Mark;
use super::branch::hash;
use super::figures::{Boundary, Interval, TEACHING_RESPONSES};
use super::notes::Compact;
use super::row::Row;
use super::tally::{Since, Tally, clamp};

impl Tally {
    pub(super) fn compaction(&mut self, row: &Row, compact: Option<&Compact>) -> Mark {
        let none = Compact::default();
        let compact = compact.unwrap_or(&none);
        let at_ms = row.at_ms.unwrap_or(0);
        let figures = &mut self.figures;
        *(if compact.auto { &mut figures.auto } else { &mut figures.manual }) += 1;
        let dropped = compact.pre.saturating_sub(compact.post.unwrap_or(compact.pre));
        figures.dropped = figures.dropped.saturating_add(dropped).max(compact.dropped.unwrap_or(0));
        figures.last_boundary =
            Some(Boundary { auto: compact.auto, pre: compact.pre, post: compact.post, at_ms });
        figures.max_since_boundary = 0;
        figures.refused = false;
        figures.context_at = row.at_ms.or(figures.context_at);
        // One that does not say at which count it came proves nothing.
        if compact.auto && compact.pre > 0 && self.since.responses >= TEACHING_RESPONSES {
            self.figures.interval = Some(Interval {
                low: self.since.answered,
                pre: compact.pre,
                at_ms,
                model: self.model_name(self.mark.model),
                turns: self.since.turns,
                responses: self.since.responses,
                discarded: false,
            });
            self.overruled = false;
        }
        self.since = Since::default();
        self.epoch = self.epoch.wrapping_add(1);
        self.mark = Mark {
            tokens: compact.post.map(clamp),
            estimated: true,
            model: self.mark.model,
            epoch: self.epoch,
        };
        for kept in compact.kept.iter().chain(&row.logical_parent) {
            self.branches.set(hash(kept), self.mark);
        }
        self.mark
    }
}
