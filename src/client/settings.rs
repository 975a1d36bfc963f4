//! Settings files in every scope, and only the keys that longhaul looks at. Read on each redraw, so
//! everything else is skipped without being built.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::flags::Flags;
use crate::host::files;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The administrator's settings.
    Managed,
    /// `--settings` on the client's command line.
    CommandLine,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `.claude/settings.json` of the project.
    Project,
    /// `settings.json` of the person.
    User,
    /// The client's own `.claude.json`.
    Global,
    /// The process environment.
    Environment,
    /// A flag on the client's command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed settings",
            Self::CommandLine => "--settings",
            Self::Local => "local settings",
            Self::Project => "project settings",
            Self::User => "user settings",
            Self::Global => "the client's .claude.json",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

/// One settings file's values that matter here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// The `env` block, in file order, the last of two equal names winning.
    pub env: Vec<(String, String)>,
    /// `autoCompactWindow` as it stands.
    pub window: Option<Value>,
    /// `modelSettings.<model>.autoCompactWindow` as it stands.
    pub model_windows: Vec<(String, Value)>,
    /// `autoCompactEnabled` as it stands.
    pub enabled: Option<Value>,
    /// `statusLine.command`.
    pub status_command: Option<String>,
    /// A key of the wrong type, for which the client drops the whole file.
    pub void: Option<&'static str>,
}

/// Keys whose wrong type voids a whole file, and what they must be (measured; null voids too).
const STRICT: [(&str, Shape); 12] = [
    ("env", Shape::Object),
    ("permissions", Shape::Object),
    ("autoCompactEnabled", Shape::Bool),
    ("model", Shape::Text),
    ("statusLine", Shape::Object),
    ("cleanupPeriodDays", Shape::Number),
    ("includeCoAuthoredBy", Shape::Bool),
    ("outputStyle", Shape::Text),
    ("language", Shape::Text),
    ("$schema", Shape::Text),
    ("apiKeyHelper", Shape::Text),
    ("alwaysThinkingEnabled", Shape::Bool),
];

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Object,
    Array,
    Text,
    Number,
    Bool,
    Null,
}

impl Shape {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::String(_) => Self::Text,
            Value::Number(_) => Self::Number,
            Value::Bool(_) => Self::Bool,
            Value::Null => Self::Null,
        }
    }

    /// Of a value's text, which is known to be valid.
    fn of_text(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

fn is_status_line(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string) && value.get("command").is_some_and(Value::is_string)
}

/// A scope: where, and what stands there.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Which scope.
    pub origin: Origin,
    /// Its file; none where `--settings` held JSON.
    pub path: Option<PathBuf>,
    /// Its values.
    pub values: Values,
}

/// A settings file that could not be read. The client ignores such a file, and so does longhaul.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or `--settings`.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// Every scope that is there, the strongest first.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// Files that could not be read.
    pub problems: Vec<Problem>,
}

/// A settings file larger than this is not read, in bytes.
const MOST: u64 = 8 << 20;

#[cfg(target_os = "macos")]
const MANAGED: &str = "/Library/Application Support/ClaudeCode/managed-settings.json";
#[cfg(windows)]
const MANAGED: &str = r"C:\Program Files\ClaudeCode\managed-settings.json";
#[cfg(not(any(target_os = "macos", windows)))]
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

impl Settings {
    /// Reads every scope. `config` is the client's configuration directory, `project` where the session
    /// was started.
    pub fn load(config: Option<&Path>, project: Option<&Path>, flags: &Flags) -> Self {
        let mut settings = Self::default();
        settings.add_managed(Path::new(MANAGED));
        if let Some(given) = &flags.settings {
            if given.trim_start().starts_with('{') {
                settings.add(Origin::CommandLine, None, given.as_bytes());
            } else {
                let path = project.unwrap_or(Path::new("")).join(given);
                settings.add_file(Origin::CommandLine, path);
            }
        }
        let local = |dir: &Path| dir.join(".claude/settings.local.json");
        if let Some(project) = project.filter(|_| flags.reads("local")) {
            // The repository's own comes before the directory's (measured); nothing in between is read.
            let root = project.ancestors().find(|dir| dir.join(".git").exists());
            if let Some(root) = root.filter(|root| *root != project) {
                settings.add_file(Origin::Local, local(root));
            }
            settings.add_file(Origin::Local, local(project));
        }
        if let Some(project) = project.filter(|_| flags.reads("project")) {
            settings.add_file(Origin::Project, project.join(".claude/settings.json"));
        }
        if let Some(config) = config.filter(|_| flags.reads("user")) {
            settings.add_file(Origin::User, config.join("settings.json"));
        }
        settings
    }

    /// The administrator's file, and the folder of more beside it, of which the last name is the strongest.
    fn add_managed(&mut self, file: &Path) {
        let mut more: Vec<PathBuf> = std::fs::read_dir(file.with_extension("d"))
            .map(|dir| dir.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        more.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        more.sort_unstable();
        for path in more.into_iter().rev() {
            self.add_file(Origin::Managed, path);
        }
        self.add_file(Origin::Managed, file.to_path_buf());
    }

    fn add_file(&mut self, origin: Origin, path: PathBuf) {
        match files::read_small(&path, MOST) {
            Ok(bytes) => self.add(origin, Some(path), &bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => self.problems.push(Problem { place: path.display().to_string(), what: e.to_string() }),
        }
    }

    fn add(&mut self, origin: Origin, path: Option<PathBuf>, bytes: &[u8]) {
        match Values::parse(bytes) {
            Ok(values) if values.void.is_some() && origin != Origin::Managed => {
                let key = values.void.unwrap_or_default();
                let place = path.map_or_else(|| origin.to_string(), |p| p.display().to_string());
                let what =
                    format!("`{key}` is of the wrong type, and the client drops the whole file for it");
                self.problems.push(Problem { place, what });
            }
            Ok(values) => self.scopes.push(Scope { origin, path, values }),
            Err(e) => self.problems.push(Problem {
                place: path.map_or_else(|| origin.to_string(), |p| p.display().to_string()),
                what: format!("not valid JSON: {e}"),
            }),
        }
    }

    /// The first scope that has something to say, strongest first.
    pub fn first<'a, T>(&'a self, pick: impl Fn(&'a Values) -> Option<T>) -> Option<(T, Origin)> {
        self.scopes.iter().find_map(|scope| Some((pick(&scope.values)?, scope.origin)))
    }
}

impl Values {
    /// Reads one file's text. Comments are not JSON and the client refuses them too.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        // What holds nothing counts as empty.
        if matches!(bytes.trim_ascii(), b"" | b"[]" | b"null" | b"\"\"") {
            return Ok(Self::default());
        }
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let values = reader.deserialize_map(Reader)?;
        reader.end()?;
        Ok(values)
    }
}

/// Keys whose values are kept.
const KEPT: [&str; 5] = ["env", "autoCompactWindow", "autoCompactEnabled", "modelSettings", "statusLine"];

/// Keeps the known keys and steps over the rest. Of two equal keys the last one counts, as in the client.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a settings object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut values = Values::default();
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let strict = STRICT.iter().find(|(name, _)| *name == key);
            if !KEPT.contains(&&*key) {
                let Some((name, shape)) = strict else {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                };
                // Permissions can be long: only their type is looked at.
                if Shape::of_text(map.next_value::<&RawValue>()?.get()) != *shape {
                    values.void = Some(name);
                }
                continue;
            }
            let value: Value = map.next_value()?;
            let odd_line = key == "statusLine" && !is_status_line(&value);
            if let Some((name, _)) = strict.filter(|(_, shape)| Shape::of(&value) != *shape || odd_line) {
                values.void = Some(name);
                continue;
            }
            match &*key {
                "env" => values.env = env_block(value),
                "autoCompactWindow" => values.window = Some(value),
                "autoCompactEnabled" => values.enabled = Some(value),
                "modelSettings" => values.model_windows = model_windows(value),
                "statusLine" => {
                    values.status_command = value.get("command").and_then(Value::as_str).map(str::to_owned);
                }
                _ => {}
            }
        }
        Ok(values)
    }
}

fn env_block(value: Value) -> Vec<(String, String)> {
    let Value::Object(block) = value else { return Vec::new() };
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        // Of another type it reads as junk, and still takes the place of the process's variable (measured).
        _ => None,
    };
    block.into_iter().map(|(name, value)| (name, text(value).unwrap_or_default())).collect()
}

fn model_windows(value: Value) -> Vec<(String, Value)> {
    let Value::Object(models) = value else { return Vec::new() };
    let window = |mut settings: Value| settings.get_mut("autoCompactWindow").map(Value::take);
    models.into_iter().filter_map(|(model, settings)| Some((model, window(settings)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_keys_are_kept_and_the_rest_is_stepped_over() {
        let values = Values::parse(
            br#"{"permissions":{"allow":["x"]},"env":{"A":"1","B":2,"C":null},"autoCompactWindow":"300k",
            "modelSettings":{"m":{"autoCompactWindow":5},"n":{}},"autoCompactEnabled":false,"model":"opus",
            "statusLine":{"type":"command","command":"x"},"autoCompactWindow":400000}"#,
        )
        .unwrap();
        let env = values.env.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>();
        assert_eq!(env, [("A", "1"), ("B", "2"), ("C", "")]);
        assert_eq!(values.window, Some(json!(400_000)), "the last of two equal keys counts");
        assert_eq!(values.model_windows, [("m".to_owned(), json!(5))]);
        assert_eq!(values.enabled, Some(json!(false)));
        assert_eq!(values.status_command.as_deref(), Some("x"));
    }

    #[test]
    fn odd_shapes_are_nothing_and_bad_json_is_a_problem() {
        assert_eq!(Values::parse(br#"{"modelSettings":7,"hooks":[1]}"#).unwrap(), Values::default());
        for (key, text) in [
            ("env", r#"{"env":[]}"#),
            ("model", r#"{"model":null}"#),
            ("autoCompactEnabled", r#"{"autoCompactEnabled":0}"#),
            ("statusLine", r#"{"statusLine":5}"#),
        ] {
            assert_eq!(Values::parse(text.as_bytes()).unwrap().void, Some(key));
        }
        assert_eq!(Values::parse(b" \n").unwrap(), Values::default());
        assert!(Values::parse(b"{\"env\":").is_err());
        assert!(Values::parse(b"[1]").is_err());
        assert!(Values::parse(b"{} x").is_err());
    }

    #[test]
    fn the_strongest_scope_wins() {
        let root = tempfile::tempdir().unwrap();
        let (config, project) = (root.path().join("c"), root.path().join("p"));
        fs_err::create_dir_all(project.join(".claude")).unwrap();
        fs_err::create_dir_all(&config).unwrap();
        fs_err::write(config.join("settings.json"), r#"{"env":{"X":"user","Y":"user"}}"#).unwrap();
        fs_err::write(project.join(".claude/settings.json"), r#"{"env":{"X":"project"}}"#).unwrap();
        fs_err::write(project.join(".claude/settings.local.json"), "{bad").unwrap();
        let settings = Settings::load(Some(&config), Some(&project), &Flags::default());
        let strongest = |settings: &Settings, name: &str| {
            let text =
                |values: &Values| values.env.iter().find(|(have, _)| have == name).map(|e| e.1.clone());
            settings.first(text)
        };
        assert_eq!(strongest(&settings, "X"), Some(("project".to_owned(), Origin::Project)));
        assert_eq!(strongest(&settings, "Y"), Some(("user".to_owned(), Origin::User)));
        assert_eq!(settings.problems.len(), 1);
        let flags = Flags { settings: Some(r#"{"env":{"X":"flag"}}"#.into()), ..Flags::default() };
        let settings = Settings::load(Some(&config), Some(&project), &flags);
        assert_eq!(strongest(&settings, "X"), Some(("flag".to_owned(), Origin::CommandLine)));
    }
}
