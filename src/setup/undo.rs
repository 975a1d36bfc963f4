//! `setup --undo`: the settings as they were, the programs gone, records kept.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::file::File;
use super::report::{self, Part, Programs, Report, Settings};
use super::{
    VERSION, command, keys, link, lock, plan, plugin, programs, read_record, remove_if_there, save, timer,
};
use crate::base::span::file_stamp;
use crate::client::wiring::{self, KEY, WRAPPER, user_settings};
use crate::host::{Host, files};
use crate::store::Store;
use crate::store::setup::{Backup, Print, Record, Wiring};

/// What becomes of the settings file.
enum Change {
    Nothing(&'static str),
    /// We made it, and nobody changed it.
    Remove,
    /// The copy comes back.
    Restore(Vec<u8>),
    /// Only our key changes.
    Edit(Vec<u8>, &'static str),
}

/// Takes everything away that setup brought, or with `dry_run` says what would go. Twice is harmless.
pub fn undo(host: &Host, store: &Store, untrusted: &[PathBuf], dry_run: bool) -> Result<Report> {
    let there = store.dir().is_dir();
    let lock = if there && !dry_run { lock::take(store)? } else { None };
    let mut warnings = Vec::new();
    let mut record = read_record(host, store, dry_run, &mut warnings)?;
    let named = record.settings.as_ref().map_or_else(|| user_settings(store.config()), |w| w.path.clone());
    let file = File::read(&named)?;
    let change = decide(store, &file, record.settings.as_ref(), &mut warnings)?;
    if !matches!(change, Change::Nothing(_)) {
        file.check_writable()?;
    }
    let mut settings = describe(&file, &change);
    let found = programs::versions(store);
    let removed = Programs {
        action: if found.is_empty() { "absent" } else { "removed" },
        version: VERSION,
        path: store.current(),
        copied: Vec::new(),
        removed: found,
    };
    if dry_run {
        let mut report = Report { dry_run, programs: removed, settings, warnings, ..Report::default() };
        extras(host, store, untrusted, &mut record, &mut report);
        return Ok(report);
    }
    settings.diff = None;
    settings.backup = carry_out(host, &file, change, record.settings.as_ref(), &mut warnings)?;
    let mut report = Report { programs: removed, settings, warnings, ..Report::default() };
    extras(host, store, untrusted, &mut record, &mut report);
    remove_if_there(&store.dir().join(WRAPPER)).context("could not remove the wrapper script")?;
    report.warnings.extend(programs::remove_all(store));
    if there {
        record.settings = None;
        save(store, &record)?;
        programs::remove_litter(store.dir());
        drop(lock);
        // Empty only where nothing but the setup was ever there.
        let _ = fs_err::remove_dir(store.dir());
    }
    Ok(report)
}

/// Takes away what was brought beside programs and status line. One that fails keeps nothing else back.
fn extras(host: &Host, store: &Store, untrusted: &[PathBuf], record: &mut Record, report: &mut Report) {
    let dry_run = report.dry_run;
    if let Some(link) = link::look(host, store) {
        report.link = Some(Part::or_failed(link.undo(&mut record.link, dry_run), link.path()));
    }
    let undone = plugin::undo(host, store, untrusted, &mut record.plugin, dry_run);
    let failed = |error| Some(Part::or_failed(Err(error), &plugin::tree(store)));
    report.plugin = undone.unwrap_or_else(failed);
    let undone = timer::undo(host, store, untrusted, &mut record.timer, dry_run);
    let failed = |error| Some(Part::or_failed(Err(error), Path::new("timer")));
    report.timer = undone.unwrap_or_else(failed);
}

fn decide(store: &Store, file: &File, wiring: Option<&Wiring>, warnings: &mut Vec<String>) -> Result<Change> {
    let Some(bytes) = &file.bytes else { return Ok(Change::Nothing("there is no settings file")) };
    if let Some(wiring) = wiring.filter(|w| w.restorable && w.wrote == Print::of(bytes)) {
        if wiring.created {
            return Ok(Change::Remove);
        }
        match wiring.backups.first().map(|backup| (backup, read_backup(backup))) {
            Some((_, Some(copy))) => return Ok(Change::Restore(copy)),
            Some((backup, None)) => warnings.push(format!(
                "{} is gone or was changed: longhaul's key is taken out instead",
                backup.path.display()
            )),
            None => {}
        }
    }
    let line = status_line(store, file, wiring, warnings)?;
    let keys = wiring.map_or(&[][..], |wiring| &wiring.keys);
    let left = match &line {
        Change::Edit(bytes, _) => File { bytes: Some(bytes.clone()), ..file.clone() },
        _ => file.clone(),
    };
    Ok(match (keys::unset(&left, keys)?, line) {
        (Some(bytes), Change::Edit(..)) => Change::Edit(bytes, "longhaul's keys are taken out"),
        (Some(bytes), _) => Change::Edit(bytes, "keys that setup had set are as they were"),
        (None, line) => line,
    })
}

fn status_line(
    store: &Store,
    file: &File,
    wiring: Option<&Wiring>,
    warnings: &mut Vec<String>,
) -> Result<Change> {
    let document = plan::parse(file)?;
    let fault = |fault| plan::faulty(file, &fault);
    let path = [KEY, "command"];
    let found = document.string(&path).map_err(fault)?;
    Ok(match wiring::classify(found.as_deref()) {
        wiring::Wiring::Ours => {
            Change::Edit(document.remove(KEY).map_err(fault)?, "longhaul's key is taken out")
        }
        wiring::Wiring::Wrapped if found == Some(command::wrapped(store)?) => {
            let Some(previous) = wiring.and_then(|w| w.previous.as_deref()) else {
                bail!(
                    "could not tell which command was wrapped: it stands in {}; put it back into {} and run \
                     this again",
                    store.dir().join(WRAPPER).display(),
                    file.named.display()
                )
            };
            Change::Edit(
                document.replace(&path, previous).map_err(fault)?,
                "the command that was wrapped is back",
            )
        }
        wiring::Wiring::Wrapped => {
            warnings.push(format!(
                "{}: the status line runs longhaul-statusline inside a command that setup did not write; it stays",
                file.named.display()
            ));
            Change::Nothing("the status line command is not setup's")
        }
        _ => Change::Nothing("nothing of longhaul's is in it"),
    })
}

fn read_backup(backup: &Backup) -> Option<Vec<u8>> {
    let bytes = files::read_small(&backup.path, backup.holds.len).ok()?;
    (Print::of(&bytes) == backup.holds).then_some(bytes)
}

fn describe(file: &File, change: &Change) -> Settings {
    let old = file.bytes.as_deref();
    let diff = |new| Some(report::diff(&file.named, old, new));
    let (action, reason, diff) = match change {
        Change::Nothing(why) => ("unchanged", *why, None),
        Change::Remove => ("removed", "setup had made the file", diff(None)),
        Change::Restore(bytes) => {
            ("restored", "the file is as it was before setup, byte for byte", diff(Some(bytes)))
        }
        Change::Edit(bytes, why) => ("removed", *why, diff(Some(bytes))),
    };
    Settings { path: file.named.clone(), action, reason: reason.to_owned(), backup: None, diff }
}

fn carry_out(
    host: &Host,
    file: &File,
    change: Change,
    wiring: Option<&Wiring>,
    warnings: &mut Vec<String>,
) -> Result<Option<PathBuf>> {
    let copies = wiring.map_or(&[][..], |wiring| &wiring.backups);
    if !matches!(change, Change::Remove | Change::Restore(_)) {
        let stay = copies.iter().filter(|copy| copy.path.is_file());
        warnings.extend(
            stay.map(|copy| format!("a copy of the settings from before stays: {}", copy.path.display())),
        );
    }
    if matches!(change, Change::Nothing(_)) {
        return Ok(None);
    }
    let backup =
        if let Change::Edit(..) = change { file.backup_name(&file_stamp(host.now_ms())) } else { None };
    if let Some(backup) = &backup {
        file.back_up(backup)?;
    }
    if !file.unchanged()? {
        if let Some(backup) = backup {
            remove_if_there(&backup)?;
        }
        bail!("could not edit {}: somebody else wrote it just now; run this again", file.named.display());
    }
    match change {
        Change::Nothing(_) => {}
        Change::Remove => {
            file.remove()?;
            remove_copies(copies);
        }
        Change::Restore(bytes) => {
            file.replace(&bytes)?;
            remove_copies(copies);
        }
        Change::Edit(bytes, _) => {
            if let Err(e) = file.replace(&bytes) {
                if let Some(backup) = backup {
                    remove_if_there(&backup)?;
                }
                return Err(e);
            }
        }
    }
    Ok(backup)
}

/// Copies whose content is in the file again, or is only our own doing.
fn remove_copies(copies: &[Backup]) {
    for copy in copies.iter().filter(|copy| read_backup(copy).is_some()) {
        let _ = fs_err::remove_file(&copy.path);
    }
}
