//! Readers with planted faults, which the laws must find: a check that finds nothing proves nothing.

use rekindle_core::activity::Activity;
use rekindle_engine::agents::{LineSource, Reader};

use super::laws::{Law, outcome};
use super::recordings::Step;

/// Says everything again that it has ever heard.
#[derive(Default)]
struct Parrot(Vec<String>);

impl Reader for Parrot {
    fn line(&mut self, _source: LineSource, line: &str, _whole: bool) -> Vec<Activity> {
        self.0.push(line.to_owned());
        vec![Activity::Said { text: self.0.concat() }]
    }
}

/// Cuts its lines at a byte that may be inside a character.
struct Cutter;

impl Reader for Cutter {
    fn line(&mut self, _source: LineSource, line: &str, _whole: bool) -> Vec<Activity> {
        vec![Activity::Said { text: line[..line.len() / 2].to_owned() }]
    }
}

/// Takes every character for an activity.
struct Chatterer;

impl Reader for Chatterer {
    fn line(&mut self, _source: LineSource, line: &str, _whole: bool) -> Vec<Activity> {
        line.chars().map(|_| Activity::Turn).collect()
    }
}

/// Believes whichever source spoke last.
struct Turncoat;

impl Reader for Turncoat {
    fn line(&mut self, source: LineSource, _line: &str, _whole: bool) -> Vec<Activity> {
        vec![Activity::Result { ok: source == LineSource::Out, text: None }]
    }
}

fn steps(lines: &[&str]) -> Vec<Step> {
    lines.iter().map(|line| Step { source: LineSource::Out, line: (*line).to_owned(), whole: true }).collect()
}

#[test]
fn what_grows_without_end_is_found() {
    let long = "x".repeat(2000);
    let lines = vec![long.as_str(); 60];
    assert!(matches!(Law::check(&mut Parrot::default(), &steps(&lines)), Err(Law::TooLong(..))));
}

#[test]
fn a_panic_is_found() {
    assert_eq!(Law::check(&mut Cutter, &steps(&["fine", "ä"])), Err(Law::Panicked(1)));
}

#[test]
fn too_many_activities_are_found() {
    assert_eq!(Law::check(&mut Chatterer, &steps(&["few", &"y".repeat(100)])), Err(Law::TooMany(1, 100)));
}

#[test]
fn a_reader_that_depends_on_the_order_is_found() {
    let mut one = steps(&["a", "b"]);
    one[1].source = LineSource::Transcript;
    let other: Vec<Step> = one.iter().rev().cloned().collect();
    assert_ne!(outcome(&mut Turncoat, &one), outcome(&mut Turncoat, &other));
}
