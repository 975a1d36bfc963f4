//! `<config>/projects/<slug>/<session-id>.jsonl`: where transcripts lie.

use std::path::{Path, PathBuf};

use crate::base::id::SessionId;

/// The session's transcript. Where the same id lies in several projects, the newest one.
pub fn transcript(config: &Path, session: &SessionId) -> Option<PathBuf> {
    let name = format!("{session}.jsonl");
    let projects = std::fs::read_dir(config.join("projects")).ok()?;
    projects
        .flatten()
        .map(|project| project.path().join(&name))
        .filter_map(|path| {
            let meta = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            Some((meta.modified().ok()?, path))
        })
        .max()
        .map(|(_, path)| path)
}

/// The id a transcript's file name holds.
pub fn session_of(transcript: &Path) -> Option<SessionId> {
    SessionId::parse(transcript.file_stem()?.to_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_found_in_whatever_project_it_lies() {
        let root = tempfile::tempdir().unwrap();
        let id = SessionId::parse("s-1").unwrap();
        assert_eq!(transcript(root.path(), &id), None);
        let dir = root.path().join("projects/-work");
        fs_err::create_dir_all(&dir).unwrap();
        fs_err::write(dir.join("s-1.jsonl"), "").unwrap();
        let found = transcript(root.path(), &id).unwrap();
        assert_eq!(found, dir.join("s-1.jsonl"));
        assert_eq!(session_of(&found), Some(id));
    }
}
