//! Who runs a watch. Nothing here asks the machine.

use std::path::{Path, PathBuf};

use crate::host::process::Process;
use crate::store::watches::{Bound, State, Watch};

/// A session that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Its client's process.
    pub process: Process,
    /// The session that it shows.
    pub session: String,
    /// The project that it works on.
    pub project: PathBuf,
    /// The lower, the longer it is open.
    pub order: u64,
    /// A watcher runs in it.
    pub has_watcher: bool,
}

/// What is to become of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate<'a> {
    /// This session runs it.
    Runs(&'a Open),
    /// Nobody does now; its place stays.
    Waits,
    /// It is over.
    Over,
}

/// Its maker's session runs a watch, whatever id that has now; when that is gone, the oldest open session of the
/// project runs a watch of the project. `maker_runs`: the process of its maker is there.
pub fn fate<'a>(watch: &Watch, open: &'a [Open], maker_runs: bool) -> Fate<'a> {
    if watch.state != State::Active {
        return Fate::Waits;
    }
    let maker = &watch.maker;
    let is_maker = |open: &&Open| {
        Some(open.process.pid) == maker.pid && same_start(open.process.start.as_ref(), maker.start.as_ref())
    };
    let is_session = |open: &&Open| Some(&open.session) == maker.session.as_ref();
    if let Some(open) = open.iter().find(is_maker) {
        return Fate::Runs(open);
    }
    if maker_runs {
        // Its session's file is just being written.
        return Fate::Waits;
    }
    if watch.is_unconfirmed() && maker.pid.is_some() {
        return Fate::Over;
    }
    // Several clients may show it: all of them see the same one first.
    let first = |open: &&Open| (!open.has_watcher, open.order, open.process.pid);
    if let Some(open) = open.iter().filter(is_session).min_by_key(first) {
        return Fate::Runs(open);
    }
    if watch.is_unconfirmed() {
        return Fate::Over;
    }
    let of_project = |open: &&Open| open.has_watcher && open.project == watch.project;
    let heir = open.iter().filter(of_project).min_by_key(first);
    match heir {
        Some(heir) if watch.bound == Bound::Project => Fate::Runs(heir),
        _ => Fate::Waits,
    }
}

fn same_start(a: Option<&String>, b: Option<&String>) -> bool {
    a.zip(b).is_none_or(|(a, b)| a == b)
}

/// The project that a directory belongs to: the nearest one above it that version control begins in, else itself.
/// The home directory is nobody's project but its own.
pub fn project_of(directory: &Path, home: Option<&Path>) -> PathBuf {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    let home = home.and_then(|home| home.canonicalize().ok());
    let root = directory.ancestors().find(|dir| dir.join(".git").exists());
    root.filter(|root| home.as_deref() != Some(*root)).unwrap_or(&directory).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::watches::tests::watch;
    use crate::store::watches::{Maker, Subject};

    fn open(pid: u32, session: &str, project: &str, order: u64) -> Open {
        let process = Process { pid, start: Some(format!("s{pid}")) };
        Open { process, session: session.into(), project: project.into(), order, has_watcher: true }
    }

    fn made(pid: u32, session: &str, bound: Bound) -> Watch {
        let start = Some(format!("s{pid}"));
        let maker = Maker { session: Some(session.into()), pid: Some(pid), start, pid_space: None };
        Watch { bound, maker, ..watch(Subject::Sessions) }
    }

    fn runner(watch: &Watch, open: &[Open], maker_runs: bool) -> Option<u32> {
        match fate(watch, open, maker_runs) {
            Fate::Runs(open) => Some(open.process.pid),
            Fate::Waits => None,
            Fate::Over => panic!("over"),
        }
    }

    #[test]
    fn its_maker_runs_it_through_clear_and_resume() {
        for bound in [Bound::Project, Bound::Session] {
            let watch = made(1, "a", bound);
            let old = open(9, "z", "/p", 0);
            assert_eq!(runner(&watch, &[old.clone(), open(1, "a", "/p", 5)], true), Some(1));
            assert_eq!(runner(&watch, &[old.clone(), open(1, "cleared", "/q", 5)], true), Some(1));
            // Another process shows the session.
            assert_eq!(runner(&watch, &[old.clone(), open(2, "a", "/p", 5)], false), Some(2));
            // The number is used again.
            let mut other = open(1, "b", "/other", 1);
            other.process.start = Some("later".into());
            assert_eq!(runner(&watch, &[other], false), None);
            // The session's file is just being written.
            assert_eq!(runner(&watch, &[old], true), None);
            // Two clients show it: both see the same one, in whatever order.
            let both = [open(4, "a", "/p", 7), open(3, "a", "/p", 6)];
            assert_eq!(runner(&watch, &both, false), Some(3));
            assert_eq!(runner(&watch, &[both[1].clone(), both[0].clone()], false), Some(3));
        }
    }

    #[test]
    fn a_watch_of_the_project_passes_to_its_oldest_open_session_alone() {
        let (project, session) = (made(1, "a", Bound::Project), made(1, "a", Bound::Session));
        let all = [open(5, "x", "/other", 1), open(6, "y", "/p", 8), open(7, "z", "/p", 3)];
        assert_eq!(runner(&project, &all, false), Some(7));
        assert_eq!(runner(&session, &all, false), None);
        assert_eq!(runner(&project, &all[..1], false), None, "never another project's");
        let mut without = all.clone();
        without[2].has_watcher = false;
        assert_eq!(runner(&project, &without, false), Some(6), "nobody would look there");
        let paused = Watch { state: State::Paused, ..project };
        assert_eq!(runner(&paused, &all, false), None);
    }

    #[test]
    fn a_command_of_the_model_ends_with_its_client_unless_a_person_kept_it() {
        let subject = Subject::Command { argv: vec!["x".into()], every_ms: 1, timeout_ms: 1 };
        let model = Watch { by_model: true, ..made(1, "a", Bound::Session) };
        let model = Watch { subject, ..model };
        let again = [open(2, "a", "/p", 1)];
        assert_eq!(runner(&model, &[open(1, "cleared", "/p", 1)], true), Some(1));
        assert_eq!(fate(&model, &again, false), Fate::Over);
        assert_eq!(fate(&model, &[], false), Fate::Over);
        assert_eq!(runner(&Watch { kept: true, ..model.clone() }, &again, false), Some(2));
        assert_eq!(runner(&Watch { by_model: false, ..model.clone() }, &again, false), Some(2));
        assert_eq!(runner(&Watch { subject: Subject::Sessions, ..model }, &again, false), Some(2));
    }

    #[test]
    fn a_project_is_where_version_control_begins() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().canonicalize().unwrap().join(name);
        fs_err::create_dir_all(at("home/work/sub")).unwrap();
        fs_err::create_dir_all(at("home/work/.git")).unwrap();
        fs_err::create_dir_all(at("home/plain/sub")).unwrap();
        fs_err::create_dir_all(at("home/.git")).unwrap();
        let home = at("home");
        assert_eq!(project_of(&at("home/work/sub"), Some(&home)), at("home/work"));
        assert_eq!(project_of(&at("home/work"), Some(&home)), at("home/work"));
        assert_eq!(project_of(&at("home/plain/sub"), Some(&home)), at("home/plain/sub"));
        assert_eq!(project_of(&home, Some(&home)), home);
    }
}
