//! The first reading: which rows are live, where compactions are, what session it is.

use std::io;

use memchr::memmem;
use serde_json::Value;

use super::branch::{self, Link, State};
use super::source::Source;
use crate::client::transcript::Times;
use crate::client::transcript::branch::hash;
use crate::client::transcript::row::{Kind, Parent, Row, leading_type};
use crate::client::transcript::texts::plain;
use crate::client::transcript::words::{Words, is_queued};

/// A compaction.
#[derive(Debug, Clone, Default)]
pub struct Boundary {
    /// Which link it is.
    pub link: usize,
    /// Line, from 1.
    pub row: u64,
    /// Epoch milliseconds.
    pub at_ms: Option<i64>,
    /// Set off by the client.
    pub auto: bool,
    /// Context before it, in tokens.
    pub pre: u64,
    /// Context after it, where the client says.
    pub post: Option<u64>,
    /// Hashes of the rows that it kept.
    kept: Vec<u64>,
    /// First and last link that it kept.
    pub kept_links: Option<(usize, usize)>,
}

/// What the first reading found.
#[derive(Debug, Default)]
pub struct Survey {
    /// What became of each row of the conversation, in the order of the file.
    pub states: Vec<State>,
    /// Compactions of the live branch.
    pub boundaries: Vec<Boundary>,
    /// `sessionId` of the last row that has one.
    pub session: Option<String>,
    /// `cwd` of the first row that has one: the client looks for a session by the directory it began in.
    pub started_in: Option<String>,
    /// `cwd` of the last row that has one.
    pub cwd: Option<String>,
    /// The client's version there.
    pub version: Option<String>,
    /// The title that the person gave.
    pub custom_title: Option<String>,
    /// The title that the client made up.
    pub ai_title: Option<String>,
    /// The model that answered last.
    pub model: Option<String>,
    /// When, epoch milliseconds, and how long.
    pub times: Times,
    /// `uuid` of the compaction that it begins with: what was before stands elsewhere.
    pub begins_with: Option<String>,
    /// The prompt that a note of a rewind would belong to.
    prompt: Option<usize>,
}

/// Whether a row is one of the conversation's.
pub fn is_link(row: &Row) -> bool {
    row.uuid.is_some() && !row.sidechain
}

/// Reads it all once.
pub fn survey(source: &Source, tick: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let mut links: Vec<Link> = Vec::new();
    let mut words = Words::default();
    source.each(&mut |line| {
        tick(line.span.at)?;
        let Some(bytes) = line.bytes else { return Ok(()) };
        match Row::read(bytes) {
            Ok(Some(row)) if is_link(&row) => survey.row(&row, line.number, &mut links, &mut words),
            Ok(Some(row)) if row.kind == Kind::Other => survey.elsewhere(row.type_name, bytes, &mut links),
            Ok(None) => survey.elsewhere(leading_type(bytes).unwrap_or_default(), bytes, &mut links),
            _ => {}
        }
        Ok(())
    })?;
    links.shrink_to_fit();
    survey.find_kept(&links);
    survey.states = branch::states(&links);
    let states = &survey.states;
    survey.boundaries.retain(|boundary| states.get(boundary.link) == Some(&State::Live));
    Ok(survey)
}

impl Survey {
    fn row(&mut self, row: &Row, number: u64, links: &mut Vec<Link>, words: &mut Words) {
        let boundary = row.kind == Kind::System && row.subtype == Some(b"compact_boundary");
        let parent = match row.parent {
            Parent::Row(parent) => hash(parent),
            _ if boundary => row.logical_parent.map_or(0, hash),
            _ => 0,
        };
        let typed = row.attachment.as_ref().is_some_and(is_queued);
        let prompt = words.is_prompt(row);
        let moves = matches!(row.kind, Kind::User | Kind::Assistant) || boundary || typed;
        let set = |on: bool, flag: u32| if on { flag } else { 0 };
        let flags = set(prompt, branch::PROMPT)
            | set(row.message.has_result, branch::RESULT)
            | set(typed, branch::MID_TURN)
            | set(moves, branch::MOVES)
            | set(boundary, branch::BOUNDARY)
            | set(row.prompt_index == Some(1), branch::FIRST)
            | set(row.parent == Parent::Root, branch::ROOT);
        let turn = row.prompt_id.map_or(0, |id| u32::try_from(hash(id) >> 32).unwrap_or(0) | 1);
        if prompt {
            self.prompt = Some(links.len());
        }
        if boundary {
            let compact = row.compact.clone().unwrap_or_default();
            self.boundaries.push(Boundary {
                link: links.len(),
                row: number,
                at_ms: row.at_ms,
                auto: compact.auto,
                pre: compact.pre,
                post: compact.post,
                kept: compact.kept.iter().map(|kept| hash(kept)).collect(),
                kept_links: None,
            });
        }
        if links.is_empty() && boundary {
            self.begins_with = row.uuid.map(|uuid| plain(uuid).into_owned());
        }
        links.push(Link { uuid: row.uuid.map_or(1, hash), parent, turn, flags });
        self.facts(row);
    }

    fn facts(&mut self, row: &Row) {
        let keep = |place: &mut Option<String>, text: Option<&[u8]>| {
            let Some(text) = text else { return };
            if place.as_ref().is_none_or(|have| have.as_bytes() != text) {
                *place = Some(plain(text).into_owned());
            }
        };
        keep(&mut self.session, row.session);
        keep(&mut self.cwd, row.cwd);
        if self.started_in.is_none() {
            self.started_in.clone_from(&self.cwd);
        }
        keep(&mut self.version, row.version);
        keep(&mut self.model, row.message.model.filter(|model| *model != b"<synthetic>"));
        row.at_ms.into_iter().for_each(|at| self.times.pass(at));
    }

    /// A row outside the conversation.
    fn elsewhere(&mut self, kind: &[u8], line: &[u8], links: &mut [Link]) {
        const NOWHERE: &[u8] = b"\"leafUuid\":\"00000000-0000-0000-0000-000000000000\"";
        match kind {
            b"last-prompt" => {
                let explicit = memmem::find(line, NOWHERE).is_some()
                    && memmem::find(line, b"\"explicit\":true").is_some();
                let prompt = self.prompt.take().filter(|_| explicit);
                if let Some(prompt) = prompt.and_then(|at| links.get_mut(at)) {
                    prompt.flags |= branch::TAKEN_BACK;
                }
            }
            b"custom-title" => {
                self.custom_title = text_of(line, "customTitle").or_else(|| self.custom_title.take());
            }
            b"ai-title" => self.ai_title = text_of(line, "aiTitle").or_else(|| self.ai_title.take()),
            _ => {}
        }
    }

    /// Rows that a compaction keeps are a piece of the conversation: from the first to the last of them.
    fn find_kept(&mut self, links: &[Link]) {
        let most = self.boundaries.iter().map(|boundary| boundary.kept.len()).sum();
        let mut wanted: Vec<(u64, usize)> = Vec::with_capacity(most);
        for (n, boundary) in self.boundaries.iter().enumerate() {
            wanted.extend(boundary.kept.iter().map(|kept| (*kept, n)));
        }
        wanted.sort_unstable();
        for (at, link) in links.iter().enumerate() {
            let from = wanted.partition_point(|(uuid, _)| *uuid < link.uuid);
            for (_, n) in wanted[from..].iter().take_while(|(uuid, _)| *uuid == link.uuid) {
                let boundary = &mut self.boundaries[*n];
                if at < boundary.link {
                    let (first, last) = boundary.kept_links.unwrap_or((at, at));
                    boundary.kept_links = Some((first.min(at), last.max(at)));
                }
            }
        }
        for boundary in &mut self.boundaries {
            boundary.kept = Vec::new();
        }
    }

    /// Which compaction took a row out of the context; counted from 1 among those of the live branch.
    pub fn dropped_at(&self, link: usize) -> Option<usize> {
        let from = self.boundaries.partition_point(|boundary| boundary.link <= link);
        let kept = |boundary: &&Boundary| {
            boundary.kept_links.is_some_and(|(first, last)| (first..=last).contains(&link))
        };
        let after = self.boundaries[from..].iter();
        after.take_while(kept).count().checked_add(from + 1).filter(|at| *at <= self.boundaries.len())
    }

    /// The session's title: the person's, else the client's.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref())
    }
}

fn text_of(line: &[u8], key: &str) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    value[key].as_str().map(str::to_owned)
}
