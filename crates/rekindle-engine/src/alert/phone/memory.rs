//! What a channel must remember across a crash: its cursors, the questions it sent, and how many wrong codes came. It
//! contains no secret, and losing it costs at most a question that is asked twice: answers are in the log.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::phone::Via;
use rekindle_core::time::Time;
use serde::{Deserialize, Serialize};

use super::{Heard, OpenQuestion, memory_dir};

/// Ids of messages that are remembered: more than a channel delivers again.
const SEEN_KEPT: usize = 512;

/// Questions that are remembered: a reply to an older one can no longer be distinguished from a wrong code.
const ASKED_KEPT: usize = 64;

/// Wrong codes after which a question takes no more replies.
pub(super) const WRONG_MAX: u32 = 10;

/// A question that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) id: QuestionId,
    pub(super) attempt: AttemptId,
    pub(super) asked_at: Time,
    /// The id under which replies to it are found, if the channel has one.
    #[serde(default)]
    pub(super) thread: Option<String>,
    /// Whether it was unanswered when last checked.
    pub(super) open: bool,
    /// Whether the answer came by this channel.
    #[serde(default)]
    pub(super) answered_here: bool,
    /// Wrong codes that came while it was open.
    #[serde(default)]
    pub(super) wrong: u32,
}

impl Asked {
    pub(super) fn is(&self, question: &OpenQuestion) -> bool {
        (self.id, self.attempt, self.asked_at) == (question.id, question.attempt, question.asked_at)
    }

    pub(super) fn is_locked(&self) -> bool {
        self.wrong >= WRONG_MAX
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    run: String,
    cursors: BTreeMap<String, String>,
    seen: VecDeque<String>,
    pub(super) asked: Vec<Asked>,
    /// The person was told how to control the run.
    pub(super) announced: bool,
    /// Wrong codes since the run began, while none was asked anything.
    pub(super) wrong: u32,
    #[serde(skip)]
    file: Option<(PathBuf, String)>,
}

impl Memory {
    /// Loads what is remembered of a channel. If it cannot be read, it starts empty.
    pub(super) fn load(state_dir: &Path, via: Via, run: &str) -> Self {
        let (dir, name) = (memory_dir(state_dir), format!("{via}.json"));
        let read = std::fs::read(dir.join(&name)).ok();
        let mut memory: Self = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        memory.file = Some((dir, name));
        if memory.run != run {
            // The cursors stay; the questions of another run are over.
            memory.run = run.to_owned();
            (memory.asked, memory.announced, memory.wrong) = (Vec::new(), false, 0);
        }
        memory
    }

    /// Makes it durable. A failed write is not reported: the messages are read again, and found to be done.
    pub(super) fn save(&self) {
        let Some((dir, name)) = &self.file else { return };
        let Ok(bytes) = serde_json::to_vec(self) else { return };
        let _read_again = std::fs::create_dir_all(dir).and_then(|()| rekindle_shim::atomic::save(dir, name, &bytes));
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.cursors.is_empty()
    }

    pub(super) fn begin(&mut self, (source, cursor): (String, String)) {
        self.cursors.insert(source, cursor);
    }

    pub(super) fn cursor(&self, source: &str) -> Option<String> {
        self.cursors.get(source).cloned()
    }

    pub(super) fn has_seen(&self, heard: &Heard) -> bool {
        self.seen.contains(&heard.id)
    }

    /// A message has been dealt with.
    pub(super) fn note(&mut self, heard: &Heard) {
        self.cursors.insert(heard.source.clone(), heard.cursor.clone());
        if !self.has_seen(heard) {
            self.seen.push_back(heard.id.clone());
            self.seen.drain(..self.seen.len().saturating_sub(SEEN_KEPT));
        }
    }

    /// A question was sent.
    pub(super) fn asked(&mut self, question: &OpenQuestion, thread: Option<String>) {
        let OpenQuestion { id, attempt, asked_at, .. } = question;
        let (id, attempt, asked_at) = (*id, *attempt, *asked_at);
        self.asked.push(Asked { id, attempt, asked_at, thread, open: true, answered_here: false, wrong: 0 });
        let excess = self.asked.len().saturating_sub(ASKED_KEPT);
        for old in self.asked.drain(..excess) {
            old.thread.map(|thread| self.cursors.remove(&thread));
        }
    }

    /// The messages that may have been replied to.
    pub(super) fn threads(&self) -> Vec<String> {
        self.asked.iter().filter(|asked| asked.open).filter_map(|asked| asked.thread.clone()).collect()
    }
}
