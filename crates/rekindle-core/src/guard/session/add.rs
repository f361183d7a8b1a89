//! How one fact changes a session.

use super::{
    After, CLOSED_CALLS_MAX, COMMANDS_MAX, DESCRIPTION_BYTES, FILES_MAX, FIRST_PROMPTS, HELPERS_MAX, Helper, NOTES_MAX,
    OPEN_CALLS_MAX, OpenCall, PROMPTS_MAX, Prompt, QUESTIONS_MAX, Question, Ran, Retold, SAID_MAX, SAID_MAX_BYTES,
    SUBJECT_BYTES, Said, Session, TASKS_MAX, Task, Then, Written,
};
use crate::guard::command::has_effect;
use crate::guard::fact::{Beginning, CALL_MAX_BYTES, Fact, Outcome, TaskStatus, bounded};
use crate::guard::recovery::HEADING;
use crate::guard::worth;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ToldBy {
    /// The program's transcript, in the order of the conversation.
    Transcript,
    /// A hook, when it happened.
    Hook,
}

/// How many prompts back to look for the same words: the transcript shows a prompt shortly after its hook.
const SAME_PROMPT_REACH: usize = 20;

/// The same words within this time are one prompt, reported by two hooks.
const TWICE_MS: u64 = 3_000;

/// Sessions that one may continue, one after another.
const INHERITED_MAX: usize = 8;

impl Session {
    /// Adds one fact; adding it again changes nothing.
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
                // The transcript is read from its beginning again: what it shows is counted anew.
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
            // Their place depends on the source: see `follow`.
            Fact::Said { .. } | Fact::Called { .. } | Fact::Returned { .. } => {}
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
            Fact::ToldAgain { compaction, .. } => self.told_again(*compaction),
        }
    }

    fn told_again(&mut self, compaction: u32) {
        // The text included what was under way.
        self.open_calls.clear();
        let (times, compaction) = (self.told.times + 1, self.compactions().max(compaction));
        self.told = Retold { times, compaction, process: self.process.clone(), quiet: true };
    }

    fn prompt(&mut self, text: &str, at: u64) {
        self.turn_open = true;
        self.limit = None;
        if is_own(text) {
            return;
        }
        self.own_work = true;
        // A hook that is installed twice reports it twice at once; a person may well say the same again later.
        let again = self.prompts.last().is_some_and(|last| last.text == text && at.saturating_sub(last.at) < TWICE_MS);
        if !again {
            push(&mut self.prompts, Prompt { at, text: text.to_owned() }, FIRST_PROMPTS, PROMPTS_MAX);
        }
    }

    /// A prompt from the transcript: an old one, usually known.
    pub(super) fn old_prompt(&mut self, text: &str, at: u64) {
        let mut near = self.prompts.iter().rev().take(SAME_PROMPT_REACH);
        if !is_own(text) && near.all(|prompt| prompt.text != text) {
            push(&mut self.prompts, Prompt { at, text: text.to_owned() }, FIRST_PROMPTS, PROMPTS_MAX);
        }
    }

    /// Keeps the order of the conversation: what came before and after the assistant's words.
    pub(super) fn follow(&mut self, fact: &Fact, source: ToldBy, at: u64) {
        match fact {
            Fact::Prompt { .. } => {
                self.then(|| Then::Prompt);
                *self.after(source) = After::Prompt;
                if source == ToldBy::Hook {
                    // A turn begins with nothing under way.
                    self.open_calls.clear();
                }
            }
            Fact::Said { text, by } => {
                let after = if by.is_some() { After::Nothing } else { std::mem::take(self.after(source)) };
                self.say(text, by.as_deref(), after, at);
            }
            Fact::Called { call, line } => {
                self.then(|| Then::Called { line: line.clone() });
                // A hook reports a call when it starts; the transcript may show one whose end a hook has already reported.
                if source == ToldBy::Hook || !self.closed_calls.contains(call) {
                    self.called(call, line, at);
                }
            }
            Fact::Command { call, line, failure, by, .. } => {
                if by.is_none() {
                    self.then(|| Then::Called { line: bounded(line, CALL_MAX_BYTES) });
                    *self.after(source) = if failure.is_some() { After::Failure } else { After::Result };
                }
                self.closed(call);
            }
            Fact::Returned { call, failed } => {
                *self.after(source) = if *failed { After::Failure } else { After::Result };
                self.closed(call);
            }
            Fact::Begun { .. }
            | Fact::Process { .. }
            | Fact::Transcript { .. }
            | Fact::ReadTo { .. }
            | Fact::Inherits { .. }
            | Fact::Noted { .. }
            | Fact::Task { .. }
            | Fact::Todos { .. }
            | Fact::HelperCalled { .. }
            | Fact::HelperRuns { .. }
            | Fact::HelperEnded { .. }
            | Fact::FileChanged { .. }
            | Fact::PlanFile { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Compacting
            | Fact::Compacted { .. }
            | Fact::Limit { .. }
            | Fact::Gauge { .. }
            | Fact::TurnEnded { .. }
            | Fact::Ended { .. }
            | Fact::ToldAgain { .. } => {}
        }
        if source == ToldBy::Transcript
            && matches!(fact, Fact::Prompt { .. } | Fact::Said { .. } | Fact::Command { .. } | Fact::Called { .. })
        {
            self.read_quiet = false;
        }
    }

    fn after(&mut self, source: ToldBy) -> &mut After {
        match source {
            ToldBy::Transcript => &mut self.after.0,
            ToldBy::Hook => &mut self.after.1,
        }
    }

    /// Sets what came after the session's last words, unless that is set already.
    fn then(&mut self, what: impl FnOnce() -> Then) {
        if let Some(last) = self.said.iter_mut().rfind(|said| said.by.is_none())
            && last.then == Then::Nothing
        {
            last.then = what();
        }
    }

    fn called(&mut self, call: &str, line: &str, at: u64) {
        if !self.open_calls.iter().any(|open| open.call == call) {
            let open = OpenCall { call: call.to_owned(), line: line.to_owned(), at };
            push(&mut self.open_calls, open, 0, OPEN_CALLS_MAX);
        }
    }

    fn closed(&mut self, call: &str) {
        self.open_calls.retain(|open| open.call != call);
        if !self.closed_calls.iter().any(|id| id == call) {
            push(&mut self.closed_calls, call.to_owned(), 0, CLOSED_CALLS_MAX);
        }
    }

    fn say(&mut self, text: &str, by: Option<&str>, after: After, at: u64) {
        if self.said.iter().any(|said| said.text == text) {
            return;
        }
        let said = Said { at, text: text.to_owned(), by: by.map(str::to_owned), after, then: Then::Nothing };
        push(&mut self.said, said, 0, SAID_MAX);
        let bytes: usize = self.said.iter().map(|said| said.text.len()).sum();
        if bytes > SAID_MAX_BYTES {
            self.condense();
        }
    }

    /// Keeps only the best sentences of the older half of what was said.
    fn condense(&mut self) {
        let half = self.said.len() / 2;
        let mut old = worth::sentences_of(self, half);
        let mut best: Vec<u64> = old.iter().map(|sentence| sentence.score).collect();
        best.sort_unstable_by(|one, other| other.cmp(one));
        let bar = best.get(best.len() / 3).copied().unwrap_or_default();
        old.retain(|sentence| sentence.score >= bar);
        let mut kept = vec![String::new(); half];
        for sentence in old {
            let text = &mut kept[sentence.message];
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(sentence.text);
        }
        for (said, text) in self.said.iter_mut().zip(kept) {
            said.text = text;
        }
        self.said.retain(|said| !said.text.is_empty());
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
                // It was started in a way that no hook reports.
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
            Fact::Begun { .. }
            | Fact::Process { .. }
            | Fact::Transcript { .. }
            | Fact::ReadTo { .. }
            | Fact::Inherits { .. }
            | Fact::Prompt { .. }
            | Fact::Said { .. }
            | Fact::Noted { .. }
            | Fact::Task { .. }
            | Fact::Todos { .. }
            | Fact::FileChanged { .. }
            | Fact::PlanFile { .. }
            | Fact::Called { .. }
            | Fact::Returned { .. }
            | Fact::Command { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Compacting
            | Fact::Compacted { .. }
            | Fact::Limit { .. }
            | Fact::Gauge { .. }
            | Fact::TurnEnded { .. }
            | Fact::Ended { .. }
            | Fact::ToldAgain { .. } => {}
        }
    }

    /// The helper in question: by its call, by its id, or the oldest of its kind without an id.
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
            // A command that works now is no longer a failure.
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

/// Whether a prompt is our own text, handed to a new session: it does not contain the person's words.
fn is_own(text: &str) -> bool {
    text.trim_start_matches(['"', '\'', ' ', '\n']).starts_with(HEADING)
}

/// Adds to a list; beyond its bound, the oldest entry after the first few is dropped.
fn push<T>(list: &mut Vec<T>, new: T, first: usize, max: usize) {
    if list.len() >= max {
        list.remove(first);
    }
    list.push(new);
}
