//! Private directories, and files that are there whole or not at all.

use std::io::{self, Write as _};
use std::path::Path;

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
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        }
    }
    #[cfg(not(unix))]
    fs_err::create_dir_all(dir)
}

/// Replaces a file by `bytes` in one step, readable by its owner alone. The directory must exist.
/// With `durable` the bytes are on the disk before the name is.
pub fn replace(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("a file without a directory"))?;
    // tempfile makes it 0600 and takes it away again when anything below fails.
    let mut temp = tempfile::Builder::new().prefix(".lh-").tempfile_in(dir)?;
    temp.write_all(bytes)?;
    if durable {
        temp.as_file().sync_all()?;
    }
    temp.persist(path).map(drop).map_err(|e| e.error)
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
    }
}
