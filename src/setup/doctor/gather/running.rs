//! Sessions that run, their watchers, the timer, who draws their line, and the wall of one of them.

use std::path::PathBuf;

use super::{Around, own_session};
use crate::base::id::SessionId;
use crate::client::plugins::strongest;
use crate::client::program::Version;
use crate::client::session_file::SessionFile;
use crate::client::settings::Origin;
use crate::client::wiring::{self, PROGRAM, WRAPPER, Wiring};
use crate::gauge::gather::{Leaves, Subject, take};
use crate::gauge::wording;
use crate::liveness::sweep::{Request, sweep};
use crate::liveness::verdict::Limits;
use crate::setup::doctor::plugin::{Client, Plugin};
use crate::setup::doctor::sessions::{Open, Sessions, Timer, Watcher};
use crate::setup::doctor::statusline::{Figures, Setup, StatusLine, Wall};
use crate::setup::programs::PROGRAMS;
use crate::setup::{command, timer};
use crate::store::beats::Kind;
use crate::store::config::Beside;
use crate::store::session::Slot;

/// Hooks and watcher come to a session within moments of its start, in ms.
const FRESH_MS: i64 = 15_000;
/// How long a transcript may be read for the wall, in ms.
const WALL_MS: u64 = 10_000;

fn age(around: &Around<'_>, file: &SessionFile) -> Option<i64> {
    let started = i64::try_from(file.started_at?).ok()?;
    Some(around.host.now_ms().saturating_sub(started))
}

/// What sessions left and what of ours runs beside them.
pub fn sessions(around: &Around<'_>) -> Sessions {
    let config = around.config.clone().unwrap_or_default();
    let limits = Limits::of(&config.liveness, None, None);
    let swept = sweep(around.host, around.store, &Request { limits, ended: true, prune_ms: 0 });
    let readable = swept.is_ok();
    let swept = swept.map(|swept| swept.sessions).unwrap_or_default();
    let newest = swept.iter().filter_map(|session| Some(session.facts.main.as_ref()?.ago)).min();
    let own = own_session(around.host);
    let open = around.open.iter().filter_map(|file| {
        let id = SessionId::parse(file.session_id.as_deref()?)?;
        let session = swept.iter().find(|session| session.id == id);
        let watcher = match around.store.watcher(file.pid?) {
            None => Watcher::None,
            Some(stamp) if stamp.runs() => Watcher::Runs,
            Some(stamp) => Watcher::Ended(stamp.ended),
        };
        let by_program = file.entrypoint.as_ref().is_some_and(|entry| entry.starts_with("sdk"));
        let said = match file.kind.as_deref() {
            Some("bg") => Kind::Bg,
            _ if by_program => Kind::Headless,
            _ => Kind::Interactive,
        };
        Some(Open {
            kind: session.map_or(said, |session| session.kind),
            beats: session.is_some_and(|session| session.facts.main.is_some()),
            watcher,
            own: own.as_ref() == Some(&id),
            fresh: age(around, file).is_some_and(|age| age < FRESH_MS),
            id: id.to_string(),
        })
    });
    let off = strongest(&around.whole, |all| all.get("disableAllHooks")?.as_bool()).filter(|(off, _)| *off);
    Sessions {
        open: open.collect(),
        newest,
        readable,
        hooks_off: off.map(|(_, scope)| (scope.place.clone(), scope.origin == Origin::Managed)),
        background_stays: config.watch.background,
        timer: timer(around),
    }
}

/// The timer as setup's record and the system's own files have it.
fn timer(around: &Around<'_>) -> Timer {
    let made = &around.record.timer;
    if !made.brought {
        return Timer::None;
    }
    let way = made.way.as_deref().unwrap_or("timer");
    let program = command::installed(around.store, PROGRAMS[0]);
    if !program.is_file() {
        return Timer::Broken(format!("the {way} timer starts {}, which is gone", program.display()));
    }
    let Some(home) = around.host.home() else { return Timer::Set(way.to_owned()) };
    let units = match way {
        "systemd" => {
            let configs = [around.host.env_path("XDG_CONFIG_HOME"), Some(home.join(".config"))];
            let file = timer::systemd_file(around.host, around.store);
            configs.into_iter().flatten().map(|config| config.join(&file)).collect()
        }
        "launchd" => vec![home.join(timer::launchd_file(around.host, around.store))],
        // A crontab is told by a program alone.
        _ => return Timer::Set(format!("{way}, as set up")),
    };
    let Some(unit) = units.iter().find(|unit| unit.is_file()) else {
        let place = units.last().map(|unit| unit.display().to_string()).unwrap_or_default();
        return Timer::Broken(format!("the {way} timer was set up, and {place} is gone"));
    };
    let wanted = unit.with_file_name("timers.target.wants").join(unit.file_name().unwrap_or_default());
    if way == "systemd" && wanted.symlink_metadata().is_err() {
        return Timer::Broken(format!("{} is not enabled", unit.display()));
    }
    Timer::Set(format!("{way}, {}", unit.display()))
}

/// Who draws the gauge.
pub fn statusline(around: &Around<'_>, client: &Client, plugin: &Plugin) -> StatusLine {
    let store = around.store;
    let found = around.settings.scopes.iter().find(|scope| scope.values.status_command.is_some());
    let command = found.and_then(|scope| scope.values.status_command.as_deref());
    let record = &around.record;
    let loads = |entry: &crate::setup::doctor::plugin::Entry| entry.enabled == Some(true) && entry.there;
    StatusLine {
        wiring: wiring::classify(command),
        place: found.map_or_else(String::new, |scope| scope.origin.to_string()),
        gone: command.and_then(|command| gone(around, command)),
        setup: match &record.settings {
            Some(wiring)
                if wiring.path == wiring::user_settings(store.config())
                    && wiring::classify(Some(&wiring.command)) != Wiring::None =>
            {
                Setup::Wrote
            }
            _ if record.declined => Setup::Declined,
            _ => Setup::Nothing,
        },
        off: around.config.as_ref().is_ok_and(|config| config.statusline == Beside::Off),
        client: client.version(),
        loaded: plugin.entries.iter().any(loads) || !plugin.given.is_empty(),
    }
}

/// What a command of ours runs and is not there, as far as its text says where that is.
fn gone(around: &Around<'_>, line: &str) -> Option<PathBuf> {
    let stable = command::program(around.store);
    let wrapper = around.store.dir().join(WRAPPER);
    let by_stable = command::our_program(around.store).is_ok_and(|ours| line.contains(&ours));
    let named: Vec<PathBuf> = if line.contains(WRAPPER) {
        vec![wrapper, stable]
    } else if by_stable || line.contains(wiring::BY_HAND) {
        vec![stable]
    } else {
        let words = line.split(|c: char| c.is_whitespace() || "'\"|;&".contains(c));
        words.filter(|word| word.starts_with('/') && word.ends_with(PROGRAM)).map(PathBuf::from).collect()
    };
    named.into_iter().find(|path| !path.is_file())
}

/// The wall of this shell's session, else of the one that beat last.
pub fn wall(around: &Around<'_>) -> Wall {
    let store = around.store;
    let Some(id) = own_session(around.host).or_else(|| last_beat(around)) else {
        return Wall::default();
    };
    let file = around.open.iter().find(|file| file.session_id.as_deref() == Some(id.as_str()));
    let own = own_session(around.host).as_ref() == Some(&id);
    let subject = Subject {
        session: Some(id.clone()),
        project: around.project.clone().filter(|_| own),
        inside: own,
        leaves: Leaves::Nothing,
        ..Subject::default()
    };
    let reading = take(around.host, Some(store), &subject, WALL_MS).reading;
    // Nobody has seen the module run in a background session.
    let runs_module = file.filter(|file| file.kind.as_deref() != Some("bg"));
    let started = runs_module.and_then(|file| i64::try_from(file.started_at?).ok());
    let responded = started.zip(reading.figures.context_at).is_some_and(|(started, at)| at > started);
    Wall {
        session: Some(id.to_string()),
        tokens: reading.wall.tokens,
        source: wording::source(reading.wall.source).to_owned(),
        figures: match reading.client {
            Some(_) => Figures::Fit,
            None if store.load(&id, Slot::Client).is_some() => Figures::Old,
            None => Figures::None,
        },
        responded,
        client: file.and_then(|file| Version::parse(file.version.as_deref()?)),
        clamped: reading.formula.clamped,
        past: reading.past_wall(),
    }
}

/// Of the sessions that are open the one that beat last.
fn last_beat(around: &Around<'_>) -> Option<SessionId> {
    let place = around.store.beats().ok()??;
    let open = around.open.iter().filter_map(|file| SessionId::parse(file.session_id.as_deref()?));
    let beaten = open.filter_map(|id| Some((place.main(&id)?, id)));
    let main = beaten.filter(|(main, _)| main.kind != Some(Kind::Headless));
    main.max_by_key(|(main, _)| main.at).map(|(_, id)| id)
}
