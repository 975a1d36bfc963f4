//! Which programs a launcher would start, and what an installed one says of itself.

use std::path::{Path, PathBuf};

use super::Around;
use crate::base::shell::word;
use crate::client::plugins;
use crate::host::runnable::{Hindrance, hindrance};
use crate::host::{files, lies_in, process};
use crate::setup::VERSION;
use crate::setup::doctor::plugin::Plugin;
use crate::setup::doctor::programs::{Program, Programs, Starter};
use crate::setup::programs::{PROGRAMS, beside, file_name, is_current, platform, to_copy, versions};
use crate::store::Store;

/// How long a program of ours may take to say its version, in ms.
const ANSWER_MS: u64 = 10_000;
/// A launcher is a small script; in bytes.
const LAUNCHER_MOST: u64 = 1 << 20;

/// Everything about programs.
pub fn programs(around: &Around<'_>, plugin: &Plugin) -> Programs {
    let store = around.store;
    let installed = versions(store);
    let own = around.host.current_exe().map(|exe| exe.canonicalize().unwrap_or(exe));
    let own_dir = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let outside = own_dir.filter(|dir| !lies_in(dir, &store.bin()));
    let repair = repair(outside.as_deref(), plugin);
    let mut starters = Vec::new();
    let mut roots: Vec<PathBuf> = Vec::new();
    let enabled = plugin.entries.iter().filter(|entry| entry.enabled == Some(true) && entry.there);
    let enabled = enabled.filter_map(|entry| Some((Some(&entry.id), entry.root.clone()?)));
    for (id, root) in enabled.chain(plugin.given.iter().map(|root| (None, root.clone()))) {
        let real = root.canonicalize().unwrap_or_else(|_| root.clone());
        if !roots.contains(&real) {
            starters.push(starter(store, id, &root, &repair));
            roots.push(real);
        }
    }
    if starters.is_empty() {
        let finds = finds(store, VERSION, None);
        starters.push(Starter {
            label: "longhaul".into(),
            starts: VERSION.into(),
            finds,
            ..Starter::default()
        });
    }
    let current = if is_current(store, VERSION) {
        Some(VERSION.to_owned())
    } else {
        let to = store.current().canonicalize().ok().filter(|dir| dir.is_dir());
        to.and_then(|dir| Some(dir.file_name()?.to_string_lossy().into_owned()))
    };
    let mut said: Vec<(String, Option<String>)> = Vec::new();
    for version in starters.iter().map(|starter| &starter.starts) {
        let path = store.bin().join(version).join(file_name(PROGRAMS[0]));
        let asked = said.iter().any(|(have, _)| have == version);
        if !asked && hindrance(&path).is_none() && files::distrust(&path).is_none() {
            let is_own = path.canonicalize().ok() == own;
            said.push((version.clone(), if is_own { Some(VERSION.to_owned()) } else { says(&path) }));
        }
    }
    let newer_build = outside.clone().filter(|dir| {
        let built = beside(dir).ok();
        installed.iter().any(|version| version == VERSION)
            && built
                .is_some_and(|built| to_copy(store, VERSION, &built).is_ok_and(|differ| !differ.is_empty()))
    });
    Programs { own: VERSION.to_owned(), installed, current, said, starters, newer_build, repair }
}

fn starter(store: &Store, id: Option<&String>, root: &Path, repair: &str) -> Starter {
    let version = plugins::version(root);
    let launcher = files::read_small(&root.join("hooks/launcher"), LAUNCHER_MOST).unwrap_or_default();
    let launcher = String::from_utf8_lossy(&launcher);
    let starts = launcher.lines().find_map(|line| line.strip_prefix("version="));
    let starts = starts.map(|text| text.trim().to_owned()).or_else(|| version.clone()).unwrap_or_default();
    let bundled = root.join("programs").join(platform());
    let label =
        id.map_or_else(|| format!("the plugin in {}", root.display()), |id| format!("the plugin {id}"));
    // A checkout is brought up to date by whoever keeps it.
    let update = id.filter(|_| !root.join("Cargo.toml").exists());
    Starter {
        label,
        version,
        finds: finds(store, &starts, Some(&bundled)),
        starts,
        update: update.map(|id| {
            // A tree that setup made is made again by setup.
            if lies_in(root, store.dir()) { repair.to_owned() } else { format!("claude plugin update {id}") }
        }),
    }
}

/// What a launcher of this version finds. It tests the installed program for what `test` can tell, and takes the one
/// that came with the plugin where that fails; that one needs no execute bit, since it is copied.
fn finds(store: &Store, version: &str, bundled: Option<&Path>) -> Vec<Program> {
    let passed_over = |hindrance: &Hindrance| {
        use Hindrance::{Link, Missing, NoExec, NoFile, NotExecutable, OtherOwner};
        matches!(hindrance, Missing | Link | NoFile | OtherOwner | NotExecutable | NoExec)
    };
    let program = |name: &'static str| {
        let path = store.bin().join(version).join(file_name(name));
        let installed = hindrance(&path);
        if installed.as_ref().is_some_and(passed_over)
            && let Some(came) = bundled.map(|dir| dir.join(file_name(name)))
        {
            match hindrance(&came) {
                Some(Hindrance::Missing) => {}
                Some(Hindrance::NotExecutable | Hindrance::OtherOwner | Hindrance::NoExec) => {
                    return Program { name, path: came, hindrance: None };
                }
                found => return Program { name, path: came, hindrance: found },
            }
        }
        Program { name, path, hindrance: installed }
    };
    PROGRAMS.into_iter().map(program).collect()
}

/// The version that an installed `longhaul` says it is.
fn says(path: &Path) -> Option<String> {
    let ran =
        process::run(path, &["--version"], &[], b"", ANSWER_MS).ok().filter(|ran| ran.code == Some(0))?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    text.split_ascii_whitespace().nth(1).map(str::to_owned)
}

/// What installs the programs: the build that looks, the ones that came with the plugin, or a new build.
fn repair(outside: Option<&Path>, plugin: &Plugin) -> String {
    let setup = |dir: &Path| format!("{} setup", word(&dir.join(file_name(PROGRAMS[0])).to_string_lossy()));
    let runs = |dir: &&Path| PROGRAMS.iter().all(|name| hindrance(&dir.join(file_name(name))).is_none());
    if let Some(dir) = outside.filter(runs) {
        return setup(dir);
    }
    let roots = || plugin.entries.iter().filter_map(|entry| entry.root.as_ref()).chain(&plugin.given);
    let bundled: Vec<_> = roots().map(|root| root.join("programs").join(platform())).collect();
    if let Some(dir) = bundled.iter().map(PathBuf::as_path).find(runs) {
        return setup(dir);
    }
    let build = "cargo build --release --locked && ./target/release/longhaul setup";
    let checkout = roots().chain(&plugin.checkout).find(|root| root.join("Cargo.toml").is_file());
    match checkout {
        Some(root) => format!("cd {} && {build}", word(&root.to_string_lossy())),
        None => format!("in a checkout of longhaul: {build}"),
    }
}
