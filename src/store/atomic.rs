//! Private directories, and files that are there whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::host::clock::{epoch_ms, now_ms};

/// How the names of files that are being written begin.
pub const PREFIX: &str = ".lh-";

/// Whether nobody is about to write what has such a name: nothing has touched it for ten minutes.
pub fn is_old(path: &Path) -> bool {
    const YOUNG_MS: i64 = 600_000;
    let touched = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    touched.is_ok_and(|at| epoch_ms(at).saturating_add(YOUNG_MS) < now_ms())
}

/// Makes a directory that only its owner can enter; one that is there is left as it is. Its parents must
/// be there, or are made with the system's usual mode.
pub fn make_private(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        fs_err::create_dir_all(parent)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        match std::fs::DirBuilder::new().mode(0o700).create(dir) {
            // Made by another process meanwhile; or something else is in its place.
            Err(_) if dir.is_dir() => Ok(()),
            made => made,
        }
    }
    #[cfg(not(unix))]
    fs_err::create_dir_all(dir)
}

/// Makes this one directory, which only its owner can enter. Its parent must be there.
pub fn make_private_only(dir: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().mode(0o700).create(dir).is_ok() || dir.is_dir()
    }
    #[cfg(not(unix))]
    {
        std::fs::create_dir(dir).is_ok() || dir.is_dir()
    }
}

/// A file of these bytes in the directory, readable by its owner alone. It goes again unless it is given a name.
pub(super) fn temporary(dir: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    check_limit(bytes.len())?;
    let mut temp = tempfile::Builder::new().prefix(PREFIX).tempfile_in(dir)?;
    temp.write_all(bytes)?;
    Ok(temp)
}

/// Replaces a file by `bytes` in one step, readable by its owner alone. The directory must exist.
/// With `durable` the bytes are on the disk before the name is.
pub fn replace(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    replace_as(path, bytes, durable, None)
}

/// The same for what is replaced often and need not outlive the machine. Over a file that is there, ext4 begins to
/// write to the disk with a rename, which takes longer than all the rest; two names that change places do not.
pub fn replace_often(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("a file without a directory"))?;
    let temp = temporary(dir, bytes)?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, temp.path(), CWD, path, RenameFlags::EXCHANGE).is_ok() {
            // What is taken away now is the file of before.
            return Ok(());
        }
    }
    temp.persist(path).map(drop).map_err(|e| e.error)
}

/// The same with other permissions than the owner's alone: those of a file that is not ours.
pub fn replace_as(path: &Path, bytes: &[u8], durable: bool, mode: Option<Permissions>) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("a file without a directory"))?;
    let temp = temporary(dir, bytes)?;
    if durable {
        temp.as_file().sync_all()?;
    }
    if let Some(mode) = mode {
        temp.as_file().set_permissions(mode)?;
    }
    temp.persist(path).map(drop).map_err(|e| e.error)?;
    if durable {
        sync_dir(dir);
    }
    Ok(())
}

/// The same, durable, for a file that only who holds its lock writes: by way of this name beside it, which a
/// killed process may have left and the next one takes.
pub fn replace_by(path: &Path, temp: &Path, bytes: &[u8]) -> io::Result<()> {
    check_limit(bytes.len())?;
    let write = || {
        let _ = std::fs::remove_file(temp);
        let mut file = private().write(true).create_new(true).open(temp)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(temp, path)
    };
    write().inspect_err(|_| drop(std::fs::remove_file(temp)))?;
    if let Some(dir) = path.parent() {
        sync_dir(dir);
    }
    Ok(())
}

/// An error where this process may not write as many bytes: the system would end it for trying.
fn check_limit(bytes: usize) -> io::Result<()> {
    #[cfg(unix)]
    {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| limit < bytes as u64) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    let _ = bytes;
    Ok(())
}

/// Writes a directory's entries to the disk where the system can; the files themselves are there already.
fn sync_dir(dir: &Path) {
    #[cfg(unix)]
    if let Ok(dir) = fs_err::File::open(dir) {
        let _ = dir.sync_all();
    }
    #[cfg(not(unix))]
    let _ = dir;
}

/// How a file of ours is opened in place: readable by its owner alone where it is made; a link in its place is
/// not followed, a FIFO not waited on.
pub fn private() -> fs_err::OpenOptions {
    let mut options = fs_err::OpenOptions::new();
    #[cfg(unix)]
    {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    options
}

/// Adds to a file that is readable by its owner alone. A link in its place is not followed.
pub fn append_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private().append(true).create(true).open(path)?.into_parts().0;
    let held = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    check_limit(held.saturating_add(bytes.len()))?;
    file.write_all(bytes)
}

/// What the name of a file goes on with that could not be read; a number follows.
pub(super) const ASIDE: &str = ".unreadable-";

/// A file that was set aside under the name of this one, if there is any.
pub fn aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let begins = format!("{}{ASIDE}", name.to_string_lossy());
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Adds all of these bytes to a file that is readable by its owner alone, or none of them where that fails. A
/// file that is made gets its name onto the disk too when it is to be durable. Only who holds its lock may.
pub fn append_whole(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let is_new = !path.exists();
    let mut file = private().append(true).create(true).open(path)?.into_parts().0;
    let held = file.metadata()?.len();
    check_limit(usize::try_from(held).unwrap_or(usize::MAX).saturating_add(bytes.len()))?;
    let written = file.write_all(bytes).and_then(|()| if durable { file.sync_data() } else { Ok(()) });
    if written.is_err() {
        let _ = file.set_len(held);
    }
    written?;
    if let Some(dir) = path.parent().filter(|_| durable && is_new) {
        sync_dir(dir);
    }
    Ok(())
}

/// Renames a file that cannot be read out of the way, to the first free `<name>.unreadable-<n>`.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    for n in 1..1_000 {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{ASIDE}{n}"));
        let aside = PathBuf::from(name);
        if !aside.exists() {
            std::fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other(format!("{} was set aside too often", path.display())))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b");
        make_private(&dir).unwrap();
        make_private(&dir).unwrap();
        assert_eq!(fs_err::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        let file = dir.join("f");
        replace(&file, b"one", true).unwrap();
        replace(&file, b"two", false).unwrap();
        assert_eq!(fs_err::read(&file).unwrap(), b"two");
        assert_eq!(fs_err::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs_err::read_dir(&dir).unwrap().count(), 1, "no litter");
        assert!(replace(&root.path().join("none/f"), b"", false).is_err());
        for bytes in [&b"three"[..], b"four"] {
            replace_often(&file, bytes).unwrap();
            assert_eq!(fs_err::read(&file).unwrap(), bytes);
        }
        replace_often(&dir.join("g"), b"new").unwrap();
        assert_eq!(fs_err::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs_err::read_dir(&dir).unwrap().count(), 2, "no litter");
        assert!(replace_often(&root.path().join("none/f"), b"").is_err());
    }
}
