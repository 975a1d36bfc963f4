//! Sessions that want to hear of others. Whoever finds that one stalls, waits or dies writes to them here.

use std::io;

use super::hour::Sum;
use super::wording::{last_now, source, summed};
use crate::base::id::SessionId;
use crate::base::span::HOUR_MS;
use crate::store::Store;
use crate::store::inbox::New;
use crate::store::watches::{State, Subject, Told, Watch};

/// Something that has become of a session.
#[derive(Debug, Clone, Copy)]
pub struct Incident<'a> {
    /// The same incident has the same id.
    pub id: &'a str,
    /// The session that it is about, which is not told of itself.
    pub about: &'a str,
    /// What has become of it.
    pub text: &'a str,
    /// When, epoch milliseconds.
    pub at_ms: i64,
}

/// The watches of sessions that want to hear of incidents.
pub fn subscriptions(store: &Store) -> io::Result<Vec<Watch>> {
    let all = store.watches()?.watches.into_iter();
    Ok(all.filter(|watch| watch.state == State::Active && watch.subject == Subject::Sessions).collect())
}

/// Writes an incident to the inbox of every session that wants to hear of it, each once. Answers how many those
/// are. Past a watch's limit an incident stands in its log alone, and is counted with the next one that is told.
pub fn tell(store: &Store, incident: &Incident) -> io::Result<usize> {
    let mut told = 0;
    for watch in subscriptions(store)? {
        let over = watch.until_ms.is_some_and(|until_ms| incident.at_ms >= until_ms);
        let session = watch.maker.session.as_deref().filter(|session| *session != incident.about);
        let Some(session) = session.and_then(SessionId::parse).filter(|_| !over) else { continue };
        let Some(text) = counted(&watch, incident.text) else { continue };
        let id = format!("watch-{}-{}", watch.number, incident.id);
        let (before, _) = store.told(watch.number);
        if before.iter().any(|told| told.id == id) {
            continue;
        }
        let said = limited(&watch, &before, text, incident.at_ms);
        if let Some(text) = &said {
            store.inbox(&session).append(&New {
                source: &source(&watch),
                id: &id,
                text,
                at_ms: incident.at_ms,
            })?;
            told += 1;
        }
        let held = said.is_none();
        store.add_told(
            watch.number,
            &Told { at_ms: incident.at_ms, id, lines: 1, held, text: text.to_owned() },
        )?;
        if watch.once && !held {
            store.change_watches(|watches| {
                if let Some(watch) = watches.get(watch.number) {
                    watch.end(incident.at_ms, "it was to tell one thing");
                }
            })?;
        }
    }
    Ok(told)
}

/// What is told of it; `None` where this hour is full.
fn limited(watch: &Watch, before: &[Told], text: &str, now_ms: i64) -> Option<String> {
    let is_recent = |told: &&Told| !told.held && (0..HOUR_MS).contains(&now_ms.saturating_sub(told.at_ms));
    let recent = before.iter().filter(is_recent).count() as u64;
    if recent >= watch.most {
        return None;
    }
    let times = before.iter().rev().take_while(|told| told.held).count() as u64;
    let held =
        if times > 0 { format!("\n[{}]", summed(watch, Sum { times, lines: times })) } else { String::new() };
    let last = recent + 1 == watch.most;
    let last =
        if last { format!("\n{}", last_now(watch, now_ms.saturating_add(HOUR_MS))) } else { String::new() };
    Some(format!("{text}{held}{last}"))
}

/// The text, where the watch's pattern lets it through.
fn counted<'a>(watch: &Watch, text: &'a str) -> Option<&'a str> {
    let filter = super::filter::Filter::of(watch).ok()?;
    (!filter.apply(text).is_empty() || text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::watches::Maker;
    use crate::store::watches::tests::{store, watch};

    #[test]
    fn who_wants_to_hear_of_it_does_and_once() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let of = |session: &str| Maker { session: Some(session.into()), ..Maker::default() };
        store
            .change_watches(|watches| {
                watches.add(Watch { maker: of("a"), ..watch(Subject::Sessions) });
                watches.add(Watch { maker: of("b"), once: true, ..watch(Subject::Sessions) });
                watches.add(Watch { maker: of("c"), state: State::Paused, ..watch(Subject::Sessions) });
                watches.add(Watch { maker: of("x"), ..watch(Subject::Sessions) });
            })
            .unwrap();
        let incident = Incident { id: "i1", about: "x", text: "x has died", at_ms: 5 };
        assert_eq!(tell(&store, &incident).unwrap(), 2);
        assert_eq!(tell(&store, &incident).unwrap(), 0, "each once");
        tell(&store, &Incident { id: "i2", ..incident }).unwrap();
        let heard = |session: &str| {
            let mut inbox = store.inbox(&SessionId::parse(session).unwrap());
            inbox.refresh().unwrap();
            inbox.unacknowledged().map(|event| (event.source.clone(), event.text.clone())).collect::<Vec<_>>()
        };
        let line = ("watch 1 sessions".to_owned(), "x has died".to_owned());
        assert_eq!(heard("a"), [line.clone(), line]);
        assert_eq!((heard("b").len(), heard("c").len(), heard("x").len()), (1, 0, 0));
        assert_eq!(store.told(1).0.len(), 2);
    }

    #[test]
    fn past_the_hours_limit_incidents_are_counted() {
        let watch = Watch { number: 3, most: 2, ..watch(Subject::Sessions) };
        let told = |at_ms, held| Told { at_ms, held, ..Told::default() };
        assert_eq!(limited(&watch, &[], "x", 0).unwrap(), "x");
        assert!(limited(&watch, &[told(0, false)], "x", 1).unwrap().contains("2 times within an hour"));
        let full = [told(0, false), told(1, false), told(2, true), told(3, true)];
        assert_eq!(limited(&watch, &full, "x", 4), None);
        let later = limited(&watch, &full, "x", HOUR_MS).unwrap();
        assert!(later.starts_with("x\n[2 more times, 2 lines"), "{later}");
    }
}
