//! Which program the launcher becomes, and what it does where there is none.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::file;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A program for another machine, as far as an `exec` looks.
pub const FOREIGN: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xff\xff;)(\n";

/// A plugin with every file at 0644, a home, a project, and nothing installed. Paths hold what shells trip over.
pub struct Sandbox {
    root: TempDir,
    pub shell: PathBuf,
}

/// One sandbox for each shell that is here: what `sh` is differs by machine.
pub fn sandboxes() -> Vec<Sandbox> {
    let shells = ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/ksh", "/bin/zsh"].map(PathBuf::from);
    let mut all: Vec<_> = shells.into_iter().filter(|shell| shell.exists()).map(Sandbox::new).collect();
    all.extend(Sandbox::busybox());
    all
}

/// The same without busybox, whose shell takes its own `uname` before any on PATH.
fn machines() -> Vec<Sandbox> {
    sandboxes().into_iter().filter(|sandbox| !sandbox.shell.ends_with(BUSYBOX)).collect()
}

const BUSYBOX: &str = "busybox/sh";
/// What the launcher calls this machine: busybox cannot be told that it is another one.
const HERE: &str = if cfg!(target_arch = "aarch64") { "linux-aarch64" } else { "linux-x86_64" };

impl Sandbox {
    fn new(shell: PathBuf) -> Self {
        let root = tempfile::tempdir().unwrap();
        let sandbox = Self { root, shell };
        sandbox.write("it's a \"plugin\" $x/hooks/launcher", file("hooks/launcher").as_bytes(), 0o644);
        for dir in ["home of me", "the project/src", "data dir"] {
            fs::create_dir_all(sandbox.path(dir)).unwrap();
        }
        sandbox
    }

    /// Its shell is a link in the sandbox: busybox is what it is called by.
    fn busybox() -> Option<Self> {
        let program =
            ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from).into_iter().find(|p| p.exists())?;
        let mut sandbox = Self::new(program);
        let link = sandbox.path(BUSYBOX);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&sandbox.shell, &link).unwrap();
        sandbox.shell = link;
        Some(sandbox)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // By another process: a file that this one had open to write, a child of another test could still hold,
        // and nothing held so can be run.
        let script = ["-c", "cat >\"$1\"", "sh", path.to_str().unwrap()];
        let mut writer = Command::new("/bin/sh").args(script).stdin(Stdio::piped()).spawn().unwrap();
        writer.stdin.take().unwrap().write_all(content).unwrap();
        assert!(writer.wait().unwrap().success());
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A program that says who it is, what it was given and read, and exits with 7.
    pub fn program(&self, path: &str, who: &str, mode: u32) -> PathBuf {
        let text =
            format!("#!/bin/sh\nread -r line\nprintf '{who}|%s|%s|%s' \"$*\" \"$line\" \"$PWD\"\nexit 7\n");
        self.write(path, text.as_bytes(), mode)
    }

    pub fn installed(&self, config: &str, program: &str) -> PathBuf {
        self.program(&format!("{config}/longhaul/bin/{VERSION}/{program}"), "installed", 0o700)
    }

    fn bundled(&self, platform: &str, program: &str, mode: u32) -> PathBuf {
        self.program(&format!("it's a \"plugin\" $x/programs/{platform}/{program}"), "bundled", mode)
    }

    /// The checksums that a release carries: of the content as it was when it was made.
    fn sums(&self, lines: &[(&str, &[u8])]) {
        use std::fmt::Write as _;
        let mut text = String::new();
        for (name, content) in lines {
            let mut child =
                Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(content).unwrap();
            let said = child.wait_with_output().unwrap().stdout;
            let sum = String::from_utf8(said).unwrap();
            writeln!(text, "{}  {name}", sum.split_whitespace().next().unwrap()).unwrap();
        }
        self.write("it's a \"plugin\" $x/programs/SHA256SUMS", text.as_bytes(), 0o644);
    }

    /// A `uname` that says this, before all others.
    fn uname(&self, says: &str) {
        self.write("tools/uname", format!("#!/bin/sh\necho {says}\n").as_bytes(), 0o755);
    }

    /// The launcher as a hook's shell would start it.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.shell);
        command.arg(self.path("it's a \"plugin\" $x/hooks/launcher")).args(args);
        command.env_clear().current_dir(self.path("the project/src"));
        let path = format!("{}:/usr/bin:/bin", self.path("tools").display());
        command.env("PATH", path).env("HOME", self.path("home of me"));
        command.env("CLAUDE_PROJECT_DIR", self.path("the project"));
        command.env("CLAUDE_PLUGIN_DATA", self.path("data dir"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        self.run_with(args, |c| c)
    }

    pub fn run_with(&self, args: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Said {
        let mut command = self.command(args);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        // The launcher may be gone before it is read.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{\"source\":\"startup\"}\n");
        Said::from(&child.wait_with_output().unwrap(), &self.shell)
    }
}

/// How a run ended, with the shell's name for the message.
#[derive(Debug)]
pub struct Said {
    pub shell: PathBuf,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    fn from(output: &Output, shell: &Path) -> Self {
        Self {
            shell: shell.to_owned(),
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    fn is(&self, who: &str) {
        assert_eq!(
            (self.code, self.out.split('|').next(), &*self.err),
            (Some(7), Some(who), ""),
            "{}: {self:?}",
            self.shell.display()
        );
    }

    #[track_caller]
    fn is_quiet(&self) {
        let said = (self.code, &*self.out, &*self.err);
        assert_eq!(said, (Some(0), "", ""), "{}", self.shell.display());
    }
}

#[test]
fn the_installed_program_is_run_without_any_other_process() {
    for sandbox in sandboxes() {
        sandbox.installed("home of me/.claude", "longhaul-hook");
        let said = sandbox.run_with(&["longhaul-hook", "a b", "c"], |c| c.env("PATH", "/nowhere"));
        said.is("installed");
        let here = sandbox.path("the project/src");
        let wanted = format!("installed|a b c|{{\"source\":\"startup\"}}|{}", here.display());
        assert_eq!(said.out, wanted, "arguments, input and directory are the caller's: {said:?}");
    }
}

// nilbuild/claude-statusline#35: CLAUDE_CONFIG_DIR was ignored.
#[test]
fn a_moved_configuration_is_followed() {
    for sandbox in sandboxes() {
        sandbox.installed("moved", "longhaul-hook");
        let moved = sandbox.path("moved");
        let said = sandbox.run_with(&["longhaul-hook"], |c| c.env("CLAUDE_CONFIG_DIR", &moved));
        said.is("installed");
        assert!(
            said.out.ends_with("/the project/src"),
            "looking at directories leaves the caller's alone: {said:?}"
        );
        sandbox
            .run_with(&["longhaul-hook"], |c| c.env("CLAUDE_CONFIG_DIR", &moved).env_remove("HOME"))
            .is("installed");
        sandbox.run_with(&["longhaul-hook"], |c| c.env("CLAUDE_CONFIG_DIR", "moved")).is_quiet();
    }
}

#[test]
fn a_configuration_inside_the_project_is_not_trusted() {
    for sandbox in sandboxes() {
        sandbox.installed("the project/evil", "longhaul-hook");
        symlink(sandbox.path("the project"), sandbox.path("link")).unwrap();
        for config in ["the project/evil", "link/evil", "home of me/../the project/evil"] {
            let config = sandbox.path(config);
            sandbox.run_with(&["longhaul-hook"], |c| c.env("CLAUDE_CONFIG_DIR", &config)).is_quiet();
        }
        // The other way round: a project whose path is a link.
        let config = sandbox.path("the project/evil");
        let link = sandbox.path("link");
        sandbox
            .run_with(&["longhaul-hook"], |c| {
                c.env("CLAUDE_CONFIG_DIR", &config).env("CLAUDE_PROJECT_DIR", &link)
            })
            .is_quiet();
        // A neighbour whose name only begins alike is no part of it.
        sandbox.installed("the project too", "longhaul-hook");
        let config = sandbox.path("the project too");
        sandbox.run_with(&["longhaul-hook"], |c| c.env("CLAUDE_CONFIG_DIR", &config)).is("installed");
    }
}

#[test]
fn whoever_works_in_the_home_directory_keeps_the_program() {
    for sandbox in sandboxes() {
        sandbox.installed("home of me/.claude", "longhaul-hook");
        sandbox.installed("home of me/elsewhere", "longhaul-hook");
        for project in ["home of me", "home of me/.claude", ""] {
            let project = sandbox.path(project);
            sandbox.run_with(&["longhaul-hook"], |c| c.env("CLAUDE_PROJECT_DIR", &project)).is("installed");
        }
        let (home, moved) = (sandbox.path("home of me"), sandbox.path("home of me/elsewhere"));
        sandbox
            .run_with(&["longhaul-hook"], |c| {
                c.env("CLAUDE_PROJECT_DIR", &home).env("CLAUDE_CONFIG_DIR", &moved)
            })
            .is("installed");
    }
}

#[test]
fn a_program_that_is_a_link_or_cannot_run_is_passed_over() {
    for sandbox in sandboxes() {
        let program = sandbox.installed("home of me/.claude", "longhaul-hook");
        sandbox.bundled(HERE, "longhaul-hook", 0o755);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o600)).unwrap();
        sandbox.run(&["longhaul-hook"]).is("bundled");
        fs::rename(&program, program.with_extension("real")).unwrap();
        fs::set_permissions(program.with_extension("real"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink(program.with_extension("real"), &program).unwrap();
        sandbox.run(&["longhaul-hook"]).is("bundled");
    }
}

#[test]
fn a_program_of_another_version_is_passed_over() {
    for sandbox in sandboxes() {
        sandbox.program("home of me/.claude/longhaul/bin/9.9.9/longhaul-hook", "newer", 0o700);
        sandbox.run(&["longhaul-hook"]).is_quiet();
    }
}

#[test]
fn the_bundled_program_is_the_one_for_this_machine() {
    let platforms = [
        ("Linux x86_64", "linux-x86_64"),
        ("Linux aarch64", "linux-aarch64"),
        ("Darwin arm64", "macos-aarch64"),
        ("Darwin x86_64", "macos-x86_64"),
        ("MINGW64_NT-10.0-22631 x86_64", "windows-x86_64"),
    ];
    for sandbox in machines() {
        for (says, platform) in platforms {
            sandbox.uname(says);
            sandbox.run(&["longhaul-hook"]).is_quiet();
            sandbox.bundled(platform, "longhaul-hook", 0o755);
            sandbox.run(&["longhaul-hook"]).is("bundled");
        }
        assert_eq!(fs::read_dir(sandbox.path("data dir")).unwrap().count(), 0, "no copy without need");
        // thedotmack/claude-mem#1547: a machine that no program was built for.
        sandbox.uname("Linux riscv64");
        sandbox.run(&["longhaul-hook"]).is_quiet();
        // A variable of the launcher's own is not taken from outside.
        let said = sandbox
            .run_with(&["longhaul-hook"], |c| c.env("platform", "linux-x86_64").env("found", "/bin/ls"));
        said.is_quiet();
    }
}

// CC#39333, CC#39993, CC#39286, anthropics/claude-plugins-official#1088: execute bits were lost on the way.
#[test]
fn a_program_without_its_execute_bit_is_copied_once() {
    for sandbox in sandboxes() {
        let bundled = sandbox.bundled(HERE, "longhaul-hook", 0o644);
        sandbox.run(&["longhaul-hook"]).is("bundled");
        let dir = sandbox.path(&format!("data dir/bin/{VERSION}/{HERE}"));
        let copy = dir.join("longhaul-hook");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no temporary file stays");
        fs::write(bundled, "#!/bin/sh\nexit 9\n").unwrap();
        sandbox.run(&["longhaul-hook"]).is("bundled");
    }
}

/// Each program, whole and otherwise, with the execute bit and without.
#[test]
fn a_program_that_did_not_arrive_whole_is_not_run() {
    for mode in [0o755, 0o644] {
        for sandbox in sandboxes() {
            let whole = fs::read(sandbox.bundled(HERE, "longhaul-hook", mode)).unwrap();
            let name = format!("{HERE}/longhaul-hook");
            let short = &whole[..whole.len() - 1];
            for sums in [&[(&*name, short)][..], &[("other/longhaul-hook", &*whole)], &[]] {
                sandbox.sums(sums);
                sandbox.run(&["longhaul-hook"]).is_quiet();
                let told = sandbox.run(&["--say", "longhaul-hook"]);
                assert!(told.out.contains("did not get its program whole"), "{told:?}");
                assert_eq!(sandbox.run(&["longhaul"]).code, Some(1));
                assert_eq!(
                    fs::read_dir(sandbox.path("data dir")).unwrap().count(),
                    0,
                    "nothing is kept of it"
                );
            }
            // An update brought it whole: no word of before stands in the way.
            sandbox.sums(&[("other/longhaul", b"x"), (&*name, &*whole)]);
            sandbox.run(&["longhaul-hook"]).is("bundled");
            // Looked at once: what is kept holds, as it must where each event counts.
            sandbox.sums(&[(&*name, short)]);
            sandbox.run(&["longhaul-hook"]).is("bundled");
            // Where nothing can be kept it is looked at each time.
            sandbox.run_with(&["longhaul-hook"], |c| c.env_remove("CLAUDE_PLUGIN_DATA")).is_quiet();
        }
    }
}

// thedotmack/claude-mem#1547: nothing that another machine's program does reaches the session.
#[test]
fn a_bundled_program_of_another_machine_ends_a_hook_well() {
    for sandbox in sandboxes() {
        for mode in [0o755, 0o644] {
            sandbox.write(&format!("it's a \"plugin\" $x/programs/{HERE}/longhaul-hook"), FOREIGN, mode);
            sandbox.sums(&[(&format!("{HERE}/longhaul-hook"), FOREIGN)]);
            sandbox.run(&["longhaul-hook"]).is_quiet();
        }
    }
}

#[test]
fn a_data_directory_that_cannot_be_used_is_no_harm() {
    for sandbox in sandboxes() {
        sandbox.bundled(HERE, "longhaul-hook", 0o644);
        let taken = sandbox.write("a file", b"", 0o644);
        let inside = sandbox.path("the project/data");
        let around = sandbox.path("data dir/none/../../the project");
        for data in [&*taken, &taken.join("below"), &inside, &around, Path::new("data"), Path::new("")] {
            sandbox.run_with(&["longhaul-hook"], |c| c.env("CLAUDE_PLUGIN_DATA", data)).is_quiet();
        }
        sandbox.run_with(&["longhaul-hook"], |c| c.env_remove("CLAUDE_PLUGIN_DATA")).is_quiet();
        assert!(!inside.exists());
        assert!(!sandbox.path("the project/bin").exists());
    }
}

#[test]
fn a_program_that_the_system_refuses_ends_a_hook_well() {
    for sandbox in sandboxes() {
        let path = format!("home of me/.claude/longhaul/bin/{VERSION}/longhaul-hook");
        sandbox.write(&path, FOREIGN, 0o700);
        sandbox.run(&["longhaul-hook"]).is_quiet();
    }
}

#[test]
fn options_of_the_shell_from_the_environment_change_nothing() {
    for sandbox in sandboxes() {
        for options in ["errexit", "nounset", "xtrace", "verbose:errexit", "noglob:noclobber"] {
            let path = format!("home of me/.claude/longhaul/bin/{VERSION}/longhaul-hook");
            for content in [FOREIGN, b""] {
                sandbox.write(&path, content, 0o700);
                let said = sandbox.run_with(&["longhaul-hook"], |c| c.env("SHELLOPTS", options));
                assert_eq!((said.code, &*said.out), (Some(0), ""), "{options}: {said:?}");
                assert!(options.contains("verbose") || said.err.is_empty(), "{options}: {said:?}");
            }
        }
    }
}

/// A pointer of Git LFS, a page of a proxy, nothing at all: a shell would run them as scripts.
#[test]
fn text_in_place_of_a_bundled_program_is_not_run() {
    let texts =
        ["<!DOCTYPE html>\n<html>(x", "version https://git-lfs.github.com/spec/v1\noid x\n", "exit 2\n", ""];
    for sandbox in sandboxes() {
        for (text, mode) in texts.into_iter().flat_map(|text| [(text, 0o755), (text, 0o644)]) {
            for name in ["longhaul-hook", "longhaul-statusline"] {
                let path = format!("it's a \"plugin\" $x/programs/{HERE}/{name}");
                sandbox.write(&path, text.as_bytes(), mode);
                sandbox.run(&[name]).is_quiet();
            }
        }
    }
}

#[test]
fn no_program_is_told_at_a_sessions_start_and_only_then() {
    for sandbox in sandboxes() {
        let said = sandbox.run(&["--say", "longhaul-hook"]);
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let keys: Vec<_> = told.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((said.code, &*said.err, keys), (Some(0), "", vec!["systemMessage"]), "{told}");
        sandbox.run(&["longhaul-hook"]).is_quiet();
        sandbox.run(&["longhaul-statusline"]).is_quiet();
        for source in ["clear", "compact"] {
            let mut child = sandbox.command(&["--say", "longhaul-hook"]).spawn().unwrap();
            let event = format!("{{\"hook_event_name\":\"SessionStart\",\"source\":\"{source}\"}}");
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.as_bytes());
            Said::from(&child.wait_with_output().unwrap(), &sandbox.shell).is_quiet();
        }
    }
}

#[test]
fn a_person_is_told_on_the_screen() {
    for sandbox in sandboxes() {
        let said = sandbox.run(&["longhaul", "setup"]);
        assert_eq!((said.code, &*said.err), (Some(1), ""), "{said:?}");
        assert!(said.out.starts_with("longhaul: this plugin has no program for this machine"), "{said:?}");
    }
}

/// One event's hook as the client runs it: in a shell, with the plugin's directory in the environment.
fn hook(sandbox: &Sandbox, event: &str, root: &str) -> Said {
    let all: serde_json::Value = serde_json::from_str(&file("hooks/hooks.json")).unwrap();
    let line = all["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
    let mut command = Command::new(&sandbox.shell);
    command.args(["-c", line]).env("CLAUDE_PLUGIN_ROOT", sandbox.path(root));
    command.env("HOME", sandbox.path("home of me")).stdin(Stdio::null());
    Said::from(&command.output().unwrap(), &sandbox.shell)
}

// CC#64074: an update prunes the directory that a running session's hooks point into.
#[test]
fn a_hook_whose_plugin_is_gone_ends_well() {
    for sandbox in sandboxes() {
        sandbox.installed("home of me/.claude", "longhaul-hook");
        assert!(hook(&sandbox, "UserPromptSubmit", "it's a \"plugin\" $x").out.starts_with("installed"));
        hook(&sandbox, "UserPromptSubmit", "pruned").is_quiet();
    }
}

#[test]
fn a_program_that_dies_ends_a_hook_well() {
    for sandbox in sandboxes() {
        let path = format!("home of me/.claude/longhaul/bin/{VERSION}/longhaul-hook");
        // Exits of its own are no verdict either: 2 would block the prompt.
        for text in ["#!/bin/sh\nkill -SEGV $$\n", "#!/bin/sh\nexit 2\n"] {
            sandbox.write(&path, text.as_bytes(), 0o700);
            for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "PreCompact"] {
                let said = hook(&sandbox, event, "it's a \"plugin\" $x");
                assert_eq!((said.code, &*said.out), (Some(0), ""), "{event}: {said:?}");
            }
        }
    }
}

#[test]
fn nothing_but_our_programs_is_run() {
    for sandbox in sandboxes() {
        sandbox.installed("home of me/.claude", "ls");
        for args in [&[][..], &["ls"], &["../longhaul-hook"], &[""], &["--say"], &["--help"]] {
            sandbox.run(args).is_quiet();
        }
        sandbox.run_with(&["longhaul-hook"], |c| c.env_clear()).is_quiet();
    }
}
