//! Large numbers and amounts of money, shortened for people.

/// A count with at most four characters before its unit: 950, 12.3k, 1.2M.
pub(crate) fn short_count(count: u64) -> String {
    // A number is rounded before its unit is chosen: 999,999 is a million, not a thousand thousand.
    match count {
        0..=999 => count.to_string(),
        1_000..=999_949 => in_tenths(count, 1_000, "k"),
        999_950..=999_949_999 => in_tenths(count, 1_000_000, "M"),
        _ => in_tenths(count, 1_000_000_000, "G"),
    }
}

/// Dollars, to the cent; a smaller amount is not shown as zero.
pub(crate) fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.005 {
        return "<$0.01".to_owned();
    }
    format!("${amount:.2}")
}

fn in_tenths(count: u64, unit: u64, name: &str) -> String {
    let tenths = count.saturating_add(unit / 20) / (unit / 10);
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short_and_rounded() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (999_949, "999.9k"),
            (999_950, "1.0M"),
            (1_250_000, "1.3M"),
            (999_949_999, "999.9M"),
            (999_950_000, "1.0G"),
            (u64::MAX, "18446744073.7G"),
        ];
        for (count, shown) in cases {
            assert_eq!(short_count(count), shown);
        }
    }

    #[test]
    fn money_is_told_to_the_cent() {
        let cases = [(0.0, "$0.00"), (0.001, "<$0.01"), (0.005, "$0.01"), (12.345, "$12.35"), (1_000.0, "$1000.00")];
        for (amount, shown) in cases {
            assert_eq!(dollars(amount), shown);
        }
    }
}
