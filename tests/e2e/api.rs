//! A stand-in for the Messages API: it answers as the test says and keeps every request.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Incoming, Outgoing, Server};

/// What the answer says it cost, in tokens, as the API counts them.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub input: u64,
    pub cache_creation: u64,
    pub cache_read: u64,
    pub output: u64,
}

impl Usage {
    /// The counts whose sum, the output among them, is `used`.
    pub fn of(used: u64) -> Self {
        Self { input: 10.min(used), cache_creation: 0, cache_read: used.saturating_sub(15), output: 5 }
    }

    fn json(self, output: u64) -> Value {
        json!({ "input_tokens": self.input, "cache_creation_input_tokens": self.cache_creation,
            "cache_read_input_tokens": self.cache_read, "output_tokens": output })
    }
}

/// A door in the middle of an answer: it waits there until the test opens it.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let closed = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(closed, Duration::from_secs(120), |open| !*open).unwrap());
    }
}

/// One answer of the API.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    error: String,
    blocks: Vec<Value>,
    usage: Usage,
    delay: Duration,
    gate: Option<Gate>,
    /// Pause between the pieces of a text, of which there are then one for each word.
    pause: Duration,
}

impl Answer {
    /// A text, and the end of the turn.
    pub fn text(text: &str) -> Self {
        Self {
            status: 200,
            error: String::new(),
            blocks: vec![json!({ "type": "text", "text": text })],
            usage: Usage::of(1000),
            delay: Duration::ZERO,
            gate: None,
            pause: Duration::ZERO,
        }
    }

    /// A call of a tool: the client runs it and asks again.
    pub fn tool(name: &str, input: &Value) -> Self {
        Self { blocks: Vec::new(), ..Self::text("") }.and_tool(name, input)
    }

    pub fn and_tool(mut self, name: &str, input: &Value) -> Self {
        self.blocks.push(json!({ "type": "tool_use", "name": name, "input": input }));
        self
    }

    /// An error of the API with this message.
    pub fn error(status: u16, message: &str) -> Self {
        Self { status, error: message.to_owned(), ..Self::text("") }
    }

    /// The tokens in use after this answer: input, cache and output together.
    pub fn used(mut self, tokens: u64) -> Self {
        self.usage = Usage::of(tokens);
        self
    }

    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Waits before it answers at all.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Does not answer before the gate opens.
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Streams a text word by word, so slowly.
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The conversation itself.
    Main,
    /// A subagent's conversation.
    Subagent,
    /// The summary that replaces the history at a compaction.
    Summary,
    /// Anything else the client asks beside it: titles, a look at the quota.
    Side,
}

/// A request to `/v1/messages`, as it was asked.
#[derive(Debug, Clone)]
pub struct Request {
    pub number: usize,
    pub kind: Kind,
    pub model: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    pub at: Instant,
}

impl Request {
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The texts of the newest message.
    pub fn last_text(&self) -> String {
        self.messages().last().map(|message| text_of(&message["content"])).unwrap_or_default()
    }

    /// All that stands in messages from the newest assistant's on: what this request brings that is new.
    pub fn new_text(&self) -> String {
        let messages = self.messages();
        let from = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        messages[from..].iter().map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n")
    }

    /// Every text of every message.
    pub fn text(&self) -> String {
        self.messages().iter().map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n")
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => ["text", "content"]
            .iter()
            .filter_map(|key| block.get(*key))
            .map(text_of)
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

type Script = Box<dyn FnMut(&Request) -> Option<Answer> + Send>;

struct State {
    requests: Vec<Request>,
    counted: usize,
    next: VecDeque<Answer>,
    script: Option<Script>,
    usual: Answer,
    subagent: Answer,
    summary: Answer,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The stand-in, on a port of its own, until it is dropped.
pub struct Api {
    server: Server,
    shared: Arc<Shared>,
}

impl Api {
    pub fn start() -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                requests: Vec::new(),
                counted: 0,
                next: VecDeque::new(),
                script: None,
                usual: Answer::text("ok"),
                subagent: Answer::text("SUBAGENT REPORT").used(1200),
                summary: Answer::text("<summary>\nAll that was said.\n</summary>").used(2000),
            }),
            changed: Condvar::new(),
        });
        let behind = Arc::clone(&shared);
        let server = Server::start(move |request, reply| answer(&behind, &request, reply));
        Self { server, shared }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The answers of the next main requests, in order; then the usual one again.
    pub fn next(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.lock().next.extend(answers);
    }

    /// The answer of every main request that nothing else answers.
    pub fn usual(&self, answer: Answer) {
        self.shared.lock().usual = answer;
    }

    pub fn subagent(&self, answer: Answer) {
        self.shared.lock().subagent = answer;
    }

    /// Asked first for every request but side ones; `None` leaves it to the rest.
    pub fn script(&self, script: impl FnMut(&Request) -> Option<Answer> + Send + 'static) {
        self.shared.lock().script = Some(Box::new(script));
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Every request of this kind so far.
    pub fn of(&self, kind: Kind) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind == kind).collect()
    }

    /// How often tokens were counted.
    pub fn counted(&self) -> usize {
        self.shared.lock().counted
    }

    /// The main requests, once there are `count` of them.
    #[track_caller]
    pub fn wait_for(&self, count: usize, deadline: Duration) -> Vec<Request> {
        self.wait_until(&format!("{count} main requests"), deadline, |requests| {
            requests.iter().filter(|request| request.kind == Kind::Main).count() >= count
        });
        self.of(Kind::Main)
    }

    #[track_caller]
    pub fn wait_until(&self, what: &str, deadline: Duration, mut done: impl FnMut(&[Request]) -> bool) {
        let state = self.shared.lock();
        let (state, late) = self
            .shared
            .changed
            .wait_timeout_while(state, deadline, |state| !done(&state.requests))
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        assert!(
            !late.timed_out(),
            "waited {deadline:?} in vain for {what}; the requests were {:#?}",
            state.requests.iter().map(|r| (r.number, r.kind, clip(&r.last_text()))).collect::<Vec<_>>()
        );
    }
}

fn clip(text: &str) -> String {
    text.chars().take(160).collect()
}

fn answer(shared: &Shared, request: &Incoming, reply: &mut Outgoing) -> io::Result<()> {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("POST", "/v1/messages/count_tokens") => {
            shared.lock().counted += 1;
            reply.json(200, &json!({ "input_tokens": 1000 }))
        }
        ("POST", "/v1/messages") => messages(shared, request, reply),
        ("HEAD", _) => reply.empty(200),
        _ => reply.json(404, &json!({})),
    }
}

fn messages(shared: &Shared, incoming: &Incoming, reply: &mut Outgoing) -> io::Result<()> {
    let body: Value = serde_json::from_slice(&incoming.body).unwrap_or_default();
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let streamed = body["stream"] == true;
    let (number, answer) = {
        let mut state = shared.lock();
        let number = state.requests.len() + 1;
        let request = Request {
            number,
            kind: kind_of(incoming, &body),
            model: model.clone(),
            headers: incoming.headers.clone(),
            body,
            at: Instant::now(),
        };
        let answer = state.choose(&request);
        state.requests.push(request);
        shared.changed.notify_all();
        (number, answer)
    };
    std::thread::sleep(answer.delay);
    if let Some(gate) = &answer.gate {
        gate.wait();
    }
    if answer.status != 200 {
        let kind = match answer.status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let error = json!({ "type": "error", "error": { "type": kind, "message": answer.error } });
        return reply.json(answer.status, &error);
    }
    let head = json!({ "id": format!("msg_{number:06}"), "type": "message", "role": "assistant", "model": model,
        "stop_sequence": null });
    if streamed { stream(&answer, head, number, reply) } else { whole(&answer, head, number, reply) }
}

impl State {
    fn choose(&mut self, request: &Request) -> Answer {
        if request.kind == Kind::Side {
            return Answer::text("ok");
        }
        if let Some(answer) = self.script.as_mut().and_then(|script| script(request)) {
            return answer;
        }
        match request.kind {
            Kind::Summary => self.summary.clone(),
            Kind::Subagent => self.subagent.clone(),
            _ => self.next.pop_front().unwrap_or_else(|| self.usual.clone()),
        }
    }
}

fn kind_of(incoming: &Incoming, body: &Value) -> Kind {
    let tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let last = body["messages"].as_array().and_then(|all| all.last()).map(|m| text_of(&m["content"]));
    if last.is_some_and(|text| text.contains("<summary>") && text.contains("<analysis>")) {
        Kind::Summary
    } else if incoming.header("x-claude-code-agent-id").is_some() {
        Kind::Subagent
    } else if tools {
        Kind::Main
    } else {
        Kind::Side
    }
}

fn with_ids(blocks: &[Value], number: usize) -> Vec<Value> {
    let mut blocks = blocks.to_vec();
    for (at, block) in blocks.iter_mut().enumerate().filter(|(_, block)| block["type"] == "tool_use") {
        block["id"] = json!(format!("toolu_{number:06}_{at}"));
    }
    blocks
}

fn stop_reason(blocks: &[Value]) -> &'static str {
    if blocks.iter().any(|block| block["type"] == "tool_use") { "tool_use" } else { "end_turn" }
}

fn whole(answer: &Answer, mut head: Value, number: usize, reply: &mut Outgoing) -> io::Result<()> {
    let blocks = with_ids(&answer.blocks, number);
    head["stop_reason"] = json!(stop_reason(&blocks));
    head["content"] = json!(blocks);
    head["usage"] = answer.usage.json(answer.usage.output);
    reply.json(200, &head)
}

fn stream(answer: &Answer, mut head: Value, number: usize, reply: &mut Outgoing) -> io::Result<()> {
    let blocks = with_ids(&answer.blocks, number);
    head["content"] = json!([]);
    head["stop_reason"] = Value::Null;
    head["usage"] = answer.usage.json(1);
    reply.begin_events()?;
    event(reply, "message_start", json!({ "message": head }))?;
    for (index, block) in blocks.iter().enumerate() {
        stream_block(answer, index, block, reply)?;
    }
    let delta = json!({ "stop_reason": stop_reason(&blocks), "stop_sequence": null });
    let usage = answer.usage.json(answer.usage.output);
    event(reply, "message_delta", json!({ "delta": delta, "usage": usage }))?;
    event(reply, "message_stop", json!({}))?;
    reply.end_events()
}

fn stream_block(answer: &Answer, index: usize, block: &Value, reply: &mut Outgoing) -> io::Result<()> {
    let (start, deltas) = if block["type"] == "tool_use" {
        let start = json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": {} });
        let input = json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() });
        (start, vec![input])
    } else {
        let text = block["text"].as_str().unwrap_or_default();
        let pieces: Vec<&str> =
            if answer.pause.is_zero() { vec![text] } else { text.split_inclusive(' ').collect() };
        let deltas = pieces.iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
        (json!({ "type": "text", "text": "" }), deltas)
    };
    event(reply, "content_block_start", json!({ "index": index, "content_block": start }))?;
    for delta in deltas {
        std::thread::sleep(answer.pause);
        event(reply, "content_block_delta", json!({ "index": index, "delta": delta }))?;
    }
    event(reply, "content_block_stop", json!({ "index": index }))
}

fn event(reply: &mut Outgoing, name: &str, mut data: Value) -> io::Result<()> {
    data["type"] = json!(name);
    reply.event(name, &data)
}
