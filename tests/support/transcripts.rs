//! Transcripts in the client's own row shapes, made up here: the same bytes for the same seed, any size,
//! written as they are made, together with what a reader must find in them.
//!
//! The shapes (2.1.332) and their order are those of rows seen on the client; the words are nonsense.

#![allow(dead_code, clippy::pedantic)] // Shared by programs that each use a part; a generator of test input.

use std::io::{self, Write};

/// What a transcript holds, counted while it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    /// Bytes written.
    pub bytes: u64,
    /// Rows written.
    pub rows: u64,
    /// Responses of the main conversation.
    pub responses: u64,
    /// Tool calls of the main conversation.
    pub tool_calls: u64,
    /// What the person typed.
    pub prompts: u64,
    /// Automatic compactions.
    pub auto: u64,
    /// Tokens that compactions dropped.
    pub dropped: u64,
    /// Context as of the last row, in tokens.
    pub context: u64,
    /// Time of the first row of the conversation, epoch milliseconds.
    pub first_at: i64,
    /// Time of its last row.
    pub last_at: i64,
    /// Sum of the gaps below ten minutes, milliseconds.
    pub active_ms: i64,
}

/// What the person said in a transcript of [`write_numbered`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How.
    pub kind: Said,
    /// Where it stands in the text; nothing else in the transcript holds it.
    pub serial: String,
    /// The text, as it stands inside a JSON string.
    pub text: String,
}

/// How something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Typed.
    Typed,
    /// Typed, and more than 8,000 characters.
    Long,
    /// Typed while a turn ran.
    MidTurn,
    /// Typed, answered and taken back by a rewind.
    Rewound,
}

/// Where the made-up client compacts, in tokens.
pub const WALL: u64 = 967_000;

/// The model that answers.
pub const MODEL: &str = "claude-opus-5-5";

const SESSION: &str = "5e55a0e1-0000-4000-8000-00000000cafe";
const ROOT_TIME: i64 = 1_790_000_000_000;

/// Writes whole turns until at least `bytes` are out, and tells what they hold.
pub fn write(out: &mut impl Write, bytes: u64, seed: u64) -> io::Result<Truth> {
    Ok(make(Maker::new(seed), out, bytes)?.truth)
}

/// The same with a serial number in each of the person's messages, some of them long, sent mid-turn or rewound.
pub fn write_numbered(out: &mut impl Write, bytes: u64, seed: u64) -> io::Result<(Truth, Vec<Message>)> {
    let maker = make(Maker { numbered: Some(Vec::new()), ..Maker::new(seed) }, out, bytes)?;
    Ok((maker.truth, maker.numbered.unwrap_or_default()))
}

fn make(mut maker: Maker, out: &mut impl Write, bytes: u64) -> io::Result<Maker> {
    maker.opening();
    while maker.truth.bytes + maker.row.len() as u64 <= bytes || maker.truth.responses == 0 {
        maker.turn();
        maker.flush(out)?;
    }
    maker.flush(out)?;
    out.flush()?;
    Ok(maker)
}

/// A small generator of random numbers, the same everywhere (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `low..high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.range(0, 100) < percent
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 48 & 0xfff,
            b & 0xffff_ffff_ffff
        )
    }
}

/// Text as it stands inside a JSON string: lines that look like code, prose and logs, already escaped.
struct Pool {
    text: String,
    lines: Vec<usize>,
}

impl Pool {
    fn new(random: &mut Random) -> Self {
        const WORDS: [&str; 24] = [
            "let", "value", "return", "match", "the", "queue", "fn", "width", "self.row", "error", "→",
            "für", "span", "0x1f", "count", "&mut", "await", "parse", "buffer", "测试", "limit", "if", "and",
            "warning:",
        ];
        let mut pool = Self { text: String::new(), lines: Vec::new() };
        while pool.text.len() < 512 * 1024 {
            pool.lines.push(pool.text.len());
            for _ in 0..random.range(0, 6) {
                pool.text.push_str("  ");
            }
            for _ in 0..random.range(1, 14) {
                pool.text.push_str(WORDS[random.range(0, 24) as usize]);
                pool.text.push(' ');
            }
            match random.range(0, 10) {
                0 => pool.text.push_str("= \\\"text\\\";"),
                1 => pool.text.push_str("C:\\\\path\\\\to"),
                2 => pool.text.push_str("\\tend"),
                _ => {}
            }
            pool.text.push_str("\\n");
        }
        pool
    }

    /// About `size` bytes, never cut inside an escape.
    fn take(&self, random: &mut Random, size: usize) -> &str {
        let first = random.range(0, self.lines.len() as u64 / 2) as usize;
        let start = self.lines[first];
        let end = self.lines.partition_point(|at| *at < start + size).min(self.lines.len() - 1);
        &self.text[start..self.lines[end]]
    }
}

struct Maker {
    random: Random,
    pool: Pool,
    row: String,
    truth: Truth,
    now: i64,
    leaf: Option<String>,
    prompt_id: String,
    prompt_index: u64,
    message: u64,
    numbered: Option<Vec<Message>>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let pool = Pool::new(&mut random);
        Self {
            random,
            pool,
            row: String::new(),
            truth: Truth::default(),
            now: ROOT_TIME,
            leaf: None,
            prompt_id: String::new(),
            prompt_index: 0,
            message: 0,
            numbered: None,
        }
    }

    fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.row.as_bytes())?;
        self.truth.bytes += self.row.len() as u64;
        self.row.clear();
        Ok(())
    }

    fn text(&mut self, size: u64) -> String {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut text = String::new();
        while text.len() < size {
            text.push_str(self.pool.take(&mut self.random, size - text.len()));
        }
        text
    }

    /// A row outside the chain.
    fn loose(&mut self, body: &str) {
        self.row.push_str(body);
        self.row.push('\n');
        self.truth.rows += 1;
    }

    /// A row of the chain: `middle` stands between the head and the tail that all of them share.
    fn chained(&mut self, middle: &str, after: &str) {
        let uuid = self.random.uuid();
        self.chained_as(middle, after, &uuid);
    }

    fn chained_as(&mut self, middle: &str, after: &str, uuid: &str) {
        let parent = self.leaf.take().map_or_else(|| "null".to_owned(), |p| format!("\"{p}\""));
        self.tick();
        let stamp = stamp(self.now);
        self.row.push_str(&format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,{middle},\"uuid\":\"{uuid}\",\"timestamp\":\"{stamp}\"{after},\
             \"userType\":\"external\",\"entrypoint\":\"cli\",\"cwd\":\"/home/someone/work/project\",\"sessionId\":\"{SESSION}\",\
             \"version\":\"2.1.332\",\"gitBranch\":\"main\",\"slug\":\"calm-counting-otter\"}}\n"
        ));
        self.truth.rows += 1;
        self.leaf = Some(uuid.to_owned());
    }

    /// Lets time pass before a row of the conversation, and counts it.
    fn tick(&mut self) {
        let gap = match self.random.range(0, 1000) {
            0 => self.random.range(600_000, 20_000_000),
            1..100 => self.random.range(5_000, 90_000),
            _ => self.random.range(1, 3_000),
        };
        let gap = i64::try_from(gap).unwrap_or(0);
        self.now += gap;
        if self.truth.first_at == 0 {
            self.truth.first_at = self.now;
        } else if gap < 600_000 {
            self.truth.active_ms += gap;
        }
        self.truth.last_at = self.now;
    }

    fn opening(&mut self) {
        self.loose(&format!(r#"{{"type":"mode","mode":"normal","sessionId":"{SESSION}"}}"#));
        self.loose(&format!(
            r#"{{"type":"permission-mode","permissionMode":"auto","sessionId":"{SESSION}"}}"#
        ));
    }

    fn turn(&mut self) {
        self.prompt_index += 1;
        let every = |nth: u64, of: u64| self.numbered.is_some() && self.prompt_index % of == nth;
        let (rewinds, long, queues) = (every(5, 8), every(9, 16), every(2, 4));
        if rewinds {
            self.rewound();
        }
        self.prompt(if long { Said::Long } else { Said::Typed });
        if rewinds {
            self.loose(&format!(
                r#"{{"type":"last-prompt","leafUuid":"00000000-0000-0000-0000-000000000000","explicit":true,"sessionId":"{SESSION}"}}"#
            ));
        }
        self.truth.prompts += 1;
        if self.prompt_index == 1 {
            self.snapshot();
        }
        for _ in 0..self.random.range(2, 24) {
            self.response(true);
        }
        if queues {
            self.mid_turn();
        }
        self.response(false);
        let took = self.random.range(1_000, 900_000);
        self.chained(
            &format!(r#""type":"system","subtype":"turn_duration","durationMs":{took},"messageCount":19"#),
            r#","isMeta":false"#,
        );
        let leaf = self.leaf.clone().unwrap_or_default();
        self.loose(&format!(
            r#"{{"type":"last-prompt","lastPrompt":"go on","leafUuid":"{leaf}","sessionId":"{SESSION}"}}"#
        ));
        self.loose(&format!(r#"{{"type":"mode","mode":"normal","sessionId":"{SESSION}"}}"#));
    }

    fn prompt(&mut self, said: Said) {
        self.prompt_id = self.random.uuid();
        let uuid = self.random.uuid();
        let at = stamp(self.now);
        self.loose(&format!(
            r#"{{"type":"file-history-snapshot","messageId":"{uuid}","snapshot":{{"messageId":"{uuid}","trackedFileBackups":{{}},"timestamp":"{at}"}},"isSnapshotUpdate":false}}"#
        ));
        let size =
            if said == Said::Long { self.random.range(10_000, 13_000) } else { self.random.range(20, 900) };
        let text = self.said(said, size);
        let (id, index) = (self.prompt_id.clone(), self.prompt_index);
        self.chained_as(
            &format!(
                r#""promptId":"{id}","type":"user","message":{{"role":"user","content":"{text}"}}"#
            ),
            &format!(
                r#","permissionMode":"auto","origin":{{"kind":"human"}},"promptSource":"typed","sentAtMs":{},"turnOrigin":"human","turnPosition":{{"promptIndex":{index},"turnIndex":{index}}}"#,
                self.now
            ),
            &uuid,
        );
    }

    /// A prompt and its answer that are taken back: the next one hangs where this one does.
    fn rewound(&mut self) {
        let before = self.leaf.clone();
        self.prompt(Said::Rewound);
        self.message += 1;
        self.answer("rewound", r#"{"type":"text","text":"No."}"#, 20_000, 1, 1, false);
        self.leaf = before;
    }

    fn mid_turn(&mut self) {
        let size = self.random.range(20, 900);
        let text = self.said(Said::MidTurn, size);
        self.chained(
            &format!(
                r#""attachment":{{"type":"queued_command","prompt":"{text}","commandMode":"prompt","origin":{{"kind":"human"}},"humanTurn":true}},"type":"attachment""#
            ),
            "",
        );
    }

    /// Words of the person, with their serial number where they get one.
    fn said(&mut self, kind: Said, size: u64) -> String {
        let text = self.text(size);
        let Some(numbered) = &mut self.numbered else { return text };
        let serial = format!("message-{:06}", numbered.len());
        let text = format!("{serial} {text}end of it");
        numbered.push(Message { kind, serial, text: text.clone() });
        text
    }

    fn snapshot(&mut self) {
        let text = self.text(40_000);
        self.chained(
            &format!(
                r#""attachment":{{"type":"prompt_snapshot","systemPrompt":["{text}"],"contextRendering":"announced"}},"type":"attachment""#
            ),
            "",
        );
    }

    /// A request, its response of one to three rows, and the results of its tools.
    fn response(&mut self, calls_tools: bool) {
        if self.truth.context > WALL {
            self.compaction();
        }
        let (request, at) = (self.random.uuid(), stamp(self.now));
        if self.random.chance(40) {
            let size = self.random.range(200, 4_000);
            let text = self.text(size);
            let (a, b) = (self.random.next(), self.random.next());
            self.loose(&format!(
                r#"{{"type":"api-request-blob","hash":"{a:016x}{b:016x}","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}}}"#
            ));
        }
        self.loose(&format!(
            r#"{{"type":"api-request","id":"{request}","timestamp":"{at}","querySource":"repl_main_thread","params":{{"model":"{MODEL}","max_tokens":128000,"output_config":{{"effort":"medium"}}}},"keep":2,"sessionId":"{SESSION}"}}"#
        ));
        self.message += 1;
        let before = self.truth.context.max(20_000);
        let (fresh, output) = (self.random.range(1, 3_000), self.random.range(20, 2_500));
        let mut calls = Vec::new();
        if self.random.chance(30) || !calls_tools {
            let size = self.random.range(40, 1_500);
            let text = self.text(size);
            self.answer(
                &request,
                &format!(r#"{{"type":"text","text":"{text}"}}"#),
                before,
                fresh,
                1,
                calls_tools,
            );
        }
        if calls_tools {
            for n in 0..self.random.range(1, 4) {
                let call = format!("toolu_{:016x}{n}", self.random.next());
                let size = self.random.range(30, 2_500);
                let text = self.text(size);
                let name = ["Bash", "Read", "Edit", "Grep"][self.random.range(0, 4) as usize];
                self.answer(
                    &request,
                    &format!(
                        r#"{{"type":"tool_use","id":"{call}","name":"{name}","input":{{"command":"{text}","description":"does it"}}}}"#
                    ),
                    before,
                    fresh,
                    output,
                    true,
                );
                calls.push(call);
                self.truth.tool_calls += 1;
            }
            self.truth.context = before + fresh + 3 + output;
        } else {
            self.truth.context = before + fresh + 3 + 1;
        }
        self.truth.responses += 1;
        for call in calls {
            self.result(&call);
        }
    }

    fn answer(&mut self, request: &str, block: &str, before: u64, fresh: u64, output: u64, tool: bool) {
        let stop = if tool { "tool_use" } else { "end_turn" };
        let id = self.message;
        self.chained(
            &format!(
                r#""message":{{"id":"msg_{id:024}","type":"message","role":"assistant","model":"{MODEL}","content":[{block}],"stop_reason":"{stop}","stop_sequence":null,"usage":{{"input_tokens":3,"cache_creation_input_tokens":{fresh},"cache_read_input_tokens":{before},"output_tokens":{output},"output_tokens_details":{{"thinking_tokens":0}},"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard","cache_creation":{{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":{fresh}}},"inference_geo":"","iterations":[],"speed":"standard","fallback_credit":null}},"stop_details":null}},"apiBlockIndex":0,"requestRef":"{request}","requestedModel":"{MODEL}","promptCacheRequested":"5m","type":"assistant""#
            ),
            r#","effort":"medium","perTurnEffort":"medium","madeBy":"model""#,
        );
    }

    fn result(&mut self, call: &str) {
        let size = match self.random.range(0, 100) {
            0..60 => self.random.range(50, 1_500),
            60..92 => self.random.range(1_500, 9_000),
            _ => self.random.range(9_000, 40_000),
        };
        let text = self.text(size);
        let (id, source) = (self.prompt_id.clone(), self.leaf.clone().unwrap_or_default());
        self.chained(
            &format!(
                r#""promptId":"{id}","type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result","content":"{text}","is_error":false}}]}}"#
            ),
            &format!(
                r#","toolUseResult":{{"stdout":"{text}","stderr":"","interrupted":false,"isImage":false}},"sourceToolAssistantUUID":"{source}","permissionDecision":{{"decision":"accept","source":"config"}}"#
            ),
        );
    }

    fn compaction(&mut self) {
        let pre = self.truth.context + self.random.range(100, 900);
        let post = self.random.range(15_000, 40_000);
        self.truth.auto += 1;
        self.truth.dropped += pre - post;
        let (tail, dropped) = (self.leaf.take().unwrap_or_default(), self.truth.dropped);
        let uuid = self.random.uuid();
        self.tick();
        let at = stamp(self.now);
        self.row.push_str(&format!(
            "{{\"parentUuid\":null,\"logicalParentUuid\":\"{tail}\",\"isSidechain\":false,\"type\":\"system\",\"subtype\":\"compact_boundary\",\
             \"content\":\"Conversation compacted\",\"level\":\"info\",\"compactMetadata\":{{\"trigger\":\"auto\",\"preTokens\":{pre},\
             \"postTokens\":{post},\"cumulativeDroppedTokens\":{dropped},\"durationMs\":40000}},\"uuid\":\"{uuid}\",\"timestamp\":\"{at}\",\
             \"sessionId\":\"{SESSION}\",\"version\":\"2.1.332\"}}\n"
        ));
        self.truth.rows += 1;
        self.leaf = Some(uuid);
        let text = self.text(6_000);
        let id = self.prompt_id.clone();
        self.chained(
            &format!(
                r#""promptId":"{id}","type":"user","message":{{"role":"user","content":"{text}"}},"isVisibleInTranscriptOnly":true,"isCompactSummary":true"#
            ),
            r#","turnPosition":{"promptIndex":1,"turnIndex":1},"turnOrigin":"human""#,
        );
        self.truth.context = post;
    }
}

/// An RFC 3339 time stamp in UTC with milliseconds, as rows carry it.
pub fn stamp(epoch_ms: i64) -> String {
    let (days, ms) = (epoch_ms.div_euclid(86_400_000), epoch_ms.rem_euclid(86_400_000));
    // Days to a civil date, counted in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        ms / 3_600_000,
        ms / 60_000 % 60,
        ms / 1_000 % 60,
        ms % 1_000
    )
}
