//! The transcript itself: its hash, and a compressed copy, since the client deletes old ones.

use std::fs::File;
use std::io::{self, Write};

use super::source::Source;

/// Level of the compression: at 3 the copy of a transcript is made at some 300 MB/s.
const LEVEL: i32 = 3;
const CHUNK: usize = 256 * 1024;

/// Hashes the transcript (BLAKE3), and writes the compressed copy where there is a file for one.
pub fn copy(
    source: &Source,
    into: Option<File>,
    tick: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut encoder = into.map(|file| zstd::Encoder::new(file, LEVEL)).transpose()?;
    if let Some(encoder) = &mut encoder {
        encoder.include_checksum(true)?;
    }
    let (mut buffer, mut at) = (vec![0; CHUNK], 0);
    loop {
        let got = source.read_at(&mut buffer, at)?;
        if got == 0 {
            break;
        }
        hasher.update(&buffer[..got]);
        if let Some(encoder) = &mut encoder {
            encoder.write_all(&buffer[..got])?;
        }
        at += got as u64;
        tick(at)?;
    }
    if let Some(encoder) = encoder {
        encoder.finish()?.flush()?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}
