//! Which outputs of checks, kept beside the state by their hash, belong to which runs. An output that two runs share is kept
//! once: it is removed only when no other run names it.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::{self, Read, StoredEvent, Table};

/// Events that name outputs.
const KINDS: [&str; 3] = ["checks_finished", "baseline_seen", "health_checked"];

/// Events read at once.
const PAGE: usize = 1_024;

/// How an output is named in an event or a row.
const MARK: &str = "\"kept\":\"";

/// Length of a name.
const NAME_LETTERS: usize = 64;

/// The names by run.
#[derive(Debug, Default)]
pub struct Outputs(BTreeMap<String, BTreeSet<String>>);

impl Outputs {
    pub fn find(log: &dyn Read) -> Result<Self, store::Error> {
        let mut found = Self::default();
        let mut after = 0;
        loop {
            let page: Vec<StoredEvent> = log.events_of(&KINDS, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.iter().for_each(|event| found.add(&event.run, &event.details));
        }
        for row in log.rows(Table::Task, None)? {
            found.add(&row.run, &row.json);
        }
        Ok(found)
    }

    fn add(&mut self, run: &str, text: &str) {
        for (at, _) in text.match_indices(MARK) {
            let begin = at + MARK.len();
            let name = text.get(begin..begin + NAME_LETTERS);
            if let Some(name) = name.filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit())) {
                self.0.entry(run.to_owned()).or_default().insert(name.to_owned());
            }
        }
    }

    /// The outputs that only this run names.
    pub fn only_of(&self, run: &str) -> Vec<String> {
        let others: BTreeSet<&String> =
            self.0.iter().filter(|(other, _)| *other != run).flat_map(|(_, names)| names).collect();
        let own = self.0.get(run).into_iter().flatten();
        own.filter(|name| !others.contains(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_another_run_names_too_is_not_its_alone() {
        let (one, two) = ("a".repeat(64), "b".repeat(64));
        let mut outputs = Outputs::default();
        outputs.add("r1", &format!("{{\"checks\":[{{\"kept\":\"{one}\"}},{{\"kept\":\"{two}\"}}]}}"));
        outputs.add("r2", &format!("{{\"kept\":\"{two}\"}},{{\"kept\":\"short\"}},{{\"kept\":\"../{two}\"}}"));
        assert_eq!(outputs.only_of("r1"), [one]);
        assert_eq!(outputs.only_of("r2"), Vec::<String>::new());
        assert_eq!(outputs.only_of("r3"), Vec::<String>::new());
    }
}
