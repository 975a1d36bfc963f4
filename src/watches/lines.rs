//! Bytes into lines, in bounded memory: a line without an end is cut, and its rest passed over.

use crate::store::watches::Inside;

/// Bytes of a line that count; what is longer is cut there.
pub const LINE_MOST: usize = 16 << 10;

/// A line as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Without its end.
    pub bytes: &'a [u8],
    /// It was too long, and goes on.
    pub cut: bool,
}

/// Gives each whole line to `each`. Answers how many bytes are done with, and where in a line that is; what is
/// left is the beginning of a line, shorter than [`LINE_MOST`].
pub fn split(bytes: &[u8], mut inside: Inside, each: &mut dyn FnMut(Line)) -> (usize, Inside) {
    let mut done = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        let line = &bytes[done..end];
        done = end + 1;
        whole(line, inside, each);
        inside = Inside::No;
    }
    let left = &bytes[done..];
    if inside == Inside::Long {
        return (bytes.len(), inside);
    }
    if left.len() >= LINE_MOST {
        each(Line { bytes: &left[..LINE_MOST], cut: true });
        return (bytes.len(), Inside::Long);
    }
    (done, inside)
}

/// A line that has its end.
fn whole(line: &[u8], inside: Inside, each: &mut dyn FnMut(Line)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match inside {
        Inside::Long => {}
        // Nothing but the end came of a line that was told.
        Inside::Begun if line.is_empty() => {}
        Inside::No | Inside::Begun if line.len() > LINE_MOST => {
            each(Line { bytes: &line[..LINE_MOST], cut: true });
        }
        Inside::No | Inside::Begun => each(Line { bytes: line, cut: false }),
    }
}

/// What is left at the end of all, as a line; empty where there is nothing.
pub fn rest(left: &[u8], inside: Inside, each: &mut dyn FnMut(Line)) {
    if !left.is_empty() {
        whole(left, inside, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], inside: Inside) -> (Vec<String>, usize, Inside) {
        let mut lines = Vec::new();
        let (done, inside) =
            split(bytes, inside, &mut |line| lines.push(String::from_utf8_lossy(line.bytes).into_owned()));
        (lines, done, inside)
    }

    #[test]
    fn lines_end_with_their_end() {
        assert_eq!(
            all(b"a\r\nb\n\nc", Inside::No),
            (vec!["a".into(), "b".into(), String::new()], 6, Inside::No)
        );
        assert_eq!(all(b"\nb\n", Inside::Begun), (vec!["b".into()], 3, Inside::No));
        assert_eq!(all(b"rest\nb", Inside::Begun), (vec!["rest".into()], 5, Inside::No));
        assert_eq!(all(b"rest", Inside::Long), (vec![], 4, Inside::Long));
        assert_eq!(all(b"rest\nb\n", Inside::Long), (vec!["b".into()], 7, Inside::No));
    }

    #[test]
    fn a_line_without_an_end_is_cut_once() {
        let long = vec![b'x'; 3 * LINE_MOST];
        let (lines, done, inside) = all(&long, Inside::No);
        assert_eq!((lines.len(), lines[0].len(), done, inside), (1, LINE_MOST, long.len(), Inside::Long));
        assert_eq!(all(&long, inside), (vec![], long.len(), Inside::Long));
        let ended = [&long[..], b"\n"].concat();
        assert_eq!(all(&ended, Inside::No).0[0].len(), LINE_MOST);
    }

    proptest! {
        /// However the bytes come, the lines are the same.
        #[test]
        fn pieces_make_the_same_lines(text in "[ab\n\r]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6)) {
            let bytes = text.as_bytes();
            let (whole, done, _) = all(bytes, Inside::No);
            let mut lines = Vec::new();
            let (mut from, mut inside) = (0, Inside::No);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            for to in cuts.into_iter().filter(|to| *to >= from).collect::<Vec<_>>() {
                if to < from { continue; }
                let (more, used, now) = all(&bytes[from..to], inside);
                lines.extend(more);
                from += used;
                inside = now;
            }
            prop_assert_eq!(lines, whole);
            prop_assert_eq!(from, done);
        }
    }
}
