//! From what was collected to the parts that are read in full, within the budget.

use std::io::{self, Write as _};

use serde::Serialize;

use super::ancestor::{self, Ancestor};
use super::collect::Collected;
use super::entry::{Entry, clip_pasted};
use super::parts::{Part, Parts, escape};
use super::redact::Redactor;
use super::render::shown;
use super::survey::{Boundary, Survey};
use crate::base::span::stamp;
use crate::base::tokens::short;
use crate::store::exports::Draft;

/// Tokens that a heading and its share of the marks take, about.
const OVERHEAD: u64 = 30;

/// What the budget made of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Tokens that the must-read parts may come to.
    pub tokens: u64,
    /// What they would come to uncut, by estimate.
    pub uncut: u64,
    /// Decisions that went to 02b, the oldest of them.
    pub decisions_moved: usize,
    /// Pasted blocks over 4,000 characters that were clipped; 0 where that was not needed.
    pub blocks_clipped: u64,
    /// What the must-read parts come to, by estimate.
    pub used: u64,
    /// Whether that is within the budget.
    pub fits: bool,
}

/// What has to give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    uncut: u64,
    /// The first decision that stays in 02.
    first: usize,
    clip: bool,
}

/// Oldest decisions go first, pasted blocks second; what the person wrote stays.
fn plan(said: &[Entry], decided: &[Entry], more: u64, budget: u64) -> Plan {
    let copies = |entry: &Entry| if entry.dropped.is_some() { 2 } else { 1 };
    let size = |entry: &Entry| (entry.tokens + OVERHEAD) * copies(entry);
    let uncut = more + said.iter().chain(decided).map(size).sum::<u64>();
    let (mut left, mut first) = (uncut, 0);
    while left > budget && first < decided.len() {
        // In 05 a line stays that says where it went.
        let stays = if decided[first].dropped.is_some() { OVERHEAD } else { 0 };
        left = left.saturating_sub(size(&decided[first]).saturating_sub(stays));
        first += 1;
    }
    Plan { uncut, first, clip: left > budget }
}

/// All parts, by kind.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// What the files' names begin with.
    pub name: String,
    /// Whether it is to be read in full.
    pub must_read: bool,
    /// The files, in order.
    pub parts: Vec<Part>,
}

/// What is made of.
pub struct Material<'a> {
    /// The place.
    pub draft: &'a Draft,
    /// Found by the first reading.
    pub survey: &'a Survey,
    /// Found by the second.
    pub collected: &'a Collected,
    /// The file that pointers name.
    pub origin: &'a str,
    /// A brief.
    pub brief: Option<&'a str>,
    /// The generations before, from the first on.
    pub ancestors: &'a [Ancestor],
    /// In tokens.
    pub budget: u64,
}

/// Writes the parts.
pub fn assemble(material: &Material, redactor: &mut Redactor) -> io::Result<(Vec<Group>, Budget)> {
    let Material { draft, survey, collected, .. } = material;
    let mut groups = Vec::new();
    if let Some(brief) = material.brief {
        let mut parts = Parts::new(draft, "00-brief", "# Brief\n");
        parts.text(&shown(brief.to_owned(), redactor))?;
        groups.push(group("00-brief", parts)?);
    }
    let mut generations = Vec::new();
    for n in 0..material.ancestors.len() {
        let (name, parts) = ancestor::words(draft, n, material.ancestors, redactor)?;
        generations.push(group(&name, parts)?);
    }
    let more = groups.iter().chain(&generations).map(Group::tokens).sum();
    let plan = plan(&collected.said, &collected.decided, more, material.budget);
    let mut writer = Writer { material, plan, clipped: 0 };
    groups.push(writer.said()?);
    groups.append(&mut generations);
    groups.push(writer.decided()?);
    if plan.first > 0 {
        writer.older()?;
    }
    if !survey.boundaries.is_empty() {
        groups.push(writer.dropped()?);
    }
    let used = groups.iter().map(Group::tokens).sum();
    let budget = Budget {
        tokens: material.budget,
        uncut: plan.uncut,
        decisions_moved: plan.first,
        blocks_clipped: writer.clipped,
        used,
        fits: used <= material.budget,
    };
    Ok((groups, budget))
}

impl Group {
    fn tokens(&self) -> u64 {
        self.parts.iter().map(|part| part.tokens).sum()
    }
}

fn group(name: &str, parts: Parts) -> io::Result<Group> {
    Ok(Group { name: name.to_owned(), must_read: true, parts: parts.finish()? })
}

struct Writer<'a> {
    material: &'a Material<'a>,
    plan: Plan,
    clipped: u64,
}

impl Writer<'_> {
    fn said(&mut self) -> io::Result<Group> {
        let collected = self.material.collected;
        let mut title =
            "# What the person said\n\nVerbatim, in order, each message once. Lines that begin with \
                         two brackets and `longhaul mark` are read marks and belong to no message; control \
                         characters are written as \\xNN, and a line that looks like one of these headings has a \
                         backslash before it.\n"
                .to_owned();
        if self.material.survey.begins_with.is_some() {
            title.push_str(
                "Not here: what was said before the transcript begins, which is with a compaction; the session that \
                 it was forked from was not found.\n",
            );
        }
        let rewound = collected.counts.rewound_messages;
        if rewound > 0 {
            title.push_str(&format!(
                "Left out: {rewound} taken back by a rewind; 03 has them, marked [rewound].\n"
            ));
        }
        if self.plan.first > 0 {
            title.push_str(&format!(
                "To stay within {} tokens, the {} oldest decisions are in 02b-older-decisions.md, which is for \
                 searching.\n",
                short(self.material.budget),
                self.plan.first
            ));
        }
        if self.plan.clip {
            title.push_str(
                "To stay within the budget, long pasted blocks are clipped and say where they are whole.\n",
            );
        }
        title.push('\n');
        let mut parts = Parts::new(self.material.draft, "01-user-messages", &title);
        for (n, entry) in collected.said.iter().enumerate() {
            parts.entry(&format!("## {}. {}\n", n + 1, heading(entry)))?;
            let (text, clipped) = self.text(entry)?;
            self.clipped += clipped;
            body(&mut parts, entry, &text)?;
        }
        group("01-user-messages", parts)
    }

    fn decided(&mut self) -> io::Result<Group> {
        let title = "# What the assistant wrote at length, on the live branch\n\n";
        let mut parts = Parts::new(self.material.draft, "02-decisions", title);
        for (n, entry) in self.material.collected.decided.iter().enumerate().skip(self.plan.first) {
            parts.entry(&format!("## {}. {}\n", n + 1, heading(entry)))?;
            body(&mut parts, entry, &self.text(entry)?.0)?;
        }
        group("02-decisions", parts)
    }

    /// Decisions that found no room: for searching.
    fn older(&mut self) -> io::Result<()> {
        let file = self.material.draft.create("02b-older-decisions.md")?;
        let mut out = io::BufWriter::new(file);
        writeln!(out, "# Older decisions, for searching\n")?;
        for (n, entry) in self.material.collected.decided.iter().enumerate().take(self.plan.first) {
            let text = self.text(entry)?.0;
            writeln!(out, "## {}. {}\n{}\n", n + 1, heading(entry), escape(&text))?;
        }
        out.flush()
    }

    fn dropped(&mut self) -> io::Result<Group> {
        let title = "# What compactions took out of the context\n\nFor each, the messages and decisions that were \
                     in the context before it and not after, numbered as in 01 and 02.\n\n";
        let mut parts = Parts::new(self.material.draft, "05-dropped-context", title);
        let collected = self.material.collected;
        let numbered = |entries| (1..).zip::<&[Entry]>(entries);
        for (k, boundary) in (1..).zip(&self.material.survey.boundaries) {
            parts.text(&figures(k, boundary))?;
            let gone = |(_, entry): &(usize, &Entry)| entry.dropped == Some(k);
            let mut rows: Vec<(usize, &Entry)> = numbered(&collected.said).filter(gone).collect();
            rows.extend(numbered(&collected.decided).filter(gone));
            rows.sort_by_key(|(_, entry)| entry.row);
            for (n, entry) in rows {
                let kind = if entry.how.is_some() { "Message" } else { "Decision" };
                parts.entry(&format!("### {kind} {n}, {}\n", heading(entry)))?;
                if entry.how.is_none() && n <= self.plan.first {
                    parts.text("(in 02b-older-decisions.md)\n\n")?;
                } else {
                    body(&mut parts, entry, &self.text(entry)?.0)?;
                }
            }
        }
        group("05-dropped-context", parts)
    }

    fn text(&self, entry: &Entry) -> io::Result<(String, u64)> {
        let text = self.material.collected.texts.of(entry)?;
        if !self.plan.clip || entry.spare == 0 {
            return Ok((text, 0));
        }
        let pointer = format!("; row {}, byte {} of {}", entry.row, entry.at, self.material.origin);
        Ok(clip_pasted(&text, &pointer).unwrap_or((text, 0)))
    }
}

fn body(parts: &mut Parts, entry: &Entry, text: &str) -> io::Result<()> {
    parts.text(text)?;
    for (kind, bytes) in &entry.media {
        let kind: String = kind.chars().filter(|sign| !sign.is_control()).take(80).collect();
        parts.text(&format!("(with {kind}, about {bytes} bytes; row {}, byte {})\n", entry.row, entry.at))?;
    }
    parts.text("\n")
}

fn date(at_ms: Option<i64>) -> String {
    at_ms.map_or_else(|| "no date".to_owned(), stamp)
}

fn heading(entry: &Entry) -> String {
    let mut heading = date(entry.at_ms);
    if let Some(how) = entry.how {
        heading.push_str(", ");
        heading.push_str(how.label());
    }
    if !entry.again.is_empty() {
        // Hundreds of dates would drown the message.
        const DATES_MAX: usize = 50;
        let dates: Vec<String> = entry.again.iter().take(DATES_MAX).map(|at| date(*at)).collect();
        let more = entry.again.len().saturating_sub(DATES_MAX);
        let more = if more > 0 { format!(" and {more} times more") } else { String::new() };
        heading.push_str(&format!(
            ", said {} times: again {}{more}",
            entry.again.len() + 1,
            dates.join(", ")
        ));
    }
    heading
}

fn figures(k: usize, boundary: &Boundary) -> String {
    let kind = if boundary.auto { "automatic" } else { "manual" };
    let post = boundary.post.map_or_else(|| "an unknown number of".to_owned(), short);
    format!(
        "## Compaction {k}, {}, {kind}: {} tokens before it, {post} after it\n\n",
        date(boundary.at_ms),
        short(boundary.pre)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::transcript::words::How;

    fn entry(how: Option<How>, tokens: u64, spare: u64, dropped: bool) -> Entry {
        let mut entry = Entry::new(how, 1, 0, None);
        (entry.tokens, entry.spare, entry.dropped) = (tokens, spare, dropped.then_some(1));
        entry
    }

    #[test]
    fn decisions_give_way_from_the_oldest_on_and_pasted_blocks_only_then() {
        let said = [entry(Some(How::Prompt), 970, 500, false)];
        let decided = [entry(None, 470, 0, true), entry(None, 470, 0, false), entry(None, 470, 0, false)];
        let with = |budget| plan(&said, &decided, 0, budget);
        assert_eq!(with(3_000), Plan { uncut: 3_000, first: 0, clip: false });
        assert_eq!(with(2_999).first, 1);
        assert_eq!(with(2_030), Plan { uncut: 3_000, first: 1, clip: false });
        assert_eq!(with(1_100), Plan { uncut: 3_000, first: 3, clip: false });
        assert_eq!(with(1_000), Plan { uncut: 3_000, first: 3, clip: true });
    }
}
