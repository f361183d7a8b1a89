//! How many facts come back.

use std::collections::BTreeMap;

use crate::cases::{Case, all};
use crate::session::Played;

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

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{} ({} %)", self.0, self.1, self.percent())
    }
}

/// What a program takes of a hook.
const ROOM_BYTES: usize = 9_500;

#[test]
fn the_facts_of_sessions_nobody_wrote_for_it_come_back() {
    let (mut overall, mut languages, mut kinds) = (Tally::default(), BTreeMap::new(), BTreeMap::new());
    for case in all() {
        let (text, again) = Played::new(&case).compact();
        if std::env::var_os("SHOW").is_some() {
            println!("{text}");
        }
        assert_eq!(again, None, "{}: one compaction was told twice", case.name);
        assert!(text.len() <= ROOM_BYTES, "{}: {} bytes", case.name, text.len());
        let mut own = Tally::default();
        let mut missed = Vec::new();
        for fact in &case.facts {
            let found = fact.stands_in(&text);
            own.add(found);
            overall.add(found);
            languages.entry(case.language.clone()).or_insert_with(Tally::default).add(found);
            kinds.entry(fact.kind.clone()).or_insert_with(Tally::default).add(found);
            if !found {
                missed.push(fact.id.as_str());
            }
        }
        println!("{} ({}): {own} in {} bytes; missed: {}", case.name, case.language, text.len(), missed.join(", "));
    }
    for (name, tally) in languages.iter().chain(&kinds) {
        println!("{name}: {tally}");
    }
    println!("all: {overall}");
    assert!(overall.percent() >= 90, "{overall}");
    for (language, tally) in &languages {
        assert!(tally.percent() >= 85, "{language}: {tally}");
    }
}
