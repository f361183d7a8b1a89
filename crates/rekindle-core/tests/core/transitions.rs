//! Transition tests: one situation each, with everything that is decided in it.

use insta::assert_snapshot;
use rekindle_core::brief;
use rekindle_core::decide::Reply;
use rekindle_core::effect::Effect;
use rekindle_core::event::PauseReason;
use rekindle_core::ids::{AttemptId, Epoch, QuestionId};
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{Channel, Checkpoint, Exit, OVER, Report};
use rekindle_core::state::{RunPhase, TaskState};

use crate::harness::{Story, exit_code, lines, task};

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";
const CHAIN: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\n### T2: second\n- blocked by: T1\n- accept: `true`\n";
const NAMED: &str = "# Demo\n\n### T1: first\n- agent: backend\n- accept: `true`\n\n### T2: second\n- agent: backend\n- blocked by: T1\n- accept: `true`\n";

#[test]
fn a_claim_is_proven_before_a_task_is_complete() {
    let mut story = Story::of(ONE);
    story.started(1);
    assert_snapshot!(lines(&story.done(1, "T1")), @r#"
    task_claimed T1 developer-T1 e1 {"attempt":1,"door":"command","result":"as asked"}
    -> RunChecks { task: TaskId("T1"), epoch: Epoch(1) }
    = Verifying { task: TaskId("T1"), epoch: Epoch(1) }
    "#);
    assert_snapshot!(lines(&story.checked("T1", true)), @r#"
    checks_finished T1 developer-T1 e1 
    task_completed T1 developer-T1 e1 {"result":"as asked","unproven":false}
    "#);
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":0,"out_of_memory":false,"signal":null,"start_error":null}}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"completed"}
    run_finished  {"complete":1,"failed":0,"outcome":"complete","skipped":0,"unreachable":0}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    -> TellEnd { text: "the run is over, complete: 1 of 1 task complete" }
    "#);
}

#[test]
fn a_lie_is_refused_and_the_work_is_handed_over() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", false)), @"checks_finished T1 developer-T1 e1");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":0,"out_of_memory":false,"signal":null,"start_error":null}}
    task_claimed T1 developer-T1 e1 {"attempt":1,"door":"unreported","result":null}
    -> RunChecks { task: TaskId("T1"), epoch: Epoch(1) }
    "#);
    assert_snapshot!(lines(&story.checked("T1", false)), @r#"
    checks_finished T1 developer-T1 e1 
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"exited_incomplete"}
    task_requeued T1 developer-T1 e1 {"cause":"exited_incomplete","counted":true,"not_before":1701,"reason":"it ended by itself before its work was complete; check `true` exited with 1; 1 of 3 attempts used, next after 701ms"}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
    story.after_ms(10_000);
    assert_snapshot!(lines(&story.input(Input::TimePassed)), @r#"
    developer_dispatched T1 developer-T1 e2 {"attempt":2,"blocked_by":[],"cli":"default","reason":"fresh: it ended by itself before its work was complete","resumed":true,"role":"developer","strategy":"fresh","tasks":["T1"]}
    developer_redispatched T1 developer-T1 e2 {"attempt":2,"role":"developer"}
    task_started T1 developer-T1 e2 {"attempt":2,"nth":2,"number":2}
    -> LaunchAttempt { attempt: AttemptId(2) }
    "#);
}

#[test]
fn an_exit_waits_for_the_checks_of_what_was_claimed() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @r#"attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":0,"out_of_memory":false,"signal":null,"start_error":null}}"#);
    assert_snapshot!(lines(&story.checked("T1", true)), @r#"
    checks_finished T1 developer-T1 e1 
    task_completed T1 developer-T1 e1 {"result":"as asked","unproven":false}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"completed"}
    run_finished  {"complete":1,"failed":0,"outcome":"complete","skipped":0,"unreachable":0}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    -> TellEnd { text: "the run is over, complete: 1 of 1 task complete" }
    "#);
}

#[test]
fn evidence_without_a_claim_completes_nothing() {
    let mut story = Story::of(ONE);
    story.started(1);
    assert_snapshot!(lines(&story.checked("T1", true)), @"= Already");
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":0,"out_of_memory":false,"signal":null,"start_error":null}}
    task_claimed T1 developer-T1 e1 {"attempt":1,"door":"unreported","result":null}
    -> RunChecks { task: TaskId("T1"), epoch: Epoch(1) }
    "#);
    assert_snapshot!(lines(&story.checked("T1", false)), @r#"
    checks_finished T1 developer-T1 e1 
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"exited_incomplete"}
    task_requeued T1 developer-T1 e1 {"cause":"exited_incomplete","counted":true,"not_before":1701,"reason":"it ended by itself before its work was complete; check `true` exited with 1; 1 of 3 attempts used, next after 701ms"}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Pending);
}

#[test]
fn attempts_are_used_up_and_dependants_stay_blocked() {
    let mut story = Story::of(CHAIN);
    for attempt in 1..=3 {
        story.started(attempt);
        let end = story.exited(attempt, exit_code(7));
        if attempt == 3 {
            assert_snapshot!(lines(&end), @r#"
            attempt_exited T1 developer-T1 e3 {"attempt":3,"exit":{"code":7,"out_of_memory":false,"signal":null,"start_error":null}}
            agent_crashed T1 developer-T1 e3 {"attempt":3,"code":7,"signal":null}
            attempt_ended T1 developer-T1 e3 {"attempt":3,"cause":"crashed","code":7,"signal":null}
            workflow_failed T1 developer-T1 e3 {"detail":"it crashed with exit code 7; 3 of 3 attempts used","reason":"developer_crash_limit"}
            person_alerted T1 e3 {"choices":["rekindle why T1","rekindle task retry T1","rekindle task skip T1","rekindle task split T1 'FIRST PART' 'SECOND PART'","clarify it: rekindle task edit T1 --text TEXT (or --timeout, --accept)"],"text":"task T1 failed: it crashed with exit code 7; 3 of 3 attempts used"}
            run_finished  {"complete":0,"failed":1,"outcome":"failed","skipped":0,"unreachable":1}
            -> LeaveWorkspace { attempt: AttemptId(3) }
            -> AlertPerson { text: "task T1 failed: it crashed with exit code 7; 3 of 3 attempts used", choices: ["rekindle why T1", "rekindle task retry T1", "rekindle task skip T1", "rekindle task split T1 'FIRST PART' 'SECOND PART'", "clarify it: rekindle task edit T1 --text TEXT (or --timeout, --accept)"], task: Some(TaskId("T1")) }
            -> TellEnd { text: "the run is over, failed: 0 of 2 tasks complete, 1 failed, 1 out of reach" }
            "#);
        }
        story.after_ms(600_000).input(Input::TimePassed);
    }
    assert_eq!(story.state.tasks[&task("T2")].attempts, 0);
}

#[test]
fn a_timeout_stops_and_is_the_cause() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.after_ms(15 * 60 * 1000);
    assert_snapshot!(lines(&story.input(Input::TimePassed)), @r#"
    developer_timeout T1 developer-T1 e1 {"attempt":1,"role":"developer","timeout_ms":900000}
    stop_ordered T1 developer-T1 e1 {"at_once":false,"attempt":1,"cause":"timed_out"}
    -> StopAttempt { attempt: AttemptId(1), at_once: false }
    "#);
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(9), ..Exit::default() })), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":null,"out_of_memory":false,"signal":9,"start_error":null}}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"timed_out"}
    task_requeued T1 developer-T1 e1 {"cause":"timed_out","counted":true,"not_before":901701,"reason":"it ran out of the time allowed for the task; 1 of 3 attempts used, next after 701ms"}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
}

#[test]
fn a_named_agent_goes_on_with_its_next_task_at_once() {
    let mut story = Story::of(NAMED);
    assert_eq!(story.state.attempts[&AttemptId(1)].tasks.len(), 2);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", true)), @r#"
    checks_finished T1 backend e1 
    task_completed T1 backend e1 {"result":"as asked","unproven":false}
    task_started T2 backend e1 {"attempt":1,"nth":1,"number":1}
    "#);
    assert_snapshot!(lines(&story.exited(1, exit_code(1))), @r#"
    attempt_exited T2 backend e1 {"attempt":1,"exit":{"code":1,"out_of_memory":false,"signal":null,"start_error":null}}
    agent_crashed T2 backend e1 {"attempt":1,"code":1,"signal":null}
    attempt_ended T2 backend e1 {"attempt":1,"cause":"crashed","code":1,"signal":null}
    task_requeued T2 backend e1 {"cause":"crashed","code":1,"counted":true,"not_before":1611,"reason":"it crashed with exit code 1; 1 of 3 attempts used, next after 611ms","signal":null}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
    story.after_ms(10_000).input(Input::TimePassed);
    assert_eq!(story.state.attempts[&AttemptId(2)].tasks, [task("T2")]);
    assert_eq!(story.state.attempts[&AttemptId(2)].epoch, Epoch(2));
}

#[test]
fn an_older_epoch_and_a_foreign_task_are_refused() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n");
    story.started(1);
    assert_snapshot!(lines(&story.report(1, Report::Done { task: task("T2"), result: None })), @r#"
    report_refused T1 developer-T1 e1 {"attempt":1,"reason":"task T2 is not yours; yours: T1"}
    = Refused { reason: "task T2 is not yours; yours: T1" }
    "#);
    story.exited(1, exit_code(1));
    story.after_ms(10_000).input(Input::TimePassed);
    assert_snapshot!(lines(&story.done(1, "T1")), @r#"
    report_refused T1 developer-T1 e1 {"attempt":1,"reason":"task T1 is no longer yours: epoch 1 is over; stop working and exit"}
    = Refused { reason: "task T1 is no longer yours: epoch 1 is over; stop working and exit" }
    "#);
    let stale = Input::Reported {
        attempt: AttemptId(3),
        epoch: Epoch(1),
        channel: Channel::Command,
        report: Report::Done { task: task("T1"), result: None },
    };
    assert_snapshot!(lines(&story.input(stale)), @r#"
    report_refused T1 developer-T1 e2 {"attempt":3,"reason":"epoch 1 is over; stop working and exit"}
    = Refused { reason: "epoch 1 is over; stop working and exit" }
    "#);
}

#[test]
fn terminal_states_are_absorbing_for_agents() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    assert_snapshot!(lines(&story.done(1, "T1")), @"= Already");
    assert_snapshot!(lines(&story.report(1, Report::Fail { task: task("T1"), reason: "no".into() })), @"= Already");
    assert_snapshot!(lines(&story.checked("T1", false)), @"= Already");
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
}

#[test]
fn a_question_parks_the_task_and_its_answer_opens_it() {
    let mut story = Story::of(ONE);
    story.started(1);
    let ask =
        Report::Ask { task: task("T1"), text: "Which?".into(), options: vec!["a".into()], context: String::new() };
    assert_snapshot!(lines(&story.report(1, ask)), @r#"
    question_asked T1 developer-T1 e1 {"attempt":1,"context":"","id":1,"options":["a"],"text":"Which?"}
    person_alerted T1 developer-T1 e1 {"choices":["rekindle answer 1 TEXT"],"text":"developer-T1 asks about T1: Which?"}
    -> AlertPerson { text: "developer-T1 asks about T1: Which?", choices: ["rekindle answer 1 TEXT"], task: Some(TaskId("T1")) }
    = Asked(QuestionId(1))
    "#);
    assert_snapshot!(lines(&story.exited(1, exit_code(0))), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":0,"out_of_memory":false,"signal":null,"start_error":null}}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"waiting_for_input"}
    task_parked T1 developer-T1 e1 {"question":1}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
    let answer = Order::Answer { id: QuestionId(1), text: "a".into() };
    assert_snapshot!(lines(&story.order(answer)), @r#"
    question_answered T1 developer-T1 e1 {"answer":"a","id":1}
    developer_dispatched T1 developer-T1 e2 {"attempt":2,"blocked_by":[],"cli":"default","reason":"fresh: it waited for a person's answer","resumed":true,"role":"developer","strategy":"fresh","tasks":["T1"]}
    task_started T1 developer-T1 e2 {"attempt":2,"nth":2,"number":1}
    -> LaunchAttempt { attempt: AttemptId(2) }
    "#);
}

#[test]
fn a_split_makes_tasks_of_the_parts_and_proves_the_whole_when_they_are_through() {
    let mut story = Story::of(ONE);
    story.started(1);
    let split = |parts: &[&str]| Report::Split {
        task: task("T1"),
        subtasks: parts.iter().map(|part| (*part).to_owned()).collect(),
    };
    assert_snapshot!(lines(&story.report(1, split(&["read", "write"]))), @r#"
    split_proposed T1 developer-T1 e1 {"subtasks":["read","write"]}
    task_added T1.1 developer-T1 e1 {"health":false,"holder":1,"parent":"T1","task":{"accept":[],"agent":null,"artifacts":[],"attempts":null,"blocked_by":[],"body":"Part 1 of 2 of task T1: first\n\nread\n\nThe whole task, for context; do only your part of it:\n\nDo it.","cli":null,"done":false,"environments":[],"id":"T1.1","line":3,"priority":0,"reading":[],"role":null,"timeout_ms":null,"title":"read","wave":1}}
    task_added T1.2 developer-T1 e1 {"health":false,"holder":1,"parent":"T1","task":{"accept":[],"agent":null,"artifacts":[],"attempts":null,"blocked_by":["T1.1"],"body":"Part 2 of 2 of task T1: first\n\nwrite\n\nThe whole task, for context; do only your part of it:\n\nDo it.","cli":null,"done":false,"environments":[],"id":"T1.2","line":3,"priority":0,"reading":[],"role":null,"timeout_ms":null,"title":"write","wave":1}}
    task_started T1.1 developer-T1 e1 {"attempt":1,"nth":1,"number":1}
    "#);
    assert_snapshot!(lines(&story.report(1, split(&["read", "write"]))), @"= Already");
    assert_snapshot!(lines(&story.report(1, split(&[]))), @r#"
    report_refused T1.1 developer-T1 e1 {"attempt":1,"reason":"task T1 was split: report its parts instead, in order: T1.1, T1.2"}
    = Refused { reason: "task T1 was split: report its parts instead, in order: T1.1, T1.2" }
    "#);
    story.exited(1, exit_code(3));
    story.after_ms(60_000).input(Input::TimePassed);
    let facts = brief::facts_from(&story.state, AttemptId(2)).expect("a second attempt");
    assert_eq!(facts.current().map(|current| current.id.clone()), Some(task("T1.1")));
    let stale = story.input(Input::Reported {
        attempt: AttemptId(1),
        epoch: Epoch(1),
        channel: Channel::Mcp,
        report: split(&["other"]),
    });
    assert!(matches!(stale.reply, Reply::Refused { reason } if reason.ends_with(OVER)));
    let done = |part: &str| Report::Done { task: task(part), result: None };
    let checked = |story: &mut Story, part: &str| {
        let (task, evidence) = (task(part), rekindle_core::report::Evidence::default());
        let epoch = story.state.tasks[&task].epoch;
        story.input(Input::ChecksFinished { task, epoch, evidence })
    };
    story.started(2);
    story.report(2, done("T1.1"));
    checked(&mut story, "T1.1");
    story.exited(2, exit_code(0));
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Pending, "it waits for its second part");
    story.started(3);
    story.report(3, done("T1.2"));
    let last = checked(&mut story, "T1.2");
    assert!(last.effects.contains(&Effect::RunChecks { task: task("T1"), epoch: Epoch(1) }), "{:?}", last.effects);
    checked(&mut story, "T1");
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn no_wait_ends_when_only_a_person_is_missing() {
    let mut story = Story::with(ONE, Limits { no_wait: true, ..Limits::default() });
    story.started(1);
    let ask = Report::Ask { task: task("T1"), text: "Which?".into(), options: Vec::new(), context: String::new() };
    story.report(1, ask);
    story.exited(1, exit_code(0));
    assert_eq!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Paused(PauseReason::NoWait)));
}

#[test]
fn a_pause_stops_agents_and_costs_no_attempt() {
    let mut story = Story::of(ONE);
    story.started(1);
    assert_snapshot!(lines(&story.order(Order::Pause(PauseReason::Interrupt))), @r#"
    session_pause  {"probe":0,"progress":{"available":0,"blocked":0,"compactions":0,"complete":0,"in_progress":1,"pending_audit":0,"relationships":0,"total":1},"reason":"interrupt","remaining_percent":null,"resets_at":null,"resumes_at":null}
    stop_ordered T1 developer-T1 e1 {"at_once":false,"attempt":1,"cause":"stopped_by_operator"}
    -> StopAttempt { attempt: AttemptId(1), at_once: false }
    "#);
    let checkpoint = Checkpoint { status: "half".into(), ..Checkpoint::default() };
    story.report(1, Report::Checkpoint { task: task("T1"), checkpoint });
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(2), ..Exit::default() })), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":null,"out_of_memory":false,"signal":2,"start_error":null}}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"stopped_by_operator"}
    task_requeued T1 developer-T1 e1 {"cause":"stopped_by_operator","counted":false,"not_before":null,"reason":"the run was paused or stopped by its operator; 0 of 3 attempts used, next when the run continues"}
    run_paused  {}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
    assert_snapshot!(lines(&story.coordinator(Limits::default(), Vec::new())), @r#"
    coordinator_started  
    session_resume  {"reason":"interrupt","resume_count":1,"tasks_to_revalidate":0}
    developer_dispatched T1 developer-T1 e2 {"attempt":2,"blocked_by":[],"cli":"default","reason":"fresh: the run was paused or stopped by its operator","resumed":true,"role":"developer","strategy":"fresh","tasks":["T1"]}
    task_started T1 developer-T1 e2 {"attempt":2,"nth":2,"number":1}
    -> LaunchAttempt { attempt: AttemptId(2) }
    "#);
}

#[test]
fn a_crashed_coordinator_adopts_and_counts_nothing() {
    let mut story = Story::of(ONE);
    story.started(1);
    let alive = Found::Alive { pid: 100, shim_pid: 99 };
    assert_snapshot!(lines(&story.coordinator(Limits::default(), vec![(AttemptId(1), alive)])), @r#"
    coordinator_started  
    agent_adopted T1 developer-T1 e1 {"attempt":1,"pid":100,"shim_pid":99}
    coordinator_recovered  {"adopted":1,"events_reconciled":0,"finished":0,"orphaned_agents":0,"progress":{"available":0,"blocked":0,"compactions":0,"complete":0,"in_progress":1,"pending_audit":0,"relationships":0,"total":1},"saved_at":1000,"to_validate":0}
    team_checked  {"idle":0,"unresponsive":0,"working":1}
    "#);
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1);
}

#[test]
fn a_task_lost_with_two_coordinators_is_set_aside() {
    let mut story = Story::with(ONE, Limits { attempts: 9, ..Limits::default() });
    for attempt in 1..=2 {
        story.started(attempt);
        story.coordinator(story.state.limits.clone(), vec![(AttemptId(attempt), Found::Lost)]);
        let end = story.input(Input::AttemptLost { attempt: AttemptId(attempt), with_host: false });
        if attempt == 2 {
            assert_snapshot!(lines(&end), @r#"
            attempt_ended T1 developer-T1 e2 {"attempt":2,"cause":"shim_lost"}
            workflow_failed T1 developer-T1 e2 {"detail":"its agent was lost in 2 coordinator crashes: set aside for a person","reason":"quarantined"}
            person_alerted T1 e2 {"choices":["rekindle why T1","rekindle task retry T1","rekindle task skip T1","rekindle task split T1 'FIRST PART' 'SECOND PART'","clarify it: rekindle task edit T1 --text TEXT (or --timeout, --accept)"],"text":"task T1 failed: its agent was lost in 2 coordinator crashes: set aside for a person"}
            run_finished  {"complete":0,"failed":1,"outcome":"failed","skipped":0,"unreachable":0}
            -> LeaveWorkspace { attempt: AttemptId(2) }
            -> AlertPerson { text: "task T1 failed: its agent was lost in 2 coordinator crashes: set aside for a person", choices: ["rekindle why T1", "rekindle task retry T1", "rekindle task skip T1", "rekindle task split T1 'FIRST PART' 'SECOND PART'", "clarify it: rekindle task edit T1 --text TEXT (or --timeout, --accept)"], task: Some(TaskId("T1")) }
            -> TellEnd { text: "the run is over, failed: 0 of 1 task complete, 1 failed" }
            "#);
        }
        story.after_ms(600_000).input(Input::TimePassed);
    }
}

#[test]
fn a_process_that_never_began_costs_no_attempt() {
    let mut story = Story::of(ONE);
    let step = story.coordinator(Limits::default(), vec![(AttemptId(1), Found::NeverStarted)]);
    assert_snapshot!(lines(&step), @r#"
    coordinator_started  
    state_reconciled T1 developer-T1 e1 {"detail":"its process was never started","event_type":"never_started"}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"shim_lost"}
    task_requeued T1 developer-T1 e1 {"cause":"shim_lost","counted":false,"not_before":null,"reason":"the process that supervised it was killed; 0 of 3 attempts used, next at once"}
    coordinator_recovered  {"adopted":0,"events_reconciled":1,"finished":0,"orphaned_agents":1,"progress":{"available":1,"blocked":0,"compactions":0,"complete":0,"in_progress":0,"pending_audit":0,"relationships":0,"total":1},"saved_at":1000,"to_validate":0}
    team_checked  {"idle":0,"unresponsive":0,"working":0}
    developer_dispatched T1 developer-T1 e2 {"attempt":2,"blocked_by":[],"cli":"default","reason":"fresh: the process that supervised it was killed","resumed":true,"role":"developer","strategy":"fresh","tasks":["T1"]}
    task_started T1 developer-T1 e2 {"attempt":2,"nth":2,"number":1}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    -> LaunchAttempt { attempt: AttemptId(2) }
    "#);
}

#[test]
fn ten_failed_starts_open_the_breaker() {
    let mut plan = String::from("# Demo\n");
    for n in 1..=6 {
        plan.push_str(&format!("\n### T{n}: t\n- accept: `true`\n"));
    }
    let mut story = Story::with(&plan, Limits { max_agents: 1, attempts: 3, ..Limits::default() });
    for attempt in 1..=10 {
        let reason = "no such program".to_owned();
        story.input(Input::AttemptNotStarted { attempt: AttemptId(attempt), reason });
        story.after_ms(300_000).input(Input::TimePassed);
    }
    let opened = story.log.iter().filter(|event| event.body.name() == "breaker_opened").count();
    assert_eq!((opened, story.state.live_attempts().count()), (1, 0));
    story.after_ms(600_000).input(Input::TimePassed);
    assert_eq!(story.state.live_attempts().count(), 1, "after ten minutes it is tried again");
}

#[test]
fn waves_wait_for_each_other_and_the_disk_is_looked_at_between() {
    let plan = "# Demo\n\n## Wave 1\n\n### T1: a\n- artifacts: a.txt\n\n## Wave 2\n\n### T2: b\n- artifacts: b.txt\n";
    let mut story = Story::of(plan);
    story.started(1);
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", true)), @r#"
    checks_finished T1 developer-T1 e1 
    task_completed T1 developer-T1 e1 {"result":"as asked","unproven":false}
    wave_ended  {"wave":1}
    -> InspectDisk
    "#);
    let missing = vec![(task("T1"), vec!["a.txt".to_owned()])];
    assert_snapshot!(lines(&story.input(Input::DiskInspected { missing })), @r#"
    disk_inspected  {"missing":1}
    state_reconciled T1 e1 {"detail":"it was complete, but a.txt is no longer on disk","event_type":"artifacts_missing"}
    task_reopened T1 e2 {"reason":"it was complete, but a.txt is no longer on disk","reset_attempts":true}
    "#);
}

#[test]
fn two_tasks_on_one_artifact_never_run_side_by_side() {
    let story = Story::of(
        "# Demo\n\n### T1: a\n- artifacts: x.txt\n\n### T2: b\n- artifacts: x.txt\n\n### T3: c\n- artifacts: y.txt\n",
    );
    let running: Vec<String> =
        story.state.live_attempts().flat_map(|(_, attempt)| attempt.tasks.iter().map(ToString::to_string)).collect();
    assert_eq!(running, ["T1", "T3"]);
}

#[test]
fn an_agent_that_lingers_after_its_last_task_is_stopped() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n");
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    story.after_ms(30_000);
    assert_snapshot!(lines(&story.input(Input::TimePassed)), @r#"
    stop_ordered T1 developer-T1 e1 {"at_once":false,"attempt":1,"cause":"hung_after_result"}
    -> StopAttempt { attempt: AttemptId(1), at_once: false }
    "#);
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(2), ..Exit::default() })), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":null,"out_of_memory":false,"signal":2,"start_error":null}}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"completed"}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    "#);
}

#[test]
fn an_operator_can_skip_retry_and_complete() {
    let mut story = Story::of(CHAIN);
    story.started(1);
    let reason = "not needed".to_owned();
    assert_snapshot!(lines(&story.order(Order::Skip { task: task("T1"), reason })), @r#"
    task_skipped T1 developer-T1 e1 {"reason":"not needed"}
    stop_ordered T1 developer-T1 e1 {"at_once":false,"attempt":1,"cause":"stopped_by_operator"}
    developer_dispatched T2 developer-T2 e1 {"attempt":2,"blocked_by":["T1"],"cli":"default","reason":"first attempt","resumed":false,"role":"developer","strategy":"first","tasks":["T2"]}
    task_started T2 developer-T2 e1 {"attempt":2,"nth":1,"number":1}
    -> StopAttempt { attempt: AttemptId(1), at_once: false }
    -> LaunchAttempt { attempt: AttemptId(2) }
    "#);
    story.exited(1, Exit { signal: Some(2), ..Exit::default() });
    assert_snapshot!(lines(&story.order(Order::Retry { task: task("T1") })), @r#"
    task_reopened T1 e2 {"reason":"opened again by the operator","reset_attempts":true}
    developer_dispatched T1 developer-T1 e3 {"attempt":3,"blocked_by":[],"cli":"default","reason":"fresh: the run was paused or stopped by its operator","resumed":false,"role":"developer","strategy":"fresh","tasks":["T1"]}
    task_started T1 developer-T1 e3 {"attempt":3,"nth":2,"number":1}
    -> LaunchAttempt { attempt: AttemptId(3) }
    "#);
    assert_snapshot!(lines(&story.order(Order::Complete { task: task("T1"), result: None })), @r#"
    operator_completed T1 developer-T1 e3 {"result":null}
    task_completed T1 developer-T1 e3 {"result":null,"unproven":true,"unreported":true}
    stop_ordered T1 developer-T1 e3 {"at_once":false,"attempt":3,"cause":"stopped_by_operator"}
    -> StopAttempt { attempt: AttemptId(3), at_once: false }
    "#);
}

#[test]
fn an_operator_stops_a_task_and_what_waits_for_it_goes_on_waiting() {
    let mut story = Story::of(CHAIN);
    story.started(1);
    assert_snapshot!(lines(&story.order(Order::Stop { task: task("T1") })), @r#"
    workflow_failed T1 developer-T1 e1 {"detail":"the operator stopped it; open it again: rekindle task retry T1","reason":"stopped_by_operator"}
    stop_ordered T1 developer-T1 e1 {"at_once":false,"attempt":1,"cause":"stopped_by_operator"}
    -> StopAttempt { attempt: AttemptId(1), at_once: false }
    "#);
    assert_snapshot!(lines(&story.order(Order::Stop { task: task("T1") })), @r#"= Refused { reason: "task T1 has ended already: there is nothing to stop" }"#);
    assert_snapshot!(lines(&story.exited(1, Exit { signal: Some(2), ..Exit::default() })), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":null,"out_of_memory":false,"signal":2,"start_error":null}}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"stopped_by_operator"}
    run_finished  {"complete":0,"failed":1,"outcome":"failed","skipped":0,"unreachable":1}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    -> TellEnd { text: "the run is over, failed: 0 of 2 tasks complete, 1 failed, 1 out of reach" }
    "#);
    assert_snapshot!(lines(&story.order(Order::Retry { task: task("T1") })), @r#"
    task_reopened T1 e2 {"reason":"opened again by the operator","reset_attempts":true}
    run_reopened  {}
    "#);
}

#[test]
fn without_recovery_the_first_failure_is_the_last() {
    let mut story = Story::with(ONE, Limits { recover: false, ..Limits::default() });
    story.started(1);
    assert_snapshot!(lines(&story.exited(1, exit_code(1))), @r#"
    attempt_exited T1 developer-T1 e1 {"attempt":1,"exit":{"code":1,"out_of_memory":false,"signal":null,"start_error":null}}
    agent_crashed T1 developer-T1 e1 {"attempt":1,"code":1,"signal":null}
    attempt_ended T1 developer-T1 e1 {"attempt":1,"cause":"crashed","code":1,"signal":null}
    workflow_failed T1 developer-T1 e1 {"detail":"it crashed with exit code 1; recovery is off","reason":"recovery_off"}
    person_alerted T1 e1 {"choices":["rekindle why T1","rekindle task retry T1","rekindle task skip T1","rekindle task split T1 'FIRST PART' 'SECOND PART'","clarify it: rekindle task edit T1 --text TEXT (or --timeout, --accept)"],"text":"task T1 failed: it crashed with exit code 1; recovery is off"}
    run_finished  {"complete":0,"failed":1,"outcome":"failed","skipped":0,"unreachable":0}
    -> LeaveWorkspace { attempt: AttemptId(1) }
    -> AlertPerson { text: "task T1 failed: it crashed with exit code 1; recovery is off", choices: ["rekindle why T1", "rekindle task retry T1", "rekindle task skip T1", "rekindle task split T1 'FIRST PART' 'SECOND PART'", "clarify it: rekindle task edit T1 --text TEXT (or --timeout, --accept)"], task: Some(TaskId("T1")) }
    -> TellEnd { text: "the run is over, failed: 0 of 1 task complete, 1 failed" }
    "#);
}

#[test]
fn nothing_is_started_on_a_machine_that_is_short_of_something() {
    let plan = "# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- blocked by: T1\n- accept: `true`\n";
    let mut story = Story::of(plan);
    story.started(1);
    story.input(Input::PressureSeen { short: Some(Refusal { reason: "disk".into(), hint: "df".into() }) });
    story.done(1, "T1");
    assert_snapshot!(lines(&story.checked("T1", true)), @r#"
    checks_finished T1 developer-T1 e1 
    task_completed T1 developer-T1 e1 {"result":"as asked","unproven":false}
    "#);
    assert_snapshot!(lines(&story.input(Input::PressureSeen { short: None })), @r#"
    starts_released  {}
    developer_dispatched T2 developer-T2 e1 {"attempt":2,"blocked_by":["T1"],"cli":"default","reason":"first attempt","resumed":false,"role":"developer","strategy":"first","tasks":["T2"]}
    task_started T2 developer-T2 e1 {"attempt":2,"nth":1,"number":1}
    -> RepeatRefused
    -> LaunchAttempt { attempt: AttemptId(2) }
    "#);
}
