//! What a reading child may do: read files of its export, and answer. Asked before every tool of that turn by a
//! hook of the turn's own, which outranks whatever the person's settings allow.

use std::path::{Component, Path};

use serde::Deserialize;
use serde_json::Value;

use crate::client::headless::{ANSWER, READ};
use crate::client::lenient::{maybe, name, object};
use crate::host::{lies_in, resolved};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    #[serde(deserialize_with = "name")]
    tool_name: Option<String>,
    #[serde(deserialize_with = "maybe")]
    tool_input: Option<Value>,
}

/// Why a tool must not run, as the model is told; `None` where it may.
pub fn refusal(event: &[u8], only: &Path) -> Option<String> {
    let asked: Asked = object(event).unwrap_or_default();
    let only_reading = || {
        format!(
            "this turn reads {} and answers; no other tool and no other place is open to it",
            only.display()
        )
    };
    match asked.tool_name.as_deref() {
        Some(ANSWER) => None,
        Some(READ) => {
            let file = asked.tool_input.as_ref().and_then(|input| input.get("file_path")?.as_str());
            let inside = |file: &str| {
                let path = Path::new(file);
                is_plain(file, path) && resolved(path) != resolved(only) && lies_in(path, only)
            };
            (!file.is_some_and(inside)).then(only_reading)
        }
        _ => Some(only_reading()),
    }
}

/// Whether a path says the same to everybody who reads it. `..` does not: the system goes back from where the
/// links lead, a program that reckons on the text from where the text stands; what an honest reader is told to
/// read has none.
fn is_plain(file: &str, path: &Path) -> bool {
    let back = path.components().any(|part| part == Component::ParentDir);
    path.is_absolute() && !back && !file.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(tool: &str, file: &str, only: &Path) -> bool {
        let event = json!({ "tool_name": tool, "tool_input": { "file_path": file } });
        refusal(event.to_string().as_bytes(), only).is_none()
    }

    #[test]
    fn only_files_of_the_export_may_be_read() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        let only = root.path().join("e");
        for dir in ["e", "e/sub", "e2"] {
            fs_err::create_dir(root.path().join(dir)).unwrap();
        }
        for file in ["e/1.md", "e/sub/2.md", "e2/3.md", "x"] {
            fs_err::write(root.path().join(file), "").unwrap();
        }
        for file in ["e/1.md", "e/sub/2.md", "e/none.md", "e/./1.md", "e//sub//2.md"] {
            assert!(asked("Read", &at(file), &only), "{file}");
        }
        for file in ["x", "e", "e/", "e/.", "e2/3.md", "e2/../e/1.md", "e/../x", "e/sub/../../x"] {
            assert!(!asked("Read", &at(file), &only), "{file}");
        }
        for file in ["1.md", "./1.md", "~/e/1.md", "", "/"] {
            assert!(!asked("Read", file, &only), "{file}");
        }
    }

    #[test]
    fn no_way_leads_back_out_through_what_is_no_directory() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        let only = root.path().join("e");
        fs_err::create_dir(&only).unwrap();
        for file in ["e/1.md", "x"] {
            fs_err::write(root.path().join(file), "").unwrap();
        }
        // The client reckons `..` on the text, where the system finds nothing to go back from.
        for file in ["e/none/../../x", "e/1.md/../../x", "e/1.md/..//../x", "e/none/../1.md", "e/a\0/../1.md"]
        {
            assert!(!asked("Read", &at(file), &only), "{file}");
        }
        for file in ["e/1.md\0", "e/1.md\n"] {
            assert!(!asked("Read", &at(file), &only), "{file:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_where_it_leads() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs_err::create_dir(at("e")).unwrap();
        fs_err::write(at("secret"), "").unwrap();
        fs_err::os::unix::fs::symlink(at("secret"), at("e/link.md")).unwrap();
        fs_err::os::unix::fs::symlink(at("e"), at("way")).unwrap();
        assert!(!asked("Read", at("e/link.md").to_str().unwrap(), &at("e")));
        assert!(!asked("Read", at("e/link.md/more").to_str().unwrap(), &at("e")));
        assert!(asked("Read", at("way/1.md").to_str().unwrap(), &at("e")), "another way in");
    }

    #[test]
    fn no_other_tool_runs_and_what_cannot_be_read_is_refused() {
        let only = Path::new("/e");
        for tool in ["Bash", "Write", "WebFetch", "mcp__x__read", "read", "Read ", ""] {
            assert!(!asked(tool, "/e/1.md", only), "{tool}");
        }
        assert!(asked("StructuredOutput", "", only));
        for odd in
            [&b"{"[..], b"", b"[]", b"{\"tool_name\":7}", b"{\"tool_name\":\"Read\",\"tool_input\":[]}"]
        {
            assert!(refusal(odd, only).is_some());
        }
    }
}
