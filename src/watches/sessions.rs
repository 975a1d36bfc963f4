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

/// Writes an incident to the inbox of every session that wants to hear of it, each once, however often this is done.
/// Answers how many those are. Past a watch's limit an incident stands in its log alone, and is counted with the next
/// one that is told. One session that cannot be written to keeps no other from hearing; then the first error comes
/// back, and it is to be tried again.
pub fn tell(store: &Store, incident: &Incident) -> io::Result<usize> {
    let (mut told, mut failed) = (0, None);
    for watch in subscriptions(store)? {
        match tell_one(store, &watch, incident) {
            Ok(heard) => told += usize::from(heard),
            Err(error) => drop(failed.get_or_insert(error)),
        }
    }
    failed.map_or(Ok(told), Err)
}

/// Whether its session was told.
fn tell_one(store: &Store, watch: &Watch, incident: &Incident) -> io::Result<bool> {
    let over = watch.until_ms.is_some_and(|until_ms| incident.at_ms >= until_ms);
    let session = watch.maker.session.as_deref().filter(|session| *session != incident.about && !over);
    let Some(session) = session.and_then(SessionId::parse) else { return Ok(false) };
    let Some(text) = counted(watch, incident.text) else { return Ok(false) };
    let id = format!("watch-{}-{}", watch.number, incident.id);
    let (before, _) = store.told(watch.number);
    if before.iter().any(|told| told.id == id) {
        return Ok(false);
    }
    let said = limited(watch, &before, text, incident.at_ms);
    if let Some(text) = &said {
        let new = New { source: &source(watch), id: &id, text, at_ms: incident.at_ms };
        store.inbox(&session).append(&new)?;
    }
    let heard = said.is_some();
    let told = Told { at_ms: incident.at_ms, id, lines: 1, held: !heard, text: text.to_owned() };
    store.add_told(watch.number, &told)?;
    if watch.once && heard {
        store.change_watches(|watches| {
            if let Some(watch) = watches.get(watch.number) {
                watch.end(incident.at_ms, "it was to tell one thing");
            }
        })?;
    }
    Ok(heard)
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
    fn one_that_cannot_be_written_to_keeps_no_other_from_hearing_and_hears_later() {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let of = |session: &str| Maker { session: Some(session.into()), ..Maker::default() };
        let subscribe = |session| Watch { maker: of(session), ..watch(Subject::Sessions) };
        store.change_watches(|watches| ["a", "b"].map(|session| watches.add(subscribe(session)))).unwrap();
        let in_the_way = store.make_dir("inbox").unwrap().join("a");
        fs_err::write(&in_the_way, "no directory").unwrap();
        let incident = Incident { id: "i1", about: "x", text: "x has died", at_ms: 5 };
        let heard = |session: &str| {
            let mut inbox = store.inbox(&SessionId::parse(session).unwrap());
            inbox.refresh().unwrap();
            inbox.unacknowledged().count()
        };
        assert!(tell(&store, &incident).is_err());
        assert_eq!(heard("b"), 1);
        fs_err::remove_file(in_the_way).unwrap();
        assert_eq!(tell(&store, &incident).unwrap(), 1);
        assert_eq!((heard("a"), heard("b")), (1, 1));
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
