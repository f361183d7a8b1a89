//! What one attempt costs: what its program reported, and for everything else the user's price.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::MICROS;
use crate::activity::Usage;

/// The name of the price for every model without its own price.
const ANY_MODEL: &str = "default";

/// Price of a million tokens, in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl Price {
    /// The cost of tokens, in millionths of a dollar, rounded up so that usage never costs nothing.
    fn cost(&self, tokens: &Tokens) -> u64 {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let whole =
            part(tokens.input, self.input) + part(tokens.cached, self.cached) + part(tokens.output, self.output);
        u64::try_from(whole.div_ceil(u128::from(MICROS))).unwrap_or(u64::MAX)
    }
}

/// The price of a model: the one with its name, else the one with the longest name that it starts with (a dated version),
/// else `default`.
pub fn price_of<'a>(prices: &'a BTreeMap<String, Price>, model: Option<&str>) -> Option<&'a Price> {
    let named = model.and_then(|model| {
        let begins = prices.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        begins.max_by_key(|(name, _)| name.len()).map(|(_, price)| price)
    });
    named.or_else(|| prices.get(ANY_MODEL))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tokens {
    input: u64,
    cached: u64,
    output: u64,
}

impl Tokens {
    fn of(usage: &Usage) -> Self {
        Self { input: usage.input_tokens, cached: usage.cached_tokens, output: usage.output_tokens }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    /// The larger of two totals, by kind.
    fn at_least(&self, before: &Self) -> Self {
        Self {
            input: self.input.max(before.input),
            cached: self.cached.max(before.cached),
            output: self.output.max(before.output),
        }
    }

    fn all(&self) -> u64 {
        self.input.saturating_add(self.cached).saturating_add(self.output)
    }
}

/// What an attempt has cost so far. It consists of totals only: the same totals read twice cost the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bill {
    pub usd_micros: u64,
    /// Tokens without a price.
    pub unpriced_tokens: u64,
    used: Tokens,
    /// What its program last reported, and what it had used by then.
    told_micros: Option<u64>,
    told_at: Tokens,
}

impl Bill {
    pub fn tokens(&self) -> u64 {
        self.used.all()
    }

    /// The cost, if its program or a price gives one.
    pub fn cost_micros(&self) -> Option<u64> {
        let known = self.told_micros.is_some() || (self.tokens() > 0 && self.unpriced_tokens == 0);
        known.then_some(self.usd_micros)
    }

    /// The bill for a new total. A program may report its cost only now and then (at the end of a turn): what it has used
    /// since is priced, until it reports again. What was used stays used, even if a program reports a smaller total later.
    #[must_use]
    pub fn next(&self, usage: &Usage, price: Option<&Price>) -> Self {
        let used = Tokens::of(usage).at_least(&self.used);
        let told = usage.cost_usd.filter(|cost| cost.is_finite()).map(micros);
        let (told_micros, told_at) = match told {
            Some(told) if self.told_micros != Some(told) => (Some(told), used),
            Some(_) => (self.told_micros, self.told_at),
            None => (None, Tokens::default()),
        };
        let rest = used.since(&told_at);
        let priced = price.map_or(0, |price| price.cost(&rest));
        let unpriced_tokens = if price.is_some() { 0 } else { rest.all() };
        let usd_micros = told_micros.unwrap_or(0).saturating_add(priced);
        Self { usd_micros, unpriced_tokens, used, told_micros, told_at }
    }
}

/// Dollars as millionths; a negative amount from a program counts as none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an amount of dollars is far below what a double holds exactly in millionths, and is not negative here"
)]
pub fn micros(dollars: f64) -> u64 {
    (dollars.max(0.0) * MICROS as f64).round() as u64
}
