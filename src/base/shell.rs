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

/// Why a line is no list of plain words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPlain {
    /// A quote that nothing closes.
    #[error("a quote in it is not closed")]
    Open,
    /// A sign that only a shell acts on.
    #[error("only a shell acts on {0:?}")]
    Shell(char),
    /// No word at all.
    #[error("there is no word in it")]
    Empty,
}

/// The words of a command line as a POSIX shell would split it, without anything else that a shell does: where a
/// sign outside of quotes would make it do more, that is the error.
///
/// ```
/// use longhaul::base::shell::{NotPlain, words};
/// assert_eq!(words("gh run 'view it' a\\ b").unwrap(), ["gh", "run", "view it", "a b"]);
/// assert_eq!(words("a | b"), Err(NotPlain::Shell('|')));
/// ```
pub fn words(line: &str) -> Result<Vec<String>, NotPlain> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match sign {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => quoted(&mut signs, word.get_or_insert_default())?,
            '"' => double_quoted(&mut signs, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(signs.next().ok_or(NotPlain::Open)?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' => {
                return Err(NotPlain::Shell(sign));
            }
            '#' | '~' if word.is_none() => return Err(NotPlain::Shell(sign)),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(NotPlain::Empty) } else { Ok(words) }
}

fn quoted(signs: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), NotPlain> {
    loop {
        match signs.next().ok_or(NotPlain::Open)? {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(signs: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), NotPlain> {
    loop {
        match signs.next().ok_or(NotPlain::Open)? {
            '"' => return Ok(()),
            '\\' => match signs.next().ok_or(NotPlain::Open)? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c @ ('$' | '`') => return Err(NotPlain::Shell(c)),
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_as_a_shell_splits_it() {
        let split = |line: &str| words(line).unwrap();
        assert_eq!(split("  a  b\t'c d'e\"f g\" "), ["a", "b", "c def g"]);
        assert_eq!(split("'' \"\""), ["", ""]);
        assert_eq!(split(r#"sh -c 'a | b > "c" $d'"#), ["sh", "-c", r#"a | b > "c" $d"#]);
        assert_eq!(split(r#""a\"b\\c\d" x#y a~"#), [r#"a"b\c\d"#, "x#y", "a~"]);
        for (bad, why) in [
            ("", NotPlain::Empty),
            (" \n", NotPlain::Empty),
            ("a 'b", NotPlain::Open),
            ("a \"b", NotPlain::Open),
            ("a \\", NotPlain::Open),
            ("echo $HOME", NotPlain::Shell('$')),
            ("echo \"$HOME\"", NotPlain::Shell('$')),
            ("a && b", NotPlain::Shell('&')),
            ("ls *.log", NotPlain::Shell('*')),
            ("cat ~/x", NotPlain::Shell('~')),
        ] {
            assert_eq!(words(bad), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn what_was_quoted_is_read_back() {
        let all = ["a b", "it's", "", "$x", "back\\slash", "new\nline", "*", "é"];
        let line = all.map(word).join(" ");
        assert_eq!(words(&line).unwrap(), all);
    }
}
