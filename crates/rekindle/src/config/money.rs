//! Budgets, prices and quiet hours: how their values are written, and what the core and the engine get of them.

use std::collections::BTreeMap;

use rekindle_core::budget::{Allowance, Budgets, MICROS, Price, Unit, dollars, micros};
use rekindle_core::duration;
use rekindle_core::plan::nearest::nearest;
use rekindle_engine::calendar::{DAYS, QuietHours};
use toml::Spanned;
use toml::de::DeValue;

use super::Config;
use super::file::{Reader, kind_of};
use super::keys::{Key, Value, Wrong};
use crate::error::{CliError, Result};

/// The word for a budget without a limit.
pub(super) const NO_LIMIT: &str = "none";

/// The section with a table for each budget, and the tables in it.
pub(super) const BUDGET: &str = "budget";
pub(super) const SCOPES: [&str; 3] = ["task", "run", "day"];

/// The largest amount in dollars that is accepted: more is a typing error.
const DOLLARS_MAX: f64 = 1e9;

/// The keys of a price.
const PRICE_KEYS: [&str; 3] = ["input", "cached", "output"];

/// Reads a limit written as text.
pub(super) fn limit(key: &Key, unit: Unit, text: &str) -> std::result::Result<Value, Wrong> {
    let typed = text.trim();
    if typed == NO_LIMIT {
        return Ok(Value::Limit(unit, None));
    }
    let (is, example) = match unit {
        Unit::Usd => ("an amount in dollars", "20.0"),
        Unit::Tokens => ("a number of tokens", "5_000_000"),
        Unit::Wall => ("a duration", "\"8h\""),
    };
    let hint = format!("write {} = {example}, or \"{NO_LIMIT}\" for no limit", key.leaf());
    let wrong = |message: String| Wrong { message, hint: hint.clone() };
    let amount = match unit {
        Unit::Usd => amount(typed).map(micros),
        Unit::Tokens => typed.replace('_', "").parse().ok(),
        Unit::Wall => match duration::parse(typed) {
            Ok(ms) => Some(ms),
            Err(error) => return Err(wrong(format!("`{}` is not a duration: {error}", key.name))),
        },
    };
    match amount {
        Some(0) => Err(wrong(format!("`{}` must be more than zero", key.name))),
        Some(amount) => Ok(Value::Limit(unit, Some(amount))),
        None => Err(wrong(format!("`{}` is {is}, not `{}`", key.name, crate::ui::one_line(text)))),
    }
}

fn amount(text: &str) -> Option<f64> {
    let amount: f64 = text.trim_start_matches('$').replace('_', "").parse().ok()?;
    (amount.is_finite() && (0.0..=DOLLARS_MAX).contains(&amount)).then_some(amount)
}

/// A limit as it would be written.
pub(super) fn shown(unit: Unit, limit: Option<u64>) -> String {
    match (unit, limit) {
        (_, None) => format!("\"{NO_LIMIT}\""),
        (Unit::Usd, Some(micros)) => {
            format!("{}.{:06}", micros / MICROS, micros % MICROS).trim_end_matches('0').to_owned() + "0"
        }
        (Unit::Tokens, Some(tokens)) => tokens.to_string(),
        (Unit::Wall, Some(ms)) => format!("\"{}\"", duration::format(ms)),
    }
}

/// Reads a time of day, `22:00`; an empty text means none.
pub(super) fn time_of_day(key: &Key, text: &str) -> std::result::Result<Value, Wrong> {
    if text.trim().is_empty() || parts(text).is_some() {
        return Ok(Value::Text(text.trim().to_owned()));
    }
    Err(Wrong {
        message: format!("`{}` is a time of day, not `{}`", key.name, crate::ui::one_line(text)),
        hint: format!("write {} = \"22:00\"", key.leaf()),
    })
}

fn parts(text: &str) -> Option<(i8, i8)> {
    let (hour, minute) = text.trim().split_once(':')?;
    let digits = |text: &str, max: i8| {
        let fits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i8>().ok().filter(|number| fits && *number <= max)
    };
    Some((digits(hour, 23)?, digits(minute, 59).filter(|_| minute.len() == 2)?))
}

/// Reads all `[prices.MODEL]`; problems are added to the reader.
pub(super) fn prices(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) -> BTreeMap<String, Price> {
    let example =
        "write [prices.\"MODEL\"] with input = 1.25 and output = 10.0, dollars for a million tokens".to_owned();
    let mut prices = BTreeMap::new();
    let Some(table) = value.get_ref().as_table() else {
        reader.problem(value.span(), format!("`prices` is a table of models, not {}", kind_of(value)), Some(example));
        return prices;
    };
    for (name, value) in table {
        let (span, name) = (name.span(), name.get_ref().as_ref());
        let Some(table) = value.get_ref().as_table() else {
            reader.problem(
                value.span(),
                format!("`prices.{name}` is a table, not {}", kind_of(value)),
                Some(example.clone()),
            );
            continue;
        };
        for (key, value) in table.iter().filter(|(key, _)| !PRICE_KEYS.contains(&key.get_ref().as_ref())) {
            let message = format!("unknown key `{}` in [prices.{name}]", key.get_ref());
            match value.get_ref().is_table() {
                true => reader.problem(
                    key.span(),
                    message,
                    Some("quote a name with a dot: [prices.\"gpt-5.1\"]".to_owned()),
                ),
                false => reader.unknown(key.span(), message, key.get_ref(), &PRICE_KEYS),
            }
        }
        let mut of = |key: &str| table.get(key).map(|value| price(reader, name, key, value));
        let (input, cached, output) = (of("input"), of("cached"), of("output"));
        match (input, output) {
            (Some(Some(input)), Some(Some(output))) => {
                // Without a price for cached input, caching saves nothing.
                let cached = cached.flatten().unwrap_or(input);
                prices.insert(name.to_owned(), Price { input, cached, output });
            }
            (None, _) | (_, None) => {
                reader.problem(span, format!("[prices.{name}] needs `input` and `output`"), Some(example.clone()));
            }
            (Some(_), Some(_)) => {}
        }
    }
    prices
}

fn price(reader: &mut Reader<'_>, model: &str, key: &str, value: &Spanned<DeValue<'_>>) -> Option<u64> {
    let text = match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        _ => None,
    };
    let found = text.and_then(amount).map(micros);
    if found.is_none() {
        let what = text.map_or_else(|| kind_of(value).to_owned(), |text| format!("`{text}`"));
        let message = format!("`prices.{model}.{key}` is an amount in dollars for a million tokens, not {what}");
        reader.problem(value.span(), message, Some(format!("write {key} = 1.25")));
    }
    found
}

impl Config {
    fn limit(&self, name: &'static str) -> Option<u64> {
        match self.sourced(name).value {
            Value::Limit(_, limit) => limit,
            _ => None,
        }
    }

    pub(super) fn budgets(&self) -> Budgets {
        Budgets {
            task: Allowance {
                usd_micros: self.limit("budget.task.usd"),
                tokens: self.limit("budget.task.tokens"),
                wall_ms: self.limit("budget.task.wall"),
            },
            run: Allowance {
                usd_micros: self.limit("budget.run.usd"),
                tokens: self.limit("budget.run.tokens"),
                wall_ms: self.limit("budget.run.wall"),
            },
            day: Allowance {
                usd_micros: self.limit("budget.day.usd"),
                tokens: self.limit("budget.day.tokens"),
                wall_ms: self.limit("budget.day.wall"),
            },
        }
    }

    /// The hours in which nothing new starts. Fails when their beginning or end is missing, or a day is unknown.
    pub(crate) fn quiet_hours(&self) -> Result<Option<QuietHours>> {
        let (from, to) = (self.text("quiet_hours.from"), self.text("quiet_hours.to"));
        let named = self.names("quiet_hours.days");
        let unknown = |day: &&String| !DAYS.contains(&day.to_lowercase().as_str());
        if let Some(day) = named.iter().find(unknown) {
            let origin = &self.sourced("quiet_hours.days").origin;
            let hint = match nearest(&day.to_lowercase(), DAYS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", DAYS.join(", ")),
            };
            return Err(
                CliError::usage(format!("`{day}` is no day of the week in quiet_hours.days ({origin})")).hint(hint)
            );
        }
        let (from_at, to_at) = match (parts(from), parts(to)) {
            (Some(from), Some(to)) => (from, to),
            (None, None) if named.is_empty() => return Ok(None),
            _ => {
                let hint = "write both: [quiet_hours] from = \"22:00\", to = \"07:00\"";
                return Err(CliError::usage("the quiet hours need `from` and `to`").hint(hint));
            }
        };
        if from_at == to_at {
            let message = format!("the quiet hours begin and end at {from}: nothing would ever start");
            return Err(CliError::usage(message).hint("write another end, or leave [quiet_hours] out"));
        }
        let on = |day: &str| named.is_empty() || named.iter().any(|name| name.eq_ignore_ascii_case(day));
        Ok(Some(QuietHours { from: from_at, to: to_at, days: DAYS.map(on) }))
    }

    /// The prices, a line each, for people.
    pub(crate) fn price_lines(&self) -> Vec<String> {
        let line = |(model, price): (&String, &Price)| {
            let [input, cached, output] = [price.input, price.cached, price.output].map(dollars);
            format!("{model}: {input} in, {cached} cached, {output} out (for a million tokens)")
        };
        self.prices.iter().map(line).collect()
    }
}
