//! What agents report and what the checks found. An agent speaks only for its own attempt, and its word alone completes
//! nothing.

use super::{About, OpenStep, Reply, attempt, health, review, session, setup, split, stream};
use crate::cause::Cause;
use crate::event::{AttemptEvent, PersonEvent, TaskEvent};
use crate::ids::{AttemptId, Epoch, QuestionId, TaskId};
use crate::report::{Channel, Evidence, OVER, Report};
use crate::review::{GivenVerdict, Stage, Verdict};
use crate::role::Role;
use crate::state::{AttemptPhase, Claim, Task, TaskState};

/// Refused reports that are written into the log for one attempt; a confused agent may send any number.
const REFUSALS_LOGGED: u32 = 20;

pub(super) fn reported(
    step: &mut OpenStep<'_>,
    id: AttemptId,
    epoch: Epoch,
    channel: Channel,
    report: Report,
) -> Reply {
    let report = named(step, id, report);
    if let Some(task) = handed_on_by(step, id, epoch, &report) {
        return Reply::Verifying { task, epoch };
    }
    if let Err(refusal) = may_report(step, id, epoch, &report) {
        return match refusal {
            Refusal::Already => Reply::Already,
            Refusal::Because(reason) => refuse(step, id, reason),
        };
    }
    stream::reported(step, id);
    match report {
        Report::Start { task } => start(step, id, &task),
        Report::Done { task, .. } if step.state.role_of(&task).reviews() => {
            let role = step.state.role_of(&task);
            let verb = if role == Role::Critic { "review" } else { "audit" };
            refuse(
                step,
                id,
                format!("you are the {role} of task {task}: give a verdict (rekindle {verb} pass|fail {task})"),
            )
        }
        Report::Done { task, result } => claim(step, id, &task, channel, result),
        Report::Verdict { task, role, verdict, findings } => {
            let Some(task) = task else { return Reply::Already };
            // A remediation agent does not judge: it reports that it is done. No other role may do that.
            if role == Role::Remediation && step.state.role_of(&task) == role {
                return match verdict {
                    Verdict::Pass => claim(step, id, &task, channel, None),
                    Verdict::Fail | Verdict::Blocked => give_up(step, id, &task, findings.issues.join("; ")),
                };
            }
            let given = GivenVerdict { attempt: id, role, verdict, findings };
            review::verdict(step, id, &task, channel, given)
        }
        Report::Fail { task, reason } => give_up(step, id, &task, reason),
        Report::Checkpoint { task, checkpoint } => {
            step.emit_task(&task, TaskEvent::CheckpointSaved { checkpoint });
            session::checkpoint_saved(step, id);
            Reply::Accepted
        }
        Report::Ask { task, text, options, context } => ask(step, id, &task, text, options, context),
        Report::Split { task, subtasks } => split::split(step, &task, Some(id), subtasks),
        Report::Note { text } if noted(step, id, &text) => Reply::Already,
        Report::Note { text } => {
            step.emit_attempt(id, PersonEvent::NoteRecorded { text });
            Reply::Accepted
        }
    }
}

/// Completes a report: a verdict without a task is about the attempt's own task; an auditor's verdict is the health
/// auditor's if the attempt has that role.
fn named(step: &OpenStep<'_>, id: AttemptId, report: Report) -> Report {
    let Report::Verdict { task, role, verdict, findings } = report else { return report };
    let found = step.state.attempts.get(&id);
    let task = task.or_else(|| found.and_then(|found| found.tasks.first().cloned()));
    let role = match found.map(|found| found.role) {
        Some(Role::HealthAuditor) if role == Role::Auditor => Role::HealthAuditor,
        _ => role,
    };
    Report::Verdict { task, role, verdict, findings }
}

/// The task of a claim that this attempt made before and that is now with its reviewers: if the claim is repeated after a
/// lost answer, it gets the same answer.
fn handed_on_by(step: &OpenStep<'_>, id: AttemptId, epoch: Epoch, report: &Report) -> Option<TaskId> {
    let Report::Done { task, .. } = report else { return None };
    let held = step.state.tasks.get(task)?;
    let own = step.state.attempts.get(&id)?.epoch == epoch && held.last_attempts.at(Stage::Implement) == Some(id);
    let with_reviewers = held.workflow.stage != Stage::Implement && !held.state.is_terminal();
    (own && held.epoch == epoch && with_reviewers).then(|| task.clone())
}

/// Whether an attempt has noted the same before: a call that is repeated after a lost answer is one note.
fn noted(step: &OpenStep<'_>, id: AttemptId, text: &str) -> bool {
    let Some(found) = step.state.attempts.get(&id) else { return false };
    let same = |note: &&crate::state::Note| note.agent.as_ref() == Some(&found.agent) && note.text == text;
    step.state.notes.iter().rev().take_while(|note| note.time >= found.dispatched_at).any(|note| same(&note))
}

/// Whether an attempt's own work completed a task that was then reopened only to be verified: an agent that reports it
/// again, because the answer was lost with a coordinator, is told that it is complete.
fn was_completed_by(held: &Task, id: AttemptId, epoch: Epoch) -> bool {
    let verified = held.workflow.validating && held.claim.is_some() || held.state == TaskState::Complete;
    held.epoch != epoch && verified && held.last_attempts.at(Stage::Implement) == Some(id)
}

enum Refusal {
    Already,
    Because(String),
}

/// The fence: the attempt must be the newest that holds the task, and must not be over.
fn may_report(step: &OpenStep<'_>, id: AttemptId, epoch: Epoch, report: &Report) -> Result<(), Refusal> {
    let over = |what: String| Err(Refusal::Because(format!("{what}; {OVER}")));
    let Some(found) = step.state.attempts.get(&id) else {
        return over(format!("attempt {id} is not part of this run"));
    };
    if found.epoch != epoch {
        return over(format!("epoch {epoch} is over"));
    }
    if let Some(task) = report.task() {
        if !found.tasks.contains(task) {
            let own: Vec<String> = found.tasks.iter().map(ToString::to_string).collect();
            return Err(Refusal::Because(format!("task {task} is not yours; yours: {}", own.join(", "))));
        }
        let held = &step.state.tasks[task];
        if held.state == TaskState::Complete && held.epoch == epoch {
            return Err(Refusal::Already);
        }
        let given = |verdict: &Verdict| held.workflow.verdicts.iter().any(|g| g.attempt == id && g.verdict == *verdict);
        if matches!(report, Report::Verdict { verdict, .. } if given(verdict)) {
            return Err(Refusal::Already);
        }
        let parts = &held.workflow.parts;
        let again = matches!(report, Report::Split { subtasks, .. } if *subtasks == held.split);
        if held.epoch == epoch && again && !parts.is_empty() {
            return Err(Refusal::Already);
        }
        if held.epoch == epoch
            && parts.iter().any(|part| step.state.tasks.get(part).is_some_and(|part| part.holder == Some(id)))
        {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            let reason = format!("task {task} was split: report its parts instead, in order: {}", parts.join(", "));
            return Err(Refusal::Because(reason));
        }
        if matches!(report, Report::Done { .. }) && was_completed_by(held, id, epoch) {
            return Err(Refusal::Already);
        }
        if held.epoch != epoch || held.holder != Some(id) {
            return over(format!("task {task} is no longer yours: epoch {epoch} is over"));
        }
        // Its work is accepted: nothing that its agent says can change that any more.
        if held.workflow.merging.is_some() && !matches!(report, Report::Done { .. }) {
            return Err(Refusal::Already);
        }
    }
    if found.phase == AttemptPhase::Ended {
        return over(format!("epoch {epoch} is over"));
    }
    Ok(())
}

pub(super) fn refuse(step: &mut OpenStep<'_>, id: AttemptId, reason: String) -> Reply {
    if step.state.attempts.get(&id).is_some_and(|attempt| attempt.refused < REFUSALS_LOGGED) {
        step.emit_attempt(id, AttemptEvent::ReportRefused { attempt: id, reason: reason.clone() });
    }
    Reply::Refused { reason }
}

fn start(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId) -> Reply {
    if step.state.tasks[task].state != TaskState::Pending {
        return Reply::Already;
    }
    begin(step, id, task);
    Reply::Accepted
}

/// Hands a task over: it is in progress from now on and counts as one attempt.
pub(super) fn begin(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId) {
    let number = step.state.tasks[task].tries() + 1;
    let known = step.state.attempts.get(&id).and_then(|attempt| attempt.numbers.get(task).copied());
    let nth = known.unwrap_or(step.state.tasks[task].begun + 1);
    step.emit(
        About { attempt: Some(id), task: Some(task.clone()), epoch: None },
        TaskEvent::TaskStarted { attempt: id, number, nth },
    );
}

fn claim(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId, channel: Channel, result: Option<String>) -> Reply {
    let epoch = step.state.tasks[task].epoch;
    if !step.state.tasks[task].is_being_proven() {
        if step.state.tasks[task].state == TaskState::Pending {
            begin(step, id, task);
        }
        step.emit_task(task, TaskEvent::TaskClaimed { attempt: id, channel, result, verdict: None });
    }
    Reply::Verifying { task: task.clone(), epoch }
}

fn give_up(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId, reason: String) -> Reply {
    if step.state.tasks[task].state == TaskState::Pending {
        begin(step, id, task);
    }
    step.emit_task(task, TaskEvent::TaskFailReported { attempt: id, reason });
    attempt::retry_or_end(step, task, &Cause::ExitedIncomplete, true);
    go_on(step, id);
    Reply::Accepted
}

fn ask(
    step: &mut OpenStep<'_>,
    id: AttemptId,
    task: &TaskId,
    text: String,
    options: Vec<String>,
    context: String,
) -> Reply {
    let same =
        step.state.questions.iter().find(|(_, known)| known.attempt == id && known.task == *task && known.text == text);
    if let Some((known, _)) = same {
        return Reply::Asked(*known);
    }
    if step.state.tasks[task].state == TaskState::Pending {
        begin(step, id, task);
    }
    let question = QuestionId(step.state.last_question + 1);
    let alert = format!("{} asks about {task}: {text}", step.state.attempts[&id].agent);
    step.emit_task(
        task,
        PersonEvent::QuestionAsked { id: question, attempt: id, text, options, context, takes_work: false },
    );
    step.emit_task(
        task,
        PersonEvent::PersonAlerted { text: alert, choices: vec![format!("rekindle answer {question} TEXT")] },
    );
    Reply::Asked(question)
}

/// The checks of a claim have ended. They can decide only the claim they were run for.
pub(super) fn checks_finished(step: &mut OpenStep<'_>, id: &TaskId, epoch: Epoch, mut evidence: Evidence) -> Reply {
    let Some(claim) = step.state.tasks.get(id).and_then(|task| task.claim.clone()) else {
        return Reply::Already;
    };
    if claim.epoch != epoch {
        return Reply::Already;
    }
    if claim.outdated {
        // The task's checks were changed while they ran: the new ones decide.
        let Claim { attempt, channel, result, verdict, .. } = claim;
        step.emit_task(id, TaskEvent::TaskClaimed { attempt, channel, result, verdict });
        return Reply::Accepted;
    }
    health::classify(step.state, &mut evidence);
    let passed = evidence.passed();
    let unproven = evidence.checks.is_empty()
        && step.state.plan_task(id).is_none_or(|task| task.artifacts.is_empty() && task.accept.is_empty());
    step.emit_task(id, TaskEvent::ChecksFinished { evidence: evidence.clone(), passed });
    setup::checked(step, id);
    health::after_claim(step, id, &evidence);
    review::checked(step, id, &claim, &evidence, unproven);
    if passed {
        go_on(step, claim.attempt);
    }
    stream::after_turn(step, claim.attempt);
    attempt::end_if_settled(step, claim.attempt);
    Reply::Accepted
}

/// Starts the next task of a named agent as soon as the previous one has ended.
pub(super) fn go_on(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(found) = step.state.attempts.get(&id) else {
        return;
    };
    // An agent whose context is nearly full gets no further task.
    if !found.is_live() || found.stop.is_some() || found.cli_session.preparing.is_some() {
        return;
    }
    let open = step.state.open_tasks(id);
    if open.iter().any(|task| step.state.tasks[task].state == TaskState::InProgress) {
        return;
    }
    if let Some(next) = open.into_iter().find(|task| step.state.blockers_met(task)) {
        begin(step, id, &next);
    }
}
