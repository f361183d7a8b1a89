//! Work that its agent chose to leave without a report: rekindle checks it itself. Checks that failed before and pass now
//! prove it; if they cannot tell, a person is asked, and also if the agent keeps ending in a question.

use super::stream::WORDS_MAX;
use super::{OpenStep, Reply, review, strategy};
use crate::cause::Cause;
use crate::event::{AgentSaid, PersonEvent, SessionEvent, TaskEvent};
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::last_words;
use crate::report::{Baseline, Channel};
use crate::role::Role;
use crate::state::{Attempt, Claim, State, TaskState};

/// The answer that accepts work as it is.
const DONE: &str = "done";

/// The cause of an attempt whose process ended with code 0 although one of its tasks is open; `None` while its checks are
/// run first.
pub(super) fn cause(step: &mut OpenStep<'_>, id: AttemptId) -> Option<Cause> {
    let Some(found) = step.state.attempts.get(&id) else { return Some(Cause::ExitedIncomplete) };
    if !by_its_own_choice(found) || strategy::lacks_report(step.state, found, &Cause::ExitedIncomplete) {
        return Some(Cause::ExitedIncomplete);
    }
    let looked = found.cli_session.looked;
    let open = step.state.open_tasks(id).into_iter();
    let open: Vec<TaskId> = open.filter(|task| step.state.tasks[task].state == TaskState::InProgress).collect();
    if !looked && !found.role.reviews() {
        let words = words_of(step.state, id);
        let shown: Vec<TaskId> = open.iter().filter(|task| may_be_done(step.state, id, task)).cloned().collect();
        for task in &shown {
            let result = words.clone();
            step.emit_task(
                task,
                TaskEvent::TaskClaimed { attempt: id, channel: Channel::Unreported, result, verdict: None },
            );
        }
        if !shown.is_empty() {
            return None;
        }
    }
    match open.first().cloned().filter(|_| asks(step.state, id)) {
        Some(task) => {
            let text = words_of(step.state, id).unwrap_or_default();
            let context =
                format!("its agent ended its turn with this question and no report; task {task} waits for you");
            ask(step, id, &task, text, context, false);
            Some(Cause::WaitingForInput)
        }
        None => Some(Cause::ExitedIncomplete),
    }
}

/// Whether an agent ended its turn itself, and well. A crash, a stop or a failure of its program is not its choice.
fn by_its_own_choice(found: &Attempt) -> bool {
    let exited_well = found.exit.as_ref().is_some_and(|exit| exit.code == Some(0) && exit.start_error.is_none());
    exited_well && found.stop.is_none() && found.cli_session.failure.is_none() && !found.cli_session.turn_failed
}

/// Whether checking can show that a task is complete. It cannot for a task without checks whose agent itself said that work
/// is left.
fn may_be_done(state: &State, id: AttemptId, task: &TaskId) -> bool {
    let provable = state.plan_task(task).is_some_and(|planned| !planned.is_unproven());
    provable || !state.attempts[&id].cli_session.leaves_work
}

fn words_of(state: &State, id: AttemptId) -> Option<String> {
    state.attempts.get(&id).map(|found| found.cli_session.last_words.clone()).filter(|words| !words.is_empty())
}

/// The checks of such work passed: it is accepted if one of them failed before, otherwise a person is asked.
pub(super) fn passed(step: &mut OpenStep<'_>, id: &TaskId, claim: &Claim, unproven: bool) {
    let task = &step.state.tasks[id];
    let baseline = task.workflow.baseline.clone().unwrap_or_else(|| Baseline {
        failed: None,
        unknown: Some("they were not run before the work began".to_owned()),
    });
    // Work whose agent asks for more is not accepted behind the person's back.
    let question = claim.result.as_deref().is_some_and(last_words::ends_in_question);
    let leaves_work = step.state.attempts.get(&claim.attempt).is_some_and(|found| found.cli_session.leaves_work);
    match &baseline.failed {
        Some(_) if !unproven && !question => review::proven(step, id, claim.result.clone(), false),
        _ if leaves_work => {}
        _ => {
            let why = match (unproven, &baseline.unknown) {
                (true, _) => "the task has neither checks nor artifacts".to_owned(),
                _ if baseline.failed.is_some() => "its checks pass now, but its agent ended with a question".to_owned(),
                (false, Some(reason)) => {
                    format!("its checks pass now; whether they passed before is not known: {reason}")
                }
                (false, None) => "its checks pass, but they passed before the work began too".to_owned(),
            };
            let said = match claim.result.as_deref().and_then(last_words::short) {
                Some(words) => format!("said \"{words}\""),
                None => "said nothing".to_owned(),
            };
            let text = format!(
                "Is task {id} done? Its agent ended its turn without a report and {said}. `{DONE}` takes the work as it is; any \
                 other answer goes to the agent."
            );
            ask(step, claim.attempt, id, text, why, true);
        }
    }
}

/// Whether an attempt ended in a question: with its program's own tool for one, or in two turns in a row, both its own or
/// one of them the last turn of the previous attempt.
fn asks(state: &State, id: AttemptId) -> bool {
    let Some(found) = state.attempts.get(&id) else { return false };
    if found.cli_session.asks {
        return true;
    }
    let question = |attempt: &Attempt| last_words::ends_in_question(&attempt.cli_session.last_words);
    let same_work =
        |before: &&Attempt| before.role == found.role && before.tasks.iter().any(|task| found.tasks.contains(task));
    let before = || state.attempts.range(..id).rev().map(|(_, attempt)| attempt).find(same_work);
    question(found)
        && (found.cli_session.asking >= 2
            || before()
                .is_some_and(|before| !before.cli_session.asked && by_its_own_choice(before) && question(before)))
}

fn ask(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId, text: String, context: String, takes_work: bool) {
    let question = QuestionId(step.state.last_question + 1);
    let options = if takes_work { vec![DONE.to_owned()] } else { Vec::new() };
    let agent = step.state.attempts.get(&id).map(|found| found.agent.to_string()).unwrap_or_default();
    let alert = if takes_work { text.clone() } else { format!("{agent} asks about {task}: {text}") };
    step.emit_task(task, PersonEvent::QuestionAsked { id: question, attempt: id, text, options, context, takes_work });
    let done = takes_work.then(|| format!("rekindle answer {question} {DONE}"));
    let choices = done.into_iter().chain([format!("rekindle answer {question} TEXT")]).collect();
    step.emit_task(task, PersonEvent::PersonAlerted { text: alert, choices });
}

/// Takes a person's answer: `done` to such a question accepts the work, once its checks pass. Returns whether that was the
/// case.
pub(super) fn answered(step: &mut OpenStep<'_>, question: QuestionId, answer: &str) -> bool {
    let Some(asked) = step.state.questions.get(&question) else { return false };
    let (id, attempt) = (asked.task.clone(), asked.attempt);
    let done = asked.takes_work && answer.trim().eq_ignore_ascii_case(DONE);
    let free = step.state.tasks.get(&id).is_some_and(|task| {
        let here = task.holder.is_none() || task.holder == Some(attempt);
        // It has been split since: its parts must be done, and the whole is checked when they have ended.
        let split = !task.workflow.parts.is_empty() && !step.state.blockers_met(&id);
        here && !split && !task.state.is_terminal() && !task.is_being_proven()
    });
    if done && free {
        let result = words_of(step.state, attempt);
        step.emit_task(&id, TaskEvent::TaskClaimed { attempt, channel: Channel::Operator, result, verdict: None });
    }
    done && free
}

/// Why a task that has used up its attempts failed, by what happened last.
pub(super) fn limit_reason(step: &OpenStep<'_>, id: &TaskId, role: Role, cause: &Cause) -> String {
    let task = &step.state.tasks[id];
    let check_fails = task.evidence.as_ref().is_some_and(|evidence| !evidence.passed()) && !role.reviews();
    if matches!(cause, Cause::Crashed { .. } | Cause::OutOfMemory { .. } | Cause::ShimLost) {
        return format!("{role}_crash_limit");
    }
    if check_fails { "check_never_passed".to_owned() } else { "attempts_used".to_owned() }
}

/// Records what a task's checks said before any work on it. Only the attempt that holds it can report this, and only once.
pub(super) fn baseline_seen(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId, baseline: Baseline) -> Reply {
    let wanted =
        step.state.tasks.get(task).is_some_and(|held| held.holder == Some(id) && held.workflow.baseline.is_none());
    if wanted {
        step.emit_task(task, TaskEvent::BaselineSeen(baseline));
        return Reply::Accepted;
    }
    Reply::Already
}

/// Records what an agent said last, if it is news.
pub(super) fn said(step: &mut OpenStep<'_>, said: AgentSaid) -> Reply {
    let Some(found) = step.state.attempts.get(&said.attempt).filter(|found| found.is_live()) else {
        return Reply::Already;
    };
    let text = crate::text::tail_bytes(&said.text, last_words::KEPT_BYTES).trim().to_owned();
    let known = &found.cli_session;
    let spent = known.words >= WORDS_MAX;
    if spent || text.is_empty() || (known.last_words == text && known.asks == said.asks) {
        return Reply::Already;
    }
    let attempt = said.attempt;
    step.emit_attempt(attempt, SessionEvent::AgentSaid(AgentSaid { text, ..said }));
    Reply::Accepted
}

/// Why a task failed for good, with what its last agent said.
pub(super) fn detail(step: &OpenStep<'_>, id: &TaskId, told: String) -> String {
    let holder = step.state.tasks[id].holder.and_then(|holder| step.state.attempts.get(&holder));
    last_words::with(&told, holder.and_then(|found| last_words::short(&found.cli_session.last_words)).as_deref())
}
