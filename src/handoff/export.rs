//! The whole export, from a transcript to a directory.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ancestor::Ancestor;
use super::assemble::{Budget, Group, Material, assemble};
use super::collect::{Collected, collect};
use super::copy::copy;
use super::index::{Facts, index};
use super::lineage;
use super::redact::Redactor;
use super::source::Source;
use super::subagents;
use super::survey::{Survey, survey};
use crate::base::id::SessionId;
use crate::base::text::clean;
use crate::client::projects;
use crate::client::transcript::words::How;
use crate::store::Store;
use crate::store::exports::{Draft, stem};

/// Names of files.
const FULL: &str = "03-full-transcript.txt";
const INDEX: &str = "04-index.json";
const COPY: &str = "parent.jsonl.zst";

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The transcript.
    pub transcript: PathBuf,
    /// Whose it is, where that is known; else the transcript says.
    pub session: Option<SessionId>,
    /// What it is to be called, where it was begun before.
    pub id: Option<String>,
    /// Where to; `None`: the usual place.
    pub out: Option<PathBuf>,
    /// Tokens that the must-read parts may come to.
    pub budget: u64,
    /// Mask credentials; then there is no copy.
    pub redact: bool,
    /// Write no compressed copy; pointers then name the client's file.
    pub no_copy: bool,
    /// A brief to go with it.
    pub brief: Option<String>,
    /// The generations before, from the first on.
    pub ancestors: Vec<Ancestor>,
    /// How much of the transcript counts, in bytes: what was written after that is left out.
    pub until: Option<u64>,
    /// Made by longhaul on its own account, of a session that is known; `None`: somebody asked for it.
    pub automatic: Option<Automatic>,
    /// Epoch milliseconds.
    pub now_ms: i64,
}

/// What an export is known by that nobody asked for.
#[derive(Debug, Clone)]
pub struct Automatic {
    /// Its id, which the caller has for itself.
    pub id: String,
    /// When it was due, epoch milliseconds.
    pub due_ms: i64,
}

/// What came about.
#[derive(Debug)]
pub struct Done {
    /// The export's id.
    pub id: String,
    /// Where it is.
    pub dir: PathBuf,
    /// The parent session.
    pub session: String,
    /// What it is called: its title, else how the first prompt begins.
    pub title: Option<String>,
    /// The directory that its first row names.
    pub cwd: Option<PathBuf>,
    /// What `04-index.json` holds.
    pub index: Value,
    /// The parts.
    pub groups: Vec<Group>,
    /// What the budget made of them.
    pub budget: Budget,
    /// Credentials that were masked.
    pub masked: u64,
}

/// What failed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The transcript.
    #[error("could not read the transcript {}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Whoever asked for it did not want it any more.
    #[error("the export was stopped; nothing is left of it")]
    Stopped,
    /// The export.
    #[error("could not write the export {}: {error}; nothing is left of it", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Whoever follows an export.
pub trait Follow {
    /// It has this id now and will lie there, before anything is read: told where the session is known
    /// beforehand. An error ends it.
    fn begun(&mut self, _id: &str, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    /// All of it is written, and has its name next. An error ends it.
    fn written(&mut self, _done: &Done) -> io::Result<()> {
        Ok(())
    }

    /// This share of the work is done, in thousandths; whether to go on.
    fn at(&mut self, _share: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Nobody follows it.
impl Follow for () {}

/// Writes a session out. Where anything fails, nothing is left.
pub fn export(request: &Request, store: &Store, follow: &mut dyn Follow) -> Result<Done, Failed> {
    let path = &request.transcript;
    let unread = |error| Failed::Read { path: path.clone(), error };
    let source = Source::open(path).map_err(unread)?.up_to(request.until);
    let usual = store.dir().join("handoffs");
    let place = request.out.clone().unwrap_or(usual);
    let mut steps = Steps::of(follow, source.end());
    let written = write(request, store, source, &mut steps);
    written
        .map_err(|error| if steps.stopped { Failed::Stopped } else { Failed::Write { path: place, error } })
}

fn write(request: &Request, store: &Store, source: Source, steps: &mut Steps) -> io::Result<Done> {
    let mut redactor =
        if request.redact { Redactor::new().map_err(io::Error::other)? } else { Redactor::default() };
    let begin = |session: &str| {
        if let Some(automatic) = &request.automatic {
            return Draft::begin_as(store, &automatic.id);
        }
        let stem = request.id.clone().unwrap_or_else(|| stem(request.now_ms, session));
        Draft::begin(store, &stem, request.out.as_deref())
    };
    let early = request.session.as_ref().map(|session| begin(session.as_str())).transpose()?;
    if let Some(draft) = &early {
        steps.follow.begun(draft.id(), draft.target())?;
    }
    let (source, found) = surveyed(source, steps)?;
    let named = projects::session_of(&request.transcript);
    let session = found.session.as_deref().and_then(SessionId::parse).or(named);
    let session = session.map_or_else(|| "unknown".to_owned(), |id| id.as_str().to_owned());
    let draft = match early {
        Some(draft) => draft,
        None => begin(&session)?,
    };
    let full = draft.create(FULL)?;
    let collected = collect(&source, &found, &mut redactor, full, draft.scratch()?, &mut |at| steps.at(at))?;
    steps.before += source.end();
    let into = if request.redact || request.no_copy { None } else { Some(draft.create(COPY)?) };
    let copied = into.is_some();
    let blake3 = copy(&source, into, &mut |at| steps.at(at))?;
    let transcript = request.transcript.display().to_string();
    let origin = match source.pieces().count() {
        _ if copied => COPY,
        1 => &transcript,
        // Nobody counts that out; the index says where they lie.
        _ => "the transcripts named by 04-index.json, one behind the other",
    };
    let material = Material {
        draft: &draft,
        survey: &found,
        collected: &collected,
        origin,
        brief: request.brief.as_deref(),
        ancestors: &request.ancestors,
        budget: request.budget,
    };
    let title = title(&found, &collected, &mut redactor)?;
    let (groups, budget) = assemble(&material, &mut redactor)?;
    let subagents = subagents::all(&request.transcript, &mut redactor, &mut || steps.look())?;
    let size = |name: &str| std::fs::metadata(draft.dir().join(name)).map(|meta| meta.len());
    let facts = Facts {
        id: draft.id(),
        now_ms: request.now_ms,
        transcript: &transcript,
        source: &source,
        origin,
        blake3: &blake3,
        copy: if copied { Some((COPY, size(COPY)?)) } else { None },
        full: (FULL, size(FULL)?),
        survey: &found,
        collected: &collected,
        subagents: &subagents,
        groups: &groups,
        budget: &budget,
        session: &session,
    };
    let index = index(&facts, &mut redactor);
    draft.create(INDEX)?.write_all(&serde_json::to_vec_pretty(&index)?)?;
    steps.look()?;
    let key = serde_json::to_vec(&key(request, &draft, &groups))?;
    let (id, cwd) = (draft.id().to_owned(), found.started_in.as_ref().map(PathBuf::from));
    // Texts without a name are closed before the directory moves.
    drop(collected);
    let dir = draft.target().to_path_buf();
    let done = Done { id, dir, session, title, cwd, index, groups, budget, masked: redactor.masked };
    steps.follow.written(&done)?;
    draft.finish(&key)?;
    Ok(done)
}

fn title(found: &Survey, collected: &Collected, redactor: &mut Redactor) -> io::Result<Option<String>> {
    const BEGINNING: usize = 400;
    let typed = collected.said.iter().find(|entry| entry.how == Some(How::Prompt));
    let words = match (found.title(), typed) {
        (Some(title), _) => title.to_owned(),
        (None, Some(entry)) => collected.texts.of(entry)?.trim_start().chars().take(BEGINNING).collect(),
        (None, None) => return Ok(None),
    };
    // It becomes a name: what no terminal may be shown is left out there, not written out.
    let words = redactor.apply(words).lines().map(clean).collect::<Vec<_>>().join("\n");
    Ok(Some(words).filter(|words| !words.trim().is_empty()))
}

/// Reads it the first time; where it turns out to go on from another transcript, that one's share as well.
fn surveyed(mut source: Source, steps: &mut Steps) -> io::Result<(Source, Survey)> {
    // Every piece is another file, and no chain of forks is this long.
    const PIECES_MAX: usize = 32;
    loop {
        let found = survey(&source, &mut |at| steps.at(at))?;
        steps.before += source.end();
        let before = match &found.begins_with {
            Some(boundary) => lineage::before(&source, boundary, &mut || steps.look())?,
            None => None,
        };
        match before {
            Some(piece) if source.pieces().count() < PIECES_MAX => {
                source.begin_with(piece);
                steps.all = steps.before.saturating_add(source.end().saturating_mul(3));
            }
            _ => return Ok((source, found)),
        }
    }
}

/// The codes of every part, in the order in which they are read, and what is known of one nobody asked for.
fn key(request: &Request, draft: &Draft, groups: &[Group]) -> Value {
    let parts = groups.iter().flat_map(|group| &group.parts);
    let parts: Vec<Value> = parts.map(|part| json!({ "file": part.file, "codes": part.codes })).collect();
    let mut key = json!({ "version": 1, "export": draft.id(), "directory": draft.target(), "parts": parts });
    if let Some((automatic, session)) = request.automatic.as_ref().zip(request.session.as_ref()) {
        key["automatic"] =
            json!({ "session": session.as_str(), "until": request.until, "due_ms": automatic.due_ms });
    }
    key
}

/// Says what share of the work is done, at most every thousandth of it.
struct Steps<'a> {
    follow: &'a mut dyn Follow,
    all: u64,
    before: u64,
    said: u64,
    stopped: bool,
}

impl<'a> Steps<'a> {
    /// Three readings of so many bytes.
    fn of(follow: &'a mut dyn Follow, bytes: u64) -> Self {
        Self { follow, all: bytes.saturating_mul(3).max(1), before: 0, said: 0, stopped: false }
    }

    fn at(&mut self, at: u64) -> io::Result<()> {
        let share = (self.before.saturating_add(at)).saturating_mul(1000) / self.all;
        if share > self.said {
            self.said = share;
            return self.look();
        }
        Ok(())
    }

    /// Whether it is still wanted, where there is no share to name.
    fn look(&mut self) -> io::Result<()> {
        if self.follow.at(self.said).is_break() {
            self.stopped = true;
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }
}
