//! Beats: what each session did last, as small files under `<run>/beats/<session-id>/`.
//!
//! `main` is the session itself, `tool-<id>` an open tool call, `agent-<id>` a running subagent, `ended` stands
//! beside `main` once the session has ended. Each is replaced whole, so that parallel hooks never block each
//! other, and nothing is synced to the disk: after a crash of the machine no session runs.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{RunDir, Store, atomic};
use crate::base::id::{SessionId, digest, is_plain};
use crate::base::text::{clean, fit};
use crate::host::{Host, files};

mod phase;

pub use phase::Phase;

/// Version of the layout.
pub const VERSION: u32 = 1;
/// A file larger than this is not ours, in bytes.
const MOST: u64 = 64 << 10;
/// So many open tools and subagents of a session are read; more are not seen.
const STRANDS: usize = 512;
/// Details are cut to this many cells.
const DETAIL: usize = 160;

const MAIN: &str = "main";
const ENDED: &str = "ended";
const TOOL: &str = "tool-";
const AGENT: &str = "agent-";

/// How a session is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// In a terminal.
    Interactive,
    /// In the background, by the client's supervisor.
    Bg,
    /// For one answer, or by a program.
    Headless,
}

/// What a session did last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beat {
    /// Version of the layout.
    pub v: u32,
    /// The session.
    pub session: String,
    /// The client's process.
    pub pid: Option<u32>,
    /// When that was started, as the system counts it.
    pub proc_start: Option<String>,
    /// The boot of the machine.
    pub boot: Option<String>,
    /// Which numbering `pid` is of, in a container another one.
    pub pid_space: Option<String>,
    /// The directory the session was started in.
    pub project: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its transcript.
    pub transcript: Option<String>,
    /// How it is run.
    pub kind: Option<Kind>,
    /// Of a background session: its job.
    pub job: Option<String>,
    /// What it does.
    pub phase: Phase,
    /// Since when, epoch seconds.
    pub since: i64,
    /// When it beat, epoch seconds.
    pub at: i64,
    /// The same on the clock that stands still while the machine sleeps, in ms.
    pub mono_ms: i64,
    /// What the phase is about: the question, the command, why the session ended.
    pub detail: Option<String>,
    /// How long the tool of the phase may take, in seconds; `None` where nobody says.
    pub allowed_s: Option<u64>,
    /// The turn, as the client numbers it.
    pub prompt: Option<String>,
    /// The session's title, once it has one.
    pub name: Option<String>,
    /// When the client's supervisor last started it again after a crash, epoch seconds.
    pub restarted: Option<i64>,
}

impl Beat {
    /// Whether that is of this process.
    pub fn is_of(&self, pid: Option<u32>, start: Option<&str>) -> bool {
        self.pid == pid && self.proc_start.as_deref() == start
    }
}

/// An open tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// Version of the layout.
    pub v: u32,
    /// The call's id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The subagent that called it.
    pub agent: Option<String>,
    /// The turn it belongs to.
    pub prompt: Option<String>,
    /// When it was called, epoch seconds.
    pub at: i64,
    /// The same on the clock that stands still while the machine sleeps, in ms.
    pub mono_ms: i64,
    /// How long it may take, in seconds; `None` where nobody says.
    pub allowed_s: Option<u64>,
    /// What it does.
    pub detail: Option<String>,
}

/// A running subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// Version of the layout.
    pub v: u32,
    /// Its id.
    pub agent: String,
    /// Which kind of subagent.
    pub kind: Option<String>,
    /// What it does.
    pub phase: Phase,
    /// Since when, epoch seconds.
    pub since: i64,
    /// When it beat, epoch seconds.
    pub at: i64,
    /// The same on the clock that stands still while the machine sleeps, in ms.
    pub mono_ms: i64,
    /// What the phase is about.
    pub detail: Option<String>,
}

/// All that is known of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beats {
    /// The session itself; with an end, that of the session.
    pub main: Option<Beat>,
    /// Its open tools.
    pub tools: Vec<Tool>,
    /// Its running subagents.
    pub agents: Vec<Agent>,
}

/// Where the beats of all sessions lie.
#[derive(Debug, Clone)]
pub struct Place {
    dir: PathBuf,
}

impl Store {
    /// Where beats lie, for a reader; `None` where none was ever left.
    pub fn beats(&self) -> io::Result<Option<Place>> {
        Ok(match self.run_dir()? {
            RunDir::None => None,
            RunDir::At(run) => Some(Place::within(&run)),
        })
    }

    /// Leaves beats by `write`: where the run directory turns out not to take any, in another one.
    pub fn leave_beats(
        &self,
        host: &Host,
        untrusted: &[&Path],
        write: impl Fn(&Place) -> io::Result<()>,
    ) -> Option<()> {
        let run = self.make_run_dir(host, untrusted)?;
        if write(&Place::within(&run)).is_ok() {
            return Some(());
        }
        let other = self.move_run_dir(host, untrusted, &run)?;
        write(&Place::within(&other)).ok()
    }
}

/// A text for people as it is kept.
pub fn detail(text: &str) -> Option<String> {
    let text = clean(&text.replace(['\n', '\t'], " "));
    let text = fit(text.trim(), DETAIL);
    (!text.is_empty()).then_some(text)
}

/// A file's name for an id that comes from input.
fn name_of(prefix: &str, id: &str) -> String {
    if is_plain(id) { format!("{prefix}{id}") } else { format!("{prefix}={:016x}", digest(&[id.as_bytes()])) }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&files::read_small(path, MOST).ok()?).ok()
}

impl Place {
    fn within(run: &Path) -> Self {
        Self { dir: run.join("beats") }
    }

    /// A number that changes when a session leaves its first beat, or its last one is taken away.
    pub fn version(&self) -> u64 {
        files::version(&self.dir)
    }

    fn of(&self, session: &SessionId) -> PathBuf {
        self.dir.join(session.as_str())
    }

    /// What the session did last, and whether it has ended since: an event that was on its way when it ended
    /// may have written after it.
    pub fn main(&self, session: &SessionId) -> Option<Beat> {
        let dir = self.of(session);
        Self::ended_or(&dir, read(&dir.join(MAIN)))
    }

    fn ended_or(dir: &Path, main: Option<Beat>) -> Option<Beat> {
        let main = main.filter(|beat| beat.v == VERSION)?;
        if main.phase == Phase::Ended {
            return Some(main);
        }
        let ended = read(&dir.join(ENDED))
            .filter(|ended: &Beat| ended.v == VERSION && ended.is_of(main.pid, main.proc_start.as_deref()));
        Some(ended.unwrap_or(main))
    }

    /// All that is known of a session.
    pub fn session(&self, session: &SessionId) -> Beats {
        let dir = self.of(session);
        let main = read::<Beat>(&dir.join(MAIN)).filter(|beat| beat.v == VERSION);
        let mut beats = Beats { main, ..Beats::default() };
        if beats.main.as_ref().is_some_and(|main| main.phase == Phase::Ended) {
            return beats;
        }
        let Ok(entries) = std::fs::read_dir(&dir) else { return beats };
        for entry in entries.flatten().take(STRANDS) {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name == ENDED {
                beats.main = Self::ended_or(&dir, beats.main.take());
            } else if name.starts_with(TOOL) {
                beats.tools.extend(read(&dir.join(name)).filter(|tool: &Tool| tool.v == VERSION));
            } else if name.starts_with(AGENT) {
                beats.agents.extend(read(&dir.join(name)).filter(|agent: &Agent| agent.v == VERSION));
            }
        }
        beats
    }

    /// The open tools of a session.
    pub fn tools(&self, session: &SessionId) -> Vec<Tool> {
        self.session(session).tools
    }

    fn put(&self, session: &SessionId, name: &str, value: &impl Serialize) -> io::Result<()> {
        let dir = self.of(session);
        let bytes = serde_json::to_vec(value)?;
        match atomic::replace_often(&dir.join(name), &bytes) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                atomic::make_private(&self.dir)?;
                atomic::make_private(&dir)?;
                atomic::replace_often(&dir.join(name), &bytes)
            }
            done => done,
        }
    }

    /// Replaces what the session did last.
    pub fn put_main(&self, session: &SessionId, beat: &Beat) -> io::Result<()> {
        self.put(session, MAIN, beat)
    }

    /// A tool was called.
    pub fn put_tool(&self, session: &SessionId, tool: &Tool) -> io::Result<()> {
        self.put(session, &name_of(TOOL, &tool.id), tool)
    }

    /// A tool call is over.
    pub fn close_tool(&self, session: &SessionId, id: &str) {
        let _ = std::fs::remove_file(self.of(session).join(name_of(TOOL, id)));
    }

    /// Replaces what a subagent did last.
    pub fn put_agent(&self, session: &SessionId, agent: &Agent) -> io::Result<()> {
        self.put(session, &name_of(AGENT, &agent.agent), agent)
    }

    /// What a subagent did last.
    pub fn agent(&self, session: &SessionId, id: &str) -> Option<Agent> {
        read(&self.of(session).join(name_of(AGENT, id))).filter(|agent: &Agent| agent.v == VERSION)
    }

    /// A subagent is done.
    pub fn close_agent(&self, session: &SessionId, id: &str) {
        let _ = std::fs::remove_file(self.of(session).join(name_of(AGENT, id)));
    }

    /// A session starts in a process: what an earlier one left of it is taken away.
    pub fn start(&self, session: &SessionId, beat: &Beat) -> io::Result<()> {
        self.clear_strands(session, true);
        self.put_main(session, beat)
    }

    /// A session ends.
    pub fn end(&self, session: &SessionId, beat: &Beat) -> io::Result<()> {
        self.put(session, ENDED, beat)?;
        self.put_main(session, beat)?;
        self.clear_strands(session, false);
        Ok(())
    }

    /// Takes away tools and subagents, and with `end` what says that the session has ended.
    fn clear_strands(&self, session: &SessionId, end: bool) {
        let Ok(entries) = std::fs::read_dir(self.of(session)) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let goes = name.to_str().is_some_and(|name| {
                name.starts_with(TOOL) || name.starts_with(AGENT) || (end && name == ENDED)
            });
            if goes {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Takes away all that is known of a session.
    pub fn forget(&self, session: &SessionId) {
        let _ = std::fs::remove_dir_all(self.of(session));
    }

    /// Hands over every session with the time of its last beat (epoch ms), one by one, as long as `each` wants
    /// more. An error where they cannot be listed.
    pub fn each_session(&self, mut each: impl FnMut(SessionId, i64) -> bool) -> io::Result<()> {
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(io::Error::other(format!("could not list {}: {e}", self.dir.display()))),
        };
        for entry in entries.flatten() {
            let id = entry.file_name().to_str().and_then(SessionId::parse);
            // Files come and go in it with every beat.
            let touched =
                entry.metadata().ok().filter(Metadata::is_dir).and_then(|meta| meta.modified().ok());
            if let Some((id, touched)) = id.zip(touched)
                && !each(id, crate::host::clock::epoch_ms(touched))
            {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
