//! The system's random numbers, for codes that nobody may guess.

use std::io;

/// Letters and digits that are not mistaken for each other: 32 of them.
const SIGNS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A random code of this many signs, five bits each.
pub fn code(signs: usize) -> io::Result<String> {
    let mut bytes = vec![0; signs];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| char::from(SIGNS[usize::from(byte & 31)])).collect())
}

/// A random UUID (version 4), as sessions are called.
pub fn uuid() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = bytes.map(|byte| format!("{byte:02x}"));
    let group = |from: usize, to: usize| hex[from..to].concat();
    Ok([group(0, 4), group(4, 6), group(6, 8), group(8, 10), group(10, 16)].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_and_are_of_their_length() {
        let (a, b) = (code(10).unwrap(), code(10).unwrap());
        assert_eq!((a.len(), b.len()), (10, 10));
        assert_ne!(a, b);
        let id = uuid().unwrap();
        assert!(id.len() == 36 && &id[14..15] == "4" && "89ab".contains(&id[19..20]), "{id}");
        assert!(a.bytes().all(|sign| SIGNS.contains(&sign)));
    }
}
