//! Which sessions a transcript's own came from, as its rows tell. Seen on 2.1.332:
//!
//! * /branch: every copied row has `forkedFrom:{"sessionId":S,…}`, S being the session it was branched from.
//! * /branch and `--fork-session`: copied assistant rows have `requestSessionId`, the session that the request was
//!   made in: in a fork of a fork the oldest session stands on the first rows, the nearest on the last. Rows of
//!   the session itself have none.
//! * `session_id` is the session that the *process* began with, on rows written on a terminal. After /clear that
//!   is the session before it, or an earlier one. After /resume it is a session that has nothing to do with this
//!   one: it counts only where it stands on a session's first response or before it.

use std::collections::VecDeque;
use std::path::Path;

use super::lines::{Line, Options, Place, read_spans};
use super::row::leading_type;
use super::scan::{Cursor, Damaged};
use crate::base::id::SessionId;
use crate::host::files;

/// What is read at most, in bytes. Copied rows stand in front.
const MOST: u64 = 64 << 20;
/// What is read at first; each further reading goes twice as far.
const FIRST: u64 = 512 << 10;
/// So many responses running that were not copied: there will be no copied ones behind them.
const OWN_RESPONSES: u32 = 20;
/// So many sessions are named at most.
const SESSIONS: usize = 32;

/// The sessions that this transcript's came from by forks and /clear, the nearest first.
pub fn came_from(transcript: &Path) -> Vec<String> {
    let mut found = Found::default();
    if let Ok(file) = files::open_regular(transcript) {
        let mut place = Place::default();
        let mut end = FIRST;
        loop {
            let options = Options { end, ..Options::default() };
            let read = read_spans(&file, &mut place, options, &mut |line, _| found.line(line));
            if read.is_err() || place.seen < end || found.own >= OWN_RESPONSES || end >= MOST {
                break;
            }
            end = end.saturating_mul(2).min(MOST);
        }
    }
    let mut all = Vec::new();
    for id in found.branched.into_iter().chain(found.requested).chain(found.process) {
        if !all.contains(&id) && all.len() < SESSIONS {
            all.push(id);
        }
    }
    all
}

#[derive(Debug, Default)]
struct Found {
    branched: VecDeque<String>,
    requested: VecDeque<String>,
    process: Option<String>,
    /// Responses that were not copied, running.
    own: u32,
    responded: bool,
}

impl Found {
    fn line(&mut self, line: Line) {
        let Line::Whole(line) = line else { return };
        let elsewhere = |kind: &[u8]| !matches!(kind, b"user" | b"assistant" | b"attachment" | b"system");
        if self.own >= OWN_RESPONSES || leading_type(line).is_some_and(elsewhere) {
            return;
        }
        if let Ok(marks) = Marks::read(line)
            && !marks.sidechain
        {
            self.row(&marks);
        }
    }

    fn row(&mut self, marks: &Marks) {
        let Some(own) = marks.session else { return };
        let other = |id: Option<&[u8]>| {
            let id = SessionId::parse(std::str::from_utf8(id.filter(|id| *id != own)?).ok()?)?;
            Some(id.as_str().to_owned())
        };
        let (branched, requested) = (other(marks.forked_from), other(marks.requested));
        let copied = branched.is_some() || requested.is_some();
        nearest(&mut self.branched, branched);
        nearest(&mut self.requested, requested);
        if !self.responded && self.process.is_none() {
            self.process = other(marks.process);
        }
        if marks.response {
            self.responded = true;
            self.own = if copied { 0 } else { self.own + 1 };
        }
    }
}

/// The later a session is named, the nearer it is.
fn nearest(line: &mut VecDeque<String>, id: Option<String>) {
    if let Some(id) = id.filter(|id| line.front() != Some(id)) {
        line.retain(|other| *other != id);
        line.truncate(SESSIONS);
        line.push_front(id);
    }
}

/// What a row says of sessions.
#[derive(Debug, Default)]
struct Marks<'a> {
    response: bool,
    sidechain: bool,
    session: Option<&'a [u8]>,
    process: Option<&'a [u8]>,
    requested: Option<&'a [u8]>,
    forked_from: Option<&'a [u8]>,
}

impl<'a> Marks<'a> {
    fn read(line: &'a [u8]) -> Result<Self, Damaged> {
        let mut marks = Self::default();
        Cursor::new(line).object(|key, at| {
            match key {
                b"type" => marks.response = at.text()? == Some(b"assistant"),
                b"isSidechain" => marks.sidechain = at.is_true()?,
                b"sessionId" => marks.session = at.text()?,
                b"session_id" => marks.process = at.text()?,
                b"requestSessionId" => marks.requested = at.text()?,
                b"forkedFrom" => at.object(|key, at| {
                    match key {
                        b"sessionId" => marks.forked_from = at.text()?,
                        _ => drop(at.skip()?),
                    }
                    Ok(())
                })?,
                _ => drop(at.skip()?),
            }
            Ok(())
        })?;
        Ok(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(rows: &[Value]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let text: String = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        fs_err::write(&path, text).unwrap();
        came_from(&path)
    }

    fn row(kind: &str, marks: &Value) -> Value {
        let mut row = json!({ "parentUuid": null, "isSidechain": false, "message": {}, "type": kind,
            "toolUseResult": { "forkedFrom": { "sessionId": "in-a-tool" } }, "sessionId": "own" });
        row.as_object_mut().unwrap().extend(marks.as_object().unwrap().clone());
        row
    }

    #[test]
    fn a_session_of_its_own_came_from_nowhere() {
        let own = [
            row("user", &json!({})),
            row("assistant", &json!({ "session_id": "own", "requestSessionId": "own" })),
        ];
        assert_eq!(of(&own), [""; 0]);
        assert_eq!(came_from(Path::new("/none")), [""; 0]);
        assert_eq!(
            of(&[json!("x"), json!({}), row("assistant", &json!({ "requestSessionId": 7 }))]),
            [""; 0]
        );
    }

    #[test]
    fn a_fork_of_a_fork_names_the_nearest_first() {
        let rows = [
            row("user", &json!({})),
            row("assistant", &json!({ "requestSessionId": "first" })),
            row("assistant", &json!({ "requestSessionId": "second" })),
            row("assistant", &json!({ "requestSessionId": "second", "session_id": "process" })),
            row("assistant", &json!({ "requestSessionId": "../x" })),
            row("assistant", &json!({ "session_id": "own" })),
        ];
        assert_eq!(of(&rows), ["second", "first"]);
    }

    #[test]
    fn a_branch_names_what_it_was_branched_from() {
        let forked = json!({ "forkedFrom": { "messageUuid": "u", "sessionId": "third" } });
        let mut answer = forked.clone();
        answer["requestSessionId"] = json!("first");
        let rows = [row("user", &forked), row("assistant", &answer), row("user", &json!({}))];
        assert_eq!(of(&rows), ["third", "first"]);
    }

    #[test]
    fn after_clear_the_process_tells_and_after_resume_it_does_not() {
        let before = json!({ "session_id": "before" });
        let cleared = [row("user", &json!({})), row("attachment", &before), row("assistant", &before)];
        assert_eq!(of(&cleared), ["before"]);
        let resumed = [row("user", &json!({})), row("assistant", &json!({})), row("assistant", &before)];
        assert_eq!(of(&resumed), [""; 0]);
    }

    #[test]
    fn a_subagents_rows_say_nothing_and_what_is_not_copied_ends_the_search() {
        let strange = json!({ "requestSessionId": "strange", "isSidechain": true });
        assert_eq!(of(&[row("assistant", &strange)]), [""; 0]);
        let mut rows = vec![row("assistant", &json!({ "requestSessionId": "first" }))];
        rows.extend((0..OWN_RESPONSES).map(|_| row("assistant", &json!({}))));
        rows.push(row("assistant", &json!({ "requestSessionId": "late" })));
        assert_eq!(of(&rows), ["first"]);
    }

    #[test]
    fn copied_rows_are_followed_past_the_first_reading() {
        let long = "x".repeat(usize::try_from(FIRST).unwrap());
        let rows = [
            row("assistant", &json!({ "requestSessionId": "first", "long": long })),
            row("user", &json!({ "long": long })),
            row("assistant", &json!({ "requestSessionId": "second" })),
        ];
        assert_eq!(of(&rows), ["second", "first"]);
    }
}
