//! What runs: hooks by the beats that they leave, watchers by their stamps, and the timer.

use super::line::{Line, count, some};
use crate::base::span::rough;
use crate::store::beats::Kind;

/// A session that runs.
#[derive(Debug, Clone)]
pub struct Open {
    /// Its id.
    pub id: String,
    /// How it is run.
    pub kind: Kind,
    /// Whether a hook of it ever left a beat.
    pub beats: bool,
    /// Its watcher.
    pub watcher: Watcher,
    /// It is the one that this shell runs in.
    pub own: bool,
    /// So new that hooks and watcher may not have come to it yet.
    pub fresh: bool,
}

/// A session's watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watcher {
    /// It runs.
    Runs,
    /// It has ended, by itself where it says why.
    Ended(Option<String>),
    /// There was none.
    None,
}

/// The timer that looks at sessions while nothing else of ours runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timer {
    /// Nobody set it up.
    None,
    /// It is set up, with a name for it.
    Set(String),
    /// It was set up and does not run, and why.
    Broken(String),
}

/// What sessions left and what of ours runs beside them.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// Those that run.
    pub open: Vec<Open>,
    /// The age of the newest beat of all, in ms.
    pub newest: Option<i64>,
    /// Whether beats can be read at all.
    pub readable: bool,
    /// The file and the scope that switch all hooks off.
    pub hooks_off: Option<(String, bool)>,
    /// `watch.background`: the watcher stays in background sessions.
    pub background_stays: bool,
    /// The timer.
    pub timer: Timer,
}

fn hooks_are_off(facts: &Sessions, name: &'static str, what: &str) -> Option<Line> {
    let (place, managed) = facts.hooks_off.as_ref()?;
    let fix = if *managed {
        "ask whoever administers this machine".to_owned()
    } else {
        format!("take disableAllHooks out of {place}")
    };
    Some(Line::broken(name, format!("disableAllHooks in {place}: {what}"), fix))
}

/// Whether hooks fire.
pub fn hooks(facts: &Sessions) -> Line {
    const NAME: &str = "hooks";
    if let Some(line) = hooks_are_off(facts, NAME, "no hook runs, and no status line") {
        return line;
    }
    if !facts.readable {
        return Line::note(NAME, "it cannot be told: the line on the run directory says why");
    }
    let settled: Vec<_> = facts.open.iter().filter(|open| !open.fresh).collect();
    let silent: Vec<_> = settled.iter().filter(|open| !open.beats).map(|open| open.id.clone()).collect();
    let newest = facts.newest.map(|age| format!("newest beat {} ago", rough(age)));
    let Some(newest) = newest else {
        return if silent.is_empty() {
            Line::note(NAME, "no session has left a beat yet: none has run with the plugin")
        } else {
            let what = format!("no session ever left a beat, though {} open", are(silent.len()));
            Line::broken(NAME, what, restart(&silent[0]))
        };
    };
    if let Some(own) = settled.iter().find(|open| open.own && !open.beats) {
        let what = format!("{newest}, and none of this session: it was started without the plugin");
        return Line::broken(NAME, what, restart(&own.id));
    }
    if silent.len() == settled.len() && !silent.is_empty() {
        let what =
            format!("{newest}, and none of the {} open: {}", count(silent.len(), "session"), some(&silent));
        return Line::broken(NAME, what, restart(&silent[0]));
    }
    if !silent.is_empty() {
        let what = format!(
            "{newest}; {} without one, started without the plugin: {}",
            are(silent.len()),
            some(&silent)
        );
        return Line::note(NAME, what).fix(restart(&silent[0]));
    }
    Line::ok(NAME, newest)
}

fn are(n: usize) -> String {
    format!("{} {}", count(n, "session"), if n == 1 { "is" } else { "are" })
}

fn restart(session: &str) -> String {
    format!("leave it with /exit, then claude --resume {session}")
}

/// Whether the watcher is armed, or why it cannot be.
pub fn monitor(facts: &Sessions) -> Line {
    const NAME: &str = "monitor";
    if let Some(line) = hooks_are_off(facts, NAME, "it stops monitors too") {
        return line;
    }
    match facts.open.iter().find(|open| open.own).map(|open| open.kind) {
        Some(Kind::Headless) => {
            return Line::note(NAME, "the client starts no monitor under -p")
                .fix("longhaul watch wait --timeout 2h");
        }
        Some(Kind::Bg) if !facts.background_stays => {
            let what =
                "in a background session the watcher leaves at once, or the client calls it at work for ever";
            return Line::note(NAME, what).fix("{\"watch\": {\"background\": true}} in config.json keeps it");
        }
        _ => {}
    }
    let watched = |open: &&Open| open.kind == Kind::Interactive && !open.fresh;
    let open: Vec<_> = facts.open.iter().filter(watched).collect();
    let mut without: Vec<_> = open.iter().filter(|open| open.watcher != Watcher::Runs).collect();
    without.sort_by_key(|open| !open.own);
    let Some(first) = without.first() else {
        return Line::ok(
            NAME,
            match open.len() {
                0 => "no interactive session is open; one that starts arms it".to_owned(),
                n => format!("armed in {}", count(n, "open session")),
            },
        );
    };
    let why = match &first.watcher {
        Watcher::Ended(Some(why)) => format!("it ended by itself: {why}"),
        Watcher::Ended(None) => "it has died, and the client starts none again".to_owned(),
        _ => "none was started there".to_owned(),
    };
    let ids: Vec<_> = without.iter().map(|open| open.id.clone()).collect();
    let what = format!(
        "{} of {} without a watcher ({}): {why}",
        ids.len(),
        count(open.len(), "open session"),
        some(&ids)
    );
    Line::broken(NAME, what, restart(&first.id))
}

/// Whether somebody would tell of a background session that gets stuck.
pub fn background(facts: &Sessions) -> Line {
    const NAME: &str = "background";
    let theirs: Vec<_> = facts.open.iter().filter(|open| open.kind == Kind::Bg).collect();
    if theirs.is_empty() {
        return Line::ok(NAME, "no background session runs");
    }
    let running = count(theirs.len(), "background session");
    if matches!(facts.timer, Timer::Set(_)) {
        return Line::ok(NAME, format!("{running}, and the timer looks at them"));
    }
    if theirs.iter().all(|open| open.watcher == Watcher::Runs) {
        return Line::ok(NAME, format!("{running}, each with a watcher"));
    }
    if facts.open.iter().any(|open| open.watcher == Watcher::Runs) {
        return Line::ok(
            NAME,
            format!("{running}, and another session's watcher looks at them while it is open"),
        );
    }
    let what =
        format!("{running} with neither a watcher nor a timer: nobody would tell of one that gets stuck");
    Line::broken(NAME, what, "longhaul setup --timer")
}

/// Whether the timer runs, where it was set up.
pub fn timer(facts: &Sessions) -> Line {
    const NAME: &str = "timer";
    match &facts.timer {
        Timer::None => Line::ok(NAME, "not set up"),
        Timer::Set(name) => Line::ok(NAME, name),
        Timer::Broken(why) => Line::broken(NAME, why, "longhaul setup --timer"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Mark;
    use super::super::line::broken;
    use super::*;

    fn open(id: &str) -> Open {
        Open {
            id: id.into(),
            kind: Kind::Interactive,
            beats: true,
            watcher: Watcher::Runs,
            own: false,
            fresh: false,
        }
    }

    fn with(open: Vec<Open>) -> Sessions {
        Sessions {
            open,
            newest: Some(5_000),
            readable: true,
            hooks_off: None,
            background_stays: false,
            timer: Timer::None,
        }
    }

    #[test]
    fn hooks_that_do_not_fire_are_told() {
        assert_eq!(hooks(&with(vec![open("a")])), Line::ok("hooks", "newest beat 5s ago"));
        assert_eq!(hooks(&Sessions { newest: None, ..with(vec![]) }).mark, Mark::Note);
        let silent = |own| Open { beats: false, own, ..open("s") };
        let resume = "leave it with /exit, then claude --resume s";
        broken(&hooks(&Sessions { newest: None, ..with(vec![silent(false)]) }), "1 session is open", resume);
        broken(&hooks(&with(vec![silent(false)])), "none of the 1 session open: s", resume);
        broken(&hooks(&with(vec![open("a"), silent(true)])), "none of this session", resume);
        assert_eq!(hooks(&with(vec![open("a"), silent(false)])).mark, Mark::Note);
        let unreadable = Sessions { readable: false, newest: None, ..with(vec![silent(true)]) };
        assert_eq!(hooks(&unreadable).mark, Mark::Note);
        let fresh = Open { fresh: true, ..silent(true) };
        assert_eq!(hooks(&with(vec![open("a"), fresh])).mark, Mark::Ok);
    }

    #[test]
    fn all_hooks_off_is_told_by_both_lines_that_suffer() {
        let off = |managed| Sessions {
            hooks_off: Some(("/c/settings.json".into(), managed)),
            ..with(vec![open("a")])
        };
        for check in [hooks, monitor] {
            broken(&check(&off(false)), "/c/settings.json", "take disableAllHooks out of /c/settings.json");
            broken(&check(&off(true)), "/c/settings.json", "ask whoever administers this machine");
        }
    }

    #[test]
    fn a_session_without_a_watcher_is_told_with_why() {
        assert_eq!(monitor(&with(vec![])).mark, Mark::Ok);
        assert_eq!(
            monitor(&with(vec![open("a"), open("b")])),
            Line::ok("monitor", "armed in 2 open sessions")
        );
        for (watcher, part) in [
            (Watcher::None, "none was started"),
            (Watcher::Ended(None), "has died"),
            (Watcher::Ended(Some("full disk".into())), "by itself: full disk"),
        ] {
            let line = monitor(&with(vec![open("a"), Open { watcher, ..open("b") }]));
            broken(&line, part, "leave it with /exit, then claude --resume b");
            assert!(line.what.contains("1 of 2 open sessions"), "{line:?}");
        }
        for kind in [Kind::Headless, Kind::Bg] {
            let own = Open { kind, own: true, watcher: Watcher::None, ..open("a") };
            assert_eq!(monitor(&with(vec![own])).mark, Mark::Note);
        }
    }

    #[test]
    fn a_background_session_that_nobody_looks_at_is_told() {
        let alone = Open { kind: Kind::Bg, watcher: Watcher::None, ..open("b") };
        broken(&background(&with(vec![alone.clone()])), "neither", "longhaul setup --timer");
        assert_eq!(background(&with(vec![open("a")])).mark, Mark::Ok);
        assert_eq!(background(&with(vec![alone.clone(), open("a")])).mark, Mark::Ok);
        let timed = Sessions { timer: Timer::Set("longhaul.timer".into()), ..with(vec![alone]) };
        assert_eq!(background(&timed).mark, Mark::Ok);
        assert_eq!(timer(&timed), Line::ok("timer", "longhaul.timer"));
        let dead = Sessions { timer: Timer::Broken("it is not enabled".into()), ..with(vec![]) };
        broken(&timer(&dead), "not enabled", "longhaul setup --timer");
    }
}
