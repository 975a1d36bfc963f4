//! Fields that come and go: absent, null, or of another type than last month. None of it is an error.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::tokens::MOST;

/// Bytes of the longest name or path.
const NAME_MOST: usize = 4096;
/// Bytes of a long text that are looked at.
const BEGINNING: usize = 4096;

/// A file's text without the byte order mark that some editors put before it.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Reads a JSON object, with or without a byte order mark; anything else is nothing.
pub fn object<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let bytes = without_mark(bytes).trim_ascii();
    bytes.starts_with(b"{").then(|| serde_json::from_slice(bytes).ok())?
}

/// A value of the expected type, or nothing: whatever is wrong inside of it (another type, a number no float
/// holds, half a surrogate, endless nesting) stays inside.
pub fn maybe<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'a> Deserialize<'a>,
{
    let value = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(value.get()).ok())
}

/// A name or a path. Longer than any that a system takes, it is none.
pub fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = <&RawValue>::deserialize(deserializer)?.get();
    // An escape takes up to six bytes for one.
    let text =
        if value.len() <= 6 * NAME_MOST + 2 { serde_json::from_str::<String>(value).ok() } else { None };
    Ok(text.filter(|text| text.len() <= NAME_MOST))
}

/// The beginning of a text that may be long, for a look at how it starts.
pub fn beginning<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = <&RawValue>::deserialize(deserializer)?.get();
    if value.len() <= BEGINNING {
        return Ok(serde_json::from_str(value).ok());
    }
    // A cut can fall within a character or an escape, of which the longest has twelve bytes.
    let cuts = (BEGINNING - 12..BEGINNING).rev().filter_map(|at| value.get(..at));
    Ok(cuts.filter(|_| value.starts_with('"')).find_map(|cut| serde_json::from_str(&format!("{cut}\"")).ok()))
}

/// A count: a whole number from 0 to [`MOST`]. A float is cut to a whole one, anything else is nothing.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = maybe::<D, Value>(deserializer)?;
    Ok(value.as_ref().and_then(as_count))
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

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Odd {
        #[serde(deserialize_with = "maybe")]
        switch: Option<bool>,
        #[serde(deserialize_with = "name")]
        name: Option<String>,
        #[serde(deserialize_with = "beginning")]
        text: Option<String>,
        #[serde(deserialize_with = "count")]
        count: Option<u64>,
    }

    #[test]
    fn what_is_wrong_in_a_field_stays_in_it() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        for odd in ["1e400", "\"\\ud800\"", "{\"a\":1e400}", "[[\"\\udc00\"]]", "-0.5", &deep] {
            for field in ["switch", "name", "text", "count"] {
                let mut fields = [
                    ("switch", "true"),
                    ("name", "\"n\""),
                    ("text", "\"t\""),
                    ("count", "7"),
                    ("other", odd),
                ];
                fields.iter_mut().find(|(name, _)| *name == field).unwrap().1 = odd;
                let json: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                let read: Odd = object(format!("{{{}}}", json.join(",")).as_bytes()).unwrap();
                let there =
                    [read.switch.is_some(), read.name.is_some(), read.text.is_some(), read.count.is_some()];
                assert_eq!(there.iter().filter(|there| **there).count(), 3, "{field}: {read:?}");
            }
        }
    }

    #[test]
    fn a_name_has_an_end_and_a_long_text_a_beginning() {
        for (unit, len) in [("a", 1), ("\\n", 1), ("\u{e9}", 2), ("\\ud83d\\ude00", 4), ("\u{1f600}", 4)] {
            for shift in 0..12 {
                let text = "x".repeat(shift) + &unit.repeat(20_000);
                let json = format!("{{\"name\":\"{text}\",\"text\":\"{text}\"}}");
                let read: Odd = object(json.as_bytes()).unwrap();
                assert_eq!(read.name, None);
                let beginning = read.text.unwrap();
                assert!(beginning.len() > 300 * len && beginning.len() <= BEGINNING, "{unit} {shift}");
            }
        }
        let read: Odd =
            object(format!("{{\"name\":\"{}\"}}", "\\u0061".repeat(NAME_MOST)).as_bytes()).unwrap();
        assert_eq!(read.name.unwrap().len(), NAME_MOST);
    }

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
