//! What is written for the client's shell to run.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::programs::file_name;
use crate::base::shell::word;
use crate::client::wiring::{PROGRAM, WRAPPER};
use crate::store::Store;

/// What a status line shows when the programs are gone: a command that fails would blank the line.
const GONE: &str = " || echo longhaul is not installed here";

/// The status line command for programs in this store. It survives updates (its path does not change) and
/// the programs' removal.
pub fn ours(store: &Store) -> Result<String> {
    Ok(format!("{}{GONE}", our_program(store)?))
}

/// The program's stable path as it stands in a command.
pub fn our_program(store: &Store) -> Result<String> {
    quoted(&program(store), cfg!(windows))
}

/// The program at its stable path.
pub fn program(store: &Store) -> PathBuf {
    installed(store, PROGRAM)
}

/// Any of the programs at its stable path.
pub fn installed(store: &Store, name: &str) -> PathBuf {
    store.current().join(file_name(name))
}

/// The command that runs the wrapper script.
pub fn wrapped(store: &Store) -> Result<String> {
    Ok(format!("sh {}{GONE}", quoted(&store.dir().join(WRAPPER), cfg!(windows))?))
}

/// A script that hands its input to somebody else's command and to ours, and prints both. Either may fail,
/// print nothing, or leave its input unread.
pub fn wrapper_script(store: &Store, theirs: &str) -> Result<String> {
    let ours = our_program(store)?;
    let theirs = word(theirs);
    Ok(format!(
        "#!/bin/sh
# Written by `longhaul setup --wrap-statusline`; `longhaul setup --undo` puts back what was there.
input=$(cat)
theirs=$(printf '%s\\n' \"$input\" | /bin/sh -c {theirs})
ours=$(printf '%s\\n' \"$input\" | {ours})
[ -z \"$theirs\" ] || printf '%s\\n' \"$theirs\"
[ -z \"$ours\" ] || printf '%s\\n' \"$ours\"
exit 0
"
    ))
}

/// A path as one word for a POSIX shell, fish included. On Windows the client's shell is a POSIX one as
/// well, and it eats backslashes.
fn quoted(path: &Path, windows: bool) -> Result<String> {
    let text = path.to_str().with_context(|| {
        format!(
            "could not write {} into settings: the path is not UTF-8; set CLAUDE_CONFIG_DIR",
            path.display()
        )
    })?;
    Ok(if windows { word(&text.replace('\\', "/")) } else { word(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Yeachan-Heo/oh-my-claudecode#758: backslashes were eaten.
    #[test]
    fn a_windows_path_is_written_with_forward_slashes() {
        let path = Path::new("C:\\Users\\a b\\.claude\\longhaul\\bin\\current\\longhaul-statusline.exe");
        assert_eq!(
            quoted(path, true).unwrap(),
            "'C:/Users/a b/.claude/longhaul/bin/current/longhaul-statusline.exe'"
        );
    }

    #[test]
    fn a_plain_path_needs_no_quotes() {
        assert_eq!(quoted(Path::new("/home/me/.claude/x-1.0"), false).unwrap(), "/home/me/.claude/x-1.0");
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_any_text_back_as_one_word() {
        let sh = Path::new("/bin/sh");
        for text in
            ["a b", "it's", "$HOME `id` \"x\"", "a\\b", "\\", "'", "''", "*", "é~", "-n", "a\nb", "!x", ""]
        {
            let line = format!("printf '%s|' {} end", word(text));
            let ran = crate::host::process::run(sh, &["-c", &line], &[], b"", 10_000).unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("{text}|end|"), "{line}");
        }
    }
}
