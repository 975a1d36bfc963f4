//! One turn of the client without a person (`-p`): its command line, what it may reach, and what it answers.
//! Measured on 2.1.332.
//!
//! * `--tools Read` leaves the model that tool, one for the answer where a schema is given, and a placeholder
//!   that does nothing. `--strict-mcp-config` with no configuration loads no MCP server.
//! * A rule that allows more in the person's settings still counts, and so would their `disableAllHooks`: the
//!   hook given here denies first, and `--settings` is stronger than every settings file but the managed ones.
//! * An id that another session has: exit 1 and `Session ID … is already in use.` on standard error.
//! * A request that failed: exit 1 and a result with `is_error` and the reason as text.
//! * An answer in prose: exit 0 and a result without `structured_output`.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::lenient::{maybe, object};
use crate::host::Host;

/// The tool that reads files.
pub const READ: &str = "Read";
/// The tool that takes the answer in the schema.
pub const ANSWER: &str = "StructuredOutput";
/// An output longer than this is no result, in bytes.
pub const OUTPUT_MOST: u64 = 64 << 20;

/// What a turn is made of. The prompt goes to standard input.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The session.
    pub session: &'a str,
    /// Its name, where it is new; otherwise it is resumed.
    pub name: Option<&'a str>,
    /// The model; the usual one where it is not given.
    pub model: Option<&'a str>,
    /// The directory that may be read.
    pub dir: &'a Path,
    /// The shell command that is asked before every tool. It ends with 2 where it cannot answer.
    pub guard: &'a str,
    /// JSON schema of the answer.
    pub schema: &'a str,
}

impl Turn<'_> {
    /// Its command line.
    pub fn arguments(&self) -> Vec<String> {
        let mut args = vec!["-p".to_owned()];
        let mut add = |more: &[&str]| args.extend(more.iter().map(|&arg| arg.to_owned()));
        match self.name {
            // Joined, so that a name that begins with a dash stays a name.
            Some(name) => add(&["--session-id", self.session, &format!("--name={name}")]),
            None => add(&["--resume", self.session]),
        }
        if let Some(model) = self.model {
            add(&[&format!("--model={model}")]);
        }
        add(&["--output-format", "json", "--json-schema", self.schema]);
        add(&["--tools", READ, "--strict-mcp-config", "--permission-mode", "default"]);
        add(&["--settings", &settings(self.guard), "--add-dir", &self.dir.to_string_lossy()]);
        args
    }
}

/// Settings of this turn alone: the guard, and hooks switched on.
fn settings(guard: &str) -> String {
    const SECONDS: u64 = 30;
    let hook = json!({ "type": "command", "command": guard, "timeout": SECONDS });
    let hooks = json!({ "PreToolUse": [{ "matcher": "*", "hooks": [hook] }] });
    json!({ "disableAllHooks": false, "hooks": hooks }).to_string()
}

/// The row that `--output-format json` prints.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The turn failed.
    #[serde(deserialize_with = "maybe")]
    pub is_error: Option<bool>,
    /// Its last text, or why it failed.
    #[serde(deserialize_with = "maybe")]
    pub result: Option<String>,
    /// The answer in the schema.
    #[serde(deserialize_with = "maybe")]
    pub structured_output: Option<Value>,
}

impl Outcome {
    /// Reads what was printed.
    pub fn parse(stdout: &[u8]) -> Option<Self> {
        object(stdout)
    }
}

/// Whether the client refused the id since another session has it.
pub fn says_id_is_taken(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("is already in use")
}

/// Variables that the client gives to what it starts. A client started from there must not have them, while
/// those for the login and the wall stay.
pub fn own_variables(host: &Host) -> Vec<OsString> {
    const NAMES: [&str; 10] = [
        "CLAUDECODE",
        "CLAUDE_PID",
        "CLAUDE_JOB_DIR",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
    ];
    const BEGINNINGS: [&str; 2] = ["CLAUDE_PLUGIN_", "CLAUDE_CODE_MESSAGING_"];
    let is_own = |name: &OsString| {
        let name = name.to_string_lossy();
        NAMES.contains(&&*name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    };
    host.env_names().into_iter().filter(is_own).collect()
}

/// The same and the keys of the login: for programs of the person's that are no client.
pub fn own_variables_and_keys(host: &Host) -> Vec<OsString> {
    const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
    own_variables(host).into_iter().chain(KEYS.map(OsString::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_model_stay_arguments_whatever_they_begin_with() {
        let turn = Turn {
            session: "s",
            name: Some("--help (cont. 2)"),
            model: Some("-x"),
            dir: Path::new("/e"),
            guard: "guard '/e' || exit 2",
            schema: "{}",
        };
        let args = turn.arguments();
        assert!(
            args.contains(&"--name=--help (cont. 2)".to_owned()) && args.contains(&"--model=-x".to_owned())
        );
        let at = args.iter().position(|arg| arg == "--settings").unwrap();
        let settings: Value = serde_json::from_str(&args[at + 1]).unwrap();
        assert_eq!(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "guard '/e' || exit 2");
        let again = Turn { name: None, ..turn }.arguments();
        assert!(
            again.windows(2).any(|pair| pair == ["--resume", "s"]) && !again.contains(&"--session-id".into())
        );
    }

    #[test]
    fn what_the_client_gives_its_tools_is_left_out_and_the_login_stays() {
        let env = [
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_SESSION_ID", "s"),
            ("CLAUDE_PLUGIN_ROOT", "/p"),
            ("CLAUDE_CODE_MESSAGING_SOCKET", "/s"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "t"),
            ("ANTHROPIC_API_KEY", "k"),
            ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "300000"),
            ("CLAUDE_CONFIG_DIR", "/c"),
        ];
        let out = own_variables(&Host::fixed(&env, 0));
        let names: Vec<&str> = out.iter().filter_map(|name| name.to_str()).collect();
        assert_eq!(
            names,
            ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PLUGIN_ROOT", "CLAUDE_CODE_MESSAGING_SOCKET"]
        );
    }

    #[test]
    fn results_are_read_and_prose_is_none() {
        let outcome =
            Outcome::parse(br#"{"is_error":false,"result":"{}","structured_output":{"marks":[]}}"#).unwrap();
        assert!(outcome.structured_output.is_some());
        let prose = Outcome::parse(br#"{"is_error":false,"result":"accepted"}"#).unwrap();
        assert_eq!((prose.structured_output, prose.result.as_deref()), (None, Some("accepted")));
        assert!(Outcome::parse(b"accepted").is_none() && Outcome::parse(b"").is_none());
        assert!(says_id_is_taken(b"Error: Session ID x is already in use.\n") && !says_id_is_taken(b"Error"));
    }
}
