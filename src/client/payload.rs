//! What the client writes to a status line command's standard input, as observed on 2.1.332. The mod hands
//! over the same shape with a key `longhaul` beside it.

use serde::Deserialize;

use super::figures::Handed;
use super::lenient::{count, maybe, name, object};
use crate::base::tokens::MOST;

/// The payload. Every field may be absent, null or of another type.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Payload {
    /// The session that is drawn.
    #[serde(deserialize_with = "name")]
    pub session_id: Option<String>,
    /// Its transcript; may not exist yet.
    #[serde(deserialize_with = "name")]
    pub transcript_path: Option<String>,
    /// Its working directory.
    #[serde(deserialize_with = "name")]
    pub cwd: Option<String>,
    /// The model, as an object or (seen in the wild) as a bare text.
    #[serde(deserialize_with = "maybe")]
    pub model: Option<Model>,
    /// Directories.
    #[serde(deserialize_with = "maybe")]
    pub workspace: Option<Workspace>,
    /// Window and usage.
    #[serde(deserialize_with = "maybe")]
    pub context_window: Option<ContextWindow>,
    /// The prompt cache, where the client says.
    #[serde(deserialize_with = "maybe")]
    pub prompt_cache: Option<PromptCache>,
    /// Only from our mod.
    #[serde(deserialize_with = "maybe")]
    pub longhaul: Option<Handed>,
}

/// The session's model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// For instance `claude-opus-5-5`, with a suffix such as `[1m]`.
    pub id: Option<String>,
    /// For instance `Opus 5.5`.
    pub display_name: Option<String>,
}

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Object {
            #[serde(deserialize_with = "name")]
            id: Option<String>,
            #[serde(deserialize_with = "name")]
            display_name: Option<String>,
        }
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            return Ok(Self { id: name(raw).unwrap_or_default(), display_name: None });
        }
        let Object { id, display_name } = serde_json::from_str(raw.get()).unwrap_or_default();
        Ok(Self { id, display_name })
    }
}

/// Directories of the session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Workspace {
    /// Where the session is now.
    #[serde(deserialize_with = "name")]
    pub current_dir: Option<String>,
    /// Where the session was started.
    #[serde(deserialize_with = "name")]
    pub project_dir: Option<String>,
    /// Directories added since.
    #[serde(deserialize_with = "maybe")]
    pub added_dirs: Option<Vec<String>>,
}

/// The window and the last response's usage, in tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContextWindow {
    /// The model's window: not the wall.
    #[serde(deserialize_with = "count")]
    pub context_window_size: Option<u64>,
    /// Null before the first response, zeros or null right after a compaction.
    #[serde(deserialize_with = "maybe")]
    pub current_usage: Option<Usage>,
}

/// One response's usage, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Uncached input.
    #[serde(deserialize_with = "count")]
    pub input_tokens: Option<u64>,
    /// Output.
    #[serde(deserialize_with = "count")]
    pub output_tokens: Option<u64>,
    /// Input written to the cache.
    #[serde(deserialize_with = "count")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Input read from the cache.
    #[serde(deserialize_with = "count")]
    pub cache_read_input_tokens: Option<u64>,
}

impl Usage {
    /// What stands in the context after this response: input, both cache parts and output (measured: the
    /// wall counts output too). `None` where nothing is counted.
    pub fn used(&self) -> Option<u64> {
        let parts = [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
            self.output_tokens,
        ];
        let sum = parts.iter().flatten().fold(0_u64, |sum, part| sum.saturating_add(*part));
        (1..=MOST).contains(&sum).then_some(sum)
    }
}

/// The prompt cache.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PromptCache {
    /// False: the next request pays for the whole context again.
    #[serde(deserialize_with = "maybe")]
    pub warm: Option<bool>,
}

impl Payload {
    /// Reads a payload. Anything that is not a JSON object is `None`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        object(bytes)
    }

    /// The model's id.
    pub fn model_id(&self) -> Option<&str> {
        let model = self.model.as_ref()?;
        let id = model.id.as_ref().or(model.display_name.as_ref());
        id.map(String::as_str).filter(|id| !id.is_empty())
    }

    /// The model's name for people.
    pub fn model_name(&self) -> Option<&str> {
        let model = self.model.as_ref()?;
        let name = model.display_name.as_ref().or(model.id.as_ref());
        name.map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The model's window, in tokens; 0 counts as not said.
    pub fn window(&self) -> Option<u64> {
        self.context_window.as_ref()?.context_window_size.filter(|size| *size > 0)
    }

    /// Tokens in use after the last response, as this payload counts them.
    pub fn used(&self) -> Option<u64> {
        self.context_window.as_ref()?.current_usage?.used()
    }

    /// The directory the session was started in.
    pub fn project_dir(&self) -> Option<&str> {
        self.workspace.as_ref().and_then(|w| w.project_dir.as_deref()).or(self.cwd.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_the_client_is_read() {
        let payload = Payload::parse(
            br#"{"session_id":"s1","model":{"id":"claude-opus-5-5","display_name":"Opus 5.5"},
            "workspace":{"project_dir":"/p","added_dirs":["/q"]},"prompt_cache":{"warm":false},
            "context_window":{"context_window_size":1000000,"current_usage":{"input_tokens":10,
            "output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":1000}},"new":{}}"#,
        )
        .unwrap();
        assert_eq!(payload.model_id(), Some("claude-opus-5-5"));
        assert_eq!(payload.model_name(), Some("Opus 5.5"));
        assert_eq!((payload.window(), payload.used()), (Some(1_000_000), Some(1015)));
        assert_eq!(payload.project_dir(), Some("/p"));
    }

    // CC#21304, CC#43826, CC#29383: one odd field blanked the line.
    #[test]
    fn one_odd_field_takes_no_other_with_it() {
        let payload = Payload::parse(
            br#"{"session_id":7,"model":"opus","cwd":null,"workspace":[],"context_window":
            {"context_window_size":"big","current_usage":{"input_tokens":-4,"output_tokens":"x",
            "cache_read_input_tokens":12.7}}}"#,
        )
        .unwrap();
        assert_eq!((payload.session_id.as_deref(), payload.model_id()), (None, Some("opus")));
        assert_eq!((payload.window(), payload.used()), (None, Some(12)));
        assert!(Payload::parse(br#"{"context_window":null}"#).unwrap().used().is_none());
        for junk in [&b""[..], b"null", b"[]", b"{\"a\":", b"\xff"] {
            assert!(Payload::parse(junk).is_none());
        }
    }
}
