//! A settings file as text that people keep: one key is put in, changed or taken out by span, and every
//! other byte stays where it is (order, comments, indentation, line ends, a byte order mark).
//!
//! Comments and trailing commas are tolerated, since people write them; anything else that JSON forbids is
//! a [`Fault`] that names its place. Every change is read back before it is given out.

mod change;
#[cfg(test)]
mod laws;
mod trivia;

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// What keeps a text from being edited. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not JSON.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// JSON, but not an object.
    #[error("line {line}, column {column}: a settings file holds one object, `{{ … }}`")]
    NotObject {
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// The key to be changed stands there twice: only a person can say which one is meant.
    #[error("line {line}, column {column}: \"{key}\" stands there a second time; keep one of them")]
    Twice {
        /// The key.
        key: String,
        /// Where the second one is.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// The change would have moved something else. Never seen; the check is what makes it safe.
    #[error("the text cannot be changed without touching other keys")]
    Unsafe,
}

/// A parsed settings text. An empty one counts as an object without keys.
#[derive(Debug, Clone)]
pub struct Document {
    bom: bool,
    text: String,
    /// The text with comments and trailing commas blanked out: same offsets, strict JSON.
    plain: String,
    root: Option<Object>,
}

#[derive(Debug, Clone)]
struct Object {
    /// Offset of `{`.
    open: usize,
    /// Offset of `}`.
    close: usize,
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    name: String,
    /// Offset of the name's quote.
    start: usize,
    value: Range<usize>,
    object: Option<Object>,
}

const BOM: &str = "\u{feff}";

impl Document {
    /// Reads a settings text.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let whole = std::str::from_utf8(bytes).map_err(|e| {
            let (line, column) = place(&String::from_utf8_lossy(&bytes[..e.valid_up_to()]));
            Fault::Syntax { line, column, what: "not UTF-8 text".to_owned() }
        })?;
        let text = whole.strip_prefix(BOM).unwrap_or(whole);
        let bom = text.len() != whole.len();
        if text.trim().is_empty() {
            return Ok(Self { bom, text: text.to_owned(), plain: String::new(), root: None });
        }
        let syntax = |offset: usize, what: String| {
            let (line, column) = place(text.get(..offset).unwrap_or(text));
            Fault::Syntax { line, column, what }
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options())
            .map_err(|e| syntax(e.range().start, lower(&e.kind().to_string())))?;
        let plain = trivia::blanked(text);
        // The parser above lets through what strict readers refuse, such as a line break in a string.
        let strict: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&plain);
        strict.map_err(|e| syntax(offset_of(&plain, e.line(), e.column()), reason(&e)))?;
        match parsed.value {
            Some(ast::Value::Object(root)) => {
                Ok(Self { bom, root: Some(Object::from(&root)), text: text.to_owned(), plain })
            }
            other => {
                let start = other.map_or(0, |v| jsonc_parser::common::Ranged::range(&v).start);
                let (line, column) = place(&text[..start]);
                Err(Fault::NotObject { line, column })
            }
        }
    }

    /// The value under a path of keys, as strict JSON text; `None` where it is absent. A key that stands
    /// in its object twice is a fault.
    pub fn raw(&self, path: &[&str]) -> Result<Option<&str>, Fault> {
        Ok(self.find(path)?.map(|member| &self.plain[member.value.clone()]))
    }

    /// The string under a path of keys; `None` where it is absent or no string.
    pub fn string(&self, path: &[&str]) -> Result<Option<String>, Fault> {
        Ok(self.raw(path)?.and_then(|raw| serde_json::from_str(raw).ok()))
    }

    /// Whether it holds no key at all.
    pub fn is_empty(&self) -> bool {
        self.root.as_ref().is_none_or(|root| root.members.is_empty())
    }

    /// The line of the first comment or trailing comma. The client skips a settings file that has one, with
    /// an error on its screen (measured, 2.1.332).
    pub fn first_extra(&self) -> Option<usize> {
        let pairs = self.text.bytes().zip(self.plain.bytes());
        let at = pairs.enumerate().find(|(_, (have, strict))| have != strict)?.0;
        Some(self.text.get(..at).unwrap_or_default().matches('\n').count() + 1)
    }

    /// The line that a key of the outermost object stands in; of several the last, which counts.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        let member = self.root.as_ref()?.members.iter().rfind(|member| member.name == key)?;
        Some(place(self.text.get(..member.start)?).0)
    }

    fn find(&self, path: &[&str]) -> Result<Option<&Member>, Fault> {
        let Some((last, above)) = path.split_last() else { return Ok(None) };
        let mut object = self.root.as_ref();
        for key in above {
            let Some(at) = object else { return Ok(None) };
            object = self.member(at, key)?.and_then(|member| member.object.as_ref());
        }
        object.map_or(Ok(None), |at| self.member(at, last))
    }

    fn member<'o>(&self, object: &'o Object, key: &str) -> Result<Option<&'o Member>, Fault> {
        let mut named = object.members.iter().filter(|member| member.name == key);
        let first = named.next();
        match named.next() {
            None => Ok(first),
            Some(second) => {
                let (line, column) = place(&self.text[..second.start]);
                Err(Fault::Twice { key: key.to_owned(), line, column })
            }
        }
    }
}

impl From<&ast::Object<'_>> for Object {
    fn from(object: &ast::Object<'_>) -> Self {
        let members = object.properties.iter().map(Member::from).collect();
        Self { open: object.range.start, close: object.range.end - 1, members }
    }
}

impl From<&ast::ObjectProp<'_>> for Member {
    fn from(property: &ast::ObjectProp<'_>) -> Self {
        let range = jsonc_parser::common::Ranged::range(&property.value);
        let object = property.value.as_object().map(Object::from);
        let name = property.name.as_str().to_owned();
        Self { name, start: property.range.start, value: range.start..range.end, object }
    }
}

/// JSON with comments and trailing commas, and nothing else that is not JSON.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Line and column, from 1, of the end of this beginning of a text.
fn place(before: &str) -> (usize, usize) {
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The offset of a line and a byte column as `serde_json` gives them.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `serde_json`'s message without its own account of the place.
fn reason(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    whole.split_once(" at line ").map_or(whole.clone(), |(what, _)| what.to_owned())
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        Document::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_json_forbids_is_named_with_its_place() {
        for (text, start) in [
            ("{\n  \"a\": 1,\n  b: 2\n}", "line 3, column 3: "),
            ("{\"a\": 1 \"b\": 2}", "line 1, column 8: "),
            ("{\"a\": 'x'}", "line 1, column 7: "),
            ("{\"a\": \"x\ny\"}", "line 1, column 8: control character"),
            ("{\"a\": 0x1}", "line 1, column "),
            ("{\"a\": 1", "line 1, column "),
            ("{\"a\": 1}}", "line 1, column 9: "),
            ("{,}", "line 1, column 2: "),
            ("// only a comment", "line 1, column "),
            ("[1]", "line 1, column 1: a settings file holds one object"),
            ("\n  true", "line 2, column 3: a settings file"),
        ] {
            assert!(fault(text).starts_with(start), "{text:?}: {}", fault(text));
        }
        assert!(fault(&"[".repeat(100_000)).contains("depth"));
        assert_eq!(
            Document::parse(b"{\n\"a\": \"\xff\"}").unwrap_err().to_string(),
            "line 2, column 7: not UTF-8 text"
        );
    }

    #[test]
    fn values_are_found_under_comments_and_after_a_byte_order_mark() {
        let text = "\u{feff}{ /* a */ \"s\": { // b\n \"c\": \"x // y\", /* , */ },\n}";
        let document = Document::parse(text.as_bytes()).unwrap();
        assert_eq!(document.string(&["s", "c"]).unwrap().unwrap(), "x // y");
        assert_eq!(document.raw(&["s", "d"]).unwrap(), None);
        assert_eq!(document.raw(&["t", "d"]).unwrap(), None);
        assert!(!document.is_empty());
        assert_eq!(document.first_extra(), Some(1));
        assert_eq!(Document::parse(b"{\n\"a\": \"/*,}\",\n}").unwrap().first_extra(), Some(2));
        assert_eq!(Document::parse(b"{\"a\": \"//\"}").unwrap().first_extra(), None);
        assert!(Document::parse(b" \r\n").unwrap().is_empty());
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_and_other_twins_are_not_ours() {
        let document = Document::parse(b"{\"a\":1,\"s\":1,\n\"s\":2,\"a\":2}").unwrap();
        assert_eq!(
            document.raw(&["s"]).unwrap_err(),
            Fault::Twice { key: "s".to_owned(), line: 2, column: 1 }
        );
    }
}
