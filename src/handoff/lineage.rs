//! Where a conversation began that a transcript holds only the end of.
//!
//! `--fork-session` copies the context, not the conversation (2.1.332): of a session that was compacted the
//! fork's transcript holds the rows from the last compaction on, that one first, with its `uuid` and with what
//! it hung on as `logicalParentUuid`. All rows before it stand in the transcript that was forked, whose id is the
//! `session_id` of copied rows (`sessionId` is the fork's). `/branch` copies everything.

use std::path::{Path, PathBuf};

use super::source::{Piece, Source};
use super::survey::is_link;
use crate::base::id::SessionId;
use crate::client::projects;
use crate::client::transcript::row::{Kind, Row};
use crate::client::transcript::texts::plain;

/// Sessions that are looked into for one piece.
const LOOKED_INTO_MAX: usize = 16;

/// What a transcript says of where it comes from.
#[derive(Debug, Default)]
pub struct Origin {
    /// `uuid` of the compaction that it begins with.
    boundary: Option<String>,
    /// Sessions whose rows it holds copies of.
    sessions: Vec<String>,
    begun: bool,
}

impl Origin {
    /// Takes a row of the conversation, in the order of the file.
    pub fn take(&mut self, row: &Row) {
        if !self.begun && row.kind == Kind::System && row.subtype == Some(b"compact_boundary") {
            self.boundary = row.uuid.map(|uuid| plain(uuid).into_owned());
        }
        self.begun = true;
        let copied = row.copied_from.filter(|from| Some(*from) != row.session);
        if let Some(from) = copied.filter(|_| self.sessions.len() < LOOKED_INTO_MAX) {
            let from = plain(from);
            if !self.sessions.iter().any(|have| *have == from) {
                self.sessions.push(from.into_owned());
            }
        }
    }

    /// Whether the conversation has a beginning that is not in what was read.
    pub fn is_elsewhere(&self) -> bool {
        self.boundary.is_some()
    }
}

/// What comes before the source, where it begins with a compaction that another transcript holds too.
pub fn before(source: &Source, origin: &Origin) -> Option<Piece> {
    let boundary = origin.boundary.as_deref()?;
    let known: Vec<&Path> = source.pieces().map(|(_, piece)| &*piece.path).collect();
    let mut sessions = origin.sessions.clone();
    let mut next = 0;
    while let Some(id) = sessions.get(next).filter(|_| next < LOOKED_INTO_MAX) {
        next += 1;
        let path = SessionId::parse(id).and_then(|id| transcript(known.last()?, &id));
        let Some(path) = path.filter(|path| !known.contains(&&**path)) else { continue };
        let Some((piece, more)) = look(&path, boundary) else { continue };
        if piece.is_some() {
            return piece;
        }
        // A fork of a fork: it has the compaction, and nothing before it either.
        for id in more {
            if !sessions.contains(&id) {
                sessions.push(id);
            }
        }
    }
    None
}

/// The session's transcript: beside this one, or in another project.
fn transcript(beside: &Path, session: &SessionId) -> Option<PathBuf> {
    let sibling = beside.with_file_name(format!("{session}.jsonl"));
    if sibling.is_file() {
        return Some(sibling);
    }
    projects::transcript(beside.ancestors().nth(3)?, session)
}

/// What stands before the compaction in a transcript, if any row of a conversation does; and whose rows it
/// holds copies of.
fn look(path: &Path, boundary: &str) -> Option<(Option<Piece>, Vec<String>)> {
    let source = Source::open(path).ok()?;
    let (mut origin, mut rows, mut found) = (Origin::default(), 0_u64, None);
    let read = source.each(&mut |line| {
        if let Some(Ok(Some(row))) = line.bytes.map(Row::read)
            && is_link(&row)
        {
            origin.take(&row);
            if found.is_none() && row.uuid == Some(boundary.as_bytes()) {
                found = Some((line.span.at, rows));
            }
            rows += 1;
        }
        Ok(())
    });
    read.ok()?;
    let (at, _) = match found {
        Some((_, 0)) | None => return Some((None, origin.sessions)),
        Some(found) => found,
    };
    let mut piece = Piece::open(path).ok()?;
    piece.end = at;
    Some((Some(piece), origin.sessions))
}
