//! Gathers the facts: the one place of doctor that reads the machine.

mod place;
mod programs;
mod running;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::settings::{Settings as OfSettings, Unread, Variable};
use super::{Facts, plugin};
use crate::base::id::SessionId;
use crate::client::edit::Document;
use crate::client::flags::Flags;
use crate::client::lenient::without_mark;
use crate::client::plugins::{self, Whole};
use crate::client::program::{self, Found};
use crate::client::session_file::{self, SessionFile};
use crate::client::settings::{Origin, Settings};
use crate::host::{Host, files, lies_in, process};
use crate::store::Store;
use crate::store::config::Config;
use crate::store::setup::{Key, Read, Record};

/// The plugin's name.
const PLUGIN: &str = "longhaul";
/// Variables that lead our programs somewhere, beside those that begin with our own name.
const LEADING: [&str; 2] = ["CLAUDE_BIN", "CLAUDE_CONFIG_DIR"];
/// A settings file larger than this is not read, in bytes.
const MOST: u64 = 8 << 20;

/// What is known before anything is looked at.
struct Around<'a> {
    host: &'a Host,
    store: &'a Store,
    /// Where the person is.
    project: Option<PathBuf>,
    /// Where nothing is run from.
    untrusted: Vec<PathBuf>,
    /// The client that this shell runs in.
    client: Option<u32>,
    /// Its arguments.
    arguments: Vec<String>,
    settings: Settings,
    whole: Vec<Whole>,
    /// Our own configuration, or why it cannot be read.
    config: Result<Config, String>,
    /// What setup remembers of itself.
    record: Record,
    /// What the clients that run say of their sessions.
    open: Vec<SessionFile>,
}

/// Where the person is: a project, as the client says, else the directory of this shell.
pub fn project(host: &Host) -> Option<PathBuf> {
    host.env_path("CLAUDE_PROJECT_DIR").or_else(|| host.current_dir())
}

/// The session that this shell runs in.
fn own_session(host: &Host) -> Option<SessionId> {
    SessionId::parse(&host.env("CLAUDE_CODE_SESSION_ID")?)
}

/// Everything that is looked at.
pub fn gather(host: &Host, store: &Store) -> Facts {
    let own = own_session(host).and_then(|id| session_file::of_session(store.config(), &id));
    // A shell in a session may have gone elsewhere since.
    let started_in = own.as_ref().and_then(|file| file.cwd.as_ref()).map(PathBuf::from);
    let project = host.env_path("CLAUDE_PROJECT_DIR").or(started_in).or_else(|| project(host));
    let named = host.env("CLAUDE_PID").and_then(|pid| pid.parse().ok());
    let client: Option<u32> = named.or_else(|| own.as_ref()?.pid);
    let arguments = client.and_then(process::arguments).unwrap_or_default();
    let flags = Flags::read(&arguments);
    let settings = Settings::load(Some(store.config()), project.as_deref(), &flags);
    let whole = plugins::whole(&settings, &flags);
    let untrusted = project.iter().cloned().chain(host.current_dir()).collect();
    // A record that cannot be read is told of as such.
    let record = match store.read_setup() {
        Ok(Read::Known(record)) => *record,
        _ => Record::default(),
    };
    let config = store.config_file();
    let open = session_file::all(store.config());
    let around =
        Around { host, store, project, untrusted, client, arguments, settings, whole, config, record, open };

    let client = client_of(&around);
    let plugin = plugin_of(&around);
    let sessions = running::sessions(&around);
    let statusline = running::statusline(&around, &client, &plugin);
    Facts {
        programs: programs::programs(&around, &plugin),
        wall: running::wall(&around),
        settings: settings_of(&around),
        places: place::places(&around),
        client,
        plugin,
        sessions,
        statusline,
    }
}

/// What a project's settings say, where there is no place for our files.
pub fn project_alone(host: &Host) -> OfSettings {
    let project = project(host);
    let settings = Settings::load(None, project.as_deref(), &Flags::default());
    OfSettings { variables: variables(host, &settings, project.as_deref()), ..OfSettings::default() }
}

fn client_of(around: &Around<'_>) -> plugin::Client {
    let mut refused = Vec::new();
    let mut found = program::find(around.host, around.client, &around.untrusted, &mut refused);
    if found == Found::Nothing && refused.is_empty() {
        // One that was started by its whole path, as an editor does.
        if let Some(pid) = around.open.iter().find_map(|file| file.pid) {
            found = program::find(around.host, Some(pid), &around.untrusted, &mut refused);
        }
    }
    plugin::Client { found, refused }
}

fn plugin_of(around: &Around<'_>) -> plugin::Plugin {
    let installed = plugins::installed(around.store.config(), PLUGIN, around.project.as_deref());
    let enabled = plugins::enabled(&around.whole, PLUGIN);
    let mut entries: Vec<_> = enabled
        .iter()
        .map(|(id, on, scope)| {
            let place = scope.origin.to_string();
            entry(id, Some(*on), place, installed.iter().find(|(have, _)| have == id).map(|(_, root)| root))
        })
        .collect();
    for (id, root) in &installed {
        if entries.iter().all(|entry| entry.id != *id) {
            entries.push(entry(id, None, String::new(), Some(root)));
        }
    }
    let given =
        plugins::given(&around.arguments).into_iter().chain(around.host.env_path("CLAUDE_PLUGIN_ROOT"));
    let is_it = |dir: &PathBuf| {
        plugins::version(dir).is_some()
            && dir.join("hooks/launcher").is_file()
            && dir.join("monitors").is_dir()
    };
    let given = given.filter(is_it).collect();
    plugin::Plugin { entries, given, checkout: checkout(around.host) }
}

fn entry(id: &str, enabled: Option<bool>, place: String, root: Option<&PathBuf>) -> plugin::Entry {
    let there = root.is_some_and(|root| plugins::version(root).is_some());
    let monitors = root.filter(|_| there).and_then(|root| plugins::monitors_fault(root));
    plugin::Entry { id: id.to_owned(), enabled, place, root: root.cloned(), there, monitors }
}

/// The checkout that this program was built in.
fn checkout(host: &Host) -> Option<PathBuf> {
    let exe = host.current_exe()?;
    let exe = exe.canonicalize().unwrap_or(exe);
    let root = exe.ancestors().nth(3)?;
    let is_it = exe.ancestors().nth(2)?.file_name()? == "target" && plugins::version(root).is_some();
    is_it.then(|| root.to_path_buf())
}

fn settings_of(around: &Around<'_>) -> OfSettings {
    OfSettings {
        files: around.settings.scopes.iter().filter(|scope| scope.path.is_some()).count(),
        unread: around.settings.problems.iter().map(unread).collect(),
        dropped: dropped(&around.record),
        variables: variables(around.host, &around.settings, around.project.as_deref()),
        configured: around.store.dir().join("config.json").exists(),
        config: around.config.as_ref().err().cloned(),
    }
}

/// Keys that setup wrote beside the status line, and that are gone or of another value.
fn dropped(record: &Record) -> Vec<(String, String)> {
    let Some(wrote) = &record.settings else { return Vec::new() };
    let bytes = files::read_small(&wrote.path, MOST).unwrap_or_default();
    let have: Value = serde_json::from_slice(without_mark(&bytes)).unwrap_or_default();
    let is_gone = |key: &&Key| {
        let stands = key.path.iter().try_fold(&have, |object, name| object.get(name));
        let wrote: Option<Value> = serde_json::from_str(&key.wrote).ok();
        // Whether the plugin is enabled is a line of its own.
        !matches!(key.path.first().map(String::as_str), None | Some("enabledPlugins"))
            && stands != wrote.as_ref()
    };
    let gone = wrote.keys.iter().filter(is_gone);
    gone.map(|key| (key.path.join("."), wrote.path.display().to_string())).collect()
}

/// A file that the client drops, with the line where there is one.
fn unread(problem: &crate::client::settings::Problem) -> Unread {
    let key = problem.what.split('`').nth(1);
    let line = key.and_then(|key| {
        let bytes = files::read_small(Path::new(&problem.place), MOST).ok()?;
        Document::parse(&bytes).ok()?.line_of(key)
    });
    let what = line.map_or_else(|| problem.what.clone(), |line| format!("line {line}: {}", problem.what));
    Unread { place: problem.place.clone(), what }
}

fn variables(host: &Host, settings: &Settings, project: Option<&Path>) -> Vec<Variable> {
    let Some(project) = project else { return Vec::new() };
    // A project that holds the home directory is the person's own place.
    let own = host.home().is_some_and(|home| lies_in(&home, project));
    let mut found = Vec::new();
    for scope in
        settings.scopes.iter().filter(|scope| matches!(scope.origin, Origin::Local | Origin::Project))
    {
        let ours = scope
            .values
            .env
            .iter()
            .filter(|(name, _)| LEADING.contains(&name.as_str()) || name.starts_with("LONGHAUL_"));
        found.extend(ours.map(|(name, value)| Variable {
            name: name.clone(),
            value: value.clone(),
            place: scope.path.as_ref().map_or_else(String::new, |path| path.display().to_string()),
            inside: !own && value.contains(['/', '\\']) && lies_in(&project.join(value), project),
        }));
    }
    found
}
