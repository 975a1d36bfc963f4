//! The plugin from a checkout, by a stand-in for the client's command that behaves as it was measured to.

use std::path::PathBuf;

use longhaul::setup::decide::Ask;
use longhaul::setup::extra::Wish;
use longhaul::setup::report::Report;
use longhaul::setup::{self, About, Request};

use super::{Machine, program};
use crate::sandbox::Sandbox;

/// Keeps marketplaces and plugins in files beside itself, and rewrites settings whole where it adds.
const CLAUDE: &str = r#"dir=${0%/*}
settings=$(/bin/cat "$dir/settings")
place=$(/bin/cat "$dir/place" 2>/dev/null)
echo "$*" >>"$dir/told"
case "$*" in
--version) echo "2.1.332 (Claude Code)" ;;
"plugin marketplace list --json")
    if [ -n "$place" ]; then echo "[{\"name\":\"longhaul\",\"source\":\"directory\",\"path\":\"$place\"}]"; else echo '[]'; fi ;;
"plugin list --json")
    if [ -f "$dir/plugin" ]; then echo '[{"id":"longhaul@longhaul","enabled":true}]'; else echo '[]'; fi ;;
"plugin marketplace add "*) printf %s "$4" >"$dir/place" ;;
"plugin install longhaul@longhaul")
    [ ! -f "$dir/refuses" ] || { echo "no room" >&2; exit 1; }
    : >"$dir/plugin"; [ ! -f "$dir/rewritten" ] || /bin/cat "$dir/rewritten" >"$settings" ;;
"plugin uninstall longhaul@longhaul") /bin/rm "$dir/plugin" ;;
"plugin marketplace remove longhaul") /bin/rm "$dir/place" ;;
*) echo "unknown: $*" >&2; exit 2 ;;
esac"#;

struct Wired {
    machine: Machine,
    client: PathBuf,
}

impl Wired {
    fn new(home: &str) -> Self {
        let mut machine = Machine::with_home(home);
        let client = machine.root.path().join("client");
        program(&client.join("claude"), CLAUDE);
        fs_err::write(client.join("settings"), machine.settings().to_str().unwrap()).unwrap();
        machine.env.push(("PATH".to_owned(), client.to_str().unwrap().to_owned()));
        Self { machine, client }
    }

    /// What the client makes of the settings when it adds the plugin.
    fn rewrites(&self, before: &str) {
        let mut value: serde_json::Value = serde_json::from_str(before).unwrap();
        let path = self.tree();
        value["enabledPlugins"] = serde_json::json!({ "longhaul@longhaul": true });
        value["extraKnownMarketplaces"] =
            serde_json::json!({ "longhaul": { "source": { "source": "directory", "path": path } } });
        fs_err::write(self.client.join("rewritten"), format!("{value:#}")).unwrap();
    }

    fn tree(&self) -> PathBuf {
        self.machine.store().dir().join("marketplace")
    }

    fn install(&self, plugin: Wish, dry_run: bool) -> Report {
        let request = Request {
            plugin,
            checkout: Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))),
            ..self.machine.request(Ask::Leave, dry_run)
        };
        setup::install(&self.machine.host(), &self.machine.store(), &request, &mut |question| {
            assert_eq!(question.about, About::Plugin);
            true
        })
        .unwrap()
    }

    #[track_caller]
    fn action(&self, plugin: Wish) -> &'static str {
        let part = self.install(plugin, false).plugin.unwrap();
        assert_ne!(part.action, "failed", "{}", part.reason);
        part.action
    }

    fn told(&self, what: &str) -> usize {
        let told = fs_err::read_to_string(self.client.join("told")).unwrap_or_default();
        told.lines().filter(|line| line.starts_with(what)).count()
    }
}

#[test]
fn the_plugin_comes_from_a_tree_of_ours_and_settings_keep_their_own_text() {
    let wired = Wired::new("my home's $HOME 日本");
    let text = "{\r\n\t\"model\": \"opus\",\r\n\t\"unknown\": {\"b\":1,  \"a\":2.50}\r\n}\r\n";
    wired.machine.write(text);
    wired.rewrites(text);
    assert_eq!(wired.action(Wish::Offer), "added");
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    for file in
        ["hooks/launcher", ".claude-plugin/marketplace.json", &format!("programs/{platform}/longhaul-hook")]
    {
        assert!(wired.tree().join(file).is_file(), "{file}");
    }
    let sums = fs_err::read_to_string(wired.tree().join("programs/SHA256SUMS")).unwrap();
    assert!(sums.lines().count() == 4 && sums.contains(&format!("{platform}/longhaul\n")), "{sums}");
    assert!(!wired.tree().join("src").exists() && !wired.tree().join("hooks/main.rs").exists());
    let now = wired.machine.text();
    assert!(now.starts_with(&text[..text.len() - 5]) && now.contains("\"longhaul@longhaul\": true"), "{now}");

    let before = wired.machine.snapshot();
    assert_eq!(wired.action(Wish::Offer), "unchanged");
    assert_eq!(wired.told("plugin install"), 1);
    let told = wired.client.join("told");
    let quiet = |mut all: Vec<(PathBuf, u32, Vec<u8>)>| {
        all.retain(|(path, ..)| *path != told);
        all
    };
    assert_eq!(quiet(wired.machine.snapshot()), quiet(before), "twice is a no-op");

    let report = wired.machine.undo();
    assert_eq!((report.plugin.unwrap().action, report.settings.action), ("removed", "restored"));
    assert_eq!(wired.machine.text(), text);
    assert!(!wired.tree().exists() && !wired.client.join("plugin").exists());
    assert!(!wired.client.join("place").exists() && wired.machine.backups().is_empty());
    assert_eq!(wired.machine.undo().plugin, None);
}

#[test]
fn a_new_build_takes_the_trees_place() {
    let wired = Wired::new("home");
    assert_eq!(wired.action(Wish::Bring), "added");
    program(&wired.machine.source().join("longhaul-hook"), "echo newer");
    assert_eq!(wired.install(Wish::Offer, true).plugin.unwrap().action, "updated");
    assert_eq!(wired.action(Wish::Offer), "updated");
    let sums = fs_err::read_dir(wired.tree().join("programs")).unwrap().count();
    assert_eq!((sums, wired.action(Wish::Offer)), (2, "unchanged"));
    let names = fs_err::read_dir(wired.machine.store().dir()).unwrap();
    let litter =
        names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().starts_with(".lh-"));
    assert_eq!(litter.count(), 0);
}

#[test]
fn a_marketplace_of_that_name_from_elsewhere_stays() {
    let wired = Wired::new("home");
    fs_err::write(wired.client.join("place"), "/somewhere/else").unwrap();
    for wish in [Wish::Offer, Wish::Bring, Wish::Refuse] {
        assert_eq!(wired.action(wish), "kept");
    }
    assert_eq!(fs_err::read_to_string(wired.client.join("place")).unwrap(), "/somewhere/else");
    wired.machine.undo();
    assert!(wired.client.join("place").exists());
}

#[test]
fn a_plugin_that_was_taken_out_stays_out_until_asked_for_by_name() {
    let wired = Wired::new("home");
    wired.action(Wish::Offer);
    fs_err::remove_file(wired.client.join("plugin")).unwrap();
    assert_eq!(wired.action(Wish::Offer), "kept");
    assert_eq!(wired.action(Wish::Offer), "kept");
    assert_eq!(wired.action(Wish::Bring), "added");
    assert_eq!(wired.action(Wish::Refuse), "removed");
    assert_eq!(wired.action(Wish::Offer), "kept");
}

#[test]
fn a_client_that_refuses_leaves_the_rest_done_and_nothing_of_the_plugin() {
    let wired = Wired::new("home");
    fs_err::write(wired.client.join("refuses"), "").unwrap();
    let report = wired.install(Wish::Bring, false);
    assert!(report.failed() && report.programs.action == "installed");
    assert!(report.plugin.unwrap().reason.contains("no room"));
    assert!(!wired.tree().exists() && !wired.client.join("place").exists());
}

#[test]
fn a_dry_run_asks_the_client_and_changes_nothing() {
    let wired = Wired::new("home");
    let before = wired.machine.snapshot();
    let part = wired.install(Wish::Offer, true).plugin.unwrap();
    assert!(part.action == "added" && part.diff.unwrap().contains("+    \"longhaul@longhaul\": true"));
    fs_err::remove_file(wired.client.join("told")).unwrap();
    assert_eq!(wired.machine.snapshot(), before);
}

#[test]
fn without_a_client_it_is_said() {
    let mut wired = Wired::new("home");
    wired.machine.env.last_mut().unwrap().1 = "/none".to_owned();
    assert_eq!(wired.action(Wish::Bring), "absent");
    assert!(!wired.tree().exists());
}

// A project's settings can set PATH and CLAUDE_BIN.
#[test]
fn a_client_of_the_project_is_not_run() {
    let mut wired = Wired::new("home");
    let evil = wired.client.join("claude").to_str().unwrap().to_owned();
    wired.machine.env.push(("CLAUDE_BIN".to_owned(), evil));
    let request = Request {
        plugin: Wish::Bring,
        checkout: Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))),
        untrusted: vec![wired.client.clone()],
        ..wired.machine.request(Ask::Auto, false)
    };
    let report =
        setup::install(&wired.machine.host(), &wired.machine.store(), &request, &mut |_| true).unwrap();
    assert_eq!(report.plugin.unwrap().action, "absent");
    assert_eq!(wired.told(""), 0);
}

#[test]
fn without_a_client_the_programs_are_shown_at_work_and_nothing_of_that_is_kept() {
    let sandbox = Sandbox::new().env("PATH", "/none");
    let said = sandbox.longhaul(&["setup", "--no-statusline"]);
    assert_eq!((said.code, &*said.stderr), (0, ""), "{said:?}");
    for part in
        ["86% 830k/967k", "effective = 1000000 - 20000", "01-user-messages", "The parser drops the last line"]
    {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let left = fs_err::read_dir(sandbox.root.path().join("tmp")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("sample")), "{left:?}");
    assert!(!sandbox.state().join("handoffs").exists());
}
