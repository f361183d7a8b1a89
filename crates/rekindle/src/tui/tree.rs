//! The tree of a run: what needs a person, then wave, task, attempt and calls. It decides which rows there are, what each
//! says and which one is chosen; the chosen row stays chosen whatever changes around it.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::ids::{AttemptId, QuestionId, TaskId};
use rekindle_core::view::{AttemptRow, Counts, QuestionRow, TaskRow};

use super::filter::Filter;
use super::log::CallLine;
use crate::picture::Picture;
use crate::picture::standing;
use crate::ui::{Tone, one_line};
use crate::view::Spent;

/// A row's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// All that needs a person.
    Needs,
    /// A question, or a task that failed.
    Need(TaskId, Option<QuestionId>),
    Wave(u32),
    Task(TaskId),
    /// An attempt at a task.
    Attempt(TaskId, AttemptId),
    /// A call of an attempt, by the number of its line in the log.
    Call(TaskId, AttemptId, usize),
}

impl Node {
    /// The row above it in the tree, where that is known without the tree.
    fn parent(&self) -> Option<Self> {
        match self {
            Self::Needs | Self::Wave(_) | Self::Task(_) => None,
            Self::Need(..) => Some(Self::Needs),
            Self::Attempt(task, _) => Some(Self::Task(task.clone())),
            Self::Call(task, attempt, _) => Some(Self::Attempt(task.clone(), *attempt)),
        }
    }

    /// The task that it belongs to.
    pub(super) fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Needs | Self::Wave(_) => None,
            Self::Need(task, _) | Self::Task(task) | Self::Attempt(task, _) | Self::Call(task, ..) => Some(task),
        }
    }

    /// The attempt that it is or belongs to.
    pub(super) fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Attempt(_, attempt) | Self::Call(_, attempt, _) => Some(*attempt),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub node: Node,
    pub depth: usize,
    /// Whether its branch is open; `None` if it has none.
    pub open: Option<bool>,
    pub symbol: &'static str,
    /// The same in ASCII.
    pub ascii: &'static str,
    /// Its state in a word.
    pub word: String,
    /// The tone of the symbol and the word.
    pub tone: Tone,
    pub label: String,
    /// What it waits for, or how it ended.
    pub note: String,
    /// How full its context is, in percent.
    pub context: Option<u8>,
    pub spent: Spent,
    /// How long it took so far, in milliseconds.
    pub took: Option<u64>,
}

impl Row {
    fn new(node: Node, depth: usize, label: String) -> Self {
        Self {
            node,
            depth,
            open: None,
            symbol: " ",
            ascii: " ",
            word: String::new(),
            tone: Tone::Dim,
            label,
            note: String::new(),
            context: None,
            spent: Spent::default(),
            took: None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Its visible rows: in open branches and kept by the filter.
    pub rows: Vec<Row>,
    /// The chosen one.
    pub at: usize,
    /// The first one on the screen.
    pub top: usize,
    pub filter: Filter,
    /// Branches that a person opened or closed.
    turned: BTreeMap<Node, bool>,
}

impl Tree {
    pub(super) fn chosen(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    /// Rebuilds the rows.
    pub(super) fn build(&mut self, picture: &Picture, calls: &BTreeMap<AttemptId, Vec<CallLine>>) {
        let before = self.chosen().map(|row| row.node.clone());
        let maker = Maker {
            picture,
            calls,
            turned: &self.turned,
            filter: &self.filter,
            spent: picture.spent_by_task(),
            working: picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).collect(),
        };
        self.rows = maker.rows();
        self.find_again(before);
    }

    /// Chooses the row that was chosen before, or the nearest that still exists.
    fn find_again(&mut self, before: Option<Node>) {
        let mut wanted = before;
        while let Some(node) = wanted {
            let found = self.rows.iter().position(|row| row.node == node);
            if let Some(at) = found {
                self.at = at;
                return;
            }
            // A task that no longer needs a person is still a task.
            wanted = match node {
                Node::Need(task, _) => Some(Node::Task(task)),
                other => other.parent(),
            };
        }
        self.at = self.at.min(self.rows.len().saturating_sub(1));
    }

    /// Chooses a row by its identity, if it is there.
    pub(super) fn choose(&mut self, node: &Node) {
        if let Some(at) = self.rows.iter().position(|row| row.node == *node) {
            self.at = at;
        }
    }

    /// Opens or closes the chosen branch; returns whether there was one to open or close.
    pub(super) fn turn(&mut self, open: bool) -> bool {
        let Some(row) = self.rows.get(self.at).filter(|row| row.open == Some(!open)) else { return false };
        self.turned.insert(row.node.clone(), open);
        true
    }

    /// Goes to the row above the chosen one in the tree.
    pub(super) fn go_to_parent(&mut self) {
        let Some(depth) = self.chosen().map(|row| row.depth) else { return };
        let above = self.rows[..self.at].iter().rposition(|row| row.depth < depth);
        self.at = above.unwrap_or(self.at);
    }

    /// Opens everything above an attempt, and clears a filter that may hide it.
    pub(super) fn reveal(&mut self, wave: u32, task: &TaskId) {
        self.filter = Filter::default();
        self.turned.insert(Node::Wave(wave), true);
        self.turned.insert(Node::Task(task.clone()), true);
    }

    /// Attempts whose calls are visible.
    pub(super) fn open_attempts(&self) -> BTreeSet<AttemptId> {
        let open = self.rows.iter().filter(|row| row.open == Some(true));
        open.filter_map(|row| if let Node::Attempt(_, id) = row.node { Some(id) } else { None }).collect()
    }
}

struct Maker<'a> {
    picture: &'a Picture,
    calls: &'a BTreeMap<AttemptId, Vec<CallLine>>,
    turned: &'a BTreeMap<Node, bool>,
    filter: &'a Filter,
    spent: BTreeMap<TaskId, Spent>,
    working: Vec<&'a AttemptRow>,
}

impl Maker<'_> {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.needs(&mut rows);
        let waves: BTreeSet<u32> = self.picture.tasks.iter().map(|task| task.wave).collect();
        for wave in waves {
            self.wave(wave, &mut rows);
        }
        rows
    }

    fn is_open(&self, node: &Node, else_: bool) -> bool {
        self.turned.get(node).copied().unwrap_or(else_)
    }

    /// Every open question, whatever became of its task, and every task that failed: as many as the header counts.
    fn needs(&self, rows: &mut Vec<Row>) {
        // Questions before failures: an agent may be waiting.
        let asked = self.picture.open_questions().map(|question| self.question(question));
        let failed = self.picture.tasks.iter().filter(|task| task.state == "failed").map(|task| self.failure(task));
        let all: Vec<Row> = asked.chain(failed).collect();
        let many = all.len();
        let mut kept: Vec<Row> = all.into_iter().filter(|row| self.keeps(row)).collect();
        if kept.is_empty() {
            return;
        }
        let mut head = Row::new(Node::Needs, 0, "Needs you".to_owned());
        (head.tone, head.symbol, head.ascii) = (Tone::Warning, "!", "!");
        head.word = if kept.len() == many { many.to_string() } else { format!("{} of {many}", kept.len()) };
        let open = self.is_open(&head.node, true);
        head.open = Some(open);
        rows.push(head);
        if open {
            rows.append(&mut kept);
        }
    }

    fn question(&self, question: &QuestionRow) -> Row {
        let task = self.picture.task(question.task.as_str());
        // A task that has ended shows its state here, because it can still have a question.
        let ended = task.filter(|task| matches!(task.state.as_str(), "complete" | "failed" | "skipped"));
        let ended = ended.map(|task| format!(" ({})", standing::of(self.picture, task).word)).unwrap_or_default();
        let text = format!("{}{ended} asks you: {}", question.task, one_line(&question.text));
        let mut row = Row::new(Node::Need(question.task.clone(), Some(question.id)), 1, text);
        (row.symbol, row.ascii, row.tone, row.word) = ("?", "?", Tone::Warning, "asks you".to_owned());
        row.note = task.map(|task| one_line(&task.title)).unwrap_or_default();
        row
    }

    fn failure(&self, task: &TaskRow) -> Row {
        let stands = standing::of(self.picture, task);
        let why = task.reason.as_deref().map_or_else(|| one_line(&task.title), one_line);
        let mut row = Row::new(Node::Need(task.id.clone(), None), 1, format!("{} {}: {why}", task.id, stands.word));
        (row.symbol, row.ascii, row.tone, row.word) =
            (stands.symbol, stands.ascii, stands.tone, stands.word.to_owned());
        row.note = one_line(&task.title);
        row
    }

    fn keeps(&self, row: &Row) -> bool {
        self.filter.is_empty() || self.filter.keeps(&format!("{} {} {}", row.label, row.word, row.note))
    }

    fn wave(&self, wave: u32, rows: &mut Vec<Row>) {
        let tasks: Vec<&TaskRow> = self.picture.tasks.iter().filter(|task| task.wave == wave).collect();
        let kept: Vec<(&TaskRow, Row)> =
            tasks.iter().map(|task| (*task, self.task(task))).filter(|(_, row)| self.keeps(row)).collect();
        if kept.is_empty() {
            return;
        }
        let mut head = Row::new(Node::Wave(wave), 0, format!("wave {wave}"));
        let counts = Counts::of(tasks.iter().copied());
        head.word = counts.progress();
        head.tone = if counts.open() + counts.failed == 0 { Tone::Good } else { Tone::Strong };
        for task in &tasks {
            add(&mut head.spent, self.spent.get(&task.id));
        }
        let open = self.is_open(&head.node, true);
        head.open = Some(open);
        rows.push(head);
        if !open {
            return;
        }
        for (task, row) in kept {
            let open = row.open == Some(true);
            rows.push(row);
            if open {
                self.attempts(task, rows);
            }
        }
    }

    fn task(&self, task: &TaskRow) -> Row {
        let stands = standing::of(self.picture, task);
        let depth = if task.parent.is_some() { 2 } else { 1 };
        let mut row = Row::new(Node::Task(task.id.clone()), depth, format!("{} {}", task.id, one_line(&task.title)));
        (row.symbol, row.ascii, row.tone, row.word) =
            (stands.symbol, stands.ascii, stands.tone, stands.word.to_owned());
        row.note = stands.note.unwrap_or_default();
        row.spent = self.spent.get(&task.id).copied().unwrap_or_default();
        let live = self.working.iter().rev().find(|attempt| attempt.task.as_ref() == Some(&task.id));
        row.context = live.and_then(|attempt| context_of(attempt));
        let until = task.ended_at.or_else(|| live.map(|_| self.picture.until()));
        row.took = task.started_at.zip(until).map(|(from, to)| to.since_ms(from));
        if task.attempts > 0 || self.spent.contains_key(&task.id) || live.is_some() {
            row.open = Some(self.is_open(&row.node, false));
        }
        row
    }

    fn attempts(&self, task: &TaskRow, rows: &mut Vec<Row>) {
        for attempt in self.picture.attempts_of(&task.id) {
            let row = self.attempt(task, self.picture.number_of(&task.id, attempt.attempt), attempt);
            let open = row.open == Some(true);
            let depth = row.depth + 1;
            rows.push(row);
            if open {
                let calls = self.calls.get(&attempt.attempt).map(Vec::as_slice).unwrap_or_default();
                rows.extend(calls.iter().map(|call| call_row(task, attempt, call, depth)));
            }
        }
    }

    fn attempt(&self, task: &TaskRow, number: u32, attempt: &AttemptRow) -> Row {
        let node = Node::Attempt(task.id.clone(), attempt.attempt);
        let model = attempt.model.as_deref().map(|model| format!(" {}", one_line(model))).unwrap_or_default();
        let label = format!("#{number} {} · {}{model}", attempt.name, one_line(&attempt.cli));
        let depth = if task.parent.is_some() { 3 } else { 2 };
        let mut row = Row::new(node, depth, label);
        (row.symbol, row.ascii, row.tone) = match (attempt.ended_at, attempt.cause.as_deref()) {
            (None, _) => ("▶", ">", Tone::Active),
            (_, Some("completed")) => ("✔", "+", Tone::Good),
            (_, Some("stopped_by_operator")) => ("–", "-", Tone::Dim),
            _ => ("✖", "x", Tone::Warning),
        };
        let cause = attempt.cause.as_deref().filter(|_| attempt.ended_at.is_some());
        row.word = one_line(&cause.unwrap_or(&attempt.state).replace('_', " "));
        row.note = match attempt.strategy.name() {
            "first" => String::new(),
            how => format!("by {how}"),
        };
        row.context = context_of(attempt);
        row.spent = Spent::by_all(std::slice::from_ref(attempt));
        row.took = Some(attempt.ended_at.unwrap_or_else(|| self.picture.until()).since_ms(attempt.started_at));
        row.open = Some(self.is_open(&row.node, false));
        row
    }
}

fn call_row(task: &TaskRow, attempt: &AttemptRow, call: &CallLine, depth: usize) -> Row {
    let mut row = Row::new(Node::Call(task.id.clone(), attempt.attempt, call.number), depth, call.text.clone());
    (row.symbol, row.ascii, row.tone, row.word) = match call.ok {
        None => ("→", ">", Tone::Active, "runs".to_owned()),
        Some(true) => ("✔", "+", Tone::Dim, "ok".to_owned()),
        Some(false) => ("✖", "x", Tone::Error, "error".to_owned()),
    };
    if call.ok != Some(true) {
        row.label = format!("{}: {}", row.word, row.label);
    }
    row.note.clone_from(&call.result);
    row
}

/// How full an attempt's context is, in percent.
pub(super) fn context_of(attempt: &AttemptRow) -> Option<u8> {
    attempt.measure.and_then(|measure| measure.remaining_percent()).map(|left| 100 - left.min(100))
}

fn add(sum: &mut Spent, more: Option<&Spent>) {
    let Some(more) = more else { return };
    sum.tokens = sum.tokens.saturating_add(more.tokens);
    if let Some(cost) = more.cost_usd {
        sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost);
    }
}
