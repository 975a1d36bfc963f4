//! Session ids. They come from input and become file names, so they are checked once, here.

use std::fmt;

/// A session's id, safe to use as a file name: 1 to 64 of `[A-Za-z0-9_-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// The id, or `None` where it holds anything a file name must not.
    pub fn parse(text: &str) -> Option<Self> {
        is_plain(text).then(|| Self(text.to_owned()))
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether an id is safe to use as a file name: 1 to 64 of `[A-Za-z0-9_-]`.
pub fn is_plain(id: &str) -> bool {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (1..=64).contains(&id.len()) && plain
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A short, stable number for a text, equal across runs and versions (FNV-1a, 64 bits). Not a defence
/// against somebody who chooses the text.
pub fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_a_path() {
        for bad in ["", "..", "../../x", "a/b", "a\\b", "a b", "é", "a\0", &"x".repeat(65)] {
            assert!(SessionId::parse(bad).is_none(), "{bad:?}");
        }
        for good in ["3f2a9c1e-0000-4000-8000-1234567890ab", "agent_7"] {
            assert_eq!(SessionId::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_digest_separates_its_parts() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"ab"]), digest(&[b"ab"]));
    }
}
