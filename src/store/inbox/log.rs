//! The log's lines, and what they come to.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;

use serde::{Deserialize, Serialize};

use super::New;
use super::mark::{Mark, signs};
use crate::base::id::{SessionId, digest};

/// How a log of this version says so.
pub(super) const VERSION: u64 = 1;
/// So many ids of events that are done with are remembered when the log is written anew.
const REMEMBERED: usize = 2_000;
/// A larger number was never given out: the line is damaged.
const NUMBER_MOST: u64 = 1 << 53;
/// Text of one event, in bytes; what is longer is cut, and says so.
const TEXT_MOST: usize = 64 << 10;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in this inbox, from 1 on.
    #[serde(rename = "n")]
    pub number: u64,
    /// Signs that stand for it beside the number.
    pub sign: String,
    /// The same event has the same id.
    pub id: String,
    /// When it happened, epoch milliseconds.
    #[serde(rename = "at")]
    pub at_ms: i64,
    /// Where it came from.
    #[serde(rename = "from")]
    pub source: String,
    /// What there is to say.
    pub text: String,
    /// How often it was printed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub printed: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // So serde calls it.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Event {
    pub(super) fn new(session: &SessionId, number: u64, new: &New) -> Self {
        let mut text = new.text;
        let mut cut = String::new();
        if text.len() > TEXT_MOST {
            let end = (0..=TEXT_MOST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text = &text[..end];
            cut = format!("{text} [cut here: {} bytes in all]", new.text.len());
        }
        let parts = [session.as_str(), new.source, new.id, text].map(str::as_bytes);
        let at = new.at_ms.to_le_bytes();
        let sign = digest(&[parts[0], parts[1], parts[2], parts[3], &at, &number.to_le_bytes()]);
        Self {
            number,
            // The lower bits of this digest depend on the lower bits of the input alone.
            sign: signs(sign >> 40 ^ sign >> 20),
            id: new.id.to_owned(),
            at_ms: new.at_ms,
            source: new.source.to_owned(),
            text: if cut.is_empty() { text.to_owned() } else { cut },
            printed: 0,
        }
    }

    /// What its line begins with.
    pub fn mark(&self) -> Mark {
        Mark::of(self, self)
    }
}

/// Numbers from one to another, both of them among it.
pub(super) type Range = (u64, u64);

/// Ascending numbers as ranges.
pub fn ranges(numbers: impl IntoIterator<Item = u64>) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub(super) enum Record {
    /// The first line: the version, the next number, and digests of ids that were taken.
    Head {
        #[serde(rename = "v")]
        version: u64,
        next: u64,
        seen: Vec<u64>,
        #[serde(default)]
        acknowledged: u64,
    },
    /// An event.
    Event(Event),
    /// These were acknowledged.
    Ack { numbers: Vec<Range> },
    /// These were printed once more.
    Out { numbers: Vec<Range> },
    /// The session goes on in this one, or no longer in another. These events were moved there.
    To {
        session: Option<String>,
        #[serde(default)]
        moved: Vec<Range>,
    },
}

impl Record {
    /// What a log begins with, or is told in between.
    pub fn head(next: u64, seen: Vec<u64>) -> Self {
        Self::Head { version: VERSION, next, seen, acknowledged: 0 }
    }
}

/// Whether every number that counts on is one that was given out.
fn is_sane(record: &Record) -> bool {
    match record {
        Record::Head { next: number, .. } | Record::Event(Event { number, .. }) => *number <= NUMBER_MOST,
        Record::Ack { .. } | Record::Out { .. } | Record::To { .. } => true,
    }
}

/// A record as its line.
pub(super) fn line(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

/// What the lines so far come to.
#[derive(Debug)]
pub(super) struct Log {
    /// The number of the next event.
    pub next: u64,
    /// What is not acknowledged.
    pub left: BTreeMap<u64, Event>,
    /// Where the session goes on.
    pub to: Option<SessionId>,
    /// The highest number that was acknowledged.
    pub acknowledged: u64,
    /// Bytes of whole lines that were read.
    pub read_to: u64,
    /// Lines that nothing could be made of.
    pub damaged: Vec<Vec<u8>>,
    /// Bytes behind the last whole line, as of the last look.
    pub torn: Vec<u8>,
    /// Somebody newer wrote it.
    pub is_of_a_later_version: bool,
    /// Digests of ids with the number that the event has, in the order they came.
    seen: HashMap<u64, u64>,
    order: VecDeque<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            next: 1,
            left: BTreeMap::new(),
            to: None,
            acknowledged: 0,
            read_to: 0,
            damaged: Vec::new(),
            torn: Vec::new(),
            is_of_a_later_version: false,
            seen: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl Log {
    /// The number under which an event of this id was taken.
    pub fn taken(&self, id: &str) -> Option<u64> {
        self.seen.get(&digest(&[id.as_bytes()])).copied()
    }

    /// Whether a mark is of events that are left: both its ends, so that nobody makes one up. One end may be
    /// acknowledged already.
    pub fn knows(&self, mark: &Mark) -> bool {
        let mut known = 0;
        for (number, sign) in mark.ends() {
            match self.left.get(number) {
                Some(event) if event.sign == *sign => known += 1,
                Some(_) => return false,
                None => {}
            }
        }
        known > 0
    }

    /// Takes in what follows the lines that were read.
    pub fn read(&mut self, bytes: &[u8]) {
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        self.torn = bytes[whole..].to_vec();
        self.read_to += whole as u64;
        for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(record) if is_sane(&record) => self.apply(record),
                _ => self.damaged.push(line.to_vec()),
            }
        }
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Head { version, next, seen, acknowledged } => {
                self.acknowledged = self.acknowledged.max(acknowledged);
                self.is_of_a_later_version |= version > VERSION;
                self.next = self.next.max(next);
                for id in seen {
                    self.remember(id, 0);
                }
            }
            Record::Event(event) => {
                self.next = self.next.max(event.number.saturating_add(1));
                self.remember(digest(&[event.id.as_bytes()]), event.number);
                self.left.insert(event.number, event);
            }
            Record::Ack { numbers } => {
                for number in self.among(&numbers) {
                    self.left.remove(&number);
                    self.acknowledged = self.acknowledged.max(number);
                }
            }
            Record::Out { numbers } => {
                for number in self.among(&numbers) {
                    if let Some(event) = self.left.get_mut(&number) {
                        event.printed = event.printed.saturating_add(1);
                    }
                }
            }
            Record::To { session, moved } => {
                self.to = session.as_deref().and_then(SessionId::parse);
                self.forget(&moved);
            }
        }
    }

    fn among(&self, ranges: &[Range]) -> Vec<u64> {
        let sound = ranges.iter().filter(|(first, last)| first <= last);
        sound.flat_map(|(first, last)| self.left.range(first..=last).map(|(number, _)| *number)).collect()
    }

    /// What was moved is not done with: it may come back.
    fn forget(&mut self, moved: &[Range]) {
        let events = self.among(moved).into_iter().filter_map(|number| self.left.remove(&number));
        let ids: HashSet<u64> = events.map(|event| digest(&[event.id.as_bytes()])).collect();
        self.seen.retain(|id, _| !ids.contains(id));
        self.order.retain(|id| !ids.contains(id));
    }

    /// Digests of the ids of what is done with, the latest of them.
    pub fn done(&self) -> Vec<u64> {
        let left: HashSet<u64> = self.left.values().map(|event| digest(&[event.id.as_bytes()])).collect();
        let done = self.order.iter().copied().filter(|id| !left.contains(id));
        let mut done: Vec<u64> = done.rev().take(REMEMBERED).collect();
        done.reverse();
        done
    }

    fn remember(&mut self, id: u64, number: u64) {
        if self.seen.insert(id, number).is_none() {
            self.order.push_back(id);
        }
    }

    /// The lines of a log that holds only what is needed.
    pub fn anew(&self) -> io::Result<Vec<u8>> {
        let mut bytes = line(&Record::Head {
            version: VERSION,
            next: self.next,
            seen: self.done(),
            acknowledged: self.acknowledged,
        })?;
        if let Some(to) = &self.to {
            bytes.extend(line(&Record::To { session: Some(to.to_string()), moved: Vec::new() })?);
        }
        for event in self.left.values() {
            bytes.extend(line(&Record::Event(event.clone()))?);
        }
        Ok(bytes)
    }
}
