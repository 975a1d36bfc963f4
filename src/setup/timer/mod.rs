//! A timer that looks after sessions while none is open: every three minutes it runs
//! `longhaul sessions --check --notify`.
//!
//! By what: a systemd user timer where such a manager answers, a launchd agent where there is launchd, else a
//! line of the person's crontab. Each knows what is there, shows the exact change, and touches only its own.

mod crontab;
mod launchd;
mod systemd;
mod units;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::extra::{Step, There, Why, Wish, agreed, kept, step};
use super::report::Part;
use super::{About, Question, command};
use crate::base::id::digest;
use crate::host::{Host, files};
use crate::store::Store;
use crate::store::setup::Extra;

/// Every so many minutes.
const MINUTES: u32 = 3;
/// What the timer runs, after the program's path.
const ARGUMENTS: [&str; 3] = ["sessions", "--check", "--notify"];
/// By this a file or a line is known as ours.
const MARK: &str = "by longhaul setup, whose undo takes it away";

/// What is to be run, and with which variables.
#[derive(Debug, Clone)]
struct Job {
    program: String,
    env: Vec<(&'static str, String)>,
    /// Tells the timers of several configuration directories apart.
    name: String,
}

impl Job {
    fn of(host: &Host, store: &Store) -> Result<Self> {
        let config = text(store.config())?;
        let mut env = vec![("CLAUDE_CONFIG_DIR", config.clone())];
        env.extend(bus(host).map(|bus| ("DBUS_SESSION_BUS_ADDRESS", bus)));
        let program = command::installed(store, "longhaul");
        Ok(Self { program: text(&program)?, env, name: name(host, store) })
    }
}

/// The timer's name: another one for each configuration directory but the usual one.
fn name(host: &Host, store: &Store) -> String {
    let usual = host.home().map(|home| home.join(".claude"));
    if usual.as_deref() == Some(store.config()) {
        return "longhaul".to_owned();
    }
    format!("longhaul-{:08x}", digest(&[store.config().as_os_str().as_encoded_bytes()]) >> 32)
}

/// The file that a systemd timer is known by, below the manager's configuration directory.
pub fn systemd_file(host: &Host, store: &Store) -> PathBuf {
    systemd::file(&name(host, store))
}

/// The file that a launchd agent is known by, below the home directory.
pub fn launchd_file(host: &Host, store: &Store) -> PathBuf {
    launchd::file(&launchd::label(&name(host, store)))
}

/// A path as it can stand in a line of a file that others read.
fn text(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => bail!(
            "could not make a timer for {}: the path is not plain text; move it, or set CLAUDE_CONFIG_DIR",
            path.display()
        ),
    }
}

/// Where the desktop of this session listens (Linux). Within the client a project may have set the variable.
fn bus(host: &Host) -> Option<String> {
    let named = host.env("DBUS_SESSION_BUS_ADDRESS").filter(|_| !host.has_env("CLAUDECODE"));
    let named = named.filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    named.or_else(|| {
        let usual = format!("/run/user/{}/bus", files::user());
        (cfg!(target_os = "linux") && Path::new(&usual).exists()).then(|| format!("unix:path={usual}"))
    })
}

/// One way to have something run at intervals, as it stands on this machine.
trait Way {
    /// Its name in the record.
    fn name(&self) -> &'static str;
    /// What is changed, for people.
    fn place(&self) -> PathBuf;
    /// What is there.
    fn there(&self) -> There;
    /// The change as a unified diff: brought, or taken away.
    fn diff(&self, brings: bool) -> String;
    /// Brings it, and says what of it a later undo has to know as made.
    fn bring(&self) -> Result<Vec<PathBuf>>;
    /// Takes it away.
    fn take(&self, record: &Extra) -> Result<()>;
    /// What keeps it from being run though it is there.
    fn doubt(&self) -> Option<String> {
        None
    }
}

/// The way that works here. An error says why there is none.
fn find(host: &Host, store: &Store, untrusted: &[PathBuf]) -> Result<Box<dyn Way>> {
    let job = Job::of(host, store)?;
    if let Some(way) = launchd::find(host, &job, untrusted)? {
        return Ok(Box::new(way));
    }
    if let Some(way) = systemd::find(host, &job, untrusted)? {
        return Ok(Box::new(way));
    }
    if let Some(way) = crontab::find(host, &job, untrusted)? {
        return Ok(Box::new(way));
    }
    bail!(
        "there is no way to make a timer here: no systemd user manager answers, and there is no launchctl and no \
         crontab; have `{} {}` run every {MINUTES} minutes by what this machine has",
        job.program,
        ARGUMENTS.join(" ")
    )
}

/// Brings the timer, takes it away or leaves it. Where nobody wants one nothing is looked at.
pub fn carry_out(
    host: &Host,
    store: &Store,
    untrusted: &[PathBuf],
    wish: Wish,
    record: &mut Extra,
    dry_run: bool,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) -> Result<(Part, Option<String>)> {
    let nowhere = |why| (keep(why, Path::new("timer")), None);
    if matches!(wish, Wish::Leave | Wish::Refuse) && !record.brought {
        let why = match (wish, record.declined) {
            (Wish::Refuse, _) => Why::Refused,
            (_, true) => Why::Removed,
            _ => Why::NotAsked,
        };
        kept(why, record);
        return Ok(nowhere(why));
    }
    if wish == Wish::Offer && record.declined {
        return Ok(nowhere(Why::Removed));
    }
    let way = match find(host, store, untrusted) {
        // What nobody asked for need not be possible.
        Err(error) if wish == Wish::Offer => {
            return Ok((Part::of("absent", format!("{error:#}"), Path::new("timer")), None));
        }
        found => found?,
    };
    let place = way.place();
    let step = step(wish, way.there(), record);
    let step = agreed(step, dry_run, confirm, About::Timer, || way.diff(true));
    let every = format!("every {MINUTES} minutes it looks after sessions and tells you of those in trouble");
    let action = if way.there() == There::Old { "updated" } else { "added" };
    let part = match step {
        Step::Offer | Step::Bring if dry_run => Part::of(action, every, &place).with(way.diff(true)),
        Step::Offer | Step::Bring => {
            let made = way.bring()?;
            let made = if action == "updated" { std::mem::take(&mut record.made) } else { made };
            *record = Extra { brought: true, way: Some(way.name().to_owned()), made, declined: false };
            Part::of(action, every, &place)
        }
        Step::Take if dry_run => {
            Part::of("removed", "none is wanted".to_owned(), &place).with(way.diff(false))
        }
        Step::Take => {
            way.take(record)?;
            *record = Extra { declined: true, ..Extra::default() };
            Part::of("removed", "none is wanted".to_owned(), &place)
        }
        Step::Keep(why) => {
            kept(why, record);
            keep(why, &place)
        }
    };
    let runs = matches!(part.action, "added" | "updated" | "unchanged");
    Ok((part, way.doubt().filter(|_| runs)))
}

/// Takes a timer away that was brought. Only where one was, since looking at a crontab is not nothing.
pub fn undo(
    host: &Host,
    store: &Store,
    untrusted: &[PathBuf],
    record: &mut Extra,
    dry_run: bool,
) -> Result<Option<Part>> {
    if !record.brought {
        return Ok(None);
    }
    let job = Job::of(host, store)?;
    let way: Option<Box<dyn Way>> = match record.way.as_deref() {
        Some(systemd::NAME) => Some(Box::new(systemd::here(host, &job, untrusted)?)),
        Some(launchd::NAME) => Some(Box::new(launchd::here(host, &job, untrusted)?)),
        _ => crontab::find(host, &job, untrusted)?.map(|way| Box::new(way) as Box<dyn Way>),
    };
    let Some(way) = way else {
        bail!("could not take the timer away: there is no crontab program any more; run this again with it")
    };
    let place = way.place();
    let ours = matches!(way.there(), There::Current | There::Old);
    let part = if ours {
        Part::of("removed", "setup had made it".to_owned(), &place)
    } else {
        Part::of("absent", "none of longhaul's is there".to_owned(), &place)
    };
    if dry_run {
        return Ok(Some(if ours { part.with(way.diff(false)) } else { part }));
    }
    way.take(record)?;
    *record = Extra::default();
    Ok(Some(part))
}

fn keep(why: Why, place: &Path) -> Part {
    let (action, reason) = match why {
        Why::Current => ("unchanged", "it is there"),
        Why::Foreign => ("kept", "what is there is not this longhaul's, and stays; remove it to have one"),
        Why::Removed => ("kept", "there is none any more; `longhaul setup --timer` makes it again"),
        Why::Refused => ("kept", "none is wanted; `longhaul setup --timer` makes one"),
        Why::NotAsked => {
            ("kept", "none was asked for; `longhaul setup --timer` has sessions looked after every 3 minutes")
        }
    };
    Part::of(action, reason.to_owned(), place)
}
