//! Whether a file can run as a program on this machine, told without running it.

use std::path::Path;

use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{
    Architecture, BinaryFormat, File, FileKind, Object as _, ObjectSegment as _, ReadCache, ReadRef,
};

use super::files;

/// What keeps a file from running as a program here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    /// There is none.
    Missing,
    /// A link, where only a file itself is run.
    Link,
    /// A directory or a device.
    NoFile,
    /// Another user's.
    OtherOwner,
    /// Without its execute bit.
    NotExecutable,
    /// On a file system from which nothing is run.
    NoExec,
    /// The end of it is missing.
    CutShort,
    /// Text, as of a file that never came: a pointer to it, a page that says so.
    Text,
    /// Built for another machine, with what it is built for.
    OtherMachine(String),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// What keeps this file from running; `None` where nothing does.
pub fn hindrance(path: &Path) -> Option<Hindrance> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Some(Hindrance::Missing),
        Err(e) => return Some(Hindrance::Unreadable(e.to_string())),
    };
    if meta.is_symlink() {
        return Some(Hindrance::Link);
    }
    if !meta.is_file() {
        return Some(Hindrance::NoFile);
    }
    let file = match files::open_regular(path) {
        Ok(file) => file,
        Err(e) => return Some(Hindrance::Unreadable(e.to_string())),
    };
    // Only the headers are read, however large the program is.
    let parts = ReadCache::new(file);
    judge(&parts, std::env::consts::OS, std::env::consts::ARCH).or_else(|| refused(path, &meta))
}

/// What keeps these bytes from running on a system and a processor, both by the names Rust has for them.
fn judge<'d, R: ReadRef<'d>>(bytes: R, os: &str, arch: &str) -> Option<Hindrance> {
    let length = bytes.len().unwrap_or(0);
    let begins = bytes.read_bytes_at(0, length.min(64)).unwrap_or_default();
    if begins.starts_with(b"#!") && os != "windows" {
        return None;
    }
    let Ok(kind) = FileKind::parse(bytes) else {
        let is_text = begins.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
        return Some(if is_text { Hindrance::Text } else { Hindrance::CutShort });
    };
    let built_for = match kind {
        FileKind::MachOFat32 => MachOFatFile32::parse(bytes).ok().map(|file| fat(file.arches())),
        FileKind::MachOFat64 => MachOFatFile64::parse(bytes).ok().map(|file| fat(file.arches())),
        _ => File::parse(bytes).ok().filter(|file| is_whole(file, length)).map(|file| {
            let machine = (system(file.format()), processor(file.architecture()));
            vec![machine]
        }),
    };
    let Some(built_for) = built_for else { return Some(Hindrance::CutShort) };
    // Another processor of the same system may be imitated (Rosetta); nobody can know that from here.
    if built_for.iter().any(|(system, built)| *system == os && *built == arch) {
        return None;
    }
    let names: Vec<_> = built_for.iter().map(|(system, built)| format!("{system} {built}")).collect();
    Some(Hindrance::OtherMachine(names.join(", ")))
}

fn is_whole<'d, R: ReadRef<'d>>(file: &File<'d, R>, length: u64) -> bool {
    file.segments().all(|segment| {
        let (start, size) = segment.file_range();
        start.saturating_add(size) <= length
    })
}

fn fat<F: FatArch>(arches: &[F]) -> Vec<(&'static str, &'static str)> {
    arches.iter().map(|arch| ("macos", processor(arch.architecture()))).collect()
}

fn system(format: BinaryFormat) -> &'static str {
    match format {
        BinaryFormat::Elf => "linux",
        BinaryFormat::MachO => "macos",
        BinaryFormat::Pe => "windows",
        _ => "another system",
    }
}

fn processor(built: Architecture) -> &'static str {
    match built {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64 => "aarch64",
        Architecture::I386 => "x86",
        Architecture::Arm => "arm",
        Architecture::Riscv64 => "riscv64",
        Architecture::PowerPc64 => "powerpc64",
        Architecture::S390x => "s390x",
        _ => "another processor",
    }
}

/// What the system has against it.
#[cfg(unix)]
fn refused(path: &Path, meta: &std::fs::Metadata) -> Option<Hindrance> {
    use std::os::unix::fs::MetadataExt as _;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Some(Hindrance::OtherOwner);
    }
    if meta.mode() & 0o111 == 0 {
        return Some(Hindrance::NotExecutable);
    }
    let flags = rustix::fs::statvfs(path).ok()?.f_flag;
    flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC).then_some(Hindrance::NoExec)
}

#[cfg(not(unix))]
fn refused(_path: &Path, _meta: &std::fs::Metadata) -> Option<Hindrance> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        #[allow(clippy::disallowed_methods)]
        fs_err::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn this_very_program_runs_here_and_elsewhere_it_does_not() {
        let own = own();
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        assert_eq!(judge(&own[..], os, arch), None);
        for (system, built) in [(os, "powerpc64"), ("plan9", arch)] {
            let other = judge(&own[..], system, built);
            assert_eq!(other, Some(Hindrance::OtherMachine(format!("{os} {arch}"))));
        }
        for length in [own.len() - 1, own.len() / 2, 70, 20, 4, 1] {
            let cut = judge(&own[..length], os, arch);
            assert_eq!(cut, Some(Hindrance::CutShort), "{length} bytes");
        }
    }

    // thedotmack/claude-mem#1547: a program of another processor, and nobody said so.
    #[test]
    fn other_machines_are_told_by_their_headers() {
        let mut elf = own();
        if std::env::consts::OS == "linux" {
            elf[18] = 183;
            let arm = judge(&elf[..], "linux", "x86_64");
            assert_eq!(arm, Some(Hindrance::OtherMachine("linux aarch64".into())));
        }
        // A 64-bit Mach-O executable with no load commands, for arm64.
        let mut mach = [0u8; 32];
        mach[..8].copy_from_slice(&[0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1]);
        mach[12] = 2;
        assert_eq!(judge(&mach[..], "macos", "aarch64"), None);
        assert_eq!(
            judge(&mach[..], "linux", "x86_64"),
            Some(Hindrance::OtherMachine("macos aarch64".into()))
        );
    }

    #[test]
    fn what_is_no_program_is_told() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
        assert_eq!(judge(&pointer[..], "linux", "x86_64"), Some(Hindrance::Text));
        assert_eq!(judge(&b""[..], "linux", "x86_64"), Some(Hindrance::Text));
        assert_eq!(judge(&b"\0\0\0\0"[..], "linux", "x86_64"), Some(Hindrance::CutShort));
        assert_eq!(judge(&b"#!/bin/sh\n"[..], "linux", "x86_64"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_looked_at_without_following_links() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs_err::write(at("p"), "#!/bin/sh\n").unwrap();
        assert_eq!(hindrance(&at("p")), Some(Hindrance::NotExecutable));
        fs_err::set_permissions(at("p"), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(hindrance(&at("p")), None);
        fs_err::os::unix::fs::symlink("p", at("l")).unwrap();
        assert_eq!(hindrance(&at("l")), Some(Hindrance::Link));
        assert_eq!(hindrance(&at("none")), Some(Hindrance::Missing));
        assert_eq!(hindrance(root.path()), Some(Hindrance::NoFile));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_judged_without_a_panic(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            magic in proptest::sample::select(vec![&b"\x7fELF\x02\x01\x01"[..], b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ", b""])) {
            bytes.splice(0..0, magic.iter().copied());
            judge(&bytes[..], "linux", "x86_64");
        }
    }
}
