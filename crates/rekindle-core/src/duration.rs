//! How durations are written in plans and configuration (`20m`, `1h30m`, `500ms`) and shown again.
//! A number without a unit is refused: the reader should not have to guess it. Whether zero makes sense is
//! for the caller to say.

/// Units with their length in milliseconds, longest first: also the order in which they must be written.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("a duration is missing")]
    Empty,
    /// Digits without a unit.
    #[error("`{0}` has no unit")]
    NoUnit(String),
    /// A unit that does not exist, or one without a number before it.
    #[error("`{0}` is not a duration")]
    Malformed(String),
    /// A unit repeated, or a longer one after a shorter one.
    #[error("the units of `{0}` must be in order, longest first and each once")]
    Order(String),
    /// More milliseconds than fit into 64 bits.
    #[error("`{0}` is too long")]
    TooLong(String),
}

impl DurationError {
    pub fn hint(&self) -> String {
        match self {
            DurationError::NoUnit(number) => {
                format!("write `{number}s` for seconds or `{number}m` for minutes")
            }
            Self::Empty | Self::Malformed(_) | Self::Order(_) | Self::TooLong(_) => {
                "write it like `90s`, `20m`, `1h30m` or `500ms`".to_owned()
            }
        }
    }
}

/// Parses a duration into milliseconds. Spaces between the parts are fine.
pub fn parse(text: &str) -> Result<u64, DurationError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    let given = || text.chars().take(40).flat_map(char::escape_debug).collect();
    let mut rest = text;
    let mut total_ms = 0u64;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let (digits, after) = split_while(rest, |c| c.is_ascii_digit());
        let (unit, after) = split_while(after.trim_start(), |c| c.is_alphabetic());
        if digits.is_empty() || (unit.is_empty() && !after.is_empty()) {
            return Err(DurationError::Malformed(given()));
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit(given()));
        }
        let index = UNITS.iter().position(|(name, _)| *name == unit);
        let index = index.ok_or_else(|| DurationError::Malformed(given()))?;
        if index < next_unit {
            return Err(DurationError::Order(given()));
        }
        next_unit = index + 1;
        total_ms = digits
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(UNITS[index].1))
            .and_then(|ms| total_ms.checked_add(ms))
            .ok_or_else(|| DurationError::TooLong(given()))?;
        rest = after.trim_start();
    }
    Ok(total_ms)
}

/// Formats milliseconds in the largest units that fit, without parts that are zero: `1h30m`, `500ms`, `0s`.
pub fn format(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut left = ms;
    let mut text = String::new();
    for (unit, length) in UNITS {
        if left >= length {
            text.push_str(&format!("{}{unit}", left / length));
            left %= length;
        }
    }
    text
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let cases = [
            ("20m", 1_200_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("90s", 90_000),
            ("500ms", 500),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("5 m", 300_000),
            ("0s", 0),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_and_says_what_to_write() {
        let cases = [
            ("", "a duration is missing"),
            ("20", "`20` has no unit"),
            ("1h30", "`1h30` has no unit"),
            ("m", "`m` is not a duration"),
            ("20 minutes", "`20 minutes` is not a duration"),
            ("1.5h", "`1.5h` is not a duration"),
            ("-5m", "`-5m` is not a duration"),
            ("30m1h", "the units of `30m1h` must be in order, longest first and each once"),
            ("1m1m", "the units of `1m1m` must be in order, longest first and each once"),
            ("99999999999999999999s", "`99999999999999999999s` is too long"),
        ];
        for (text, error) in cases {
            assert_eq!(parse(text).expect_err(text).to_string(), error);
        }
        assert_eq!(parse("20").expect_err("no unit").hint(), "write `20s` for seconds or `20m` for minutes");
    }

    #[test]
    fn shows_no_part_that_is_zero() {
        let cases = [(0, "0s"), (500, "500ms"), (90_000, "1m30s"), (5_400_000, "1h30m"), (86_400_001, "1d1ms")];
        for (ms, text) in cases {
            assert_eq!(format(ms), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_shown_reads_back(ms: u64) {
            proptest::prop_assert_eq!(parse(&format(ms)), Ok(ms));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }
    }
}
