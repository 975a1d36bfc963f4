//! What kind of file system a path lies on.

use std::path::Path;

/// File systems of other machines, by the number that Linux gives each (`statfs(2)`), with their names.
#[cfg(target_os = "linux")]
const REMOTE: [(u64, &str); 11] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0102_1997, "9P"),
];

/// The name of the network file system that a path lies on; `None` where it lies on this machine, and where the
/// system does not tell.
#[cfg(target_os = "linux")]
pub fn remote(path: &Path) -> Option<&'static str> {
    // The field's width differs between processors; the numbers are of 32 bits.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let kind = rustix::fs::statfs(path).ok()?.f_type as u64;
    named(kind & 0xffff_ffff)
}

#[cfg(target_os = "linux")]
fn named(kind: u64) -> Option<&'static str> {
    REMOTE.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

/// The same, as far as this system tells: it does not.
#[cfg(not(target_os = "linux"))]
pub fn remote(_path: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_local_place_is_told_from_a_remote_one() {
        assert_eq!(remote(Path::new("/proc")), None);
        assert_eq!(remote(Path::new("/no such place")), None);
        assert_eq!(named(0x6969), Some("NFS"));
        assert_eq!(named(0x0102_1994), None, "tmpfs");
    }
}
