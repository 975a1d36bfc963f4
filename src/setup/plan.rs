//! What will be written about the `statusLine` key, made without writing.

use anyhow::{Context as _, Result};

use super::command;
use super::decide::{Ask, Decision, Drawer, Facts, Now, Why, decide};
use super::file::File;
use super::report::{self, Settings};
use super::wire::SCRIPT_MOST;
use crate::client::edit::Document;
use crate::client::wiring::{KEY, Setting, WRAPPER, user_settings};
use crate::host::files;
use crate::store::Store;
use crate::store::setup::{Record, Wiring};

/// What will be written, made without writing.
#[derive(Debug)]
pub struct Plan {
    pub(super) file: File,
    pub(super) decision: Decision,
    /// The file's new bytes, where it changes.
    pub(super) new: Option<Vec<u8>>,
    pub(super) command: String,
    /// The JSON text of the command that is to be wrapped, or was.
    pub(super) previous: Option<String>,
    /// The wrapper script, where one is wanted.
    pub(super) script: Option<String>,
}

/// Reads the settings and decides.
pub fn plan(
    store: &Store,
    ask: Ask,
    drawer: Drawer,
    record: &Record,
    warnings: &mut Vec<String>,
) -> Result<Plan> {
    let named = user_settings(store.config());
    let ours = command::ours(store)?;
    let known = record.settings.as_ref().filter(|wiring| wiring.path == named);
    if ask == Ask::Leave {
        let file = File { real: named.clone(), named, bytes: None };
        let decision = Decision::Keep(Why::Asked);
        return Ok(Plan { file, decision, new: None, command: ours, previous: None, script: None });
    }
    let file = File::read(&named)?;
    let document = parse(&file)?;
    let fault = |fault| faulty(&file, &fault);
    let now = now(&document).map_err(fault)?;
    let facts = Facts {
        ask,
        drawer,
        now,
        ours: &ours,
        program: &command::our_program(store)?,
        wired_before: known.is_some_and(|wiring| !wiring.command.is_empty()),
        declined: record.declined,
        wrapper_lost: lost(store, known),
    };
    let decision = decide(&facts);
    let path = [KEY, "command"];
    let mut previous = known.and_then(|wiring| wiring.previous.clone());
    let mut script = None;
    let mut written = ours.clone();
    let new = match decision {
        Decision::Keep(Why::Wrapped) => {
            // Ours to keep whole: the script may be gone, or of an older version.
            if document.string(&path).map_err(fault)? == Some(command::wrapped(store)?) {
                script = previous.as_deref().map(|json| wrapper(store, json)).transpose()?;
                if facts.wrapper_lost {
                    warnings.push(format!(
                        "{} is gone, and with it the command it wrapped: `longhaul setup --statusline` draws \
                         longhaul's alone",
                        store.dir().join(WRAPPER).display()
                    ));
                }
            }
            None
        }
        Decision::Keep(_) => None,
        Decision::Insert => Some(document.insert(KEY, &Setting::new(written.clone())).map_err(fault)?),
        Decision::Replace => {
            let json = serde_json::to_string(&Setting::new(written.clone()))?;
            Some(document.replace(&[KEY], &json).map_err(fault)?)
        }
        Decision::Update => Some(document.replace(&path, &serde_json::to_string(&written)?).map_err(fault)?),
        Decision::Wrap => {
            let theirs = document.raw(&path).map_err(fault)?.unwrap_or_default().to_owned();
            written = command::wrapped(store)?;
            script = Some(wrapper(store, &theirs)?);
            previous = Some(theirs);
            Some(document.replace(&path, &serde_json::to_string(&written)?).map_err(fault)?)
        }
    };
    if new.is_some() {
        file.check_writable()?;
    }
    warnings.extend(doubts(&file, &document, decision));
    Ok(Plan { file, decision, new, command: written, previous, script })
}

/// A settings file as a document; its fault names file and place.
pub fn parse(file: &File) -> Result<Document> {
    Document::parse(file.bytes.as_deref().unwrap_or_default()).map_err(|fault| faulty(file, &fault))
}

/// An editing fault with the file's name and what to do.
pub fn faulty(file: &File, fault: &crate::client::edit::Fault) -> anyhow::Error {
    anyhow::anyhow!(
        "could not edit {}: {fault}; nothing was written, mend it and run setup again",
        file.named.display()
    )
}

fn now(document: &Document) -> Result<Now, crate::client::edit::Fault> {
    Ok(match document.raw(&[KEY])? {
        None => Now::Absent,
        Some("null") => Now::Null,
        Some(_) => document.string(&[KEY, "command"])?.map_or(Now::Other, Now::Command),
    })
}

/// Whether our wrapper script is gone and cannot be written again.
fn lost(store: &Store, known: Option<&Wiring>) -> bool {
    known.is_none_or(|wiring| wiring.previous.is_none()) && !store.dir().join(WRAPPER).is_file()
}

fn wrapper(store: &Store, theirs: &str) -> Result<String> {
    let theirs: String = serde_json::from_str(theirs).context("could not read the command to be wrapped")?;
    command::wrapper_script(store, &theirs)
}

/// What keeps a status line from being drawn though the key is there.
fn doubts(file: &File, document: &Document, decision: Decision) -> Vec<String> {
    let mut found = Vec::new();
    let name = file.named.display();
    if let Some(line) = document.first_extra() {
        found.push(format!(
            "{name}, line {line}: a comment or a trailing comma; Claude Code skips a settings file that has one"
        ));
    }
    let drawn = !matches!(decision, Decision::Keep(why) if !matches!(why, Why::Current | Why::Wrapped));
    if drawn && document.raw(&["disableAllHooks"]).is_ok_and(|raw| raw == Some("true")) {
        found.push(format!("{name} sets disableAllHooks: Claude Code then draws no status line"));
    }
    found
}

impl Plan {
    /// What would be done, with the diff of every file that a person has or would get.
    pub fn preview(&self, store: &Store) -> Settings {
        let script = store.dir().join(WRAPPER);
        let there = files::read_small(&script, SCRIPT_MOST).ok();
        let wrapper = self
            .script
            .as_deref()
            .filter(|new| there.as_deref() != Some(new.as_bytes()))
            .map(|new| report::diff(&script, there.as_deref(), Some(new.as_bytes())));
        let diff = self.new.as_deref().map(|new| self.diff(new));
        let diff = diff.into_iter().chain(wrapper).reduce(|all, one| all + &one);
        Settings { diff, ..self.outcome(None) }
    }

    pub(super) fn diff(&self, new: &[u8]) -> String {
        report::diff(&self.file.named, self.file.bytes.as_deref(), Some(new))
    }

    pub(super) fn outcome(&self, backup: Option<std::path::PathBuf>) -> Settings {
        let (action, reason) = match self.decision {
            Decision::Insert => ("added", "the status line is drawn by longhaul"),
            Decision::Replace => ("updated", "the status line is drawn by longhaul"),
            Decision::Update => ("updated", "the command of an older longhaul now leads to this one"),
            Decision::Wrap => {
                ("wrapped", "the status line that was there is drawn first, longhaul's below it")
            }
            Decision::Keep(why) => keep(why),
        };
        Settings { path: self.file.named.clone(), action, reason: reason.to_owned(), backup, diff: None }
    }
}

fn keep(why: Why) -> (&'static str, &'static str) {
    match why {
        Why::Current => ("unchanged", "the status line is longhaul's already"),
        Why::Wrapped => ("unchanged", "the status line runs longhaul beside another command"),
        Why::Foreign => (
            "kept",
            "the status line is somebody else's and stays; in Claude Code 2.1.332 or later the plugin draws its row \
             below it, elsewhere `longhaul setup --wrap-statusline` draws both",
        ),
        Why::Removed => (
            "kept",
            "longhaul's status line was taken out or declined and stays away; `longhaul setup --statusline` puts it in",
        ),
        Why::ModDraws => (
            "kept",
            "sessions that load the plugin show the gauge with no setting; `longhaul setup --statusline` puts the \
             command in for all others",
        ),
        Why::UnknownClient => {
            ("kept", "the client's version is not known; `longhaul setup --statusline` puts the command in")
        }
        Why::Asked => ("kept", "no status line was wanted; `longhaul setup --statusline` puts it in"),
        Why::NothingToWrap => ("kept", "the status line setting holds no command that could be wrapped"),
    }
}
