//! README and CHANGELOG say what is true.

use std::path::Path;

use crate::sandbox::Sandbox;

fn read(name: &str) -> String {
    fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The lines of the fenced blocks of this language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let after = text.split(&fence).skip(1);
    after.flat_map(|rest| rest.split("```").next().unwrap().lines().map(str::to_owned)).collect()
}

#[test]
fn the_first_block_holds_two_commands_and_ci_runs_both() {
    let readme = read("README.md");
    let first = readme.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let commands: Vec<&str> = first.lines().map(|line| line.split("  #").next().unwrap().trim()).collect();
    assert_eq!(commands.len(), 2, "{first}");
    let ci = read(".ci/run");
    for part in commands[0].split(" && ").chain([commands[1]]) {
        assert!(ci.contains(part), "{part}");
    }
}

#[test]
fn every_longhaul_command_in_the_readme_parses() {
    let sandbox = Sandbox::new();
    let readme = read("README.md");
    let lines = blocks(&readme, "sh");
    let commands: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("longhaul ")).collect();
    assert!(commands.len() >= 4, "{lines:?}");
    for command in commands {
        let command = command.split("  #").next().unwrap();
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let said = sandbox.longhaul(&words);
        assert_eq!(said.code, 0, "longhaul {command}: {said:?}");
    }
}

#[test]
fn the_changelog_names_this_version() {
    assert!(read("CHANGELOG.md").contains(concat!("## ", env!("CARGO_PKG_VERSION"))));
}
