//! `longhaul handoff snooze`: whether a session's handoff is offered.

use anyhow::{Context as _, Result};

use crate::cli::{print, select};
use crate::gauge::notice::State;
use crate::host::Host;
use crate::store::session::Slot;

/// Offer no handoff again in this session; at critical the person still sees a line
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  longhaul handoff snooze --session 3f2a9c1e-0000-4000-8000-1234567890ab\n  \
                        longhaul handoff snooze --session ID --off    offers come again"
)]
pub struct Args {
    /// The session by its id, as /status and `longhaul explain` show it [default: the one this shell runs in,
    /// else the one open in this directory]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Take the snooze back
    #[arg(long)]
    off: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let Args { session, off, json } = args;
    let store = select::place(host)?;
    let id = select::session(host, Some(&store), session.as_deref())?;
    store.prepare().with_context(|| format!("could not make {}", store.dir().display()))?;
    let saved = store.load(&id, Slot::Notice).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let state = State { snoozed: !off, ..saved.unwrap_or_default() };
    store
        .save(&id, Slot::Notice, &serde_json::to_vec(&state)?)
        .with_context(|| format!("could not write below {}", store.dir().display()))?;
    if *json {
        print(&format!("{}\n", serde_json::json!({ "session": id.as_str(), "snoozed": state.snoozed })))
    } else if *off {
        print(&format!("Offers come again in session {id}.\n"))
    } else {
        print(&format!("No handoff is offered again in session {id}. Take it back with --off.\n"))
    }
}
