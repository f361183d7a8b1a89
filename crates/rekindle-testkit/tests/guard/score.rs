//! How many facts come back, by language, by kind, by section of the text and by room.

use std::collections::BTreeMap;
use std::fmt;

use crate::cases::{Case, all};
use crate::session::Played;

/// What a program takes of a hook, in characters.
const ROOM: usize = 9_500;

/// The most bytes of a text in a script with several bytes a character.
const WIDE_BYTES: usize = 14_000;

/// A text with something left out has to fill this much of its room, in percent: what is left out is longer than what is free.
const FULL_PERCENT: usize = 95;

/// Of the facts so many in a hundred, in all and in every language.
const OVERALL_MIN: usize = 90;
const LANGUAGE_MIN: usize = 85;

/// Smaller rooms that are scored as well, to see what lies near the edge.
const SMALLER_ROOMS: [usize; 3] = [8_000, 6_500, 5_000];

/// Recovered, and all of them.
#[derive(Clone, Copy, Default)]
struct Tally(usize, usize);

impl Tally {
    fn add(&mut self, found: bool) {
        self.0 += usize::from(found);
        self.1 += 1;
    }

    fn percent(self) -> usize {
        self.0 * 100 / self.1.max(1)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{} ({} %)", self.0, self.1, self.percent())
    }
}

/// Tallies by a name.
#[derive(Default)]
struct Board(BTreeMap<String, Tally>);

impl Board {
    fn add(&mut self, name: &str, found: bool) {
        self.0.entry(name.to_owned()).or_default().add(found);
    }

    fn lines(&self, title: &str) -> String {
        let lines: Vec<String> = self.0.iter().map(|(name, tally)| format!("  {name}: {tally}")).collect();
        format!("\n{title}\n{}", lines.join("\n"))
    }
}

fn found(case: &Case, text: &str) -> usize {
    case.facts.iter().filter(|fact| fact.stands_in(text)).count()
}

/// The sections of a text, each with its lines.
fn sections(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut at = String::new();
    for line in text.lines() {
        match line.strip_prefix("| ## ") {
            Some(heading) => at = heading.to_owned(),
            None if !line.starts_with("| ") => at.clear(),
            None => {}
        }
        if !at.is_empty() {
            found.entry(at.clone()).or_default().push(line.to_owned());
        }
    }
    found
}

#[test]
fn the_facts_of_sessions_nobody_wrote_for_it_come_back() {
    let (mut overall, mut languages, mut kinds, mut halves) =
        (Tally::default(), Board::default(), Board::default(), Board::default());
    // The half that nobody looked at while the code was written.
    let (mut blind, mut unseen) = (Tally::default(), Board::default());
    for case in all() {
        let mut played = Played::new(&case);
        let (text, again) = played.compact();
        assert_eq!(again, None, "{}: one compaction was told twice", case.name);
        let (characters, bytes) = (text.chars().count(), text.len());
        assert!(characters <= ROOM && bytes <= WIDE_BYTES, "{}: {characters} characters, {bytes} bytes", case.name);
        let left_out = text.contains("(left out to save space:");
        assert!(
            !left_out || characters * 100 >= ROOM * FULL_PERCENT || bytes * 100 >= WIDE_BYTES * FULL_PERCENT,
            "{}: {characters} characters, {bytes} bytes used, and facts are left outside",
            case.name,
        );
        let mut missed = Vec::new();
        for fact in &case.facts {
            let found = fact.stands_in(&text);
            overall.add(found);
            languages.add(&case.language, found);
            if !case.seen {
                unseen.add(&case.language, found);
                blind.add(found);
            }
            kinds.add(&fact.kind, found);
            halves.add(if case.seen { "seen" } else { "unseen" }, found);
            if !found {
                missed.push(fact.id.as_str());
            }
        }
        let count = Tally(case.facts.len() - missed.len(), case.facts.len());
        println!("{} ({}): {count} in {} bytes; missed: {}", case.name, case.language, text.len(), missed.join(", "));
    }
    println!("{}{}{}", languages.lines("by language"), kinds.lines("by kind"), halves.lines("by half"));
    println!("\nall: {overall}");
    println!("{}\nunseen half: {blind}", unseen.lines("unseen half by language"));
    assert!(overall.percent() >= OVERALL_MIN && blind.percent() >= OVERALL_MIN, "{overall}, unseen {blind}");
    for (language, tally) in languages.0.iter().chain(&unseen.0) {
        assert!(tally.percent() >= LANGUAGE_MIN, "{language}: {tally}");
    }
}

/// What every section holds alone, and what is left in smaller rooms: the table of docs/guard.md.
#[test]
fn every_section_earns_its_bytes() {
    let mut by_section: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut by_room: BTreeMap<usize, Tally> = BTreeMap::new();
    let mut cases = 0;
    for case in all() {
        cases += 1;
        let mut played = Played::new(&case);
        let (text, _) = played.compact();
        let whole = found(&case, &text);
        for (name, lines) in sections(&text) {
            let without: String =
                text.lines().filter(|line| !lines.iter().any(|own| own == line)).collect::<Vec<_>>().join("\n");
            let (lost, bytes) = by_section.entry(name).or_default();
            *lost += whole - found(&case, &without);
            *bytes += lines.iter().map(|line| line.len() + 1).sum::<usize>();
        }
        for room in SMALLER_ROOMS {
            let tally = by_room.entry(room).or_default();
            tally.0 += found(&case, &played.told_in(room));
            tally.1 += case.facts.len();
        }
    }
    println!("| section | bytes, on average | facts that stand nowhere else |\n|---|---|---|");
    for (name, (lost, bytes)) in &by_section {
        println!("| {name} | {} | {lost} |", bytes / cases);
    }
    for (room, tally) in &by_room {
        println!("in {room} bytes: {tally}");
    }
    let lost = |name: &str| by_section.get(name).map_or(0, |(lost, _)| *lost);
    assert!(lost("Findings") > 0 && lost("The Person's Words") > 0, "the two that hold most of what was said");
    let tallies: Vec<usize> = by_room.values().map(|tally| tally.0).collect();
    assert!(tallies.is_sorted(), "more room, more facts: {tallies:?}");
}
