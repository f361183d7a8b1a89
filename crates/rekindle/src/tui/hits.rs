//! A search over the logs of all agents of a run: what was typed, what was found, and the way to a line that was. The reader
//! searches; this keeps the list.

use std::collections::BTreeMap;

use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredLine;

use super::app::{App, Focus, Typing};
use super::log::{LogLine, LogPosition};
use super::pane::Tab;
use super::popup::Popup;
use super::tree::Node;
use crate::ui::{clock_time, one_line};

/// Most hits that are listed, the newest: with more, a person types another word.
pub(super) const HITS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub place: LogPosition,
    /// The agent that printed it.
    pub agent: String,
    /// When it was read.
    pub time: Time,
    /// Its text, made harmless.
    pub text: String,
}

impl Hit {
    /// A hit from a line of the store.
    pub(super) fn of(stored: &StoredLine) -> Self {
        let line = LogLine::of(stored);
        let place = LogPosition { attempt: AttemptId(stored.line.attempt), seq: stored.seq };
        Self { place, agent: one_line(&stored.line.agent), time: line.time, text: line.text }
    }

    /// The hit as it is listed, with the number of its attempt at its task.
    pub(super) fn shown(&self, number: Option<u32>) -> String {
        let number = number.map(|number| format!(" #{number}")).unwrap_or_default();
        format!("{} {}{number} {}", clock_time(self.time), self.agent, self.text)
    }
}

/// A search for the reader to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seek {
    /// Words that a line has to contain, all of them.
    pub words: String,
    /// Identifies the search.
    pub serial: u64,
}

/// The search and what it found.
#[derive(Clone, Debug, Default)]
pub(super) struct HitList {
    pub words: String,
    /// Whether the search was started; before that it is being typed.
    pub asked: bool,
    /// The hits, newest first; `None` before the reader has searched.
    pub hits: Option<Vec<Hit>>,
    /// The chosen one.
    pub at: usize,
    serial: u64,
}

impl HitList {
    /// The search for the reader to make.
    pub(super) fn seek(&self) -> Option<Seek> {
        let open = self.asked && self.hits.is_none();
        open.then(|| Seek { words: self.words.clone(), serial: self.serial })
    }

    /// Takes the hits, unless they belong to an earlier search.
    pub(super) fn take(&mut self, serial: u64, mut hits: Vec<Hit>) {
        if self.asked && serial == self.serial {
            hits.reverse();
            self.hits = Some(hits);
        }
    }

    /// The number of hits of each agent, most first.
    pub(super) fn by_agent(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for hit in self.hits.iter().flatten() {
            *counts.entry(&hit.agent).or_default() += 1;
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, many)| std::cmp::Reverse(*many));
        let all: usize = counts.iter().map(|(_, many)| many).sum();
        let all = if all >= HITS_MAX { format!("the newest {HITS_MAX} lines") } else { format!("{all} found") };
        let each: Vec<String> = counts.iter().map(|(agent, many)| format!("{agent} {many}")).collect();
        format!("{all}: {}", each.join(", "))
    }
}

impl App {
    /// Asks what to search for in all logs.
    pub(super) fn begin_find_all(&mut self) {
        self.popup = Some(Popup::Hits(HitList::default()));
        self.begin_filter();
    }

    /// Searches for what was typed. Without a word the list stays as it was; one that was never searched for is closed.
    pub(super) fn find_all(&mut self, typing: &Typing, keep: bool) {
        let Some(Popup::Hits(list)) = &mut self.popup else { return };
        let words = typing.line.text().trim().to_owned();
        if keep && !words.is_empty() {
            self.sought += 1;
            *list = HitList { words, asked: true, serial: self.sought, ..HitList::default() };
        } else if !list.asked {
            self.popup = None;
        }
    }

    /// Goes to the chosen line in the log of its attempt.
    pub(super) fn go_to_hit(&mut self, list: HitList) {
        let Some(hit) = list.hits.iter().flatten().nth(list.at).cloned() else {
            self.popup = Some(Popup::Hits(list));
            return;
        };
        let Some(picture) = self.picture.clone() else { return };
        let of = picture.attempt(hit.place.attempt).and_then(|attempt| attempt.task.as_ref().or(attempt.tasks.first()));
        let Some(task) = of.and_then(|id| picture.task(id.as_str())) else {
            self.warn(format!("its attempt has no task: type rekindle logs {}", hit.agent));
            self.popup = Some(Popup::Hits(list));
            return;
        };
        self.tree.reveal(task.wave, &task.id);
        self.rebuild();
        self.tree.choose(&Node::Attempt(task.id.clone(), hit.place.attempt));
        (self.focus, self.tab) = (Focus::Detail, Tab::Log);
        self.realign();
        self.log.words = list.words;
        (self.log.hit, self.log.search) = (None, None);
        self.log.place = Some(hit.place);
    }
}
