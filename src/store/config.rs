//! What the person configured: `<state>/config.json`, every key optional.

use serde::Deserialize;

use super::Store;
use crate::host::files;

/// The configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the module draws when the person has a status line of their own.
    pub statusline: Beside,
    /// What the exports made before compactions may come to on the disk, all together, in bytes: above it the
    /// oldest go. The last one made always stays. 0: none is made.
    pub automatic_exports_max_bytes: u64,
    /// The watcher.
    pub watch: Watch,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            statusline: Beside::default(),
            automatic_exports_max_bytes: 2_000_000_000,
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

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
    }
}
