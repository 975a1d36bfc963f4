//! What stands around a session: its command line, and the client's own `.claude.json`.

use std::path::Path;

use super::{Occasion, Subject};
use crate::client::flags::Flags;
use crate::client::session_file;
use crate::client::settings::{Origin, Scope, Settings, Values};
use crate::gauge::inputs::Name;
use crate::gauge::records::{Global, Process, Seen};
use crate::host::{Host, files, process};
use crate::store::config_dir;

/// The client's `.claude.json` is not read when larger, in bytes.
const GLOBAL_MOST: u64 = 16 << 20;

/// The session's command line: from the process that runs it, else as it was seen.
pub(super) fn flags(host: &Host, subject: &Subject, seen: &Seen, config: Option<&Path>) -> Flags {
    let pid = if subject.inside {
        own_client(host)
    } else {
        let running = config.zip(subject.session.as_ref());
        running.and_then(|(config, id)| session_file::of_session(config, id)).and_then(|file| file.pid)
    };
    let arguments = pid.and_then(process::arguments);
    arguments.map_or_else(
        || Flags { autocompact: seen.autocompact_flag.clone(), ..Flags::default() },
        |list| Flags::read(&list),
    )
}

/// The client that started this process.
fn own_client(host: &Host) -> Option<u32> {
    host.env("CLAUDE_PID").and_then(|text| text.parse().ok())
}

/// Notes the client's process. It is looked up where a session starts and where its number is another; in between
/// that costs nothing.
pub(super) fn note_process(host: &Host, occasion: Occasion, known: &mut Process, now: i64) {
    let Some(pid) = own_client(host).filter(|_| occasion != Occasion::Look) else { return };
    let same_number = known.pid == Some(pid);
    if same_number && occasion == Occasion::Event {
        return;
    }
    let started = process::find(pid).and_then(|process| process.start);
    let cleared = occasion == Occasion::Clear;
    if same_number && known.started == started {
        known.cleared |= cleared;
    } else {
        *known = Process { pid: Some(pid), started, since_ms: now, cleared };
    }
}

/// Adds `.claude.json` as the weakest scope. It can be large, so it is read only when it has changed.
pub(super) fn add_global(host: &Host, settings: &mut Settings, global: &mut Global) {
    let base = host.env_path("CLAUDE_CONFIG_DIR").or_else(|| host.home());
    let old = config_dir(host).map(|dir| dir.join(".config.json")).filter(|path| path.is_file());
    let Some(path) = old.or_else(|| base.map(|dir| dir.join(".claude.json"))) else { return };
    let version = files::version(&path);
    if global.version != version || version == 0 {
        let values = files::read_small(&path, GLOBAL_MOST).ok().and_then(|bytes| Values::parse(&bytes).ok());
        let values = values.unwrap_or_default();
        let wanted = |name: &str| Name::ALL.iter().any(|input| input.is_env() && input.as_str() == name);
        *global = Global {
            version,
            enabled: values.enabled.and_then(|value| value.as_bool()),
            env: values.env.into_iter().filter(|(name, text)| wanted(name) && !text.is_empty()).collect(),
        };
    }
    if global.enabled.is_some() || !global.env.is_empty() {
        let values = Values {
            env: global.env.clone(),
            enabled: global.enabled.map(serde_json::Value::from),
            ..Values::default()
        };
        settings.scopes.push(Scope { origin: Origin::Global, path: Some(path), values });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_looked_up_where_it_may_be_another_and_only_there() {
        let me = process::find(process::own_pid()).unwrap();
        let host = Host::fixed(&[("CLAUDE_PID", &me.pid.to_string())], 0);
        let mut known = Process::default();
        let note = |known: &mut Process, occasion, now| {
            note_process(&host, occasion, known, now);
            known.clone()
        };
        assert_eq!(note(&mut known, Occasion::Look, 1), Process::default());
        let first = Process { pid: Some(me.pid), started: me.start, since_ms: 2, cleared: false };
        assert_eq!(note(&mut known, Occasion::Event, 2), first);
        assert_eq!(note(&mut known, Occasion::Start, 3), first, "seen since then");
        assert!(note(&mut known, Occasion::Clear, 4).cleared && known.since_ms == 2);
        // The number was used again: a start tells, any other event does not look.
        known.started = Some("1".to_owned());
        let stale = known.clone();
        assert_eq!(note(&mut known, Occasion::Event, 5), stale);
        assert_eq!(note(&mut known, Occasion::Start, 6), Process { since_ms: 6, ..first });
        note_process(&Host::fixed(&[], 0), Occasion::Start, &mut known, 7);
        assert_eq!(known.since_ms, 6, "nobody says which process it is");
    }
}
