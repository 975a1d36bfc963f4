//! Subagents: `<session>/subagents/agent-<id>.jsonl` beside the transcript, with `agent-<id>.meta.json`. Their
//! rows are counted and their last words kept; what they said never counts as the person's.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::redact::Redactor;
use super::render::shown;
use super::source::{LOOK_EVERY, Source};
use crate::client::transcript::blocks::{Block, each};
use crate::client::transcript::row::{Kind, Row};
use crate::client::transcript::texts::unescape;
use crate::host::files;

/// A final answer is kept up to here, in characters.
const ANSWER_MAX: usize = 16_000;
/// Subagents that are looked into; any more are only counted.
const AGENTS_MAX: usize = 2_000;

/// One subagent.
#[derive(Debug, Serialize)]
pub struct Subagent {
    /// Its id.
    pub id: String,
    /// `agentType`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it was started for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where its transcript lies.
    pub transcript: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Lines in it.
    pub rows: u64,
    /// Of these, damaged.
    pub damaged: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Its last text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_answer: Option<String>,
    /// The answer is longer than what is kept.
    pub answer_clipped: bool,
}

/// The subagents of a transcript, and how many there are. `look` is asked on the way whether to go on.
pub fn all(
    transcript: &Path,
    redactor: &mut Redactor,
    look: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<(Vec<Subagent>, usize)> {
    let dir = transcript.with_extension("").join("subagents");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let mut agents = Vec::new();
    for path in paths.iter().take(AGENTS_MAX) {
        look()?;
        match one(path, redactor, look) {
            Ok(agent) => agents.push(agent),
            // Stopped in the middle; or it cannot be read, and is only counted.
            Err(_) => look()?,
        }
    }
    Ok((agents, paths.len()))
}

fn one(
    path: &Path,
    redactor: &mut Redactor,
    look: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Subagent> {
    let source = Source::open(path)?;
    let (mut rows, mut damaged, mut tool_calls, mut answer) = (0, 0, 0, None);
    source.each(&mut |line| {
        rows += 1;
        if rows % LOOK_EVERY == 0 {
            look()?;
        }
        match line.bytes.map(Row::read) {
            Some(Ok(Some(row))) if row.kind == Kind::Assistant && !row.api_error => {
                tool_calls += row.message.tool_uses.len() as u64;
                let _ = each(row.message.content, |block| {
                    if let Block::Text(raw) = block
                        && !raw.is_empty()
                    {
                        let mut text = String::new();
                        unescape(raw, &mut text);
                        answer = Some(text);
                    }
                });
            }
            Some(Ok(_)) => {}
            _ => damaged += 1,
        }
        Ok(())
    })?;
    let meta = files::read_small(&path.with_extension("meta.json"), 1 << 20).ok();
    let meta: Value = meta.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let mut text_of = |key: &str| meta[key].as_str().map(|text| shown(text.to_owned(), redactor));
    let (kind, description) = (text_of("agentType"), text_of("description"));
    let mut answer = answer.map(|text| shown(text, redactor));
    let cut = answer.as_ref().and_then(|text| text.char_indices().nth(ANSWER_MAX)).map(|(at, _)| at);
    if let (Some(text), Some(cut)) = (&mut answer, cut) {
        text.truncate(cut);
    }
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Subagent {
        id: name.strip_prefix("agent-").unwrap_or(&name).to_owned(),
        kind,
        description,
        transcript: path.to_path_buf(),
        bytes: source.end(),
        rows,
        damaged,
        tool_calls,
        final_answer: answer,
        answer_clipped: cut.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_reading_of_a_long_one() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("s/subagents");
        fs_err::create_dir_all(dir.join("agent-none.jsonl")).unwrap();
        let lines = usize::try_from(LOOK_EVERY).unwrap() + 1;
        fs_err::write(dir.join("agent-a.jsonl"), "{}\n".repeat(lines)).unwrap();
        let of = |most: u32| {
            let mut looks = 0;
            let mut look = || {
                looks += 1;
                if looks > most { Err(io::Error::other("stopped")) } else { Ok(()) }
            };
            all(&root.path().join("s.jsonl"), &mut Redactor::default(), &mut look)
        };
        let (agents, count) = of(u32::MAX).unwrap();
        assert_eq!((agents.len(), agents[0].rows, count), (1, lines as u64, 2), "one cannot be read");
        assert_eq!(of(1).unwrap_err().to_string(), "stopped");
    }
}
