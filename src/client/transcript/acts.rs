//! What a session did with files, in order: Read calls and what they returned, answers in a schema, compactions.
//! A look at a short transcript of a headless session; the whole of a row is read (2.1.332):
//!
//! ```text
//! {"type":"assistant","message":{"content":[{"type":"tool_use","id":I,"name":"Read","input":{"file_path":P}}]}}
//! {"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":I,"is_error"?:B,"content":S|[blocks]}]},
//!  "toolUseResult":{"type":"text","file":{"filePath":P,"content":S,"numLines":n,"startLine":n,"totalLines":n}}}
//! ```
//!
//! Results of calls made side by side come in any order. A file that was read before and has not changed comes
//! as another `type`, with no content.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::headless::{ANSWER, READ};
use crate::client::lenient::as_count;
use crate::host::files;

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A part of a file, as Read returned it.
    Returned(Returned),
    /// An answer in the schema, taken by the client.
    Answered(String),
    /// The history was replaced by a summary.
    Compacted,
}

/// What one Read call returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The file, as the client names it.
    pub path: PathBuf,
    /// What the model was given, line numbers and all.
    pub given: String,
    /// The lines of the file in it.
    pub content: String,
    /// The first of them, from 1.
    pub first: u64,
    /// How many the file has.
    pub lines: u64,
}

/// Reads a transcript as it grows.
#[derive(Debug, Default)]
pub struct Acts {
    at: u64,
    /// Calls whose result is not there yet: id, and the answer where it is one.
    open: Vec<(String, Option<Value>)>,
    /// Somebody said something.
    pub conversation: bool,
    /// Nothing behind so many bytes is read; `None`: everything is.
    most: Option<u64>,
}

/// A line longer than this is none of a reading session's, in bytes.
const LINE_MAX: u64 = 64 << 20;

impl Acts {
    /// Those in the first bytes of a transcript.
    pub fn within(bytes: u64) -> Self {
        Self { most: Some(bytes), ..Self::default() }
    }

    /// What was done since the last look. A line that is not finished is left for the next one.
    pub fn since(&mut self, transcript: &Path, act: &mut dyn FnMut(Act)) -> io::Result<()> {
        let mut file = files::open_regular(transcript)?;
        file.seek(SeekFrom::Start(self.at))?;
        let left = self.most.map_or(u64::MAX, |most| most.saturating_sub(self.at));
        let mut reader = BufReader::with_capacity(64 << 10, file.take(left));
        let mut line = Vec::new();
        loop {
            line.clear();
            let got = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
            if got == 0 || (line.last() != Some(&b'\n') && (got as u64) < LINE_MAX) {
                return Ok(());
            }
            self.at += got as u64;
            if let Ok(row) = serde_json::from_slice::<Value>(&line) {
                self.row(&row, act);
            }
        }
    }

    fn row(&mut self, row: &Value, act: &mut dyn FnMut(Act)) {
        if row["isSidechain"] == true {
            return;
        }
        self.conversation |= matches!(row["type"].as_str(), Some("user" | "assistant"));
        let blocks = row["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        match row["type"].as_str() {
            Some("system") if row["subtype"] == "compact_boundary" => act(Act::Compacted),
            Some("assistant") => {
                for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
                    let name = block["name"].as_str().unwrap_or_default();
                    let Some(id) = block["id"].as_str().filter(|_| [READ, ANSWER].contains(&name)) else {
                        continue;
                    };
                    let answer = (name == ANSWER).then(|| block["input"].clone());
                    self.open.push((id.to_owned(), answer));
                }
            }
            Some("user") => {
                for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
                    self.result(block, &row["toolUseResult"], act);
                }
            }
            _ => {}
        }
    }

    fn result(&mut self, block: &Value, detail: &Value, act: &mut dyn FnMut(Act)) {
        let id = block["tool_use_id"].as_str();
        let Some(at) = self.open.iter().position(|(open, _)| Some(open.as_str()) == id) else { return };
        let (_, answer) = self.open.swap_remove(at);
        if block["is_error"] == true {
            return;
        }
        if let Some(answer) = answer {
            return act(Act::Answered(answer.to_string()));
        }
        let file = &detail["file"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let number = |value: &Value| as_count(value).filter(|number| *number > 0);
        let (path, content) = (text(&file["filePath"]), text(&file["content"]));
        let (first, lines) = (number(&file["startLine"]), number(&file["totalLines"]));
        if let (Some(path), Some(content), Some(first), Some(lines)) = (path, content, first, lines) {
            let given = given(&block["content"]);
            act(Act::Returned(Returned { path: PathBuf::from(path), given, content, first, lines }));
        }
    }
}

fn given(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write as _;

    fn call(id: &str, name: &str, input: &Value) -> Value {
        let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        json!({ "type": "assistant", "message": { "content": [block] } })
    }

    fn result(id: &str, detail: &Value, error: bool) -> Value {
        let block = json!({ "type": "tool_result", "tool_use_id": id, "is_error": error, "content": "1\tx" });
        json!({ "type": "user", "message": { "content": [block] }, "toolUseResult": detail })
    }

    #[test]
    fn acts_come_in_order_once_and_only_where_they_succeeded() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("t.jsonl");
        let file = json!({ "file": { "filePath": "/e/1", "content": "x", "numLines": 1, "startLine": 1, "totalLines": 1 } });
        let rows = [
            call("a", READ, &json!({ "file_path": "/e/1" })),
            call("b", READ, &json!({ "file_path": "/e/2" })),
            call("c", "Bash", &json!({})),
            result("b", &file, true),
            result("a", &file, false),
            result("a", &file, false),
            result("c", &file, false),
            json!({ "type": "system", "subtype": "compact_boundary" }),
            json!(7),
            call("d", ANSWER, &json!({ "marks": [] })),
            result("d", &json!("ok"), false),
        ];
        let text = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        let mut acts = Acts::default();
        let (half, rest) = text.split_at(text.len() / 2);
        let mut seen = Vec::new();
        for piece in [half, rest] {
            let mut file = fs_err::OpenOptions::new().append(true).create(true).open(&path).unwrap();
            file.write_all(piece.as_bytes()).unwrap();
            acts.since(&path, &mut |act| seen.push(act)).unwrap();
        }
        let returned =
            Returned { path: "/e/1".into(), given: "1\tx".into(), content: "x".into(), first: 1, lines: 1 };
        let answered = Act::Answered(r#"{"marks":[]}"#.into());
        assert_eq!(seen, [Act::Returned(returned.clone()), Act::Compacted, answered]);
        let mut seen = Vec::new();
        let until_the_answer = text.find("\"d\"").unwrap() as u64;
        Acts::within(until_the_answer).since(&path, &mut |act| seen.push(act)).unwrap();
        assert_eq!(seen, [Act::Returned(returned), Act::Compacted]);
    }
}
