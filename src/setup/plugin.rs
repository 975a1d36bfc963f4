//! The plugin from a checkout: its tree below `<state>/marketplace`, registered as a marketplace of this machine
//! and installed by the client's own command.
//!
//! The client writes the settings file anew for it, in a form of its own (measured, 2.1.332). Where it changed
//! nothing but the two keys of ours, the person's own text comes back with those two put in by span.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::extra::{Step, There, Why, Wish, agreed, kept, step};
use super::file::File;
use super::programs::platform;
use super::report::{self, Part};
use super::tools::Tool;
use super::{About, Question, keys};
use crate::client::lenient::without_mark;
use crate::client::program::{self, Found};
use crate::client::wiring::user_settings;
use crate::host::{Host, files};
use crate::store::Store;
use crate::store::setup::{Extra, Record};

/// The marketplace's name, which is the plugin's too.
const NAME: &str = "longhaul";
/// The plugin as the client names it.
const ID: &str = "longhaul@longhaul";
/// The script that says what the plugin holds.
const SCRIPT: &str = ".ci/plugin-tree";

/// The checkout that a program was built in, if it was.
pub fn checkout(exe: &Path) -> Option<PathBuf> {
    let is_checkout =
        |dir: &&Path| [".claude-plugin/plugin.json", SCRIPT].iter().all(|name| dir.join(name).is_file());
    exe.ancestors().skip(1).find(is_checkout).map(Path::to_owned)
}

/// Where the tree is.
pub fn tree(store: &Store) -> PathBuf {
    store.dir().join("marketplace")
}

/// What it is made from, and whether it is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Made<'m> {
    /// The checkout.
    pub checkout: &'m Path,
    /// The directory of the programs.
    pub programs: &'m Path,
    /// What the person said.
    pub wish: Wish,
    /// For the names of copies.
    pub stamp: &'m str,
}

/// Brings the plugin, brings its tree up to date, takes it away or leaves it. `client` is asked for the client only
/// where something may be done.
pub fn carry_out(
    store: &Store,
    client: &dyn Fn() -> Found,
    made: Made<'_>,
    record: &mut Record,
    dry_run: bool,
    confirm: &mut dyn FnMut(&Question<'_>) -> bool,
) -> Result<Part> {
    let tree = tree(store);
    let part = |action, reason: &str| Part::of(action, reason.to_owned(), &tree);
    if matches!(made.wish, Wish::Leave | Wish::Refuse) && !record.plugin.brought {
        let why = if made.wish == Wish::Refuse { Why::Refused } else { Why::NotAsked };
        kept(why, &mut record.plugin);
        return Ok(keep(why, &tree));
    }
    let Some(client) = tool(client()) else {
        return Ok(part("absent", "there is no Claude Code here; run this again once there is"));
    };
    let there = look(&client, &tree)?;
    let step = step(made.wish, there, &record.plugin);
    let settings = File::read(&user_settings(store.config()))?;
    let (expected, keys) = keys::set(&settings, &wanted(&tree)?)?;
    let diff = || report::diff(&settings.named, settings.bytes.as_deref(), Some(&expected));
    let step = agreed(step, dry_run, confirm, About::Plugin, diff);
    let loads = "every new session loads the plugin from there";
    Ok(match step {
        Step::Offer | Step::Bring if dry_run => part("added", loads).with(diff()),
        Step::Offer | Step::Bring => {
            build(made, &tree, false)?;
            let installed = install(&client, &tree);
            if installed.is_err() {
                let _ = client.ask(&["plugin", "marketplace", "remove", NAME], b"");
                remove_tree(&tree)?;
            }
            installed?;
            record.plugin = Extra { brought: true, ..Extra::default() };
            mend(store, record, &settings, &expected, keys, made.stamp)?;
            part("added", loads)
        }
        Step::Take if dry_run => part("removed", "it is not wanted"),
        Step::Take => {
            uninstall(&client, &tree)?;
            record.plugin = Extra { declined: true, ..Extra::default() };
            part("removed", "it is not wanted")
        }
        Step::Keep(Why::Current) => {
            kept(Why::Current, &mut record.plugin);
            if build(made, &tree, dry_run)? { part("updated", loads) } else { part("unchanged", loads) }
        }
        Step::Keep(why) => {
            kept(why, &mut record.plugin);
            keep(why, &tree)
        }
    })
}

/// Takes a plugin away that was brought, once its keys are out of the settings.
pub fn undo(
    host: &Host,
    store: &Store,
    untrusted: &[PathBuf],
    record: &mut Extra,
    dry_run: bool,
) -> Result<Option<Part>> {
    let tree = tree(store);
    if !record.brought && !tree.is_dir() {
        return Ok(None);
    }
    let part = Part::of("removed", "setup had installed the plugin from there".to_owned(), &tree);
    if dry_run {
        return Ok(Some(part));
    }
    if let Some(client) = tool(program::find(host, None, untrusted, &mut Vec::new())) {
        uninstall(&client, &tree)?;
    }
    remove_tree(&tree)?;
    *record = Extra::default();
    Ok(Some(part))
}

fn tool(client: Found) -> Option<Tool> {
    match client {
        Found::Nothing => None,
        Found::Unknown(path) | Found::Is(path, _) => Some(Tool::at(path)),
    }
}

/// The keys that the client sets in the person's settings.
fn wanted(tree: &Path) -> Result<[keys::Wanted<'static>; 2]> {
    let path = tree.to_str().with_context(|| {
        format!("could not register {}: the path is not UTF-8; set CLAUDE_CONFIG_DIR", tree.display())
    })?;
    Ok([
        (&["extraKnownMarketplaces", NAME], json!({ "source": { "source": "directory", "path": path } })),
        (&["enabledPlugins", ID], json!(true)),
    ])
}

fn look(client: &Tool, tree: &Path) -> Result<There> {
    let list = |args: &[&str]| -> Result<Vec<Value>> {
        let said = client.run(args, b"")?;
        serde_json::from_slice(&said)
            .with_context(|| format!("could not read what `claude {}` said", args.join(" ")))
    };
    let places = list(&["plugin", "marketplace", "list", "--json"])?;
    let Some(place) = places.iter().find(|place| place["name"] == NAME) else { return Ok(There::Absent) };
    let ours = ["path", "installLocation"].iter().any(|key| place[key].as_str().map(Path::new) == Some(tree));
    if !ours {
        return Ok(There::Foreign);
    }
    let plugins = list(&["plugin", "list", "--json"])?;
    Ok(if plugins.iter().any(|plugin| plugin["id"] == ID) { There::Current } else { There::Absent })
}

fn install(client: &Tool, tree: &Path) -> Result<()> {
    let path = tree.to_string_lossy();
    client
        .run(&["plugin", "marketplace", "add", &path], b"")
        .context("could not register the marketplace")?;
    client.run(&["plugin", "install", ID], b"").context("could not install the plugin")?;
    Ok(())
}

fn uninstall(client: &Tool, tree: &Path) -> Result<()> {
    if look(client, tree)? == There::Foreign {
        return Ok(());
    }
    // What the person took out already is no matter.
    client.ask(&["plugin", "uninstall", ID], b"")?;
    client.ask(&["plugin", "marketplace", "remove", NAME], b"")?;
    Ok(())
}

/// Makes the tree from the checkout; `false` where the one that is there is the same. With `dry_run` it is made
/// elsewhere and only compared.
fn build(made: Made<'_>, tree: &Path, dry_run: bool) -> Result<bool> {
    let script = made.checkout.join(SCRIPT);
    if let Some(why) = files::distrust(&script) {
        bail!("could not run {}: it {why}", script.display());
    }
    let parent = tree.parent().unwrap_or(Path::new("/"));
    let mut room = tempfile::Builder::new();
    let room = room.prefix(".lh-tree-");
    let room = if dry_run { room.tempdir() } else { room.tempdir_in(parent) };
    let room = room.context("could not make a directory for the plugin's tree")?;
    let new = room.path().join("tree");
    let sh = Tool::at(PathBuf::from("/bin/sh"));
    let text =
        |path: &Path| path.to_str().map(str::to_owned).context("could not build in a path that is not UTF-8");
    let programs = format!("{}={}", platform(), text(made.programs)?);
    sh.run(&[&text(&script)?, &text(&new)?, &programs], b"").context("could not build the plugin's tree")?;
    if same(&new, tree).unwrap_or(false) {
        return Ok(false);
    }
    if !dry_run {
        if tree.exists() {
            fs_err::rename(tree, room.path().join("old"))?;
        }
        fs_err::rename(&new, tree)?;
    }
    Ok(true)
}

/// Whether two trees hold the same files.
fn same(one: &Path, other: &Path) -> std::io::Result<bool> {
    let names = |dir: &Path| -> std::io::Result<Vec<_>> {
        let mut names: Vec<_> =
            fs_err::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>()?;
        names.sort();
        Ok(names)
    };
    let (mine, theirs) = (names(one)?, names(other)?);
    if mine != theirs {
        return Ok(false);
    }
    for name in mine {
        let (a, b) = (one.join(&name), other.join(&name));
        let alike = match (a.is_dir(), b.is_dir()) {
            (true, true) => same(&a, &b)?,
            (false, false) => fs_err::read(&a)? == fs_err::read(&b)?,
            _ => false,
        };
        if !alike {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives the person's settings their own text back, with the two keys put in by span.
fn mend(
    store: &Store,
    record: &mut Record,
    before: &File,
    expected: &[u8],
    keys: Vec<crate::store::setup::Key>,
    stamp: &str,
) -> Result<()> {
    let now = File::read(&before.named)?;
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(without_mark(bytes)).ok();
    let is_same = now.bytes.as_deref().and_then(value).is_some_and(|now| value(expected) == Some(now));
    if is_same && !keys.is_empty() {
        // Where it is written by somebody else once more, it is theirs.
        keys::write(store, record, &now, before, expected, keys, stamp)?;
    }
    Ok(())
}

fn remove_tree(tree: &Path) -> Result<()> {
    match fs_err::remove_dir_all(tree) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).context("could not take the tree away"),
        _ => Ok(()),
    }
}

fn keep(why: Why, tree: &Path) -> Part {
    let (action, reason) = match why {
        Why::Current => ("unchanged", "the plugin is installed"),
        Why::Foreign => (
            "kept",
            "Claude Code has a marketplace named longhaul from elsewhere, and the plugin comes from there; after \
             `claude plugin marketplace remove longhaul` setup can bring this one",
        ),
        Why::Removed => {
            ("kept", "the plugin was taken out or declined; `longhaul setup --plugin` installs it")
        }
        Why::Refused => ("kept", "the plugin is not wanted; `longhaul setup --plugin` installs it"),
        Why::NotAsked => ("kept", "nobody asked for the plugin; `longhaul setup --plugin` installs it"),
    };
    Part::of(action, reason.to_owned(), tree)
}
