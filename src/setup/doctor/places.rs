//! Where our files are, what is left lying there, and what they point to.

use std::path::PathBuf;

use super::line::{Line, count, some};
use crate::base::shell::word;
use crate::base::span::{HOUR_MS, rough};

/// A transcript with less time than this before the client deletes it is told of, in ms.
const SOON: i64 = 7 * 24 * HOUR_MS;

/// What a directory is like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub dir: PathBuf,
    /// Whether it is there.
    pub there: bool,
    /// Why it is not this user's alone.
    pub distrust: Option<&'static str>,
    /// It lies on this network file system.
    pub remote: Option<&'static str>,
    /// It cannot be written.
    pub read_only: bool,
}

/// The run directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// None is chosen yet.
    None,
    /// It cannot be told, and why, with the fix.
    Unknown(String),
    /// This one.
    At(Place),
}

/// `longhaul` on `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnPath {
    /// None of that name.
    None,
    /// None, though setup's link is made, and how its directory comes there.
    Aside(PathBuf, String),
    /// The installed one, at this place.
    Installed(PathBuf),
    /// The one that looks, which is not the installed one.
    This(PathBuf),
    /// Another one.
    Other(PathBuf),
    /// A link there that leads nowhere.
    Dangling(PathBuf),
    /// One that is not to be run, and why.
    Refused(String),
}

/// A transcript of a session in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The session.
    pub session: String,
    /// How long ago it was last written, in ms; `None` where it is gone.
    pub age: Option<i64>,
}

/// What is left lying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Files of a later version of longhaul.
    pub later: Vec<PathBuf>,
    /// Lists that nobody can read, with what is wrong.
    pub damaged: Vec<String>,
    /// Files that were set aside.
    pub aside: Vec<PathBuf>,
    /// Installed versions that nothing starts.
    pub versions: Vec<String>,
    /// Files that were being written when their writer was killed.
    pub litter: usize,
    /// Sessions long gone whose beats still lie in the run directory.
    pub sessions: usize,
    /// Other run directories of this configuration.
    pub runs: Vec<PathBuf>,
}

/// Where our files are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The state directory.
    pub state: Place,
    /// The run directory.
    pub run: Run,
    /// `longhaul` on `PATH`.
    pub on_path: OnPath,
    /// Where the installed programs' stable path is.
    pub stable: PathBuf,
    /// The program that looks.
    pub this: PathBuf,
    /// The transcripts of chains.
    pub chains: Vec<Kept>,
    /// After how many days the client deletes a transcript, and where that stands.
    pub cleanup_days: f64,
    /// See there.
    pub cleanup_place: Option<String>,
    /// The person's settings file.
    pub user_settings: PathBuf,
    /// What is left lying.
    pub leftovers: Leftovers,
}

/// A fix as it can be typed here: where no `longhaul` is found by its name, with the whole path of the one that looks.
pub fn typed(facts: &Places, fix: String) -> String {
    let by_name = matches!(facts.on_path, OnPath::Installed(_) | OnPath::This(_));
    match fix.strip_prefix("longhaul ") {
        Some(rest) if !by_name => format!("{} {rest}", word(&facts.this.to_string_lossy())),
        _ => fix,
    }
}

/// The line where there is no place for files at all.
pub fn homeless() -> Line {
    Line::broken(
        "state",
        "there is no place for longhaul's files: HOME is not set, or CLAUDE_CONFIG_DIR lies in the project",
        "set HOME, or CLAUDE_CONFIG_DIR to a directory of your own outside of the project",
    )
}

/// The state directory.
pub fn state(facts: &Places) -> Line {
    const NAME: &str = "state";
    let Place { dir, there, distrust, remote, read_only } = &facts.state;
    let quoted = word(&dir.to_string_lossy());
    let dir = dir.display();
    if !there {
        return Line::note(NAME, format!("{dir} is not there yet")).fix("longhaul setup");
    }
    if let Some(why) = distrust {
        let fix = match *why {
            "can be entered by others" => format!("chmod 700 {quoted}"),
            _ => format!("sudo chown -R \"$(id -u)\" {quoted}"),
        };
        return Line::broken(NAME, format!("{dir} {why}"), fix);
    }
    if *read_only {
        return Line::broken(
            NAME,
            format!("{dir} cannot be written"),
            format!("chmod 700 {quoted}, and see that its disk is not read-only"),
        );
    }
    match remote {
        Some(name) => Line::note(
            NAME,
            format!("{dir} lies on {name}: locks there hold only where its server knows them"),
        ),
        None => Line::ok(NAME, format!("{dir}, yours alone")),
    }
}

/// The run directory.
pub fn run_dir(facts: &Places) -> Line {
    const NAME: &str = "run-dir";
    match &facts.run {
        Run::None => Line::ok(NAME, "none yet, the first session chooses one"),
        Run::Unknown(why) => {
            let record = facts.state.dir.join("run-dir");
            Line::broken(NAME, why, format!("rm {}", word(&record.to_string_lossy())))
        }
        Run::At(Place { dir, there: false, .. }) => {
            Line::ok(NAME, format!("{} is gone, the next event makes it again", dir.display()))
        }
        Run::At(Place { dir, remote: Some(name), .. }) => Line::broken(
            NAME,
            format!("{} lies on {name}: beats of two machines would mix", dir.display()),
            format!(
                "set XDG_RUNTIME_DIR or TMPDIR to a local directory, then rm {}",
                word(&facts.state.dir.join("run-dir").to_string_lossy())
            ),
        ),
        Run::At(place) => Line::ok(NAME, format!("{}, private and local", place.dir.display())),
    }
}

/// `longhaul` on `PATH`.
pub fn path(facts: &Places) -> Line {
    const NAME: &str = "path";
    let stable = facts.stable.display();
    match &facts.on_path {
        OnPath::Installed(path) => Line::ok(NAME, format!("longhaul is {}", path.display())),
        OnPath::This(path) => {
            Line::note(NAME, format!("longhaul is {}, not the installed one", path.display()))
        }
        OnPath::None => Line::note(NAME, "longhaul is not on PATH").fix("longhaul setup --link"),
        OnPath::Aside(link, how) => {
            Line::note(NAME, format!("{}, and its directory is not on PATH", link.display())).fix(how)
        }
        OnPath::Other(path) => Line::broken(
            NAME,
            format!("longhaul is {}, not the installed one, {stable}", path.display()),
            format!(
                "rm {}, or put the installed one's directory before it in PATH",
                word(&path.to_string_lossy())
            ),
        ),
        OnPath::Dangling(path) => Line::broken(
            NAME,
            format!("{} is a link that leads nowhere", path.display()),
            format!("ln -sfn {} {}", word(&facts.stable.to_string_lossy()), word(&path.to_string_lossy())),
        ),
        OnPath::Refused(why) => {
            Line::broken(NAME, why, "take its directory off PATH, or make it yours alone: chmod go-w")
        }
    }
}

/// Whether the client will soon delete what chains point to.
pub fn transcripts(facts: &Places) -> Line {
    const NAME: &str = "transcripts";
    let days = facts.cleanup_days;
    #[allow(clippy::cast_possible_truncation)] // A rounded span of days.
    let kept_for = (days * 24.0 * HOUR_MS as f64).min(i64::MAX as f64 / 2.0) as i64;
    let left = |kept: &Kept| kept.age.map(|age| kept_for.saturating_sub(age));
    let mut due: Vec<_> = facts.chains.iter().filter_map(|kept| Some((left(kept)?, &kept.session))).collect();
    due.retain(|(left, _)| *left < SOON);
    due.sort_unstable();
    let gone = facts.chains.iter().filter(|kept| kept.age.is_none()).count();
    let place = facts.cleanup_place.as_deref().unwrap_or("the client's own default");
    if let Some((left, session)) = due.first() {
        let when = if *left <= 0 { "at its next start".to_owned() } else { format!("in {}", rough(*left)) };
        let what = format!(
            "the client deletes {} of handoff chains, {session} {when} (after {days} days, {place})",
            count(due.len(), "transcript")
        );
        let fix = format!("\"cleanupPeriodDays\": 365 in {}", facts.user_settings.display());
        return Line::broken(NAME, what, fix);
    }
    let there = facts.chains.len() - gone;
    if gone > 0 {
        let what = format!(
            "{} of handoff chains; {gone} more are gone, their exports stay",
            count(there, "transcript")
        );
        return Line::note(NAME, what);
    }
    Line::ok(NAME, format!("{} of handoff chains, kept for {days} days", count(there, "transcript")))
}

/// What is left lying.
pub fn leftovers(facts: &Places) -> Line {
    const NAME: &str = "leftovers";
    let Leftovers { later, damaged, aside, versions, litter, sessions, runs } = &facts.leftovers;
    let shown =
        |paths: &[PathBuf]| some(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
    if !later.is_empty() {
        let what = format!("a later longhaul wrote {}: this one leaves it alone", shown(later));
        return Line::broken(NAME, what, "claude plugin update longhaul@longhaul, then longhaul setup");
    }
    if let Some(first) = damaged.first() {
        return Line::broken(
            NAME,
            first,
            "the next longhaul that writes it sets it aside and begins anew; copy what you need",
        );
    }
    let mut found = Vec::new();
    let mut fix = None;
    if !aside.is_empty() {
        found.push(format!("set aside since it could not be read: {}", shown(aside)));
        fix = Some("look into it, then delete it".to_owned());
    }
    if !versions.is_empty() {
        found.push(format!("older versions: {}", some(versions)));
        fix = fix.or(Some("longhaul setup".to_owned()));
    }
    if *litter > 0 {
        found.push(format!("{} of a killed writer", count(*litter, "file")));
    }
    if *sessions > 0 {
        found.push(format!("beats of {} long gone", count(*sessions, "session")));
        fix = fix.or(Some("longhaul sessions".to_owned()));
    }
    if !runs.is_empty() {
        found.push(format!("other run directories: {}", shown(runs)));
        let all: Vec<_> = runs.iter().map(|dir| word(&dir.to_string_lossy())).collect();
        fix = fix.or(Some(format!("rm -r {}", all.join(" "))));
    }
    if found.is_empty() {
        return Line::ok(NAME, "none");
    }
    Line { fix, ..Line::note(NAME, found.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::super::line::Mark;
    use super::super::line::broken;
    use super::*;

    const DAY: i64 = 24 * HOUR_MS;

    fn place(dir: &str) -> Place {
        Place { dir: dir.into(), there: true, ..Place::default() }
    }

    fn healthy() -> Places {
        Places {
            state: place("/h/.claude/longhaul"),
            run: Run::At(place("/run/user/1/longhaul-1")),
            on_path: OnPath::Installed("/h/.local/bin/longhaul".into()),
            stable: "/h/.claude/longhaul/bin/current/longhaul".into(),
            this: "/my build/longhaul".into(),
            chains: vec![Kept { session: "s".into(), age: Some(2 * DAY) }],
            cleanup_days: 30.0,
            cleanup_place: None,
            user_settings: "/h/.claude/settings.json".into(),
            leftovers: Leftovers::default(),
        }
    }

    #[test]
    fn all_is_well() {
        let facts = healthy();
        for line in [state(&facts), run_dir(&facts), path(&facts), transcripts(&facts), leftovers(&facts)] {
            assert_eq!(line.mark, Mark::Ok, "{line:?}");
        }
    }

    #[test]
    fn a_directory_that_is_not_the_persons_alone_is_told() {
        let with = |state: Place| Places { state, ..healthy() };
        let open = Place { distrust: Some("can be entered by others"), ..place("/s") };
        broken(&state(&with(open)), "entered by others", "chmod 700 /s");
        let theirs = Place { distrust: Some("belongs to another user"), ..place("/s") };
        broken(&state(&with(theirs)), "another user", "sudo chown -R \"$(id -u)\" /s");
        assert!(state(&with(Place { read_only: true, ..place("/s") })).is_broken());
        assert_eq!(state(&with(Place { remote: Some("NFS"), ..place("/s") })).mark, Mark::Note);
        assert_eq!(state(&with(Place { there: false, ..place("/s") })).mark, Mark::Note);
        let run = |run| run_dir(&Places { run, ..healthy() });
        broken(&run(Run::Unknown("it is odd".into())), "odd", "rm /h/.claude/longhaul/run-dir");
        assert!(run(Run::At(Place { remote: Some("NFS"), ..place("/r") })).is_broken());
        assert_eq!(run(Run::At(Place { there: false, ..place("/r") })).mark, Mark::Ok);
        assert_eq!(run(Run::None).mark, Mark::Ok);
    }

    #[test]
    fn another_longhaul_on_path_is_told() {
        let on = |on_path| path(&Places { on_path, ..healthy() });
        assert_eq!(on(OnPath::None).mark, Mark::Note);
        let aside = on(OnPath::Aside("/h/.local/bin/longhaul".into(), "add this line".into()));
        assert_eq!((aside.mark, aside.fix.as_deref()), (Mark::Note, Some("add this line")));
        assert_eq!(on(OnPath::This("/c/longhaul".into())).mark, Mark::Note);
        let other = on(OnPath::Other("/opt/longhaul".into()));
        assert!(other.is_broken() && other.fix.unwrap().starts_with("rm /opt/longhaul"));
        let ln = "ln -sfn /h/.claude/longhaul/bin/current/longhaul '/h o/longhaul'";
        broken(&on(OnPath::Dangling("/h o/longhaul".into())), "leads nowhere", ln);
        assert!(on(OnPath::Refused("/w/longhaul lies in the project".into())).is_broken());
    }

    #[test]
    fn a_fix_can_be_typed_as_it_is() {
        let on = |on_path, fix: &str| typed(&Places { on_path, ..healthy() }, fix.to_owned());
        assert_eq!(on(OnPath::None, "longhaul setup"), "'/my build/longhaul' setup");
        assert_eq!(on(OnPath::Other("/x".into()), "longhaul sessions"), "'/my build/longhaul' sessions");
        assert_eq!(on(OnPath::None, "claude update"), "claude update");
        assert_eq!(on(OnPath::This("/x".into()), "longhaul setup"), "longhaul setup");
    }

    #[test]
    fn a_transcript_is_told_of_before_the_client_deletes_it() {
        let with = |age: Option<i64>, days: f64| {
            let chains = vec![Kept { session: "s".into(), age }, Kept { session: "t".into(), age: Some(0) }];
            transcripts(&Places { chains, cleanup_days: days, ..healthy() })
        };
        let fix = "\"cleanupPeriodDays\": 365 in /h/.claude/settings.json";
        broken(&with(Some(28 * DAY), 30.0), "1 transcript of handoff chains, s in 2d", fix);
        broken(&with(Some(40 * DAY), 30.0), "at its next start", fix);
        broken(&with(Some(0), 0.0), "2 transcripts", fix);
        assert_eq!(with(Some(22 * DAY), 30.0).mark, Mark::Ok);
        assert_eq!(with(Some(400 * DAY), 99_999_999_999_999.0).mark, Mark::Ok);
        assert_eq!(with(None, 30.0).mark, Mark::Note);
    }

    #[test]
    fn what_is_left_lying_is_told() {
        let with = |left| leftovers(&Places { leftovers: left, ..healthy() });
        let later = with(Leftovers { later: vec!["/s/chains.json".into()], ..Leftovers::default() });
        broken(&later, "/s/chains.json", "claude plugin update longhaul@longhaul, then longhaul setup");
        assert!(with(Leftovers { damaged: vec!["/s/x: odd".into()], ..Leftovers::default() }).is_broken());
        let rest = with(Leftovers {
            aside: vec!["/s/chains.json.unreadable-1".into()],
            versions: vec!["0.9.0".into()],
            litter: 2,
            sessions: 1,
            runs: vec!["/tmp/longhaul-1-2".into()],
            ..Leftovers::default()
        });
        assert_eq!(rest.mark, Mark::Note);
        for part in ["unreadable-1", "0.9.0", "2 files", "1 session", "/tmp/longhaul-1-2"] {
            assert!(rest.what.contains(part), "{rest:?}");
        }
        let runs = with(Leftovers { runs: vec!["/tmp/a b".into()], ..Leftovers::default() });
        assert_eq!(runs.fix.as_deref(), Some("rm -r '/tmp/a b'"));
    }
}
