//! Words for a POSIX shell.

/// The text as one word, quoted only where it must be. fish reads a backslash inside single quotes, so those
/// stand outside of them, where all shells read them alike.
///
/// ```
/// use longhaul::base::shell::word;
/// assert_eq!([word("/a/b-1.0"), word("it's")], ["/a/b-1.0", r"'it'\''s'"]);
/// ```
pub fn word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-:+,@".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => out.push_str("'\\''"),
            '\\' => out.push_str("'\\\\'"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}
