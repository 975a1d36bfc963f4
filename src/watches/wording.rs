//! What a watch is called, and how it says what it found.

use super::hour::Sum;
use crate::base::shell::word;
use crate::base::span::{rough, stamp};
use crate::base::text::{clean, fit};
use crate::host::process::Exit;
use crate::store::watches::{Subject, Watch};

/// The longest name in a source, in cells.
const NAME_CELLS: usize = 40;

/// What is watched, in a few words.
pub fn label(watch: &Watch) -> String {
    let text = match (&watch.name, &watch.subject) {
        (Some(name), _) => name.clone(),
        (None, Subject::File { path, .. }) => path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned()),
        (None, Subject::Stream { argv } | Subject::Command { argv, .. }) => line(argv),
        (None, Subject::Process { pid, .. }) => format!("process {pid}"),
        (None, Subject::After { due_ms, .. }) => format!("after {}", stamp(*due_ms)),
        (None, Subject::Sessions) => "sessions".to_owned(),
    };
    fit(&clean(&text), NAME_CELLS)
}

/// What is watched, in full.
pub fn subject(subject: &Subject) -> String {
    let text = match subject {
        Subject::File { path, .. } => format!("file {}", path.display()),
        Subject::Stream { argv } => format!("stream {}", line(argv)),
        Subject::Command { argv, every_ms, .. } => {
            format!("command {} every {}", line(argv), rough(*every_ms))
        }
        Subject::Process { pid, .. } => format!("process {pid}"),
        Subject::After { due_ms, text } => format!("after {} {text}", stamp(*due_ms)),
        Subject::Sessions => "sessions that stall, wait or die".to_owned(),
    };
    clean(&text)
}

/// What limits it, a few words each.
pub fn limits(watch: &Watch) -> Vec<String> {
    let mut limits = Vec::new();
    limits.extend(watch.matching.as_ref().map(|text| format!("lines that match '{text}'")));
    limits.extend(watch.until.as_ref().map(|text| format!("until '{text}' matches")));
    limits.extend(watch.once.then(|| "one thing".to_owned()));
    limits.extend(watch.until_ms.map(|until_ms| format!("until {}", stamp(until_ms))));
    if watch.is_unconfirmed() {
        limits.push("ends with its client, unless a person keeps it".to_owned());
    }
    limits
}

/// What is watched, by its name where it has one, and what limits it: one line, also for a brief.
pub fn described(watch: &Watch) -> String {
    let name = watch.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let limits = limits(watch);
    let limits = if limits.is_empty() { String::new() } else { format!(" ({})", limits.join(", ")) };
    clean(&format!("{name}{}{limits}", subject(&watch.subject)))
}

/// A command line as it would be typed.
pub fn line(argv: &[String]) -> String {
    argv.iter().map(|arg| word(arg)).collect::<Vec<_>>().join(" ")
}

/// Where an event comes from, as the session is told.
pub fn source(watch: &Watch) -> String {
    format!("watch {} {}", watch.number, label(watch))
}

/// Lines that were found, `shown` of them here.
pub fn found(text: &str, lines: u64, shown: u64, rest_in: &str) -> String {
    let mut said = match lines {
        0 | 1 => text.to_owned(),
        lines => format!("{lines} lines:\n{text}"),
    };
    if shown < lines {
        said += &format!("\n… and {} more, {rest_in}", lines - shown);
    }
    said
}

/// The last time in an hour that something is told at once.
pub fn last_now(watch: &Watch, ends_ms: i64) -> String {
    format!(
        "[{} times within an hour: until {} the rest is only counted; longhaul watch log {} shows it]",
        watch.most,
        stamp(ends_ms),
        watch.number
    )
}

/// What an hour came to.
pub fn summed(watch: &Watch, sum: Sum) -> String {
    format!(
        "{} more times, {} lines, were not told one by one; longhaul watch log {} shows them",
        sum.times, sum.lines, watch.number
    )
}

/// How a program ended.
pub fn exit(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        None => "how is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::watches::tests::watch;

    #[test]
    fn a_watch_is_called_by_its_name_or_by_what_it_watches() {
        let file = watch(Subject::File { path: "/p/build.log".into(), from_start: false });
        assert_eq!(source(&Watch { number: 3, ..file.clone() }), "watch 3 build.log");
        let named = Watch { name: Some("\u{1b}[31mred\u{202e}".into()), ..file };
        assert_eq!(label(&named), "[31mred");
        let argv = ["gh", "run", "view it"].map(str::to_owned).to_vec();
        let command = Subject::Command { argv, every_ms: 60_000, timeout_ms: 1 };
        assert_eq!(subject(&command), "command gh run 'view it' every 1m");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(found("a", 1, 1, ""), "a");
        assert_eq!(found("a\nb", 5, 2, "in /x"), "5 lines:\na\nb\n… and 3 more, in /x");
    }
}
