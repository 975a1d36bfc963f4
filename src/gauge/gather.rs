//! Takes a reading: the one place of the gauge that reads and keeps anything.

mod around;
mod measure;

use std::path::PathBuf;

use around::{add_global, flags, note_process};
use measure::measure;

use super::context::{Candidates, Stamped, Told, newest};
use super::inputs::{Inputs, Name};
use super::learned::{self, Interval, Verdict};
use super::reading::{Reading, WindowSource};
use super::records::{Handed, Seen};
use super::wall;
use crate::base::id::SessionId;
use crate::base::span::MINUTE_MS;
use crate::client::figures::Figures;
use crate::client::models;
use crate::client::payload::Payload;
use crate::client::settings::Settings;
use crate::client::transcript;
use crate::host::Host;
use crate::host::clock::Deadline;
use crate::store::learned::Lesson;
use crate::store::session::Slot;
use crate::store::{Store, config_dir};

/// What a reading is taken of, as far as the caller knows it.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The session.
    pub session: Option<SessionId>,
    /// Its transcript.
    pub transcript: Option<PathBuf>,
    /// The directory it was started in.
    pub project: Option<PathBuf>,
    /// The model's id.
    pub model: Option<String>,
    /// The model's name for people.
    pub model_name: Option<String>,
    /// The model's window in tokens, as the client states it now.
    pub window: Option<u64>,
    /// Tokens in use, as a payload states them now.
    pub used: Option<u64>,
    /// Tokens in use, as a session start states them: nobody will state them again.
    pub used_at_start: Option<u64>,
    /// The next request pays for the whole context again.
    pub cache_cold: bool,
    /// The client's own figures, handed over just now.
    pub figures: Option<Figures>,
    /// Sub-tasks that the model says it finished.
    pub subtasks: u64,
    /// Whether this process has the session's own environment.
    pub inside: bool,
    /// What a reading leaves on the disk.
    pub leaves: Leaves,
    /// What brings the reading about.
    pub occasion: Occasion,
}

/// What a reading leaves on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leaves {
    /// What is now known of the session.
    #[default]
    All,
    /// How far the transcript is measured: somebody asks from outside, and what is kept of the session stays as it is.
    Progress,
    /// Nothing at all.
    Nothing,
}

/// What brings a reading about, as far as it says in which process a session runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Occasion {
    /// A redraw, or somebody asks.
    #[default]
    Look,
    /// An event of the session.
    Event,
    /// The session started, or went on in another process.
    Start,
    /// The session began by /clear.
    Clear,
}

impl Subject {
    /// What a payload states of the session whose environment this process has.
    pub fn stated(payload: &Payload) -> Self {
        let path = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
        let handed = payload.longhaul.as_ref().and_then(|handed| handed.figures.as_ref());
        let told_by_client = || handed?.window.filter(|window| *window > 0);
        Self {
            session: payload.session_id.as_deref().and_then(SessionId::parse),
            transcript: payload.transcript_path.as_deref().and_then(path),
            project: payload.project_dir().and_then(path),
            model: payload.model_id().map(str::to_owned),
            model_name: payload.model_name().map(str::to_owned),
            window: payload.window().or_else(told_by_client),
            used: payload.used(),
            cache_cold: payload.prompt_cache.as_ref().is_some_and(|cache| cache.warm == Some(false)),
            figures: handed.filter(|figures| figures.know_the_wall()).cloned(),
            inside: true,
            ..Self::default()
        }
    }
}

/// A reading, and what is kept of the session.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The reading.
    pub reading: Reading,
    /// The record as it is now.
    pub seen: Seen,
    /// Settings files that could not be read, and other things worth a warning.
    pub settings: Settings,
}

/// Takes a reading within `budget_ms`; what a transcript holds beyond that is left for the next one.
pub fn take(host: &Host, store: Option<&Store>, subject: &Subject, budget_ms: u64) -> Taken {
    let deadline = Deadline::after_ms(budget_ms);
    let now = host.now_ms();
    let record = |slot| subject.session.as_ref().zip(store).and_then(|(id, store)| store.load(id, slot));
    let before: Seen = record(Slot::Seen).and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
    let mut seen = before.clone();
    let mut handed: Option<Handed> = record(Slot::Client).and_then(|b| serde_json::from_slice(&b).ok());
    mend_times(&mut seen, now);
    note(&mut seen, subject, now);
    note_process(host, subject.occasion, &mut seen.process, now);

    let transcript = subject.transcript.clone().or_else(|| seen.transcript.as_ref().map(PathBuf::from));
    let measured = transcript.map(|path| measure(&path, subject, store, deadline)).unwrap_or_default();
    let told = measured.figures();
    let told_model = || told.context.as_ref().and_then(|context| context.model.clone());
    let model = seen.model.clone().or_else(told_model);

    let config = config_dir(host);
    let project = subject.project.clone().or_else(|| seen.project.as_ref().map(PathBuf::from));
    let flags = flags(host, subject, &seen, config.as_deref());
    let mut settings = Settings::load(config.as_deref(), project.as_deref(), &flags);
    add_global(host, &mut settings, &mut seen.global);
    let env = |name: &str| {
        if subject.inside {
            return host.env(name);
        }
        seen.environment.iter().find(|(have, _)| have == name).map(|(_, text)| text.clone())
    };
    let inputs = Inputs::collect(env, &settings, &flags, model.as_deref());
    if subject.inside {
        let set = |name: &Name| Some((name.as_str().to_owned(), host.env(name.as_str())?));
        seen.environment = Name::ALL.iter().filter(|name| name.is_env()).filter_map(set).collect();
        seen.autocompact_flag.clone_from(&flags.autocompact);
    }
    let fingerprint = inputs.fingerprint();
    if seen.fingerprint != fingerprint {
        if seen.fingerprint_since_ms > 0 {
            seen.inputs_changed_ms = now;
            seen.wall_before = seen.wall;
        }
        seen.fingerprint = fingerprint;
        seen.fingerprint_since_ms = now;
    }
    let kept_figures = handed.clone();
    if let Some(figures) = &subject.figures {
        handed = Some(Handed { figures: figures.clone(), model: model.clone(), fingerprint });
    }

    let (window, window_source) = window_of(subject, &seen, handed.as_ref(), model.as_deref(), &told);
    let formula = wall::reckon(&inputs, model.as_deref(), window);
    let interval = newest_interval(store, &seen, model.as_deref(), &told);
    let evidence = learned::judge(&formula.wall, interval.as_ref());
    let valid = handed.as_ref().filter(|h| {
        let same_model = |(now, then): (&String, &String)| models::same(now, then);
        h.fingerprint == fingerprint && model.as_ref().zip(h.model.as_ref()).is_none_or(same_model)
    });
    let judged = if let Verdict::Contradicted(wall) = &evidence { *wall } else { formula.wall };
    let wall = valid.and_then(|h| wall::of_client(&h.figures, &formula)).unwrap_or(judged);
    seen.wall = Some(wall.tokens);
    let context = newest(&candidates(subject, &seen, handed.as_ref(), measured.found, &told));
    let reading = Reading {
        model,
        model_name: seen.model_name.clone(),
        window,
        window_source,
        inputs,
        client: valid.map(|handed| handed.figures.clone()),
        formula,
        evidence,
        interval,
        wall,
        context,
        figures: told,
        complete: measured.complete,
        has_transcript: measured.found,
        cache_cold: subject.cache_cold,
        subtasks: subject.subtasks,
    };
    let figures = (kept_figures.as_ref(), handed.as_ref());
    keep(store, subject, (&before, &seen), figures, measured.found);
    Taken { reading, seen, settings }
}

/// Times ahead of the clock were written while that was wrong. A count of such a time would be the newest
/// for years: it is older than any other instead.
fn mend_times(seen: &mut Seen, now: i64) {
    let latest = now.saturating_add(MINUTE_MS);
    if seen.used_at_ms > latest {
        seen.used_at_ms = 0;
    }
    seen.fingerprint_since_ms = seen.fingerprint_since_ms.min(latest);
    seen.inputs_changed_ms = seen.inputs_changed_ms.min(latest);
    seen.process.since_ms = seen.process.since_ms.min(latest);
}

/// Takes over what the caller states.
fn note(seen: &mut Seen, subject: &Subject, now: i64) {
    if subject.model.is_some() && seen.model != subject.model {
        // Another model has another window and name: what was stated for the old one is void.
        seen.window = None;
        seen.model_name = None;
        seen.model.clone_from(&subject.model);
    }
    let text = |path: &PathBuf| path.to_str().map(str::to_owned);
    seen.model_name = subject.model_name.clone().or(seen.model_name.take());
    seen.window = subject.window.or(seen.window);
    seen.transcript = subject.transcript.as_ref().and_then(text).or(seen.transcript.take());
    seen.project = subject.project.as_ref().and_then(text).or(seen.project.take());
    if subject.used_at_start.is_some() {
        seen.used = subject.used_at_start;
        seen.used_at_ms = now;
    }
}

fn window_of(
    subject: &Subject,
    seen: &Seen,
    handed: Option<&Handed>,
    model: Option<&str>,
    told: &transcript::Figures,
) -> (u64, WindowSource) {
    if let Some(window) = subject.window {
        return (window, WindowSource::Payload);
    }
    if let Some(window) = seen.window.filter(|window| *window > 0) {
        return (window, WindowSource::Stored);
    }
    let of_this = |handed: &&Handed| {
        handed.model.as_deref().zip(model).is_none_or(|(then, now)| models::same(then, now))
    };
    let told_by_client = handed.filter(of_this).and_then(|handed| handed.figures.window);
    if let Some(window) = told_by_client.filter(|window| *window > 0) {
        return (window, WindowSource::Client);
    }
    let known = model.map(|id| models::look_up(id, false)).filter(|model| model.known || model.long);
    let window = known.map_or(models::LARGE_WINDOW, |model| model.window);
    let source = if known.is_some() { WindowSource::Table } else { WindowSource::Default };
    // One response alone may be a slip of the count; two running are not.
    let last = told.context.as_ref().filter(|context| !context.estimated).map_or(0, |context| context.tokens);
    let both = last.min(told.previous_context);
    match models::WINDOWS.iter().find(|larger| **larger >= both) {
        Some(larger) if both > window => (*larger, WindowSource::Outgrown),
        _ => (window, source),
    }
}

/// The newest interval that speaks for these inputs: the session's own, or one kept from another.
fn newest_interval(
    store: Option<&Store>,
    seen: &Seen,
    model: Option<&str>,
    told: &transcript::Figures,
) -> Option<Interval> {
    let own = told.interval.as_ref().filter(|interval| {
        let same_model =
            interval.model.as_deref().zip(model).is_none_or(|(then, now)| models::same(then, now));
        // A boundary from before the inputs were seen to change is void.
        same_model && !interval.discarded && interval.at_ms >= seen.inputs_changed_ms
    });
    let own = own.map(|interval| Interval { low: interval.low, pre: interval.pre, at_ms: interval.at_ms });
    let kept = store.zip(model).and_then(|(store, model)| store.lesson(model, seen.fingerprint));
    let kept = kept.map(|lesson| Interval { low: lesson.low, pre: lesson.pre, at_ms: lesson.at_ms });
    [own, kept].into_iter().flatten().max_by_key(|interval| interval.at_ms)
}

fn candidates(
    subject: &Subject,
    seen: &Seen,
    handed: Option<&Handed>,
    has_transcript: bool,
    told: &transcript::Figures,
) -> Candidates {
    // A session that keeps no transcript leaves only what the client said last.
    let last = handed.filter(|_| !has_transcript).and_then(|handed| handed.figures.used());
    let last = last.map(|tokens| Stamped { tokens, at_ms: i64::MAX });
    let stated = seen.used.map(|tokens| Stamped { tokens, at_ms: seen.used_at_ms });
    Candidates {
        client: subject.figures.as_ref().and_then(Figures::used),
        payload: subject.used,
        kept: last.or(stated),
        told: Told {
            tokens: told.context.as_ref().map(|context| context.tokens),
            at_ms: told.context_at.unwrap_or(0),
            after_compaction: told.after_compaction,
            before: told.last_boundary.map(|boundary| boundary.pre),
            responses: [told.last_response, told.previous_context],
        },
    }
}

/// Writes what changed. What cannot be written is reckoned again the next time.
fn keep(
    store: Option<&Store>,
    subject: &Subject,
    (before, seen): (&Seen, &Seen),
    (kept, handed): (Option<&Handed>, Option<&Handed>),
    has_transcript: bool,
) {
    let Some((store, id)) = store.filter(|_| subject.leaves == Leaves::All).zip(subject.session.as_ref())
    else {
        return;
    };
    if seen != before
        && let Ok(bytes) = serde_json::to_vec(seen)
    {
        let _ = store.save(id, Slot::Seen, &bytes);
    }
    // The counts stand in the transcript too: for them alone nothing is written.
    let same = match (kept, handed) {
        (Some(kept), Some(handed)) if has_transcript => kept.without_counts() == handed.without_counts(),
        _ => kept == handed,
    };
    if !same && let Ok(bytes) = serde_json::to_vec(&handed) {
        let _ = store.save(id, Slot::Client, &bytes);
    }
}

/// Keeps what the session's last automatic compaction proved, for later sessions under the same inputs.
/// Only a boundary that came while these inputs were known to be in force is kept.
pub fn learn(store: &Store, subject: &Subject, taken: &mut Taken) {
    let Some(interval) = taken.reading.figures.interval.clone() else { return };
    let Some((id, model)) = subject.session.as_ref().zip(taken.reading.model.clone()) else { return };
    let seen = &taken.seen;
    if interval.at_ms < seen.fingerprint_since_ms {
        return;
    }
    if !interval.discarded && interval.at_ms <= seen.learned_at_ms {
        return;
    }
    let lesson = Lesson {
        model,
        fingerprint: seen.fingerprint,
        low: interval.low,
        pre: interval.pre,
        at_ms: interval.at_ms,
        session: id.to_string(),
    };
    if store.learn(lesson, !interval.discarded).is_ok() {
        taken.seen.learned_at_ms = interval.at_ms;
        if let Ok(bytes) = serde_json::to_vec(&taken.seen) {
            let _ = store.save(id, Slot::Seen, &bytes);
        }
    }
}
