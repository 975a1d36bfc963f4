//! The run directory: where beats lie. On local storage, private, and the same for everybody: its first writer's
//! choice stands in `<state>/run-dir`, and every reader goes through that record, since cron and launchd have
//! another environment than a session.

use std::io;
use std::path::{Path, PathBuf};

use super::{Store, atomic};
use crate::base::id::digest;
use crate::host::{Host, files, lies_in, resolved};

/// The record, in the state directory.
const RECORD: &str = "run-dir";
/// The last resort, in the state directory; so it stands in the record, which may move with that directory.
const WITHIN: &str = "run";
/// The longest record, in bytes.
const MOST: u64 = 8 << 10;

/// What is written to see whether a place takes it.
const PROBE: [u8; 4096] = [0; 4096];

/// What the record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunDir {
    /// Nobody has written anything yet.
    None,
    /// This directory, which need not be there: another start of the machine may have cleared it away.
    At(PathBuf),
}

impl Store {
    /// The recorded run directory. An error where the record cannot be read, or names what is not this user's
    /// alone.
    pub fn run_dir(&self) -> io::Result<RunDir> {
        let record = self.dir().join(RECORD);
        let bytes = match files::read_small(&record, MOST) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(RunDir::None),
            Err(e) => return Err(e),
        };
        let text = std::str::from_utf8(&bytes).unwrap_or_default().trim_end_matches('\n');
        let dir = if text == WITHIN { self.dir().join(WITHIN) } else { PathBuf::from(text) };
        if !dir.is_absolute() || text.contains(char::is_control) {
            return Err(io::Error::other(format!(
                "{} names no directory; delete it, the next session chooses again",
                record.display()
            )));
        }
        match files::distrust_dir(&dir) {
            Some(why) if std::fs::symlink_metadata(&dir).is_ok() => Err(io::Error::other(format!(
                "the run directory {} {why}; delete {}, the next session chooses again",
                dir.display(),
                record.display()
            ))),
            _ => Ok(RunDir::At(dir)),
        }
    }

    /// Run directories of this store that an earlier choice left behind.
    pub fn left_run_dirs(&self, host: &Host) -> Vec<PathBuf> {
        let Ok(RunDir::At(chosen)) = self.run_dir() else { return Vec::new() };
        let left = |dir: &PathBuf| *dir != chosen && files::distrust_dir(dir).is_none();
        self.candidates(host).into_iter().filter(left).collect()
    }

    /// The run directory to write into: the recorded one, made again where it was cleared away, else a new
    /// choice. Never a place in one of the `untrusted` projects, whose settings can set variables.
    pub fn make_run_dir(&self, host: &Host, untrusted: &[&Path]) -> Option<PathBuf> {
        let recorded = match self.run_dir() {
            Ok(RunDir::At(dir)) if dir.is_dir() || self.is_usable(&dir, untrusted) => return Some(dir),
            Ok(RunDir::At(dir)) => Some(dir),
            _ => None,
        };
        self.choose_run_dir(host, untrusted, recorded.as_deref())
    }

    /// Another one than that, which could not be written.
    pub fn move_run_dir(&self, host: &Host, untrusted: &[&Path], from: &Path) -> Option<PathBuf> {
        self.choose_run_dir(host, untrusted, Some(from))
    }

    fn choose_run_dir(&self, host: &Host, untrusted: &[&Path], not: Option<&Path>) -> Option<PathBuf> {
        let mut others = self.candidates(host).into_iter().filter(|dir| Some(&**dir) != not);
        let dir = others.find(|dir| self.is_usable(dir, untrusted))?;
        self.record(&dir, not)
    }

    /// The places to be tried, the best first.
    fn candidates(&self, host: &Host) -> Vec<PathBuf> {
        let config = resolved(self.config());
        let key = digest(&[config.as_os_str().as_encoded_bytes()]);
        let session = host.env_path("XDG_RUNTIME_DIR").filter(|dir| files::distrust_dir(dir).is_none());
        let session = session.map(|dir| dir.join(format!("longhaul-{key:016x}")));
        let temp = host.temp_dir().map(|dir| dir.join(format!("longhaul-{}-{key:016x}", files::user())));
        [session, temp, Some(self.dir().join(WITHIN))].into_iter().flatten().collect()
    }

    /// Whether beats can be written there, by this user and read by nobody else. Makes it.
    fn is_usable(&self, dir: &Path, untrusted: &[&Path]) -> bool {
        let own = dir == self.dir().join(WITHIN);
        if !own && untrusted.iter().any(|project| lies_in(dir, project)) {
            return false;
        }
        // Never the parents: a temporary directory that is not there is not ours to make.
        let made = if own { atomic::make_private(self.dir()).is_ok() } else { true };
        if !made || (!dir.exists() && !atomic::make_private_only(dir)) {
            return false;
        }
        files::distrust_dir(dir).is_none() && atomic::temporary(dir, &PROBE).is_ok()
    }

    /// Writes the choice down, unless somebody has chosen meanwhile: of two that do so at once the first one's
    /// counts.
    fn record(&self, dir: &Path, not: Option<&Path>) -> Option<PathBuf> {
        let own = dir == self.dir().join(WITHIN);
        let text = if own { WITHIN } else { dir.to_str().filter(|text| !text.contains(char::is_control))? };
        atomic::make_private(self.dir()).ok()?;
        let record = self.dir().join(RECORD);
        match self.run_dir() {
            Ok(RunDir::At(theirs)) if Some(&*theirs) != not => return Some(theirs),
            Ok(RunDir::None) => {
                let temp = atomic::temporary(self.dir(), format!("{text}\n").as_bytes()).ok()?;
                if temp.persist_noclobber(&record).is_err() {
                    let Ok(RunDir::At(theirs)) = self.run_dir() else { return None };
                    return Some(theirs);
                }
            }
            _ => atomic::replace(&record, format!("{text}\n").as_bytes(), false).ok()?,
        }
        Some(dir.to_path_buf())
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    struct Place {
        root: tempfile::TempDir,
        store: Store,
    }

    impl Place {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for dir in ["home", "tmp", "runtime", "project"] {
                fs_err::create_dir(root.path().join(dir)).unwrap();
            }
            let place = Self { store: Store { dir: root.path().join("home/.claude/longhaul") }, root };
            place.mode("runtime", 0o700);
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn mode(&self, name: &str, mode: u32) {
            fs_err::set_permissions(self.at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }

        fn host(&self, names: &[&str]) -> Host {
            let of = |name: &str| match name {
                "TMPDIR" => self.at("tmp"),
                _ => self.at("runtime"),
            };
            let env: Vec<_> =
                names.iter().map(|name| (*name, of(name).to_str().unwrap().to_owned())).collect();
            let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Host::fixed(&env, 0)
        }

        /// Which of the places it is, after a look that it is private and recorded.
        #[track_caller]
        fn made(&self, names: &[&str]) -> String {
            let dir = self.store.make_run_dir(&self.host(names), &[&self.at("project")]).unwrap();
            assert_eq!(files::distrust_dir(&dir), None);
            assert_eq!(self.store.run_dir().unwrap(), RunDir::At(dir.clone()), "recorded");
            let within = dir.strip_prefix(self.root.path()).unwrap();
            within.components().next().unwrap().as_os_str().to_str().unwrap().to_owned()
        }

        /// The temporary directory's candidate.
        fn temp(&self) -> PathBuf {
            self.store.candidates(&self.host(&["TMPDIR"])).remove(0)
        }
    }

    #[test]
    fn the_first_writers_choice_is_everybodys() {
        let place = Place::new();
        assert_eq!(place.store.run_dir().unwrap(), RunDir::None);
        assert_eq!(place.made(&["XDG_RUNTIME_DIR", "TMPDIR"]), "runtime");
        // Cron has none of the variables, launchd another temporary directory.
        assert_eq!(place.made(&["TMPDIR"]), "runtime");
        assert_eq!(place.made(&[]), "runtime");
        let other = Place::new();
        assert_eq!(other.made(&["TMPDIR"]), "tmp");
        assert_eq!(other.made(&["XDG_RUNTIME_DIR", "TMPDIR"]), "tmp", "no second choice");
        let key = |place: &Place| place.temp().file_name().unwrap().to_owned();
        assert_ne!(key(&place), key(&other), "keyed by configuration directory");
    }

    #[test]
    fn what_was_cleared_away_is_made_again_or_chosen_anew() {
        let place = Place::new();
        assert_eq!(place.made(&["XDG_RUNTIME_DIR", "TMPDIR"]), "runtime");
        fs_err::remove_dir_all(place.at("runtime")).unwrap();
        fs_err::create_dir(place.at("runtime")).unwrap();
        place.mode("runtime", 0o700);
        assert_eq!(place.made(&["TMPDIR"]), "runtime", "made again where it was");
        fs_err::remove_dir_all(place.at("runtime")).unwrap();
        assert!(matches!(place.store.run_dir(), Ok(RunDir::At(_))), "a reader finds it empty");
        assert_eq!(place.made(&["XDG_RUNTIME_DIR", "TMPDIR"]), "tmp", "its parent is not ours to make");
    }

    #[test]
    fn what_others_could_have_laid_out_is_refused() {
        type LayOut = fn(&Place, &Path);
        let laid: [(&str, LayOut); 4] = [
            ("a link", |place, dir| fs_err::os::unix::fs::symlink(place.at("project"), dir).unwrap()),
            ("a file", |_, dir| fs_err::write(dir, "").unwrap()),
            ("open to others", |_, dir| {
                fs_err::create_dir(dir).unwrap();
                fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
            }),
            ("open to the group", |_, dir| {
                fs_err::create_dir(dir).unwrap();
                fs_err::set_permissions(dir, std::fs::Permissions::from_mode(0o750)).unwrap();
            }),
        ];
        for (what, lay) in laid {
            let place = Place::new();
            lay(&place, &place.temp());
            assert_eq!(place.made(&["TMPDIR"]), "home", "{what}");
            // And one that comes in its place later.
            let place = Place::new();
            assert_eq!(place.made(&["TMPDIR"]), "tmp");
            fs_err::remove_dir_all(place.temp()).unwrap();
            lay(&place, &place.temp());
            let error = place.store.run_dir().unwrap_err().to_string();
            assert!(error.contains("run-dir"), "{what}: says what to do: {error}");
            assert_eq!(place.made(&["TMPDIR"]), "home", "{what}");
        }
    }

    #[test]
    fn an_open_runtime_directory_and_one_in_the_project_are_passed_over() {
        let place = Place::new();
        place.mode("runtime", 0o755);
        assert_eq!(place.made(&["XDG_RUNTIME_DIR", "TMPDIR"]), "tmp");
        let place = Place::new();
        let inside = place.at("project/tmp");
        fs_err::create_dir(&inside).unwrap();
        let host = Host::fixed(&[("TMPDIR", inside.to_str().unwrap())], 0);
        let dir = place.store.make_run_dir(&host, &[&place.at("project")]).unwrap();
        assert_eq!(dir, place.store.dir().join("run"));
        assert_eq!(fs_err::read_dir(inside).unwrap().count(), 0);
    }

    #[test]
    fn a_record_that_is_damaged_is_an_error_and_then_replaced() {
        for text in ["", "relative/path", "/a\u{1b}[2J", "\u{0}"] {
            let place = Place::new();
            fs_err::create_dir_all(place.store.dir()).unwrap();
            fs_err::write(place.store.dir().join(RECORD), text).unwrap();
            assert!(place.store.run_dir().is_err(), "{text:?}");
            assert_eq!(place.made(&["TMPDIR"]), "tmp");
        }
    }

    #[test]
    fn many_first_writers_agree() {
        let place = Place::new();
        let hosts = [place.host(&["TMPDIR"]), place.host(&["XDG_RUNTIME_DIR", "TMPDIR"]), place.host(&[])];
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..12)
                .map(|n| {
                    let (store, host) = (&place.store, &hosts[n % 3]);
                    // `/tmp` itself is not this test's place.
                    let host = if n % 3 == 2 { &hosts[0] } else { host };
                    scope.spawn(move || store.make_run_dir(host, &[]).unwrap())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|dir| *dir == made[0]), "{made:?}");
    }
}
