//! What this session's terminal is to say of other sessions: only what no notifier could tell, and once.

use super::Call;
use crate::client::event::Kind;
use crate::client::reply::reaches_terminal;
use crate::liveness::tell;

/// The lines; mostly none, at the price of one small read.
pub(super) fn lines(call: &Call<'_>, kind: Kind) -> Vec<String> {
    let Some(store) = &call.store else { return Vec::new() };
    let now_ms = call.host.now_ms();
    let heard = reaches_terminal(kind) && call.event.agent_id.is_none() && has_terminal(call);
    if !heard || !store.fleet(now_ms).unheard {
        return Vec::new();
    }
    tell::ring(store, &call.session, now_ms)
}

/// Whether a person sits before it: what is said elsewhere would be lost.
fn has_terminal(call: &Call<'_>) -> bool {
    let attended = call.host.env("CLAUDE_CODE_SESSION_ATTENDED").as_deref() != Some("0");
    let headless = call.host.env("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entry| entry.starts_with("sdk"));
    attended && !headless && !call.host.has_env("CLAUDE_JOB_DIR")
}
