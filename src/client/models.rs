//! What is known of models when the client says nothing: the window, whether a compaction trigger exists
//! without configuration, the most output. Measured on 2.1.332, and it changes by version: everything here
//! is an assumption that the client's own figures and evidence overrule.

/// The larger of the two windows that models have, and the one of every id that nobody knows, in tokens.
pub const LARGE_WINDOW: u64 = 1_000_000;
/// The smaller one, in tokens.
pub const SMALL_WINDOW: u64 = 200_000;
/// The windows that exist, smallest first: evidence of a larger context moves one up.
pub const WINDOWS: [u64; 2] = [SMALL_WINDOW, LARGE_WINDOW];

/// What is known of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Whether the client knows the id.
    pub known: bool,
    /// Its window in tokens.
    pub window: u64,
    /// Whether the client compacts by itself without an explicit window.
    pub trigger: bool,
    /// Most output, in tokens, where it is small enough to matter.
    pub max_output: u64,
    /// The suffix `[1m]`.
    pub long: bool,
}

/// Family and version of the ids that were tried, with window and trigger.
const KNOWN: &[(&str, (u32, u32), u64, bool)] = &[
    ("opus", (5, 5), LARGE_WINDOW, true),
    ("sonnet", (5, 5), LARGE_WINDOW, true),
    ("haiku", (5, 5), LARGE_WINDOW, true),
    ("opus", (5, 0), LARGE_WINDOW, true),
    ("sonnet", (5, 0), LARGE_WINDOW, true),
    ("fable", (5, 0), LARGE_WINDOW, true),
    ("mythos", (5, 0), LARGE_WINDOW, true),
    ("opus", (4, 8), LARGE_WINDOW, true),
    ("opus", (4, 7), LARGE_WINDOW, true),
    ("opus", (4, 6), SMALL_WINDOW, true),
    ("sonnet", (4, 6), SMALL_WINDOW, true),
    ("opus", (4, 5), SMALL_WINDOW, false),
    ("sonnet", (4, 5), SMALL_WINDOW, false),
    ("haiku", (4, 5), SMALL_WINDOW, false),
    ("sonnet", (4, 0), SMALL_WINDOW, false),
];

/// More output than any reserve takes, in tokens.
const AMPLE_OUTPUT: u64 = 32_000;

/// Looks a model up. `long_off`: the client is told to do without the large window, so `[1m]` says nothing.
pub fn look_up(id: &str, long_off: bool) -> Model {
    let id = id.to_ascii_lowercase();
    let (id, long) = id.strip_suffix("[1m]").map_or((id.as_str(), false), |rest| (rest, !long_off));
    let id = ALIASES.iter().find(|(short, _)| *short == id).map_or(id, |(_, full)| full);
    let base = by_name(id).unwrap_or(Model {
        known: false,
        window: LARGE_WINDOW,
        trigger: true,
        max_output: AMPLE_OUTPUT,
        long: false,
    });
    match (long, base.known && base.window == LARGE_WINDOW) {
        // The suffix brings the large window and takes the trigger away, except where it says nothing new.
        (true, false) => Model { window: LARGE_WINDOW, trigger: false, long, ..base },
        _ => {
            Model { long, window: if long_off { base.window.min(SMALL_WINDOW) } else { base.window }, ..base }
        }
    }
}

fn by_name(id: &str) -> Option<Model> {
    let at = id.find("claude-")?;
    // Providers write something before and after the name.
    let mut parts = id[at + "claude-".len()..].split(['-', '@', ':']).take(3);
    let (first, second, third) = (parts.next()?, parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let model = |window, trigger, max_output| Model { known: true, window, trigger, max_output, long: false };
    if first == "3" {
        let max_output = match (second, third) {
            ("opus" | "haiku" | "sonnet", _) => 4_096,
            ("5", _) => 8_192,
            _ => AMPLE_OUTPUT,
        };
        return Some(model(SMALL_WINDOW, false, max_output));
    }
    // A date stands where a minor version would: it is none.
    let number = |part: &str| part.parse::<u32>().ok().filter(|number| *number < 1_000);
    let version = (number(second)?, number(third).unwrap_or(0));
    let (_, _, window, trigger) = KNOWN.iter().find(|known| known.0 == first && known.1 == version)?;
    Some(model(*window, *trigger, AMPLE_OUTPUT))
}

/// Short names and what they mean.
const ALIASES: [(&str, &str); 4] = [
    ("opus", "claude-opus-5-5"),
    ("sonnet", "claude-sonnet-5-5"),
    ("haiku", "claude-haiku-5-5"),
    ("best", "claude-opus-5-5"),
];

/// The form in which the client compares ids: lower case, without `[1m]`, a provider's prefix and version, a
/// date or `-latest`; a short name is replaced by what it means (measured).
pub fn canonical(id: &str) -> String {
    let id = id.trim().to_ascii_lowercase();
    let id = id.strip_suffix("[1m]").unwrap_or(&id);
    let id = id.find("claude-").filter(|at| id[..*at].ends_with(['.', '/'])).map_or(id, |at| &id[at..]);
    let id = id.strip_suffix(":0").unwrap_or(id);
    let id = id.strip_suffix("-v1").unwrap_or(id);
    let id = id.strip_suffix("-latest").unwrap_or(id);
    let dated =
        |tail: &str| tail.len() == 8 && tail.starts_with("20") && tail.bytes().all(|b| b.is_ascii_digit());
    let id = id.rsplit_once(['-', '@']).filter(|(_, tail)| dated(tail)).map_or(id, |(head, _)| head);
    ALIASES.iter().find(|(short, _)| *short == id).map_or_else(|| id.to_owned(), |(_, full)| (*full).into())
}

/// Whether two ids name the same model.
pub fn same(one: &str, other: &str) -> bool {
    one == other || canonical(one) == canonical(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_was_measured() {
        let (large, small) = (LARGE_WINDOW, SMALL_WINDOW);
        for (id, window, trigger) in [
            ("claude-opus-5-5", large, true),
            ("claude-opus-5-5[1m]", large, true),
            ("claude-sonnet-5", large, true),
            ("claude-haiku-5-5", large, true),
            ("claude-opus-4-8[1m]", large, true),
            ("claude-opus-4-6", small, true),
            ("claude-opus-4-6[1m]", large, false),
            ("claude-haiku-4-5", small, false),
            ("claude-haiku-4-5-20251001", small, false),
            ("anthropic/claude-haiku-4-5", small, false),
            ("claude-sonnet-4-20250514", small, false),
            ("claude-sonnet-4-5[1m]", large, false),
            ("us.anthropic.claude-opus-4-5-v1:0", small, false),
            ("claude-3-7-sonnet-20250219", small, false),
            ("claude-opus-6", large, true),
            ("claude-haiku-4-6", large, true),
            ("weird-model", large, true),
            ("weird-model[1m]", large, false),
            ("opus", large, true),
        ] {
            let model = look_up(id, false);
            assert_eq!((model.window, model.trigger), (window, trigger), "{id}");
        }
        for (id, trigger) in [
            ("claude-opus-5-5", true),
            ("claude-opus-4-6[1m]", true),
            ("weird[1m]", true),
            ("claude-sonnet-4-5[1m]", false),
        ] {
            let model = look_up(id, true);
            assert_eq!((model.window, model.trigger), (small, trigger), "{id}");
        }
        assert_eq!(look_up("claude-3-5-haiku-20241022", false).max_output, 8_192);
        assert_eq!(look_up("claude-3-opus-20240229", false).max_output, 4_096);
        assert!(!look_up("claude-opus-6", false).known);
    }

    #[test]
    fn one_model_has_many_spellings() {
        for key in ["claude-opus-5-5", "CLAUDE-OPUS-5-5[1M]", "opus", "claude-opus-5-5-20260801"] {
            assert!(same(key, "claude-opus-5-5"), "{key}");
        }
        for key in ["opus-5-5", "claude-opus-5", "*", "default", ""] {
            assert!(!same(key, "claude-opus-5-5"), "{key}");
        }
        assert!(same("claude-haiku-4-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0"));
        assert!(same("weird-model-20250101", "weird-model"));
    }
}
