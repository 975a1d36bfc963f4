//! The registry as its verbs see it: which handoff is meant, and how one looks in a line.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::base::id::is_plain;
use crate::base::shell::word;
use crate::base::span::rough;
use crate::base::text::{clean, fit, pad, width};
use crate::base::tokens::short;
use crate::cli::page::{Look, Page};
use crate::cli::select;
use crate::handoff::failure::Failure;
use crate::host::{Host, terminal};
use crate::store::Store;
use crate::store::chains::{Entry, State};

/// From so many signs on, the beginning of a session's id names it.
const SHORT: usize = 8;
/// So many candidates are named where several are meant.
const CANDIDATES: usize = 10;
/// The widest id and the narrowest name in a line, in cells.
const ID_CELLS: usize = 32;
const NAME_CELLS: usize = 12;

/// Which handoff is meant, and how the answer is given.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// A handoff by its id, or a session that only one handoff is of
    #[arg(value_name = "ID")]
    pub id: String,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The store and all handoffs. A registry that could not be read is named on standard error.
pub fn load(host: &Host) -> Result<(Store, Vec<Entry>)> {
    let store = select::place(host)?;
    let loaded = store.chains().with_context(|| unread(&store))?;
    warn(loaded.warning.as_deref());
    Ok((store, loaded.entries))
}

/// What stands before the reason.
pub fn unread(store: &Store) -> String {
    format!("could not read the list of handoffs in {}", store.dir().display())
}

/// Says it on standard error.
pub fn warn(warning: Option<&str>) {
    if let Some(text) = warning {
        say(text);
    }
}

/// A line on standard error.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(text));
}

/// The command that opens a handoff's child. Of an id that could be taken for something else none is made.
pub fn resume(entry: &Entry) -> Option<String> {
    let child = entry.child.as_ref().filter(|child| is_usable(&child.session))?;
    let resume = format!("claude --resume {}", word(&child.session));
    let cwd = entry.cwd.as_ref().and_then(|cwd| cwd.to_str());
    Some(cwd.map_or_else(|| resume.clone(), |cwd| format!("cd {} && {resume}", word(cwd))))
}

/// The command that takes a handoff up again, where that is open.
pub fn retry(store: &Store, entry: &Entry) -> Option<String> {
    let open = entry.state != State::Accepted && is_usable(&entry.id) && !store.export_is_held(&entry.id);
    open.then(|| format!("longhaul handoff retry {}", word(&entry.id)))
}

/// Whether an id can stand in a command.
pub fn is_usable(id: &str) -> bool {
    is_plain(id) && !id.starts_with('-')
}

/// Whether the session is the one meant, by its id or the beginning that the list shows.
pub fn is_meant(session: &str, id: &str) -> bool {
    session == id || (id.len() >= SHORT && session.starts_with(id))
}

/// The handoff of this id, or the only one of this session.
pub fn one<'a>(entries: &'a [Entry], id: &str) -> Result<&'a Entry> {
    if let Some(entry) = entries.iter().rev().find(|entry| entry.id == id) {
        return Ok(entry);
    }
    let of_session = |entry: &&Entry| {
        let child = entry.child.as_ref().is_some_and(|child| is_meant(&child.session, id));
        child || is_meant(&entry.parent.session, id)
    };
    let found: BTreeMap<&str, &Entry> =
        entries.iter().filter(of_session).map(|entry| (&*entry.id, entry)).collect();
    let mut all = found.values();
    match (all.next(), all.next()) {
        (Some(entry), None) => Ok(entry),
        (Some(_), Some(_)) => {
            let names = found.values().map(|entry| format!("{} ({})", entry.id, entry.state.word()));
            bail!("several handoffs are of session {id}; name one by its own id: {}", some(names))
        }
        _ => Err(unknown(id)),
    }
}

/// Nobody knows of it.
pub fn unknown(id: &str) -> anyhow::Error {
    Failure::Unknown(id.to_owned()).into()
}

/// The first few of these.
pub fn some(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let mut text = names[..names.len().min(CANDIDATES)].join(", ");
    if names.len() > CANDIDATES {
        text += &format!(" and {} more", names.len() - CANDIDATES);
    }
    text
}

/// How far a handoff came, as people read it: one that nobody works on any more has been interrupted.
pub fn state(store: &Store, entry: &Entry) -> (&'static str, Look) {
    let under_way = matches!(entry.state, State::Exporting | State::Reading);
    let state = if under_way && !store.export_is_held(&entry.id) { State::Interrupted } else { entry.state };
    let look = match state {
        State::Accepted => Look::Good,
        State::Partial | State::Interrupted => Look::Warn,
        State::Failed => Look::Bad,
        State::Exporting | State::Prepared | State::Reading => Look::Plain,
    };
    (state.word(), look)
}

/// A handoff as programs get it: as it is kept, and whether somebody works on it.
pub fn value(store: &Store, entry: &Entry) -> Result<Value> {
    let mut value = serde_json::to_value(entry)?;
    value["working"] = json!(store.export_is_held(&entry.id));
    Ok(value)
}

/// The name of the child, else of the parent.
fn name(entry: &Entry) -> &str {
    if entry.name.is_empty() { entry.parent_name.as_deref().unwrap_or_default() } else { &entry.name }
}

/// The beginning of a session's id.
pub fn brief(session: &str) -> String {
    clean(session).chars().take(SHORT).collect()
}

/// A line for each of these handoffs.
pub fn table(page: &mut Page, host: &Host, store: &Store, entries: &[&Entry]) {
    let ids: Vec<String> = entries.iter().map(|entry| fit(&clean(&entry.id), ID_CELLS)).collect();
    let widest = ids.iter().map(|id| width(id)).max().unwrap_or(0);
    let columns = terminal::stdout_columns(host);
    for (entry, id) in entries.iter().zip(ids) {
        let (word, look) = state(store, entry);
        let child = entry.child.as_ref().map_or_else(|| "–".to_owned(), |child| brief(&child.session));
        let line = format!("{:<8} → {child:<8}", brief(&entry.parent.session));
        let age = match entry.times.began {
            ..=0 => "–".to_owned(),
            began => rough(host.now_ms().saturating_sub(began)),
        };
        let weight = entry.weight.as_ref().map_or_else(
            || "–".to_owned(),
            |weight| match weight.tokens {
                Some(tokens) => format!("{}/{}", short(tokens), short(weight.wall)),
                None => format!("–/{}", short(weight.wall)),
            },
        );
        let front = format!("{}  ", pad(&id, widest));
        let behind = format!("  {line}  {age:>4}  {weight:>11}  ");
        let taken = width(&front) + 11 + width(&behind);
        let mut title = clean(name(entry));
        if let Some(columns) = columns {
            title = fit(&title, columns.saturating_sub(taken).max(NAME_CELLS));
        }
        let word = format!("{word:<11}");
        page.line(&[(Look::Plain, &front), (look, &word), (Look::Faint, &behind), (Look::Plain, &title)]);
    }
}
