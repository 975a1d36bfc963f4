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
fn every_longhaul_command_in_the_readme_and_its_pages_parses() {
    let sandbox = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let texts = pages(root).into_iter().map(|page| fs_err::read_to_string(page).unwrap());
    let lines: Vec<_> = texts.flat_map(|text| blocks(&text, "sh")).collect();
    let commands: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("longhaul ")).collect();
    assert!(commands.len() >= 4, "{lines:?}");
    for command in commands {
        let command = command.split("  #").next().unwrap();
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let said = sandbox.longhaul(&words);
        assert_eq!(said.code, 0, "longhaul {command}: {said:?}");
    }
}

/// The rows of the table below this heading, as cells.
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let section = text.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

#[test]
fn the_configuration_is_documented_as_it_is_read() {
    let sandbox = Sandbox::new();
    let rows = table(&read("README.md"), "\n## Configuration\n");
    assert_eq!(rows.len(), 9, "a key without a row, or a row without a key");
    let mut all = serde_json::json!({});
    for row in &rows {
        let mut at = &mut all;
        for name in row[0].trim_matches('`').split('.') {
            at = &mut at[name];
        }
        *at = serde_json::from_str(row[1].trim_matches('`')).unwrap();
    }
    fs_err::create_dir_all(sandbox.state()).unwrap();
    fs_err::write(sandbox.state().join("config.json"), all.to_string()).unwrap();
    let said = sandbox.longhaul(&["sessions"]);
    assert_eq!(said.code, 0, "{all}: {said:?}");
    for variable in rows.iter().filter(|row| row[3].starts_with('`')).map(|row| row[3].trim_matches('`')) {
        let said = Sandbox::new().env(variable, "{}").longhaul(&["sessions"]);
        assert!(said.code == 1 && said.stderr.contains(variable), "{variable}: {said:?}");
    }
}

/// Where the links and pictures of a text lead that stay within the repository: the file and the heading.
fn links(text: &str) -> Vec<(String, Option<String>)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let inside = targets.filter(|target| !target.contains("://"));
    let parts = |target: &str| match target.split_once('#') {
        Some((file, heading)) => (file.to_owned(), Some(heading.to_owned())),
        None => (target.to_owned(), None),
    };
    inside.map(parts).collect()
}

/// The headings of a text, as links name them.
fn headings(text: &str) -> Vec<String> {
    let slug = |title: &str| {
        let signs = title.to_lowercase();
        let kept = signs.chars().filter(|sign| sign.is_alphanumeric() || " -".contains(*sign));
        kept.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
    };
    text.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' ')).map(slug).collect()
}

/// The README and the pages that it links, below this directory.
fn pages(root: &Path) -> Vec<std::path::PathBuf> {
    let docs = fs_err::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    pages.chain([root.join("README.md")]).collect()
}

#[test]
#[cfg(unix)]
fn what_the_readme_links_is_in_the_checkout_and_in_the_installed_plugin() {
    let aside = tempfile::tempdir().unwrap();
    let tree = aside.path().join("tree");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = std::process::Command::new("sh").arg(root.join(".ci/plugin-tree")).arg(&tree).status();
    assert!(made.unwrap().success());
    for root in [root, &tree] {
        let pages = pages(root);
        assert!(pages.len() >= 5, "{pages:?}");
        for page in pages {
            let text = fs_err::read_to_string(&page).unwrap();
            for (file, heading) in links(&text) {
                let to = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(&file) };
                assert!(to.is_file(), "{} links {}, which is not there", page.display(), to.display());
                let Some(heading) = heading else { continue };
                let there = headings(&fs_err::read_to_string(&to).unwrap());
                assert!(there.contains(&heading), "{} links #{heading}: {there:?}", page.display());
            }
        }
    }
}

#[test]
fn the_changelog_names_this_version() {
    assert!(read("CHANGELOG.md").contains(concat!("## ", env!("CARGO_PKG_VERSION"))));
}
