//! `longhaul handoff forget`: an entry goes, everything else stays.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::registry::{Which, load, one, unknown, unread, warn};
use crate::base::id::is_plain;
use crate::cli::{print, print_json};
use crate::handoff::failure::Failure;
use crate::host::Host;

/// Take one handoff out of the list; its export and the transcripts stay
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul handoff forget 20261130T173134Z-3f2a9c1e\n  \
                        longhaul handoff forget ID --json")]
pub struct Args {
    #[command(flatten)]
    pub(super) which: Which,
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let (store, entries) = load(host)?;
    let entry = one(&entries, &args.which.id)?;
    let id = &entry.id;
    let held = if is_plain(id) {
        let held = store.hold_export(id).with_context(|| format!("could not hold handoff {id}"))?;
        if held.is_none() {
            return Err(Failure::Busy(id.clone()).into());
        }
        held
    } else {
        None
    };
    let (found, warning) = store
        .change_chains(|all| {
            let before = all.len();
            all.retain(|other| other.id != *id);
            before > all.len()
        })
        .with_context(|| unread(&store))?;
    warn(warning.as_deref());
    if let Some(held) = held {
        store.release_export(id, held).with_context(|| format!("could not let go of handoff {id}"))?;
    }
    if !found {
        return Err(unknown(id));
    }
    let export = Some(&entry.directory).filter(|dir| dir.is_dir());
    if args.which.json {
        return print_json(&json!({ "forgot": id, "export": export }));
    }
    let stays = export.map_or_else(
        || "Its export is gone already; the transcripts of its sessions stay.".to_owned(),
        |dir| {
            format!(
                "Its export stays in {} until you remove it, and so do the transcripts of its sessions.",
                dir.display()
            )
        },
    );
    print(&crate::base::text::clean(&format!("Forgot {id}. {stays}")))?;
    print("\n")
}
