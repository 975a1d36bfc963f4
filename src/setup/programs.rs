//! The four programs under `<state>/bin`: copied, made current in one step, old ones swept, all taken out.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::host::{files, process};
use crate::store::{Store, atomic};

/// The programs that belong together, without `.exe`.
pub const PROGRAMS: [&str; 4] = ["longhaul", "longhaul-hook", "longhaul-statusline", "longhaul-watch"];

/// Larger than any program of ours with debug information.
const MAX_BYTES: u64 = 1 << 30;

/// The programs' files beside the one that runs; an error names what is missing.
pub fn beside(dir: &Path) -> Result<Vec<PathBuf>> {
    let found: Vec<_> = file_names().map(|name| dir.join(name)).collect();
    let missing: Vec<_> = found.iter().filter(|path| !path.is_file()).collect();
    match missing.first() {
        None => Ok(found),
        Some(first) => bail!(
            "could not find {}: all {} programs are installed together; build them with `cargo build --release`",
            first.display(),
            PROGRAMS.len()
        ),
    }
}

/// A program's file, by its name.
pub fn file_name(program: &str) -> String {
    format!("{program}{}", std::env::consts::EXE_SUFFIX)
}

fn file_names() -> impl Iterator<Item = String> {
    PROGRAMS.iter().map(|program| file_name(program))
}

/// This machine as the launcher names it.
pub fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Which of the files differ from what is installed as `version`.
pub fn to_copy<'f>(store: &Store, version: &str, files: &'f [PathBuf]) -> Result<Vec<&'f PathBuf>> {
    let dir = store.bin().join(version);
    let mut changed = Vec::new();
    for file in files {
        let Some(name) = file.file_name() else { continue };
        if !same(file, &dir.join(name))? {
            changed.push(file);
        }
    }
    Ok(changed)
}

fn same(source: &Path, installed: &Path) -> Result<bool> {
    let Ok(there) = installed.symlink_metadata() else { return Ok(false) };
    let here = fs_err::metadata(source)?;
    if !there.is_file() || there.len() != here.len() || !private_program(&there) {
        return Ok(false);
    }
    Ok(files::read_small(source, MAX_BYTES)? == files::read_small(installed, MAX_BYTES)?)
}

#[cfg(unix)]
fn private_program(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o777 == 0o700
}

#[cfg(not(unix))]
fn private_program(_meta: &std::fs::Metadata) -> bool {
    true
}

/// Copies the files into `<state>/bin/<version>` and makes that version current.
pub fn install(store: &Store, version: &str, files: &[&PathBuf]) -> Result<()> {
    let bin = store.make_dir("bin").with_context(|| format!("could not make {}", store.bin().display()))?;
    let dir = bin.join(version);
    atomic::make_private(&dir).with_context(|| format!("could not make {}", dir.display()))?;
    for file in files {
        copy(file, &dir).with_context(|| format!("could not install {}", file.display()))?;
    }
    make_current(store, version).with_context(|| format!("could not switch {}", store.current().display()))
}

/// Copies one program without ever writing into a file that may be running.
fn copy(source: &Path, dir: &Path) -> io::Result<()> {
    let Some(name) = source.file_name() else { return Ok(()) };
    let bytes = files::read_small(source, MAX_BYTES)?;
    let target = dir.join(name);
    #[cfg(windows)]
    if target.exists() {
        // A running program cannot be replaced there, but it can be renamed.
        let old = crate::store::setup::free_name(&dir.join(format!(".lh-old-{}", name.display())));
        fs_err::rename(&target, old)?;
    }
    atomic::replace_as(&target, &bytes, true, program_mode())
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)]
fn program_mode() -> Option<std::fs::Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn program_mode() -> Option<std::fs::Permissions> {
    None
}

/// Whether stable paths lead to this version already.
pub fn is_current(store: &Store, version: &str) -> bool {
    if cfg!(unix) {
        fs_err::read_link(store.current()).is_ok_and(|to| to == Path::new(version))
    } else {
        let dir = store.bin().join(version);
        file_names().all(|name| same(&dir.join(&name), &store.current().join(&name)).unwrap_or(false))
    }
}

#[cfg(unix)]
fn make_current(store: &Store, version: &str) -> io::Result<()> {
    if is_current(store, version) {
        return Ok(());
    }
    let temp = store.bin().join(format!(".lh-current-{}", process::own_pid()));
    let _ = fs_err::remove_file(&temp);
    // Relative, so that the directory can be moved as a whole.
    fs_err::os::unix::fs::symlink(version, &temp)?;
    fs_err::rename(&temp, store.current()).inspect_err(|_| {
        let _ = fs_err::remove_file(&temp);
    })
}

#[cfg(not(unix))]
fn make_current(store: &Store, version: &str) -> io::Result<()> {
    atomic::make_private(&store.current())?;
    for name in file_names() {
        let source = store.bin().join(version).join(&name);
        if !same(&source, &store.current().join(&name)).unwrap_or(false) {
            copy(&source, &store.current())?;
        }
    }
    Ok(())
}

/// The installed versions.
pub fn versions(store: &Store) -> Vec<String> {
    let Ok(entries) = fs_err::read_dir(store.bin()) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    found.sort();
    found
}

/// Versions other than `keep` that nothing runs: what [`sweep`] takes away. Where the system does not
/// tell what runs, there are none, but on Windows, where a running program's file cannot be removed.
pub fn idle(store: &Store, keep: &str) -> Vec<String> {
    let running = process::running_files();
    let bin = store.bin().canonicalize().unwrap_or_else(|_| store.bin());
    // Where a program is listed by the stable path, nobody knows which version it is.
    if running.iter().flatten().any(|file| file.starts_with(bin.join("current"))) {
        return Vec::new();
    }
    let mut found = versions(store);
    found.retain(|version| {
        let dir = bin.join(version);
        let unused = match &running {
            Some(running) => !running.iter().any(|file| file.starts_with(&dir)),
            None => cfg!(windows),
        };
        version != keep && unused
    });
    found
}

/// Takes versions away and names what stayed: only our own files go, and a directory that then still
/// holds something stays with it.
pub fn sweep(store: &Store, versions: &[String]) -> Vec<String> {
    let left = versions.iter().filter_map(|version| remove_dir(&store.bin().join(version)));
    left.collect()
}

/// Takes every version, the stable path and the directory away.
pub fn remove_all(store: &Store) -> Vec<String> {
    let current = store.current();
    let mut left = Vec::new();
    if current.is_symlink() {
        left.extend(fs_err::remove_file(&current).err().map(|e| e.to_string()));
    } else if current.is_dir() {
        left.extend(remove_dir(&current));
    }
    left.extend(sweep(store, &versions(store)));
    remove_litter(&store.bin());
    if store.bin().is_dir() {
        left.extend(fs_err::remove_dir(store.bin()).err().map(|e| format!("left in place: {e}")));
    }
    left
}

fn remove_dir(dir: &Path) -> Option<String> {
    for name in file_names() {
        match fs_err::remove_file(dir.join(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Some(format!("left in place: {e}")),
            _ => {}
        }
    }
    remove_litter(dir);
    fs_err::remove_dir(dir).err().map(|e| format!("left in place: {e}"))
}

/// Temporary files of a setup that was killed.
pub(super) fn remove_litter(dir: &Path) {
    let Ok(entries) = fs_err::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(".lh-") {
            let _ = fs_err::remove_file(entry.path());
        }
    }
}
