//! How one fact changes a session.

use super::{
    COMMANDS_MAX, DESCRIPTION_BYTES, FILES_MAX, FIRST_PROMPTS, HELPERS_MAX, Helper, NOTES_MAX, PROMPTS_MAX, Prompt,
    QUESTIONS_MAX, Question, Ran, SAID_MAX, SUBJECT_BYTES, Said, Session, TASKS_MAX, Task, Told, Written,
};
use crate::lead::command::has_effect;
use crate::lead::fact::{Beginning, Fact, Outcome, TaskStatus, bounded};
use crate::lead::recovery::HEADING;
use crate::lead::statement::Statement;

/// Prompts that are looked back at for the same words: the transcript tells a prompt shortly after its hook.
const SAME_PROMPT_REACH: usize = 20;

/// The same words within this time are one prompt, told by two hooks.
const TWICE_MS: u64 = 3_000;

/// Sessions that one may go on with, one after another.
const INHERITED_MAX: usize = 8;

impl Session {
    /// Adds one fact; telling it again changes nothing.
    pub(super) fn take(&mut self, fact: &Fact, at: u64) {
        match fact {
            Fact::Begun { how } => {
                self.ended = None;
                if *how == Beginning::Cleared {
                    self.turn_open = false;
                }
            }
            Fact::Process { id } => {
                if self.process.as_ref().is_some_and(|known| known != id) {
                    self.lose_helpers();
                }
                self.process = Some(id.clone());
            }
            Fact::Transcript { path } => self.transcript = Some(path.clone()),
            Fact::ReadTo { offset } => {
                self.read_to = *offset;
                // Read from its beginning again: what it shows is counted anew.
                if *offset == 0 {
                    self.boundaries = 0;
                }
            }
            Fact::Inherits { session } => {
                if !self.inherits.contains(session) && self.inherits.len() < INHERITED_MAX {
                    self.inherits.push(session.clone());
                }
            }
            Fact::Prompt { text } => self.prompt(text, at),
            Fact::Said { what, text, by } => self.say(*what, text, by.as_deref(), at),
            Fact::Noted { text } => {
                if !self.notes.iter().any(|note| note.text == *text) {
                    push(&mut self.notes, Prompt { at, text: text.clone() }, 0, NOTES_MAX);
                }
            }
            Fact::Task { .. } => self.task(fact, at),
            Fact::Todos { items } => self.todos = items.iter().take(TASKS_MAX).cloned().collect(),
            Fact::HelperCalled { .. } | Fact::HelperRuns { .. } | Fact::HelperEnded { .. } => self.helper(fact, at),
            Fact::FileChanged { path, by } => {
                self.files.retain(|file| file.path != *path);
                push(&mut self.files, Written { path: path.clone(), by: by.clone(), at }, 0, FILES_MAX);
            }
            Fact::PlanFile { path } => self.plan_file = Some(path.clone()),
            Fact::Command { .. } => self.command(fact, at),
            Fact::Asked { call, text } => self.asked(call, text, at),
            Fact::Answered { call, text } => {
                if let Some(question) = self.questions.iter_mut().find(|question| question.call == *call) {
                    question.answer = Some(text.clone());
                }
            }
            Fact::Compacting => {}
            Fact::Compacted { summary } => self.summary = summary.clone().or(self.summary.take()),
            Fact::Limit { text } => self.limit = Some(Prompt { at, text: text.clone() }),
            Fact::Gauge { context, usage } => {
                self.context_left = context.or(self.context_left);
                self.usage_left = usage.or(self.usage_left);
            }
            Fact::TurnEnded { words } => {
                self.turn_open = false;
                if !words.is_empty() {
                    self.last_words.clone_from(words);
                }
            }
            Fact::Ended { meant, reason } => self.ended = Some((*meant, reason.clone())),
            Fact::ToldAgain { compaction, .. } => {
                let times = self.told.times + 1;
                let compaction = self.compactions().max(*compaction);
                self.told = Told { times, compaction, process: self.process.clone(), quiet: true };
            }
        }
    }

    fn prompt(&mut self, text: &str, at: u64) {
        self.turn_open = true;
        self.limit = None;
        if is_own(text) {
            return;
        }
        self.own_work = true;
        // A hook that is installed twice tells it twice at once; a person may well say the same again later.
        let again = self.prompts.last().is_some_and(|last| last.text == text && at.saturating_sub(last.at) < TWICE_MS);
        if !again {
            push(&mut self.prompts, Prompt { at, text: text.to_owned() }, FIRST_PROMPTS, PROMPTS_MAX);
        }
    }

    /// A prompt that the transcript tells: an old one, mostly known.
    pub(super) fn old_prompt(&mut self, text: &str, at: u64) {
        let mut near = self.prompts.iter().rev().take(SAME_PROMPT_REACH);
        if !is_own(text) && near.all(|prompt| prompt.text != text) {
            push(&mut self.prompts, Prompt { at, text: text.to_owned() }, FIRST_PROMPTS, PROMPTS_MAX);
        }
    }

    fn say(&mut self, what: Statement, text: &str, by: Option<&str>, at: u64) {
        if self.said.iter().any(|said| said.text == text) {
            return;
        }
        self.said.push(Said { at, what, text: text.to_owned(), by: by.map(str::to_owned) });
        let same = |said: &Said| said.what == what;
        if self.said.iter().filter(|said| same(said)).count() > SAID_MAX
            && let Some(oldest) = self.said.iter().position(same)
        {
            self.said.remove(oldest);
        }
    }

    fn task(&mut self, fact: &Fact, at: u64) {
        let Fact::Task { id, subject, description, status, owner, blocked_by } = fact else {
            return;
        };
        let at_index = self.tasks.iter().position(|task| task.id == *id).unwrap_or_else(|| {
            let new = Task {
                id: id.clone(),
                subject: String::new(),
                description: String::new(),
                status: TaskStatus::Pending,
                owner: None,
                blocked_by: Vec::new(),
                at,
            };
            push(&mut self.tasks, new, 0, TASKS_MAX);
            self.tasks.len() - 1
        });
        let task = &mut self.tasks[at_index];
        let before = task.clone();
        if let Some(subject) = subject {
            task.subject = bounded(subject, SUBJECT_BYTES);
        }
        if let Some(description) = description {
            task.description = bounded(description, DESCRIPTION_BYTES);
        }
        task.status = status.unwrap_or(task.status);
        task.owner = owner.clone().or(task.owner.take());
        for blocker in blocked_by {
            if !task.blocked_by.contains(blocker) {
                task.blocked_by.push(blocker.clone());
            }
        }
        if *task != before {
            task.at = at;
        }
    }

    fn helper(&mut self, fact: &Fact, at: u64) {
        match fact {
            Fact::HelperCalled { call, name, kind, prompt } => {
                let known = self.helpers.iter().any(|helper| helper.call.as_ref() == Some(call));
                if !known {
                    let helper = Helper {
                        call: Some(call.clone()),
                        id: None,
                        name: bounded(name, 120),
                        kind: kind.clone(),
                        prompt: bounded(prompt, 2_000),
                        outcome: None,
                        words: String::new(),
                        at,
                    };
                    push(&mut self.helpers, helper, 0, HELPERS_MAX);
                }
            }
            Fact::HelperRuns { call, helper, kind } => {
                if let Some(found) = self.find_helper(call.as_deref(), Some(helper), kind) {
                    found.id = Some(helper.clone());
                    return;
                }
                // Started by a way that no hook tells of.
                let new = Helper {
                    call: call.clone(),
                    id: Some(helper.clone()),
                    name: if kind.is_empty() { helper.clone() } else { kind.clone() },
                    kind: kind.clone(),
                    prompt: String::new(),
                    outcome: None,
                    words: String::new(),
                    at,
                };
                push(&mut self.helpers, new, 0, HELPERS_MAX);
            }
            Fact::HelperEnded { call, helper, outcome, words } => {
                if let Some(found) = self.find_helper(call.as_deref(), helper.as_deref(), "") {
                    found.end(*outcome, words, at);
                }
            }
            _ => {}
        }
    }

    /// The helper that is meant: by its call, by its id, or the oldest of its kind that nobody has named yet.
    fn find_helper(&mut self, call: Option<&str>, id: Option<&str>, kind: &str) -> Option<&mut Helper> {
        let by_call = |helper: &Helper| call.is_some() && helper.call.as_deref() == call;
        let by_id = |helper: &Helper| id.is_some() && (helper.id.as_deref() == id || Some(helper.name.as_str()) == id);
        let unnamed = |helper: &Helper| {
            call.is_none() && !kind.is_empty() && helper.id.is_none() && helper.outcome.is_none() && helper.kind == kind
        };
        let at = self.helpers.iter().position(by_call);
        let at =
            at.or_else(|| self.helpers.iter().rposition(by_id)).or_else(|| self.helpers.iter().position(unnamed))?;
        self.helpers.get_mut(at)
    }

    fn command(&mut self, fact: &Fact, at: u64) {
        let Fact::Command { call, line, failure, printed, by } = fact else {
            return;
        };
        if let Some(known) = self.commands.iter_mut().find(|ran| ran.call == *call) {
            // A hook may not know how a command ended; the transcript does.
            known.failure = known.failure.take().or_else(|| failure.clone());
            return;
        }
        if failure.is_none() {
            // What works now is no failure any more.
            self.commands.retain(|ran| ran.failure.is_none() || ran.line != *line);
            if !has_effect(line) {
                return;
            }
        }
        let ran = Ran {
            call: call.clone(),
            line: bounded(line, 400),
            failure: failure.clone(),
            printed: bounded(printed, 300),
            by: by.clone(),
            at,
        };
        push(&mut self.commands, ran, 0, COMMANDS_MAX);
    }

    fn asked(&mut self, call: &str, text: &str, at: u64) {
        if self.questions.iter().all(|question| question.call != call) {
            let question = Question { call: call.to_owned(), text: bounded(text, 1_000), answer: None, at };
            push(&mut self.questions, question, 0, QUESTIONS_MAX);
        }
    }
}

impl Helper {
    fn end(&mut self, outcome: Outcome, words: &str, at: u64) {
        self.outcome = Some(outcome);
        if !words.is_empty() {
            self.words = bounded(words, 1_500);
        }
        self.at = at;
    }
}

/// Whether a prompt is our own text, handed to a new session: what stands in it are not the person's words.
fn is_own(text: &str) -> bool {
    text.trim_start_matches(['"', '\'', ' ', '\n']).starts_with(HEADING)
}

/// Adds to a list; past its bound the oldest after the first few goes.
fn push<T>(list: &mut Vec<T>, new: T, first: usize, max: usize) {
    if list.len() >= max {
        list.remove(first);
    }
    list.push(new);
}
