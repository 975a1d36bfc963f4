//! Keys of the person's settings beside the status line: set by span, remembered one by one, and taken back only
//! where they still hold what was written.

use anyhow::{Result, bail};
use serde_json::Value;

use super::file::File;
use super::plan;
use super::wire::{put, remembered};
use crate::store::Store;
use crate::store::setup::{Key, Record};

/// A key by the names that lead to it, and what it is to hold.
pub type Wanted<'w> = (&'w [&'w str], Value);

/// The file's bytes with these keys, and what was changed for it; nothing where they are all so already.
pub fn set(file: &File, wanted: &[Wanted<'_>]) -> Result<(Vec<u8>, Vec<Key>)> {
    let mut now = file.clone();
    let mut keys = Vec::new();
    for (path, value) in wanted {
        let document = plan::parse(&now)?;
        let fault = |fault| plan::faulty(file, &fault);
        let have = document.raw(path).map_err(fault)?;
        if have.is_some_and(|raw| same(raw, value)) {
            continue;
        }
        let above = path.split_last().map_or(&path[..0], |(_, above)| above);
        let object = document.raw(above).map_err(fault)?;
        if object.is_some_and(|raw| !raw.starts_with('{')) {
            bail!(
                "could not edit {}: `{}` is no object there; mend it and run setup again",
                file.named.display(),
                above.join(".")
            );
        }
        let json = value.to_string();
        let bytes = match have {
            Some(_) => document.replace(path, &json),
            None => document.insert_at(path, value),
        };
        keys.push(Key {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            wrote: json,
            previous: have.map(str::to_owned),
            made_object: !above.is_empty() && object.is_none(),
        });
        now.bytes = Some(bytes.map_err(fault)?);
    }
    Ok((now.bytes.unwrap_or_default(), keys))
}

/// The file's bytes without these keys, where they hold what was written; `None` where none does.
pub fn unset(file: &File, keys: &[Key]) -> Result<Option<Vec<u8>>> {
    let mut now = file.clone();
    let mut changed = false;
    for key in keys.iter().rev() {
        let document = plan::parse(&now)?;
        let fault = |fault| plan::faulty(file, &fault);
        let path: Vec<_> = key.path.iter().map(String::as_str).collect();
        let ours = |raw: &str| serde_json::from_str(&key.wrote).is_ok_and(|wrote: Value| same(raw, &wrote));
        if document.raw(&path).map_err(fault)?.is_none_or(|raw| !ours(raw)) {
            continue;
        }
        let bytes = match &key.previous {
            Some(previous) => document.replace(&path, previous),
            None => document.remove_at(&path),
        };
        now.bytes = Some(bytes.map_err(fault)?);
        changed = true;
        let above = &path[..path.len().saturating_sub(1)];
        let document = plan::parse(&now)?;
        let is_empty = |raw: &str| same(raw, &Value::Object(serde_json::Map::new()));
        if key.made_object && document.raw(above).map_err(fault)?.is_some_and(is_empty) {
            now.bytes = Some(document.remove_at(above).map_err(fault)?);
        }
    }
    Ok(now.bytes.filter(|_| changed))
}

fn same(raw: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(raw).is_ok_and(|raw| raw == *value)
}

/// Writes the file with these keys and remembers them. `old` is the file as it was before, of which a copy is
/// made; `file` as it is now. `false` where somebody else wrote it meanwhile.
pub fn write(
    store: &Store,
    record: &mut Record,
    file: &File,
    old: &File,
    new: &[u8],
    keys: Vec<Key>,
    stamp: &str,
) -> Result<bool> {
    let backup = old.backup_name(stamp);
    let mut now = remembered(old, new, record, backup.clone(), true);
    for key in keys {
        match now.keys.iter_mut().find(|have| have.path == key.path) {
            // What stood there without us is what the first change found.
            Some(have) => have.wrote = key.wrote,
            None => now.keys.push(key),
        }
    }
    put(store, record, now, file, old, new, backup.as_deref())
}
