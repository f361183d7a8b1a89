//! How amounts of memory are written in the configuration (`4GiB`, `512M`) and shown again.
//! A number without a unit is refused: the reader should not have to guess it. Every unit is a power of 1024, as with `ulimit`,
//! systemd and containers.

use crate::text::counted;

/// Units with their size in bytes, largest first.
const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];

/// Why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Digits without a unit.
    #[error("`{0}` has no unit")]
    NoUnit(String),
    /// No whole number, or a unit that does not exist.
    #[error("`{0}` is no amount of memory")]
    Malformed(String),
    /// More bytes than fit into 64 bits.
    #[error("`{0}` is more than any machine has")]
    TooMuch(String),
}

impl SizeError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoUnit(number) => format!("write \"{number}MiB\" or \"{number}GiB\""),
            Self::Malformed(_) | Self::TooMuch(_) => {
                "write a whole number with a unit, like \"512MiB\" or \"4GiB\"".to_owned()
            }
        }
    }
}

/// Parses an amount into bytes: `4GiB`, `4G` and `4 gb` are the same.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let given = || text.chars().take(40).flat_map(char::escape_debug).collect::<String>();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_uppercase();
    if digits.is_empty() {
        return Err(SizeError::Malformed(given()));
    }
    if unit.is_empty() {
        return Err(SizeError::NoUnit(given()));
    }
    let fits = |name: &str| matches!(unit.strip_prefix(name), Some("" | "B" | "IB"));
    let (_, size) = UNITS.iter().find(|(name, _)| fits(name)).ok_or_else(|| SizeError::Malformed(given()))?;
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*size));
    bytes.ok_or_else(|| SizeError::TooMuch(given()))
}

/// An amount in the largest unit that divides it, else in tenths of the largest that it reaches.
pub fn format(bytes: u64) -> String {
    let whole = UNITS.iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    if let Some((name, size)) = whole.filter(|(_, size)| bytes / size < 10_000) {
        return format!("{} {name}iB", bytes / size);
    }
    match UNITS.iter().find(|(_, size)| bytes >= *size) {
        Some((name, size)) => format!("{}.{} {name}iB", bytes / size, bytes % size * 10 / size),
        None => counted(bytes, "byte", "bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_shown_again() {
        for (text, bytes, shown) in [
            ("4GiB", 4 << 30, "4 GiB"),
            ("512M", 512 << 20, "512 MiB"),
            ("64 mb", 64 << 20, "64 MiB"),
            ("1536MiB", 1536 << 20, "1536 MiB"),
            ("16384K", 16 << 20, "16 MiB"),
            ("2t", 2 << 40, "2 TiB"),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
            assert_eq!(format(bytes), shown);
        }
        assert_eq!(format((3 << 30) + (512 << 20) + 4096), "3.5 GiB");
        assert_eq!(format(100), "100 bytes");
    }

    #[test]
    fn what_is_no_amount_is_told_apart() {
        assert_eq!(parse("4096"), Err(SizeError::NoUnit("4096".to_owned())));
        for text in ["", "GiB", "-4GiB", "1.5GiB", "4GiBs", "four"] {
            assert_eq!(parse(text), Err(SizeError::Malformed(text.to_owned())));
        }
        assert_eq!(parse("99999999999T"), Err(SizeError::TooMuch("99999999999T".to_owned())));
    }
}
