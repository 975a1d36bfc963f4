//! What the person configured: `<state>/config.json`, every key optional.

use std::fmt;
use std::path::Path;

use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Store;
use crate::host::{Host, files};

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the module draws when the person has a status line of their own.
    pub statusline: Beside,
    /// What the exports made before compactions may come to on the disk, all together, in bytes: above it the
    /// oldest go. The last one made always stays. 0: none is made.
    pub automatic_exports_max_bytes: u64,
    /// From when on a session counts as stuck.
    pub liveness: Liveness,
    /// How and when the person is told.
    pub notify: Notify,
    /// The watcher.
    pub watch: Watch,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            statusline: Beside::default(),
            automatic_exports_max_bytes: 2_000_000_000,
            liveness: Liveness::default(),
            notify: Notify::default(),
            watch: Watch::default(),
        }
    }
}

/// How the watcher behaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Watch {
    /// It stays in background sessions too, which the client then calls at work for as long as they live.
    pub background: bool,
}

/// From when on a session counts as stuck, in seconds without a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Liveness {
    /// It may be stuck.
    pub stale: Seconds,
    /// The same of a request to the model whose response nobody sees moving.
    pub stale_thinking: Seconds,
    /// It is stuck, most likely; counted from the same moment as `stale`.
    pub dead: Seconds,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { stale: Seconds(300), stale_thinking: Seconds(900), dead: Seconds(900) }
    }
}

/// How and when the person is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notify {
    /// Their own program, which gets each incident as JSON.
    pub command: Option<Argv>,
    /// Whether the desktop says it, and where it cannot, a terminal; without a word where there is no `command`.
    pub desktop: Option<bool>,
    /// That a session waits for them, from this many seconds on.
    pub waiting_after: Seconds,
}

impl Default for Notify {
    fn default() -> Self {
        Self { command: None, desktop: None, waiting_after: Seconds(120) }
    }
}

impl Notify {
    /// Whether the desktop says it.
    pub fn on_desktop(&self) -> bool {
        self.desktop.unwrap_or(self.command.is_none())
    }
}

/// A program and its arguments: no shell reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argv {
    /// A name that is looked for on `PATH`, or a whole path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ReadArgv)
    }
}

/// Checks a program where it stands, so that an error names its line.
struct ReadArgv;

impl<'de> Visitor<'de> for ReadArgv {
    type Value = Argv;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of a program and its arguments, as [\"/usr/bin/logger\", \"-s\"]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Argv, A::Error> {
        let Some(program) = list.next_element::<String>()? else {
            return Err(A::Error::custom("an empty list names no program"));
        };
        let is_whole = Path::new(&program).is_absolute();
        if program.is_empty() || (program.contains(['/', '\\']) && !is_whole) {
            return Err(A::Error::custom(format!(
                "{program:?} is neither a program's name nor a whole path"
            )));
        }
        let mut args = Vec::new();
        while let Some(arg) = list.next_element::<String>()? {
            args.push(arg);
        }
        if args.iter().chain([&program]).any(|text| text.contains('\0')) {
            return Err(A::Error::custom("no program can be given a text with a NUL in it"));
        }
        Ok(Argv { program, args })
    }
}

/// A span in seconds, from one to a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub i64);

/// The longest span, in seconds.
const YEAR: i64 = 366 * 86_400;

impl Seconds {
    /// In milliseconds.
    pub fn ms(self) -> i64 {
        self.0.saturating_mul(1000)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(ReadSeconds)
    }
}

/// Checks a span where it stands, so that an error names its line.
struct ReadSeconds;

impl ReadSeconds {
    fn check<E: Error>(seconds: Option<i64>) -> Result<Seconds, E> {
        let sane = seconds.filter(|seconds| (1..=YEAR).contains(seconds));
        sane.map(Seconds).ok_or_else(|| E::custom(format!("not a span of 1 to {YEAR} seconds")))
    }
}

impl Visitor<'_> for ReadSeconds {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of seconds")
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<Seconds, E> {
        Self::check(Some(seconds))
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Seconds, E> {
        Self::check(i64::try_from(seconds).ok())
    }
}

/// Where the module draws beside a person's own status line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// As the row below it.
    #[default]
    Below,
    /// Not at all.
    Off,
}

impl Store {
    /// The configuration; without a file the defaults. The error names file, line and column.
    pub fn config_file(&self) -> Result<Config, String> {
        let path = self.dir().join("config.json");
        let bytes = match files::read_small(&path, 1 << 20) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(e) => return Err(format!("could not read {}: {e}", path.display())),
        };
        serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The same, with what the environment says for this once. No program is named there: a project's settings can
    /// set variables.
    pub fn config_for(&self, host: &Host) -> Result<Config, String> {
        let mut config = self.config_file()?;
        let Config { statusline, liveness, notify, .. } = &mut config;
        overrule(host, "LONGHAUL_STATUSLINE", statusline)?;
        overrule(host, "LONGHAUL_LIVENESS_STALE", &mut liveness.stale)?;
        overrule(host, "LONGHAUL_LIVENESS_STALE_THINKING", &mut liveness.stale_thinking)?;
        overrule(host, "LONGHAUL_LIVENESS_DEAD", &mut liveness.dead)?;
        overrule(host, "LONGHAUL_NOTIFY_DESKTOP", &mut notify.desktop)?;
        overrule(host, "LONGHAUL_NOTIFY_WAITING_AFTER", &mut notify.waiting_after)?;
        Ok(config)
    }
}

/// Puts in a variable's value, written as it would stand in the file; a text needs no quotes.
fn overrule<T: DeserializeOwned>(host: &Host, name: &str, into: &mut T) -> Result<(), String> {
    let Some(text) = host.env(name).filter(|text| !text.is_empty()) else { return Ok(()) };
    let value = serde_json::from_str(&text).unwrap_or_else(|_| serde_json::Value::from(&*text));
    *into = serde_json::from_value(value).map_err(|e| format!("{name} in the environment: {e}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_or_value_is_named_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        assert_eq!(store.config_file(), Ok(Config::default()));
        fs_err::create_dir_all(store.dir()).unwrap();
        let write = |text: &str| fs_err::write(store.dir().join("config.json"), text).unwrap();
        write(r#"{ "statusline": "off" }"#);
        assert_eq!(store.config_file().unwrap().statusline, Beside::Off);
        assert_eq!(store.config_file().unwrap().automatic_exports_max_bytes, 2_000_000_000);
        write(r#"{ "automatic_exports_max_bytes": 5 }"#);
        assert_eq!(store.config_file().unwrap().automatic_exports_max_bytes, 5);
        write(r#"{ "watch": { "background": true } }"#);
        assert!(store.config_file().unwrap().watch.background);
        write("{\n \"statuslime\": 1 }");
        let error = store.config_file().unwrap_err();
        assert!(
            error.contains("config.json") && error.contains("statuslime") && error.contains("line 2"),
            "{error}"
        );
        for (wrong, said) in
            [("0", "not a span"), ("-5", "not a span"), ("1e300", "whole number"), ("\"5m\"", "whole number")]
        {
            write(&format!("{{\n \"liveness\": {{\n  \"stale\": {wrong}\n }}\n}}"));
            let error = store.config_file().unwrap_err();
            assert!(error.contains(said) && error.contains("line 3"), "{wrong}: {error}");
        }
        write(r#"{ "liveness": { "stale": 5 }, "notify": { "waiting_after": 7 } }"#);
        let config = store.config_file().unwrap();
        assert_eq!(config.liveness, Liveness { stale: Seconds(5), ..Liveness::default() });
        assert_eq!(config.notify.waiting_after.ms(), 7_000);
    }

    #[test]
    fn a_variable_overrules_the_file_for_once_and_names_itself_when_wrong() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().to_str().unwrap().to_owned();
        let read = |env: &[(&str, &str)]| {
            let host = Host::fixed(&[&[("HOME", &*home)], env].concat(), 0);
            let store = Store::locate(&host, &[]).unwrap();
            fs_err::create_dir_all(store.dir()).unwrap();
            fs_err::write(store.dir().join("config.json"), r#"{ "liveness": { "dead": 70 } }"#).unwrap();
            store.config_for(&host)
        };
        let config = read(&[("LONGHAUL_LIVENESS_STALE", "60"), ("LONGHAUL_STATUSLINE", "off")]).unwrap();
        assert_eq!(
            config.liveness,
            Liveness { stale: Seconds(60), dead: Seconds(70), ..Liveness::default() }
        );
        assert_eq!(config.statusline, Beside::Off);
        let all = read(&[("LONGHAUL_NOTIFY_DESKTOP", "false"), ("LONGHAUL_LIVENESS_DEAD", "")]).unwrap();
        assert!(!all.notify.on_desktop() && all.liveness.dead == Seconds(70));
        assert!(read(&[("LONGHAUL_NOTIFY_COMMAND", "[\"/evil\"]")]).unwrap().notify.command.is_none());
        for (name, wrong) in [
            ("LONGHAUL_LIVENESS_DEAD", "5m"),
            ("LONGHAUL_NOTIFY_DESKTOP", "maybe"),
            ("LONGHAUL_STATUSLINE", "above"),
        ] {
            let error = read(&[(name, wrong)]).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }

    #[test]
    fn a_notifier_is_a_program_with_its_arguments() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::fixed(&[("HOME", root.path().to_str().unwrap())], 0);
        let store = Store::locate(&host, &[]).unwrap();
        fs_err::create_dir_all(store.dir()).unwrap();
        let read = |notify: &str| {
            let text = format!("{{\n \"notify\": {{\n  {notify}\n }}\n}}");
            fs_err::write(store.dir().join("config.json"), text).unwrap();
            store.config_file().map(|config| config.notify)
        };
        let notify = read(r#""command": ["tell-me", "--as", "a b"]"#).unwrap();
        let command = notify.command.clone().unwrap();
        assert_eq!(
            (&*command.program, &command.args[..]),
            ("tell-me", &["--as".to_owned(), "a b".into()][..])
        );
        assert!(!notify.on_desktop() && Notify::default().on_desktop());
        assert!(read(r#""command": ["x"], "desktop": true"#).unwrap().on_desktop());
        assert!(!read(r#""desktop": false"#).unwrap().on_desktop());
        for (wrong, said) in [
            (r#""command": "tell-me --as x""#, "a list of a program"),
            (r#""command": []"#, "names no program"),
            (r#""command": [""]"#, "neither"),
            (r#""command": ["bin/tell"]"#, "neither"),
            (r#""command": ["~/tell"]"#, "neither"),
            (r#""command": ["x", 7]"#, "string"),
            (r#""command": ["x", "a\u0000b"]"#, "NUL"),
            (r#""desktop": "yes""#, "boolean"),
            (r#""waiting_after": 0"#, "not a span"),
            (r#""waiting": 5"#, "waiting_after"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(said) && error.contains("line 3"), "{wrong}: {error}");
        }
    }
}
