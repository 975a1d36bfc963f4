//! Settings of every scope, what a project's settings say of us, and our own configuration.

use super::line::{Line, count};

/// A settings file that the client does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file, or `--settings`.
    pub place: String,
    /// What is wrong, with the line.
    pub what: String,
}

/// A variable that a project's settings set for whoever is started there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The file.
    pub place: String,
    /// It names a place in the project.
    pub inside: bool,
}

/// Settings of every scope, and our own configuration.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How many files of settings there are.
    pub files: usize,
    /// Those that the client drops.
    pub unread: Vec<Unread>,
    /// Keys that setup wrote and that the file holds no more, each with its file.
    pub dropped: Vec<(String, String)>,
    /// What a project sets of what concerns us.
    pub variables: Vec<Variable>,
    /// Our configuration's fault, with file and line.
    pub config: Option<String>,
    /// Whether there is one.
    pub configured: bool,
}

/// Whether the client reads every settings file.
pub fn readable(facts: &Settings) -> Line {
    const NAME: &str = "settings";
    if let Some((key, place)) = facts.dropped.first().filter(|_| facts.unread.is_empty()) {
        let what = format!("{place}: setup wrote {key}, and the file holds it no more");
        let is_compaction = key.starts_with("env.") || key.starts_with("autoCompact");
        let fix = if is_compaction {
            "longhaul setup --disable-compact --window N, or longhaul setup --undo"
        } else {
            "longhaul setup"
        };
        return Line::broken(NAME, what, fix);
    }
    match facts.unread.as_slice() {
        [] => Line::ok(NAME, format!("{}, all readable", count(facts.files, "file"))),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!("; {} more", rest.len()) };
            let what = format!("{}: {}; the client skips the whole file{more}", first.place, first.what);
            Line::broken(NAME, what, format!("mend {} there", first.place))
        }
    }
}

/// Whether a project's settings lead our programs into the project.
pub fn project(facts: &Settings) -> Line {
    const NAME: &str = "project";
    if let Some(found) = facts.variables.iter().find(|variable| variable.inside) {
        let what = format!(
            "{} sets {} to {}, in the project: longhaul runs and reads nothing there",
            found.place, found.name, found.value
        );
        return Line::broken(NAME, what, format!("take {} out of {}", found.name, found.place));
    }
    match facts.variables.first() {
        Some(found) => Line::note(NAME, format!("{} sets {} to {}", found.place, found.name, found.value)),
        None => Line::ok(NAME, "its settings leave longhaul alone"),
    }
}

/// Whether our configuration can be used.
pub fn config(facts: &Settings) -> Line {
    const NAME: &str = "config";
    match &facts.config {
        Some(why) => {
            Line::broken(NAME, format!("{why}; the defaults count"), "mend it there, or delete the file")
        }
        None if facts.configured => Line::ok(NAME, "config.json is valid"),
        None => Line::ok(NAME, "no config.json, the defaults count"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Mark;
    use super::*;

    #[test]
    fn a_file_that_the_client_drops_is_named_with_its_line() {
        let unread = Unread { place: "/w/.claude/settings.json".into(), what: "line 3: `env` is odd".into() };
        let one = readable(&Settings { unread: vec![unread.clone()], ..Settings::default() });
        assert!(one.is_broken() && one.what.starts_with("/w/.claude/settings.json: line 3"), "{one:?}");
        let two = readable(&Settings { unread: vec![unread.clone(), unread], ..Settings::default() });
        assert!(two.what.ends_with("1 more"));
        assert_eq!(
            readable(&Settings { files: 1, ..Settings::default() }),
            Line::ok("settings", "1 file, all readable")
        );
    }

    #[test]
    fn a_key_that_was_dropped_is_named_with_what_writes_it() {
        let dropped = |key: &str| {
            let dropped = vec![(key.to_owned(), "/c/settings.json".to_owned())];
            readable(&Settings { dropped, ..Settings::default() })
        };
        assert!(dropped("env.DISABLE_COMPACT").fix.unwrap().starts_with("longhaul setup --disable-compact"));
        let other = dropped("extraKnownMarketplaces.longhaul");
        assert!(other.is_broken() && other.what.contains("extraKnownMarketplaces.longhaul"), "{other:?}");
        assert_eq!(other.fix.as_deref(), Some("longhaul setup"));
    }

    #[test]
    fn a_project_that_leads_us_into_itself_is_told() {
        let with = |inside| {
            let variable = Variable {
                name: "CLAUDE_BIN".into(),
                value: "/w/evil".into(),
                place: "/w/.claude/settings.json".into(),
                inside,
            };
            project(&Settings { variables: vec![variable], ..Settings::default() })
        };
        let line = with(true);
        assert_eq!(line.fix.as_deref(), Some("take CLAUDE_BIN out of /w/.claude/settings.json"));
        assert!(line.is_broken());
        assert_eq!(with(false).mark, Mark::Note);
        assert_eq!(project(&Settings::default()).mark, Mark::Ok);
    }

    #[test]
    fn a_configuration_that_cannot_be_used_is_told() {
        let odd = Settings {
            config: Some("/s/config.json: unknown field at line 2 column 3".into()),
            ..Settings::default()
        };
        assert!(config(&odd).is_broken() && config(&odd).what.contains("line 2"));
        assert_eq!(config(&Settings { configured: true, ..Settings::default() }).mark, Mark::Ok);
    }
}
