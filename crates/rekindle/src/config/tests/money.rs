//! Budgets, prices and quiet hours as they are written, and what is said of those that cannot be.

use rekindle_core::budget::{Allowance, Budgets, MICROS, Price};
use rekindle_engine::calendar::QuietHours;

use super::*;

#[test]
fn budgets_prices_and_quiet_hours_are_read() {
    let toml = format!(
        "{AGENT}[budget]\nrun = {{ usd = 20.5, tokens = 5_000_000, wall = \"8h\" }}\nday = {{ usd = 50 }}\n\
         [budget.task]\ntokens = \"none\"\nusd = 0.25\n\
         [prices.\"gpt-5.1\"]\ninput = 1.25\ncached = 0.125\noutput = 10\n[prices.default]\ninput = 1\noutput = 2\n\
         [quiet_hours]\nfrom = \"22:00\"\nto = \"7:05\"\ndays = [\"mon\", \"Fri\"]\n"
    );
    let config = load(&toml).expect("loaded");
    let limits = config.limits(false).expect("limits");
    let run = Allowance { usd_micros: Some(20_500_000), tokens: Some(5_000_000), wall_ms: Some(8 * 3_600_000) };
    let usd = |usd_micros| Allowance { usd_micros: Some(usd_micros), ..Allowance::default() };
    assert_eq!(limits.budget, Budgets { task: usd(250_000), run, day: usd(50 * MICROS) });
    assert_eq!(limits.prices["gpt-5.1"], Price { input: 1_250_000, cached: 125_000, output: 10 * MICROS });
    assert_eq!(limits.prices["default"], Price { input: MICROS, cached: MICROS, output: 2 * MICROS });
    let days = [true, false, false, false, true, false, false];
    assert_eq!(config.quiet_hours().expect("hours"), Some(QuietHours { from: (22, 0), to: (7, 5), days }));
    assert_eq!(load(AGENT).expect("loaded").quiet_hours().expect("none"), None);
}

#[test]
fn what_is_no_budget_price_or_hour_is_said_with_what_to_write() {
    let usd = "write usd = 20.0, or \"none\" for no limit";
    let price = "write [prices.\"MODEL\"] with input = 1.25 and output = 10.0, dollars for a million tokens";
    let cases = [
        ("[budget]\nrun = { usd = 0 }\n", "`budget.run.usd` must be more than zero", usd),
        ("[budget]\nrun = { usd = -1.5 }\n", "`budget.run.usd` is an amount in dollars, not `-1.5`", usd),
        ("[budget]\nrun = { usd = \"much\" }\n", "`budget.run.usd` is an amount in dollars, not `much`", usd),
        ("[budget]\nrun = { usd = true }\n", "`budget.run.usd` is an amount in dollars, not true or false", usd),
        (
            "[budget]\nday = { tokens = 1.5 }\n",
            "`budget.day.tokens` is a number of tokens, not a decimal number",
            "write tokens = 5_000_000, or \"none\" for no limit",
        ),
        (
            "[budget]\ntask = { wall = 8 }\n",
            "`budget.task.wall` has no unit",
            "write \"8s\" for seconds or \"8m\" for minutes",
        ),
        ("[budget]\nweek = { usd = 5 }\n", "unknown budget `week` in [budget]", "known are task, run, day"),
        ("[budget]\nrun = 5\n", "`budget.run` is a table, not a number", "write [budget.run]"),
        ("[budget.run]\ndollars = 5\n", "unknown key `dollars` in [budget.run]", "known are usd, tokens, wall"),
        ("[prices.m]\ninput = 1\n", "[prices.m] needs `input` and `output`", price),
        (
            "[prices.m]\ninput = \"1\"\noutput = 2\n",
            "`prices.m.input` is an amount in dollars for a million tokens, not a text",
            "write input = 1.25",
        ),
        (
            "[quiet_hours]\nfrom = \"25:00\"\n",
            "`quiet_hours.from` is a time of day, not `25:00`",
            "write from = \"22:00\"",
        ),
        ("[quiet_hours]\nto = \"7\"\n", "`quiet_hours.to` is a time of day, not `7`", "write to = \"22:00\""),
    ];
    for (toml, message, hint) in cases {
        let error = load(toml).expect_err(toml);
        assert_eq!(problems(&error), [(message.to_owned(), hint.to_owned())], "{toml}");
    }
}

#[test]
fn quiet_hours_that_have_no_end_or_never_end_are_refused() {
    let refused = |toml: &str| load(&format!("{AGENT}{toml}")).expect("read").quiet_hours().expect_err(toml).message;
    assert_eq!(refused("[quiet_hours]\nfrom = \"22:00\"\n"), "the quiet hours need `from` and `to`");
    assert_eq!(
        refused("[quiet_hours]\nfrom = \"07:00\"\nto = \"7:00\"\n"),
        "the quiet hours begin and end at 07:00: nothing would ever start"
    );
    let day = refused("[quiet_hours]\nfrom = \"22:00\"\nto = \"07:00\"\ndays = [\"som\"]\n");
    assert!(day.starts_with("`som` is no day of the week in quiet_hours.days ("), "{day}");
}
