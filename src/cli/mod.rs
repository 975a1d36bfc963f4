//! What people type: the verbs, what they take, and how their results are shown.

mod completions;
mod doctor;
mod explain;
mod export;
mod handoff;
mod jobs;
mod page;
mod progress;
mod sample;
mod select;
mod sessions;
pub mod setup;
mod tell;
mod watch;
mod weigh;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use crate::base::text::clean_json;
use crate::host::{Host, stop};

/// Shows how full a Claude Code session is against the wall that really ends it, and how all sessions are.
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "Examples:
  longhaul explain                        the wall of the session this shell belongs to
  longhaul explain --session ID --json    the same of another one, for programs
  longhaul weigh --transcript FILE        how heavy a session has become
  longhaul export --session ID            write a session out, to be read in full elsewhere
  longhaul sessions                       all sessions: which works, waits, is stuck or is gone
  longhaul watch add --file build.log     tell this session of every new line, without a deadline
  longhaul setup --dry-run                what setup would change, and nothing else
  longhaul doctor                         what keeps longhaul from working, and what mends it

Exit codes: 0 done, 1 could not be done (said on standard error), 2 wrong usage.";

#[derive(Debug, Subcommand)]
enum Verb {
    Explain(explain::Args),
    Weigh(weigh::Args),
    Export(export::Args),
    Handoff(handoff::Args),
    Sessions(sessions::Args),
    Watch(watch::Args),
    Setup(setup::SetupArgs),
    Doctor(doctor::Args),
    Completions(completions::Args),
}

/// Prints a result. A reader that has gone, as `head` does, is no error.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(e).context("could not write to standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a result as JSON that a terminal can show.
fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(&(clean_json(&serde_json::to_string_pretty(value)?) + "\n"))
}

/// Runs what was typed; the exit code where nothing failed.
pub fn run(cli: Cli, host: &Host) -> Result<ExitCode> {
    stop::outlive_limits();
    match cli.verb {
        Verb::Explain(args) => explain::run(&args, host)?,
        Verb::Weigh(args) => weigh::run(&args, host)?,
        Verb::Export(args) => export::run(&args, host)?,
        Verb::Handoff(args) => return handoff::run(&args, host),
        Verb::Sessions(args) => return sessions::run(&args, host),
        Verb::Watch(args) => return watch::run(&args, host),
        Verb::Setup(args) => return setup::run(&args, host),
        Verb::Doctor(args) => return doctor::run(&args, host),
        Verb::Completions(args) => completions::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    /// Verbs that do something themselves, with the words that lead to them.
    fn leaves(command: &clap::Command, path: &str) -> Vec<(String, Option<String>)> {
        let verbs: Vec<_> = command
            .get_subcommands()
            .filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
            .collect();
        if verbs.is_empty() {
            return vec![(path.to_owned(), command.get_after_help().map(ToString::to_string))];
        }
        verbs.iter().flat_map(|verb| leaves(verb, &format!("{path} {}", verb.get_name()))).collect()
    }

    #[test]
    fn every_verb_has_examples_in_its_help_that_are_right() {
        let command = Cli::command();
        command.clone().debug_assert();
        for (path, help) in leaves(&command, "longhaul") {
            let help = help.unwrap_or_default();
            let example = help.lines().find(|line| line.trim_start().starts_with(&path));
            assert!(help.contains("Example") && example.is_some(), "{path}: {help}");
        }
    }

    fn helps(command: &clap::Command) -> Vec<String> {
        let own = command.get_after_help().map(ToString::to_string);
        own.into_iter().chain(command.get_subcommands().flat_map(helps)).collect()
    }

    #[test]
    fn prose_in_help_is_broken_into_lines_by_the_terminal_alone() {
        let is_prose = |line: &str| line.starts_with(|sign: char| !sign.is_whitespace());
        for help in helps(&Cli::command()) {
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                assert!(!(is_prose(pair[0]) && is_prose(pair[1])), "{help}");
            }
        }
    }

    #[test]
    fn each_shell_gets_completions_of_every_verb() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let shell = shell.parse::<clap_complete::Shell>().unwrap();
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "longhaul", &mut text);
            let text = String::from_utf8(text).unwrap();
            for verb in Cli::command().get_subcommands() {
                assert!(text.contains(verb.get_name()), "{shell}: {}", verb.get_name());
            }
        }
    }
}
