//! Bills, standings and choices, number by number.

use std::collections::BTreeMap;

use super::*;
use crate::activity::Usage;

fn usage(input: u64, cached: u64, output: u64, cost: Option<f64>) -> Usage {
    Usage { input_tokens: input, cached_tokens: cached, output_tokens: output, cost_usd: cost }
}

const PRICE: Price = Price { input: 2 * MICROS, cached: MICROS / 2, output: 10 * MICROS };

#[test]
fn a_told_cost_is_taken_as_it_is_told_and_the_same_total_twice_costs_once() {
    let first = Bill::default().next(&usage(100, 0, 10, Some(0.25)), Some(&PRICE));
    assert_eq!((first.usd_micros, first.tokens(), first.unpriced_tokens), (250_000, 110, 0));
    assert_eq!(first.next(&usage(100, 0, 10, Some(0.25)), Some(&PRICE)), first);
    let mut sum = Spending::default();
    sum.rebill(&Bill::default(), &first);
    sum.rebill(&first, &first);
    assert_eq!((sum.spent.usd_micros, sum.spent.tokens), (250_000, 110));
}

#[test]
fn what_a_program_has_not_told_yet_is_priced_until_it_tells() {
    let first = Bill::default().next(&usage(1_000_000, 0, 0, None), Some(&PRICE));
    assert_eq!(first.usd_micros, 2 * MICROS);
    let told = first.next(&usage(1_000_000, 0, 0, Some(1.5)), Some(&PRICE));
    assert_eq!(told.usd_micros, 1_500_000, "its own word takes the place of the estimate");
    let since = told.next(&usage(1_000_000, 1_000_000, 100_000, Some(1.5)), Some(&PRICE));
    assert_eq!(since.usd_micros, 1_500_000 + 500_000 + 1_000_000);
    let again = since.next(&usage(1_000_000, 1_000_000, 100_000, Some(2.75)), Some(&PRICE));
    assert_eq!(again.usd_micros, 2_750_000);
}

#[test]
fn tokens_without_a_price_are_counted_apart() {
    let bill = Bill::default().next(&usage(500, 20, 30, None), None);
    assert_eq!((bill.usd_micros, bill.unpriced_tokens), (0, 550));
    let told = bill.next(&usage(500, 20, 30, Some(0.5)), None);
    assert_eq!((told.usd_micros, told.unpriced_tokens), (500_000, 0));
}

#[test]
fn a_price_is_found_by_name_then_by_its_beginning_then_by_default() {
    let price = |input| Price { input, cached: 0, output: 0 };
    let mut prices = BTreeMap::from([("gpt-5".to_owned(), price(1)), ("gpt-5-mini".to_owned(), price(2))]);
    let found = |prices: &BTreeMap<String, Price>, model| price_of(prices, model).map(|price| price.input);
    assert_eq!(found(&prices, Some("gpt-5")), Some(1));
    assert_eq!(found(&prices, Some("gpt-5-mini-2026-01-01")), Some(2));
    assert_eq!(found(&prices, Some("other")), None);
    assert_eq!(found(&prices, None), None);
    prices.insert("default".to_owned(), price(9));
    assert_eq!((found(&prices, Some("other")), found(&prices, None)), (Some(9), Some(9)));
}

#[test]
fn a_limit_is_near_at_eighty_percent_and_reached_at_its_number() {
    let limit = Allowance { usd_micros: Some(20 * MICROS), tokens: Some(1_000), wall_ms: None };
    let at = |usd: u64, tokens: u64| Standing::of(&Spent { usd_micros: usd, tokens, ..Spent::default() }, &limit).level;
    assert_eq!(at(15_999_999, 0), Level::Fine);
    assert_eq!(at(16 * MICROS, 0), Level::Near);
    assert_eq!(at(0, 799), Level::Fine);
    assert_eq!(at(19_999_999, 800), Level::Near);
    assert_eq!(at(20 * MICROS, 0), Level::Reached);
    assert_eq!(at(0, 1_000), Level::Reached);
    let none = Standing::of(&Spent { tokens: u64::MAX, ..Spent::default() }, &Allowance::default());
    assert_eq!((none.level, none.units.len()), (Level::Fine, 0));
}

#[test]
fn a_standing_is_said_in_words() {
    let limit = Allowance { usd_micros: Some(20 * MICROS), tokens: Some(5_000_000), wall_ms: Some(8 * 3_600_000) };
    let spent = Spent { usd_micros: 20_104_000, tokens: 1_234_567, wall_ms: 3_600_999, unpriced_tokens: 0 };
    let standing = Standing::of(&spent, &limit);
    assert_eq!(standing.words(), "$20.10 of $20.00 (100 %), 1,234,567 of 5,000,000 tokens (24 %), 1h of 8h (12 %)");
    assert_eq!(standing.at_level(), "$20.10 of $20.00");
    assert_eq!(
        (dollars(0), dollars(4_000), dollars(1_234_567_890)),
        ("$0.00".into(), "<$0.01".into(), "$1,234.57".into())
    );
}

#[test]
fn a_raised_limit_is_as_much_again_each_time() {
    let limit = Allowance { usd_micros: Some(5), tokens: None, wall_ms: Some(7) };
    assert_eq!(limit.raised(0), limit);
    assert_eq!(limit.raised(2), Allowance { usd_micros: Some(15), tokens: None, wall_ms: Some(21) });
}

#[test]
fn a_clock_counts_the_time_that_runs_once() {
    let mut spending = Spending::default();
    spending.run_clock(true, Time(1_000));
    spending.run_clock(true, Time(2_000));
    assert_eq!(spending.by(Time(4_000)).wall_ms, 3_000);
    spending.run_clock(false, Time(5_000));
    spending.run_clock(false, Time(9_000));
    assert_eq!(spending.by(Time(90_000)).wall_ms, 4_000);
}

#[test]
fn an_answer_is_a_word_or_the_whole_option() {
    assert_eq!(Choice::of("raise"), Some(Choice::Raise));
    assert_eq!(Choice::of(" Go-on "), Some(Choice::GoOn));
    assert_eq!(Choice::of("hand back: nothing new starts"), Some(Choice::HandBack));
    assert_eq!(Choice::of("stop: the agents are stopped"), Some(Choice::Stop));
    assert_eq!(Choice::of("perhaps"), None);
    assert_eq!(Choice::of("withdrawn"), None, "nobody answers that");
}
