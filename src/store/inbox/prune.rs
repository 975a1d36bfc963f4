//! What of the inboxes need not be kept any longer.

use std::path::Path;

use super::{DIR, Store};
use crate::base::id::SessionId;
use crate::base::span::HOUR_MS;
use crate::host::clock::epoch_ms;

/// Full texts are kept for so long, in ms, and inboxes that nobody touches: the client keeps no session longer.
const TEXTS_MS: i64 = 7 * 24 * HOUR_MS;
const INBOXES_MS: i64 = 60 * 24 * HOUR_MS;

impl Store {
    /// Takes away full texts that were kept for a week, and inboxes that nothing has touched for two months. At
    /// most `limit` inboxes are looked at.
    pub fn prune_inboxes(&self, now_ms: i64, limit: usize) {
        let age = |path: &Path| {
            let touched = std::fs::symlink_metadata(path).ok().and_then(|meta| meta.modified().ok());
            touched.map_or(0, |at| now_ms.saturating_sub(epoch_ms(at)))
        };
        let Ok(entries) = std::fs::read_dir(self.dir().join(DIR)) else { return };
        for dir in entries.flatten().take(limit).map(|entry| entry.path()) {
            let id = dir.file_name().and_then(|name| SessionId::parse(name.to_str()?));
            let Some(id) = id.filter(|_| dir.join("log").is_file()) else { continue };
            if age(&dir.join("log")) > INBOXES_MS {
                let mut inbox = self.inbox(&id);
                // Nobody is about to write to it.
                if inbox.hold().is_ok_and(|_held| age(&dir.join("log")) > INBOXES_MS) {
                    let _ = std::fs::remove_dir_all(&dir);
                }
                continue;
            }
            for file in std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
                if file.extension().is_some_and(|ending| ending == "txt") && age(&file) > TEXTS_MS {
                    let _ = std::fs::remove_file(file);
                }
            }
        }
    }
}
