//! Carrying out what was planned for the settings: script, backup, record, then the file itself.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::decide::{Ask, Decision, Drawer, Why};
use super::file::File;
use super::plan::{Plan, plan as plan_again};
use super::report::Settings;
use super::{About, Question, save};
use crate::client::wiring::WRAPPER;
use crate::host::files;
use crate::store::setup::{Backup, Print, Record, Wiring};
use crate::store::{Store, atomic};

/// How often a file that somebody else writes meanwhile is read again.
const ATTEMPTS: usize = 3;
/// A wrapper script larger than this is not ours, in bytes.
pub const SCRIPT_MOST: u64 = 32 << 20;

/// Does what was planned. Where the file was changed meanwhile, it is read and decided again.
pub fn carry_out(
    store: &Store,
    ask: Ask,
    drawer: Drawer,
    mut plan: Plan,
    record: &mut Record,
    stamp: &str,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) -> Result<Settings> {
    for _ in 0..ATTEMPTS {
        let Some(new) = plan.new.clone() else { return keep_things(store, &plan, record) };
        if ask == Ask::Auto
            && plan.decision == Decision::Insert
            && !confirm(&Question { about: About::Settings, diff: &plan.diff(&new) })
        {
            plan.decision = Decision::Keep(Why::Asked);
            return keep_things(store, &plan, record);
        }
        if let Some(script) = &plan.script {
            write_script(store, script)?;
        }
        let backup = plan.file.backup_name(stamp);
        let done = write(store, &plan, &new, record, backup.as_deref());
        if matches!(done, Ok(true)) {
            return Ok(plan.outcome(backup));
        }
        done?;
        plan = plan_again(store, ask, drawer, record, &mut Vec::new())?;
    }
    bail!(
        "could not edit {}: somebody else keeps writing it; nothing was changed, run setup again",
        plan.file.named.display()
    )
}

fn write(store: &Store, plan: &Plan, new: &[u8], record: &mut Record, backup: Option<&Path>) -> Result<bool> {
    let restorable = plan.decision != Decision::Update;
    let mut now = remembered(&plan.file, new, record, backup.map(Path::to_owned), restorable);
    now.command.clone_from(&plan.command);
    now.previous.clone_from(&plan.previous);
    let done = put(store, record, now, &plan.file, &plan.file, new, backup);
    if matches!(done, Ok(true)) && record.declined {
        record.declined = false;
        let _ = save(store, record);
    }
    done
}

/// Copies the file as it was in `old` and replaces it as it is in `file`; `false` where somebody else wrote it
/// since that was read, and then the copy goes again. The record says first what is to be done and last what was done, so that an end in
/// between is known the next time.
pub fn put(
    store: &Store,
    record: &mut Record,
    now: Wiring,
    file: &File,
    old: &File,
    new: &[u8],
    backup: Option<&Path>,
) -> Result<bool> {
    let before = record.clone();
    record.pending = Some(now.clone());
    save(store, record)?;
    let replace = || {
        if let Some(backup) = backup {
            old.back_up(backup)?;
        }
        if file.unchanged()? { file.replace(new).map(|()| true) } else { Ok(false) }
    };
    let done = replace();
    if !matches!(done, Ok(true)) {
        *record = before;
        let saved = save(store, record);
        // Nothing was changed, so there is nothing that this copy would be needed for.
        backup.map_or(Ok(false), super::remove_if_there)?;
        return saved.and(done);
    }
    (record.settings, record.pending) = (Some(now), None);
    // The file is written. Where this fails, the next setup or undo sees that from the file itself.
    let _ = save(store, record);
    done
}

/// What a setup that was ended in between really did, told by the file itself.
pub fn settle(record: &mut Record, dry_run: bool) -> Result<()> {
    let Some(pending) = record.pending.take() else { return Ok(()) };
    let file = File::read(&pending.path)?;
    if !dry_run {
        file.remove_litter();
    }
    let holds = file.bytes.as_deref().map(Print::of);
    if holds.as_ref() == Some(&pending.wrote) {
        record.settings = Some(pending);
        record.declined = false;
        return Ok(());
    }
    // Nothing was written, and the copy is one of what is there; or cut short, and of no use.
    let known =
        |path: &PathBuf| record.settings.iter().flat_map(|w| &w.backups).any(|copy| copy.path == *path);
    if let Some(copy) = pending.backups.last().filter(|copy| !known(&copy.path) && !dry_run)
        && holds.as_ref() == Some(&copy.holds)
    {
        super::remove_if_there(&copy.path)?;
    }
    Ok(())
}

/// What has to be known of a change of this file, beside what was changed before.
pub fn remembered(
    old: &File,
    new: &[u8],
    record: &Record,
    backup: Option<PathBuf>,
    restorable: bool,
) -> Wiring {
    let bytes = old.bytes.as_deref();
    let backup = backup.zip(bytes).map(|(path, bytes)| Backup { path, holds: Print::of(bytes) });
    let last = record.settings.as_ref().filter(|last| last.path == old.named);
    let keys = last.map_or_else(Vec::new, |last| last.keys.clone());
    let mut now = Wiring {
        path: old.named.clone(),
        wrote: Print::of(new),
        created: bytes.is_none(),
        command: last.map_or_else(String::new, |last| last.command.clone()),
        previous: last.and_then(|last| last.previous.clone()),
        backups: backup.into_iter().collect(),
        // A file that somebody edited holds what was put in before.
        restorable: restorable && keys.is_empty(),
        keys,
    };
    if let Some(last) = last.filter(|last| bytes.is_some_and(|old| last.wrote == Print::of(old))) {
        now.created = last.created;
        now.restorable = last.restorable;
        now.backups.splice(0..0, last.backups.iter().cloned());
    }
    now
}

/// Leaves the settings alone, and remembers what that says about the person's wish.
fn keep_things(store: &Store, plan: &Plan, record: &mut Record) -> Result<Settings> {
    if let Some(script) = &plan.script {
        write_script(store, script)?;
    }
    let before = record.clone();
    match plan.decision {
        Decision::Keep(Why::Removed) => {
            record.declined = true;
            forget_status_line(record);
        }
        Decision::Keep(Why::Asked) => record.declined = true,
        _ => {}
    }
    if *record != before {
        save(store, record)?;
    }
    Ok(plan.outcome(None))
}

/// Of the settings, what else was put in is still known.
fn forget_status_line(record: &mut Record) {
    if let Some(last) = &mut record.settings {
        (last.command, last.previous) = (String::new(), None);
    }
    record.settings.take_if(|last| last.keys.is_empty());
}

fn write_script(store: &Store, script: &str) -> Result<()> {
    let path = store.dir().join(WRAPPER);
    if files::read_small(&path, SCRIPT_MOST).is_ok_and(|bytes| bytes == script.as_bytes()) {
        return Ok(());
    }
    atomic::replace(&path, script.as_bytes(), true)
        .with_context(|| format!("could not write {}", path.display()))
}
