//! Which session is meant, in the three ways it can be named.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};

use super::jobs;
use crate::base::id::SessionId;
use crate::client::payload::Payload;
use crate::client::{projects, session_file};
use crate::gauge::gather::{Leaves, Subject, Taken, take};
use crate::gauge::records::Seen;
use crate::host::clock::Deadline;
use crate::host::{Host, files, input};
use crate::store::session::Slot;
use crate::store::{Store, config_dir};

/// Which session.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(multiple = false)]
pub struct Selector {
    /// A session by its id, as /status shows it [default: the one this shell runs in, else the one open in this
    /// directory]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A transcript (.jsonl) by its path
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// A status line payload (JSON) by its path; - reads standard input
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
}

/// How long a person waits for a transcript to be measured at most, in ms.
const BUDGET_MS: u64 = 600_000;
const PAYLOAD_MOST: u64 = 4 << 20;

impl Selector {
    /// Whether this shell's environment stands in for that of a session whose own was never seen.
    pub fn borrows_environment(&self, host: &Host, subject: &Subject) -> bool {
        let own = host.env("CLAUDE_CODE_SESSION_ID");
        let is_own = own.is_some() && own.as_deref() == subject.session.as_ref().map(SessionId::as_str);
        subject.inside && self.payload.is_none() && !is_own
    }

    /// A session by its id, or a transcript by its path.
    pub fn of(session: Option<String>, transcript: Option<PathBuf>) -> Self {
        Self { session, transcript, payload: None }
    }

    /// Takes a reading of what is selected.
    pub fn read(&self, host: &Host, model: Option<&String>, subtasks: u64) -> Result<(Subject, Taken)> {
        let store = store(host);
        let mut subject = match (&self.session, &self.transcript, &self.payload) {
            (_, Some(file), _) => of_transcript(host, store.as_ref(), file)?,
            (_, _, Some(file)) => of_payload(host, file)?,
            (Some(id), ..) => of_session(host, store.as_ref(), id)?,
            _ => of_session(host, store.as_ref(), &own_session(host)?)?,
        };
        if model.is_some() {
            subject.model = model.cloned();
        }
        subject.subtasks = subtasks;
        // Another model or another shell's environment, asked about here, is nothing the session has.
        subject.leaves = Leaves::Progress;
        if let Some((store, session)) = store.as_ref().zip(subject.session.as_ref()) {
            jobs::finish(host, store, session);
        }
        let taken = take(host, store.as_ref(), &subject, BUDGET_MS);
        Ok((subject, taken))
    }
}

/// The store of the person at this shell, whose project may have moved it.
pub fn store(host: &Host) -> Option<Store> {
    let project = host.env_path("CLAUDE_PROJECT_DIR").or_else(|| host.current_dir());
    let untrusted: Vec<&Path> = project.as_deref().into_iter().collect();
    Store::locate(host, &untrusted)
}

/// The same, or how to have one.
pub fn place(host: &Host) -> Result<Store> {
    store(host).ok_or_else(|| {
        anyhow!(
            "could not find a place for longhaul's files outside the project; set HOME or CLAUDE_CONFIG_DIR"
        )
    })
}

/// The session of this id, or the one this shell belongs to; one that nobody knows is an error.
pub fn session(host: &Host, store: Option<&Store>, id: Option<&str>) -> Result<SessionId> {
    let id = id.map_or_else(|| own_session(host), |id| Ok(id.to_owned()))?;
    let subject = of_session(host, store, &id)?;
    let session = subject.session.ok_or_else(|| anyhow!("could not find session {id}"))?;
    if let Some(store) = store {
        jobs::finish(host, store, &session);
    }
    Ok(session)
}

/// The session this shell runs in, else the one open in this directory; several are an error.
pub fn own_session_if_any(host: &Host) -> Result<Option<String>> {
    if let Some(id) = host.env("CLAUDE_CODE_SESSION_ID").filter(|id| !id.is_empty()) {
        return Ok(Some(id));
    }
    let here = host.current_dir();
    let running = config_dir(host).map(|config| session_file::all(&config)).unwrap_or_default();
    let in_here = |file: &&session_file::SessionFile| file.cwd.as_ref().map(Path::new) == here.as_deref();
    let mut found = running.iter().filter(in_here).filter_map(|file| file.session_id.clone());
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            bail!(
                "several sessions are open in this directory; name one with --session ID, which /status shows"
            )
        }
        (found, _) => Ok(found),
    }
}

fn own_session(host: &Host) -> Result<String> {
    own_session_if_any(host)?.ok_or_else(|| {
        anyhow!(
            "this shell runs in no session and none is open in this directory; name one with --session ID, which \
             /status shows"
        )
    })
}

fn of_session(host: &Host, store: Option<&Store>, text: &str) -> Result<Subject> {
    let id = SessionId::parse(text)
        .ok_or_else(|| anyhow!("'{}' is no session id: letters, digits, - and _", text.escape_debug()))?;
    let seen = seen(store, &id);
    let config = config_dir(host).ok_or_else(|| anyhow!("could not find the home directory; set HOME"))?;
    let own = host.env("CLAUDE_CODE_SESSION_ID").as_deref() == Some(text);
    let recorded = seen.as_ref().and_then(|seen| seen.transcript.clone()).map(PathBuf::from);
    let transcript = recorded.filter(|path| path.is_file()).or_else(|| projects::transcript(&config, &id));
    if transcript.is_none() && seen.is_none() && !own {
        bail!("could not find session {id}: no transcript of it lies below {}", config.display());
    }
    let project = own.then(|| host.env_path("CLAUDE_PROJECT_DIR").or_else(|| host.current_dir())).flatten();
    Ok(Subject {
        session: Some(id),
        transcript,
        project,
        inside: own || seen.is_none(),
        ..Subject::default()
    })
}

fn of_transcript(host: &Host, store: Option<&Store>, file: &Path) -> Result<Subject> {
    files::open_regular(file).with_context(|| format!("could not read the transcript {}", file.display()))?;
    let path = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let id = projects::session_of(&path);
    // A copy of a transcript is not the session: only the file itself may use the session's records.
    let seen = id.as_ref().and_then(|id| seen(store, id));
    let same = seen.filter(|seen| seen.transcript.as_ref().map(Path::new) == Some(&path));
    Ok(Subject {
        session: id.filter(|_| same.is_some()),
        transcript: Some(path),
        project: if same.is_some() { None } else { host.current_dir() },
        inside: same.is_none(),
        ..Subject::default()
    })
}

fn of_payload(host: &Host, file: &Path) -> Result<Subject> {
    let name = file.display();
    let bytes = if file == Path::new("-") {
        let most = usize::try_from(PAYLOAD_MOST).unwrap_or(usize::MAX);
        input::read_stdin(most, Deadline::after_ms(BUDGET_MS))
    } else {
        files::read_small(file, PAYLOAD_MOST).with_context(|| format!("could not read the payload {name}"))?
    };
    if let Err(e) = serde_json::from_slice::<serde_json::Value>(&bytes) {
        bail!("the payload {name} is not valid JSON: {e}");
    }
    let payload = Payload::parse(&bytes)
        .ok_or_else(|| anyhow!("the payload {name} is no JSON object, as a status line command is given"))?;
    let stated = Subject::stated(&payload);
    let project = stated.project.or_else(|| host.current_dir());
    Ok(Subject { project, ..stated })
}

fn seen(store: Option<&Store>, id: &SessionId) -> Option<Seen> {
    serde_json::from_slice(&store?.load(id, Slot::Seen)?).ok()
}
