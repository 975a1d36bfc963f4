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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_and_are_of_their_length() {
        let (a, b) = (code(10).unwrap(), code(10).unwrap());
        assert_eq!((a.len(), b.len()), (10, 10));
        assert_ne!(a, b);
        assert!(a.bytes().all(|sign| SIGNS.contains(&sign)));
    }
}
