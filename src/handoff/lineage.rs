//! Where a conversation began that a transcript holds only the end of.
//!
//! `--fork-session` copies the context, not the conversation (2.1.332): of a session that was compacted the
//! fork's transcript holds the rows from the last compaction on, that one first, with its `uuid` and with what
//! it hung on as `logicalParentUuid`. All rows before it stand in the transcript that was forked, or that one was
//! forked from. `/branch` copies all that a transcript holds.

use std::path::{Path, PathBuf};

use super::source::{Piece, Source};
use super::survey::is_link;
use crate::base::id::SessionId;
use crate::client::projects;
use crate::client::transcript::came_from;
use crate::client::transcript::row::Row;

/// Sessions that are looked into for one piece.
const LOOKED_INTO_MAX: usize = 16;

/// What comes before the source, where it begins with a compaction (of this `uuid`) that another transcript
/// holds too.
pub fn before(source: &Source, boundary: &str) -> Option<Piece> {
    let known: Vec<&Path> = source.pieces().map(|(_, piece)| &*piece.path).collect();
    let mut sessions = came_from(known.first()?);
    let mut next = 0;
    while let Some(id) = sessions.get(next).filter(|_| next < LOOKED_INTO_MAX) {
        next += 1;
        let path = SessionId::parse(id).and_then(|id| transcript(known.last()?, &id));
        let Some(path) = path.filter(|path| !known.contains(&&**path)) else { continue };
        if let Some(piece) = up_to(&path, boundary) {
            return Some(piece);
        }
        // A fork of a fork may have the compaction, and nothing before it either.
        for id in came_from(&path) {
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

/// What stands before the compaction in a transcript, where rows of the conversation do.
fn up_to(path: &Path, boundary: &str) -> Option<Piece> {
    let (mut rows, mut found) = (0_u64, None);
    let mut piece = Piece::open(path).ok()?;
    let read = Source::open(path).ok()?.each(&mut |line| {
        if let Some(Ok(Some(row))) = line.bytes.map(Row::read)
            && is_link(&row)
        {
            if found.is_none() && row.uuid == Some(boundary.as_bytes()) {
                found = Some((line.span.at, rows));
            }
            rows += 1;
        }
        Ok(())
    });
    read.ok()?;
    let (at, _) = found.filter(|(_, before)| *before > 0)?;
    piece.end = at;
    Some(piece)
}
