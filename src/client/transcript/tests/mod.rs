//! What a transcript says, row by row: a small hand-written log for each case.
#![allow(clippy::needless_pass_by_value)] // A `json!` at the call reads better without a borrow.

mod branch;
mod cases;
mod counts;
mod files;
mod properties;

#[path = "../../../../tests/support/transcripts.rs"]
mod transcripts;

use std::fs::File;
use std::io::Write as _;

use serde_json::{Value, json};

use super::{Advance, Figures, Progress, Tail};

/// Epoch milliseconds of the first row of a log.
const START: i64 = 1_790_000_000_000;

/// A transcript under construction. Rows hang on the one before and are a second apart.
struct Log {
    bytes: Vec<u8>,
    leaf: Option<String>,
    now: i64,
    serial: u64,
    turn: u64,
}

impl Log {
    fn new() -> Self {
        Self { bytes: Vec::new(), leaf: None, now: START, serial: 0, turn: 0 }
    }

    /// A line as it is.
    fn raw(&mut self, line: impl AsRef<[u8]>) -> &mut Self {
        self.bytes.extend_from_slice(line.as_ref());
        self.bytes.push(b'\n');
        self
    }

    /// A row of the chain; members given here win over the usual ones. Its uuid can be had by [`Self::leaf`].
    fn row(&mut self, members: Value) -> &mut Self {
        self.serial += 1;
        self.now += 1000;
        let uuid = format!("uuid-{}", self.serial);
        let mut row = json!({"parentUuid": self.leaf, "isSidechain": false, "uuid": uuid,
            "timestamp": transcripts::stamp(self.now)});
        let Value::Object(members) = members else { panic!("a row is an object") };
        for (key, value) in members {
            row[key] = value;
        }
        self.leaf = Some(uuid);
        self.raw(serde_json::to_vec(&row).unwrap())
    }

    fn leaf(&self) -> String {
        self.leaf.clone().unwrap()
    }

    /// Goes on from an earlier row.
    fn back_to(&mut self, uuid: &str) -> &mut Self {
        self.leaf = Some(uuid.to_owned());
        self
    }

    fn wait(&mut self, ms: i64) -> &mut Self {
        self.now += ms;
        self
    }

    /// A typed prompt, the next one.
    fn prompt(&mut self, text: &str) -> &mut Self {
        self.turn += 1;
        self.prompt_at(text, self.turn)
    }

    /// A typed prompt with this `promptIndex`.
    fn prompt_at(&mut self, text: &str, index: u64) -> &mut Self {
        self.turn = index;
        let id = format!("prompt-{}", self.serial);
        self.row(json!({"type": "user", "message": {"role": "user", "content": text}, "promptId": id,
            "origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human",
            "turnPosition": {"promptIndex": index, "turnIndex": index}}))
    }

    /// A response of one row whose context comes to `total`, of which `output` is output.
    fn response(&mut self, id: &str, total: u64, output: u64) -> &mut Self {
        let usage = json!({"input_tokens": 3, "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": total - output - 103, "output_tokens": output});
        self.answer(id, usage, json!([{"type": "text", "text": "ok"}]))
    }

    /// An assistant row.
    fn answer(&mut self, id: &str, usage: Value, content: Value) -> &mut Self {
        self.row(json!({"type": "assistant", "message": {"id": id, "role": "assistant",
            "model": "claude-opus-5-5", "content": content, "usage": usage}}))
    }

    /// A tool's result.
    fn result(&mut self, of: &str) -> &mut Self {
        self.row(json!({"type": "user", "message": {"role": "user",
            "content": [{"tool_use_id": of, "type": "tool_result", "content": "done"}]}}))
    }

    /// A compaction and its summary.
    fn compaction(&mut self, trigger: &str, pre: u64, post: u64) -> &mut Self {
        let leaf = self.leaf.take();
        self.row(json!({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": leaf,
            "compactMetadata": {"trigger": trigger, "preTokens": pre, "postTokens": post}}));
        self.row(json!({"type": "user", "isCompactSummary": true, "turnOrigin": "human",
            "message": {"role": "user", "content": "This session goes on from …"},
            "turnPosition": {"promptIndex": 1, "turnIndex": 1}}))
    }

    /// `count` turns of a prompt and a response each, with contexts that end at `last`.
    fn turns(&mut self, count: u64, last: u64) -> &mut Self {
        for n in 1..=count {
            let id = format!("turn-{}", self.serial);
            self.prompt("go on").response(&id, last - (count - n) * 1000, 50);
        }
        self
    }

    /// An error of the API, as the client notes it.
    fn api_error(&mut self, text: &str) -> &mut Self {
        self.row(json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "none",
            "model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0},
            "content": [{"type": "text", "text": text}]}}))
    }

    fn file(&self) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&self.bytes).unwrap();
        file
    }

    #[track_caller]
    fn figures(&self) -> Figures {
        figures_of(&self.bytes)
    }

    /// Tokens in use, and whether they are an estimate.
    #[track_caller]
    fn context(&self) -> Option<(u64, bool)> {
        self.figures().context.map(|context| (context.tokens, context.estimated))
    }

    fn tail(&self, max_bytes: u64) -> Tail {
        super::tail(&self.file(), max_bytes, None).unwrap()
    }
}

#[track_caller]
fn figures_of(bytes: &[u8]) -> Figures {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut progress = Progress::default();
    let done = progress.advance(&file, None).unwrap();
    assert_eq!(done, Advance { complete: true, changed: true, read: bytes.len() as u64 });
    progress.figures()
}
