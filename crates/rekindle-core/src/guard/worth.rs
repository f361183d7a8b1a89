//! Which of an assistant's sentences are worth keeping, in any language and without a list of words: by what they name, by
//! what is said nowhere else, and by their position. A sentence that only announces the call after it repeats what the call
//! says.
//!
//! Nothing here decides what fits: sentences are returned with a score, and `memory` fills the room.

use std::collections::{BTreeMap, BTreeSet};

use super::sentence::{asks, parts};
use super::session::{After, Said, Session, Then};
use super::term::{Kind, terms};

/// Sentences that are ranked, the newest first: what is kept of a session has fewer, unless they are all very short.
const RANKED_MAX: usize = 6_000;

/// Two sentences say the same if they share this percentage of the shorter one's terms.
const SAME_PERCENT: usize = 75;

/// Sentences with a term that are compared for saying the same: a term that occurs in more of them does not distinguish
/// anything.
const COMPARED_MAX: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence<'a> {
    /// Its message, by its place in the session.
    pub message: usize,
    pub text: &'a str,
    /// What it is worth among the others; higher is kept first.
    pub score: u64,
}

/// One sentence before it has a score.
struct Candidate<'a> {
    message: usize,
    text: &'a str,
    terms: BTreeMap<String, Kind>,
    first: bool,
    last: bool,
    /// It opens the last of several paragraphs: the conclusion of a long answer.
    closes: bool,
}

/// The sentences of a session in their order, without those that a later one repeats.
pub fn sentences(session: &Session) -> Vec<Sentence<'_>> {
    sentences_of(session, session.said.len())
}

/// The same for only its first `messages` messages.
pub fn sentences_of(session: &Session, messages: usize) -> Vec<Sentence<'_>> {
    let candidates = candidates(session, messages);
    let spread = spread(session, &candidates);
    let repeated = repeated(&candidates);
    let told: Vec<u64> = candidates.iter().map(|candidate| information(candidate, &spread)).collect();
    let mut best: BTreeMap<usize, u64> = BTreeMap::new();
    for (candidate, told) in candidates.iter().zip(&told) {
        let best = best.entry(candidate.message).or_default();
        *best = (*best).max(*told);
    }
    let mut scored: Vec<Sentence<'_>> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate().filter(|(index, _)| !repeated.contains(index)) {
        let said = &session.said[candidate.message];
        let leads = !candidate.first && best.get(&candidate.message) == Some(&told[index]);
        let newness = 90 + 20 * (index as u64 + 1) / candidates.len() as u64;
        let score = told[index] * place(candidate, said, leads) / 100 * newness / 100;
        scored.push(Sentence { message: candidate.message, text: candidate.text, score });
    }
    level(&mut scored);
    scored
}

fn candidates(session: &Session, messages: usize) -> Vec<Candidate<'_>> {
    let mut found: Vec<Candidate<'_>> = Vec::new();
    for (message, said) in session.said.iter().enumerate().take(messages).rev() {
        let parts = parts(&said.text);
        let (last, closing) = (parts.len().saturating_sub(1), parts.last().map_or(0, |part| part.paragraph));
        for (at, part) in parts.iter().enumerate().rev() {
            let closes = closing > 0 && part.paragraph == closing && part.opens;
            let terms = terms(part.text);
            found.push(Candidate { message, text: part.text, terms, first: at == 0, last: at == last, closes });
        }
        if found.len() >= RANKED_MAX {
            break;
        }
    }
    found.reverse();
    found
}

/// In how many sentences and messages of the person each term occurs.
fn spread(session: &Session, candidates: &[Candidate<'_>]) -> BTreeMap<String, u32> {
    let mut spread: BTreeMap<String, u32> = BTreeMap::new();
    let prompts = session.prompts.iter().map(|prompt| terms(&prompt.text));
    for term in candidates
        .iter()
        .flat_map(|candidate| candidate.terms.keys().cloned())
        .chain(prompts.flat_map(BTreeMap::into_keys))
    {
        *spread.entry(term).or_default() += 1;
    }
    spread
}

/// How informative a sentence is for its length: every term counts by its kind and by how rare it is.
fn information(candidate: &Candidate<'_>, spread: &BTreeMap<String, u32>) -> u64 {
    let mut sum = 0;
    for (term, kind) in &candidate.terms {
        let times = u64::from(spread.get(term).copied().unwrap_or(1)).max(1);
        let weight = match kind {
            Kind::Number => 260,
            Kind::Name => 220,
            Kind::Quoted => 120,
            Kind::Word => 100 * long(term) / 100,
        };
        sum += weight * 100 / (60 + 40 * times);
    }
    // A short sentence depends on its neighbours: alone it says less than its terms.
    sum
}

/// Long words are seldom small talk; in ideographic scripts two characters are a word.
fn long(term: &str) -> u64 {
    let wide = term.chars().any(|c| c as u32 >= 0x2e80);
    let chars = term.chars().count() as u64 * if wide { 3 } else { 1 };
    chars.min(12) * 10
}

/// The weight of a sentence's position, in percent. `leads`: it is the most informative of several in its message.
fn place(candidate: &Candidate<'_>, said: &Said, leads: bool) -> u64 {
    let mut percent = 100;
    match &said.then {
        Then::Called { line } if candidate.last => {
            // It announces the call; what it names beyond the call counts.
            let call = terms(line);
            let shared = candidate.terms.keys().filter(|term| call.contains_key(*term)).count();
            let own = if leads { 85 } else { 60_u64 };
            percent = own.saturating_sub(40 * shared as u64 / candidate.terms.len().max(1) as u64);
        }
        Then::Prompt | Then::Nothing if candidate.last => percent += 20,
        Then::Called { .. } | Then::Prompt | Then::Nothing => {}
    }
    match said.after {
        // It answers at once, from nothing new.
        After::Prompt => percent = percent * if candidate.first { 50 } else { 70 } / 100,
        After::Failure => percent += 20,
        After::Result | After::Nothing => {}
    }
    if candidate.closes {
        percent += 30;
    }
    if asks(candidate.text) && matches!(said.then, Then::Prompt | Then::Nothing) {
        percent += 15;
    }
    if candidate.text.ends_with([':', '：']) {
        percent = percent * 40 / 100;
    }
    if said.by.is_some() { percent * 70 / 100 } else { percent }
}

/// The best sentence of every message counts whole, further ones less and less: a long explanation does not crowd out what was
/// found elsewhere.
fn level(scored: &mut [Sentence<'_>]) {
    let mut by_message: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, sentence) in scored.iter().enumerate() {
        by_message.entry(sentence.message).or_default().push(index);
    }
    for indexes in by_message.values_mut() {
        indexes.sort_by_key(|index| std::cmp::Reverse(scored[*index].score));
        for (rank, index) in indexes.iter().enumerate() {
            scored[*index].score = scored[*index].score * 12 / (12 + rank as u64);
        }
    }
}

/// Sentences whose terms nearly all occur in a later one.
fn repeated(candidates: &[Candidate<'_>]) -> BTreeSet<usize> {
    let mut holders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (index, candidate) in candidates.iter().enumerate().rev() {
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for term in candidate.terms.keys() {
            let holders = holders.entry(term.as_str()).or_default();
            for later in holders.iter().rev().take(COMPARED_MAX) {
                *shared.entry(*later).or_default() += 1;
            }
            holders.push(index);
        }
        let all = candidate.terms.len();
        let same = |(_, shared): (&usize, &usize)| all > 0 && shared * 100 >= all * SAME_PERCENT;
        if shared.iter().any(same) {
            found.insert(index);
        }
    }
    found
}
