//! Directories, `PATH`, transcripts of chains, and what is left lying.

use std::collections::HashSet;
use std::path::Path;

use super::Around;
use crate::base::id::SessionId;
use crate::client::plugins::strongest;
use crate::client::{projects, session_file, wiring};
use crate::host::clock::epoch_ms;
use crate::host::program::{on_path, refusal};
use crate::host::{disk, files};
use crate::setup::doctor::places::{Kept, Leftovers, OnPath, Place, Places, Run};
use crate::setup::programs::{PROGRAMS, file_name, idle};
use crate::setup::{VERSION, command, link};
use crate::store::RunDir;
use crate::store::chains::Entry;

/// What the client does where nobody says, in days (documented).
const CLEANUP_DAYS: f64 = 30.0;
/// Beats are taken away a day after their session, in ms.
const BEATS_MS: i64 = 24 * 3_600_000;

/// Where our files are.
pub fn places(around: &Around<'_>) -> Places {
    let store = around.store;
    let cleanup = strongest(&around.whole, |all| all.get("cleanupPeriodDays")?.as_f64());
    let stable = command::installed(store, PROGRAMS[0]);
    Places {
        state: look(store.dir(), true),
        run: match store.run_dir() {
            Err(e) => Run::Unknown(e.to_string()),
            Ok(RunDir::None) => Run::None,
            Ok(RunDir::At(dir)) => Run::At(look(&dir, false)),
        },
        on_path: on_the_path(around, &stable),
        stable,
        this: around.host.current_exe().unwrap_or_else(|| "longhaul".into()),
        chains: chains(around),
        cleanup_days: cleanup.as_ref().map_or(CLEANUP_DAYS, |(days, _)| *days),
        cleanup_place: cleanup.map(|(_, scope)| scope.place.clone()),
        user_settings: wiring::user_settings(store.config()),
        leftovers: leftovers(around),
    }
}

/// A directory, with `follow` through a link that the person made.
fn look(dir: &Path, follow: bool) -> Place {
    let real =
        if follow { dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf()) } else { dir.to_path_buf() };
    let there = real.exists();
    Place {
        dir: dir.to_path_buf(),
        there,
        distrust: files::distrust_dir(&real).filter(|_| there),
        remote: disk::remote(&real),
        read_only: there && !files::can_write(&real),
    }
}

fn on_the_path(around: &Around<'_>, stable: &Path) -> OnPath {
    let named = on_path(around.host, &[&file_name(PROGRAMS[0])]);
    let Some(path) = named.iter().find(|path| path.is_file()) else {
        let dangling = named.iter().find(|path| path.is_symlink());
        return dangling.map_or_else(|| aside(around), |path| OnPath::Dangling(path.clone()));
    };
    if let Some(why) = refusal(around.host, path, &around.untrusted) {
        return OnPath::Refused(format!("{} {why}", path.display()));
    }
    let real = path.canonicalize().ok();
    if real.is_some() && real == stable.canonicalize().ok() {
        OnPath::Installed(path.clone())
    } else if real.is_some() && real == around.host.current_exe().and_then(|exe| exe.canonicalize().ok()) {
        OnPath::This(path.clone())
    } else {
        OnPath::Other(path.clone())
    }
}

/// Where no `longhaul` is on `PATH`: whether setup's link only waits for its directory to be there.
fn aside(around: &Around<'_>) -> OnPath {
    let link = link::look(around.host, around.store).filter(link::Link::is_made);
    let how = link.and_then(|link| Some((link.path().to_owned(), link.off_path(around.host)?)));
    how.map_or(OnPath::None, |(link, how)| OnPath::Aside(link, how))
}

/// The transcripts that handoffs name, each once.
fn chains(around: &Around<'_>) -> Vec<Kept> {
    // What cannot be read is told of as such.
    let entries = around.store.peek_at_chains().unwrap_or_default();
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    let members = |entry: &Entry| {
        let parent = (entry.parent.session.clone(), Some(entry.transcript.clone()));
        [Some(parent), entry.child.as_ref().map(|child| (child.session.clone(), None))]
    };
    for (session, named) in entries.iter().flat_map(members).flatten() {
        let Some(id) = SessionId::parse(&session) else { continue };
        if !seen.insert(session.clone()) {
            continue;
        }
        let named = named.filter(|path| path.is_file());
        let path = named.or_else(|| projects::transcript(around.store.config(), &id));
        let written = path.and_then(|path| std::fs::metadata(path).ok()?.modified().ok());
        let age = written.map(|at| around.host.now_ms().saturating_sub(epoch_ms(at)));
        kept.push(Kept { session, age });
    }
    kept
}

fn leftovers(around: &Around<'_>) -> Leftovers {
    let store = around.store;
    let left = store.left();
    let open: HashSet<_> =
        session_file::written(store.config()).into_iter().filter_map(|file| file.session_id).collect();
    let mut sessions = 0;
    if let Ok(Some(place)) = store.beats() {
        // What cannot be listed is the run directory's line.
        let _ = place.each_session(|id, touched| {
            let old = around.host.now_ms().saturating_sub(touched) > BEATS_MS;
            sessions += usize::from(old && !open.contains(id.as_str()));
            true
        });
    }
    Leftovers {
        later: left.later,
        damaged: left.damaged,
        aside: left.aside,
        versions: idle(store, VERSION),
        litter: left.litter,
        sessions,
        runs: store.left_run_dirs(around.host),
    }
}
