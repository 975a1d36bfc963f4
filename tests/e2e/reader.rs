//! A stand-in for the model of a session that reads its parent: it reads the parts it is told to, notes the
//! marks it is given, and answers; or it cheats, in the ways that tests ask for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::{Answer, Kind, Request};

/// How a reader behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Reads everything and tells the truth.
    Honest,
    /// Leaves the last part out, in its first turn or in every one.
    Skips { always: bool },
    /// Gives the marks of all parts in another order.
    Disorders,
    /// Answers in prose.
    Prose,
    /// Answers at once with the counts of the index, and reads nothing else.
    CopiesTheIndex,
}

const TAG: &str = "<longhaul-reading>";

/// Whether this request is of a session that reads its parent.
pub fn is_reading(request: &Request) -> bool {
    request.kind == Kind::Main && request.text().contains(TAG)
}

/// Whether its reading is what the session is asked for now: it has not answered, and nothing else was said.
pub fn is_at_it(request: &Request) -> bool {
    let last = request.messages().iter().rev().find(|message| message["role"] == "user");
    let asked = |message: &Value| {
        text(&message["content"]).contains(TAG) || message["content"][0]["type"] == "tool_result"
    };
    let answered = request.messages().iter().any(|message| message.to_string().contains("StructuredOutput"));
    !answered && last.is_some_and(asked)
}

/// The prompts of reading, oldest first.
fn prompts(request: &Request) -> Vec<String> {
    let texts = request
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| text(&message["content"]));
    texts.filter(|text| text.contains(TAG)).collect()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().map(|block| text(&block["text"])).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// The files that a prompt lists, in order.
fn listed(prompt: &str) -> Vec<String> {
    let numbered = |line: &str| {
        let (number, path) = line.split_once(". ")?;
        (number.parse::<u32>().is_ok() && path.starts_with('/')).then(|| path.to_owned())
    };
    // The client joins prompts that nobody answered.
    let mut found: Vec<String> = Vec::new();
    for path in prompt.lines().filter_map(numbered) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Where what is to be read lies.
pub fn directory(request: &Request) -> String {
    listed(&prompts(request)[0])[0].rsplit_once('/').unwrap().0.to_owned()
}

/// What Read returned of each file, without line numbers.
fn returned(request: &Request) -> BTreeMap<String, String> {
    let (mut paths, mut found) = (BTreeMap::new(), BTreeMap::new());
    let blocks = request.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
    for block in blocks {
        if block["type"] == "tool_use" && block["name"] == "Read" {
            let path = block["input"]["file_path"].as_str().unwrap().to_owned();
            paths.insert(block["id"].as_str().unwrap().to_owned(), path);
        }
        let path = block["tool_use_id"].as_str().and_then(|id| paths.get(id));
        if let Some(path) = path.filter(|_| block["type"] == "tool_result" && block["is_error"] != true) {
            let given = match &block["content"] {
                Value::String(text) => text.clone(),
                content => text(content),
            };
            let lines = given.lines().map(|line| line.split_once('\t').map_or(line, |(_, rest)| rest));
            found.insert(path.clone(), lines.collect::<Vec<_>>().join("\n"));
        }
    }
    found
}

fn marks(text: &str) -> Vec<String> {
    let code = |line: &str| Some(line.strip_prefix("[[longhaul mark ")?.chars().take(10).collect());
    text.lines().filter_map(code).collect()
}

fn entries(text: &str) -> usize {
    let heads = ["## ", "### Message ", "### Decision "];
    let is_head = |line: &&str| {
        heads.iter().any(|head| {
            line.strip_prefix(head).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    text.lines().filter(is_head).count()
}

fn read_all<'a>(paths: impl IntoIterator<Item = &'a String>) -> Answer {
    let mut paths = paths.into_iter().map(|path| json!({ "file_path": path }));
    let first = Answer::tool("Read", &paths.next().expect("nothing to read"));
    paths.fold(first, |answer, input| answer.and_tool("Read", &input))
}

/// The answer to a request of a reading session.
pub fn answer(request: &Request, manner: Manner) -> Answer {
    let prompts = prompts(request);
    let all = listed(&prompts[0]);
    let (turn, newest) = (prompts.len(), listed(prompts.last().unwrap()));
    let given = returned(request);
    let skips = match manner {
        Manner::Skips { always } => always || turn == 1,
        _ => false,
    };
    let skipped = |path: &String| skips && Some(path) == all.last();
    let unread: Vec<&String> =
        newest.iter().filter(|path| !given.contains_key(*path) && !skipped(path)).collect();
    if manner == Manner::Prose {
        return Answer::text("I have read everything: accepted.");
    }
    if manner == Manner::CopiesTheIndex {
        let index = all[0].rsplit_once('/').unwrap().0.to_owned() + "/04-index.json";
        if !given.contains_key(&index) {
            return read_all([&index]);
        }
        return copied(&given[&index]);
    }
    if !unread.is_empty() {
        return read_all(unread);
    }
    let name = |path: &String| path.rsplit_once('/').unwrap().1.to_owned();
    let texts = all.iter().map(|path| (name(path), given.get(path).cloned().unwrap_or_default()));
    let (mut counts, mut codes) = (BTreeMap::new(), Vec::new());
    for (file, text) in texts {
        counts.insert(file, entries(&text));
        codes.push(marks(&text));
    }
    if manner == Manner::Disorders {
        codes.reverse();
    }
    structured(&json!(counts), &json!(codes.concat()))
}

fn copied(index: &str) -> Answer {
    let index: Value = serde_json::from_str(index).unwrap();
    let groups = index["must_read"].as_array().unwrap().iter();
    let parts = groups.flat_map(|group| group["parts"].as_array().unwrap());
    let counts: BTreeMap<&str, &Value> =
        parts.map(|part| (part["file"].as_str().unwrap(), &part["entries"])).collect();
    structured(&json!(counts), &json!([]))
}

fn structured(entries: &Value, marks: &Value) -> Answer {
    let answer = json!({ "entries": entries, "marks": marks, "open_threads": ["the parser"],
        "standing_instructions": [], "next": "go on with the parser" });
    Answer::tool("StructuredOutput", &answer)
}
