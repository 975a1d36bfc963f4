//! The gauge's part in each event.

use std::path::PathBuf;

use super::Call;
use crate::base::shell::word;
use crate::base::tokens::{at_least, short};
use crate::client::event::Kind;
use crate::client::reply::Reply;
use crate::gauge::gather::{Occasion, Subject, Taken, learn, take};
use crate::gauge::notice::{Moment, Say, Standing, State, decide, may_repeat};
use crate::gauge::weight::{GATE, Urgency};
use crate::gauge::wording::{self, Way};
use crate::store::Store;
use crate::store::session::Slot;

/// How long a transcript is caught up with in one event, in ms.
const BUDGET_MS: u64 = 400;
/// At a session's end all hooks together have 1.5 s.
const END_BUDGET_MS: u64 = 200;
/// A session start looks at this many old records at most.
const PRUNE: usize = 500;

/// From this many tokens on, what resuming costs is worth a word when the cache has gone.
const COSTLY: u64 = 100_000;

impl Call<'_> {
    /// Takes a reading, and keeps what it teaches.
    fn observe(&self, used_at_start: Option<u64>, budget_ms: u64) -> Taken {
        let transcript = self.event.transcript_path.as_ref().map(PathBuf::from);
        let subject = Subject {
            session: Some(self.session.clone()),
            transcript: transcript.filter(|path| path.is_absolute()),
            project: self.project.clone(),
            model: self.event.model.clone().filter(|model| !model.is_empty()),
            used_at_start,
            inside: true,
            occasion: self.occasion(),
            ..Subject::default()
        };
        if let Some(store) = &self.store {
            let _ = store.prepare();
        }
        let mut taken = take(self.host, self.store.as_ref(), &subject, budget_ms);
        if let Some(store) = &self.store {
            learn(store, &subject, &mut taken);
        }
        taken
    }

    fn occasion(&self) -> Occasion {
        match (self.event.kind(), self.event.source.as_deref()) {
            (Kind::SessionStart, Some("clear")) => Occasion::Clear,
            (Kind::SessionStart, _) => Occasion::Start,
            _ => Occasion::Event,
        }
    }
}

pub(super) fn on_start(call: &Call<'_>) -> Reply {
    let event = call.event;
    let source = event.source.as_deref().unwrap_or_default();
    let used = event.context_tokens.filter(|tokens| *tokens > 0);
    let taken = call.observe(used, BUDGET_MS);
    if let Some(store) = &call.store {
        store.prune(call.host.now_ms(), PRUNE);
    }
    match (source, used) {
        ("resume" | "fork", Some(used)) => {
            Reply { message: resuming(call, &taken, used), ..Reply::default() }
        }
        ("compact", _) => {
            let parts = [compacted(&taken), super::handoff::after_compaction(call)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            Reply { context: (!parts.is_empty()).then(|| parts.join(" ")), ..Reply::default() }
        }
        _ => Reply::default(),
    }
}

/// What resuming costs, when that is worth a choice.
fn resuming(call: &Call<'_>, taken: &Taken, used: u64) -> Option<String> {
    let reading = &taken.reading;
    let cold = call.event.prompt_cache_likely_expired == Some(true);
    let near = at_least(used, reading.wall.tokens, GATE);
    let costly = cold && used >= COSTLY;
    if !near && !costly {
        return None;
    }
    let mut text = format!("longhaul: resumed at {}", wording::share(reading));
    if cold {
        text += "; the prompt cache has likely expired, so the next request pays for all of it";
        if let Some(usd) = call.event.estimated_cache_write_usd.filter(|usd| (0.01..10_000.0).contains(usd)) {
            text += &format!(" (about ${usd:.2})");
        }
    }
    Some(text)
}

/// What the compaction took, and where it still stands.
fn compacted(taken: &Taken) -> Option<String> {
    let transcript = taken.seen.transcript.as_ref()?;
    let figures = &taken.reading.figures;
    let from = figures.last_boundary.as_ref().filter(|_| figures.responses_since_boundary == 0);
    let what = match from.and_then(|boundary| Some((boundary.pre, boundary.post?))) {
        Some((pre, post)) => format!("{} tokens of it became about {}", short(pre), short(post)),
        None => "most of it is gone from the context".to_owned(),
    };
    Some(format!(
        "[longhaul] The conversation was just replaced by a summary: {what}. Every message before it still \
         stands word for word in the transcript {transcript}; search there before you ask for or guess \
         at anything said earlier."
    ))
}

pub(super) fn on_prompt(call: &Call<'_>) -> Reply {
    let taken = call.observe(None, BUDGET_MS);
    if call.event.is_a_persons_prompt() { speak(call, Moment::Prompt, &taken) } else { Reply::default() }
}

pub(super) fn on_batch(call: &Call<'_>) -> Reply {
    let taken = call.observe(None, BUDGET_MS);
    speak(call, Moment::Batch, &taken)
}

pub(super) fn on_compaction(call: &Call<'_>) -> Taken {
    call.observe(None, BUDGET_MS)
}

pub(super) fn on_end(call: &Call<'_>) -> Reply {
    call.observe(None, END_BUDGET_MS);
    Reply::default()
}

fn speak(call: &Call<'_>, moment: Moment, taken: &Taken) -> Reply {
    let reading = &taken.reading;
    let now = call.host.now_ms();
    let saved = call.store.as_ref().and_then(|store| store.load(&call.session, Slot::Notice));
    let state: State = saved.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let standing = Standing::of(reading, call.event.prompt_id.as_deref(), now);
    let (say, next) = decide(&state, moment, &standing);
    let remembered = next == state || remember(call, &next);
    let Some(say) = say else { return Reply::default() };
    // What cannot be remembered is said at most once an hour, by the transcript's own rows: unknown counts
    // as said.
    let known_rested = reading.complete && may_repeat(reading.figures.last_notice_at, now);
    if !remembered && !known_rested {
        return Reply::default();
    }
    match say {
        Say::PersonOnly => {
            Reply { message: Some(wording::message(reading, Urgency::Critical)), ..Reply::default() }
        }
        Say::Offer(urgency) => {
            let attended = call.host.env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0");
            let command = command(call);
            let way = Way { command: &command };
            let notice = wording::notice(reading, urgency, attended, &call.session, way);
            let message = Some(wording::message(reading, urgency));
            Reply { context: Some(notice), message, ..Reply::default() }
        }
    }
}

fn remember(call: &Call<'_>, state: &State) -> bool {
    let Some(store) = &call.store else { return false };
    serde_json::to_vec(state).is_ok_and(|bytes| store.save(&call.session, Slot::Notice, &bytes).is_ok())
}

/// How longhaul is run from a shell here: by the path that outlives updates where setup has made it, else the
/// program beside this one, else by its name.
fn command(call: &Call<'_>) -> String {
    let name = format!("longhaul{}", std::env::consts::EXE_SUFFIX);
    let own = call.host.current_exe();
    let beside = own.as_ref().map(|exe| exe.with_file_name(&name));
    let kept = call.store.as_ref().map(Store::bin).filter(|bin| own.is_some_and(|exe| exe.starts_with(bin)));
    let lasting = kept.map(|bin| bin.join("current").join(&name));
    let found = [lasting, beside].into_iter().flatten().find(|path| path.is_file());
    match found.as_ref().and_then(|path| path.to_str()) {
        // On Windows the client's shell is a POSIX one as well, and it eats backslashes.
        Some(path) if cfg!(windows) => word(&path.replace('\\', "/")),
        Some(path) => word(path),
        None => "longhaul".to_owned(),
    }
}
