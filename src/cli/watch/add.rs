//! `longhaul watch add`: begins to watch something for a session.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Map;

use super::registry::{bound, is_under_a_client, unread, value, warn};
use crate::base::id::SessionId;
use crate::base::shell::{NotPlain, word, words};
use crate::base::span::{self, rough};
use crate::base::text::{clean, fit};
use crate::cli::page::{Look, Page};
use crate::cli::{print, print_json, select};
use crate::client::session_file;
use crate::host::{Host, lies_in, process, resolved};
use crate::store::Store;
use crate::store::watches::{Bound, Maker, Place, Progress, State, Subject, Watch};
use crate::watches::filter;
use crate::watches::follow::Follower;
use crate::watches::pick::project_of;
use crate::watches::wording;

/// Watch something for this session, until it is removed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  longhaul watch add --file build.log --match 'error|FAILED' --name build
  longhaul watch add --stream 'kubectl logs -f pod/x' --match panic
  longhaul watch add --command 'gh run view 42 --json status' --every 60s --until-match completed
  longhaul watch add --command \"sh -c 'df -h / | tail -1'\" --every 10m
  longhaul watch add --process 4242
  longhaul watch add --after 40m 'look at the deployment'
  longhaul watch add --sessions

Patterns are regular expressions. Commands are run without a shell, unless it is named as above; in this directory, \
             without the variables of Claude Code and its keys. A file may come, go, be rotated or emptied.")]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// What to say when the time of --after has come
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// With --file: count the lines that are there already, too
    #[arg(long, value_name = "start|now", value_parser = ["start", "now"])]
    from: Option<String>,
    /// With --command: from one start to the next, at least 5s [default: 60s]
    #[arg(long, value_name = "SPAN", value_parser = a_span)]
    every: Option<i64>,
    /// With --command: end a run that takes longer [default: 60s]
    #[arg(long, value_name = "SPAN", value_parser = a_span)]
    timeout: Option<i64>,
    /// Only lines that match count
    #[arg(long = "match", value_name = "REGEX")]
    matching: Option<String>,
    /// End once a line, or the output, matches; that is told
    #[arg(long, value_name = "REGEX")]
    until_match: Option<String>,
    /// End with the first thing that is told
    #[arg(long)]
    once: bool,
    /// End after so long: a number and s, m, h, d or w
    #[arg(long = "for", value_name = "SPAN", value_parser = a_span)]
    lasting: Option<i64>,
    /// How it is called
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// So many times an hour it speaks at once; the rest is summed up
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    most: u64,
    /// Whose it is: any session of the project runs it when this one is gone, or none [default: project for files,
    /// session for the rest]
    #[arg(long, value_name = "project|session", value_parser = ["project", "session"])]
    bind: Option<String>,
    /// The session by its id [default: the one this shell runs in, else the one open in this directory]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Lines that a file gets from now on
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Lines of a long-running command, which is started again when it ends
    #[arg(long, value_name = "COMMAND")]
    stream: Option<String>,
    /// The output of a command, whenever it has changed
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// The end of a process, with its exit status where that can be had
    #[arg(long, value_name = "PID")]
    process: Option<u32>,
    /// A moment: so long from now
    #[arg(long, value_name = "SPAN", value_parser = a_span)]
    after: Option<i64>,
    /// Sessions that stall, wait or die
    #[arg(long)]
    sessions: bool,
}

/// The shortest pace of a command, what it is by itself, and the longest run, ms.
const EVERY_LEAST_MS: i64 = 5_000;
const EVERY_MS: i64 = 60_000;
const TIMEOUT_MS: i64 = 60_000;
const TIMEOUT_MOST_MS: i64 = 3_600_000;
/// The longest span that is taken, ten years, ms.
const SPAN_MOST_MS: i64 = 3_653 * 24 * 3_600_000;
/// So many at once.
const ACTIVE_MOST: usize = 100;
/// A watch that ended so long ago is forgotten, ms.
const ENDED_MS: i64 = 30 * 24 * 3_600_000;
/// The longest name, in cells, and the longest text, in bytes.
const NAME_CELLS: usize = 40;
const TEXT_MOST: usize = 4_000;

/// A span that is longer than nothing, and that a clock can add to itself.
pub fn a_span(text: &str) -> Result<i64, String> {
    let span = span::parse(text).filter(|span| (1..=SPAN_MOST_MS).contains(span));
    span.ok_or_else(|| {
        "a whole number above 0 with s, m, h, d or w behind it, as 90s; ten years at most".to_owned()
    })
}

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<()> {
    let store = select::place(host)?;
    let here = host.current_dir().context("could not find the current directory")?;
    let subject = subject(args, host, &here)?;
    check(args, &subject)?;
    let maker = maker(args, host, &store)?;
    if let Subject::File { path, .. } = &subject {
        feeds_itself(path, &store, &maker)?;
    }
    let bound = match args.bind.as_deref() {
        Some("project") => Bound::Project,
        None if matches!(subject, Subject::File { .. }) => Bound::Project,
        Some(_) | None => Bound::Session,
    };
    if bound == Bound::Session && maker.session.is_none() {
        bail!(
            "this shell runs in no session and none is open in this directory; name one with --session ID, or let any \
             session of the project run it with --bind project"
        );
    }
    let now_ms = host.now_ms();
    let watch = Watch {
        number: 0,
        name: args
            .name
            .as_deref()
            .map(|name| fit(clean(name).trim(), NAME_CELLS))
            .filter(|name| !name.is_empty()),
        bound,
        state: State::Active,
        by_model: is_under_a_client(host),
        kept: false,
        project: project(host, &store, &maker, &here),
        directory: here,
        matching: args.matching.clone(),
        until: args.until_match.clone(),
        once: args.once,
        until_ms: args.lasting.map(|span| now_ms.saturating_add(span)),
        most: args.most,
        made_ms: now_ms,
        ended: None,
        rest: Map::new(),
        maker,
        subject,
    };
    let place = place(&watch)?;
    let watch = add(&store, watch, place, now_ms)?;
    say(args, host, &store, &watch)
}

/// Writes it down, its place first: nobody may run it before that.
fn add(store: &Store, watch: Watch, place: Option<Place>, now_ms: i64) -> Result<Watch> {
    let added = store.change_watches(|watches| {
        let old = |watch: &Watch| {
            watch.ended.as_ref().is_some_and(|ended| now_ms.saturating_sub(ended.at_ms) > ENDED_MS)
        };
        for gone in watches.all.extract_if(.., |watch| old(watch)) {
            store.forget_watch(gone.number);
        }
        let active = watches.all.iter().filter(|watch| watch.state == State::Active).count();
        if active >= ACTIVE_MOST {
            bail!("{active} watches are active already; remove one that is not needed (longhaul watch list)");
        }
        let number = watches.add(watch);
        store.save_progress(number, &Progress { place, ..Progress::default() })?;
        watches.get(number).cloned().ok_or_else(|| anyhow!("the watch was not written down"))
    });
    let (added, warning) = added.with_context(|| unread(store))?;
    warn(warning.as_deref());
    added
}

/// What is watched, checked as far as it can be now.
fn subject(args: &Args, host: &Host, here: &Path) -> Result<Subject> {
    let what = &args.what;
    if let Some(path) = &what.file {
        return file(&here.join(path), args.from.as_deref() == Some("start"));
    }
    if let Some(line) = &what.stream {
        return Ok(Subject::Stream { argv: argv("--stream", line, host, here)? });
    }
    if let Some(line) = &what.command {
        let every_ms = args.every.unwrap_or(EVERY_MS);
        if every_ms < EVERY_LEAST_MS {
            bail!("--every {} is too often: at least {}", rough(every_ms), rough(EVERY_LEAST_MS));
        }
        let timeout_ms = args.timeout.unwrap_or(TIMEOUT_MS);
        if timeout_ms > TIMEOUT_MOST_MS {
            bail!("--timeout is at most {}; what runs longer is a --stream", rough(TIMEOUT_MOST_MS));
        }
        return Ok(Subject::Command { argv: argv("--command", line, host, here)?, every_ms, timeout_ms });
    }
    if let Some(pid) = what.process {
        let process = process::find(pid).ok_or_else(|| anyhow!("there is no process {pid} now"))?;
        return Ok(Subject::Process { pid, start: process.start });
    }
    if let Some(span) = what.after {
        let text = args.text.as_deref().unwrap_or_default().trim();
        if text.len() > TEXT_MOST {
            bail!("the text has {} bytes, more than {TEXT_MOST}", text.len());
        }
        let due_ms = host.now_ms().saturating_add(span);
        return Ok(Subject::After { due_ms, text: text.to_owned() });
    }
    Ok(Subject::Sessions)
}

fn file(path: &Path, from_start: bool) -> Result<Subject> {
    let name = path.display();
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => {
            bail!(
                "could not watch {name}: it is not a regular file (a stream of lines is --stream 'cat {name}')"
            )
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if !path.parent().is_some_and(Path::is_dir) {
                bail!("could not watch {name}: its directory is not there either");
            }
        }
        Err(error) => return Err(error).with_context(|| format!("could not watch {name}")),
    }
    Ok(Subject::File { path: path.to_path_buf(), from_start })
}

/// An error for a file into which everything goes that a watch tells: it would tell that again, for ever.
fn feeds_itself(path: &Path, store: &Store, maker: &Maker) -> Result<()> {
    let name = path.display();
    if lies_in(path, store.dir()) {
        bail!("could not watch {name}: it is longhaul's own, and what a watch tells is written there");
    }
    let stem = resolved(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if stem.is_some() && stem == maker.session && lies_in(path, &store.config().join("projects")) {
        bail!(
            "could not watch {name}: it is the session's own transcript, and what a watch tells is written there; from \
             another session it can be watched (--session ID)"
        );
    }
    Ok(())
}

/// The words of a command line, whose program is there.
fn argv(option: &str, line: &str, host: &Host, here: &Path) -> Result<Vec<String>> {
    let argv = words(line).map_err(|why| match why {
        NotPlain::Shell(_) => {
            let shell = word(&format!("sh -c {}", word(line)));
            anyhow!("could not take {option} '{line}': {why}, and none is used unless it is named: {option} {shell}")
        }
        why => anyhow!("could not take {option} '{line}': {why}"),
    })?;
    let program = Path::new(&argv[0]);
    let found = if argv[0].contains('/') {
        here.join(program).is_file()
    } else {
        let path = host.env_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| here.join(dir).join(program).is_file())
    };
    if !found {
        bail!(
            "could not find the program {}{}",
            argv[0],
            if argv[0].contains('/') { "" } else { " in PATH" }
        );
    }
    Ok(argv)
}

/// Patterns that can be built, and that there is something to hold against.
fn check(args: &Args, subject: &Subject) -> Result<()> {
    let of = |option: &str, given: bool, fits: bool, what: &str| {
        if given && !fits { Err(anyhow!("{option} goes with {what} alone")) } else { Ok(()) }
    };
    let is_command = matches!(subject, Subject::Command { .. });
    of("--from", args.from.is_some(), matches!(subject, Subject::File { .. }), "--file")?;
    of("--every", args.every.is_some(), is_command, "--command")?;
    of("--timeout", args.timeout.is_some(), is_command, "--command")?;
    of("a text", args.text.is_some(), matches!(subject, Subject::After { .. }), "--after")?;
    for (option, text) in [("--match", &args.matching), ("--until-match", &args.until_match)] {
        let Some(text) = text else { continue };
        if matches!(subject, Subject::Process { .. } | Subject::After { .. }) {
            bail!("{option} is for lines and outputs; a process and a moment have none");
        }
        filter::pattern(text).map_err(|why| anyhow!("could not take {option} '{text}': {why}"))?;
    }
    Ok(())
}

/// The session that it is for, and its client's process where one runs.
fn maker(args: &Args, host: &Host, store: &Store) -> Result<Maker> {
    let own = host.env("CLAUDE_CODE_SESSION_ID");
    let id = match &args.session {
        Some(id) => Some(select::session(host, Some(store), Some(id))?.to_string()),
        // Several sessions here are an error only where one must be meant.
        None => select::own_session_if_any(host)?,
    };
    let Some(id) = id else { return Ok(Maker::default()) };
    let session = SessionId::parse(&id)
        .ok_or_else(|| anyhow!("'{}' is no session id: letters, digits, - and _", id.escape_debug()))?;
    let told = host.env("CLAUDE_PID").filter(|_| own.as_deref() == Some(session.as_str()));
    let file = || session_file::of_session(store.config(), &session)?.pid;
    let client = told.and_then(|pid| pid.parse().ok()).or_else(file).and_then(process::find);
    Ok(Maker {
        session: Some(id),
        pid: client.as_ref().map(|client| client.pid),
        pid_space: client.as_ref().and_then(|_| process::numbering()),
        start: client.and_then(|client| client.start),
    })
}

/// The project: that of its session, which may have been started elsewhere.
fn project(host: &Host, store: &Store, maker: &Maker, here: &Path) -> PathBuf {
    let session = maker.session.as_deref().and_then(SessionId::parse);
    let file = session.and_then(|session| session_file::of_session(store.config(), &session));
    let directory = file.and_then(|file| file.cwd).map_or_else(|| here.to_path_buf(), PathBuf::from);
    project_of(&directory, host.home().as_deref())
}

/// Where it begins: what comes to a file from this moment on counts.
fn place(watch: &Watch) -> Result<Option<Place>> {
    let Subject::File { path, from_start } = &watch.subject else { return Ok(None) };
    let place = Follower::begin(path, *from_start);
    let place = place.with_context(|| format!("could not watch {}", path.display()))?;
    Ok(Some(Place::File(place)))
}

fn say(args: &Args, host: &Host, store: &Store, watch: &Watch) -> Result<()> {
    let watched = watch.maker.pid.and_then(|pid| store.watcher(pid)).is_some_and(|stamp| stamp.runs());
    if args.json {
        let mut value = value(store, watch);
        value["watcher_runs"] = watched.into();
        return print_json(&value);
    }
    let number = watch.number;
    let mut page = Page::new(host);
    page.line(&[
        (Look::Strong, &format!("Watch {number}: ")),
        (Look::Plain, &wording::subject(&watch.subject)),
    ]);
    let limits = wording::limits(watch);
    if !limits.is_empty() {
        page.line(&[(Look::Plain, &format!("  {}", limits.join(", ")))]);
    }
    page.line(&[(Look::Plain, &format!("  for {}; longhaul watch remove {number} ends it", bound(watch)))]);
    if let Subject::File { path, .. } = &watch.subject
        && !path.exists()
    {
        page.line(&[(Look::Warn, "  the file is not there yet; it is waited for")]);
    }
    if watch.maker.session.is_none() {
        page.line(&[(
            Look::Warn,
            "  a session of the project watches it; where none is open, the next one does",
        )]);
    } else if !watched {
        let hint = format!(
            "  no watcher runs in this session: longhaul watch wait {number} blocks until there is something to tell"
        );
        page.line(&[(Look::Warn, &hint)]);
    }
    print(page.text())
}
