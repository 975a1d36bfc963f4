//! `longhaul sessions`: every session and how it is, for people, programs and timers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::page::{Look, Page};
use super::{print, print_json, select};
use crate::base::text::{clean, fit, pad, width};
use crate::base::tokens;
use crate::client::session_file::Status;
use crate::gauge::gather::{Leaves, Subject, take};
use crate::host::clock::Deadline;
use crate::host::{Host, lies_in, terminal};
use crate::liveness::sweep::{Request, Session, sweep};
use crate::liveness::tell;
use crate::liveness::verdict::{Facts, Limits, Pulse, Verdict};
use crate::liveness::wording::described;
use crate::store::Store;

/// List all sessions, the longest silent first: verdict, silence, name, phase, project, share of the wall
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools)] // Each is an option of its own.
#[command(after_help = HELP)]
pub struct Args {
    /// Only those of this project
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// With those that have ended
    #[arg(long)]
    all: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Tell by the exit code whether anything is stale or dead
    #[arg(long)]
    check: bool,
    /// Tell the person what has become of a session, once: by the desktop, or as "notify" in config.json says
    #[arg(long, conflicts_with = "project")]
    notify: bool,
    /// A session may be stuck after this many seconds without a movement, a request to the model too
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(i64).range(1..=31_622_400))]
    stale: Option<i64>,
    /// It is stuck, most likely, after this many
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(i64).range(1..=31_622_400))]
    dead: Option<i64>,
}

const HELP: &str = "Examples:
  longhaul sessions
  longhaul sessions --project . --json
  longhaul sessions --check || echo \"somebody should look\"   (for cron, systemd and launchd)
  longhaul sessions --notify > /dev/null                     (tells you of each, once)

Verdicts: working, waiting (for you), idle, background (tasks run on), stale? and dead? (busy, and \
nothing moves), dead (the process is gone), parked (in the background, stopped while idle), \
completed. Nothing but movement counts: a tool has until its own time limit.

Exit codes with --check: 0 all is well, 1 something is stale or dead, 3 it cannot be told, 2 wrong usage.";

/// With `--check`: it cannot be told.
const UNKNOWN: u8 = 3;
/// How long old beats are taken away, in ms.
const PRUNE_MS: u64 = 200;
/// How long shares of the wall are looked up: of one session, and of all, in ms.
const SHARE_MS: u64 = 40;
const SHARES_MS: u64 = 400;
/// The widest name in a line of output that is no terminal, and the narrowest in one, in cells.
const NAME_MOST: usize = 48;
const NAME_LEAST: usize = 12;

/// Runs the verb.
pub fn run(args: &Args, host: &Host) -> Result<ExitCode> {
    match listed(args, host) {
        Ok(code) => Ok(code),
        Err(error) if args.check => {
            let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(&format!("{error:#}")));
            Ok(ExitCode::from(UNKNOWN))
        }
        Err(error) => Err(error),
    }
}

fn listed(args: &Args, host: &Host) -> Result<ExitCode> {
    let store = select::place(host)?;
    let config = store.config_for(host).map_err(|why| anyhow!(why))?;
    let limits = Limits::of(&config.liveness, args.stale, args.dead);
    let now = tell::moment(host);
    let swept = sweep(host, &store, &Request { limits, ended: args.all, prune_ms: PRUNE_MS })?;
    let untold = swept.told();
    let mut sessions = swept.sessions;
    tell::drop_failed_children(&store, &mut sessions);
    if args.notify {
        super::tell::tell(host, &store, &config, &sessions, &now)?;
    }
    if let Some(project) = &args.project {
        let project = std::path::absolute(project)?;
        sessions
            .retain(|session| session.project.as_ref().is_some_and(|own| lies_in(Path::new(own), &project)));
    }
    let bad = sessions.iter().any(|session| session.judged.verdict.is_bad());
    if args.json {
        let shares = shares(host, &store, &sessions);
        let all: Vec<_> = sessions.iter().zip(shares).map(|(session, share)| value(session, share)).collect();
        print_json(&all)?;
    } else if sessions.is_empty() {
        print("There are no sessions.\n")?;
    } else {
        let shares = shares(host, &store, &sessions);
        let mut page = Page::new(host);
        table(&mut page, host, &sessions, &shares);
        print(page.text())?;
    }
    match untold {
        Err(why) if args.check => Err(why.into()),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "longhaul: {}", clean(&why.to_string()));
            Ok(ExitCode::SUCCESS)
        }
        Ok(()) => Ok(if args.check && bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }),
    }
}

/// How much of the wall each session uses, in percent, as far as that is found out in time.
fn shares(host: &Host, store: &Store, sessions: &[Session]) -> Vec<Option<u64>> {
    let until = Deadline::after_ms(SHARES_MS);
    let share = |session: &Session| {
        if until.passed() || session.judged.verdict == Verdict::Completed {
            return None;
        }
        let subject =
            Subject { session: Some(session.id.clone()), leaves: Leaves::Progress, ..Subject::default() };
        let reading = take(host, Some(store), &subject, SHARE_MS).reading;
        Some(tokens::percent(reading.context?.tokens, reading.wall.tokens))
    };
    sessions.iter().map(share).collect()
}

fn seconds(ms: i64) -> i64 {
    ms.max(0) / 1000
}

/// A session as programs get it.
fn value(session: &Session, share: Option<u64>) -> Value {
    let mut value = described(session);
    value["context_percent"] = json!(share);
    value["facts"] = facts(&session.facts, session.restarted);
    value
}

/// What a verdict rests on; spans are in seconds before now, and null is what could not be read.
fn facts(facts: &Facts, restarted: Option<i64>) -> Value {
    let pulse = |pulse: &Pulse| json!({ "phase": pulse.phase, "ago_s": seconds(pulse.ago) });
    let tools: Vec<_> = facts
        .tools
        .iter()
        .map(|tool| {
            json!({ "tool": tool.name, "in_subagent": tool.agent.is_some(), "ago_s": seconds(tool.ago),
                "allowed_s": tool.allowed.map(seconds), "detail": tool.detail })
        })
        .collect();
    json!({
        "beat": facts.main.as_ref().map(pulse),
        "tools": tools,
        "subagents": facts.agents.iter().map(pulse).collect::<Vec<_>>(),
        "process_runs": facts.runs,
        "client": facts.client.as_ref().map(|client| json!({
            "status": client.status.map(Status::word),
            "waiting_for": client.waiting_for,
            "since_s": client.since.map(seconds),
            "updated_s": client.updated.map(seconds),
        })),
        "shows_another": facts.left,
        "job": facts.job.as_ref().map(|job| json!({ "blocked": job.blocked, "needs": job.needs,
            "crashed": job.crashed, "over": job.over })),
        "transcript_s": facts.transcript.map(seconds),
        "stream": facts.stream.map(|stream| json!({ "ago_s": stream.ago.map(seconds) })),
        "restarted": restarted,
    })
}

fn look(verdict: Verdict) -> Look {
    match verdict {
        Verdict::Working | Verdict::Background => Look::Good,
        Verdict::Waiting | Verdict::Stale => Look::Warn,
        Verdict::DeadLike | Verdict::Dead => Look::Bad,
        Verdict::Idle => Look::Plain,
        Verdict::Parked | Verdict::Completed => Look::Faint,
    }
}

/// A line for each session.
fn table(page: &mut Page, host: &Host, sessions: &[Session], shares: &[Option<u64>]) {
    let titles: Vec<String> = sessions.iter().map(title).collect();
    let phases: Vec<String> = sessions.iter().map(phase).collect();
    let projects: Vec<String> = sessions.iter().map(project).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let columns = terminal::stdout_columns(host);
    let taken = 10 + 9 + 2 + widest(&phases) + 2 + widest(&projects) + 6;
    let room =
        columns.map_or(NAME_MOST, |columns| columns.saturating_sub(taken).clamp(NAME_LEAST, NAME_MOST));
    let titles: Vec<String> = titles.iter().map(|title| fit(title, room)).collect();
    let (names, phases_wide, projects_wide) = (widest(&titles), widest(&phases), widest(&projects));
    for (at, session) in sessions.iter().enumerate() {
        let verdict = session.judged.verdict;
        let silence = format!("{:>8}s  ", seconds(session.judged.silence));
        let share = shares[at].map_or_else(|| "   –".to_owned(), |share| format!("{share:>3}%"));
        page.line(&[
            (look(verdict), &format!("{:<10}", verdict.word())),
            (Look::Plain, &silence),
            (Look::Strong, &pad(&titles[at], names)),
            (Look::Plain, &format!("  {}", pad(&phases[at], phases_wide))),
            (Look::Faint, &format!("  {}  ", pad(&projects[at], projects_wide))),
            (Look::Plain, &share),
        ]);
    }
}

fn title(session: &Session) -> String {
    clean(session.name.as_deref().unwrap_or(session.id.as_str()))
}

/// The widest phase with what it is about, in cells.
const PHASE_MOST: usize = 40;

fn phase(session: &Session) -> String {
    let judged = &session.judged;
    let asked = judged.detail.as_ref().filter(|_| judged.verdict == Verdict::Waiting);
    let phase = judged.phase.to_string();
    let text = match asked {
        Some(asked) => asked.clone(),
        None if judged.suspected => format!("{phase}, suspected"),
        None => phase,
    };
    format!("({})", fit(&clean(&text), PHASE_MOST))
}

fn project(session: &Session) -> String {
    let name = session.project.as_deref().map(Path::new).and_then(Path::file_name);
    fit(&clean(&name.unwrap_or_default().to_string_lossy()), 24)
}
