//! Setting longhaul up on a machine, and taking it away again: the programs under `<state>/bin`, the
//! `statusLine` key of the user's settings, and what a person may have beside them ([`extra`]).
//!
//! [`decide`] says what to do from facts; this file gathers them and carries the decision out. Nothing is
//! written before everything was read and understood, and what is written can be undone.

pub mod command;
pub mod compaction;
pub mod decide;
mod dirs;
pub mod doctor;
pub mod extra;
mod file;
mod keys;
mod link;
mod lock;
mod plan;
pub mod plugin;
pub mod programs;
pub mod report;
mod timer;
mod tools;
mod undo;
mod wire;

use std::cell::LazyCell;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::base::span::file_stamp;
use crate::client::program::{self, FIRST_THAT_DRAWS, Found};
use crate::client::wiring::user_settings;
use crate::host::Host;
use crate::store::Store;
use crate::store::setup::{Read, Record};

use compaction::Compaction;
use decide::{Ask, Drawer};
use extra::Wish;
use report::{Part, Programs, Report};
pub use undo::undo;

/// This longhaul's version: the one that is installed.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is to be set up.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// About the status line.
    pub ask: Ask,
    /// The directory that the four programs are taken from.
    pub source: PathBuf,
    /// Directories that a client is never started from.
    pub untrusted: Vec<PathBuf>,
    /// Write nothing.
    pub dry_run: bool,
    /// About the link in `~/.local/bin`.
    pub link: Wish,
    /// About the timer.
    pub timer: Wish,
    /// About the plugin, which only a checkout can bring.
    pub plugin: Wish,
    /// The checkout that the programs were built in, if they were.
    pub checkout: Option<PathBuf>,
    /// Compaction is to be switched off.
    pub compaction: Option<Compaction>,
}

/// What a person is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A change of their settings.
    Settings,
    /// The link in `~/.local/bin`.
    Link,
    /// The timer.
    Timer,
    /// The plugin.
    Plugin,
    /// Compaction, to be switched off for a window of so many tokens. Only a typed word is a yes.
    Compaction(u64),
}

/// A change that nobody asked for by name.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// What it is about.
    pub about: About,
    /// The change as a unified diff.
    pub diff: &'q str,
}

/// Installs the programs, merges the status line, and brings what else is wanted. `confirm` is shown each change
/// that nobody asked for by name, and may refuse it.
pub fn install(
    host: &Host,
    store: &Store,
    request: &Request,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) -> Result<Report> {
    let sources = programs::beside(&request.source)?;
    let _lock = if request.dry_run { None } else { lock::take(store)? };
    let mut warnings = Vec::new();
    let mut record = read_record(host, store, request.dry_run, &mut warnings)?;
    // Found out once, and only where it matters: it takes a start of the client.
    let client = LazyCell::new(|| {
        let mut refused = Vec::new();
        (program::find(host, None, &request.untrusted, &mut refused), refused)
    });
    let drawer = if request.ask == Ask::Auto {
        let (found, refused) = &*client;
        warnings.extend(refused.iter().cloned());
        drawer(found, &mut warnings)
    } else {
        Drawer::Unknown
    };
    let found = || client.0.clone();
    // Understood before anything is written: a settings file that cannot be read stops the whole.
    let mut plan = plan::plan(store, request.ask, drawer, &record, &mut warnings)?;
    if let Some(wish) = request.compaction {
        compaction::check(store, wish)?;
    }

    let copied = programs::to_copy(store, VERSION, &sources)?;
    let current = programs::is_current(store, VERSION);
    let names = copied.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let mut installed = Programs {
        action: if copied.is_empty() && current { "unchanged" } else { "installed" },
        version: VERSION,
        path: store.current(),
        copied: names.collect(),
        removed: programs::idle(store, VERSION),
    };
    if request.dry_run {
        let settings = plan.preview(store);
        let mut report =
            Report { dry_run: true, programs: installed, settings, warnings, ..Report::default() };
        report.plugin = bring_plugin(host, store, request, &found, &mut record, confirm);
        extras(host, store, request, &mut record, &mut report, confirm);
        return Ok(report);
    }
    if !copied.is_empty() || !current {
        programs::install(store, VERSION, &copied)?;
    }
    let stamp = file_stamp(host.now_ms());
    let before = record.clone();
    // First, since the client writes settings for it.
    let plugin = bring_plugin(host, store, request, &found, &mut record, confirm);
    if record != before {
        save(store, &record)?;
        plan = plan::plan(store, request.ask, drawer, &record, &mut Vec::new())?;
    }
    let settings = wire::carry_out(store, request.ask, drawer, plan, &mut record, &stamp, confirm)?;
    let left = programs::sweep(store, &installed.removed);
    installed.removed.retain(|version| !store.bin().join(version).exists());
    warnings.extend(left);
    let mut report = Report { programs: installed, settings, warnings, plugin, ..Report::default() };
    let before = record.clone();
    extras(host, store, request, &mut record, &mut report, confirm);
    if record != before {
        save(store, &record)?;
    }
    Ok(report)
}

fn bring_plugin(
    host: &Host,
    store: &Store,
    request: &Request,
    client: &dyn Fn() -> Found,
    record: &mut Record,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) -> Option<Part> {
    let checkout = request.checkout.as_ref()?;
    let stamp = file_stamp(host.now_ms());
    let made = plugin::Made { checkout, programs: &request.source, wish: request.plugin, stamp: &stamp };
    let done = plugin::carry_out(store, client, made, record, request.dry_run, confirm);
    Some(Part::or_failed(done, &plugin::tree(store)))
}

/// What is brought beside programs and status line. One that fails keeps nothing else from being done.
fn extras(
    host: &Host,
    store: &Store,
    request: &Request,
    record: &mut Record,
    report: &mut Report,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) {
    if let Some(link) = link::look(host, store) {
        let done = link.carry_out(request.link, &mut record.link, request.dry_run, confirm);
        let part = Part::or_failed(done, link.path());
        if !matches!(part.action, "kept" | "failed" | "removed") {
            report.warnings.extend(link.warning(host));
        }
        report.link = Some(part);
    }
    let dry_run = request.dry_run;
    let done =
        timer::carry_out(host, store, &request.untrusted, request.timer, &mut record.timer, dry_run, confirm);
    let (timer, doubt) = match done {
        Ok((part, doubt)) => (part, doubt),
        Err(error) => (Part::or_failed(Err(error), Path::new("timer")), None),
    };
    report.warnings.extend(doubt);
    report.timer = Some(timer);
    if let Some(wish) = request.compaction {
        let stamp = file_stamp(host.now_ms());
        let done = compaction::carry_out(store, wish, record, &stamp, dry_run, confirm);
        report.compaction = Some(Part::or_failed(done, &user_settings(store.config())));
    }
}

fn save(store: &Store, record: &Record) -> Result<()> {
    store.write_setup(record).with_context(|| format!("could not write {}", store.setup_record().display()))
}

/// The record, with a damaged one moved aside and said so.
fn read_record(host: &Host, store: &Store, dry_run: bool, warnings: &mut Vec<String>) -> Result<Record> {
    let path = store.setup_record();
    match store.read_setup().with_context(|| format!("could not read {}", path.display()))? {
        Read::Known(mut record) => {
            if record.pending.is_some() {
                wire::settle(&mut record, dry_run)?;
                if !dry_run {
                    save(store, &record)?;
                }
            }
            Ok(*record)
        }
        Read::Newer(version) => bail!(
            "could not use {}: longhaul {version} wrote it and this is {VERSION}; run the newer one",
            path.display()
        ),
        Read::Damaged(why) if dry_run => {
            warnings.push(format!("{} cannot be read ({why}) and would be set aside", path.display()));
            Ok(Record::default())
        }
        Read::Damaged(why) => {
            let aside = store
                .set_setup_aside(&file_stamp(host.now_ms()))
                .with_context(|| format!("could not set {} aside", path.display()))?;
            warnings.push(format!(
                "{} could not be read ({why}): it is now {}; what an earlier setup changed is no longer known",
                path.display(),
                aside.display()
            ));
            Ok(Record::default())
        }
    }
}

fn drawer(client: &Found, warnings: &mut Vec<String>) -> Drawer {
    match client {
        Found::Nothing => Drawer::Nobody,
        Found::Is(_, version) if *version < FIRST_THAT_DRAWS => Drawer::Nobody,
        Found::Is(..) => Drawer::Mod,
        Found::Unknown(path) => {
            warnings.push(format!("{} did not say its version", path.display()));
            Drawer::Unknown
        }
    }
}

fn remove_if_there(path: &Path) -> Result<bool> {
    match fs_err::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e.into()),
    }
}
