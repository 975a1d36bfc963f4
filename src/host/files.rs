//! Reading files that somebody else names: never a device, a FIFO or a directory, never past a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading, without waiting: a FIFO with no writer, a device or a directory is an
/// error at once.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0));
    }
    let file = options.open(path)?.into_parts().0;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a regular file", path.display())))
    }
}

/// The whole of a small regular file. One larger than `max` bytes is an error, not a partial read.
pub fn read_small(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is larger than {max} bytes", path.display()),
        ));
    }
    Ok(bytes)
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
