//! Lines of all logs that hold some words, agent by agent.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use maud::{Markup, html};
use rekindle_core::ids::AttemptId;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredLine;

use super::Visit;
use super::frame::Frame;
use super::parts::moment;
use crate::error::Result;
use crate::picture::lines::LineIndex;
use crate::ui::one_line;

/// Most hits that are shown, newest first: with more, a person adds words to the search.
const HITS_MAX: usize = 200;

pub(super) fn page(visit: &Visit<'_>) -> Result<Frame> {
    let query = visit.asked("q").unwrap_or_default();
    let found = if query.is_empty() { BTreeMap::new() } else { find(visit, query)? };
    let many: usize = found.values().map(Vec::len).sum();
    let body = html! {
        h1 { "Search all logs" }
        form.filter method="get" action="/search" role="search" {
            @if let Some(run) = visit.ways.run() { input type="hidden" name="run" value=(run); }
            label { span.sr { "Words" } input type="search" name="q" value=(query) placeholder="words in a line" autocomplete="off"; }
            button type="submit" { "Search" }
            @if !query.is_empty() { span.dim role="status" {
                (many) @if many >= HITS_MAX { " newest" } " hits in " (found.len()) " logs"
            } }
        }
        @if !query.is_empty() && many == 0 { p.dim { "No line of this run contains all these words." } }
        @for ((agent, attempt), lines) in &found { (hits(visit, agent, *attempt, lines)) }
    };
    Ok(Frame::new("Search", body).at_most_every(5_000))
}

type Hits = BTreeMap<(String, u64), Vec<(usize, StoredLine)>>;

fn find(visit: &Visit<'_>, query: &str) -> Result<Hits> {
    visit.read(|run| {
        let mut found = Hits::new();
        let mut indexes: BTreeMap<u64, LineIndex> = BTreeMap::new();
        for line in run.search(query, None, HITS_MAX)?.into_iter().rev() {
            let attempt = line.line.attempt;
            let index = match indexes.entry(attempt) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let index = unknown.insert(LineIndex::new(AttemptId(attempt)));
                    index.grow(run)?;
                    index
                }
            };
            if let Some(number) = index.number_of(run, line.seq)? {
                found.entry((line.line.agent.clone(), attempt)).or_default().push((number, line));
            }
        }
        Ok(found)
    })
}

fn hits(visit: &Visit<'_>, agent: &str, attempt: u64, lines: &[(usize, StoredLine)]) -> Markup {
    let log = visit.ways.log(AttemptId(attempt));
    let row = visit.site.picture.as_deref().and_then(|picture| Some((picture, picture.attempt(AttemptId(attempt))?)));
    let number = row.and_then(|(picture, row)| Some(picture.number_of(row.task.as_ref()?, row.attempt)));
    let numbered = number.map_or_else(|| "attempt".to_owned(), |number| format!("attempt {number}"));
    html! {
        section.hits data-key=(attempt) aria-label=(format!("{}, {numbered}", one_line(agent))) {
            h2 { (one_line(agent)) " " span.dim.small { (numbered) ", " (counted(lines.len(), "hit", "hits")) } }
            ol.lines { @for (number, line) in lines {
                li { a.no href=(format!("{log}#L{}", number + 1)) { (number + 1) } " " (moment(Time(line.line.time_ms))) " " span.text { (one_line(&line.line.text)) } }
            } }
        }
    }
}
