//! The three changes: a key put in, a value replaced, a key taken out. A key that was put in and is taken
//! out again leaves the bytes as they were.

use std::ops::Range;

use serde::Serialize;

use super::trivia::{Kind, pieces};
use super::{BOM, Document, Fault, Member, Object};

impl Document {
    /// The text with a new key as the last one. Written over several lines where the object is, with its
    /// indentation; in one line where the object stands in one.
    pub fn insert<T: Serialize>(&self, key: &str, value: &T) -> Result<Vec<u8>, Fault> {
        self.insert_at(&[key], value)
    }

    /// The same under a path of keys; objects that are missing on the way are made. What is on the way and
    /// no object is a fault, as is a key that is there.
    pub fn insert_at<T: Serialize>(&self, path: &[&str], value: &T) -> Result<Vec<u8>, Fault> {
        let (Some((key, above)), None) = (path.split_last(), self.find(path)?) else {
            return Err(Fault::Unsafe);
        };
        if let Some(at) = self.first_missing(above)? {
            let object = serde_json::to_value(value).map_err(|_| Fault::Unsafe)?;
            let object = path[at + 1..].iter().rev().fold(object, |inner, key| {
                serde_json::Value::Object([((*key).to_owned(), inner)].into_iter().collect())
            });
            return self.insert_at(&path[..=at], &object);
        }
        let nl = newline(&self.text);
        let Some(root) = &self.root else {
            return self.finish(&format!("{{{nl}  {}{nl}}}{nl}", member(key, value, "  ", "  ", nl)), path);
        };
        let object = self.object(above)?.ok_or(Fault::Unsafe)?;
        let indent = Indent::of(self, root, object, above.len());
        let text = match object.members.last() {
            None => self.insert_first(object, key, value, &indent, nl),
            Some(last) => self.insert_after(object, last, key, value, &indent, nl),
        };
        self.finish(&text, path)
    }

    /// How many keys of a path lead somewhere; `None` where all do.
    fn first_missing(&self, path: &[&str]) -> Result<Option<usize>, Fault> {
        for at in 0..path.len() {
            if self.find(&path[..=at])?.is_none() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The object under a path of keys.
    fn object(&self, path: &[&str]) -> Result<Option<&Object>, Fault> {
        if path.is_empty() {
            return Ok(self.root.as_ref());
        }
        Ok(self.find(path)?.and_then(|member| member.object.as_ref()))
    }

    fn insert_first<T: Serialize>(
        &self,
        root: &Object,
        key: &str,
        value: &T,
        indent: &Indent,
        nl: &str,
    ) -> String {
        let body = root.open + 1..root.close;
        if let Some((kind, comment)) = pieces(&self.text, body.clone()).last() {
            let lines = *kind == Kind::LineComment || self.text[body].contains('\n');
            let added = separated(key, value, indent, nl, lines);
            splice(&self.text, &[(comment.end..comment.end, &added)])
        } else {
            let closing = if self.text[body.clone()].contains('\n') { "" } else { &indent.outer };
            let added = format!("{}{nl}{closing}", separated(key, value, indent, nl, true));
            splice(&self.text, &[(body.start..body.start, &added)])
        }
    }

    fn insert_after<T: Serialize>(
        &self,
        root: &Object,
        last: &Member,
        key: &str,
        value: &T,
        indent: &Indent,
        nl: &str,
    ) -> String {
        let end = last.value.end;
        let between = pieces(&self.text, end..root.close);
        let comma = between.iter().find(|(kind, _)| *kind == Kind::Comma).map(|(_, range)| range.end);
        // A comment behind the last value on its line is about that value, and stays beside it.
        let mut at = comma.unwrap_or(end);
        let mut lines = self.spans_lines(root);
        for (kind, range) in between.iter().filter(|(kind, _)| *kind != Kind::Comma) {
            if range.start < at {
                continue;
            }
            if self.text[at..range.start].contains('\n') {
                break;
            }
            at = range.end;
            lines |= *kind == Kind::LineComment;
        }
        let mut added = separated(key, value, indent, nl, lines);
        if comma.is_some() {
            added.push(',');
            splice(&self.text, &[(at..at, &added)])
        } else if at == end {
            splice(&self.text, &[(at..at, &format!(",{added}"))])
        } else {
            splice(&self.text, &[(end..end, ","), (at..at, &added)])
        }
    }

    /// The text with the value under a path replaced by this JSON text.
    pub fn replace(&self, path: &[&str], json: &str) -> Result<Vec<u8>, Fault> {
        let range = self.find(path)?.ok_or(Fault::Unsafe)?.value.clone();
        self.finish(&splice(&self.text, &[(range, json)]), path)
    }

    /// The text without a key; the same text where it is not there.
    pub fn remove(&self, key: &str) -> Result<Vec<u8>, Fault> {
        self.remove_at(&[key])
    }

    /// The same under a path of keys. The object that held it stays, though it be empty.
    pub fn remove_at(&self, path: &[&str]) -> Result<Vec<u8>, Fault> {
        let above = path.split_last().map_or(path, |(_, above)| above);
        let (Some(ours), Some(root)) = (self.find(path)?, self.object(above)?) else {
            return Ok(self.with_bom(&self.text));
        };
        let at = root.members.iter().position(|m| m.start == ours.start).unwrap_or(0);
        let before = if at == 0 { root.open + 1 } else { root.members[at - 1].value.end };
        let after = root.members.get(at + 1);
        let behind = ours.value.end..after.map_or(root.close, |next| next.start);
        let trailing = pieces(&self.text, behind.clone());

        let text = if let Some(next) = after
            && trailing.len() == 1
        {
            splice(&self.text, &[(ours.start..next.start, "")])
        } else {
            let comma = |list: &[(Kind, Range<usize>)]| {
                list.iter().find(|(kind, _)| *kind == Kind::Comma).map(|(_, range)| range.clone())
            };
            let leading = pieces(&self.text, before..ours.start);
            let gap = leading.last().map_or(before, |(_, range)| range.end);
            let follows = comma(&trailing);
            let mut whole = gap..ours.value.end;
            let rest = follows.as_ref().map_or(whole.end, |range| range.end);
            let mut kept = "";
            if leading.last().is_some_and(|(kind, _)| *kind == Kind::LineComment) {
                let next = self.text[rest..].trim_start_matches([' ', '\t']);
                let glued = follows.as_ref().is_some_and(|range| range.start != whole.end);
                if glued || !(next.starts_with('\n') || next.starts_with("\r\n")) {
                    kept = newline(&self.text);
                }
            } else if at == 0 && leading.is_empty() && follows.is_none() {
                // The line break that was added with the first key.
                let tail = &self.text[whole.end..];
                whole.end += if tail.starts_with("\r\n") { 2 } else { usize::from(tail.starts_with('\n')) };
            }
            let mut cuts = vec![(whole, kept)];
            match (follows, comma(&leading)) {
                (Some(range), _) => cuts.push((range, "")),
                (None, Some(range)) => cuts.insert(0, (range, "")),
                (None, None) => {}
            }
            splice(&self.text, &cuts)
        };
        self.finish(&text, path)
    }

    /// What stands before the first key of an object that begins a line.
    fn lead(&self, object: &Object) -> Option<String> {
        object.members.iter().find_map(|member| {
            let line = self.text[..member.start].rfind('\n')? + 1;
            let lead = &self.text[line..member.start];
            (line > object.open && lead.chars().all(|c| c == ' ' || c == '\t')).then(|| lead.to_owned())
        })
    }

    fn spans_lines(&self, root: &Object) -> bool {
        let mut from = root.open;
        root.members.iter().any(|member| {
            let gap = from..member.start;
            from = member.value.end;
            self.text[gap].contains('\n')
        })
    }

    /// The new text as bytes, after reading it back: beside the path every key with its own bytes, in order.
    fn finish(&self, text: &str, path: &[&str]) -> Result<Vec<u8>, Fault> {
        let now = Self::parse(text.as_bytes()).map_err(|_| Fault::Unsafe)?;
        if self.others(path) != now.others(path) {
            return Err(Fault::Unsafe);
        }
        Ok(self.with_bom(text))
    }

    fn others<'d>(&'d self, path: &[&str]) -> Vec<(&'d str, &'d str)> {
        let mut found = Vec::new();
        let mut object = self.root.as_ref();
        for key in path {
            let members = || object.iter().flat_map(|object| &object.members);
            let beside = members().filter(|m| m.name != *key);
            found.extend(beside.map(|m| (m.name.as_str(), &self.text[m.value.clone()])));
            object = members().find(|m| m.name == *key).and_then(|m| m.object.as_ref());
        }
        found
    }

    fn with_bom(&self, text: &str) -> Vec<u8> {
        let mark = if self.bom { BOM } else { "" };
        [mark.as_bytes(), text.as_bytes()].concat()
    }
}

/// How an object's keys are indented.
struct Indent {
    /// One level of the file.
    unit: String,
    /// Before each key of the object.
    inner: String,
    /// Before its closing brace.
    outer: String,
}

impl Indent {
    /// As the file has it; where it does not say, two blanks a level.
    fn of(document: &Document, root: &Object, object: &Object, depth: usize) -> Self {
        let unit = document.lead(root).unwrap_or_else(|| "  ".to_owned());
        let outer = unit.repeat(depth);
        let inner = document.lead(object).unwrap_or_else(|| format!("{outer}{unit}"));
        Self { unit, inner, outer }
    }
}

/// The line break the text uses.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn separated<T: Serialize>(key: &str, value: &T, indent: &Indent, nl: &str, lines: bool) -> String {
    if lines {
        let Indent { unit, inner, .. } = indent;
        format!("{nl}{inner}{}", member(key, value, inner, unit, nl))
    } else {
        let json = serde_json::to_string(value).unwrap_or_default();
        format!(" {}: {json}", serde_json::Value::from(key))
    }
}

/// `"key": value` over several lines, its first line already indented by `base`.
fn member<T: Serialize>(key: &str, value: &T, base: &str, unit: &str, nl: &str) -> String {
    let mut out = Vec::new();
    let style = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, style));
    // A value that cannot be written leaves half a text, which reading it back refuses.
    let json = if written.is_ok() { String::from_utf8(out).unwrap_or_default() } else { String::new() };
    let json = json.replace('\n', &format!("{nl}{base}"));
    format!("{}: {json}", serde_json::Value::from(key))
}

/// The text with each range replaced; the ranges come in order and do not overlap.
fn splice(text: &str, changes: &[(Range<usize>, &str)]) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut from = 0;
    for (range, new) in changes {
        out.push_str(&text[from..range.start]);
        out.push_str(new);
        from = range.end;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str) -> String {
        let value = serde_json::json!({"a": 1});
        String::from_utf8(Document::parse(text.as_bytes()).unwrap().insert("s", &value).unwrap()).unwrap()
    }

    fn out(text: &str) -> String {
        String::from_utf8(Document::parse(text.as_bytes()).unwrap().remove("s").unwrap()).unwrap()
    }

    #[test]
    fn a_key_is_written_the_way_the_file_is() {
        for (before, after) in [
            ("", "{\n  \"s\": {\n    \"a\": 1\n  }\n}\n"),
            ("{}", "{\n  \"s\": {\n    \"a\": 1\n  }\n}"),
            ("{\"x\":1}", "{\"x\":1, \"s\": {\"a\":1}}"),
            ("{\n\t\"x\": 1\n}\n", "{\n\t\"x\": 1,\n\t\"s\": {\n\t\t\"a\": 1\n\t}\n}\n"),
            ("{\r\n \"x\": 1\r\n}", "{\r\n \"x\": 1,\r\n \"s\": {\r\n  \"a\": 1\r\n }\r\n}"),
            ("{\n  \"x\": 1, // one\n}", "{\n  \"x\": 1, // one\n  \"s\": {\n    \"a\": 1\n  },\n}"),
            ("{\n  \"x\": 1 // one\n}", "{\n  \"x\": 1, // one\n  \"s\": {\n    \"a\": 1\n  }\n}"),
        ] {
            assert_eq!(put(before), after);
        }
    }

    #[test]
    fn a_key_of_an_object_within_is_put_in_and_taken_out_again() {
        for (before, after) in [
            ("", "{\n  \"e\": {\n    \"k\": \"1\"\n  }\n}\n"),
            ("{\"x\":1}", "{\"x\":1, \"e\": {\"k\":\"1\"}}"),
            ("{\"e\":{}}", "{\"e\":{\n    \"k\": \"1\"\n  }}"),
            ("{\"e\":{\"a\":\"b\"}}", "{\"e\":{\"a\":\"b\", \"k\": \"1\"}}"),
            (
                "{\n\t\"e\": {\n\t\t\"a\": \"b\" // c\n\t},\n\t\"x\": 1\n}\n",
                "{\n\t\"e\": {\n\t\t\"a\": \"b\", // c\n\t\t\"k\": \"1\"\n\t},\n\t\"x\": 1\n}\n",
            ),
            ("{\r\n \"e\": {\r\n }\r\n}", "{\r\n \"e\": {\r\n  \"k\": \"1\"\r\n\r\n }\r\n}"),
        ] {
            let document = Document::parse(before.as_bytes()).unwrap();
            let with = document.insert_at(&["e", "k"], &"1").unwrap();
            assert_eq!(String::from_utf8(with.clone()).unwrap(), after);
            let whole = if before.contains("\"e\"") { &["e", "k"][..] } else { &["e"] };
            let without = Document::parse(&with).unwrap().remove_at(whole).unwrap();
            let left: serde_json::Value =
                serde_json::from_str(&super::super::trivia::blanked(std::str::from_utf8(&without).unwrap()))
                    .unwrap();
            assert!(left["e"]["k"].is_null(), "{left}");
        }
        let odd = Document::parse(b"{\"e\": [1]}").unwrap();
        assert_eq!(odd.insert_at(&["e", "k"], &1), Err(Fault::Unsafe));
    }

    #[test]
    fn a_key_is_taken_out_wherever_a_person_moved_it() {
        for (before, after) in [
            ("{\"s\": 1, \"x\": 2}", "{\"x\": 2}"),
            ("{\n  \"s\": 1,\n  \"x\": 2\n}", "{\n  \"x\": 2\n}"),
            ("{\n  \"x\": 2,\n  \"s\": 1,\n  \"y\": 3\n}", "{\n  \"x\": 2,\n  \"y\": 3\n}"),
            ("{\n  \"x\": 2,\n\n  \"s\": 1\n}", "{\n  \"x\": 2\n}"),
            ("{\n  \"x\": 2, // two\n  \"s\": 1, \"y\": 3\n}", "{\n  \"x\": 2, // two\n  \"y\": 3\n}"),
            ("{ // a\n  \"s\": 1}", "{ // a\n}"),
            ("{\"x\": 1}", "{\"x\": 1}"),
            ("", ""),
        ] {
            assert_eq!(out(before), after);
        }
    }
}
