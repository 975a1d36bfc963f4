//! The handoff's part in each event: before a compaction the session is exported, and the model hears where.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Call;
use crate::base::span::stamp;
use crate::base::tokens::short;
use crate::gauge::gather::Taken;
use crate::handoff::automatic::{self, Newest, Wanted};
use crate::handoff::{Failed, Follow};
use crate::host::Host;
use crate::host::clock::{Deadline, sleep_ms};

/// How long the export may take before the compaction goes on without it, in ms. The client ends the hook
/// after 10 s (hooks.json); the two that are left are for the launcher, for reading the event (up to
/// 0.5 s), and for what follows the last look at the clock. The rest becomes a job.
const EXPORT_MS: u64 = 8_000;

/// The client writes its rows a moment after it has them. Measured on 2.1.332: at PreCompact the prompt that set the
/// compaction off, or the last tool's result, was not in the file; within 0.1 s it was, and then nothing came before
/// the summary but a note of modes. So the file has to have stood still for so long, in ms.
const SETTLED_MS: u64 = 250;
/// It is waited for no longer than this, in ms.
const SETTLING_MAX_MS: u64 = 1_000;

/// When the export before a compaction has to have come to its end.
pub(super) fn deadline(host: &Host) -> Deadline {
    #[cfg(feature = "testing")]
    if let Some(ms) = host.env("LONGHAUL_TEST_EXPORT_MS").and_then(|text| text.parse().ok()) {
        return Deadline::after_ms(ms);
    }
    let _ = host;
    Deadline::after_ms(EXPORT_MS)
}

struct Until(Deadline);

impl Follow for Until {
    fn at(&mut self, _share: u64) -> ControlFlow<()> {
        if self.0.passed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Exports the session. Whatever fails is silence outside and a line in the trace.
pub(super) fn before_compaction(call: &Call<'_>, taken: &Taken, deadline: Deadline) {
    let Some(store) = &call.store else { return };
    let stated = call.event.transcript_path.as_ref().map(PathBuf::from);
    let Some(transcript) = stated.filter(|path| path.is_absolute()) else { return };
    // Where no client runs, nobody writes.
    if call.host.has_env("CLAUDE_PID") {
        settle(&transcript);
    }
    let now_ms = call.host.now_ms();
    let wanted = Wanted {
        session: &call.session,
        transcript: &transcript,
        budget: taken.reading.wall.tokens / 4,
        now_ms,
    };
    match automatic::begin(store, &wanted, &mut Until(deadline)) {
        Ok(_) => {}
        Err(Failed::Stopped) => {
            store.trace(
                now_ms,
                "longhaul-hook",
                "the export before a compaction is left to be finished later",
            );
        }
        Err(error) => store.trace(now_ms, "longhaul-hook", &format!("before a compaction: {error}")),
    }
}

/// Waits until what the client still has in hand is in the file.
fn settle(transcript: &Path) {
    let length = || std::fs::metadata(transcript).map_or(0, |meta| meta.len());
    let longest = Deadline::after_ms(SETTLING_MAX_MS);
    let (mut last, mut quiet) = (length(), Deadline::after_ms(SETTLED_MS));
    while !quiet.passed() && !longest.passed() {
        sleep_ms(10);
        let now = length();
        if now != last {
            (last, quiet) = (now, Deadline::after_ms(SETTLED_MS));
        }
    }
}

/// Where the model finds what the compaction took.
pub(super) fn after_compaction(call: &Call<'_>) -> Option<String> {
    let newest = automatic::newest(call.store.as_ref()?, &call.session)?;
    let Newest { dir, due_ms, ready } = &newest;
    let lies = if *ready { "lies in" } else { "is still being written and will lie in" };
    let (files, tokens) = messages(&newest);
    let dropped = if dir.join("05-dropped-context.md").is_file() {
        ", 05-dropped-context.md what earlier compactions took"
    } else {
        ""
    };
    Some(format!(
        "An export of it as it stood at {} {lies} {}: 01-user-messages.md{files} holds every message of the \
         person word for word{tokens}{dropped}; 03-full-transcript.txt is for searching. Read 01 where the \
         summary leaves open what the person asked for.",
        stamp(*due_ms),
        dir.display()
    ))
}

/// How many files 01 is, and about how many tokens, where it is there.
fn messages(newest: &Newest) -> (String, String) {
    let Ok(entries) = std::fs::read_dir(&newest.dir) else { return Default::default() };
    let is_one = |name: &str| name.starts_with("01-user-messages");
    let sizes = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_one));
    let sizes: Vec<u64> = sizes.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).collect();
    let files = if sizes.len() > 1 { format!(" (and -2 to -{})", sizes.len()) } else { String::new() };
    // As plain words are reckoned.
    let tokens = sizes.iter().sum::<u64>() * 2 / 7;
    (files, format!(" (about {} tokens)", short(tokens)))
}
