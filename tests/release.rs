//! The release script, in a copy of this checkout whose remote is a bare repository on this disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::checkout;
use crate::sandbox::program_path;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAMS: [&str; 4] = ["longhaul", "longhaul-hook", "longhaul-statusline", "longhaul-watch"];
const MARKET: &str = ".claude-plugin/marketplace.json";

struct Maker {
    root: TempDir,
}

impl Maker {
    /// A copy of the checkout, and programs that only say their version.
    fn new() -> Self {
        let maker = Self { root: tempfile::tempdir().unwrap() };
        checkout::copy(&maker.path("sources"));
        for name in PROGRAMS {
            maker.write(&format!("built/{name}"), &format!("#!/bin/sh\necho longhaul {VERSION}\n"), 0o755);
        }
        fs::create_dir_all(maker.path("home")).unwrap();
        maker
    }

    /// The same as a repository whose remote has its sources.
    fn published_at(address: &str, resolves: &str) -> Self {
        let maker = Self::new();
        let host = maker.path("host");
        let config = format!(
            "[url \"file://{}/\"]\n\tinsteadOf = {resolves}\n[protocol \"file\"]\n\tallow = always\n\
             [user]\n\tname = someone\n\temail = s@example.com\n",
            host.display()
        );
        maker.write("home/.gitconfig", &config, 0o644);
        let bare = host.join("someone/longhaul.git");
        maker.git(&["init", "--quiet", "--bare", "--initial-branch=main", bare.to_str().unwrap()]);
        maker.git(&["init", "--quiet", "--initial-branch=main", "."]);
        maker.git(&["remote", "add", "origin", address]);
        maker.commit("Everything");
        maker.git(&["push", "--quiet", "origin", "main"]);
        maker
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.path("sources").join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path("sources")).env_clear().stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("PATH", "/usr/bin:/bin").output().unwrap()
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let out = self.run("git", args);
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// What the remote has, by whatever it is asked.
    #[track_caller]
    fn remote(&self, args: &[&str]) -> String {
        let bare = self.path("host/someone/longhaul.git");
        self.git(&[&["--git-dir", bare.to_str().unwrap()], args].concat())
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    fn release(&self, flags: &[&str], out: &str) -> Output {
        let pair = format!("{}={}", checkout::platform(), self.path("built").display());
        let out = self.path(out);
        self.run("sh", &[&[".ci/release"], flags, &[out.to_str().unwrap(), &*pair]].concat())
    }

    #[track_caller]
    fn releases(&self, flags: &[&str], out: &str) {
        let said = self.release(flags, out);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    /// That it is refused with these words, and that nothing was left behind.
    #[track_caller]
    fn is_refused(&self, flags: &[&str], words: &str) {
        let said = self.release(flags, "refused");
        let errors = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && errors.contains(words), "{errors}");
        let _ = fs::remove_dir_all(self.path("refused"));
    }

    fn archive(&self, out: &str) -> PathBuf {
        self.path(out).join(format!("longhaul-{VERSION}-{}.tar.gz", checkout::platform()))
    }

    /// The archive as a person unpacks it.
    fn unpacked(&self, out: &str, to: &str) -> PathBuf {
        fs::create_dir_all(self.path(to)).unwrap();
        let (archive, to) = (self.archive(out), self.path(to));
        let args = ["-xzf", archive.to_str().unwrap(), "-C", to.to_str().unwrap()];
        assert!(self.run("tar", &args).status.success());
        to.join(format!("longhaul-{VERSION}-{}", checkout::platform()))
    }

    fn install(&self, unpacked: &Path) -> Output {
        self.run("sh", &[unpacked.join("install").to_str().unwrap(), "--yes"])
    }

    #[track_caller]
    fn is_not_installed(&self, unpacked: &Path, words: &str) {
        let said = self.install(unpacked);
        let errors = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(1), "{errors}");
        assert!(errors.contains(words), "{errors}");
        assert_eq!(fs::read_dir(self.path("home")).unwrap().count(), 0, "nothing was done");
    }
}

#[test]
fn the_same_sources_and_programs_make_the_same_archive() {
    let maker = Maker::new();
    maker.releases(&[], "one");
    let longer = "find .. -exec touch -h -d 2001-02-03 {} + && chmod -R go-rwx . ../built";
    assert!(maker.run("sh", &["-c", longer]).status.success());
    maker.releases(&[], "two");
    assert_eq!(fs::read(maker.archive("one")).unwrap(), fs::read(maker.archive("two")).unwrap());
    // Its checksum is one that the usual command takes.
    let name = maker.archive("one");
    let check = format!("cd '{}' && sha256sum -c *.sha256", name.parent().unwrap().display());
    assert!(maker.run("sh", &["-c", &check]).status.success());
    maker.is_refused(&["--sign"], "name the remote by --publish");
    assert!(String::from_utf8_lossy(&maker.release(&[], "one").stderr).contains("is there already"));
}

#[test]
fn an_archive_holds_the_plugin_and_no_sources() {
    let maker = Maker::new();
    maker.releases(&[], "out");
    let unpacked = maker.unpacked("out", "here");
    let list = maker.run("find", &[unpacked.to_str().unwrap(), "-type", "f"]);
    let list = String::from_utf8(list.stdout).unwrap();
    for line in list.lines() {
        let ending = Path::new(line).extension().unwrap_or_default();
        assert!(!["rs", "toml", "lock"].iter().any(|source| ending == *source), "{line}");
    }
    for part in
        [".claude-plugin/plugin.json", "hooks/launcher", "monitors/monitors.json", "install", "LICENSE"]
    {
        assert!(unpacked.join(part).is_file(), "{part}");
    }
    assert!(!unpacked.join("bin").exists(), "hosted plugins must not have one");
    let market: Value = serde_json::from_slice(&fs::read(unpacked.join(MARKET)).unwrap()).unwrap();
    assert_eq!(market["plugins"][0]["source"], "./", "what was unpacked is a marketplace of its own");

    // `longhaul setup` makes the plugin's tree from what was unpacked, as from a checkout: the one that is published.
    let again = maker.path("again");
    let pair = format!("{0}={1}/programs/{0}", checkout::platform(), unpacked.display());
    let script = unpacked.join(".ci/plugin-tree");
    let made = maker.run("sh", &[script.to_str().unwrap(), again.to_str().unwrap(), &pair]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let published = maker.path("out/tree");
    assert!(!published.join(".ci").exists());
    let args = ["-r", "-x", ".gitattributes", again.to_str().unwrap(), published.to_str().unwrap()];
    let differs = maker.run("diff", &args);
    assert!(differs.status.success(), "{}", String::from_utf8_lossy(&differs.stdout));
}

#[test]
fn an_archive_installs_without_rust() {
    let maker = Maker::new();
    for name in PROGRAMS {
        checkout::put_program(program_path(name), &maker.path("built").join(name));
    }
    maker.releases(&[], "out");
    let unpacked = maker.unpacked("out", "a place of mine");
    let said = maker.install(&unpacked);
    let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}");
    assert!(text.contains("The gauge, for a made-up session"), "{text}");
    let installed = maker.path(&format!("home/.claude/longhaul/bin/{VERSION}"));
    for name in PROGRAMS {
        assert_eq!(
            fs::read(installed.join(name)).unwrap(),
            fs::read(maker.path("built").join(name)).unwrap()
        );
    }
}

#[test]
fn what_did_not_arrive_as_it_was_released_is_not_installed() {
    let maker = Maker::new();
    maker.releases(&[], "out");
    let here = |name: &str| maker.unpacked("out", name);
    let platform = checkout::platform();

    let changed = here("changed");
    fs::write(changed.join(format!("programs/{platform}/longhaul-hook")), "#!/bin/sh\nexit 0\n").unwrap();
    maker.is_not_installed(&changed, "not what was released");
    let short = here("short");
    fs::write(short.join(format!("programs/{platform}/longhaul")), "").unwrap();
    maker.is_not_installed(&short, "not what was released");
    let lacking = here("lacking");
    fs::remove_file(lacking.join(format!("programs/{platform}/longhaul-watch"))).unwrap();
    maker.is_not_installed(&lacking, "not what was released");
    let more = here("more");
    fs::write(more.join(format!("programs/{platform}/other")), "").unwrap();
    maker.is_not_installed(&more, "has no checksum");
    let unsummed = here("unsummed");
    fs::remove_file(unsummed.join("programs/SHA256SUMS")).unwrap();
    maker.is_not_installed(&unsummed, "SHA256SUMS is missing");
    let foreign = here("foreign");
    fs::rename(foreign.join(format!("programs/{platform}")), foreign.join("programs/other-machine")).unwrap();
    maker.is_not_installed(&foreign, "this archive is for other-machine/");
}

#[test]
fn a_release_is_published_on_a_branch_of_its_own() {
    let maker = Maker::published_at("https://github.com/someone/longhaul", "https://github.com/");
    let source = maker.git(&["rev-parse", "HEAD"]);
    maker.releases(&["--publish", "origin"], "one");
    assert_eq!(maker.git(&["status", "--porcelain"]), "", "the work tree is as it was");
    assert_eq!(maker.git(&["rev-parse", "HEAD"]), source);

    let market: Value = serde_json::from_str(&maker.remote(&["show", &format!("main:{MARKET}")])).unwrap();
    assert_eq!(market["owner"]["name"], "someone");
    let points = json!({ "source": "url", "url": "https://github.com/someone/longhaul.git", "ref": "dist" });
    assert_eq!(market["plugins"][0]["source"], points);
    assert_eq!(maker.remote(&["rev-parse", &format!("v{VERSION}^{{}}")]), source);
    let files = maker.remote(&["ls-tree", "-r", "dist"]);
    for name in PROGRAMS {
        let line = files.lines().find(|line| line.ends_with(&format!("/{name}"))).unwrap();
        assert!(line.starts_with("100755 ") && line.contains("programs/"), "{line}");
    }
    // Main gets one line of one file, and shares no commit with the other branch.
    assert_eq!(maker.remote(&["diff", "--name-only", source.trim(), "main"]).trim(), MARKET);
    assert!(!maker.remote(&["log", "--name-only", "--format=", "main"]).contains("programs/"));
    let apart = maker.run("git", &["merge-base", "origin/main", "origin/dist"]);
    assert!(!apart.status.success(), "{}", String::from_utf8_lossy(&apart.stdout));

    // The same once more changes nothing but the branch's tip, and main not at all.
    let main = maker.remote(&["rev-parse", "main"]);
    maker.releases(&["--publish", "origin"], "again");
    assert_eq!(maker.remote(&["rev-parse", "main"]), main);
    assert_eq!(
        maker.remote(&["rev-list", "--count", "dist"]).trim(),
        "2",
        "each release follows the one before"
    );
    assert_eq!(maker.remote(&["diff", "dist~1", "dist"]), "");
}

#[test]
fn what_would_be_wrong_is_not_released() {
    let maker = Maker::published_at("git@github.com:someone/longhaul.git", "git@github.com:");
    maker.edit("README.md", "# longhaul", "# Longhaul");
    maker.is_refused(&["--publish", "origin"], "changes that are in no commit");
    maker.commit("Another title");
    maker.is_refused(&["--publish", "origin"], "push it first");
    maker.git(&["push", "--quiet", "origin", "main"]);
    maker.is_refused(&["--publish", "elsewhere"], "no remote 'elsewhere'");
    maker.write("built/longhaul", "#!/bin/sh\necho longhaul 0.0.1\n", 0o755);
    maker.is_refused(&["--publish", "origin"], "build it again");
    maker.write("built/longhaul", &format!("#!/bin/sh\necho longhaul {VERSION}\n"), 0o755);
    maker.edit("hooks/launcher", &format!("version={VERSION}"), "version=0.0.1");
    maker.is_refused(&[], "hooks/launcher does not");
    maker.git(&["checkout", "--quiet", "hooks/launcher"]);
    assert_eq!(maker.remote(&["for-each-ref", "--format=%(refname)"]).trim(), "refs/heads/main");

    maker.releases(&["--publish", "origin"], "out");
    let market = maker.remote(&["show", &format!("main:{MARKET}")]);
    assert!(
        market.contains("\"https://github.com/someone/longhaul.git\""),
        "for people without a key: {market}"
    );
    maker.git(&["pull", "--quiet", "origin", "main"]);
    maker.edit("README.md", "# Longhaul", "# longhaul");
    maker.commit("The title as it was");
    maker.git(&["push", "--quiet", "origin", "main"]);
    maker.is_refused(&["--publish", "origin"], "a released version is not released again");
}

#[test]
fn what_somebody_fetches_with_is_not_published() {
    let address = "https://someone:SECRET-KEY@git.example.com/someone/longhaul.git";
    let maker = Maker::published_at(address, "https://someone:SECRET-KEY@git.example.com/");
    let said = maker.release(&["--publish", "origin"], "out");
    assert!(said.status.success());
    let market = maker.remote(&["show", &format!("main:{MARKET}")]);
    assert!(market.contains("\"https://git.example.com/someone/longhaul.git\""), "{market}");
    let new = maker.remote(&["show", "main"]) + &maker.remote(&["log", "-p", "--format=%B", "dist"]);
    assert!(new.contains("git.example.com") && !new.contains("SECRET-KEY"), "{new}");
    assert!(!String::from_utf8_lossy(&said.stderr).contains("SECRET-KEY"));
}

#[test]
fn a_release_is_signed_with_gits_own_key() {
    let maker = Maker::published_at("https://github.com/someone/longhaul", "https://github.com/");
    let key = maker.path("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no ssh-keygen");
        return;
    }
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    maker.write("signers", &format!("s@example.com {public}"), 0o644);
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingkey", key.to_str().unwrap()),
        ("gpg.ssh.allowedSignersFile", maker.path("signers").to_str().unwrap()),
    ] {
        maker.git(&["config", name, value]);
    }
    maker.releases(&["--publish", "origin", "--sign"], "out");
    maker.git(&["fetch", "--quiet", "--tags", "origin"]);
    maker.git(&["verify-tag", &format!("v{VERSION}")]);
    maker.git(&["verify-commit", "origin/dist"]);
    maker.git(&["verify-commit", "origin/main"]);
}
