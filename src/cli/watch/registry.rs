//! The watches as their verbs see them.

use std::io::Write as _;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use crate::base::span::rough;
use crate::base::text::clean;
use crate::cli::page::Look;
use crate::cli::select;
use crate::host::Host;
use crate::store::Store;
use crate::store::watches::{Bound, Progress, State, Subject, Watch};
use crate::watches::wording;

/// The store and all watches. A list that could not be read is named on standard error.
pub fn load(host: &Host) -> Result<(Store, Vec<Watch>)> {
    let store = select::place(host)?;
    let loaded = store.watches().with_context(|| unread(&store))?;
    warn(loaded.warning.as_deref());
    Ok((store, loaded.watches))
}

/// What stands before the reason.
pub fn unread(store: &Store) -> String {
    format!("could not read the list of watches in {}", store.dir().display())
}

/// Says it on standard error.
pub fn warn(warning: Option<&str>) {
    if let Some(text) = warning {
        let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(text));
    }
}

/// The watch of this number.
pub fn one(watches: &[Watch], number: u64) -> Result<&Watch> {
    watches.iter().find(|watch| watch.number == number).ok_or_else(|| missing(number))
}

/// There is none of this number.
pub fn missing(number: u64) -> anyhow::Error {
    anyhow!("there is no watch {number}; longhaul watch list --all shows all that there are")
}

/// Whether this process was started by a client: its tools and `!` commands are.
pub fn is_under_a_client(host: &Host) -> bool {
    ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION"]
        .iter()
        .any(|name| host.has_env(name))
}

/// How it stands, in a word and its look.
pub fn state(store: &Store, watch: &Watch) -> (&'static str, Look) {
    match watch.state {
        State::Active if store.watch_is_held(watch.number) => ("active", Look::Good),
        State::Active if watch.subject == Subject::Sessions => ("active", Look::Good),
        State::Active => ("waiting", Look::Warn),
        State::Paused => ("paused", Look::Warn),
        State::Ended => ("ended", Look::Faint),
    }
}

/// The place that a watch is at, or none where that cannot be read; nothing is set aside for a look.
pub fn progress(store: &Store, watch: &Watch) -> Progress {
    let mut progress = store.look_at_progress(watch.number).unwrap_or_default();
    if watch.subject == Subject::Sessions {
        // Others write for it.
        let (told, _) = store.told(watch.number);
        progress.told = told.len() as u64;
        progress.last_ms = told.last().map(|told| told.at_ms);
    }
    progress
}

/// How often it spoke, and when last.
pub fn told(progress: &Progress, now_ms: i64) -> String {
    match progress.last_ms {
        Some(last_ms) => format!("told {}x, {} ago", progress.told, rough(now_ms.saturating_sub(last_ms))),
        None => "told nothing yet".to_owned(),
    }
}

/// All of it, for programs.
pub fn value(store: &Store, watch: &Watch) -> Value {
    let progress = progress(store, watch);
    json!({
        "number": watch.number,
        "name": watch.name,
        "label": wording::label(watch),
        "subject": subject(&watch.subject),
        "state": state(store, watch).0,
        "bound": watch.bound,
        "project": watch.project.to_string_lossy(),
        "directory": watch.directory.to_string_lossy(),
        "session": watch.maker.session,
        "made_by": if watch.by_model { "model" } else { "person" },
        "kept": watch.kept,
        "ends_with_client": watch.is_unconfirmed(),
        "match": watch.matching,
        "until_match": watch.until,
        "once": watch.once,
        "until_ms": watch.until_ms,
        "most_an_hour": watch.most,
        "made_ms": watch.made_ms,
        "told": progress.told,
        "last_ms": progress.last_ms,
        "held_back": progress.window.held,
        "failing": progress.failing,
        "ended": watch.ended,
        "log": store.told_path(watch.number).to_string_lossy(),
    })
}

/// What is watched, with every path as text.
fn subject(subject: &Subject) -> Value {
    let mut value = json!(subject);
    if let Subject::File { path, .. } = subject {
        value["path"] = path.to_string_lossy().into();
    }
    value
}

/// Whose it is, in a few words.
pub fn bound(watch: &Watch) -> String {
    match watch.bound {
        Bound::Project => format!("the project {}", watch.project.display()),
        Bound::Session => format!("session {}", watch.maker.session.as_deref().unwrap_or("–")),
    }
}
