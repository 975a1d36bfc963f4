//! The plain layout that [`super::Progress`] is stored in: little-endian numbers, one after the other.

/// Writes one.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, n: u8) {
        self.0.push(n);
    }

    pub fn u64(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    pub fn i64(&mut self, n: i64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    pub fn bool(&mut self, yes: bool) {
        self.0.push(u8::from(yes));
    }

    /// A text of at most 255 bytes; a longer one is cut between characters.
    pub fn text(&mut self, text: &str) {
        let cut = cut_at(text, 255);
        self.u8(u8::try_from(cut).unwrap_or(0));
        self.0.extend_from_slice(&text.as_bytes()[..cut]);
    }

    /// A value that may be absent.
    pub fn maybe<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// The longest length up to `max` at which the text can be cut between characters.
pub fn cut_at(text: &str, max: usize) -> usize {
    (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Reads one back; `None` where the bytes end too soon or say what cannot be.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[n]| n)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let length = usize::from(self.u8()?);
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(head).ok()
    }

    /// The outer `None` is a failure, the inner one an absent value.
    #[allow(clippy::option_option)]
    pub fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Some(None) }
    }
}
