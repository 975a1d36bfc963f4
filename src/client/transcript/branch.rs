//! Contexts by row, in bounded memory: what stood in the context as of a row, so that a row which goes back
//! to an earlier one (a rewind) goes back to that row's context.
//!
//! Two memories, each a set of small buckets in which the oldest gives way: the rows of late, and the rows
//! that prompts hang on. A rewind puts the new prompt where the abandoned one hung, so the second one finds
//! it however many rows ago that was.

use super::bytes::{Reader, Writer};

/// A hash of an id's bytes. 0 is no id.
pub fn hash(id: &[u8]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15_u64 ^ id.len() as u64;
    let (words, rest) = id.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    let mut last = [0_u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash ^ u64::from_le_bytes(last)).max(1)
}

fn mix(n: u64) -> u64 {
    let n = n.wrapping_mul(0xff51_afd7_ed55_8ccd);
    n ^ (n >> 29)
}

/// What stood in the context as of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Tokens; `None` where nobody can say.
    pub tokens: Option<u32>,
    /// A compaction's own estimate: no response since.
    pub estimated: bool,
    /// Which model answered, by its place in the table of models.
    pub model: u8,
    /// How many compactions had been when the row was written; only compared, so it may wrap.
    pub epoch: u16,
}

const KNOWN: u32 = 1;
const ESTIMATED: u32 = 2;

impl Mark {
    fn pack(self) -> u64 {
        let mut flags = u32::from(self.model) << 8 | u32::from(self.epoch) << 16;
        flags |= if self.tokens.is_some() { KNOWN } else { 0 };
        flags |= if self.estimated { ESTIMATED } else { 0 };
        u64::from(self.tokens.unwrap_or(0)) << 32 | u64::from(flags)
    }

    fn unpack(packed: u64) -> Self {
        let [flags, model, epoch @ .., t0, t1, t2, t3] = packed.to_le_bytes();
        let flags = u32::from(flags);
        Self {
            tokens: (flags & KNOWN != 0).then(|| u32::from_le_bytes([t0, t1, t2, t3])),
            estimated: flags & ESTIMATED != 0,
            model,
            epoch: u16::from_le_bytes(epoch),
        }
    }

    pub(super) fn write(self, out: &mut Writer) {
        out.u64(self.pack());
    }

    pub(super) fn read(from: &mut Reader) -> Option<Self> {
        from.u64().map(Self::unpack)
    }
}

/// How many a bucket holds.
const WAYS: usize = 8;

/// A memory of the latest keys, `BUCKETS` × 8 of them, with a number to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory<const BUCKETS: usize> {
    /// Newest first within a bucket; key 0 is an empty place.
    slots: Vec<[(u64, u64); WAYS]>,
}

impl<const BUCKETS: usize> Default for Memory<BUCKETS> {
    fn default() -> Self {
        Self { slots: vec![[(0, 0); WAYS]; BUCKETS] }
    }
}

impl<const BUCKETS: usize> Memory<BUCKETS> {
    fn bucket(key: u64) -> usize {
        usize::try_from(key >> 32).unwrap_or(0) % BUCKETS
    }

    /// What was last put under the key.
    pub fn get(&self, key: u64) -> Option<u64> {
        self.slots[Self::bucket(key)]
            .iter()
            .find(|(have, _)| *have == key && key != 0)
            .map(|(_, value)| *value)
    }

    /// Puts a number under a key, as its bucket's newest.
    pub fn put(&mut self, key: u64, value: u64) {
        let bucket = &mut self.slots[Self::bucket(key)];
        let old = bucket.iter().position(|(have, _)| *have == key).unwrap_or(WAYS - 1);
        bucket.copy_within(..old, 1);
        bucket[0] = (key, value);
    }

    /// Puts a key, and tells whether it is new.
    pub fn is_new(&mut self, key: u64) -> bool {
        let new = self.get(key).is_none();
        if new {
            self.put(key, 1);
        }
        new
    }

    pub(super) fn write(&self, out: &mut Writer) {
        for bucket in &self.slots {
            let held = bucket.iter().take_while(|(key, _)| *key != 0);
            out.u8(u8::try_from(held.clone().count()).unwrap_or(0));
            for (key, value) in held {
                out.u64(*key);
                out.u64(*value);
            }
        }
    }

    pub(super) fn read(from: &mut Reader) -> Option<Self> {
        let mut memory = Self::default();
        for bucket in &mut memory.slots {
            let held = usize::from(from.u8()?);
            for slot in bucket.get_mut(..held)? {
                *slot = (from.u64()?, from.u64()?);
            }
        }
        Some(memory)
    }
}

/// Both memories of contexts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branches {
    rows: Memory<96>,
    forks: Memory<64>,
}

impl Branches {
    /// The context as of a row, where it is remembered.
    pub fn as_of(&self, row: u64) -> Option<Mark> {
        self.rows.get(row).or_else(|| self.forks.get(row)).map(Mark::unpack)
    }

    /// Whether the very row was seen, and not only as something that a prompt hung on.
    pub fn has(&self, row: u64) -> bool {
        self.rows.get(row).is_some()
    }

    /// Remembers the context as of a row.
    pub fn set(&mut self, row: u64, mark: Mark) {
        self.rows.put(row, mark.pack());
    }

    /// Remembers the row that a prompt hangs on.
    pub fn set_fork(&mut self, row: u64, mark: Mark) {
        self.forks.put(row, mark.pack());
    }

    pub(super) fn write(&self, out: &mut Writer) {
        self.rows.write(out);
        self.forks.write(out);
    }

    pub(super) fn read(from: &mut Reader) -> Option<Self> {
        Some(Self { rows: Memory::read(from)?, forks: Memory::read(from)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_packing() {
        for tokens in [None, Some(0), Some(83_400), Some(u32::MAX)] {
            for estimated in [false, true] {
                let mark = Mark { tokens, estimated, model: 7, epoch: 513 };
                assert_eq!(Mark::unpack(mark.pack()), mark);
            }
        }
    }

    #[test]
    fn the_oldest_gives_way_and_the_latest_stays() {
        let mut memory = Memory::<4>::default();
        let keys: Vec<u64> = (0..1000_u32).map(|n| hash(&n.to_le_bytes())).collect();
        for (value, key) in (0_u64..).zip(&keys) {
            memory.put(*key, value);
            assert_eq!(memory.get(*key), Some(value));
        }
        assert_eq!(keys.iter().filter(|key| memory.get(**key).is_some()).count(), 4 * WAYS);
        assert_eq!(memory.get(0), None, "an empty place is nobody's");
        assert!(!memory.is_new(keys[999]));
        assert!(memory.is_new(keys[0]));
    }

    #[test]
    fn a_key_put_again_takes_no_second_place() {
        let mut memory = Memory::<1>::default();
        for key in 1..=8 {
            memory.put(key, key);
        }
        memory.put(3, 33);
        assert!((1..=8).all(|key| memory.get(key) == Some(if key == 3 { 33 } else { key })));
    }

    #[test]
    fn hashes_tell_ids_apart() {
        let ids: [&[u8]; 7] = [b"", b"\0", b"a", b"12345678", b"12345678\0", b"123456789", b"msg_1"];
        for (n, one) in ids.iter().enumerate() {
            assert!(ids[n + 1..].iter().all(|other| hash(one) != hash(other)), "{one:?}");
        }
    }
}
