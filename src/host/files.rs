//! Reading files that somebody else names: never a device, a FIFO or a directory, never past a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading, without waiting: a FIFO with no writer, a device or a directory is an
/// error at once.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_sized(path).map(|(file, _)| file)
}

/// The same, with the size that it had then; 0 for what the system makes up as it is read.
fn open_sized(path: &Path) -> io::Result<(File, u64)> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0));
    }
    let file = options.open(path)?.into_parts().0;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata.len()))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a regular file", path.display())))
    }
}

/// Which file this is: device and number there, for as long as somebody has it open. Where the system gives its
/// files no numbers, the time at which it was made stands in.
pub fn identity(meta: &std::fs::Metadata) -> (u64, u64) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (meta.dev(), meta.ino())
    }
    #[cfg(not(unix))]
    {
        let made = meta.created().map_or(0, super::clock::epoch_ms);
        (0, u64::try_from(made).unwrap_or(0))
    }
}

/// Whether no name leads to an open file any more.
pub fn is_nameless(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}

/// Reads from a place in an open file; fewer bytes only at its end.
pub fn read_at(mut file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    use std::io::{Seek as _, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    let mut got = 0;
    while got < into.len() {
        match file.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The whole of a small regular file. One larger than `max` bytes is an error, not a partial read.
pub fn read_small(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_sized(path)?;
    // Room for all of it and a little more, so that it comes in one piece.
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(max)).unwrap_or(0) + 512);
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is larger than {max} bytes", path.display()),
        ));
    }
    Ok(bytes)
}

/// Why a program found through the environment must not be run; `None` where it may be: it belongs to this
/// user or to root, nobody else can write it, and nobody else can put another one in its place.
pub fn distrust(program: &Path) -> Option<&'static str> {
    let Ok(real) = program.canonicalize() else { return Some("cannot be followed to a file") };
    match std::fs::metadata(&real) {
        Ok(meta) if meta.is_file() => distrust_owner(&real, &meta),
        _ => Some("is not a regular file"),
    }
}

#[cfg(unix)]
fn distrust_owner(real: &Path, meta: &std::fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let me = rustix::process::geteuid().as_raw();
    let owned = |meta: &std::fs::Metadata| meta.uid() == me || meta.uid() == 0;
    // A group of the user's own name and number is the user; so many systems give out.
    let private_group = meta.gid() == meta.uid() && owned(meta);
    if !owned(meta) {
        return Some("belongs to another user");
    }
    if meta.mode() & 0o002 != 0 || (meta.mode() & 0o020 != 0 && !private_group) {
        return Some("can be written by others");
    }
    if meta.mode() & 0o111 == 0 {
        return Some("is not executable");
    }
    let open = real.ancestors().skip(1).any(|dir| {
        // In a sticky directory (/tmp) nobody can replace another's file.
        std::fs::metadata(dir)
            .map_or(true, |m| !owned(&m) || (m.mode() & 0o002 != 0 && m.mode() & 0o1000 == 0))
    });
    open.then_some("lies in a directory that others can write")
}

/// Why a directory is not this user's alone; `None` where it is: no link, this user's own, and nobody else may
/// enter it.
#[cfg(unix)]
pub fn distrust_dir(dir: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(meta) = std::fs::symlink_metadata(dir) else { return Some("cannot be looked at") };
    if !meta.is_dir() {
        return Some("is not a directory");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Some("belongs to another user");
    }
    (meta.mode() & 0o077 != 0).then_some("can be entered by others")
}

/// The same, as far as this system tells.
#[cfg(not(unix))]
pub fn distrust_dir(dir: &Path) -> Option<&'static str> {
    (!dir.is_dir()).then_some("is not a directory")
}

/// Whether this user could write into a directory.
pub fn can_write(dir: &Path) -> bool {
    #[cfg(unix)]
    {
        rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
    }
    #[cfg(not(unix))]
    {
        std::fs::metadata(dir).is_ok_and(|meta| !meta.permissions().readonly())
    }
}

/// This user as the system counts them.
pub fn user() -> String {
    #[cfg(unix)]
    {
        rustix::process::geteuid().as_raw().to_string()
    }
    #[cfg(not(unix))]
    {
        String::new()
    }
}

#[cfg(not(unix))]
fn distrust_owner(_real: &Path, _meta: &std::fs::Metadata) -> Option<&'static str> {
    None
}

/// A number that changes when the file is written or replaced: inode, size and time of change. 0 where
/// there is no file.
pub fn version(path: &Path) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(path).map_or(0, |m| {
            crate::base::id::digest(&[
                &m.ino().to_le_bytes(),
                &m.size().to_le_bytes(),
                &m.mtime().to_le_bytes(),
                &m.mtime_nsec().to_le_bytes(),
            ])
        })
    }
    #[cfg(not(unix))]
    {
        std::fs::metadata(path).map_or(0, |m| crate::base::id::digest(&[&m.len().to_le_bytes()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_that_others_can_write_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("claude");
        fs_err::write(&file, b"#!/bin/sh\n").unwrap();
        let with = |path: &Path, mode| {
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            distrust(&file)
        };
        assert_eq!(with(&file, 0o755), None);
        assert_eq!(with(&file, 0o757), Some("can be written by others"));
        assert_eq!(with(&file, 0o644), Some("is not executable"));
        assert_eq!(with(&file, 0o700), None);
        assert_eq!(with(dir.path(), 0o777), Some("lies in a directory that others can write"));
        assert_eq!(with(dir.path(), 0o1777), None, "sticky");
        assert_eq!(distrust(dir.path()), Some("is not a regular file"));
        assert!(distrust(&dir.path().join("none")).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_of_ones_own_is_no_link_and_closed_to_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("dir");
        fs_err::create_dir(&dir).unwrap();
        for (mode, why) in [(0o700, None), (0o500, None), (0o750, Some("can be entered by others"))] {
            fs_err::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(distrust_dir(&dir), why, "{mode:o}");
        }
        fs_err::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
        let link = root.path().join("link");
        fs_err::os::unix::fs::symlink(&dir, &link).unwrap();
        assert_eq!(distrust_dir(&link), Some("is not a directory"));
        assert_eq!(distrust_dir(&root.path().join("none")), Some("cannot be looked at"));
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open_regular(dir.path()).is_err());
        assert!(open_regular(Path::new("/dev/zero")).is_err());
        let file = dir.path().join("x");
        fs_err::write(&file, b"abc").unwrap();
        assert_eq!(read_small(&file, 3).unwrap(), b"abc");
        assert!(read_small(&file, 2).unwrap_err().to_string().contains("larger than 2 bytes"));
    }
}
