//! A redraw, from the payload on standard input to what is printed.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Beside as Around, Style, UNKNOWN, Watch, draw};
use crate::base::id::SessionId;
use crate::client::payload::Payload;
use crate::client::shown;
use crate::client::wiring::{self, Wiring};
use crate::gauge::gather::{Subject, take};
use crate::host::{Host, process, terminal};
use crate::store::Store;
use crate::store::beats::Phase;
use crate::store::config::Beside;
use crate::store::session::Slot;

/// How long a transcript is caught up with in one redraw, in ms.
const BUDGET_MS: u64 = 40;
/// Width where none is stated, in cells.
const USUAL_WIDTH: usize = 80;
/// A client that was started so short a time ago may be about to start its monitor, in ms.
const YOUNG_MS: i64 = 15_000;
/// What the client takes of the terminal's width for itself, in cells.
const MARGIN: usize = 4;

/// What the mod does with the text where the person has a status line of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Ours is the row below theirs.
    Below,
    /// Theirs is ours: it is drawn once.
    Replace,
    /// Theirs draws ours already, or the person wants it so.
    Off,
}

#[derive(Serialize)]
struct Answer<'a> {
    text: &'a str,
    place: Place,
    /// When this file changes, there is something new to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<PathBuf>,
}

/// What to print for this input. Never fails, never says nothing, except to a stamp of the mod's.
pub fn redraw(host: &Host, input: &[u8]) -> String {
    let payload = Payload::parse(input).unwrap_or_default();
    let subject = subject(host, &payload);
    let untrusted: Vec<&Path> = untrusted(&payload, &subject);
    let store = Store::locate(host, &untrusted);
    let handed = payload.longhaul.as_ref();
    let event = handed.and_then(|handed| handed.event.as_deref());
    if let Some(((store, id), event)) = store.as_ref().zip(subject.session.as_ref()).zip(event) {
        stamp(host, store, id, event);
    }
    if event == Some("stream") {
        return String::new();
    }
    let taken = take(host, store.as_ref(), &subject, BUDGET_MS);
    let columns = handed.and_then(|handed| handed.columns);
    let style = Style { width: width(host, columns), colour: terminal::colour_allowed(host) };
    let fleet = store.as_ref().map(|store| store.fleet(host.now_ms()).beside(subject.session.as_ref()));
    let around = Around {
        watch: watch(host, store.as_ref(), subject.session.as_ref()),
        fleet: fleet.unwrap_or_default(),
    };
    let text = draw(&taken.reading, around, style);
    if handed.is_none() {
        return text;
    }
    let command = taken.settings.first(|values| values.status_command.as_deref());
    let place = place(host, command.map(|(command, _)| command), store.as_ref());
    let fleet = store.as_ref().map(Store::fleet_path);
    serde_json::to_string(&Answer { text: &text, place, fleet }).unwrap_or_default()
}

/// Notes that the mod watches this session's response stream, and when that moved: in the middle of a response,
/// and at its end.
fn stamp(host: &Host, store: &Store, id: &SessionId, event: &str) {
    let moved = match event {
        "stream" | "step" => host.now_ms(),
        "start" => store.stream(id).map_or(0, |(moved, _)| moved),
        _ => return,
    };
    let _ = store.save(id, Slot::Stream, moved.to_string().as_bytes());
}

/// What to print when the program itself has failed.
pub fn fallback() -> &'static str {
    UNKNOWN
}

/// How the watcher of this client stands, by the stamp that it leaves.
fn watch(host: &Host, store: Option<&Store>, session: Option<&SessionId>) -> Watch {
    let client = host.env("CLAUDE_PID").and_then(|pid| pid.parse().ok());
    let Some((store, client)) = store.zip(client) else { return Watch::Fine };
    match store.watcher(client) {
        Some(stamp) if !stamp.runs() => Watch::Off,
        Some(stamp) if stamp.unheard > 0 => Watch::Unheard(stamp.unheard),
        None if lacks_watcher(host, store, session, client) == Some(true) => Watch::Off,
        _ => Watch::Fine,
    }
}

/// Whether our hooks run in a client that has started no monitor of ours, as some hosts do; `None` where that cannot
/// be told.
fn lacks_watcher(host: &Host, store: &Store, session: Option<&SessionId>, client: u32) -> Option<bool> {
    let client = process::find(client)?;
    let shown = shown::read(store.config(), &client)?;
    let is_young = host.now_ms().saturating_sub(shown.started_ms?) < YOUNG_MS;
    let beat = store.beats().ok()??.main(session?)?;
    let is_its = beat.is_of(Some(client.pid), client.start.as_deref());
    Some(is_its && !is_young && !shown.background && beat.phase != Phase::Ended)
}

/// Ours as the person's command is drawn once, by the mod, which knows more; a wrapper draws ours already.
fn place(host: &Host, command: Option<&str>, store: Option<&Store>) -> Place {
    match wiring::classify(command) {
        Wiring::Ours => Place::Replace,
        Wiring::Wrapped => Place::Off,
        Wiring::None => Place::Below,
        Wiring::Foreign => {
            match store.and_then(|store| store.config_for(host).ok()).unwrap_or_default().statusline {
                Beside::Below => Place::Below,
                Beside::Off => Place::Off,
            }
        }
    }
}

/// Usable width in cells: as the mod states it, else `COLUMNS` less the client's margin.
fn width(host: &Host, stated: Option<u64>) -> usize {
    let sane = |cells: &usize| (1..=10_000).contains(cells);
    let stated = stated.and_then(|cells| usize::try_from(cells).ok()).filter(sane);
    stated.unwrap_or_else(|| {
        let columns = host.env("COLUMNS").and_then(|text| text.trim().parse::<usize>().ok()).filter(sane);
        columns.map_or(USUAL_WIDTH, |columns| columns.saturating_sub(MARGIN).max(1))
    })
}

fn subject(host: &Host, payload: &Payload) -> Subject {
    let stated = Subject::stated(payload);
    // Only where none is stated: a text that is no id is not this session's.
    let own = || SessionId::parse(&host.env("CLAUDE_CODE_SESSION_ID")?);
    let session = if payload.session_id.is_some() { stated.session } else { own() };
    Subject { session, project: stated.project.or_else(|| host.env_path("CLAUDE_PROJECT_DIR")), ..stated }
}

/// Directories whose files somebody else may have written.
fn untrusted<'a>(payload: &'a Payload, subject: &'a Subject) -> Vec<&'a Path> {
    let workspace = payload.workspace.as_ref();
    let current = workspace.and_then(|workspace| workspace.current_dir.as_deref());
    let added = workspace.and_then(|workspace| workspace.added_dirs.as_ref()).into_iter().flatten();
    let stated = current.into_iter().chain(payload.cwd.as_deref()).chain(added.map(String::as_str));
    let absolute = stated.map(Path::new).filter(|path| path.is_absolute());
    subject.project.as_deref().into_iter().chain(absolute).collect()
}
