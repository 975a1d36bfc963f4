//! What stands around a session: its command line, and the client's own `.claude.json`.

use std::path::Path;

use super::Subject;
use crate::client::flags::Flags;
use crate::client::session_file;
use crate::client::settings::{Origin, Scope, Settings, Values};
use crate::gauge::inputs::Name;
use crate::gauge::records::{Global, Seen};
use crate::host::{Host, files, process};
use crate::store::config_dir;

/// The client's `.claude.json` is not read when larger, in bytes.
const GLOBAL_MOST: u64 = 16 << 20;

/// The session's command line: from the process that runs it, else as it was seen.
pub(super) fn flags(host: &Host, subject: &Subject, seen: &Seen, config: Option<&Path>) -> Flags {
    let pid = if subject.inside {
        host.env("CLAUDE_PID").and_then(|text| text.parse().ok())
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
