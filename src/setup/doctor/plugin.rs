//! The client, and the plugin as the client has it.

use std::path::PathBuf;

use super::line::{Line, some};
use crate::client::program::{Found, NEWEST_TESTED, OLDEST_TESTED, Version};

/// The client's program.
#[derive(Debug, Clone)]
pub struct Client {
    /// What was found.
    pub found: Found,
    /// Programs of its name that were passed over, each with why.
    pub refused: Vec<String>,
}

impl Client {
    /// Its version, where it is known.
    pub fn version(&self) -> Option<Version> {
        if let Found::Is(_, version) = self.found { Some(version) } else { None }
    }
}

/// One marketplace's longhaul in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `longhaul@marketplace`.
    pub id: String,
    /// What the strongest scope that names it says.
    pub enabled: Option<bool>,
    /// Where that stands.
    pub place: String,
    /// Where the client has its files, where it says so.
    pub root: Option<PathBuf>,
    /// Whether those are there.
    pub there: bool,
    /// What is wrong with its monitors' file, for which the client then starts none.
    pub monitors: Option<String>,
}

/// The plugin as the client has it.
#[derive(Debug, Clone, Default)]
pub struct Plugin {
    /// As the settings and the client's list of installed plugins name it.
    pub entries: Vec<Entry>,
    /// Directories that a running client was given on its command line.
    pub given: Vec<PathBuf>,
    /// The checkout that the program which looks was built in.
    pub checkout: Option<PathBuf>,
}

/// Whether there is a client, and one that longhaul was tried with.
pub fn client(facts: &Client) -> Line {
    const NAME: &str = "client";
    const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";
    let refused = facts.refused.first();
    match &facts.found {
        Found::Nothing => match refused {
            Some(why) => Line::broken(
                NAME,
                why,
                "take it off PATH and out of CLAUDE_BIN, or make it yours alone: chmod go-w",
            ),
            None => Line::note(NAME, "no Claude Code on PATH").fix(INSTALL),
        },
        Found::Unknown(path) => Line::broken(
            NAME,
            format!("{} does not say its version", path.display()),
            format!("{INSTALL}, or CLAUDE_BIN=… for another one"),
        ),
        Found::Is(path, version) => {
            let what = format!("Claude Code {version}, {}", path.display());
            let range = format!("tested with {OLDEST_TESTED} to {NEWEST_TESTED}");
            let line = if *version < OLDEST_TESTED {
                Line::broken(NAME, format!("{what}: below what longhaul is {range}"), "claude update")
            } else if *version > NEWEST_TESTED {
                Line::note(NAME, format!("{what}: above what longhaul is {range}"))
            } else {
                Line::ok(NAME, format!("{what}, {range}"))
            };
            match refused {
                Some(why) if !line.is_broken() => Line::note(NAME, format!("{}; {why}", line.what)),
                _ => line,
            }
        }
    }
}

/// Whether the client loads the plugin.
pub fn plugin(facts: &Plugin, client: &Client) -> Line {
    const NAME: &str = "plugin";
    let on: Vec<_> = facts.entries.iter().filter(|entry| entry.enabled == Some(true)).collect();
    for entry in &on {
        let reinstall = format!("claude plugin install {}", entry.id);
        if entry.root.is_none() {
            let what = format!("{} is enabled in the {} and not installed", entry.id, entry.place);
            return Line::broken(NAME, what, reinstall);
        }
        if !entry.there {
            let root = entry.root.as_ref().map(|root| root.display().to_string()).unwrap_or_default();
            let what = format!("{} is installed and {root} is gone", entry.id);
            return Line::broken(NAME, what, reinstall);
        }
        if let Some(why) = &entry.monitors {
            let what = format!("{}: monitors.json is {why}, and the client starts no watcher", entry.id);
            let fix = format!("claude plugin update {}", entry.id);
            return Line::broken(NAME, what, fix);
        }
    }
    if on.len() > 1 {
        let ids: Vec<_> = on.iter().map(|entry| entry.id.clone()).collect();
        let what = format!("it is enabled {} times, and each runs: {}", ids.len(), some(&ids));
        return Line::broken(NAME, what, format!("claude plugin uninstall {}", ids[1]));
    }
    if let Some(entry) = on.first() {
        return Line::ok(NAME, format!("{} is enabled in the {}", entry.id, entry.place));
    }
    if let Some(dir) = facts.given.first() {
        return Line::ok(NAME, format!("loaded from {} for one session", dir.display()));
    }
    if let Some(entry) = facts.entries.first() {
        let what = match entry.enabled {
            Some(_) => format!("{} is disabled in the {}", entry.id, entry.place),
            None => format!("{} is installed, and no settings enable it: somebody took that out", entry.id),
        };
        return Line::broken(NAME, what, format!("claude plugin enable {}", entry.id));
    }
    let from = facts.checkout.as_ref().map(|dir| crate::base::shell::word(&dir.to_string_lossy()));
    let from = from.unwrap_or_else(|| "OWNER/longhaul".to_owned());
    let fix = format!("claude plugin marketplace add {from} && claude plugin install longhaul@longhaul");
    match client.found {
        // The way to it stands in the line of the client; what comes then cannot be typed before.
        Found::Nothing => Line::note(NAME, "there is no client yet that could load it"),
        _ => Line::broken(NAME, "the client does not know the plugin", fix),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Mark;
    use super::*;

    fn of(found: Found) -> Client {
        Client { found, refused: Vec::new() }
    }

    fn is(major: u32, minor: u32, patch: u32) -> Client {
        of(Found::Is("/b/claude".into(), Version(major, minor, patch)))
    }

    #[test]
    fn a_client_is_in_the_tested_range_or_it_is_said() {
        let newest = of(Found::Is("/b/claude".into(), NEWEST_TESTED));
        assert_eq!(client(&newest).mark, Mark::Ok);
        assert_eq!(client(&is(2, 2, 0)).mark, Mark::Note);
        let old = client(&is(2, 1, 100));
        assert!(old.is_broken() && old.fix.as_deref() == Some("claude update"), "{old:?}");
        assert_eq!(client(&of(Found::Nothing)).mark, Mark::Note);
        assert!(client(&of(Found::Unknown("/b/claude".into()))).is_broken());
        let refused =
            Client { refused: vec!["/p/claude lies in the project: not run".into()], ..of(Found::Nothing) };
        assert!(client(&refused).is_broken() && client(&refused).what.contains("lies in the project"));
    }

    fn entry() -> Entry {
        Entry {
            id: "longhaul@longhaul".into(),
            enabled: Some(true),
            place: "user settings".into(),
            root: Some("/cache".into()),
            there: true,
            monitors: None,
        }
    }

    fn with(entries: Vec<Entry>) -> Line {
        plugin(&Plugin { entries, ..Plugin::default() }, &is(2, 1, 332))
    }

    // CC#62486, CC#46921, CC#3123: the client itself drops keys.
    #[test]
    fn a_plugin_that_is_not_loaded_is_told_with_the_command_that_loads_it() {
        assert_eq!(with(vec![entry()]).mark, Mark::Ok);
        for (odd, part, fix) in [
            (Entry { enabled: Some(false), ..entry() }, "disabled in the user settings", "enable"),
            (Entry { enabled: None, ..entry() }, "no settings enable it", "enable"),
            (Entry { root: None, there: false, ..entry() }, "not installed", "install"),
            (Entry { there: false, ..entry() }, "/cache is gone", "install"),
            (Entry { monitors: Some("no list".into()), ..entry() }, "starts no watcher", "update"),
        ] {
            let line = with(vec![odd]);
            assert!(line.is_broken() && line.what.contains(part), "{line:?}");
            assert_eq!(line.fix, Some(format!("claude plugin {fix} longhaul@longhaul")));
        }
        let twice = with(vec![entry(), Entry { id: "longhaul@other".into(), ..entry() }]);
        assert_eq!(twice.fix.as_deref(), Some("claude plugin uninstall longhaul@other"));
        let unknown = Plugin { checkout: Some("/my checkout".into()), ..Plugin::default() };
        let line = plugin(&unknown, &is(2, 1, 332));
        assert!(line.is_broken() && line.fix.unwrap().contains("add '/my checkout' && "));
        let early = plugin(&unknown, &of(Found::Nothing));
        assert_eq!((early.mark, early.fix), (Mark::Note, None), "no claude can be typed");
        let given = Plugin { given: vec!["/p".into()], ..unknown };
        assert_eq!(plugin(&given, &is(2, 1, 332)).mark, Mark::Ok);
    }
}
