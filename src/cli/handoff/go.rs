//! `longhaul handoff`: a session handed over to a fresh one that has read it in full, and `handoff retry`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::json;

use super::registry::{self, load, one, resume, say};
use crate::base::text::{clean, fit};
use crate::base::tokens::{percent, short};
use crate::cli::progress::{Display, Exporting};
use crate::cli::select::{self, Selector};
use crate::cli::{print, print_json};
use crate::client::session_file;
use crate::gauge::gather::{Subject, Taken};
use crate::gauge::wording;
use crate::handoff::continuation::{Order, Step, Then, Work};
use crate::handoff::failure::Failure;
use crate::handoff::origin::Origins;
use crate::host::Host;
use crate::host::stop::Stop;
use crate::store::Store;
use crate::store::chains::{Entry, State, Weight};

/// How long a child may take, in seconds, where nobody says.
const TIMEOUT_S: u64 = 1_800;
/// Widest name that is taken as it is typed, in cells.
const NAME_WIDEST: usize = 200;
/// Exit code of a handoff that is not due.
const NOT_DUE: u8 = 3;

/// What is handed over, and how.
#[derive(Debug, Default, clap::Args)]
#[allow(clippy::struct_excessive_bools)] // They are flags.
pub struct GoArgs {
    /// The session by its id, as /status shows it [default: the one this shell runs in, else the one open in this
    /// directory]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A file with a brief that goes with it: state, decisions, open items, standing instructions
    #[arg(long, value_name = "FILE")]
    brief: Option<PathBuf>,
    /// What the new session is called [default: the old one's title and (cont. N)]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// The new session's model [default: the old one's]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What the parts to be read in full may come to [default: a quarter of the new session's wall]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// How long the new session may read, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_S, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Mask credentials in every file of the export
    #[arg(long)]
    redact: bool,
    /// Hand over though the session has room left
    #[arg(long)]
    force: bool,
    /// Export only, however full the session is
    #[arg(long, conflicts_with = "no_wake")]
    prepare: bool,
    /// Everything but the new session's reading; prints the command that does it
    #[arg(long)]
    no_wake: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Go on with a handoff where it ended
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  longhaul handoff retry 20261130T173134Z-3f2a9c1e\n  longhaul handoff retry ID --timeout 3600"
)]
pub struct RetryArgs {
    /// The handoff, or one of its sessions
    #[arg(value_name = "ID")]
    id: String,
    /// How long the new session may read, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_S, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Hands a session over.
pub fn run(args: &GoArgs, host: &Host) -> Result<ExitCode> {
    let store = select::place(host)?;
    let selector = Selector::of(args.session.clone(), None);
    let (subject, taken) = selector.read(host, None, 0)?;
    if !args.prepare
        && !args.force
        && let Some(why) = not_due(&taken)
    {
        if args.json {
            print_json(
                &json!({ "state": "refused", "error": { "kind": "gate", "message": why, "code": NOT_DUE } }),
            )?;
        }
        say(&why);
        return Ok(ExitCode::from(NOT_DUE));
    }
    let order = order(args, host, &store, &subject, &taken)?;
    let then = match (args.prepare, args.no_wake) {
        (true, _) => Then::Nothing,
        (_, true) => Then::ReadLater,
        _ => Then::Read(args.timeout),
    };
    work(host, &store, args.json, |work| work.hand_over(&order, then))
}

/// Takes a handoff up again.
pub fn retry(args: &RetryArgs, host: &Host) -> Result<ExitCode> {
    let (store, entries) = load(host)?;
    let id = one(&entries, &args.id)?.id.clone();
    work(host, &store, args.json, |work| work.retry(&id, args.timeout))
}

/// What a handoff would throw away, where the session has room left. A session whose size nobody knows is handed
/// over: it may be one that cannot speak any more.
fn not_due(taken: &Taken) -> Option<String> {
    use crate::base::tokens::at_least;
    use crate::gauge::weight::GATE;
    let reading = &taken.reading;
    let context = reading.context?;
    if reading.at_wall() || at_least(context.tokens, reading.wall.tokens, GATE) {
        return None;
    }
    let left = short(reading.weight().headroom.unwrap_or(0));
    Some(format!(
        "a handoff is not due: the session stands at {}. It would throw away a context that is warm and {left} tokens \
         of room, to read {} again from a cold cache. --force hands over all the same",
        wording::share(reading),
        short(context.tokens),
    ))
}

fn order(args: &GoArgs, host: &Host, store: &Store, subject: &Subject, taken: &Taken) -> Result<Order> {
    let reading = &taken.reading;
    let Some(transcript) =
        subject.transcript.clone().or_else(|| taken.seen.transcript.clone().map(PathBuf::from))
    else {
        bail!("could not find the session's transcript; `longhaul explain` shows what is known of it");
    };
    if std::fs::metadata(&transcript).is_ok_and(|meta| meta.len() == 0) {
        bail!("the transcript {} is empty: there is nothing to hand over", transcript.display());
    }
    let Some(session) = subject.session.clone() else {
        bail!("could not tell which session that is; name it with --session ID")
    };
    let wall = match &args.model {
        Some(model) => {
            let same = Selector::of(Some(session.to_string()), None);
            same.read(host, Some(model), 0)?.1.reading.wall.tokens
        }
        None => reading.wall.tokens,
    };
    let mut parent = Origins::read(store).link(store, &session, Some(&transcript));
    if let Some(running) = session_file::of_session(store.config(), &session) {
        (parent.pid, parent.started) = (running.pid, running.proc_start);
    }
    let weight = reading.weight();
    let absolute = |path: &PathBuf| host.current_dir().map_or_else(|| path.clone(), |here| here.join(path));
    Ok(Order {
        parent,
        transcript,
        cwd: taken.seen.project.clone().map(PathBuf::from).filter(|dir| dir.is_dir()),
        // A transcript may name anything, and no program can be given a NUL.
        model: args.model.clone().or_else(|| reading.model.clone().filter(|model| clean(model) == *model)),
        wall,
        budget: args.budget.unwrap_or(wall / 4),
        brief: args.brief.as_ref().map(absolute),
        name: args
            .name
            .as_deref()
            .map(|name| fit(clean(name).trim(), NAME_WIDEST))
            .filter(|name| !name.is_empty()),
        redact: args.redact,
        weight: Some(Weight {
            tokens: reading.context.map(|context| context.tokens),
            wall: reading.wall.tokens,
            points: weight.points,
            urgency: format!("{:?}", weight.urgency).to_lowercase(),
        }),
    })
}

/// Does the work, and tells what came of it.
fn work(
    host: &Host,
    store: &Store,
    as_json: bool,
    run: impl FnOnce(&mut Work) -> Result<Entry, Failure>,
) -> Result<ExitCode> {
    let stop = Stop::listen();
    let mut progress = Progress::new();
    let mut tell = |step: Step| progress.show(&step);
    let result = run(&mut Work { host, store, stop: &stop, tell: &mut tell });
    progress.end();
    match result {
        Ok(entry) => {
            if as_json {
                let (resume, retry) = (way_on(&entry), registry::retry(store, &entry));
                print_json(&json!({ "handoff": entry, "resume": resume, "retry": retry }))?;
            } else {
                print(&told(store, &entry))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            if as_json {
                print_json(
                    &json!({ "error": { "kind": failure.kind(), "message": failure.to_string(), "code": failure.code() } }),
                )?;
            }
            say(&failure.to_string());
            Ok(ExitCode::from(failure.code()))
        }
    }
}

/// The command that opens the child, once it has read it all.
fn way_on(entry: &Entry) -> Option<String> {
    resume(entry).filter(|_| entry.state == State::Accepted)
}

fn told(store: &Store, entry: &Entry) -> String {
    let name = clean(&entry.name);
    let Some(resume) = way_on(entry) else {
        return format!(
            "{}\nExported, to go on as \"{name}\". A new session reads it with: {}\n",
            clean(&entry.directory.display().to_string()),
            registry::retry(store, entry).unwrap_or_default()
        );
    };
    let proof = entry.proof.clone().unwrap_or_default();
    let parts = if proof.parts == 1 { "part" } else { "parts" };
    format!(
        "\"{name}\" has read the session in full: {} {parts}, {} marks, proved from its own transcript.\n\n  {}\n\nHandoff {}\n",
        proof.parts,
        proof.marks,
        clean(&resume),
        entry.id
    )
}

/// How far it is, step by step.
struct Progress {
    exporting: Exporting,
    display: Display,
}

impl Progress {
    fn new() -> Self {
        Self { exporting: Exporting::new(), display: Display::default() }
    }

    fn show(&mut self, step: &Step) {
        if let Step::Exporting(share) = step {
            return self.exporting.is_at(*share);
        }
        self.exporting.end();
        match step {
            Step::Exporting(_) => {}
            Step::Exported(parts, tokens) => {
                let noun = if *parts == 1 { "part" } else { "parts" };
                let tokens = short(*tokens);
                self.display.show(&format!("exported: about {tokens} tokens to read in {parts} {noun}"));
            }
            Step::Asked(turn) => self.display.show(&format!("the new session reads (turn {turn})")),
            Step::Read(read, all) => {
                let share = percent(*read as u64, *all as u64);
                self.display.show(&format!("read: {read} of {all} parts ({share} %)"));
            }
            Step::Note(note) => self.display.say(note),
        }
    }

    fn end(&mut self) {
        self.exporting.end();
        self.display.end();
    }
}
