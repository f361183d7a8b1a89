//! A guarded session: everything in its journal, added up. Facts are keyed, so a repeated fact, from a hook that fires twice
//! or from the transcript as well, changes nothing. Every list has a bound; the oldest entries are forgotten first.

mod add;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Outcome, Record, TaskStatus, Todo, bounded};
use super::sentence::{asks, split};
use add::ToldBy;

/// Prompts kept; the first ones say what the session is for and are never forgotten.
pub const PROMPTS_MAX: usize = 200;

/// Prompts at the beginning that stay.
pub const FIRST_PROMPTS: usize = 4;

/// Messages of the assistant kept.
pub const SAID_MAX: usize = 1_000;

/// Bytes of all messages kept. Beyond that, only the best sentences of the older half are kept.
pub const SAID_MAX_BYTES: usize = 192 << 10;

/// Calls without an end that are kept: a turn has a few.
pub const OPEN_CALLS_MAX: usize = 16;

/// Calls whose end is remembered, so that a start that is reported late does not reopen one.
const CLOSED_CALLS_MAX: usize = 64;

/// Notes kept.
pub const NOTES_MAX: usize = 200;

/// Tasks kept.
pub const TASKS_MAX: usize = 500;

/// Longest title of a task.
const SUBJECT_BYTES: usize = 300;

/// Longest description of a task.
const DESCRIPTION_BYTES: usize = 1_000;

/// Helpers kept.
pub const HELPERS_MAX: usize = 200;

/// Files kept.
pub const FILES_MAX: usize = 1_000;

/// Commands kept: those that failed, and those with an effect.
pub const COMMANDS_MAX: usize = 200;

/// Questions kept.
pub const QUESTIONS_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub at: u64,
    /// As typed.
    pub text: String,
}

/// What came right before a message of the assistant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// Other words of the assistant, or nothing that is known.
    #[default]
    Nothing,
    Prompt,
    Result,
    Failure,
}

/// What came after a message of the assistant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// Nothing yet, or more words.
    #[default]
    Nothing,
    Prompt,
    Called {
        /// The tool and what it was given.
        line: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    pub at: u64,
    pub text: String,
    pub by: Option<String>,
    /// What came right before.
    pub after: After,
    pub then: Then,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    pub call: String,
    /// The tool and what it was given.
    pub line: String,
    pub at: u64,
}

/// A task of the session's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    pub subject: String,
    pub description: String,
    pub status: TaskStatus,
    pub owner: Option<String>,
    /// Tasks that must be finished before.
    pub blocked_by: Vec<String>,
    pub at: u64,
}

/// A helper: a subagent, a teammate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Helper {
    pub call: Option<String>,
    /// Its id, once the program gave it one.
    pub id: Option<String>,
    pub name: String,
    pub kind: String,
    /// What it was told to do.
    pub prompt: String,
    /// How its work ended; `None` while it runs.
    pub outcome: Option<Outcome>,
    pub words: String,
    pub at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub path: String,
    /// Which helper wrote it.
    pub by: Option<String>,
    /// When it was last written.
    pub at: u64,
}

/// A command that failed or had an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    pub call: String,
    pub line: String,
    pub failure: Option<String>,
    /// The end of what it printed.
    pub printed: String,
    pub by: Option<String>,
    pub at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub call: String,
    pub text: String,
    /// The answer, once there is one.
    pub answer: Option<String>,
    pub at: u64,
}

/// When and for what the session was last told again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retold {
    pub times: u32,
    pub compaction: u32,
    pub process: Option<serde_json::Value>,
    /// Whether only starts of the session were seen since.
    pub quiet: bool,
}

/// A session, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Session {
    pub prompts: Vec<Prompt>,
    /// What the assistant said, in its order.
    pub said: Vec<Said>,
    /// Calls that have started and not ended.
    pub open_calls: Vec<OpenCall>,
    pub closed_calls: Vec<String>,
    /// The last thing that the transcript reported; the same for hooks.
    pub after: (After, After),
    /// Whether the transcript has shown only a compaction since the last one: a second line about it is the same compaction.
    pub read_quiet: bool,
    pub notes: Vec<Prompt>,
    /// The session's tasks, in the order in which they were made.
    pub tasks: Vec<Task>,
    /// The list of a program that reports its list in full.
    pub todos: Vec<Todo>,
    /// Helpers in the order of their calls.
    pub helpers: Vec<Helper>,
    /// Files written, the newest last.
    pub files: Vec<Written>,
    /// Commands that failed or had an effect.
    pub commands: Vec<Ran>,
    pub questions: Vec<Question>,
    /// The plan last read or written.
    pub plan_file: Option<String>,
    /// Compactions that hooks reported.
    pub noticed: u32,
    /// Compactions that the transcript shows.
    pub boundaries: u32,
    /// Whether nothing happened since the last notice: another notice is about the same compaction.
    pub quiet: bool,
    pub summary: Option<String>,
    /// What stopped it last, until it continued.
    pub limit: Option<Prompt>,
    /// Percent of the context left, as last reported.
    pub context_left: Option<u8>,
    /// Percent of the allowance left.
    pub usage_left: Option<u8>,
    /// Whether the person waits for the session.
    pub turn_open: bool,
    /// Whether the person has typed something in this very session, not in one that it continues.
    pub own_work: bool,
    pub last_words: String,
    /// How it ended: whether that was intended, and the program's word for it.
    pub ended: Option<(bool, String)>,
    /// When and for what it was told again.
    pub told: Retold,
    pub transcript: Option<String>,
    /// How far the transcript was read.
    pub read_to: u64,
    pub process: Option<serde_json::Value>,
    /// Sessions that this one continues.
    pub inherits: Vec<String>,
    /// When the session was first heard from.
    pub first_at: u64,
    /// When the session was last heard from.
    pub last_at: u64,
    /// Records added up.
    pub records: u64,
}

impl Session {
    pub fn add(&mut self, record: &Record) {
        if self.records == 0 {
            self.first_at = record.at;
        }
        self.last_at = self.last_at.max(record.at);
        self.records += 1;
        // The transcript's content comes before what the hook reports now.
        for fact in &record.read {
            self.follow(fact, ToldBy::Transcript, record.at);
            if let Fact::Compacted { summary } = fact {
                // Hooks and transcript are counted separately, never added. A transcript may have two lines for one
                // compaction, a boundary and a summary: without work between them they are one. A program without hooks for
                // it writes its summary again when it is resumed.
                let again = self.noticed == 0 && summary.is_some() && *summary == self.summary;
                self.boundaries += u32::from(!again && !self.read_quiet);
                self.summary = summary.clone().or(self.summary.take());
                self.read_quiet = true;
            } else if let Fact::Prompt { text } = fact {
                // The hooks know whether the person still waits: a prompt that only the transcript has is an old one.
                self.old_prompt(text, record.at);
            } else {
                self.take(fact, record.at);
            }
        }
        for fact in &record.facts {
            self.note_quiet(fact);
            self.follow(fact, ToldBy::Hook, record.at);
            self.take(fact, record.at);
        }
    }

    /// Takes over what an earlier session left; called for a session that inherits it, before its own records.
    pub fn inherit(&mut self, earlier: &Self) {
        let mut next = earlier.clone();
        (next.noticed, next.boundaries, next.read_to, next.records) = (0, 0, 0, 0);
        (next.transcript, next.process, next.ended, next.told) = (None, None, None, Retold::default());
        (next.own_work, next.quiet, next.limit) = (false, false, None);
        next.inherits = Vec::new();
        next.lose_helpers();
        // Programs number the tasks of every session from the beginning.
        let earlier = |id: &str| format!("earlier-{id}");
        for task in &mut next.tasks {
            task.id = earlier(&task.id);
            task.blocked_by = task.blocked_by.iter().map(|id| earlier(id)).collect();
        }
        *self = next;
    }

    /// Helpers that lived in the session's process have ended with it.
    fn lose_helpers(&mut self) {
        for helper in self.helpers.iter_mut().filter(|helper| helper.outcome.is_none()) {
            helper.outcome = Some(Outcome::Lost);
        }
    }

    /// How often the context was compacted.
    pub fn compactions(&self) -> u32 {
        self.noticed.max(self.boundaries)
    }

    /// Whether there is anything to tell.
    pub fn has_content(&self) -> bool {
        !(self.prompts.is_empty()
            && self.said.is_empty()
            && self.notes.is_empty()
            && self.tasks.is_empty()
            && self.todos.is_empty()
            && self.helpers.is_empty()
            && self.files.is_empty()
            && self.commands.is_empty()
            && self.questions.is_empty())
    }

    /// Whether it did anything but talk.
    pub fn has_worked(&self) -> bool {
        !(self.files.is_empty() && self.commands.is_empty() && self.tasks.is_empty() && self.todos.is_empty())
    }

    /// Whether something was left unfinished: a turn, a task, a helper, a question.
    pub fn has_open_work(&self) -> bool {
        self.turn_open
            || self.limit.is_some()
            || self.tasks.iter().any(|task| task.is_open())
            || self.todos.iter().any(|todo| is_open(todo.status))
            || self.helpers.iter().any(|helper| helper.outcome.is_none())
            || self.open_questions().next().is_some()
            || self.asked_in_words().is_some()
    }

    /// The question that the session's last message ends with, unless the person has spoken since.
    pub fn asked_in_words(&self) -> Option<&str> {
        let last = self.said.iter().rfind(|said| said.by.is_none()).filter(|said| said.then == Then::Nothing)?;
        split(&last.text).pop().filter(|sentence| asks(sentence))
    }

    /// The number of completed tasks, and of all tasks.
    pub fn progress(&self) -> (usize, usize) {
        let statuses = self.tasks.iter().map(|task| task.status).chain(self.todos.iter().map(|todo| todo.status));
        let listed: Vec<TaskStatus> = statuses.filter(|status| *status != TaskStatus::Deleted).collect();
        (listed.iter().filter(|status| **status == TaskStatus::Completed).count(), listed.len())
    }

    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.answer.is_none())
    }

    /// Whether a fact would change something. This is asked only about tasks: programs report their whole list again and
    /// again.
    pub fn is_news(&self, fact: &Fact) -> bool {
        let Fact::Task { id, subject, description, status, owner, blocked_by } = fact else {
            return true;
        };
        let Some(task) = self.tasks.iter().find(|task| task.id == *id) else {
            return true;
        };
        let same = |given: &Option<String>, known: &str, max: usize| {
            given.as_ref().is_none_or(|given| bounded(given, max) == known)
        };
        !(same(subject, &task.subject, SUBJECT_BYTES)
            && same(description, &task.description, DESCRIPTION_BYTES)
            && status.is_none_or(|status| status == task.status)
            && (owner.is_none() || *owner == task.owner)
            && blocked_by.iter().all(|blocker| task.blocked_by.contains(blocker)))
    }

    /// Tracks whether a notice is about a compaction that is already counted: any fact of work ends the quiet time.
    fn note_quiet(&mut self, fact: &Fact) {
        match fact {
            Fact::Begun { how: super::fact::Beginning::Compacted } | Fact::Compacted { .. } => {
                if !self.quiet {
                    self.noticed += 1;
                    self.quiet = true;
                }
            }
            Fact::Begun { .. }
            | Fact::Process { .. }
            | Fact::Transcript { .. }
            | Fact::ReadTo { .. }
            | Fact::Inherits { .. }
            | Fact::Gauge { .. }
            | Fact::ToldAgain { .. } => {}
            // A notice before the compaction, or anything that is work.
            Fact::Prompt { .. }
            | Fact::Said { .. }
            | Fact::Noted { .. }
            | Fact::Task { .. }
            | Fact::Todos { .. }
            | Fact::HelperCalled { .. }
            | Fact::HelperRuns { .. }
            | Fact::HelperEnded { .. }
            | Fact::FileChanged { .. }
            | Fact::PlanFile { .. }
            | Fact::Called { .. }
            | Fact::Returned { .. }
            | Fact::Command { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Compacting
            | Fact::Limit { .. }
            | Fact::TurnEnded { .. }
            | Fact::Ended { .. } => {
                self.quiet = false;
                self.told.quiet = false;
            }
        }
    }
}

impl Task {
    /// Whether it is still to be done.
    pub fn is_open(&self) -> bool {
        is_open(self.status)
    }
}

fn is_open(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Pending | TaskStatus::InProgress)
}
