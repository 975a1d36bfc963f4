//! Fields that come and go: absent, null, or of another type than last month. None of it is an error.

use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

use crate::base::tokens::MOST;

/// Reads a JSON object, with or without a byte order mark; anything else is nothing.
pub fn object<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    bytes.starts_with(b"{").then(|| serde_json::from_slice(bytes).ok())?
}

/// A value of the expected type, or nothing.
pub fn maybe<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> Deserialize<'a>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// A count: a whole number from 0 to [`MOST`]. A float is cut to a whole one, anything else is nothing.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(as_count(&Value::deserialize(deserializer)?))
}

/// See [`count`].
pub fn as_count(value: &Value) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole).filter(|whole| *whole <= MOST);
    }
    let float = value.as_f64().filter(|f| (0.0..=MOST as f64).contains(f))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(float as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_count_is_whole_and_not_negative() {
        assert_eq!(as_count(&json!(7)), Some(7));
        assert_eq!(as_count(&json!(7.9)), Some(7));
        assert_eq!(as_count(&json!(-1)), None);
        assert_eq!(as_count(&json!("7")), None);
        assert_eq!(as_count(&json!(MOST)), Some(MOST));
        for absurd in [json!(1e300), json!(u64::MAX), json!(1_u64 << 63), json!(MOST + 1)] {
            assert_eq!(as_count(&absurd), None, "{absurd}");
        }
    }
}
