//! The child's turns: at most two in one run, and after each the proof from its own transcript.

use std::path::PathBuf;

use super::ask;
use super::continuation::{Step, Work, parent};
use super::failure::Failure;
use super::proof::Verdict;
use super::reader::Reader;
use crate::base::id::SessionId;
use crate::base::shell::word;
use crate::client::headless::{OUTPUT_MOST, Outcome, Turn, own_variables, says_id_is_taken};
use crate::client::program::{self, Found};
use crate::client::{projects, session_file};
use crate::host::clock::{Deadline, sleep_ms};
use crate::host::process::{self, Process, Ran, Running};
use crate::host::random;
use crate::store::Store;
use crate::store::chains::{Entry, Link, Outlook, Proof, State};
use crate::store::session::Slot;

/// Turns of a child in one run.
const TURNS: u64 = 2;
/// New ids that are tried.
const IDS: usize = 3;
/// How often the child is looked after, in ms.
const EVERY_MS: u64 = 50;
/// How often its transcript is, in ms.
const TRANSCRIPT_EVERY_MS: u64 = 500;
/// What the client said is kept up to here, in characters.
const SAID_MOST: usize = 600;

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
        let Some(child) = &entry.child else { return Ok(()) };
        // The mark of that run is void: it is taken away with this one.
        let _mark = Mark::set(self.work.store, &child.session);
        let Some(process) = self.left(entry.state, child) else { return Ok(()) };
        let pid = process.pid;
        if process.runs() {
            self.work.note(Some(format!("the child of an earlier run still reads (process {pid})")));
        }
        while process.runs() {
            if let Some(failure) = self.over(entry) {
                // Not started by this process, and so not ended by it.
                let (id, child) = (entry.id.clone(), child_of(entry));
                let seconds = self.timeout_s;
                return Err(match failure {
                    Failure::TimedOut { .. } => Failure::StillReads { id, child, pid, seconds },
                    stopped => stopped,
                });
            }
            sleep_ms(EVERY_MS);
        }
        Ok(())
    }

    /// The process of a child that may have been left alone: as it was kept or, where the run was killed between
    /// starting it and keeping that, as the client itself tells.
    fn left(&self, state: State, child: &Link) -> Option<Process> {
        if let (Some(pid), start @ Some(_)) = (child.pid, child.started.clone()) {
            return Some(Process { pid, start });
        }
        let session = SessionId::parse(&child.session).filter(|_| state == State::Reading)?;
        let running = session_file::of_session(self.work.store.config(), &session)?;
        Some(Process { pid: running.pid?, start: running.proc_start })
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
        let proof = self.proof(verdict);
        self.work.keep(entry, |entry| {
            let turns = entry.proof.as_ref().map_or(0, |proof| proof.turns) + 1;
            entry.proof = Some(Proof { turns, ..proof });
        })
    }

    fn accept(&mut self, entry: &Entry, verdict: &Verdict) -> Result<Entry, Failure> {
        let now = self.work.host.now_ms();
        let (proof, answer) = (self.proof(verdict), verdict.answer.clone().unwrap_or_default());
        self.work.keep(entry, |entry| {
            entry.state = State::Accepted;
            entry.failure = None;
            entry.times.ended = Some(now);
            let turns = entry.proof.as_ref().map_or(0, |proof| proof.turns);
            entry.proof = Some(Proof { turns, ..proof });
            entry.outlook = Some(Outlook {
                open_threads: answer.open_threads,
                standing_instructions: answer.standing_instructions,
                next: answer.next,
            });
        })
    }

    /// As the registry keeps it; the turns are the entry's.
    fn proof(&self, verdict: &Verdict) -> Proof {
        let parts = &self.reader.parts;
        Proof {
            accepted: verdict.accepted(),
            parts: parts.len(),
            marks: parts.iter().map(|part| part.codes.len()).sum(),
            shortfalls: verdict.shortfalls.clone(),
            turns: 0,
        }
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
