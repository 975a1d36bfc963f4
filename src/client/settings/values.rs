//! One settings file, and only the keys that longhaul looks at. Read on each redraw, so everything else is
//! skipped without being built.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::lenient::without_mark;

/// One settings file's values that matter here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// The `env` block, in file order, the last of two equal names winning.
    pub env: Vec<(String, String)>,
    /// `autoCompactWindow` as it stands.
    pub window: Option<Value>,
    /// `modelSettings.<model>.autoCompactWindow` as it stands.
    pub model_windows: Vec<(String, Value)>,
    /// `autoCompactEnabled` as it stands.
    pub enabled: Option<Value>,
    /// `statusLine.command`.
    pub status_command: Option<String>,
    /// A key of the wrong type, for which the client drops the whole file.
    pub void: Option<&'static str>,
}

/// Keys whose wrong type voids a whole file, and what they must be (measured; null voids too).
const STRICT: [(&str, Shape); 12] = [
    ("env", Shape::Object),
    ("permissions", Shape::Object),
    ("autoCompactEnabled", Shape::Bool),
    ("model", Shape::Text),
    ("statusLine", Shape::Object),
    ("cleanupPeriodDays", Shape::Number),
    ("includeCoAuthoredBy", Shape::Bool),
    ("outputStyle", Shape::Text),
    ("language", Shape::Text),
    ("$schema", Shape::Text),
    ("apiKeyHelper", Shape::Text),
    ("alwaysThinkingEnabled", Shape::Bool),
];

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Object,
    Array,
    Text,
    Number,
    Bool,
    Null,
}

impl Shape {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::String(_) => Self::Text,
            Value::Number(_) => Self::Number,
            Value::Bool(_) => Self::Bool,
            Value::Null => Self::Null,
        }
    }

    /// Of a value's text, which is known to be valid.
    fn of_text(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

fn is_status_line(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string) && value.get("command").is_some_and(Value::is_string)
}

impl Values {
    /// Reads one file's text. Comments are not JSON and the client refuses them too.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let bytes = without_mark(bytes);
        // What holds nothing counts as empty.
        if matches!(bytes.trim_ascii(), b"" | b"[]" | b"null" | b"\"\"") {
            return Ok(Self::default());
        }
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let values = reader.deserialize_map(Reader)?;
        reader.end()?;
        Ok(values)
    }
}

/// Keys whose values are kept.
const KEPT: [&str; 5] = ["env", "autoCompactWindow", "autoCompactEnabled", "modelSettings", "statusLine"];

/// Keeps the known keys and steps over the rest. Of two equal keys the last one counts, as in the client.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a settings object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut values = Values::default();
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let strict = STRICT.iter().find(|(name, _)| *name == key);
            if !KEPT.contains(&&*key) {
                let Some((name, shape)) = strict else {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                };
                // Permissions can be long: only their type is looked at.
                if Shape::of_text(map.next_value::<&RawValue>()?.get()) != *shape {
                    values.void = Some(name);
                }
                continue;
            }
            let value: Value = map.next_value()?;
            let odd_line = key == "statusLine" && !is_status_line(&value);
            if let Some((name, _)) = strict.filter(|(_, shape)| Shape::of(&value) != *shape || odd_line) {
                values.void = Some(name);
                continue;
            }
            match &*key {
                "env" => values.env = env_block(value),
                "autoCompactWindow" => values.window = Some(value),
                "autoCompactEnabled" => values.enabled = Some(value),
                "modelSettings" => values.model_windows = model_windows(value),
                "statusLine" => {
                    values.status_command = value.get("command").and_then(Value::as_str).map(str::to_owned);
                }
                _ => {}
            }
        }
        Ok(values)
    }
}

fn env_block(value: Value) -> Vec<(String, String)> {
    let Value::Object(block) = value else { return Vec::new() };
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        // Of another type it reads as junk, and still takes the place of the process's variable (measured).
        _ => None,
    };
    block.into_iter().map(|(name, value)| (name, text(value).unwrap_or_default())).collect()
}

fn model_windows(value: Value) -> Vec<(String, Value)> {
    let Value::Object(models) = value else { return Vec::new() };
    let window = |mut settings: Value| settings.get_mut("autoCompactWindow").map(Value::take);
    models.into_iter().filter_map(|(model, settings)| Some((model, window(settings)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_keys_are_kept_and_the_rest_is_stepped_over() {
        let values = Values::parse(
            br#"{"permissions":{"allow":["x"]},"env":{"A":"1","B":2,"C":null},"autoCompactWindow":"300k",
            "modelSettings":{"m":{"autoCompactWindow":5},"n":{}},"autoCompactEnabled":false,"model":"opus",
            "statusLine":{"type":"command","command":"x"},"autoCompactWindow":400000}"#,
        )
        .unwrap();
        let env = values.env.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>();
        assert_eq!(env, [("A", "1"), ("B", "2"), ("C", "")]);
        assert_eq!(values.window, Some(json!(400_000)), "the last of two equal keys counts");
        assert_eq!(values.model_windows, [("m".to_owned(), json!(5))]);
        assert_eq!(values.enabled, Some(json!(false)));
        assert_eq!(values.status_command.as_deref(), Some("x"));
    }

    #[test]
    fn odd_shapes_are_nothing_and_bad_json_is_a_problem() {
        assert_eq!(Values::parse(br#"{"modelSettings":7,"hooks":[1]}"#).unwrap(), Values::default());
        for (key, text) in [
            ("env", r#"{"env":[]}"#),
            ("model", r#"{"model":null}"#),
            ("autoCompactEnabled", r#"{"autoCompactEnabled":0}"#),
            ("statusLine", r#"{"statusLine":5}"#),
        ] {
            assert_eq!(Values::parse(text.as_bytes()).unwrap().void, Some(key));
        }
        assert_eq!(Values::parse(b" \n").unwrap(), Values::default());
        assert!(Values::parse(b"{\"env\":").is_err());
        assert!(Values::parse(b"[1]").is_err());
        assert!(Values::parse(b"{} x").is_err());
    }
}
