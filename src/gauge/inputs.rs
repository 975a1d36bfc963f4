//! Everything that moves the wall: each occurrence of each input, where it stands, and what it does there.

use serde::Serialize;
use serde_json::Value;

use super::parse;
use crate::base::id::digest;
use crate::client::flags::Flags;
use crate::client::models;
use crate::client::settings::{Origin, Settings};

/// The client's inputs, by the names people set them under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// Explicit window, environment.
    Window,
    /// Explicit window, command line.
    WindowFlag,
    /// Explicit window, settings, for one model.
    ModelWindow,
    /// Explicit window, settings.
    SettingsWindow,
    /// Percentage override.
    Percent,
    /// Most output tokens.
    MaxOutput,
    /// Model window, with compaction off.
    MaxContext,
    /// Caps the model window at 200,000.
    Disable1m,
    /// Switches compaction off.
    DisableCompact,
    /// Switches automatic compaction off.
    DisableAutoCompact,
    /// Switches automatic compaction off or on, settings.
    AutoCompactEnabled,
    /// Replaces the refusal line.
    BlockingLimit,
}

impl Name {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 12] = [
        Self::Window,
        Self::WindowFlag,
        Self::ModelWindow,
        Self::SettingsWindow,
        Self::Percent,
        Self::MaxOutput,
        Self::MaxContext,
        Self::Disable1m,
        Self::DisableCompact,
        Self::DisableAutoCompact,
        Self::AutoCompactEnabled,
        Self::BlockingLimit,
    ];

    /// The name as it is set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Window => "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
            Self::WindowFlag => "--autocompact",
            Self::ModelWindow => "modelSettings.autoCompactWindow",
            Self::SettingsWindow => "autoCompactWindow",
            Self::Percent => "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
            Self::MaxOutput => "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            Self::MaxContext => "CLAUDE_CODE_MAX_CONTEXT_TOKENS",
            Self::Disable1m => "CLAUDE_CODE_DISABLE_1M_CONTEXT",
            Self::DisableCompact => "DISABLE_COMPACT",
            Self::DisableAutoCompact => "DISABLE_AUTO_COMPACT",
            Self::AutoCompactEnabled => "autoCompactEnabled",
            Self::BlockingLimit => "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE",
        }
    }

    /// Whether it is a variable that is on or off.
    pub fn is_switch(self) -> bool {
        matches!(self, Self::Disable1m | Self::DisableCompact | Self::DisableAutoCompact)
    }

    /// Whether it is an environment variable.
    pub fn is_env(self) -> bool {
        !matches!(
            self,
            Self::WindowFlag | Self::ModelWindow | Self::SettingsWindow | Self::AutoCompactEnabled
        )
    }
}

/// One occurrence of an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Which one.
    pub name: Name,
    /// Where it stands.
    pub origin: Origin,
    /// The value as it stands there.
    pub value: Value,
}

/// What an occurrence does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "effect", content = "why", rename_all = "snake_case")]
pub enum Effect {
    /// It moves the wall.
    Applied(String),
    /// It is read, and another value or a limit takes its place.
    Clamped(String),
    /// A stronger place sets the same thing.
    Overridden(String),
    /// The client does not read this value.
    Ignored(String),
    /// It is read and changes nothing here.
    NoEffect(String),
}

/// All occurrences, the strongest of each name first.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The occurrences.
    pub list: Vec<Input>,
}

impl Inputs {
    /// Reads them from the environment, every settings scope and the client's command line.
    pub fn collect(
        env: impl Fn(&str) -> Option<String>,
        settings: &Settings,
        flags: &Flags,
        model: Option<&str>,
    ) -> Self {
        let mut list = Vec::new();
        for name in Name::ALL {
            match name {
                Name::WindowFlag => list.extend(flags.autocompact.as_ref().map(|text| Input {
                    name,
                    origin: Origin::Flag,
                    value: Value::from(text.as_str()),
                })),
                Name::ModelWindow => settings_windows(&mut list, settings, model),
                Name::SettingsWindow => {}
                Name::AutoCompactEnabled => list.extend(settings.scopes.iter().filter_map(|scope| {
                    Some(Input { name, origin: scope.origin, value: scope.values.enabled.clone()? })
                })),
                _ => variable(&mut list, name, settings, env(name.as_str())),
            }
        }
        Self { list }
    }

    /// A number that stays the same as long as every input does: evidence gathered under another one says
    /// nothing.
    pub fn fingerprint(&self) -> u64 {
        let mut texts = Vec::with_capacity(self.list.len() * 2);
        for input in &self.list {
            texts.push(input.name.as_str().to_owned());
            texts.push(input.value.to_string());
        }
        digest(&texts.iter().map(String::as_bytes).collect::<Vec<_>>())
    }
}

/// Windows in settings: the scope comes first, then the key within it (measured).
fn settings_windows(list: &mut Vec<Input>, settings: &Settings, model: Option<&str>) {
    for scope in &settings.scopes {
        let for_model = model.and_then(|model| of_model(&scope.values.model_windows, model));
        let found = [(Name::ModelWindow, for_model), (Name::SettingsWindow, scope.values.window.as_ref())];
        list.extend(
            found.into_iter().filter_map(|(name, value)| {
                Some(Input { name, origin: scope.origin, value: value?.clone() })
            }),
        );
    }
}

/// The value for a model: the key that is written in the plain form comes first, then any other spelling; a
/// value that the client does not take is as if it were absent, and stands only where there is no other.
fn of_model<'a>(windows: &'a [(String, Value)], model: &str) -> Option<&'a Value> {
    let canonical = models::canonical(model);
    let mine = || windows.iter().filter(|(key, _)| models::canonical(key) == canonical);
    let taken = || mine().filter(|(_, value)| parse::settings_window(value).is_some());
    let found =
        taken().find(|(key, _)| *key == canonical).or_else(|| taken().next()).or_else(|| mine().next());
    found.map(|(_, value)| value)
}

/// A variable: every `env` block that sets it, then the process environment. The strongest block beats the
/// process (measured); the process sees that block's value too, so an equal one is its echo.
fn variable(list: &mut Vec<Input>, name: Name, settings: &Settings, process: Option<String>) {
    let start = list.len();
    for scope in &settings.scopes {
        let set = scope.values.env.iter().rev().find(|(have, _)| have == name.as_str());
        if let Some((_, text)) = set {
            list.push(Input { name, origin: scope.origin, value: Value::from(text.as_str()) });
        }
    }
    let echo = |input: &Input| Some(&input.value) == process.as_deref().map(Value::from).as_ref();
    if !list.get(start).is_some_and(echo) {
        list.extend(process.map(|text| Input {
            name,
            origin: Origin::Environment,
            value: Value::from(text),
        }));
    }
}
