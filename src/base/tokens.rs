//! Token counts: how they are written, and the whole percent that never lies about a threshold.

/// Percents that mean something: yellow, red, critical, full. A shown percent is never rounded up to one.
pub const LINES: [u64; 4] = [62, 85, 95, 100];

/// No context, window or usage comes near this; a larger figure is damage or a bad joke, and counts as not
/// told. Sums of a few such counts fit every integer that holds them.
pub const MOST: u64 = 1_000_000_000;

/// A count as people read it: `28.8k`, `831k`, `1.02M`.
///
/// ```
/// use longhaul::base::tokens::short;
/// assert_eq!([short(28_759), short(830_449), short(1_018_000)], ["28.8k", "830k", "1.02M"]);
/// ```
pub fn short(tokens: u64) -> String {
    if tokens < 1_000 {
        return tokens.to_string();
    }
    let tenths = (tokens.saturating_add(50)) / 100;
    if tenths < 1_000 {
        return format!("{}.{}k", tenths / 10, tenths % 10);
    }
    let thousands = (tokens.saturating_add(500)) / 1_000;
    if thousands < 1_000 {
        return format!("{thousands}k");
    }
    let hundredths = (tokens.saturating_add(5_000)) / 10_000;
    format!("{}.{:02}M", hundredths / 100, hundredths % 100)
}

/// `used` in percent of `wall`, to the nearest whole, but never rounded up across one of [`LINES`].
/// A wall of 0 counts as full.
pub fn percent(used: u64, wall: u64) -> u64 {
    if wall == 0 {
        return if used == 0 { 0 } else { 100 };
    }
    let (used, wall) = (u128::from(used), u128::from(wall));
    let floor = used * 100 / wall;
    let nearest = (used * 200 + wall) / (wall * 2);
    let crossed = LINES.iter().any(|line| floor < u128::from(*line) && nearest >= u128::from(*line));
    u64::try_from(if crossed { floor } else { nearest }).unwrap_or(u64::MAX)
}

/// Whether `used` is at least `line` percent of `wall`, exactly.
pub fn at_least(used: u64, wall: u64, line: u64) -> bool {
    u128::from(used) * 100 >= u128::from(wall) * u128::from(line)
}

/// How many tokens a text may come to, from its bytes: an estimate on the high side. 7 ASCII bytes count
/// as 2 tokens, a sign of two bytes (Latin with marks, Greek, Cyrillic) as 2/3, one of three bytes (CJK and
/// most others) as 1, one of four (emoji) as 2.
///
/// ```
/// use longhaul::base::tokens::estimate;
/// assert_eq!([estimate("plain words of English text."), estimate("测试项目")], [8, 4]);
/// ```
pub fn estimate(text: &str) -> u64 {
    if text.is_ascii() {
        return (text.len() as u64 * 2).div_ceil(7);
    }
    let mut counts = [0_u64; 4];
    for byte in text.bytes() {
        match byte {
            0..0x80 => counts[0] += 1,
            0xc0..0xe0 => counts[1] += 1,
            0xe0..0xf0 => counts[2] += 1,
            0xf0.. => counts[3] += 1,
            _ => {}
        }
    }
    (counts[0] * 6 + counts[1] * 14 + counts[2] * 21 + counts[3] * 42).div_ceil(21)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        let shown = [0, 999, 1_000, 28_759, 99_949, 99_950, 372_000, 999_499, 999_500, 1_400_000].map(short);
        assert_eq!(shown, ["0", "999", "1.0k", "28.8k", "99.9k", "100k", "372k", "999k", "1.00M", "1.40M"]);
        assert_eq!(short(u64::MAX), "18446744073709.55M");
    }

    #[test]
    fn a_percent_is_never_rounded_up_across_a_line() {
        assert_eq!(percent(156_000, 167_000), 93);
        assert_eq!(percent(466_000, 467_000), 99);
        assert_eq!(percent(605_739, 977_000), 61);
        assert_eq!(percent(605_740, 977_000), 62);
        assert_eq!(percent(830_449, 977_000), 84);
        assert_eq!(percent(928_149, 977_000), 94);
        assert_eq!(percent(977_000, 977_000), 100);
        assert_eq!(percent(371_900, 167_000), 223);
        assert_eq!(percent(1, 0), 100);
    }
}
