//! The facts of a brief that the state itself knows. Workspace, disk, activity and nonce are added by the engine.

use std::collections::BTreeMap;

use super::facts::{Answered, Asked, CheckSeen, Decision, Facts, NamedTask, PlanLine, Standing, TaskFacts, TaskResult};
use super::persons;
use crate::activity::UnderWay;
use crate::ids::{AttemptId, TaskId};
use crate::plan::PlanTask;
use crate::review::focus_areas;
use crate::role::Role;
use crate::state::{Attempt, State, Task, TaskState};
use crate::view;

/// Completed items of earlier checkpoints and tasks are listed as not to be redone, up to this many: nobody reads more.
const REDO_MAX: usize = 100;

/// Plans with up to this many tasks have all completed tasks named in a brief. For a larger plan only those that ended last
/// are: a brief has no room for more, and going through every task of a huge plan for every prompt would cost more than the
/// prompt.
const LISTED_MAX: usize = 2_000;

/// How many attempts in a row are looked back on whose prompts never reached their session; a plan seldom gives a task more
/// attempts.
const UNHEARD_MAX: usize = 16;

/// What the state knows for the brief of an attempt; `None` if there is no such attempt.
pub fn facts_from(state: &State, id: AttemptId) -> Option<Facts> {
    facts_after(state, id, state.attempts.get(&id)?.cli_session.compactions)
}

/// The same for an agent in its nth compaction: a hook may ask before the stream reports it.
pub fn facts_after(state: &State, id: AttemptId, compactions: u32) -> Option<Facts> {
    let (attempt, run) = (state.attempts.get(&id)?, state.run.as_ref()?);
    let mut facts = Facts::new(attempt.agent.clone());
    facts.role = attempt.role;
    facts.epoch = attempt.epoch;
    facts.plan_path.clone_from(&run.plan_path);
    facts.plan_title.clone_from(&run.plan.title);
    facts.goal.clone_from(&run.plan.goal);
    facts.dispatch_rules.clone_from(&run.plan.dispatch_rules);
    facts.tasks = own_tasks(state, attempt);
    facts.completed_elsewhere = elsewhere(state, attempt);
    facts.asks_for_report = attempt.cli_session.asks_for_report;
    facts.resumed = attempt.cli_session.resumes.is_some();
    facts.under_way = under_way(state, id, attempt);
    facts.cut_off = attempt.cli_session.resumes.as_ref().and_then(|session| cut_off(state, id, session));
    if let Some(current) = facts.current().map(|task| task.id.clone()) {
        about_current(&mut facts, state, &current);
        about_review(&mut facts, state, &current);
    }
    facts.next_task = attempt.cli_session.resumes.is_some() && facts.is_first();
    if reloads(compactions) {
        facts.whole_plan = Some(whole_plan(state));
    }
    facts.decisions =
        state.notes.iter().map(|note| Decision { by: note.agent.clone(), text: note.text.clone() }).collect();
    for question in state.questions.values().filter(|asked| attempt.tasks.contains(&asked.task) && !asked.is_budget) {
        let (task, question, answer) = (question.task.clone(), question.text.clone(), question.answer.clone());
        match answer {
            Some(answer) => facts.answers.push(Answered { task, question, answer }),
            None => facts.open_questions.push(Asked { task, question }),
        }
    }
    facts.tells = persons::tells(state, id, attempt);
    facts.results = results(state, attempt, facts.current());
    facts.dead_ends = dead_ends(state, id, facts.current());
    facts.forgot = attempt.cli_session.resumes.as_ref().is_some_and(|session| was_compacted(state, id, session));
    Some(facts)
}

/// Whether the agent gets the whole plan again: with every second compaction, because the losses add up.
pub fn reloads(compactions: u32) -> bool {
    compactions > 0 && compactions.is_multiple_of(2)
}

/// The circles that earlier attempts at the current task went round in; this one's as well, in case it forgets.
fn dead_ends(state: &State, id: AttemptId, current: Option<&TaskFacts>) -> Vec<String> {
    let Some(current) = current else { return Vec::new() };
    let of_task = state.attempts.range(..=id).filter(|(_, attempt)| attempt.tasks.contains(&current.id));
    of_task.filter_map(|(_, attempt)| attempt.cli_session.stalled.clone()).collect()
}

/// The results of the plan's other tasks, in the plan's order, where they are known in full. For older tasks the engine adds
/// those that the current task waited for.
fn results(state: &State, attempt: &Attempt, current: Option<&TaskFacts>) -> Vec<TaskResult> {
    let result = |(id, found): (&TaskId, &Task)| {
        let result = found.result.clone().filter(|result| !result.trim().is_empty())?;
        let waited = current.is_some_and(|current| current.blocked_by.contains(id));
        let needed = waited || attempt.tasks.contains(id);
        Some(TaskResult { id: id.clone(), result, needed })
    };
    let others = ended_in_order(state)
        .filter(|(id, task)| task.state == TaskState::Complete && Some(*id) != current.map(|current| &current.id));
    others.filter_map(result).collect()
}

/// The tasks that ended last, in the plan's order.
fn ended_in_order(state: &State) -> impl Iterator<Item = (&TaskId, &Task)> {
    let ended = state.ended.iter().filter_map(|id| state.tasks.get_key_value(id));
    let by_index: BTreeMap<usize, (&TaskId, &Task)> = ended.map(|found| (found.1.index, found)).collect();
    by_index.into_values()
}

/// Whether a session was compacted in an attempt before this one.
fn was_compacted(state: &State, id: AttemptId, session: &str) -> bool {
    let mut before = state.attempts.range(..id).map(|(_, attempt)| &attempt.cli_session);
    before.any(|cli_session| cli_session.compactions > 0 && cli_session.session.as_deref() == Some(session))
}

/// What the newest attempt before this one with the same session was in the middle of.
fn cut_off(state: &State, id: AttemptId, session: &str) -> Option<String> {
    let before = state.attempts.range(..id).rev().map(|(_, attempt)| &attempt.cli_session);
    let mut same = before.filter(|cli_session| cli_session.session.as_deref() == Some(session));
    same.next().and_then(|cli_session| cli_session.cut_off.clone())
}

/// What the previous attempt left of its session: the same session, or for a fresh start the last one at its first task. If
/// that attempt's own prompt never reached its session, what the prompt said is still unknown to it.
fn under_way(state: &State, id: AttemptId, attempt: &Attempt) -> UnderWay {
    let before = |past: &Attempt| match &attempt.cli_session.resumes {
        Some(session) => past.cli_session.session.as_ref() == Some(session),
        None => past.role == attempt.role && past.tasks.first().is_some_and(|task| attempt.tasks.first() == Some(task)),
    };
    let mut found = state.attempts.range(..id).rev().map(|(_, past)| past).filter(|past| before(past));
    let Some(newest) = found.next() else { return UnderWay::default() };
    let mut under_way = newest.cli_session.under_way.clone();
    for earlier in found.take(UNHEARD_MAX) {
        if !under_way.unheard {
            break;
        }
        under_way = UnderWay {
            unheard: earlier.cli_session.under_way.unheard,
            ..under_way.after(earlier.cli_session.under_way.clone())
        };
    }
    under_way
}

/// Tasks the agent has completed before, in the plan's order, then those of this attempt in its own.
fn own_tasks(state: &State, attempt: &Attempt) -> Vec<TaskFacts> {
    // Only an agent named in the plan can have had other tasks.
    let named = attempt.tasks.first().and_then(|id| state.plan_task(id)).is_some_and(|task| task.agent.is_some());
    let planned = state.run.iter().filter(|_| named).flat_map(|run| &run.plan.tasks);
    let earlier = planned
        .filter(|task| task.agent.as_ref() == Some(&attempt.agent))
        .map(|task| &task.id)
        .filter(|id| !attempt.tasks.contains(id) && completed(state, id));
    let mut has_current = false;
    let mut facts = Vec::new();
    for id in earlier.chain(&attempt.tasks) {
        let (Some(task), Some(planned)) = (state.tasks.get(id), state.plan_task(id)) else {
            continue;
        };
        let standing = match task.state {
            TaskState::Complete | TaskState::Skipped => Standing::Completed,
            TaskState::Failed => continue,
            TaskState::Pending | TaskState::InProgress | TaskState::Blocked if task.is_in_parts() => continue,
            TaskState::Pending | TaskState::InProgress | TaskState::Blocked if has_current => Standing::Pending,
            TaskState::Pending | TaskState::InProgress | TaskState::Blocked => Standing::Current,
        };
        has_current |= standing == Standing::Current;
        facts.push(TaskFacts {
            id: id.clone(),
            title: planned.title.clone(),
            standing,
            body: planned.body.clone(),
            accept: planned.accept.clone(),
            artifacts: planned.artifacts.clone(),
            reading: planned.reading.clone(),
            blocked_by: planned.blocked_by.clone(),
        });
    }
    facts
}

fn completed(state: &State, id: &TaskId) -> bool {
    state.tasks.get(id).is_some_and(|task| task.state == TaskState::Complete)
}

fn elsewhere(state: &State, attempt: &Attempt) -> Vec<NamedTask> {
    let tasks = state.run.as_ref().map(|run| run.plan.tasks.as_slice()).unwrap_or_default();
    let other = |task: &&PlanTask| {
        completed(state, &task.id) && task.agent.as_ref() != Some(&attempt.agent) && !attempt.tasks.contains(&task.id)
    };
    let named = |task: &PlanTask| NamedTask { id: task.id.clone(), title: task.title.clone() };
    if tasks.len() <= LISTED_MAX {
        return tasks.iter().filter(other).map(named).collect();
    }
    let ended = ended_in_order(state).filter_map(|(id, _)| state.plan_task(id));
    ended.filter(other).map(named).collect()
}

fn about_current(facts: &mut Facts, state: &State, id: &TaskId) {
    let task = &state.tasks[id];
    facts.attempt = task.tries().max(1);
    facts.attempt_limit = state.attempt_limit(id);
    let at_it = state.attempts.values().filter(|attempt| attempt.tasks.contains(id));
    facts.began_at = at_it.map(|attempt| attempt.dispatched_at).min();
    facts.cause.clone_from(&task.last_cause);
    // A developer's checkpoint does not help the reviewer of its work.
    facts.checkpoint = task.checkpoint.clone().filter(|_| !facts.role.reviews());
    // Parts that became tasks are in the list of tasks themselves.
    if task.workflow.parts.is_empty() {
        facts.split.clone_from(&task.split);
    }
    facts.advise_split = facts.attempt > 1
        && (facts.attempt >= facts.attempt_limit || task.last_cause.as_ref().is_some_and(advises_split));
    if let Some(checkpoint) = &facts.checkpoint {
        let items = checkpoint.completed.iter().take(REDO_MAX);
        facts.do_not_redo = items.cloned().collect();
    }
    if let Some(evidence) = &task.evidence {
        facts.disk.artifacts_missing.clone_from(&evidence.missing_artifacts);
        facts.disk.checks = evidence
            .checks
            .iter()
            .chain(evidence.introduced())
            .map(|result| CheckSeen { task: id.clone(), result: result.clone(), just_now: false })
            .collect();
    }
}

fn about_review(facts: &mut Facts, state: &State, id: &TaskId) {
    let task = &state.tasks[id];
    facts.review.rework.clone_from(&task.workflow.rework);
    facts.review.verdicts.clone_from(&task.workflow.verdicts);
    facts.review.result = task.result.clone().filter(|_| facts.role.reviews());
    if facts.role == Role::Critic {
        facts.review.focus = focus_areas(&state.disagreements);
    }
    let of_task = state.plan_task(id).map(|planned| planned.environments.clone()).unwrap_or_default();
    let of_plan = || state.run.as_ref().and_then(|run| run.plan.settings.environments.clone()).unwrap_or_default();
    facts.review.environments = if of_task.is_empty() { of_plan() } else { of_task };
}

/// Every task of the pinned plan with its state, and where the two contradict each other.
fn whole_plan(state: &State) -> Vec<PlanLine> {
    let planned = state.run.iter().flat_map(|run| &run.plan.tasks);
    let line = |planned: &PlanTask| {
        let (shown, _) = view::shown_state(state, &planned.id);
        PlanLine {
            id: planned.id.clone(),
            title: planned.title.clone(),
            state: shown.to_owned(),
            blocked_by: planned.blocked_by.clone(),
            accept: planned.accept.clone(),
            artifacts: planned.artifacts.clone(),
            doubt: doubt(state, planned),
        }
    };
    planned.map(line).collect()
}

/// What contradicts a task's state, according to the plan and to what was last seen of it.
fn doubt(state: &State, planned: &PlanTask) -> Option<String> {
    let task = state.tasks.get(&planned.id)?;
    let begun = matches!(task.state, TaskState::Complete | TaskState::InProgress);
    let unmet = state.unmet_blockers(&planned.id);
    if begun && !unmet.is_empty() {
        let unmet: Vec<&str> = unmet.iter().map(|id| id.as_str()).collect();
        return Some(format!("it was started although {} is not complete", unmet.join(", ")));
    }
    let evidence = task.evidence.as_ref().filter(|evidence| task.state == TaskState::Complete && !evidence.passed());
    if let Some(evidence) = evidence {
        return Some(format!("it is complete, but when its checks were last run: {}", evidence.complaint()));
    }
    if task.state == TaskState::Complete && task.workflow.unreported {
        return Some("its agent reported nothing of it".to_owned());
    }
    (task.state == TaskState::Complete && task.unproven).then(|| "it is complete on a word alone".to_owned())
}

/// A task that ran out of context or time once is likely to do so again in one piece.
fn advises_split(cause: &crate::cause::Cause) -> bool {
    use crate::cause::Cause;
    matches!(cause, Cause::Compacted | Cause::CompactionLoop | Cause::ContextExhausted | Cause::TimedOut)
}
