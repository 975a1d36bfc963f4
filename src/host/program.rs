//! Looking for a program by its name. The environment may have been written by a project's settings: what lies in
//! the project, or can be written by others, is not run.

use std::path::{Path, PathBuf};

use super::{Host, files, lies_in};

/// Where programs are where nobody says: cron and launchd say little, `env -i` nothing.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// The files of these names on `PATH`, in its order, whether they are there or not.
pub fn on_path(host: &Host, names: &[&str]) -> Vec<PathBuf> {
    let path = host.env_os("PATH").unwrap_or_else(|| if cfg!(unix) { USUAL.into() } else { "".into() });
    std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .flat_map(|dir| names.iter().map(move |name| dir.join(name)))
        .collect()
}

/// The first program of that name that can be trusted; or the one that cannot, and why; or nothing.
pub fn find(host: &Host, name: &str, untrusted: &[PathBuf]) -> Result<PathBuf, Option<String>> {
    let mut passed_over = None;
    for path in on_path(host, &[name]).into_iter().filter(|path| path.is_file()) {
        match refusal(host, &path, untrusted) {
            None => return Ok(path),
            Some(why) => passed_over = passed_over.or(Some(format!("{} {why}", path.display()))),
        }
    }
    Err(passed_over)
}

/// Why a program must not be run; `None` where it may be.
pub fn refusal(host: &Host, path: &Path, untrusted: &[PathBuf]) -> Option<&'static str> {
    // A "project" that holds the home directory is the person's own place.
    let own = |dir: &Path| host.home().is_some_and(|home| lies_in(&home, dir));
    if untrusted.iter().any(|dir| !own(dir) && (lies_in(path, dir) || path.starts_with(dir))) {
        return Some("lies in the project");
    }
    files::distrust(path)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_first_trustworthy_program_of_a_name_is_found() {
        let root = tempfile::tempdir().unwrap();
        let program = |dir: &str, mode: u32| {
            let path = root.path().join(dir).join("tell");
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, "").unwrap();
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (project, open, good) =
            (program("project/bin", 0o755), program("open", 0o777), program("good", 0o755));
        let host = |dirs: &[&Path]| {
            let dirs = dirs.iter().map(|path| path.parent().unwrap());
            let path = std::env::join_paths(dirs).unwrap();
            Host::fixed(&[("PATH", path.to_str().unwrap())], 0)
        };
        let untrusted = [root.path().join("project")];
        assert_eq!(find(&host(&[&project, &open, &good]), "tell", &untrusted), Ok(good));
        let refused = find(&host(&[&project, &open]), "tell", &untrusted).unwrap_err().unwrap();
        assert!(refused.contains("lies in the project"), "{refused}");
        assert_eq!(find(&host(&[&project]), "none", &untrusted), Err(None));
        assert!(find(&Host::fixed(&[], 0), "sh", &[]).is_ok(), "an empty environment has programs too");
    }
}
