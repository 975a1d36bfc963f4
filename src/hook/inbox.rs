//! The inbox's part in each event: what reached the model is acknowledged, the notice of our own watcher's end is
//! kept from it, and a session that goes on in another takes its inbox along.

use super::Call;
use crate::base::id::SessionId;
use crate::client::notification::{Notification, only, ours};
use crate::client::reply::Reply;
use crate::store::Store;
use crate::store::inbox::{HOOK_MS, Mark};
use crate::store::watchers::Stamp;

/// What the person is shown instead of the notice.
const IN_BACKGROUND: &str = "longhaul: its watcher does not run in background sessions, which would be called at \
    work for as long as they live (\"watch\": {\"background\": true} in longhaul/config.json keeps it)";
const DIED: &str =
    "longhaul: its watcher has ended, so nothing watched is told in this session until it is resumed";

/// The answer to a notification that the model is not to be given: that our own watcher has ended.
pub(super) fn kept_from_model(call: &Call<'_>, prompt: &str) -> Option<Reply> {
    let store = call.store.as_ref()?;
    if only(prompt) != Some(Notification::Ended) {
        return None;
    }
    let stamp = watcher(call, store).filter(|stamp| store.take_end_of(stamp).unwrap_or(false))?;
    let why = if stamp.ended.is_some() { IN_BACKGROUND } else { DIED };
    Some(Reply { block: Some(why.to_owned()), ..Reply::default() })
}

/// What the model is given now is acknowledged.
pub(super) fn on_prompt(call: &Call<'_>, prompt: &str) {
    let Some(store) = &call.store else { return };
    let marks: Vec<Mark> = ours(prompt).iter().flat_map(marks_of).collect();
    if marks.is_empty() {
        return;
    }
    // What was printed before /clear arrives after it.
    let before = watcher(call, store).and_then(|stamp| SessionId::parse(&stamp.session?));
    let sessions = [Some(call.session.clone()), before.filter(|before| *before != call.session)];
    for session in sessions.iter().flatten() {
        // What is not acknowledged here, the watcher finds in the transcript.
        let _ = store.inbox_within(session, HOOK_MS).acknowledge_marks(&marks);
    }
}

/// The session that this client showed until now goes on in this one.
pub(super) fn on_start(call: &Call<'_>) {
    let Some(store) = &call.store else { return };
    if !matches!(call.event.source.as_deref(), Some("clear" | "resume" | "fork")) {
        return;
    }
    let before = watcher(call, store).and_then(|stamp| SessionId::parse(&stamp.session?));
    if let Some(before) = before.filter(|before| *before != call.session && store.inbox(before).exists()) {
        // What somebody writes to meanwhile, the watcher takes along.
        let _ = store.carry_inbox_within(&before, &call.session, HOOK_MS);
    }
}

/// The watcher of this very client.
fn watcher(call: &Call<'_>, store: &Store) -> Option<Stamp> {
    store.watcher(call.host.env("CLAUDE_PID")?.parse().ok()?)
}

fn marks_of(notification: &Notification) -> Vec<Mark> {
    match notification {
        Notification::Lines(lines) => lines.iter().filter_map(|line| Mark::leading(line)).collect(),
        Notification::Ended => Vec::new(),
    }
}
