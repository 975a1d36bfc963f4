//! Whether a child has read its parent: three independent checks, each on each part. Pure: what was to be read,
//! what the child's own transcript shows, and what it answered go in.
//!
//! * `count`: the entries that it counted in a part are those of the index;
//! * `marks`: it quotes every read mark of a part, in order; no index or name holds them;
//! * `read`: its transcript shows that Read returned the part complete, to the byte, before the answer and with
//!   no compaction in between.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::client::transcript::acts::{Act, Returned};
use crate::store::chains::Shortfall;

/// A part that is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its file name.
    pub file: String,
    /// Where it is, links resolved.
    pub path: PathBuf,
    /// Entries that begin in it.
    pub entries: u64,
    /// The codes of its marks, in order.
    pub codes: Vec<String>,
    /// BLAKE3 of its bytes, in hexadecimal.
    pub blake3: String,
}

/// What the child answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// Entries counted, by file.
    pub entries: BTreeMap<String, u64>,
    /// All codes, in the order of the parts.
    pub marks: Vec<String>,
    /// What is still open.
    pub open_threads: Vec<String>,
    /// What holds until it is taken back.
    pub standing_instructions: Vec<String>,
    /// What it would do next.
    pub next: String,
}

/// What a proof came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The last answer in the schema; without one nothing is proved.
    pub answer: Option<Answer>,
    /// Parts that were not shown to be read, and which check says so.
    pub shortfalls: Vec<Shortfall>,
    /// Parts that Read has returned complete so far.
    pub read: usize,
}

impl Verdict {
    /// Whether every part passed every check.
    pub fn accepted(&self) -> bool {
        self.answer.is_some() && self.shortfalls.is_empty()
    }
}

/// What a child has been given, act by act.
#[derive(Debug)]
pub struct Proof<'a> {
    parts: &'a [Part],
    given: Vec<Given>,
    compacted: bool,
    verdict: Verdict,
}

/// What of a part was returned.
#[derive(Debug, Clone, Default)]
struct Given {
    /// Its lines, by number.
    lines: HashMap<u64, String>,
    /// How many it has.
    all: u64,
    /// The texts that the model was given.
    texts: String,
    whole: bool,
}

impl<'a> Proof<'a> {
    /// Nothing was read so far.
    pub fn of(parts: &'a [Part]) -> Self {
        Self {
            parts,
            given: vec![Given::default(); parts.len()],
            compacted: false,
            verdict: Verdict::default(),
        }
    }

    /// Takes in what was done next.
    pub fn act(&mut self, act: Act) {
        match act {
            Act::Returned(returned) => self.returned(&returned),
            Act::Compacted => {
                // What was read before is a summary now.
                self.given.fill(Given::default());
                self.compacted = true;
            }
            Act::Answered(text) => {
                if let Ok(answer) = serde_json::from_str::<Answer>(&text) {
                    self.verdict.shortfalls = self.shortfalls(&answer);
                    self.verdict.answer = Some(answer);
                }
            }
        }
        self.verdict.read = self.given.iter().filter(|given| given.whole).count();
    }

    /// What it comes to by now.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    fn returned(&mut self, returned: &Returned) {
        let is_it = |part: &Part| part.path == returned.path || same_file(&part.path, &returned.path);
        let Some(at) = self.parts.iter().position(is_it) else { return };
        let (part, given) = (&self.parts[at], &mut self.given[at]);
        if given.whole {
            return;
        }
        given.all = returned.lines;
        for (number, line) in (returned.first..).zip(returned.content.split('\n')) {
            given.lines.insert(number, line.to_owned());
        }
        given.texts.push_str(&returned.given);
        given.whole = given.is_whole(part);
        if given.whole {
            (given.lines, given.texts) = (HashMap::new(), String::new());
        }
    }

    fn shortfalls(&self, answer: &Answer) -> Vec<Shortfall> {
        [self.unread(), self.miscounted(answer), self.misquoted(answer)].concat()
    }

    fn unread(&self) -> Vec<Shortfall> {
        let when = if self.compacted { ", or not after the compaction" } else { "" };
        let what = format!("Read did not return it whole before the answer{when}");
        let both = self.parts.iter().zip(&self.given);
        both.filter(|(_, given)| !given.whole).map(|(part, _)| part.falls("read", what.clone())).collect()
    }

    fn miscounted(&self, answer: &Answer) -> Vec<Shortfall> {
        let fall = |part: &Part| match answer.entries.get(&part.file) {
            Some(count) if *count == part.entries => None,
            Some(count) => Some(part.falls("count", format!("counted {count} entries of {}", part.entries))),
            None => Some(part.falls("count", "not counted".to_owned())),
        };
        self.parts.iter().filter_map(fall).collect()
    }

    fn misquoted(&self, answer: &Answer) -> Vec<Shortfall> {
        let (mut found, mut from) = (Vec::new(), 0);
        for part in self.parts {
            let all = part.codes.len();
            let what = match run_at(&answer.marks, &part.codes) {
                Some(at) if at >= from => {
                    from = at + all;
                    continue;
                }
                Some(_) => "its marks are quoted before those of an earlier part".to_owned(),
                None => match part.codes.iter().filter(|code| answer.marks.contains(code)).count() {
                    quoted if quoted == all => "its marks are not quoted in order".to_owned(),
                    quoted => format!("{quoted} of its {all} marks are quoted"),
                },
            };
            found.push(part.falls("marks", what));
        }
        let all: usize = self.parts.iter().map(|part| part.codes.len()).sum();
        let quoted = answer.marks.len();
        let last = self.parts.last().filter(|_| found.is_empty() && quoted != all);
        found.extend(
            last.map(|part| part.falls("marks", format!("{quoted} marks are quoted, there are {all}"))),
        );
        found
    }
}

impl Part {
    fn falls(&self, check: &str, what: String) -> Shortfall {
        Shortfall { part: self.file.clone(), check: check.to_owned(), what }
    }
}

impl Given {
    /// Whether every line was returned, to the byte, and every mark given to the model.
    fn is_whole(&self, part: &Part) -> bool {
        let mut hasher = blake3::Hasher::new();
        for number in 1..=self.all {
            let Some(line) = self.lines.get(&number) else { return false };
            if number > 1 {
                hasher.update(b"\n");
            }
            hasher.update(line.as_bytes());
        }
        hasher.finalize().to_hex().as_str() == part.blake3
            && part.codes.iter().all(|code| self.texts.contains(code.as_str()))
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    one.file_name() == other.file_name() && other.canonicalize().is_ok_and(|real| real == one)
}

/// Where these codes stand one after the other.
fn run_at(marks: &[String], codes: &[String]) -> Option<usize> {
    let clean = |mark: &String, code: &String| mark.trim() == code;
    marks
        .windows(codes.len().max(1))
        .position(|run| run.iter().zip(codes).all(|(mark, code)| clean(mark, code)))
}

#[cfg(test)]
mod tests;
