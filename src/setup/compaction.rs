//! Compaction switched off, on the person's typed word: three keys of their settings.

use anyhow::{Result, bail};
use serde_json::json;

use super::file::File;
use super::report::{self, Part};
use super::{About, Question, keys, plan};
use crate::client::models;
use crate::client::wiring::user_settings;
use crate::store::Store;
use crate::store::setup::Record;

/// What a person asks for.
#[derive(Debug, Clone, Copy)]
pub struct Compaction {
    /// The window that the model is to be taken to have, in tokens.
    pub window: u64,
    /// Even where the model is not known to have it.
    pub force: bool,
}

/// How often a file that somebody else writes meanwhile is read again.
const ATTEMPTS: usize = 3;

/// Refuses a window that the model is not known to have. Nothing was written yet.
pub fn check(store: &Store, wish: Compaction) -> Result<()> {
    let file = File::read(&user_settings(store.config()))?;
    let model = plan::parse(&file)?.string(&["model"]).map_err(|fault| plan::faulty(&file, &fault))?;
    let (known, whose) = match &model {
        Some(id) => (models::look_up(id, false).window, format!("the model {id}, which your settings name,")),
        None => (models::LARGE_WINDOW, "the largest model that is known".to_owned()),
    };
    if wish.window > known && !wish.force {
        bail!(
            "could not turn compaction off for a window of {}: {whose} has {known}, and beyond it the API refuses \
             what the client sends; name a window of at most {known}, or add --force if you know better",
            wish.window
        );
    }
    Ok(())
}

/// Sets the keys, once the person has said yes.
pub fn carry_out(
    store: &Store,
    wish: Compaction,
    record: &mut Record,
    stamp: &str,
    dry_run: bool,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) -> Result<Part> {
    let named = user_settings(store.config());
    let part = |action, reason: &str| Part::of(action, reason.to_owned(), &named);
    let wanted: [keys::Wanted<'_>; 3] = [
        (&["env", "DISABLE_COMPACT"], json!("1")),
        (&["env", "CLAUDE_CODE_MAX_CONTEXT_TOKENS"], json!(wish.window.to_string())),
        (&["autoCompactEnabled"], json!(false)),
    ];
    let mut agreed = false;
    for _ in 0..ATTEMPTS {
        let file = File::read(&named)?;
        let (new, keys) = keys::set(&file, &wanted)?;
        if keys.is_empty() {
            return Ok(part("unchanged", "compaction is off already"));
        }
        file.check_writable()?;
        let diff = report::diff(&named, file.bytes.as_deref(), Some(&new));
        if dry_run {
            return Ok(part("added", "compaction is off, after a typed yes").with(diff));
        }
        agreed = agreed || confirm(&Question { about: About::Compaction(wish.window), diff: &diff });
        if !agreed {
            return Ok(part("kept", "you did not say yes; compaction stays as it is"));
        }
        if keys::write(store, record, &file, &file, &new, keys, stamp)? {
            return Ok(part("added", "compaction is off in sessions that start from now on"));
        }
    }
    bail!("could not edit {}: somebody else keeps writing it; run setup again", named.display())
}
