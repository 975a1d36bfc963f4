//! The words of the generations before: from their own exports; where one is gone, from what its child was given
//! when it read it, which stands in the child's transcript; else from what later generations took over.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::parts::{MARK, Parts};
use super::redact::Redactor;
use super::render::shown;
use crate::base::id::SessionId;
use crate::client::projects;
use crate::client::transcript::acts::{Act, Acts, Returned};
use crate::host::files;
use crate::store::Store;
use crate::store::chains::Entry;
use crate::store::exports::Draft;

/// Largest part that is taken over, in bytes.
const PART_MOST: u64 = 1 << 20;

/// A child reads before anything else: its reading stands in these first bytes of its transcript.
const READING_MOST: u64 = 64 << 20;

/// A generation before.
#[derive(Debug, Clone, Default)]
pub struct Ancestor {
    /// Its export, which may be gone.
    pub export: PathBuf,
    /// The transcript of the session that read that, where there is one.
    pub reader: Option<PathBuf>,
}

impl Ancestor {
    /// The parent of a handoff. Only what lies in the usual place is an export.
    pub fn of(store: &Store, entry: &Entry) -> Self {
        let child = entry.child.as_ref().and_then(|child| SessionId::parse(&child.session));
        Self {
            export: store.export_dir(&entry.id).unwrap_or_else(|| store.dir().join("none")),
            reader: child.and_then(|child| projects::transcript(store.config(), &child)),
        }
    }

    /// Its brief, where there was one, and what the person said; `None` where nobody has that. Of an export that is
    /// there nothing is looked for elsewhere: the transcript of its child may be the longest of all.
    fn own(&self) -> Option<Vec<String>> {
        let own = |part: &dyn Fn(&str) -> Option<String>| {
            let said = joined("01-user-messages", part)?;
            Some(joined("00-brief", part).into_iter().chain([said]).collect())
        };
        own(&|file| self.in_export(file)).or_else(|| {
            let read = self.read();
            own(&|file| read.get(file).cloned())
        })
    }

    /// The text of a kind of parts, without marks; `None` where nobody has it.
    fn text(&self, stem: &str) -> Option<String> {
        joined(stem, &|file| self.in_export(file)).or_else(|| {
            let read = self.read();
            joined(stem, &|file| read.get(file).cloned())
        })
    }

    fn in_export(&self, file: &str) -> Option<String> {
        let bytes = files::read_small(&self.export.join(file), PART_MOST).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What its child was given, by file.
    fn read(&self) -> BTreeMap<String, String> {
        let Some(reader) = &self.reader else { return BTreeMap::new() };
        let mut found: BTreeMap<String, Pieces> = BTreeMap::new();
        // What cannot be read tells nothing.
        let _ = Acts::within(READING_MOST).since(reader, &mut |act| {
            if let Act::Returned(returned) = act
                && let Some(file) = self.file_of(&returned.path)
            {
                found.entry(file).or_default().add(&returned);
            }
        });
        found.into_iter().filter_map(|(file, pieces)| Some((file, pieces.whole()?))).collect()
    }

    /// The file of the export that a path names; its name alone counts, links may lead to it.
    fn file_of(&self, path: &Path) -> Option<String> {
        let same = path.parent()?.file_name()? == self.export.file_name()?;
        same.then(|| path.file_name()?.to_str().map(str::to_owned)).flatten()
    }
}

/// What of a file was returned.
#[derive(Default)]
struct Pieces {
    lines: BTreeMap<u64, String>,
    all: u64,
}

impl Pieces {
    fn add(&mut self, returned: &Returned) {
        self.all = returned.lines;
        let lines = (returned.first..).zip(returned.content.split('\n').map(str::to_owned));
        self.lines.extend(lines);
    }

    fn whole(self) -> Option<String> {
        let whole = (1..=self.all).all(|number| self.lines.contains_key(&number));
        whole.then(|| self.lines.into_values().collect::<Vec<_>>().join("\n"))
    }
}

/// Parts that stand one behind the other, joined and without their marks; `None` where there is not even a first.
fn joined(stem: &str, part: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut whole = part(&format!("{stem}.md"))?;
    for k in 2.. {
        let Some(next) = part(&format!("{stem}-{k}.md")) else { break };
        whole.push_str(&next);
    }
    Some(without_marks(&whole))
}

/// The words of generation `n`, from 0: its brief and its messages.
pub fn words<'a>(
    draft: &'a Draft,
    n: usize,
    ancestors: &[Ancestor],
    redactor: &mut Redactor,
) -> io::Result<(String, Parts<'a>)> {
    let name = format!("01-gen-{}", n + 1);
    let title = format!("# Generation {}: its brief and what the person said\n\n", n + 1);
    let mut parts = Parts::new(draft, &name, &title);
    let (own, later) = (&ancestors[n], &ancestors[n + 1..]);
    let texts = if let Some(texts) = own.own() {
        texts
    } else if let Some(text) = later.iter().find_map(|heir| heir.text(&name)) {
        vec![text.strip_prefix(&*title).map_or(text.clone(), str::to_owned)]
    } else {
        let gone = format!("Its export {} is gone, and nobody else has its words.\n", own.export.display());
        own.text("00-brief").into_iter().chain([gone]).collect()
    };
    for text in texts {
        parts.quoted(&shown(text, redactor))?;
    }
    Ok((name, parts))
}

/// The text of parts without their marks; lines that were interrupted are whole again.
fn without_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if !line.starts_with(MARK) {
            out.push_str(line);
        } else if line.trim_end().ends_with("; the line goes on]]") && out.ends_with('\n') {
            out.pop();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The rows of a Read call and of what it returned.
    fn read(id: &str, path: &str, content: &str, first: u64, lines: u64) -> String {
        let call = json!({ "type": "tool_use", "id": id, "name": "Read", "input": {} });
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "x" });
        let file = json!({ "filePath": path, "content": content, "startLine": first, "totalLines": lines });
        let call = json!({ "type": "assistant", "message": { "content": [call] } });
        let result =
            json!({ "type": "user", "message": { "content": [result] }, "toolUseResult": { "file": file } });
        format!("{call}\n{result}\n")
    }

    #[test]
    fn an_interrupted_line_is_whole_again_without_its_marks() {
        let text = format!("one\n{MARK} aaa]]\ntwo\n{MARK} bbb; the line goes on]]\nthree\n{MARK} ccc]]\n");
        assert_eq!(without_marks(&text), "one\ntwothree\n");
    }

    #[test]
    fn what_a_child_was_given_stands_in_for_an_export_that_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let reader = root.path().join("child.jsonl");
        let rows = [
            read("a", "/h/e1/01-user-messages.md", "two\n", 2, 3),
            read("b", "/h/e1/01-user-messages-2.md", "three\n", 1, 2),
            read("c", "/h/e1/01-user-messages.md", "one", 1, 3),
            read("d", "/h/e1/00-brief.md", "half", 1, 2),
            read("e", "/h/e2/00-brief.md", "another's", 1, 1),
        ];
        fs_err::write(&reader, rows.concat()).unwrap();
        let gone = Ancestor { export: root.path().join("e1"), reader: Some(reader) };
        assert_eq!(gone.own().unwrap(), ["one\ntwo\nthree\n"], "of the brief not all was given");
        assert_eq!(gone.text("01-gen-1"), None);
        fs_err::create_dir(&gone.export).unwrap();
        fs_err::write(gone.export.join("01-user-messages.md"), "its own\n").unwrap();
        assert_eq!(gone.own().unwrap(), ["its own\n"], "what is there counts");
        let nobody = Ancestor { export: root.path().join("e3"), reader: None };
        assert_eq!(nobody.own(), None);
    }
    /// The child's transcript is that of the session that is exported: near its end it is long.
    #[test]
    fn an_export_without_a_brief_is_not_completed_from_its_childs_transcript() {
        let root = tempfile::tempdir().unwrap();
        let export = root.path().join("e1");
        fs_err::create_dir(&export).unwrap();
        fs_err::write(export.join("01-user-messages.md"), "its own\n").unwrap();
        let reader = root.path().join("child.jsonl");
        fs_err::write(&reader, read("a", "/h/e1/00-brief.md", "of somebody else\n", 1, 2)).unwrap();
        let there = Ancestor { export, reader: Some(reader) };
        assert_eq!(there.own().unwrap(), ["its own\n"]);
    }
}
