//! `longhaul setup`.

use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use owo_colors::OwoColorize as _;

use super::{print, print_json, sample};
use crate::base::text::clean;
use crate::host::{Host, terminal};
use crate::setup::compaction::Compaction;
use crate::setup::decide::Ask;
use crate::setup::extra::Wish;
use crate::setup::report::Report;
use crate::setup::{self, About, Question, Request, plugin};
use crate::store::Store;

/// Install the programs, put the gauge on the status line, and bring what else is wanted
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  longhaul setup --dry-run           what it would change, and nothing else\n  \
                        longhaul setup --wrap-statusline   somebody else's line first, longhaul's below it\n  \
                        longhaul setup --undo              everything as it was"
)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag that people type.
pub struct SetupArgs {
    /// Print what would change, as a diff, and touch nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take everything away again: settings as they were, programs gone, records kept
    #[arg(long, conflicts_with_all = ["statusline", "wrap_statusline", "no_statusline"])]
    pub undo: bool,
    /// Draw the status line by the statusLine command, whatever the client; never over somebody else's
    #[arg(long, conflicts_with_all = ["wrap_statusline", "no_statusline"])]
    pub statusline: bool,
    /// Where somebody else's status line is there, draw it first and longhaul's below it
    #[arg(long, conflicts_with = "no_statusline")]
    pub wrap_statusline: bool,
    /// Install the programs only, leave settings alone, and do so next time as well
    #[arg(long)]
    pub no_statusline: bool,
    /// Link the program into ~/.local/bin, never over anything that is there
    #[arg(long, conflicts_with_all = ["no_link", "undo"])]
    pub link: bool,
    /// No such link: take one away that is there, and offer none again
    #[arg(long, conflicts_with = "undo")]
    pub no_link: bool,
    /// Have sessions looked after every 3 minutes while none is open: by systemd, launchd or your crontab
    #[arg(long, conflicts_with_all = ["no_timer", "undo"])]
    pub timer: bool,
    /// No such timer: take one away that is there, and offer none again
    #[arg(long, conflicts_with = "undo")]
    pub no_timer: bool,
    /// From a checkout: install the plugin into Claude Code, from a tree among longhaul's files
    #[arg(long, conflicts_with_all = ["no_plugin", "undo"])]
    pub plugin: bool,
    /// Leave Claude Code without it: take it out where setup had installed it, and offer it no more
    #[arg(long, conflicts_with = "undo")]
    pub no_plugin: bool,
    /// Switch compaction off in your settings, after a typed yes: a session then ends in a refusal
    #[arg(long, requires = "window", conflicts_with = "undo")]
    pub disable_compact: bool,
    /// With --disable-compact: the window that the model is to be taken to have
    #[arg(long, value_name = "TOKENS", requires = "disable_compact",
        value_parser = clap::value_parser!(u64).range(100_000..=10_000_000))]
    pub window: Option<u64>,
    /// With --disable-compact: even a window that the model is not known to have
    #[arg(long, requires = "disable_compact")]
    pub force: bool,
    /// Ask nothing; never implies --timer, --disable-compact or --wrap-statusline
    #[arg(long, short)]
    pub yes: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub json: bool,
}

impl SetupArgs {
    fn plugin(&self) -> Wish {
        match (self.plugin, self.no_plugin) {
            (true, _) => Wish::Bring,
            (_, true) => Wish::Refuse,
            _ => Wish::Offer,
        }
    }

    fn compaction(&self) -> Option<Compaction> {
        self.window.filter(|_| self.disable_compact).map(|window| Compaction { window, force: self.force })
    }

    fn timer(&self, asks: bool) -> Wish {
        match (self.timer, self.no_timer) {
            (true, _) => Wish::Bring,
            (_, true) => Wish::Refuse,
            _ if asks => Wish::Offer,
            _ => Wish::Leave,
        }
    }

    fn link(&self, asks: bool) -> Wish {
        match (self.link, self.no_link) {
            (true, _) => Wish::Bring,
            (_, true) => Wish::Refuse,
            _ if asks || self.yes => Wish::Offer,
            _ => Wish::Leave,
        }
    }

    fn ask(&self) -> Ask {
        match (self.statusline, self.wrap_statusline, self.no_statusline) {
            (true, ..) => Ask::Ours,
            (_, true, _) => Ask::Wrap,
            (_, _, true) => Ask::Leave,
            _ => Ask::Auto,
        }
    }
}

/// Sets up or undoes. An error is the person's to read, and means exit code 1.
pub fn run(args: &SetupArgs, host: &Host) -> Result<ExitCode> {
    if args.disable_compact && !args.dry_run && !terminal::can_ask() {
        bail!("could not turn compaction off: that takes a yes typed on a terminal; run this in one");
    }
    let projects = projects(host);
    let projects: Vec<_> = projects.iter().map(PathBuf::as_path).collect();
    let store = Store::locate(host, &projects).context(
        "could not tell where to keep files: HOME is not set, or CLAUDE_CONFIG_DIR lies in the project; set one \
         of them to a directory of your own",
    )?;
    let untrusted =
        || projects.iter().map(|dir| (*dir).to_owned()).chain(host.current_dir()).collect::<Vec<_>>();
    let report = if args.undo {
        setup::undo(host, &store, &untrusted(), args.dry_run)?
    } else {
        let exe = host.current_exe().context("could not find this program's own file")?;
        let exe = exe.canonicalize().unwrap_or(exe);
        let asks = terminal::can_ask() && !args.yes && !args.json;
        let request = Request {
            ask: args.ask(),
            source: exe.parent().unwrap_or(Path::new("")).to_owned(),
            untrusted: untrusted(),
            dry_run: args.dry_run,
            link: args.link(asks),
            timer: args.timer(asks),
            plugin: args.plugin(),
            checkout: plugin::checkout(&exe),
            compaction: args.compaction(),
        };
        setup::install(host, &store, &request, &mut |question| match question.about {
            About::Compaction(window) => typed_yes(host, window, question.diff),
            _ => !asks || agreed(host, question),
        })?
    };
    if args.json {
        print_json(&report)?;
    } else {
        print(&shown(&report, host, &store))?;
    }
    if !args.json && !args.dry_run && !args.undo {
        sample::show(&report, host);
        sample::show_next(&report, host);
    }
    Ok(if report.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Directories whose settings may have written this environment: a client's, where one started us.
fn projects(host: &Host) -> Vec<PathBuf> {
    let inside = host.has_env("CLAUDECODE").then(|| host.current_dir()).flatten();
    host.env_path("CLAUDE_PROJECT_DIR").into_iter().chain(inside).collect()
}

fn agreed(host: &Host, question: &Question<'_>) -> bool {
    let words = match question.about {
        About::Settings => "Write this into your settings?",
        About::Link => "Make this link, so that a shell finds longhaul?",
        About::Plugin => "Install the plugin into Claude Code, which writes this into your settings?",
        About::Compaction(_) => return false,
        About::Timer => {
            "Have sessions looked after every 3 minutes, so that you hear of one in trouble with none open?"
        }
    };
    let mut out = std::io::stdout();
    let _ = write!(out, "{}{words} [y/N] ", painted(question.diff, host));
    let _ = out.flush();
    matches!(answer().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Says what it means to have no compaction, and takes nothing but a whole yes for one.
fn typed_yes(host: &Host, window: u64, diff: &str) -> bool {
    let mut out = std::io::stdout();
    let _ = write!(
        out,
        "{}Without compaction a session is never summarised, and ends in a refusal: at about {} of {window} tokens \
         Claude Code sends nothing more, and /compact by hand is gone, too. What helps then is `longhaul handoff`.\n\
         Type yes to switch compaction off: ",
        painted(diff, host),
        window.saturating_sub(23_000)
    );
    let _ = out.flush();
    answer() == "yes"
}

/// The next line that is typed; nothing where none can be read.
fn answer() -> String {
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_or_else(|_| String::new(), |_| answer.trim().to_owned())
}

/// The outcome for a person.
fn shown(report: &Report, host: &Host, store: &Store) -> String {
    let would = if report.dry_run { "would be " } else { "" };
    let mut lines = Vec::new();
    let programs = &report.programs;
    let path = programs.path.display();
    lines.push(match programs.action {
        "installed" => format!("programs: {} {would}installed, {path}", programs.version),
        "unchanged" => format!("programs: {} is installed, {path}", programs.version),
        "removed" => format!("programs: {would}removed"),
        _ => "programs: none installed".to_owned(),
    });
    if programs.action != "removed" && !programs.removed.is_empty() {
        lines.push(format!("old versions {would}removed: {}", programs.removed.join(", ")));
    }
    let settings = &report.settings;
    let changes = !matches!(settings.action, "unchanged" | "kept");
    let would = if changes { would } else { "" };
    lines.push(format!(
        "settings: {} {would}{}: {}",
        settings.path.display(),
        settings.action,
        settings.reason
    ));
    if let Some(backup) = &settings.backup {
        lines.push(format!("backup: {}", backup.display()));
    }
    for (name, part) in report.parts() {
        if part.action == "kept" && part.path.symlink_metadata().is_err() {
            lines.push(format!("{name}: {}", part.reason));
            continue;
        }
        let would = if matches!(part.action, "added" | "updated" | "removed") && report.dry_run {
            "would be "
        } else {
            ""
        };
        // Where no way to make one was found, there is no place but its name.
        let place =
            if part.path == Path::new(name) { String::new() } else { format!("{} ", part.path.display()) };
        lines.push(format!("{name}: {place}{would}{}: {}", part.action, part.reason));
    }
    if matches!(programs.action, "removed" | "absent") && !report.dry_run && store.dir().is_dir() {
        lines.push(format!("records stay in {}", store.dir().display()));
    }
    let warnings = report.warnings.iter().map(|warning| format!("note: {warning}"));
    let mut text = String::new();
    for line in lines.into_iter().chain(warnings) {
        text.push_str(&clean(&line));
        text.push('\n');
    }
    for diff in settings.diff.iter().chain(report.parts().filter_map(|(_, part)| part.diff.as_ref())) {
        text.push_str(&painted(diff, host));
    }
    text
}

/// A diff as it is for a pipe; for a terminal without control characters, and coloured where it may be.
fn painted(diff: &str, host: &Host) -> String {
    if !terminal::stdout_is_terminal() {
        return diff.to_owned();
    }
    let colour = terminal::stdout_takes_colour(host);
    let mut out = String::new();
    for line in diff.lines() {
        let line = line.split('\t').map(clean).collect::<Vec<_>>().join("\t");
        match line.bytes().next() {
            Some(b'+') if colour => out.push_str(&line.green().to_string()),
            Some(b'-') if colour => out.push_str(&line.red().to_string()),
            _ => out.push_str(&line),
        }
        out.push('\n');
    }
    out
}
