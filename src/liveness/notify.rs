//! Telling the person, by one spawned program an incident: their own, or the desktop's. Texts reach it as arguments
//! or on standard input, never as part of a script. Nobody is waited for: a notifier that hangs is ended.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::wording::{News, together};
use crate::client::headless;
use crate::host::clock::Deadline;
use crate::host::process::{self, Running, Start};
use crate::host::{Host, files, program};
use crate::store::config::{Argv, Notify};
use crate::store::incidents::Kind;

/// A notifier gets so long, in ms.
const LIMIT_MS: u64 = 10_000;
/// One that was ended gets so long to go, in ms.
const FAREWELL_MS: u64 = 200;
/// So many run at once.
const AT_ONCE: usize = 4;
/// More than so many incidents at once are one notification on a desktop.
const APART: usize = 3;
/// So much of what a notifier says is kept, in bytes.
const KEPT: u64 = 4_096;

/// A way to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// The person's program.
    Own(PathBuf, Vec<String>),
    /// The desktop's, as on Linux.
    NotifySend(PathBuf),
    /// The desktop's, on macOS.
    OsaScript(PathBuf),
}

/// One run of a notifier.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Job {
    program: PathBuf,
    args: Vec<String>,
    input: Vec<u8>,
    ids: Vec<String>,
}

/// What telling came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Of these incidents.
    pub ids: Vec<String>,
    /// Why not, where it did not work.
    pub trouble: Option<String>,
    /// A terminal may say it instead.
    pub may_ring: bool,
}

impl Outcome {
    /// Whether a terminal is to say it.
    pub fn is_unheard(&self) -> bool {
        self.trouble.is_some() && self.may_ring && !self.ids.is_empty()
    }
}

/// Tells. What it started ends with it.
#[derive(Debug, Default)]
pub struct Teller {
    waiting: VecDeque<Job>,
    running: Vec<(Running, Deadline, Job)>,
    without: Vec<OsString>,
    done: Vec<Outcome>,
    rings: bool,
}

impl Teller {
    /// Takes these to be told.
    pub fn tell(&mut self, host: &Host, config: &Notify, untrusted: &[PathBuf], news: &[News]) {
        if news.is_empty() {
            return;
        }
        self.without = headless::own_variables_and_keys(host);
        self.rings = config.on_desktop();
        let (ways, mut troubles) = ways(host, config, untrusted);
        if ways.is_empty() {
            // Without a wish there is nothing that failed; a status line says it in any case.
            let wanted = config.on_desktop() || config.command.is_some();
            let trouble = wanted.then(|| match troubles.len() {
                0 => "there is no notify-send or osascript here".to_owned(),
                _ => troubles.remove(0),
            });
            self.over(news.iter().map(|one| one.id.clone()).collect(), trouble);
            return;
        }
        for trouble in troubles {
            self.done.push(Outcome { ids: Vec::new(), trouble: Some(trouble), may_ring: false });
        }
        for way in &ways {
            self.waiting.extend(jobs(way, news));
        }
    }

    fn over(&mut self, ids: Vec<String>, trouble: Option<String>) {
        self.done.push(Outcome { ids, trouble, may_ring: self.rings });
    }

    /// Goes on, without waiting. What is done by now.
    pub fn turn(&mut self, host: &Host) -> Vec<Outcome> {
        for (mut running, limit, job) in std::mem::take(&mut self.running) {
            let trouble = match running.poll() {
                Ok(Some(ran)) if ran.code == Some(0) => None,
                Ok(Some(ran)) => Some(failed(&ran)),
                Ok(None) if !limit.passed() => {
                    self.running.push((running, limit, job));
                    continue;
                }
                Ok(None) => {
                    running.end_within(FAREWELL_MS);
                    Some(format!("was not done after {} s, and was ended", LIMIT_MS / 1000))
                }
                Err(error) => Some(format!("could not be waited for: {error}")),
            };
            let trouble = trouble.map(|trouble| format!("{} {trouble}", job.program.display()));
            self.over(job.ids, trouble);
        }
        while self.running.len() < AT_ONCE
            && let Some(job) = self.waiting.pop_front()
        {
            match start(host, &job, &self.without) {
                Ok(running) => self.running.push((running, Deadline::after_ms(LIMIT_MS), job)),
                Err(error) => {
                    let trouble = format!("could not start {}: {error}", job.program.display());
                    self.over(job.ids, Some(trouble));
                }
            }
        }
        std::mem::take(&mut self.done)
    }

    /// Whether there is nothing more to wait for.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty() && self.done.is_empty()
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(|(running, ..)| running.ask_to_end());
        self.running.iter_mut().for_each(|(running, ..)| running.end_within(FAREWELL_MS));
    }
}

fn failed(ran: &process::Ran) -> String {
    let said = String::from_utf8_lossy(&ran.stderr);
    let said = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    let how =
        ran.code.map_or_else(|| "was ended by a signal".to_owned(), |code| format!("ended with {code}"));
    if said.is_empty() { how } else { format!("{how}: {said}") }
}

fn start(host: &Host, job: &Job, without: &[OsString]) -> std::io::Result<Running> {
    let home = host.home().filter(|home| home.is_dir());
    let bus = bus(host);
    let env = bus.as_deref().map(|bus| ("DBUS_SESSION_BUS_ADDRESS", bus));
    let what = Start {
        program: &job.program,
        args: &job.args,
        without,
        dir: home.as_deref().unwrap_or(Path::new("/")),
        input: &job.input,
        most: KEPT,
    };
    process::start_in(&what, env.as_slice())
}

/// Where the desktop listens, for a timer whose environment does not say.
fn bus(host: &Host) -> Option<String> {
    let path = format!("/run/user/{}/bus", files::user());
    let known = host.has_env("DBUS_SESSION_BUS_ADDRESS") || !cfg!(target_os = "linux");
    (!known && Path::new(&path).exists()).then(|| format!("unix:path={path}"))
}

/// The ways to tell that there are, and why one that is wanted is not.
fn ways(host: &Host, config: &Notify, untrusted: &[PathBuf]) -> (Vec<Way>, Vec<String>) {
    let (mut ways, mut troubles) = (Vec::new(), Vec::new());
    if let Some(command) = &config.command {
        match own(host, command, untrusted) {
            Ok(path) => ways.push(Way::Own(path, command.args.clone())),
            Err(why) => troubles.push(why),
        }
    }
    if config.on_desktop() {
        match program::find(host, "notify-send", untrusted) {
            Ok(path) => ways.push(Way::NotifySend(path)),
            Err(refused) => {
                let script = if cfg!(target_os = "macos") { Some("/usr/bin/osascript") } else { None };
                match script.map(PathBuf::from).filter(|path| path.is_file()) {
                    Some(path) => ways.push(Way::OsaScript(path)),
                    None => troubles.extend(refused.map(|why| format!("{why}: not run"))),
                }
            }
        }
    }
    (ways, troubles)
}

/// The person's program. What they named by its whole path is theirs, wherever it lies.
fn own(host: &Host, command: &Argv, untrusted: &[PathBuf]) -> Result<PathBuf, String> {
    let named = Path::new(&command.program);
    if named.is_absolute() {
        return match files::distrust(named) {
            None => Ok(named.to_path_buf()),
            Some(why) => Err(format!("notify.command: {} {why}: not run", named.display())),
        };
    }
    program::find(host, &command.program, untrusted).map_err(|refused| match refused {
        Some(why) => format!("notify.command: {why}: not run"),
        None => format!("notify.command: there is no program {:?} on PATH", command.program),
    })
}

/// The runs that tell these in this way.
fn jobs(way: &Way, news: &[News]) -> Vec<Job> {
    if let Way::Own(program, args) = way {
        let job = |one: &News| Job {
            program: program.clone(),
            args: args.clone(),
            input: format!("{}\n", one.value).into_bytes(),
            ids: vec![one.id.clone()],
        };
        return news.iter().map(job).collect();
    }
    let ids = news.iter().map(|one| one.id.clone());
    if news.len() > APART {
        let (title, text) = together(news);
        let urgent = news.iter().any(|one| is_urgent(one.kind));
        return vec![shown(way, &title, &text, urgent, ids.collect())];
    }
    news.iter()
        .map(|one| shown(way, &one.title, &one.text, is_urgent(one.kind), vec![one.id.clone()]))
        .collect()
}

fn is_urgent(kind: Kind) -> bool {
    matches!(kind, Kind::DeadLike | Kind::Dead)
}

fn shown(way: &Way, title: &str, text: &str, urgent: bool, ids: Vec<String>) -> Job {
    // It begins with our own word, so that no title is an option.
    let title = format!("longhaul: {title}");
    let texts = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    let (program, args) = match way {
        Way::Own(program, args) => (program, args.clone()),
        Way::NotifySend(program) => {
            let urgency = if urgent { "--urgency=critical" } else { "--urgency=normal" };
            (program, texts(&["--app-name=longhaul", urgency, "--", &title, &marked_up(text)]))
        }
        Way::OsaScript(program) => {
            const SAY: &str = "display notification (item 2 of argv) with title (item 1 of argv)";
            (program, texts(&["-e", "on run argv", "-e", SAY, "-e", "end run", &title, text]))
        }
    };
    Job { program: program.clone(), args, input: Vec::new(), ids }
}

/// `notify-send` reads escapes in a text, and desktops read markup.
fn marked_up(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
