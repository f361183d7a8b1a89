//! Prices and quiet hours, as far as the table of settings does not show them.

use super::checks::{finding, ok};
use super::{Finding, Verdict};
use crate::config::Config;

pub(super) fn look(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    let prices = config.price_lines();
    if !prices.is_empty() {
        found.push(ok("prices", &prices.join("; ")));
    }
    if let Err(error) = config.quiet_hours() {
        let hint = error.hints.first().cloned();
        found.push(Finding { hint, ..finding("quiet hours", Verdict::Problem, &error.message) });
    }
    found
}
