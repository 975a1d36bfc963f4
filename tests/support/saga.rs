//! A session in the client's row shapes (2.1.332), told step by step, with what its export must hold.

#![allow(dead_code, clippy::pedantic)] // A generator of test input.

use serde_json::{Value, json};

pub const SESSION: &str = "3f2a9c1e-0000-4000-8000-1234567890ab";
const NOWHERE: &str = "00000000-0000-0000-0000-000000000000";

/// Rows so far, and what they mean.
#[derive(Default)]
pub struct Saga {
    pub lines: Vec<Vec<u8>>,
    /// What a person said on the live branch, in order, repeats too.
    pub said: Vec<String>,
    /// What was taken back.
    pub rewound: Vec<String>,
    pub decided: Vec<String>,
    leaf: Option<String>,
    serial: u64,
    prompt: u64,
    index: u64,
    now: i64,
}

impl Saga {
    pub fn new() -> Self {
        Self { now: 1_796_000_000_000, ..Self::default() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.lines.join(&b'\n');
        bytes.push(b'\n');
        bytes
    }

    pub fn raw(&mut self, line: impl AsRef<[u8]>) -> &mut Self {
        self.lines.push(line.as_ref().to_vec());
        self
    }

    pub fn leaf(&self) -> String {
        self.leaf.clone().unwrap()
    }

    pub fn to(&mut self, leaf: &str) -> &mut Self {
        self.leaf = Some(leaf.to_owned());
        self
    }

    /// Lets time go by before the next row.
    pub fn later(&mut self, ms: i64) -> &mut Self {
        self.now += ms;
        self
    }

    /// A row that hangs on the one before, and is the next leaf.
    pub fn row(&mut self, row: Value) -> &mut Self {
        self.serial += 1;
        let uuid = format!("{:08x}-0000-4000-8000-{:012x}", self.serial * 7919, self.serial);
        self.now += 1_000;
        let mut full = json!({ "parentUuid": self.leaf, "isSidechain": false, "uuid": uuid,
            "timestamp": longhaul::base::span::stamp(self.now), "sessionId": SESSION, "cwd": "/home/someone/work",
            "version": "2.1.332" });
        for (key, value) in row.as_object().unwrap() {
            full[key] = value.clone();
        }
        self.leaf = Some(uuid);
        self.raw(full.to_string())
    }

    fn turn(&mut self) -> String {
        self.prompt += 1;
        format!("prompt-{}", self.prompt)
    }

    fn this_turn(&self) -> String {
        format!("prompt-{}", self.prompt)
    }

    pub fn prompt_row(&mut self, content: Value) -> &mut Self {
        let turn = self.turn();
        self.index += 1;
        let index = self.index;
        self.row(json!({ "type": "user", "promptId": turn, "message": { "role": "user", "content": content },
            "permissionMode": "default", "origin": { "kind": "human" }, "promptSource": "typed",
            "turnOrigin": "human", "turnPosition": { "promptIndex": index, "turnIndex": index } }))
    }

    /// A typed prompt.
    pub fn typed(&mut self, text: &str) -> &mut Self {
        self.said.push(text.to_owned());
        self.prompt_row(json!(text))
    }

    /// A response of one text.
    pub fn answer(&mut self, text: &str) -> &mut Self {
        self.serial += 1;
        let id = format!("msg_{}", self.serial);
        if text.len() >= 150 {
            self.decided.push(text.to_owned());
        }
        self.assistant(&id, json!({ "type": "text", "text": text }))
    }

    pub fn assistant(&mut self, id: &str, block: Value) -> &mut Self {
        self.row(json!({ "type": "assistant", "message": { "id": id, "role": "assistant",
            "model": "claude-opus-5-5", "content": [block],
            "usage": { "input_tokens": 3, "output_tokens": 5 } } }))
    }

    pub fn call(&mut self, id: &str, name: &str, input: Value) -> &mut Self {
        self.assistant(
            &format!("msg_{id}"),
            json!({ "type": "tool_use", "id": id, "name": name, "input": input }),
        )
    }

    /// A tool's result, with more members of its row.
    pub fn result(&mut self, id: &str, text: &str, error: bool, more: Value) -> &mut Self {
        let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
        if error {
            block["is_error"] = json!(true);
        }
        self.results(json!([block]), more)
    }

    pub fn results(&mut self, content: Value, more: Value) -> &mut Self {
        let mut row = json!({ "type": "user", "promptId": self.this_turn(),
            "message": { "role": "user", "content": content } });
        for (key, value) in more.as_object().unwrap() {
            row[key] = value.clone();
        }
        self.row(row)
    }

    pub fn bash(&mut self, id: &str) -> &mut Self {
        self.call(id, "Bash", json!({ "command": "echo step" })).result(
            id,
            "step",
            false,
            json!({ "toolUseResult": { "stdout": "step" } }),
        )
    }

    /// Typed while a turn ran: as a string, or as blocks.
    pub fn mid_turn(&mut self, text: &str, blocks: bool) -> &mut Self {
        self.said.push(text.to_owned());
        let prompt = if blocks { json!([{ "type": "text", "text": text }]) } else { json!(text) };
        self.row(json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": prompt,
            "commandMode": "prompt", "origin": { "kind": "human" }, "humanTurn": true } }))
    }

    /// A slash command of a plugin, and the body that the client adds.
    pub fn slash(&mut self, name: &str, args: &str) -> &mut Self {
        self.said.push(format!("/{name} {args}"));
        let turn = self.turn();
        self.index += 1;
        let text = format!(
            "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n<command-args>{args}</command-args>"
        );
        self.row(json!({ "type": "user", "promptId": turn, "message": { "role": "user", "content": text },
            "origin": { "kind": "human" }, "turnOrigin": "human",
            "turnPosition": { "promptIndex": self.index, "turnIndex": self.index } }))
            .row(json!({ "type": "user", "promptId": turn, "isMeta": true, "turnCompanion": true,
            "message": { "role": "user", "content": [{ "type": "text", "text": "Base directory: BODY-OF-SKILL" }] } }))
    }

    /// A notification of a background task.
    pub fn notification(&mut self) -> &mut Self {
        let turn = self.turn();
        self.row(json!({ "type": "user", "promptId": turn, "origin": { "kind": "task-notification" },
            "promptSource": "system", "turnOrigin": "task_notification", "message": { "role": "user",
            "content": "<task-notification><task-id>b1</task-id><summary>A-NOTIFICATION</summary></task-notification>" } }))
    }

    /// A compaction and its summary; `kept` are uuids.
    pub fn compaction(&mut self, auto: bool, pre: u64, kept: &[String]) -> &mut Self {
        let leaf = self.leaf.take();
        let trigger = if auto { "auto" } else { "manual" };
        self.row(json!({ "type": "system", "subtype": "compact_boundary", "logicalParentUuid": leaf,
            "content": "Conversation compacted", "compactMetadata": { "trigger": trigger, "preTokens": pre,
            "postTokens": 30_000, "preservedMessages": { "uuids": kept, "allUuids": kept } } }));
        self.index = 1;
        self.row(json!({ "type": "user", "isCompactSummary": true, "turnOrigin": "human",
            "turnPosition": { "promptIndex": 1, "turnIndex": 1 },
            "message": { "role": "user", "content": "THE-SUMMARY of what went before" } }))
    }

    /// The note that the client writes behind the first prompt after a rewind.
    pub fn taken_back(&mut self) -> &mut Self {
        self.raw(json!({ "type": "last-prompt", "leafUuid": NOWHERE, "explicit": true }).to_string())
    }

    /// Back to the row that a prompt hung on: what was said in between is taken back.
    pub fn rewind(&mut self, parent: &str, count: usize, prompts: u64) -> &mut Self {
        let from = self.said.len() - count;
        self.rewound.extend(self.said.drain(from..));
        self.index -= prompts;
        self.to(parent)
    }

    pub fn set_index(&mut self, index: u64) -> &mut Self {
        self.index = index;
        self
    }

    /// A question with two options, answered.
    pub fn question(&mut self, id: &str, question: &str, answer: &str) -> &mut Self {
        self.said
            .push(format!("Question: {question}\n  Option: A: the first\n  Option: B\nAnswer: {answer}"));
        let questions = json!([{ "question": question, "header": "H", "multiSelect": false,
            "options": [{ "label": "A", "description": "the first" }, { "label": "B", "description": "" }] }]);
        let result = json!({ "questions": questions, "answers": { question: answer }, "annotations": {} });
        self.call(id, "AskUserQuestion", json!({ "questions": questions })).result(
            id,
            "Your questions have been answered.",
            false,
            json!({ "toolUseResult": result }),
        )
    }

    /// A plan, and what became of it.
    pub fn plan(&mut self, id: &str, plan: &str, rejected: Option<&str>) -> &mut Self {
        self.said.push(plan.to_owned());
        self.call(id, "ExitPlanMode", json!({ "plan": plan }));
        match rejected {
            None => self.result(
                id,
                "User has approved your plan.",
                false,
                json!({ "toolUseResult": { "plan": plan, "isAgent": false } }),
            ),
            Some(reason) => {
                self.said.push(reason.to_owned());
                self.refused(id, reason)
            }
        }
    }

    /// A refusal with a reason.
    pub fn rejection(&mut self, id: &str, reason: &str) -> &mut Self {
        self.said.push(reason.to_owned());
        self.call(id, "Write", json!({ "file_path": "/x" })).refused(id, reason)
    }

    fn refused(&mut self, id: &str, reason: &str) -> &mut Self {
        let told = format!(
            "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n{reason}"
        );
        let more = json!({ "toolUseResult": format!("Error: {told}"), "toolDenialKind": "user-rejected",
            "userFeedback": reason, "holdsPersonsWords": true });
        self.result(id, &told, true, more)
    }

    /// A permission given with words.
    pub fn with_words(&mut self, id: &str, words: &str) -> &mut Self {
        self.said.push(words.to_owned());
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "done" });
        self.call(id, "Bash", json!({ "command": "make" }))
            .results(json!([result, { "type": "text", "text": words }]), json!({}))
    }
}

/// A text that counts as a decision.
pub fn decision(name: &str) -> String {
    format!("{name}: {}", "we keep the queue in one file and measure before we change it. ".repeat(3))
}

/// A session with everything in it.
pub fn everything() -> Saga {
    let mut saga = Saga::new();
    saga.raw(json!({ "type": "mode", "mode": "normal", "sessionId": SESSION }).to_string());
    saga.typed("the first requirement: never block the redraw").answer(&decision("DECISION-ONE")).bash("t1");
    saga.slash("probe:hello", "some args here").answer("ok").notification().answer("noted");
    saga.call("t2", "Bash", json!({ "command": "sleep 9" }))
        .mid_turn("sent mid-turn as a string", false)
        .result("t2", "slept", false, json!({}))
        .mid_turn("sent mid-turn as blocks", true)
        .answer("seen");
    saga.question("t3", "Which store?", "B").answer("B it is");
    saga.plan("t4", "PLAN-ACCEPTED: one, two", None).answer("going");
    saga.plan("t5", "PLAN-REJECTED: three", Some("not in that order")).answer("other order");
    saga.rejection("t6", "use another file name").answer("will do");
    saga.with_words("t7", "and then also test it").answer("tested");
    let before = saga.leaf();
    saga.typed("REWOUND: paint it blue").answer(&decision("REWOUND-DECISION")).typed("REWOUND: and green");
    saga.decided.pop();
    saga.rewind(&before, 2, 2).typed("paint it red").taken_back().answer("red");
    let (kept_from, _) = (saga.leaf(), saga.typed("KEPT across the first compaction").answer("kept"));
    let kept = vec![kept_from, saga.leaf()];
    saga.compaction(true, 935_000, &kept);
    saga.typed("after the first compaction").answer(&decision("DECISION-TWO"));
    saga.compaction(false, 400_000, &[]);
    saga.prompt_row(json!([{ "type": "text", "text": "[Image #1] what is this" },
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD".repeat(100) } }]));
    saga.said.push("[Image #1] what is this".to_owned());
    saga.row(json!({ "type": "user", "isMeta": true, "message": { "role": "user",
        "content": "[Image: source: /path/pic.png]" } }));
    let paste = format!(
        "\n\n<pasted_content id=\"65e2\">\n{}\n</pasted_content id=\"65e2\">\n\n explain",
        "a pasted line of a log\n".repeat(400)
    );
    saga.typed(&paste).answer("a log").typed("go on").answer("on").typed("go on").answer("on and on");
    saga
}
