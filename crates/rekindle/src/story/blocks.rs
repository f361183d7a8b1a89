//! Messages that are a whole block: a session that pauses and resumes, a recovered coordinator, compactions. Their wording
//! is a promise to people who search for them in logs.

use std::fmt::Write;

use rekindle_core::event::{Body, CompactionNear, CompactionOver, Pause, Recovery, Resume, RunEvent, SessionEvent};
use rekindle_core::progress::Progress;
use rekindle_core::text::counted;

use crate::ui::date_time_zone;

/// What the messages name besides their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub state_file: &'a str,
    pub plan_file: &'a str,
}

/// The message of an event, where it has one.
pub(crate) fn block(body: &Body, names: Names<'_>) -> Option<String> {
    Some(match body {
        Body::Run(RunEvent::SessionPause(pause)) => paused(pause, names),
        Body::Run(RunEvent::SessionResume(resume)) => resumed(resume),
        Body::Run(RunEvent::CoordinatorRecovered(recovery)) => recovered(recovery, names),
        Body::Session(SessionEvent::CompactionStart(CompactionNear {
            compaction_number, context_remaining, ..
        })) => format!(
            "AUTO-COMPACTION #{compaction_number} - Context at {context_remaining}%\n\nState persisted to: {}",
            names.state_file
        ),
        Body::Session(SessionEvent::CompactionComplete(over)) => compacted(over, names),
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => return None,
    })
}

fn tasks(many: u32) -> String {
    counted(many as usize, "task", "tasks")
}

fn paused(pause: &Pause, names: Names<'_>) -> String {
    let Progress { complete, total, in_progress, pending_audit, compactions, .. } = pause.progress;
    let mut out = format!(
        "SESSION PAUSED - {}\n\nState persisted to: {}\nProgress: {complete}/{total} tasks complete\n\
         In progress: {}\nPending audit: {}\nCompactions this session: {compactions}",
        pause.reason.words(),
        names.state_file,
        tasks(in_progress),
        tasks(pending_audit),
    );
    // What is unknown, or will not happen, gets no line.
    let left = pause.remaining_percent.filter(|_| pause.resumes_at.is_some() || pause.resets_at.is_some());
    let left = left.map(|percent| format!("Session remaining: {percent}%"));
    let reset = pause.resets_at.map(|at| format!("Session resets at: {}", date_time_zone(at)));
    let resume = pause.resumes_at.map(|at| format!("Auto-resuming at: {}", date_time_zone(at)));
    let known: Vec<String> = [left, reset, resume].into_iter().flatten().collect();
    if !known.is_empty() {
        let _ = write!(out, "\n\n{}", known.join("\n"));
    }
    out
}

fn resumed(resume: &Resume) -> String {
    match resume.reason.is_some_and(rekindle_core::event::PauseReason::ends_by_itself) {
        true => "SESSION RESUMED - Reset complete".to_owned(),
        false => "SESSION RESUMED".to_owned(),
    }
}

fn recovered(recovery: &Recovery, names: Names<'_>) -> String {
    let Progress { complete, total, available, blocked, .. } = recovery.progress;
    format!(
        "COORDINATOR RECOVERY\n\nPrior state found: {}\nSaved at: {}\nEvents to reconcile: {}\nOrphaned agents: {}\n\
         Recent completions to validate: {}\n\nRecovery complete. Resuming normal operation.\n\n\
         Progress: {complete}/{total} tasks complete\nAvailable: {}\nBlocked: {}",
        names.state_file,
        date_time_zone(recovery.saved_at),
        recovery.events_reconciled,
        recovery.orphaned_agents,
        recovery.to_validate,
        tasks(available),
        tasks(blocked),
    )
}

fn compacted(over: &CompactionOver, names: Names<'_>) -> String {
    let Progress { complete, total, in_progress, pending_audit, relationships, .. } = over.progress;
    let number = over.compaction_number;
    let work = format!(
        "Completed: {complete}/{total} tasks\nRestoring: {}\nPending audit: {}",
        counted(in_progress as usize, "in-progress task", "in-progress tasks"),
        tasks(pending_audit),
    );
    if !over.full_reload {
        return format!("RESUMED - Compaction #{number} complete\n\n{work}");
    }
    let plan = names.plan_file;
    format!(
        "FULL PLAN RELOAD - Compaction #{number}\n\nPlan: {plan}\nTotal tasks: {total}\n\
         Completed: {complete} (verified against plan)\nRemaining: {}\n\
         Blocked graph rebuilt: {relationships} blocking relationships\n\n\
         RESUMED - Compaction #{number} complete (full plan reload)\n\nPlan reloaded: {plan}\nTotal tasks: {total}\n{work}\n\
         Blocked graph rebuilt: {relationships} relationships",
        over.progress.remaining()
    )
}

#[cfg(test)]
mod tests {
    use rekindle_core::event::PauseReason;
    use rekindle_core::ids::AttemptId;
    use rekindle_core::time::Time;

    use super::*;

    const NAMES: Names<'_> = Names { state_file: ".rekindle/state.db", plan_file: "plan.md" };

    fn progress() -> Progress {
        Progress {
            complete: 3,
            total: 9,
            in_progress: 2,
            pending_audit: 1,
            available: 1,
            blocked: 2,
            relationships: 4,
            compactions: 5,
        }
    }

    fn shown(body: &Body) -> String {
        block(body, NAMES).unwrap_or_else(|| panic!("{body:?} has a message"))
    }

    #[test]
    fn a_pause_says_why_how_far_and_until_when() {
        let pause = Pause {
            reason: PauseReason::UsageLimit,
            remaining_percent: Some(5),
            resets_at: Some(Time(1_763_200_000_000)),
            resumes_at: Some(Time(1_763_200_010_000)),
            probe: 1,
            progress: progress(),
        };
        insta::assert_snapshot!(shown(&Body::Run(RunEvent::SessionPause(pause.clone()))), @r"
        SESSION PAUSED - Usage limit

        State persisted to: .rekindle/state.db
        Progress: 3/9 tasks complete
        In progress: 2 tasks
        Pending audit: 1 task
        Compactions this session: 5

        Session remaining: 5%
        Session resets at: 2025-11-15T09:46:40+00:00
        Auto-resuming at: 2025-11-15T09:46:50+00:00
        ");
        let by_hand = Pause { reason: PauseReason::Interrupt, resets_at: None, resumes_at: None, ..pause };
        insta::assert_snapshot!(shown(&Body::Run(RunEvent::SessionPause(by_hand))), @r"
        SESSION PAUSED - User stop

        State persisted to: .rekindle/state.db
        Progress: 3/9 tasks complete
        In progress: 2 tasks
        Pending audit: 1 task
        Compactions this session: 5
        ");
    }

    #[test]
    fn a_resume_says_whether_a_reset_was_waited_for() {
        let resume =
            |reason| Body::Run(RunEvent::SessionResume(Resume { resume_count: 1, tasks_to_revalidate: 0, reason }));
        assert_eq!(shown(&resume(Some(PauseReason::UsageLimit))), "SESSION RESUMED - Reset complete");
        assert_eq!(shown(&resume(Some(PauseReason::Operator))), "SESSION RESUMED");
        assert_eq!(shown(&resume(None)), "SESSION RESUMED");
    }

    #[test]
    fn a_recovery_is_reported_whole() {
        let recovery = Recovery {
            orphaned_agents: 1,
            events_reconciled: 2,
            to_validate: 3,
            saved_at: Time(1_763_200_000_000),
            progress: progress(),
            ..Recovery::default()
        };
        insta::assert_snapshot!(shown(&Body::Run(RunEvent::CoordinatorRecovered(recovery))), @r"
        COORDINATOR RECOVERY

        Prior state found: .rekindle/state.db
        Saved at: 2025-11-15T09:46:40+00:00
        Events to reconcile: 2
        Orphaned agents: 1
        Recent completions to validate: 3

        Recovery complete. Resuming normal operation.

        Progress: 3/9 tasks complete
        Available: 1 task
        Blocked: 2 tasks
        ");
    }

    #[test]
    fn compactions_are_counted_and_every_second_reloads_the_plan() {
        let attempt = AttemptId(1);
        let start = Body::Session(SessionEvent::CompactionStart(CompactionNear {
            attempt,
            compaction_number: 1,
            context_remaining: 9,
        }));
        assert_eq!(shown(&start), "AUTO-COMPACTION #1 - Context at 9%\n\nState persisted to: .rekindle/state.db");
        let over = |compaction_number, full_reload| {
            Body::Session(SessionEvent::CompactionComplete(CompactionOver {
                attempt,
                compaction_number,
                full_reload,
                progress: progress(),
            }))
        };
        insta::assert_snapshot!(shown(&over(1, false)), @r"
        RESUMED - Compaction #1 complete

        Completed: 3/9 tasks
        Restoring: 2 in-progress tasks
        Pending audit: 1 task
        ");
        insta::assert_snapshot!(shown(&over(2, true)), @r"
        FULL PLAN RELOAD - Compaction #2

        Plan: plan.md
        Total tasks: 9
        Completed: 3 (verified against plan)
        Remaining: 6
        Blocked graph rebuilt: 4 blocking relationships

        RESUMED - Compaction #2 complete (full plan reload)

        Plan reloaded: plan.md
        Total tasks: 9
        Completed: 3/9 tasks
        Restoring: 2 in-progress tasks
        Pending audit: 1 task
        Blocked graph rebuilt: 4 relationships
        ");
    }
}
