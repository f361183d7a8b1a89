//! Changes of the plan and the operator's word: what counts is what a person really said, whole and once, and only a person
//! takes it back.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::event::{AttemptEvent, Body, ChangedTask, Event, ReviewEvent, RunEvent, TaskEvent};
use rekindle_core::ids::{Epoch, TaskId};
use rekindle_core::input::{NewTask, Order, TaskEdit};
use rekindle_core::plan::{Plan, PlanTask};
use rekindle_core::reload::differences;
use rekindle_core::state::{State, Word};

use super::log::line;
use super::{Checkers, Invariant, Verdict, require};

/// Reasons for reopening a task that ends again at once, on another word of the operator.
const NEW_WORDS: [&str; 2] = ["completed by the operator", "given up by the operator"];

/// What the operator really said about the plan.
#[derive(Debug, Default)]
pub struct Changes {
    numbers: u64,
    files: BTreeMap<String, Plan>,
    added: BTreeMap<TaskId, NewTask>,
    edits: Vec<(TaskId, TaskEdit)>,
    /// Tasks whose text or checks a person changed, or those of a task before them.
    touched: BTreeSet<TaskId>,
    /// How often a person said something that takes back an earlier word on a task, and how often one was taken back.
    released: BTreeMap<TaskId, u64>,
    taken_back: BTreeMap<TaskId, u64>,
    /// The checks that were really run last for a claim.
    pub run: BTreeMap<(TaskId, Epoch), Vec<String>>,
    /// Tasks that the log added by hand.
    seen: BTreeSet<TaskId>,
}

impl Changes {
    /// A number that no change has.
    pub fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Records an order; returns the tasks that a removal from the plan ends.
    pub(super) fn told(&mut self, order: &Order, state: &State) -> Vec<TaskId> {
        let all = || state.tasks.keys().cloned().collect::<Vec<_>>();
        match order {
            Order::Reload { plan } => {
                // Its effect depends on the state that it meets: any of its tasks may be reopened, left out or proven.
                self.files.insert(plan.hash.clone(), (**plan).clone());
                all().into_iter().chain(plan.tasks.iter().map(|task| task.id.clone())).for_each(|id| self.touch(id));
                return all().into_iter().filter(|id| plan.task(id.as_str()).is_none()).collect();
            }
            Order::Add(new) => {
                self.added.insert(new.id.clone(), (**new).clone());
            }
            Order::Edit { task, edit } => {
                self.edits.push((task.clone(), (**edit).clone()));
                // Complete tasks that depend on it are proven again.
                self.touched.extend(all());
                self.touch(task.clone());
            }
            Order::Retry { task } | Order::Split { task, .. } => {
                *self.released.entry(task.clone()).or_default() += 1;
            }
            Order::Recover { .. } => all().into_iter().for_each(|id| *self.released.entry(id).or_default() += 1),
            _ => {}
        }
        Vec::new()
    }

    fn touch(&mut self, id: TaskId) {
        *self.released.entry(id.clone()).or_default() += 1;
        self.touched.insert(id);
    }
}

impl Checkers {
    /// Judges an event about the plan or about a task that a person decided on, against the state before it.
    pub(super) fn changes(&mut self, event: &Event) -> Verdict {
        match (&event.body, &event.task) {
            // One word replaces another.
            (Body::Task(TaskEvent::TaskReopened { reason, .. }), Some(id)) if NEW_WORDS.contains(&reason.as_str()) => {
                require(self.truth.ordered.contains(id), Invariant::Word, || format!("nobody said so: {}", line(event)))
            }
            (Body::Task(TaskEvent::TaskReopened { .. }), Some(id)) => self.may_reopen(id, event),
            (Body::Task(TaskEvent::TaskAdded(added)), _) if self.truth.published.explains(added) => Ok(()),
            (Body::Task(TaskEvent::TaskAdded(added)), Some(id)) if added.is_by_hand() => {
                let meant = self.truth.changes.added.get(id).is_some_and(|new| {
                    let same = new.title == added.task.title && new.accept == added.task.accept;
                    same && new.text == added.task.body && new.after == added.task.blocked_by
                });
                require(meant, Invariant::Changed, || format!("nobody added it: {}", line(event)))?;
                let first = self.truth.changes.seen.insert(id.clone()) && !self.replayed.tasks.contains_key(id);
                require(first, Invariant::Changed, || format!("added twice: {}", line(event)))
            }
            (Body::Task(TaskEvent::TaskEdited(changed)), Some(id)) => self.meant(id, changed, event),
            (Body::Attempt(AttemptEvent::Dispatched { tasks, .. }), _) => self.may_begin(tasks, event),
            (Body::Task(TaskEvent::OperatorCompleted { .. }), Some(id)) => {
                let said = self.truth.completed.contains(id);
                require(said, Invariant::Word, || format!("nobody said so: {}", line(event)))
            }
            (Body::Review(ReviewEvent::MergeOrdered(_)), Some(id)) => self.by_present_checks(id, event),
            (Body::Task(TaskEvent::TaskCompleted { .. }), Some(id)) => {
                let merged = self.replayed.tasks.get(id).is_some_and(|task| task.workflow.merging.is_some());
                if merged { Ok(()) } else { self.by_present_checks(id, event) }
            }
            _ => Ok(()),
        }
    }

    /// Only a person takes back a person's word.
    fn may_reopen(&mut self, id: &TaskId, event: &Event) -> Verdict {
        let decided = self.replayed.tasks.get(id).is_some_and(|task| task.workflow.word.is_some());
        if !decided {
            return Ok(());
        }
        let changes = &mut self.truth.changes;
        let taken = changes.taken_back.entry(id.clone()).or_default();
        *taken += 1;
        let released = changes.released.get(id).copied().unwrap_or(0);
        require(*taken <= released, Invariant::Word, || format!("nobody took it back: {}", line(event)))
    }

    /// An edit must be one that a person made.
    fn meant(&self, id: &TaskId, changed: &ChangedTask, event: &Event) -> Verdict {
        let says = |edit: &TaskEdit, task: &PlanTask| {
            let same = |said: &Option<String>, is: &String| said.as_ref().is_none_or(|said| said == is);
            same(&edit.text, &task.body)
                && edit.accept.as_ref().is_none_or(|accept| *accept == task.accept)
                && edit.after.as_ref().is_none_or(|after| *after == task.blocked_by)
                && (edit.timeout_ms.is_none() || edit.timeout_ms == task.timeout_ms)
        };
        let edits = &self.truth.changes.edits;
        let meant = edits.iter().any(|(of, edit)| of == id && says(edit, &changed.task));
        require(meant, Invariant::Changed, || format!("nobody changed it so: {}", line(event)))
    }

    /// Tasks that the plan no longer has are not started, and blockers of the current plan hold.
    fn may_begin(&self, tasks: &[TaskId], event: &Event) -> Verdict {
        let state = &self.replayed;
        let gone = tasks.iter().find(|id| state.tasks.get(*id).is_some_and(|task| task.workflow.removed));
        require(gone.is_none(), Invariant::Changed, || format!("{gone:?} is not in the plan: {}", line(event)))?;
        let blocked = tasks.first().map(|id| state.unmet_blockers(id)).unwrap_or_default();
        require(blocked.is_empty(), Invariant::Changed, || format!("waits for {blocked:?}: {}", line(event)))
    }

    /// Work is accepted by the checks that the plan has now, unless a person accepted it.
    fn by_present_checks(&self, id: &TaskId, event: &Event) -> Verdict {
        let (Some(task), Some(planned), Some(epoch)) =
            (self.replayed.tasks.get(id), self.replayed.plan_task(id), event.epoch)
        else {
            return Ok(());
        };
        if task.workflow.word == Some(Word::Done) || self.truth.ordered.contains(id) {
            return Ok(());
        }
        let run = self.truth.changes.run.get(&(id.clone(), epoch)).cloned().unwrap_or_default();
        require(run == planned.accept, Invariant::Changed, || {
            format!("accepted by {run:?}, the plan has {:?}: {}", planned.accept, line(event))
        })
    }

    /// A claim whose checks were changed while they ran is repeated once, as it was.
    pub(super) fn repeats_claim(&self, event: &Event) -> bool {
        let Body::Task(TaskEvent::TaskClaimed { attempt, channel, verdict, .. }) = &event.body else { return false };
        let Some(id) = &event.task else { return false };
        let claim = self.replayed.tasks.get(id).and_then(|task| task.claim.as_ref());
        claim.is_some_and(|claim| {
            let same = claim.attempt == *attempt && claim.channel == *channel && claim.verdict == *verdict;
            same && claim.outdated && Some(claim.epoch) == event.epoch && self.truth.changes.touched.contains(id)
        })
    }

    /// rekindle may itself claim work whose checks a person changed.
    pub(super) fn proves_anew(&self, id: &TaskId) -> bool {
        self.truth.changes.touched.contains(id)
    }

    /// After a reload the plan is the file, plus what a person added besides.
    pub(super) fn reloaded(&self, event: &Event) -> Verdict {
        let Body::Run(RunEvent::PlanReloaded(reload)) = &event.body else { return Ok(()) };
        let Some(file) = self.truth.changes.files.get(&reload.plan.hash) else {
            return Err((Invariant::Changed, format!("nobody has such a file: {}", line(event))));
        };
        let present = self.replayed.present_plan().map(|plan| plan.tasks).unwrap_or_default();
        for task in &file.tasks {
            let known = present.iter().find(|known| known.id == task.id);
            let same = known.is_some_and(|known| differences(known, task, file.explicit_waves).is_empty());
            require(same, Invariant::Changed, || format!("{} is not as the file has it: {known:?}", task.id))?;
        }
        let by_hand = |id: &TaskId| self.replayed.tasks.get(id).is_some_and(|task| task.workflow.by_hand);
        let strange = present.iter().find(|known| file.task(known.id.as_str()).is_none() && !by_hand(&known.id));
        require(strange.is_none(), Invariant::Changed, || format!("the file does not have {strange:?}"))
    }

    /// A person's word is not lost: only a reopening takes it back.
    pub(super) fn word_kept(&self, event: &Event, before: Option<Word>) -> Verdict {
        let now = event.task.as_ref().and_then(|id| self.replayed.tasks.get(id)).and_then(|task| task.workflow.word);
        let reopened =
            matches!(event.body, Body::Task(TaskEvent::TaskReopened { .. } | TaskEvent::WorkflowFailed { .. }));
        require(before.is_none() || now.is_some() || reopened, Invariant::Word, || {
            format!("a person's word was lost: {}", line(event))
        })
    }
}
