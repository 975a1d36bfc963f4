//! Our side: the freshly built programs, and the plugin as the client would have it installed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bench::{Bench, write_json};
use crate::client::PINNED;

/// What of the repository is the plugin.
const PARTS: [&str; 5] = [".claude-plugin", "hooks", "monitors", "statusline", "skills"];

/// The programs, by their names.
pub const PROGRAMS: [(&str, &str); 4] = [
    ("longhaul", env!("CARGO_BIN_EXE_longhaul")),
    ("longhaul-hook", env!("CARGO_BIN_EXE_longhaul-hook")),
    ("longhaul-statusline", env!("CARGO_BIN_EXE_longhaul-statusline")),
    ("longhaul-watch", env!("CARGO_BIN_EXE_longhaul-watch")),
];

/// Where the programs stand in a bench, as `longhaul setup` would put them.
pub fn programs(bench: &Bench) -> PathBuf {
    bench.config().join("longhaul/bin").join(env!("CARGO_PKG_VERSION"))
}

/// Puts the programs into the bench's state directory.
pub fn install(bench: &Bench) {
    let dir = programs(bench);
    std::fs::create_dir_all(&dir).unwrap();
    for private in [dir.ancestors().nth(2).unwrap(), dir.parent().unwrap(), &dir] {
        std::fs::set_permissions(private, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    for (name, built) in PROGRAMS {
        // A link costs nothing, and is the same file; another file system needs the copy.
        if std::fs::hard_link(built, dir.join(name)).is_err() {
            std::fs::copy(built, dir.join(name)).unwrap();
        }
    }
}

/// Loads the plugin, from a copy of its files: the client lays type files beside a module.
pub fn plugged(bench: Bench) -> Bench {
    install(&bench);
    let dir = staged(&bench);
    bench.plugin(&dir)
}

/// The plugin without its module, as a client older than modules sees it.
pub fn plugged_without_module(bench: Bench) -> Bench {
    install(&bench);
    let dir = staged(&bench);
    let path = dir.join("hooks/hooks.json");
    let mut hooks: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    hooks.as_object_mut().unwrap().remove("modules").expect("the plugin has a module");
    write_json(&path, &hooks);
    std::fs::remove_file(dir.join("hooks/register.ts")).unwrap();
    bench.plugin(&dir)
}

fn staged(bench: &Bench) -> PathBuf {
    let dir = bench.path("longhaul");
    stage(&dir);
    dir
}

/// Copies the plugin's files to there.
pub fn stage(dir: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for part in PARTS.iter().filter(|part| root.join(part).is_dir()) {
        copy_tree(&root.join(part), &dir.join(part));
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && entry.file_name() == "types" => {}
            kind if kind.is_dir() => copy_tree(&entry.path(), &target),
            _ => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// `longhaul …` in the bench's environment: what it printed.
#[track_caller]
pub fn longhaul(bench: &Bench, args: &[&str]) -> String {
    let mut line = vec![PROGRAMS[0].1.to_owned()];
    line.extend(args.iter().map(|&arg| arg.to_owned()));
    let out = bench.run(&line, &[], b"");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "longhaul {args:?} ended with {:?}: {errors}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

/// `longhaul explain … --json` in the bench's environment.
#[track_caller]
pub fn explain(bench: &Bench, args: &[&str], env: &[(&str, &str)]) -> Value {
    let mut line = vec![PROGRAMS[0].1.to_owned(), "explain".to_owned(), "--json".to_owned()];
    line.extend(args.iter().map(|&arg| arg.to_owned()));
    let out = bench.run(&line, env, b"");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "explain {args:?} ended with {:?}: {errors}", out.status);
    serde_json::from_slice(&out.stdout).unwrap()
}

/// `explain` on the payload that a status line of this model would be given, beside a running client: whose
/// argument list is one of the inputs.
#[track_caller]
pub fn explain_payload(bench: &Bench, model: &str, window: u64, client: u32) -> Value {
    let file = bench.path("payload.json");
    let work = bench.work();
    let payload = json!({ "session_id": "00000000-0000-4000-8000-000000000000", "cwd": work, "version": PINNED,
        "model": { "id": model, "display_name": model },
        "workspace": { "current_dir": work, "project_dir": work, "added_dirs": [] },
        "context_window": { "context_window_size": window, "current_usage": null, "used_percentage": null } });
    write_json(&file, &payload);
    let pid = client.to_string();
    explain(bench, &["--payload", file.to_str().unwrap()], &[("CLAUDE_PID", &pid)])
}
