//! `04-index.json`: what a reading is checked against, and where everything is. It holds no mark.

use serde_json::{Value, json};

use super::assemble::{Budget, Group};
use super::collect::{Collected, Counts};
use super::redact::Redactor;
use super::render::shown;
use super::source::Source;
use super::subagents::Subagent;
use super::survey::Survey;
use crate::base::span::stamp;

/// All that it is made of.
pub struct Facts<'a> {
    /// The export's id.
    pub id: &'a str,
    /// When it was made, epoch milliseconds.
    pub now_ms: i64,
    /// The client's transcript.
    pub transcript: &'a str,
    /// It, as long as it was then, and what comes before it in others.
    pub source: &'a Source,
    /// What pointers point into.
    pub origin: &'a str,
    /// The hash of all of it.
    pub blake3: &'a str,
    /// The compressed copy's name and bytes.
    pub copy: Option<(&'a str, u64)>,
    /// 03's name and bytes.
    pub full: (&'a str, u64),
    /// Found by the first reading.
    pub survey: &'a Survey,
    /// Found by the second.
    pub collected: &'a Collected,
    /// Those that are looked into, and how many there are.
    pub subagents: &'a (Vec<Subagent>, usize),
    /// The parts.
    pub groups: &'a [Group],
    /// What the budget made of them.
    pub budget: &'a Budget,
    /// The session, where the transcript does not say.
    pub session: &'a str,
}

/// The index.
pub fn index(facts: &Facts, redactor: &mut Redactor) -> Value {
    let Facts { survey, collected, .. } = facts;
    let (counts, times) = (&collected.counts, &survey.times);
    let on = redactor.is_on();
    let mut text = |text: Option<&str>| text.map(|text| shown(text.to_owned(), redactor));
    let parent = json!({
        "session": facts.session,
        "title": text(survey.title()),
        "cwd": text(survey.cwd.as_deref()),
        "model": text(survey.model.as_deref()),
        "client_version": text(survey.version.as_deref()),
        "first_at": times.first_at.map(stamp),
        "last_at": times.last_at.map(stamp),
        "active_ms": times.active_ms,
        "span_ms": times.first_at.zip(times.last_at).map(|(first, last)| last.saturating_sub(first)),
    });
    let pieces = facts.source.pieces().map(|(from, piece)| {
        json!({ "transcript": piece.path.display().to_string(), "from_byte": from, "bytes": piece.end })
    });
    json!({
        "version": 1,
        "id": facts.id,
        "made_at": stamp(facts.now_ms),
        "made_by": concat!("longhaul ", env!("CARGO_PKG_VERSION")),
        "parent": parent,
        "source": {
            "transcript": facts.transcript,
            "from_the_beginning": survey.begins_with.is_none(),
            "pieces": pieces.collect::<Vec<_>>(),
            "bytes": facts.source.end(),
            "lines": counts.lines,
            "blake3": facts.blake3,
            "copy": facts.copy.map(|(name, bytes)| json!({ "file": name, "bytes": bytes })),
        },
        "pointers": format!("row = line, from 1; byte = offset of its first byte; both in {}, decompressed", facts.origin),
        "messages": {
            "entries": collected.said.len(),
            "with_repeats": counts.said.values().sum::<u64>(),
            "by_kind": counts.said,
            "rewound": counts.rewound_messages,
        },
        "decisions": { "entries": collected.decided.len(), "in_02b": facts.budget.decisions_moved },
        "rows": {
            "by_type": counts.rows,
            "rewound": counts.rewound_rows,
            "copies": counts.copies,
            "of_subagents": counts.sidechain_rows,
        },
        "damage": damage(counts),
        "tools": { "calls": counts.tools.values().sum::<u64>(), "by_name": counts.tools },
        "compactions": compactions(survey, collected),
        "subagents": { "count": facts.subagents.1, "listed": facts.subagents.0 },
        "budget": facts.budget,
        "must_read": facts.groups,
        "to_search": { "file": facts.full.0, "bytes": facts.full.1 },
        "redaction": on.then(|| json!({
            "masked": redactor.masked,
            "rules": super::redact::RULES.map(|(name, _)| name),
            "copy": "not written: it would hold what is masked here; pointers name the client's own file",
        })),
    })
}

fn damage(counts: &Counts) -> Value {
    let named = counts.damaged.iter();
    json!({
        "lines": counts.damage.values().sum::<u64>(),
        "by_kind": counts.damage,
        "first": named.map(|(row, at, why)| json!({ "row": row, "byte": at, "why": why })).collect::<Vec<_>>(),
    })
}

fn compactions(survey: &Survey, collected: &Collected) -> Value {
    let one = |(k, boundary): (usize, &super::survey::Boundary)| {
        let gone = |entries: &[super::entry::Entry]| entries.iter().filter(|e| e.dropped == Some(k)).count();
        json!({
            "row": boundary.row,
            "at": boundary.at_ms.map(stamp),
            "trigger": if boundary.auto { "auto" } else { "manual" },
            "tokens_before": boundary.pre,
            "tokens_after": boundary.post,
            "messages_dropped": gone(&collected.said),
            "decisions_dropped": gone(&collected.decided),
        })
    };
    (1..).zip(&survey.boundaries).map(one).collect()
}
