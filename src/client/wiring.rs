//! The `statusLine` setting: whose command is it?
//!
//! The client runs it through `/bin/sh` (measured, 2.1.332), gives it JSON on standard input, and shows
//! neither its standard error nor a failure.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The program that draws our line.
pub const PROGRAM: &str = "longhaul-statusline";
/// The script that runs somebody else's command and then ours.
pub const WRAPPER: &str = "statusline-wrapper.sh";
/// Our program's stable path as a person may write it by hand (`statusline/settings.json`).
pub const BY_HAND: &str = "${CLAUDE_CONFIG_DIR:-$HOME/.claude}/longhaul/bin/current/longhaul-statusline";
/// The key in a settings file.
pub const KEY: &str = "statusLine";

/// The value of the key as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Always `command`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What the client's shell runs.
    pub command: String,
}

impl Setting {
    /// A status line drawn by this command.
    pub fn new(command: String) -> Self {
        Self { kind: "command", command }
    }
}

/// The user's settings file in a configuration directory.
pub fn user_settings(config: &Path) -> PathBuf {
    config.join("settings.json")
}

/// Whose a status line command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wiring {
    /// There is no command.
    None,
    /// It runs our program and nothing else that draws.
    Ours,
    /// It runs our program beside something else: through our wrapper, or by the person's own hand.
    Wrapped,
    /// Ours is not in it.
    Foreign,
}

/// Tells whose a command is by its text alone. A person's own script that calls our program inside cannot
/// be told from any other.
pub fn classify(command: Option<&str>) -> Wiring {
    let Some(command) = command.filter(|text| !text.trim().is_empty()) else { return Wiring::None };
    let parts = parts(command, 0);
    let has = |kind| parts.contains(&kind);
    match (has(Part::Ours), has(Part::Wrapper), has(Part::Other)) {
        (true, false, false) => Wiring::Ours,
        (true, _, _) | (_, true, _) => Wiring::Wrapped,
        _ => Wiring::Foreign,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Ours,
    Wrapper,
    /// Draws nothing that would count as a status line of its own.
    Silent,
    Other,
}

/// Programs and words of the shell that only start another command.
const STARTERS: [&str; 17] = [
    "exec", "command", "nice", "env", "time", "sh", "bash", "zsh", "dash", "if", "then", "elif", "else",
    "fi", "do", "done", "!",
];
const SILENT: [&str; 9] = ["echo", "printf", "true", "false", ":", "test", "[", "cd", "exit"];

fn parts(command: &str, depth: usize) -> Vec<Part> {
    simple_commands(command).iter().flat_map(|words| part(words, depth)).collect()
}

fn part(words: &[String], depth: usize) -> Vec<Part> {
    let mut shell = false;
    let mut words = words.iter().map(String::as_str).skip_while(|word| is_assignment(word));
    while let Some(word) = words.next() {
        let name = base_name(word);
        if name == PROGRAM {
            return vec![Part::Ours];
        }
        if name == WRAPPER && word.contains("longhaul") {
            return vec![Part::Wrapper];
        }
        if shell && word == "-c" {
            let inner = words.next().unwrap_or_default();
            return if depth < 4 { parts(inner, depth + 1) } else { vec![Part::Other] };
        }
        // The plugin's launcher takes the program's name.
        if name == "launcher" && words.next() == Some(PROGRAM) {
            return vec![Part::Ours];
        }
        if SILENT.contains(&name) {
            return vec![Part::Silent];
        }
        shell |= matches!(name, "sh" | "bash" | "zsh" | "dash");
        if !(STARTERS.contains(&name) || is_assignment(word) || word.starts_with('-')) {
            return vec![Part::Other];
        }
    }
    if shell { vec![Part::Other] } else { Vec::new() }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn base_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The simple commands of a shell line, each as its words without quotes and redirections. What it cannot
/// read (substitutions, here-documents) stays in the words as it is.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let mut redirected = false;
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' if chars.peek().is_some_and(|c| matches!(c, '"' | '\\' | '$' | '`')) => {
                            word.extend(chars.next());
                        }
                        c => word.push(c),
                    }
                }
            }
            // A Windows path has lost its quotes here: its backslashes are kept apart from escapes.
            '\\' => match chars.peek() {
                Some(c) if c.is_alphanumeric() => word.get_or_insert_default().push('\\'),
                _ => word.get_or_insert_default().extend(chars.next()),
            },
            '>' | '<' => {
                // `2>`: the number belongs to the redirection.
                if word.as_ref().is_some_and(|w| w.chars().all(|c| c.is_ascii_digit())) {
                    word = None;
                }
                close(&mut commands, &mut word, &mut redirected);
                while chars.peek().is_some_and(|c| matches!(c, '>' | '&')) {
                    chars.next();
                }
                redirected = true;
            }
            ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' => {
                close(&mut commands, &mut word, &mut redirected);
                commands.push(Vec::new());
            }
            c if c.is_whitespace() => close(&mut commands, &mut word, &mut redirected),
            c => word.get_or_insert_default().push(c),
        }
    }
    close(&mut commands, &mut word, &mut redirected);
    commands.retain(|words| !words.is_empty());
    commands
}

fn close(commands: &mut [Vec<String>], word: &mut Option<String>, redirected: &mut bool) {
    if let (Some(done), Some(last)) = (word.take(), commands.last_mut()) {
        if *redirected {
            *redirected = false;
        } else {
            last.push(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_by_what_it_runs() {
        for (text, whose) in [
            ("", Wiring::None),
            ("  ", Wiring::None),
            ("longhaul-statusline", Wiring::Ours),
            (
                "/h/.claude/longhaul/bin/current/longhaul-statusline || echo longhaul is not installed",
                Wiring::Ours,
            ),
            ("'/h a/.claude/longhaul/bin/1.0.0/longhaul-statusline' 2>/dev/null || true", Wiring::Ours),
            ("'/h'\\''s/longhaul-statusline'", Wiring::Ours),
            ("\"C:/Users/a b/longhaul-statusline.exe\"", Wiring::Ours),
            ("C:\\Users\\a\\longhaul-statusline.exe", Wiring::Ours),
            ("sh \"/p/hooks/launcher\" longhaul-statusline", Wiring::Ours),
            ("NO_COLOR=1 exec /x/longhaul-statusline", Wiring::Ours),
            ("env NO_COLOR=1 /x/longhaul-statusline", Wiring::Ours),
            ("sh -c 'exec /x/longhaul-statusline'", Wiring::Ours),
            ("test -x /x && { /x/longhaul-statusline; }", Wiring::Ours),
            ("if [ -x /x ]; then /x/longhaul-statusline; else echo none; fi", Wiring::Ours),
            ("sh '/h/.claude/longhaul/statusline-wrapper.sh' || echo none", Wiring::Wrapped),
            ("starship prompt; /x/longhaul-statusline", Wiring::Wrapped),
            ("/x/longhaul-statusline | sed s/a/b/", Wiring::Wrapped),
            ("bash -c \"ccusage; '/x/longhaul-statusline'\"", Wiring::Wrapped),
            ("/other/statusline-wrapper.sh", Wiring::Foreign),
            ("npx ccusage statusline", Wiring::Foreign),
            ("echo longhaul-statusline", Wiring::Foreign),
            ("cat /x/longhaul-statusline.log", Wiring::Foreign),
            ("~/.claude/statusline.sh", Wiring::Foreign),
            ("/x/launcher longhaul-hook", Wiring::Foreign),
            ("cat > /x/longhaul-statusline", Wiring::Foreign),
            ("sh -c \"sh -c 'sh'\"", Wiring::Foreign),
        ] {
            assert_eq!(classify(Some(text)), whose, "{text}");
        }
        assert_eq!(classify(None), Wiring::None);
    }

    #[test]
    fn the_fragment_for_people_is_ours() {
        let fragment = include_str!("../../statusline/settings.json");
        let value: serde_json::Value = serde_json::from_str(fragment).unwrap();
        let command = value[KEY]["command"].as_str().unwrap();
        assert!(command.contains(BY_HAND));
        assert_eq!(classify(Some(command)), Wiring::Ours);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,80}") {
            classify(Some(&text));
        }
    }
}
