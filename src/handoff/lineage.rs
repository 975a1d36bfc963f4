//! Where a conversation began that a transcript holds only the end of.
//!
//! `--fork-session` copies the context, not the conversation (2.1.332): of a session that was compacted the
//! fork's transcript holds the rows from the last compaction on, that one first, with its `uuid` and with what
//! it hung on as `logicalParentUuid`. All rows before it stand in the transcript that was forked, or that one was
//! forked from. `/branch` copies all that a transcript holds.

use std::io;
use std::path::{Path, PathBuf};

use super::source::{LOOK_EVERY, Piece, Source};
use super::survey::is_link;
use crate::base::id::SessionId;
use crate::client::projects;
use crate::client::transcript::came_from;
use crate::client::transcript::row::Row;

/// Sessions that are looked into for one piece.
const LOOKED_INTO_MAX: usize = 16;

/// What comes before the source, where it begins with a compaction (of this `uuid`) that another transcript
/// holds too. `look` is asked on the way whether to go on; nothing else is an error.
pub fn before(
    source: &Source,
    boundary: &str,
    look: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Option<Piece>> {
    let known: Vec<&Path> = source.pieces().map(|(_, piece)| &*piece.path).collect();
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return Ok(None) };
    let mut sessions = came_from(first);
    let mut next = 0;
    while let Some(id) = sessions.get(next).filter(|_| next < LOOKED_INTO_MAX) {
        next += 1;
        let path = SessionId::parse(id).and_then(|id| transcript(last, &id));
        let Some(path) = path.filter(|path| !known.contains(&&**path)) else { continue };
        look()?;
        if let Some(piece) = up_to(&path, boundary, look)? {
            return Ok(Some(piece));
        }
        // A fork of a fork may have the compaction, and nothing before it either.
        for id in came_from(&path) {
            if !sessions.contains(&id) {
                sessions.push(id);
            }
        }
    }
    Ok(None)
}

/// The session's transcript: beside this one, or in another project.
fn transcript(beside: &Path, session: &SessionId) -> Option<PathBuf> {
    let sibling = beside.with_file_name(format!("{session}.jsonl"));
    if sibling.is_file() {
        return Some(sibling);
    }
    projects::transcript(beside.ancestors().nth(3)?, session)
}

/// What stands before the compaction in a transcript, where rows of the conversation do. One that cannot be read
/// has nothing.
fn up_to(path: &Path, boundary: &str, look: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Option<Piece>> {
    let (Ok(mut piece), Ok(source)) = (Piece::open(path), Source::open(path)) else { return Ok(None) };
    let (mut rows, mut found, mut stopped) = (0_u64, None, false);
    let read = source.each(&mut |line| {
        if line.number.is_multiple_of(LOOK_EVERY) {
            look().inspect_err(|_| stopped = true)?;
        }
        if let Some(Ok(Some(row))) = line.bytes.map(Row::read)
            && is_link(&row)
        {
            if row.uuid == Some(boundary.as_bytes()) {
                found = Some((line.span.at, rows));
                // Nothing behind it is wanted.
                return Err(io::ErrorKind::Interrupted.into());
            }
            rows += 1;
        }
        Ok(())
    });
    match (read, found) {
        (Err(error), _) if stopped => Err(error),
        (_, Some((at, 1..))) => {
            piece.end = at;
            Ok(Some(piece))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stop_ends_the_search_and_what_cannot_be_read_does_not() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(format!("{name}.jsonl"));
        let row = |kind: &str, uuid: &str, session: &str| {
            json!({ "type": kind, "uuid": uuid, "message": {}, "sessionId": session }).to_string() + "\n"
        };
        let earlier: String = (0..LOOK_EVERY).map(|n| row("user", &format!("u{n}"), "first")).collect();
        let behind = row("system", "b", "first") + &row("user", "x", "first");
        fs_err::write(at("first"), format!("{earlier}{behind}")).unwrap();
        let mut copied = json!({ "type": "assistant", "message": {}, "sessionId": "fork" });
        copied["requestSessionId"] = json!("first");
        fs_err::write(at("fork"), format!("{}{copied}\n", row("system", "b", "fork"))).unwrap();
        let source = Source::open(&at("fork")).unwrap();
        let piece = before(&source, "b", &mut || Ok(())).unwrap().unwrap();
        assert_eq!((piece.path, piece.end), (at("first"), earlier.len() as u64));
        let mut looks = 0;
        let stopped = before(&source, "b", &mut || {
            looks += 1;
            if looks < 2 { Ok(()) } else { Err(io::Error::other("stopped")) }
        });
        assert_eq!(stopped.unwrap_err().to_string(), "stopped");
        fs_err::remove_file(at("first")).unwrap();
        fs_err::create_dir(at("first")).unwrap();
        assert!(before(&source, "b", &mut || Ok(())).unwrap().is_none());
    }
}
