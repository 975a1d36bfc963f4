//! Compaction switched off: three keys, one typed word.

use longhaul::setup::compaction::Compaction;
use longhaul::setup::decide::Ask;
use longhaul::setup::report::{Part, Report};
use longhaul::setup::{self, About, Request};

use super::Machine;
use crate::sandbox::Sandbox;

fn try_off(machine: &Machine, ask: Ask, wish: Compaction, agrees: bool) -> anyhow::Result<Report> {
    let request = Request { compaction: Some(wish), ..machine.request(ask, false) };
    setup::install(&machine.host(), &machine.store(), &request, &mut |question| {
        agrees || !matches!(question.about, About::Compaction(_))
    })
}

fn window(window: u64) -> Compaction {
    Compaction { window, force: false }
}

#[track_caller]
fn off(machine: &Machine) -> Part {
    try_off(machine, Ask::Leave, window(400_000), true).unwrap().compaction.unwrap()
}

#[test]
fn three_keys_are_set_by_span_and_taken_back_byte_for_byte() {
    for before in [
        "",
        "{}",
        "{\n\t\"env\": {\n\t\t\"A\": \"1\" // one\n\t},\n\t\"z\": 2.50\n}\n",
        "\u{feff}{\r\n  \"model\": \"haiku\",\r\n  \"autoCompactEnabled\": true\r\n}\r\n",
        "{\"env\": {\"DISABLE_COMPACT\": \"0\"}, \"b\":1,  \"a\":2}",
    ] {
        let machine = Machine::new();
        machine.write(before);
        assert_eq!(off(&machine).action, "added", "{before}");
        let now = machine.text();
        for part in ["\"DISABLE_COMPACT\"", "\"CLAUDE_CODE_MAX_CONTEXT_TOKENS\"", "\"autoCompactEnabled\""] {
            assert_eq!(now.matches(part).count(), 1, "{now}");
        }
        if before.contains('z') {
            let within = "\t\t\"A\": \"1\", // one\n\t\t\"DISABLE_COMPACT\": \"1\",\n\t\t\"CLAUDE_CODE_MAX_CONTEXT_TOKENS\": \"400000\"\n\t},";
            assert!(now.contains(within) && now.contains("\"z\": 2.50,"), "{now}");
        }
        let again = machine.snapshot();
        assert_eq!(off(&machine).action, "unchanged");
        assert_eq!(machine.snapshot(), again, "twice is a no-op");
        assert_eq!(machine.undo().settings.action, "restored");
        assert_eq!(machine.text(), before);
        assert!(machine.backups().is_empty());
    }
}

#[test]
fn without_a_settings_file_one_is_made_and_goes_again() {
    let machine = Machine::new();
    off(&machine);
    assert!(machine.text().contains("\"autoCompactEnabled\": false"));
    machine.undo();
    assert!(!machine.settings().exists());
}

#[test]
fn only_what_is_still_ours_is_undone_in_an_edited_file() {
    let machine = Machine::new();
    machine.write("{\n  \"env\": {\n    \"A\": \"1\"\n  },\n  \"autoCompactEnabled\": true\n}\n");
    try_off(&machine, Ask::Ours, window(400_000), true).unwrap();
    let edited = machine.text().replace("\"400000\"", "\"500000\"").replace("\"A\": \"1\"", "\"A\": \"2\"");
    machine.write(&edited);
    assert_eq!(machine.undo().settings.action, "removed");
    assert_eq!(
        machine.text(),
        "{\n  \"env\": {\n    \"A\": \"2\",\n    \"CLAUDE_CODE_MAX_CONTEXT_TOKENS\": \"500000\"\n  },\n  \"autoCompactEnabled\": true\n}\n"
    );

    let machine = Machine::new();
    machine.write("{\n  \"model\": \"opus\"\n}\n");
    off(&machine);
    machine.write(&machine.text().replace("opus", "sonnet"));
    machine.undo();
    assert_eq!(machine.text(), "{\n  \"model\": \"sonnet\"\n}\n", "an object made for it goes with it");
}

#[test]
fn what_was_there_without_setup_stays() {
    let machine = Machine::new();
    let text = "{\"env\": {\"DISABLE_COMPACT\": \"1\", \"CLAUDE_CODE_MAX_CONTEXT_TOKENS\": \"400000\"}, \"autoCompactEnabled\": false}";
    machine.write(text);
    assert_eq!(off(&machine).action, "unchanged");
    machine.undo();
    assert_eq!(machine.text(), text);
}

#[test]
fn the_status_line_and_the_keys_come_and_go_in_any_order() {
    let text = "{\n  \"a\": 1\n}\n";
    for line_first in [true, false] {
        let machine = Machine::new();
        machine.write(text);
        if line_first {
            machine.setup(Ask::Ours);
            off(&machine);
        } else {
            off(&machine);
            machine.setup(Ask::Ours);
        }
        assert!(machine.text().contains("statusLine") && machine.text().contains("DISABLE_COMPACT"));
        // The person takes the status line out, and it stays out; the keys are still known.
        let whole = machine.text();
        let document: serde_json::Value = serde_json::from_str(&whole).unwrap();
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove("statusLine");
        machine.write(&without.to_string());
        assert_eq!(machine.setup(Ask::Auto).settings.action, "kept");
        assert!(!machine.text().contains("statusLine"));
        machine.undo();
        assert_eq!(machine.text(), "{\"a\":1}");

        machine.write(text);
        off(&machine);
        machine.setup(Ask::Ours);
        assert_eq!(machine.undo().settings.action, "restored");
        assert_eq!(machine.text(), text);
    }
}

#[test]
fn anything_but_yes_changes_nothing() {
    let machine = Machine::new();
    machine.write("{}");
    let report = try_off(&machine, Ask::Leave, window(400_000), false).unwrap();
    assert_eq!(report.compaction.unwrap().action, "kept");
    assert_eq!(machine.text(), "{}");
}

#[test]
fn a_window_beyond_the_models_takes_force() {
    let machine = Machine::new();
    let fails = |tokens| format!("{:#}", try_off(&machine, Ask::Leave, window(tokens), true).unwrap_err());
    assert!(fails(1_000_001).contains("--force"));
    machine.write("{\"model\": \"claude-haiku-4-5\"}");
    let error = fails(300_000);
    assert!(error.contains("claude-haiku-4-5") && error.contains("200000"), "{error}");
    assert!(!machine.store().bin().exists(), "nothing was installed either");
    let forced = Compaction { window: 300_000, force: true };
    assert_eq!(try_off(&machine, Ask::Leave, forced, true).unwrap().compaction.unwrap().action, "added");
}

#[test]
fn an_env_that_is_no_object_is_named() {
    let machine = Machine::new();
    machine.write("{\"env\": 1}");
    let part = off(&machine);
    assert!(part.action == "failed" && part.reason.contains("`env` is no object"), "{part:?}");
    assert_eq!(machine.text(), "{\"env\": 1}");
}

#[test]
fn without_a_terminal_it_is_refused_and_a_dry_run_shows_it() {
    let sandbox = Sandbox::new().env("PATH", "/none");
    let off = ["setup", "--yes", "--no-statusline", "--disable-compact", "--window", "400000"];
    let said = sandbox.longhaul(&off);
    assert!(said.code == 1 && said.stderr.contains("on a terminal"), "{said:?}");
    assert!(!sandbox.config().join("settings.json").exists() && !sandbox.state().exists());
    let said = sandbox.longhaul(&[&off[..], &["--dry-run"]].concat());
    assert!(said.code == 0 && said.stdout.contains("+    \"DISABLE_COMPACT\": \"1\""), "{said:?}");
    assert!(!sandbox.state().exists());
    for bad in [&["--disable-compact"][..], &["--window", "400000"], &["--disable-compact", "--window", "5"]]
    {
        assert_eq!(sandbox.longhaul(&[&["setup"], bad].concat()).code, 2, "{bad:?}");
    }
}

#[test]
fn on_a_terminal_a_whole_yes_is_taken() {
    for (typed, set) in [("yes\n", true), ("y\n", false), ("\n", false)] {
        let sandbox = Sandbox::new().env("PATH", "/none").env("TERM", "dumb");
        let args =
            ["setup", "--yes", "--no-statusline", "--no-link", "--disable-compact", "--window", "400000"];
        let shown = sandbox.typed_on_terminal(&args, typed);
        assert!(shown.contains("ends in a refusal"), "{shown}");
        let settings = fs_err::read_to_string(sandbox.config().join("settings.json")).unwrap_or_default();
        assert_eq!(settings.contains("DISABLE_COMPACT"), set, "{typed:?}: {shown}");
    }
}
