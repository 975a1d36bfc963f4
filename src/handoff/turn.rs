//! The child's turns: at most two in one run, and after each the proof from its own transcript.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::ask;
use super::continuation::{Step, Work, parent};
use super::failure::Failure;
use super::proof::{Part, Proof, Verdict};
use crate::base::id::SessionId;
use crate::base::shell::word;
use crate::client::headless::{OUTPUT_MOST, Outcome, Turn, own_variables, says_id_is_taken};
use crate::client::program::{self, Found};
use crate::client::projects;
use crate::client::transcript::acts::Acts;
use crate::host::clock::{Deadline, sleep_ms};
use crate::host::process::{self, Process, Ran, Running};
use crate::host::{files, random};
use crate::store::Store;
use crate::store::chains::{Entry, Link, Outlook, State};
use crate::store::session::Slot;

/// Turns of a child in one run.
const TURNS: u64 = 2;
/// New ids that are tried.
const IDS: usize = 3;
/// How often the child is looked after, in ms.
const EVERY_MS: u64 = 50;
/// How often its transcript is, in ms.
const TRANSCRIPT_EVERY_MS: u64 = 500;
/// An index or a key larger than this is not ours, in bytes.
const INDEX_MOST: u64 = 64 << 20;
/// What the client said is kept up to here, in characters.
const SAID_MOST: usize = 600;

/// What is to be read.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    parts: Vec<Part>,
    /// What the parts come to, in tokens.
    pub tokens: u64,
}

impl Reader {
    /// The parts of an export, with their codes.
    pub fn open(store: &Store, entry: &Entry) -> Result<Self, Failure> {
        // The registry may say anything of where it lies.
        let usual = store.export_dir(&entry.id).unwrap_or_default();
        let damaged = |what: String| Failure::Damaged { directory: usual.clone(), what };
        let dir = usual.canonicalize().map_err(|error| damaged(error.to_string()))?;
        let json = |bytes: std::io::Result<Vec<u8>>, which: &str| -> Result<Value, Failure> {
            let bytes = bytes.map_err(|error| damaged(format!("{which}: {error}")))?;
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("{which}: {error}")))
        };
        let index = json(files::read_small(&dir.join("04-index.json"), INDEX_MOST), "04-index.json")?;
        let key = json(store.export_key(&entry.id), "its key")?;
        let parts = parts(&dir, &index, &key)
            .ok_or_else(|| damaged("its index and its key do not agree".to_owned()))?;
        for part in &parts {
            let bytes = files::read_small(&part.path, INDEX_MOST);
            let is_it = bytes.is_ok_and(|bytes| blake3::hash(&bytes).to_hex().as_str() == part.blake3);
            if !is_it {
                return Err(damaged(format!("{} is gone or changed", part.file)));
            }
        }
        let tokens = index["budget"]["used"].as_u64().unwrap_or(0);
        Ok(Self { dir, parts, tokens })
    }

    /// What the child's transcript shows by now, and whether anything was said in it.
    fn prove(&self, transcript: Option<&Path>) -> (Verdict, bool) {
        let (mut proof, mut acts) = (Proof::of(&self.parts), Acts::default());
        if let Some(path) = transcript {
            // What cannot be read proves nothing.
            let _ = acts.since(path, &mut |act| proof.act(act));
        }
        (proof.verdict().clone(), acts.conversation)
    }
}

/// Index and key together, in the order in which the parts are read.
fn parts(dir: &Path, index: &Value, key: &Value) -> Option<Vec<Part>> {
    let listed: Vec<&Value> = index["must_read"]
        .as_array()?
        .iter()
        .filter_map(|group| group["parts"].as_array())
        .flatten()
        .collect();
    let keyed = key["parts"].as_array()?;
    if listed.is_empty() || listed.len() != keyed.len() {
        return None;
    }
    let part = |(listed, keyed): (&&Value, &Value)| {
        let file = listed["file"].as_str().filter(|file| Some(*file) == keyed["file"].as_str())?;
        // A name, not a way out of the directory.
        let plain = Path::new(file).components().count() == 1 && !file.starts_with('.');
        let codes: Option<Vec<String>> =
            keyed["codes"].as_array()?.iter().map(|code| code.as_str().map(str::to_owned)).collect();
        let codes = codes.filter(|codes| !codes.is_empty())?;
        plain.then_some(())?;
        Some(Part {
            file: file.to_owned(),
            path: dir.join(file),
            entries: listed["entries"].as_u64()?,
            codes,
            blake3: listed["blake3"].as_str()?.to_owned(),
        })
    };
    listed.iter().zip(keyed).map(part).collect()
}

/// The turns of one run.
pub struct Turns<'a, 'b> {
    /// Keeps and tells.
    pub work: &'a mut Work<'b>,
    /// What is to be read.
    pub reader: Reader,
    /// When the run ends.
    pub deadline: Deadline,
    /// How long it was given.
    pub timeout_s: u64,
}

impl Turns<'_, '_> {
    /// Runs turns until the proof is accepted, or two were not enough.
    pub fn run(&mut self, entry: Entry) -> Result<Entry, Failure> {
        let mut entry = entry;
        self.outlive(&entry)?;
        let mut verdict = self.look(&entry);
        let mut ran: Option<Ran> = None;
        for _ in 0..TURNS {
            if verdict.accepted() {
                break;
            }
            let (next, outcome) = self.turn(entry, &verdict)?;
            entry = next;
            verdict = self.look(&entry);
            entry = self.proved(&entry, &verdict)?;
            if outcome.code != Some(0) && !verdict.accepted() {
                return Err(Failure::Exit { id: entry.id, code: outcome.code, said: said(&outcome) });
            }
            ran = Some(outcome);
        }
        if verdict.accepted() {
            return self.accept(&entry, &verdict);
        }
        let (id, child) = (entry.id.clone(), child_of(&entry));
        match (verdict.answer, entry.proof) {
            (Some(_), Some(proof)) => Err(Failure::Partial { id, child, proof: Box::new(proof) }),
            _ => Err(Failure::Answer { id, child, what: ran.map_or_else(String::new, |ran| said(&ran)) }),
        }
    }

    /// A child of an earlier run that was killed may still be reading: it is let finish.
    fn outlive(&mut self, entry: &Entry) -> Result<(), Failure> {
        let Some(Link { pid: Some(pid), started: Some(started), .. }) = &entry.child else { return Ok(()) };
        let process = Process { pid: *pid, start: Some(started.clone()) };
        if process.runs() {
            self.work.note(Some(format!("the child of an earlier run still reads (process {pid})")));
        }
        while process.runs() {
            if let Some(failure) = self.over(entry) {
                // Not started by this process, and so not ended by it.
                let (id, child) = (entry.id.clone(), child_of(entry));
                let seconds = self.timeout_s;
                return Err(match failure {
                    Failure::TimedOut { .. } => Failure::StillReads { id, child, pid: *pid, seconds },
                    stopped => stopped,
                });
            }
            sleep_ms(EVERY_MS);
        }
        Ok(())
    }

    fn turn(&mut self, entry: Entry, verdict: &Verdict) -> Result<(Entry, Ran), Failure> {
        let mut entry = entry;
        for _ in 0..IDS {
            let (next, ran) = self.try_turn(&entry, verdict)?;
            entry = next;
            if ran.code == Some(0) || !says_id_is_taken(&ran.stderr) {
                return Ok((entry, ran));
            }
            entry = self.work.keep(&entry, |entry| {
                let taken = entry.child.take();
                entry.ids_in_use.extend(taken.map(|child| child.session));
            })?;
        }
        Err(Failure::IdInUse { id: entry.id, tried: IDS })
    }

    fn try_turn(&mut self, entry: &Entry, verdict: &Verdict) -> Result<(Entry, Ran), Failure> {
        if let Some(failure) = self.over(entry) {
            return Err(failure);
        }
        let program = self.client(entry)?;
        let transcript = self.transcript(entry);
        let resumed = self.reader.prove(transcript.as_deref()).1;
        // A file with no conversation in it can be neither resumed nor begun again.
        let child = match entry.child.as_ref().filter(|_| resumed || transcript.is_none()) {
            Some(child) => child.session.clone(),
            None => random::uuid()?,
        };
        let dir = entry.cwd.clone().unwrap_or_else(|| self.reader.dir.clone());
        let prompt = if resumed && (verdict.answer.is_some() || verdict.read > 0) {
            ask::again(&self.reader.dir, &self.reader.parts, verdict)
        } else {
            ask::reading(parent(entry), &self.reader.dir, &self.reader.parts)
        };
        let guard = self.guard()?;
        let turn = Turn {
            session: &child,
            name: (!resumed).then_some(entry.name.as_str()),
            model: entry.model.as_deref(),
            dir: &self.reader.dir,
            guard: &guard,
            schema: &ask::schema(&self.reader.parts),
        };
        let started = process::Start {
            program: &program,
            args: &turn.arguments(),
            without: &own_variables(self.work.host),
            dir: &dir,
            input: prompt.as_bytes(),
            most: OUTPUT_MOST,
        };
        let (now, link) = (self.work.host.now_ms(), Link { session: child, ..Link::default() });
        // Kept before it is there: one that is left alone by a killed longhaul is known by its id.
        let before = entry.child.clone();
        let entry = self.work.keep(entry, |entry| {
            entry.state = State::Reading;
            entry.times.asked = Some(now);
            entry.child = Some(link);
        })?;
        let mark = Mark::set(self.work.store, &child_of(&entry));
        let mut running = match process::start(&started) {
            Ok(running) => running,
            Err(error) => {
                let id = entry.id.clone();
                self.work.keep(&entry, |entry| entry.child = before)?;
                return Err(Failure::NotStarted { id, program, dir, error });
            }
        };
        let process = running.process();
        let asked = entry.proof.as_ref().map_or(0, |proof| proof.turns) + 1;
        let entry = self.work.keep(&entry, |entry| {
            if let Some(child) = &mut entry.child {
                (child.pid, child.started) = (Some(process.pid), process.start);
            }
        })?;
        (self.work.tell)(Step::Asked(asked));
        let ran = self.wait(&mut running, &entry);
        drop(mark);
        let entry = self.work.keep(&entry, |entry| {
            // It has ended: its number may be another's soon.
            if let Some(child) = &mut entry.child {
                (child.pid, child.started) = (None, None);
            }
        })?;
        Ok((entry, ran?))
    }

    /// Until the child has ended, or must.
    fn wait(&mut self, running: &mut Running, entry: &Entry) -> Result<Ran, Failure> {
        let mut look_at = Deadline::after_ms(TRANSCRIPT_EVERY_MS);
        let mut shown = 0;
        loop {
            if let Some(ran) = running.poll()? {
                return Ok(ran);
            }
            if let Some(failure) = self.over(entry) {
                running.end();
                return Err(failure);
            }
            if look_at.passed() {
                look_at = Deadline::after_ms(TRANSCRIPT_EVERY_MS);
                let read = self.look(entry).read;
                if read != shown {
                    shown = read;
                    (self.work.tell)(Step::Read(read, self.reader.parts.len()));
                }
            }
            sleep_ms(EVERY_MS);
        }
    }

    /// Why the run must end now, if it must.
    fn over(&self, entry: &Entry) -> Option<Failure> {
        if let Some(signal) = self.work.stop.asked() {
            return Some(Failure::Stopped { id: entry.id.clone(), signal });
        }
        self.deadline.passed().then(|| Failure::TimedOut {
            id: entry.id.clone(),
            child: child_of(entry),
            seconds: self.timeout_s,
        })
    }

    fn proved(&mut self, entry: &Entry, verdict: &Verdict) -> Result<Entry, Failure> {
        let parts = &self.reader.parts;
        let (count, marks) = (parts.len(), parts.iter().map(|part| part.codes.len()).sum());
        let shortfalls = verdict.shortfalls.clone();
        let accepted = verdict.accepted();
        self.work.keep(entry, |entry| {
            let proof = entry.proof.get_or_insert_default();
            proof.turns += 1;
            (proof.accepted, proof.parts, proof.marks, proof.shortfalls) =
                (accepted, count, marks, shortfalls);
        })
    }

    fn accept(&mut self, entry: &Entry, verdict: &Verdict) -> Result<Entry, Failure> {
        let now = self.work.host.now_ms();
        let parts = &self.reader.parts;
        let (count, marks) = (parts.len(), parts.iter().map(|part| part.codes.len()).sum());
        let answer = verdict.answer.clone().unwrap_or_default();
        self.work.keep(entry, |entry| {
            entry.state = State::Accepted;
            entry.failure = None;
            entry.times.ended = Some(now);
            let proof = entry.proof.get_or_insert_default();
            proof.shortfalls = Vec::new();
            (proof.accepted, proof.parts, proof.marks) = (true, count, marks);
            entry.outlook = Some(Outlook {
                open_threads: answer.open_threads,
                standing_instructions: answer.standing_instructions,
                next: answer.next,
            });
        })
    }

    fn look(&self, entry: &Entry) -> Verdict {
        self.reader.prove(self.transcript(entry).as_deref()).0
    }

    fn transcript(&self, entry: &Entry) -> Option<PathBuf> {
        let id = SessionId::parse(&entry.child.as_ref()?.session)?;
        projects::transcript(self.work.store.config(), &id)
    }

    fn client(&mut self, entry: &Entry) -> Result<PathBuf, Failure> {
        // Where the session worked, and where this runs: its environment may be that of another project.
        let host = self.work.host;
        let here = [host.env_path("CLAUDE_PROJECT_DIR"), host.current_dir()];
        let untrusted: Vec<PathBuf> = entry.cwd.iter().cloned().chain(here.into_iter().flatten()).collect();
        let mut passed_over = Vec::new();
        let running = Process { pid: entry.parent.pid.unwrap_or(0), start: entry.parent.started.clone() };
        let running = entry.parent.pid.filter(|_| running.runs());
        let (path, version) = match program::find(host, running, &untrusted, &mut passed_over) {
            Found::Is(path, version) => (path, Some(version.to_string())),
            Found::Unknown(path) => (path, None),
            Found::Nothing => return Err(Failure::NoClient { id: entry.id.clone(), passed_over }),
        };
        self.work.keep(entry, |entry| entry.client_version = version)?;
        Ok(path)
    }

    /// The command that is asked before every tool. Whatever goes wrong in it, the tool does not run.
    fn guard(&self) -> Result<String, Failure> {
        let exe = self
            .work
            .host
            .current_exe()
            .ok_or_else(|| std::io::Error::other("this program's own file is unknown"))?;
        let (exe, dir) = (exe.to_string_lossy(), self.reader.dir.to_string_lossy());
        Ok(format!("{} handoff guard --only {} || exit 2", word(&exe), word(&dir)))
    }
}

fn child_of(entry: &Entry) -> String {
    entry.child.as_ref().map(|child| child.session.clone()).unwrap_or_default()
}

/// What a client that failed has to say.
fn said(ran: &Ran) -> String {
    let told = Outcome::parse(&ran.stdout).and_then(|outcome| outcome.result).unwrap_or_default();
    let of = |bytes: &[u8]| {
        let most = bytes.len().min(4 * SAID_MOST);
        String::from_utf8_lossy(&bytes[..most]).trim().to_owned()
    };
    // What is no result is quoted where there is nothing better.
    let texts = [told.trim().to_owned(), of(&ran.stderr), of(&ran.stdout)];
    let text = texts.iter().find(|text| !text.is_empty()).map_or("it said nothing", String::as_str);
    text.chars().take(SAID_MOST).collect()
}

/// Tells longhaul's own hooks that a session is being read to: there they are silent.
struct Mark<'a>(&'a Store, Option<SessionId>);

impl<'a> Mark<'a> {
    fn set(store: &'a Store, session: &str) -> Self {
        let me = process::find(process::own_pid());
        let id = SessionId::parse(session);
        if let (Some(id), Some(me), Ok(())) = (&id, me, store.prepare()) {
            let text = format!("{} {}", me.pid, me.start.unwrap_or_default());
            let _ = store.save(id, Slot::Reading, text.as_bytes());
        }
        Self(store, id)
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.1 {
            self.0.forget(id, Slot::Reading);
        }
    }
}
