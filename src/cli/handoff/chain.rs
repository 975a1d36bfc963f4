//! `longhaul handoff chain`: a session's lineage.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::json;

use super::registry::{brief, is_meant, load, some, table, unknown, value};
use crate::base::id::SessionId;
use crate::base::text::clean;
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json};
use crate::handoff::chain::{Lineage, lineage};
use crate::handoff::origin::Origins;
use crate::host::Host;
use crate::store::chains::{Entry, State};

/// Show the chain that a session or handoff belongs to, the oldest session first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul handoff chain 3f2a9c1e-0000-4000-8000-1234567890ab\n  \
                        longhaul handoff chain 20261130T173134Z-3f2a9c1e --json")]
pub struct Args {
    /// A handoff by its id, or any session of the chain
    #[arg(value_name = "ID")]
    id: String,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, entries) = load(host)?;
    let session = session(&entries, &args.id)?;
    let origins = Origins::read(&store);
    let mut links = origins.cleared();
    if let Some(id) = SessionId::parse(&session) {
        links.push(origins.link(&store, &id, None));
    }
    let found = lineage(&entries, &links, &session);
    if found.handoffs.is_empty() && found.sessions.len() == 1 {
        return Err(unknown(&args.id));
    }
    if args.json {
        let handoffs = found.handoffs.iter().map(|entry| value(&store, entry)).collect::<Result<Vec<_>>>()?;
        let members = found.sessions.iter().map(|member| {
            json!({ "session": member.session, "came_from": member.from, "handed_over": member.handed_over })
        });
        return print_json(&json!({
            "session": session,
            "sessions": members.collect::<Vec<_>>(),
            "handoffs": handoffs,
        }));
    }
    let mut page = Page::new(host);
    show(&mut page, &found, &session);
    if !found.handoffs.is_empty() {
        page.gap();
        table(&mut page, host, &store, &found.handoffs);
    }
    print(page.text())
}

/// The session that is meant: of a handoff the child, else the parent.
fn session(entries: &[Entry], id: &str) -> Result<String> {
    if let Some(entry) = entries.iter().rev().find(|entry| entry.id == id) {
        return Ok(entry.child.as_ref().unwrap_or(&entry.parent).session.clone());
    }
    let links = entries.iter().flat_map(|entry| [Some(&entry.parent), entry.child.as_ref()]).flatten();
    let found: BTreeSet<&str> =
        links.map(|link| &*link.session).filter(|session| is_meant(session, id)).collect();
    let mut all = found.iter();
    match (all.next(), all.next()) {
        _ if found.contains(id) => Ok(id.to_owned()),
        (Some(session), None) => Ok((*session).to_owned()),
        (Some(_), Some(_)) => {
            bail!("several sessions begin so; name one: {}", some(found.iter().map(ToString::to_string)))
        }
        // One that was forked or cleared out of a member stands in no handoff.
        _ => Ok(id.to_owned()),
    }
}

fn show(page: &mut Page, found: &Lineage, asked: &str) {
    let widest = found.sessions.iter().map(|member| clean(member.session).chars().count()).max();
    let accepted = |session: &str| {
        let of = |entry: &&&Entry| entry.child.as_ref().is_some_and(|child| child.session == session);
        found.handoffs.iter().filter(of).any(|entry| entry.state == State::Accepted)
    };
    for member in &found.sessions {
        let came = match member.from {
            None => "the oldest that is known".to_owned(),
            Some(from) if member.handed_over && accepted(member.session) => {
                format!("went on from {}", brief(from))
            }
            Some(from) if member.handed_over => {
                format!("has not shown that it read all of {}", brief(from))
            }
            Some(from) => format!("forked or cleared out of {}", brief(from)),
        };
        let id = format!("{:<1$}  ", clean(member.session), widest.unwrap_or(0));
        let look = if member.session == asked { Look::Strong } else { Look::Plain };
        page.line(&[(look, &id), (Look::Faint, &came)]);
    }
}
