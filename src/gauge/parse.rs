//! How the client reads the texts that people set, measured black-box on 2.1.332 (some 400 texts). The client
//! reads numbers the way its runtime does, so a text can mean more than it seems to: `350,k` is 350,000.

use serde_json::Value;

/// The smallest explicit window, in tokens: smaller values of the environment count as this, smaller ones
/// in settings are ignored (measured).
pub const LEAST_WINDOW: u64 = 100_000;
/// Largest whole number the client counts with.
const MOST: f64 = 9_007_199_254_740_991.0;

/// A switch: 1, true, yes, on in any case are on; anything else is off.
pub fn switch(text: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|on| trim(text).eq_ignore_ascii_case(on))
}

/// A token count in the environment: with `k` or `m` behind, in groups of three, with an exponent, or the
/// whole number the text begins with.
pub fn tokens(text: &str) -> Option<u64> {
    let text = trim(text).to_lowercase();
    let mut suffixed = [('k', 1e3), ('m', 1e6)].into_iter();
    let suffixed = suffixed.find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
    match suffixed {
        Some((rest, factor)) => {
            let number = leading_float(rest)? * factor;
            // Less than one is ignored before halves are rounded up.
            if number < 1.0 { None } else { to_count((number + 0.5).floor()) }
        }
        None => count(&text),
    }
}

/// A count without a suffix: in groups of three, with an exponent, or the whole number the text begins with.
pub fn count(text: &str) -> Option<u64> {
    let text = trim(text).to_lowercase();
    if let Some(plain) = ungroup(&text) {
        return to_count(leading_whole(&plain)?);
    }
    // A number with an exponent that is not whole is not read at all.
    to_count(exponential(&text).or_else(|| leading_whole(&text))?)
}

/// A whole number above 0 that the client counts with.
fn to_count(number: f64) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (number.fract() == 0.0 && (1.0..=MOST).contains(&number)).then_some(number as u64)
}

/// What `--autocompact` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagWindow {
    /// No explicit window, and none from settings either.
    Auto,
    /// This many tokens.
    Tokens(u64),
}

/// The flag reads like the environment; `auto` lifts the settings' windows, and a plain number up to 1000
/// means thousands.
pub fn flag_window(text: &str) -> Option<FlagWindow> {
    if trim(text).eq_ignore_ascii_case("auto") {
        return Some(FlagWindow::Auto);
    }
    let number = tokens(text)?;
    Some(FlagWindow::Tokens(if number <= 1_000 { number * 1_000 } else { number }))
}

/// A window in a settings file: a whole JSON number from [`LEAST_WINDOW`] on.
pub fn settings_window(value: &Value) -> Option<u64> {
    to_count(value.as_f64()?).filter(|window| *window >= LEAST_WINDOW)
}

/// A percentage above 0 and at most 100, possibly fractional.
pub fn percent(text: &str) -> Option<f64> {
    let number = leading_float(trim(text))?;
    (number > 0.0 && number <= 100.0).then_some(number)
}

/// The client's notion of white space: Unicode's, and the byte order mark.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// `300,000`, `300_000`, `300 000`: groups of three behind one and the same separator. Gives the digits.
fn ungroup(text: &str) -> Option<String> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let separator = text.chars().find(|c| !c.is_ascii_digit())?;
    if !matches!(separator, ',' | '_' | ' ' | '\u{a0}' | '\u{202f}') {
        return None;
    }
    let mut groups = text.split(separator);
    let all_digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().filter(|group| (1..=3).contains(&group.len()) && all_digits(group))?;
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || !all_digits(group) {
            return None;
        }
        digits.push_str(group);
    }
    Some(digits)
}

/// The whole text as a number with an exponent, such as `3e5` or `.3e6`.
fn exponential(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let (mantissa, exponent) = text.split_once('e')?;
    let mantissa = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shaped = digits(before) && digits(after) && !(before.is_empty() && after.is_empty());
    (shaped && !exponent.is_empty() && digits(exponent) && bytes.is_ascii()).then(|| text.parse().ok())?
}

/// The longest decimal number at the start, white space before it passed over.
fn leading_float(text: &str) -> Option<f64> {
    let text = trim(text);
    let bytes = text.as_bytes();
    let digits_from = |at: usize| bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let before = digits_from(at);
    at += before;
    if bytes.get(at) == Some(&b'.') {
        let after = digits_from(at + 1);
        if before + after == 0 {
            return None;
        }
        at += 1 + after;
    } else if before == 0 {
        return None;
    }
    if bytes.get(at) == Some(&b'e') || bytes.get(at) == Some(&b'E') {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let digits = digits_from((at + 1 + sign).min(bytes.len()));
        if digits > 0 {
            at += 1 + sign + digits;
        }
    }
    text[..at].parse().ok()
}

/// The whole number at the start: a sign, digits, the rest passed over.
fn leading_whole(text: &str) -> Option<f64> {
    let text = trim(text);
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { None } else { text[..sign + digits].parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_count_is_read_as_the_client_reads_it() {
        for (text, number) in [
            ("200000", 200_000),
            (" 300000\u{feff}", 300_000),
            ("500k", 500_000),
            ("500K", 500_000),
            ("0.3m", 300_000),
            ("300ktok", 300_000),
            ("350,k", 350_000),
            ("350km", 350_000_000),
            ("350m k", 350_000),
            ("350..5k", 350_000),
            ("1_000k", 1_000),
            ("2e5k", 200_000_000),
            ("0.001k", 1),
            ("150.5555k", 150_556),
            ("300.0004k", 300_000),
            ("300,000", 300_000),
            ("0,300,000", 300_000),
            ("+300_000", 300_000),
            ("300\u{202f}000", 300_000),
            ("3,00,000", 3),
            ("300,0000", 300),
            ("300,000.5", 300),
            ("300'000", 300),
            ("300\t000", 300),
            ("3e5", 300_000),
            (".3e6", 300_000),
            ("3.e5", 300_000),
            ("305000e-1", 30_500),
            ("1e6", 1_000_000),
            ("3e5x", 3),
            ("300.000", 300),
            ("300000.9", 300_000),
            ("300000abc", 300_000),
            ("400000 300000", 400_000),
            ("300kb", 300),
        ] {
            assert_eq!(tokens(text), Some(number), "{text:?}");
        }
        for junk in [
            "abc",
            "",
            "-5",
            "0",
            "0x493e0",
            "0.0009k",
            "3.000007e5",
            "1e-3",
            "+ 300000",
            "++3",
            "$3",
            "_350000",
            ",300000",
            "k",
            "∞",
            "1e400",
        ] {
            assert_eq!(tokens(junk), None, "{junk:?}");
        }
    }

    #[test]
    fn the_flag_has_its_own_words() {
        assert_eq!(flag_window(" AUTO "), Some(FlagWindow::Auto));
        assert_eq!(flag_window("200"), Some(FlagWindow::Tokens(200_000)));
        assert_eq!(flag_window("2e2"), Some(FlagWindow::Tokens(200_000)));
        assert_eq!(flag_window("300000"), Some(FlagWindow::Tokens(300_000)));
        assert_eq!(flag_window("x"), None);
    }

    #[test]
    fn other_texts_are_read_as_the_client_reads_them() {
        for (text, number) in [("8k", 8), ("8e3", 8_000), ("8,000", 8_000), (" 8000abc", 8_000)] {
            assert_eq!(count(text), Some(number), "{text:?}");
        }
        assert_eq!([count("8000.5e0"), count("0x1f40"), count("-1"), count("")], [None; 4]);
        assert_eq!(percent("12.5"), Some(12.5));
        for junk in ["0", "-1", "101", "x", "", "NaN", "inf"] {
            assert_eq!(percent(junk), None, "{junk:?}");
        }
        assert!(["1", "TRUE", " yes", "On"].map(switch).iter().all(|on| *on));
        assert!(!["0", "", "2", "junk"].map(switch).iter().any(|on| *on));
        assert_eq!(settings_window(&json!(400_000)), Some(400_000));
        assert_eq!(settings_window(&json!(3e5)), Some(300_000));
        for junk in [json!("300k"), json!(50_000), json!(null), json!(-1), json!(300_000.5), json!(true)] {
            assert_eq!(settings_window(&junk), None, "{junk}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,24}") {
            let _ = (tokens(&text), flag_window(&text), percent(&text), count(&text), switch(&text));
        }

        #[test]
        fn a_plain_number_is_itself(number in 1_u64..9_000_000) {
            prop_assert_eq!(tokens(&number.to_string()), Some(number));
            prop_assert_eq!(tokens(&format!("{number}k")), Some(number * 1_000));
        }
    }
}
