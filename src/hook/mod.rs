//! One event's way through: typed, handed to whoever listens, answered or not. Whatever fails inside is
//! silence outside.

mod fleet;
mod gauge;
mod handoff;
mod inbox;
mod liveness;

use std::path::{Path, PathBuf};

use crate::base::id::SessionId;
use crate::client::event::{Event, Kind};
use crate::client::notification::prompt_of;
use crate::client::reply::Reply;
use crate::host::Host;
use crate::host::process::Process;
use crate::store::Store;
use crate::store::session::Slot;

/// An event and its surroundings.
struct Call<'a> {
    host: &'a Host,
    event: &'a Event,
    session: SessionId,
    project: Option<PathBuf>,
    /// None where no place for it can be trusted.
    store: Option<Store>,
}

/// Whether a living process of ours has this session read its parent.
fn is_reading(store: &Store, session: &SessionId) -> bool {
    let Some(bytes) = store.load(session, Slot::Reading) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let Some((pid, start)) = text.split_once(' ') else { return false };
    let start = Some(start.to_owned()).filter(|start| !start.is_empty());
    pid.parse().is_ok_and(|pid| Process { pid, start }.runs())
}

/// The answer to an event, as the line to print.
pub fn answer(host: &Host, input: &[u8]) -> Option<String> {
    let event = Event::parse(input)?;
    let stated = event.session_id.clone().or_else(|| host.env("CLAUDE_CODE_SESSION_ID"))?;
    let session = SessionId::parse(&stated)?;
    let absolute = |text: &String| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let cwd = event.cwd.as_ref().and_then(absolute);
    let project = host.env_path("CLAUDE_PROJECT_DIR").or_else(|| cwd.clone());
    let untrusted: Vec<&Path> = [&project, &cwd].into_iter().flatten().map(PathBuf::as_path).collect();
    let store = Store::locate(host, &untrusted);
    let call = Call { host, event: &event, session, project, store };
    let kind = event.kind();
    // A notification is whole in the input; of other prompts the beginning is enough.
    let notification = if kind == Kind::UserPromptSubmit { prompt_of(input) } else { None };
    // It begins no turn, so it leaves no beat: nothing would end it.
    if let Some(reply) = notification.as_ref().and_then(|prompt| inbox::kept_from_model(&call, prompt)) {
        return reply.to_line(kind);
    }
    // Before all else, and of every session: what comes after it takes its time.
    liveness::on_event(&call);
    // A session that reads its parent is told nothing, and nothing is asked of it.
    if call.store.as_ref().is_some_and(|store| is_reading(store, &call.session)) {
        return None;
    }
    let deadline = handoff::deadline(host);
    if let Some(prompt) = &notification {
        inbox::on_prompt(&call, prompt);
    }
    let reply = match kind {
        // A subagent has its own context; the session's gauge says nothing of it.
        _ if event.agent_id.is_some() => Reply::default(),
        Kind::SessionStart => {
            inbox::on_start(&call);
            gauge::on_start(&call)
        }
        Kind::UserPromptSubmit => gauge::on_prompt(&call),
        Kind::PostToolBatch => gauge::on_batch(&call),
        Kind::PreCompact => {
            let taken = gauge::on_compaction(&call);
            handoff::before_compaction(&call, &taken, deadline);
            Reply::default()
        }
        Kind::PostCompact => {
            gauge::on_compaction(&call);
            Reply::default()
        }
        Kind::SessionEnd => gauge::on_end(&call),
        _ => Reply::default(),
    };
    let terminal = fleet::lines(&call, kind);
    Reply { terminal, ..reply }.to_line(kind)
}
