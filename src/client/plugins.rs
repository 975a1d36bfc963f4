//! What the client knows of plugins: which are enabled in its settings, which are installed, and where their files
//! are (measured, 2.1.332).

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::flags::Flags;
use super::lenient::without_mark;
use super::settings::{Origin, Settings};
use crate::host::files;

/// The longest file of the client's that is read here, in bytes.
const MOST: u64 = 8 << 20;

/// A settings file as a whole: keys that only a look around needs.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Which scope.
    pub origin: Origin,
    /// Its file, or `--settings`.
    pub place: String,
    /// All of it.
    pub value: Value,
}

/// Every scope that the client reads, the strongest first.
pub fn whole(settings: &Settings, flags: &Flags) -> Vec<Whole> {
    let read = settings.scopes.iter().filter_map(|scope| {
        let (place, bytes) = match (&scope.path, &flags.settings) {
            (Some(path), _) => (path.display().to_string(), files::read_small(path, MOST).ok()?),
            (None, Some(given)) => (scope.origin.to_string(), given.clone().into_bytes()),
            (None, None) => return None,
        };
        let value = serde_json::from_slice(without_mark(&bytes)).ok()?;
        Some(Whole { origin: scope.origin, place, value })
    });
    read.collect()
}

/// The strongest scope in which this is so, and what it says: the first one that has the key decides (measured for
/// `disableAllHooks`, where `false` in a stronger scope takes a weaker one's `true` back).
pub fn strongest<T>(scopes: &[Whole], read: impl Fn(&Value) -> Option<T>) -> Option<(T, &Whole)> {
    scopes.iter().find_map(|scope| Some((read(&scope.value)?, scope)))
}

/// Every marketplace's plugin of this name that some scope names: its id, and what the strongest scope says.
pub fn enabled<'s>(scopes: &'s [Whole], name: &str) -> Vec<(String, bool, &'s Whole)> {
    let mut found: Vec<(String, bool, &Whole)> = Vec::new();
    for scope in scopes {
        let Some(plugins) = scope.value.get("enabledPlugins").and_then(Value::as_object) else { continue };
        for (id, on) in plugins {
            let is_it = id.split_once('@').is_some_and(|(plugin, _)| plugin == name);
            if is_it && found.iter().all(|(have, ..)| have != id) {
                found.push((id.clone(), on.as_bool() == Some(true), scope));
            }
        }
    }
    found
}

/// The installed plugins of this name, as `plugins/installed_plugins.json` has them for this project: id and files.
pub fn installed(config: &Path, name: &str, project: Option<&Path>) -> Vec<(String, PathBuf)> {
    let Some(list) = read(&config.join("plugins/installed_plugins.json")) else { return Vec::new() };
    let Some(plugins) = list.get("plugins").and_then(Value::as_object) else { return Vec::new() };
    let here = |entry: &&Value| match entry.get("projectPath").and_then(Value::as_str) {
        Some(theirs) => project == Some(Path::new(theirs)),
        None => true,
    };
    let of = |(id, entries): (&String, &Value)| {
        id.split_once('@').filter(|(plugin, _)| *plugin == name)?;
        let path = entries.as_array()?.iter().find(here)?.get("installPath")?.as_str()?;
        Some((id.clone(), files_of(config, id, name).unwrap_or_else(|| PathBuf::from(path))))
    };
    plugins.iter().filter_map(of).collect()
}

/// Where the files of a plugin from a local directory are: it is read where it lies, not from the copy that the list
/// of installed ones names.
fn files_of(config: &Path, id: &str, name: &str) -> Option<PathBuf> {
    let known = read(&config.join("plugins/known_marketplaces.json"))?;
    let marketplace = known.get(id.split_once('@')?.1)?;
    if marketplace.pointer("/source/source")?.as_str()? != "directory" {
        return None;
    }
    let dir = PathBuf::from(marketplace.get("installLocation")?.as_str()?);
    let Some(list) = read(&dir.join(".claude-plugin/marketplace.json")) else { return Some(dir) };
    let mut plugins = list.get("plugins")?.as_array()?.iter();
    let plugin = plugins.find(|plugin| plugin.get("name").and_then(Value::as_str) == Some(name))?;
    let source = plugin.get("source")?.as_str()?;
    Some(dir.join(source.trim_start_matches("./")))
}

/// The version in a plugin's manifest.
pub fn version(root: &Path) -> Option<String> {
    read(&root.join(".claude-plugin/plugin.json"))?.get("version")?.as_str().map(str::to_owned)
}

/// Why the client would start none of a plugin's monitors; `None` where it would. Its own check passes a file that
/// holds anything but a list (measured).
pub fn monitors_fault(root: &Path) -> Option<String> {
    let path = root.join("monitors/monitors.json");
    match files::read_small(&path, MOST) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some("missing".to_owned()),
        Err(e) => Some(format!("unreadable: {e}")),
        Ok(bytes) => match serde_json::from_slice::<Value>(&bytes) {
            Err(e) => Some(format!("not valid JSON: {e}")),
            Ok(Value::Array(list)) if !list.is_empty() => None,
            Ok(_) => Some("not a list of monitors".to_owned()),
        },
    }
}

/// The directories that a client was given plugins from on its command line.
pub fn given(arguments: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    while let Some(argument) = rest.next() {
        if let Some(dir) = argument.strip_prefix("--plugin-dir=") {
            found.push(PathBuf::from(dir));
        } else if argument == "--plugin-dir" {
            found.extend(rest.next().map(PathBuf::from));
        }
    }
    found
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&files::read_small(path, MOST).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(path: &Path, value: &Value) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, value.to_string()).unwrap();
    }

    #[test]
    fn the_strongest_scope_says_whether_a_plugin_is_on() {
        let root = tempfile::tempdir().unwrap();
        let (config, project) = (root.path().join("c"), root.path().join("p"));
        write(
            &config.join("settings.json"),
            &json!({ "enabledPlugins": { "longhaul@a": true, "other@a": true } }),
        );
        let local = json!({ "enabledPlugins": { "longhaul@a": false, "longhaul@b": true } });
        write(&project.join(".claude/settings.local.json"), &local);
        let flags = Flags { settings: Some(r#"{"disableAllHooks":false}"#.into()), ..Flags::default() };
        let scopes = whole(&Settings::load(Some(&config), Some(&project), &flags), &flags);
        let found = enabled(&scopes, "longhaul");
        let found: Vec<_> = found.iter().map(|(id, on, scope)| (id.as_str(), *on, scope.origin)).collect();
        assert_eq!(found, [("longhaul@a", false, Origin::Local), ("longhaul@b", true, Origin::Local)]);
        let (off, scope) = strongest(&scopes, |all| all.get("disableAllHooks")?.as_bool()).unwrap();
        assert_eq!((off, scope.origin, &*scope.place), (false, Origin::CommandLine, "--settings"));
    }

    /// As 2.1.332 wrote it.
    #[test]
    fn installed_plugins_are_found_with_their_files() {
        let root = tempfile::tempdir().unwrap();
        let (config, checkout) = (root.path().join("c"), root.path().join("checkout"));
        let cache = config.join("plugins/cache/longhaul/longhaul/0.1.0");
        let entry = |path: &Path| json!({ "scope": "user", "installPath": path, "version": "0.1.0" });
        let mut elsewhere = entry(Path::new("/x"));
        elsewhere["projectPath"] = json!("/elsewhere");
        let list = json!({ "version": 2, "plugins": {
            "longhaul@git": [elsewhere, entry(&cache)], "longhaul@here": [entry(&cache)], "other@git": [entry(&cache)] } });
        write(&config.join("plugins/installed_plugins.json"), &list);
        let known = json!({ "here": { "source": { "source": "directory", "path": checkout }, "installLocation": checkout },
            "git": { "source": { "source": "github", "repo": "me/x" }, "installLocation": "/y" } });
        write(&config.join("plugins/known_marketplaces.json"), &known);
        let plugins = json!({ "plugins": [{ "name": "longhaul", "source": "./" }] });
        write(&checkout.join(".claude-plugin/marketplace.json"), &plugins);
        let found = installed(&config, "longhaul", None);
        assert_eq!(
            found,
            [("longhaul@git".to_owned(), cache), ("longhaul@here".to_owned(), checkout.join(""))]
        );
        assert!(installed(&root.path().join("none"), "longhaul", None).is_empty());
    }

    #[test]
    fn a_monitors_file_that_starts_nothing_is_told() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(monitors_fault(root.path()).as_deref(), Some("missing"));
        write(&root.path().join("monitors/monitors.json"), &json!({ "monitors": [] }));
        assert_eq!(monitors_fault(root.path()).as_deref(), Some("not a list of monitors"));
        write(&root.path().join("monitors/monitors.json"), &json!([{ "name": "longhaul" }]));
        assert_eq!(monitors_fault(root.path()), None);
        assert_eq!(monitors_fault(Path::new(env!("CARGO_MANIFEST_DIR"))), None);
        assert_eq!(
            version(Path::new(env!("CARGO_MANIFEST_DIR"))).as_deref(),
            Some(env!("CARGO_PKG_VERSION"))
        );
    }

    #[test]
    fn plugins_on_a_command_line_are_read() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = given(&list("claude --plugin-dir /a --plugin-dir=/b -p -- --plugin-dir /c"));
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/b")]);
    }
}
