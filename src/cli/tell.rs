//! `longhaul sessions --notify`: tells the person what the watcher would have told, for timers. Whoever tells first
//! has told.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::base::text::clean;
use crate::host::Host;
use crate::host::clock::sleep_ms;
use crate::liveness::notify::Teller;
use crate::liveness::sweep::Session;
use crate::liveness::tell;
use crate::store::Store;
use crate::store::config::Config;
use crate::store::fleet::Fleet;
use crate::store::incidents::Moment;
use crate::watches::sessions::{self, Incident};

/// How often a notifier is looked after, in ms.
const EVERY_MS: u64 = 20;
/// What status lines read holds for so long, in ms: three times as long as a timer takes to come again.
const HOLDS: i64 = 600_000;

/// Tells what is new of these sessions, of all that there are.
pub fn tell(host: &Host, store: &Store, config: &Config, all: &[Session], now: &Moment) -> Result<()> {
    let looked = tell::look(store, all, now, &tell::rules(&config.notify))
        .context("could not tell what was told already")?;
    for one in &looked.news {
        let text = one.line_for_session();
        let incident = Incident { id: &one.id, about: &one.session, text: &text, at_ms: now.ms };
        if let Err(error) = sessions::tell(store, &incident) {
            complain(&format!("could not write to a session that wants to hear of others: {error}"));
        }
    }
    let mut teller = Teller::default();
    let untrusted: Vec<PathBuf> =
        [host.env_path("CLAUDE_PROJECT_DIR"), host.current_dir()].into_iter().flatten().collect();
    teller.tell(host, &config.notify, &untrusted, &looked.news);
    while !teller.is_idle() {
        let done = teller.turn(host);
        done.iter().filter_map(|outcome| outcome.trouble.as_ref()).for_each(|trouble| {
            complain(&format!("could not notify: {trouble}"));
        });
        if let Some(new) = tell::settle(store, &done).context("could not note what was told")? {
            store.trace(host.now_ms(), "longhaul", &format!("could not notify: {new}"));
        }
        if !teller.is_idle() {
            sleep_ms(EVERY_MS);
        }
    }
    // A watcher that leads knows better, and sooner.
    if store.dir().is_dir()
        && let Ok(Some(_lead)) = store.lead()
    {
        let again = tell::look(store, all, now, &tell::quiet(&config.notify))?;
        store.save_fleet(&Fleet { until_ms: now.ms.saturating_add(HOLDS), ..again.fleet })?;
    }
    Ok(())
}

fn complain(what: &str) {
    let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(what));
}
