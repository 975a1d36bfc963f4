//! From what a look came to, to what is told: the hour's limit, the failure that is said once, the end.

use super::hour::Say;
use super::wording::{last_now, summed};
use super::work::Found;
use crate::base::id::digest;
use crate::base::span::rough;
use crate::store::watches::{Note, Progress, Watch};

/// Adds what is to be told to what is pending, and the end of the watch where it has come.
pub fn take(watch: &Watch, progress: &mut Progress, found: Found, now_ms: i64) {
    if found.well && found.fails.is_none() {
        progress.failing = None;
    }
    if let Some(sum) = progress.window.sum(now_ms) {
        push(watch, progress, summed(watch, sum), sum.lines, now_ms, false);
    }
    let told = found.text.is_some();
    if let Some(text) = found.text {
        say(watch, progress, text, found.lines, now_ms);
    }
    if let Some(fails) = found.fails {
        if progress.failing.is_none() {
            say(watch, progress, format!("{fails} (said once; it is tried on)"), 0, now_ms);
        }
        progress.failing = Some(fails);
    }
    let is_over = watch.until_ms.is_some_and(|until_ms| now_ms >= until_ms);
    let ends = found.ends.or_else(|| (watch.once && told).then(|| "it was to tell one thing".to_owned()));
    let span = || rough(watch.until_ms.unwrap_or(now_ms).saturating_sub(watch.made_ms));
    let ends = ends.or_else(|| is_over.then(|| format!("it was to last {}", span())));
    if let Some(why) = ends {
        end(watch, progress, why, told, now_ms);
    }
}

fn say(watch: &Watch, progress: &mut Progress, text: String, lines: u64, now_ms: i64) {
    match progress.window.take(watch.most, now_ms, lines) {
        Say::Now => push(watch, progress, text, lines, now_ms, false),
        Say::LastNow => {
            let text = format!("{text}\n{}", last_now(watch, progress.window.ends_ms()));
            push(watch, progress, text, lines, now_ms, false);
        }
        Say::Later => push(watch, progress, text, lines, now_ms, true),
    }
}

fn push(watch: &Watch, progress: &mut Progress, text: String, lines: u64, now_ms: i64, held: bool) {
    progress.told = progress.told.saturating_add(1);
    progress.last_ms = Some(now_ms);
    // The number alone would not do: a place that was lost begins to count anew.
    let what = digest(&[text.as_bytes(), &now_ms.to_le_bytes()]);
    let id = format!("watch-{}-{}-{what:016x}", watch.number, progress.told);
    progress.pending.push(Note { id, at_ms: now_ms, text, lines, held });
}

/// The end is told whatever the hour allows, with what ended it.
fn end(watch: &Watch, progress: &mut Progress, why: String, told: bool, now_ms: i64) {
    let said = format!("[this watch has ended: {why}]");
    match progress.pending.last_mut().filter(|_| told) {
        Some(last) => {
            last.text = format!("{}\n{said}", last.text);
            last.held = false;
        }
        None => push(watch, progress, said, 0, now_ms, false),
    }
    progress.ending = Some(why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::span::HOUR_MS;
    use crate::store::watches::Subject;
    use crate::store::watches::tests::watch;

    fn text(text: &str) -> Found {
        Found { text: Some(text.into()), lines: 1, well: true, ..Found::default() }
    }

    fn fails() -> Found {
        Found { fails: Some("no".into()), ..Found::default() }
    }

    fn said(progress: &mut Progress) -> Vec<(String, bool)> {
        std::mem::take(&mut progress.pending).into_iter().map(|note| (note.text, note.held)).collect()
    }

    #[test]
    fn past_the_hours_limit_things_are_only_counted_until_it_is_over() {
        let watch = Watch { number: 7, most: 2, ..watch(Subject::Sessions) };
        let mut progress = Progress::default();
        for (n, one) in (0..).zip(["a", "b", "c", "d"]) {
            take(&watch, &mut progress, text(one), n);
        }
        let all = said(&mut progress);
        assert_eq!((&*all[0].0, all[0].1), ("a", false));
        assert!(all[1].0.starts_with("b\n[2 times within an hour: until ") && !all[1].1);
        assert_eq!(all[2..], [("c".to_owned(), true), ("d".to_owned(), true)]);
        take(&watch, &mut progress, Found::default(), HOUR_MS);
        let all = said(&mut progress);
        assert_eq!(all.len(), 1);
        assert!(all[0].0.starts_with("2 more times, 2 lines") && all[0].0.contains("watch log 7"), "{all:?}");
    }

    #[test]
    fn a_failure_is_said_once_until_it_is_over() {
        let watch = watch(Subject::Sessions);
        let mut progress = Progress::default();
        take(&watch, &mut progress, fails(), 1);
        take(&watch, &mut progress, fails(), 2);
        take(&watch, &mut progress, Found::default(), 3);
        take(&watch, &mut progress, fails(), 4);
        assert_eq!(said(&mut progress).len(), 1);
        take(&watch, &mut progress, Found { well: true, ..Found::default() }, 5);
        take(&watch, &mut progress, fails(), 6);
        assert_eq!(said(&mut progress).len(), 1);
    }

    #[test]
    fn an_end_is_told_even_when_the_hour_is_full() {
        let watch = Watch { most: 1, ..watch(Subject::Sessions) };
        let mut progress = Progress::default();
        take(&watch, &mut progress, text("a"), 1);
        take(&watch, &mut progress, Found { ends: Some("it came".into()), ..text("b") }, 2);
        let all = said(&mut progress);
        assert_eq!(all[1], ("b\n[this watch has ended: it came]".to_owned(), false));
        assert_eq!(progress.ending.as_deref(), Some("it came"));
    }

    #[test]
    fn once_and_a_span_end_it() {
        let once = Watch { once: true, ..watch(Subject::Sessions) };
        let mut progress = Progress::default();
        take(&once, &mut progress, fails(), 1);
        assert!(progress.ending.is_none(), "that it fails is not what it was to tell");
        take(&once, &mut progress, text("a"), 2);
        assert!(progress.ending.is_some());
        let short = Watch { until_ms: Some(60_001), ..watch(Subject::Sessions) };
        let mut progress = Progress::default();
        take(&short, &mut progress, Found::default(), 60_000);
        assert!(progress.pending.is_empty());
        take(&short, &mut progress, Found::default(), 60_001);
        assert_eq!(said(&mut progress)[0].0, "[this watch has ended: it was to last 1m]");
    }

    #[test]
    fn no_two_things_have_the_same_id() {
        let watch = watch(Subject::Sessions);
        let ids = |from: i64| {
            let mut progress = Progress::default();
            for n in 0..3 {
                take(&watch, &mut progress, text("a"), from + n);
            }
            progress.pending.into_iter().map(|note| note.id).collect::<Vec<_>>()
        };
        let all: std::collections::BTreeSet<String> = ids(0).into_iter().chain(ids(9)).collect();
        assert_eq!(all.len(), 6, "{all:?}");
    }
}
