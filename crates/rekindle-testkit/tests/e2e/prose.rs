//! Agents that end their turn in prose: the disk decides, a person where it cannot, and their last words stand wherever the end of
//! an attempt is told.

use serde_json::Value;

use crate::rig::Rig;

const PLAN: &str = "# Prose\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";

fn questions(rig: &Rig) -> Vec<Value> {
    serde_json::from_str(&rig.ok(&["questions", "--json"])).expect("questions")
}

/// Runs until only a person is missing; returns the open question.
fn asks(rig: &Rig) -> Value {
    let ended = rig.rekindle(&["run", "plan.md", "--no-wait"]);
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    questions(rig).pop().expect("a question")
}

fn baseline(rig: &Rig) -> Value {
    rig.events_of("baseline_seen").pop().unwrap_or_else(|| panic!("no baseline\n{}", rig.story()))["details"].clone()
}

#[test]
fn work_that_is_reported_only_in_prose_is_complete_and_marked() {
    let rig = Rig::new(PLAN, "echo $REKINDLE_ATTEMPT >> ran\ntouch made\necho 'The task is finished.'\n");
    let ended = rig.finish();
    let task = rig.task("T1");
    assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{}", rig.story());
    assert_eq!((&task["unreported"], &task["unproven"]), (&true.into(), &false.into()));
    assert_eq!(task["result"], "The task is finished.");
    assert_eq!(rig.lines("ran"), ["1"]);
    assert_eq!(baseline(&rig)["failed"], "`test -e made`");
    assert!(ended.out.contains("unreported T1 work: complete by its checks"), "{ended:?}");
    assert!(rig.ok(&["status"]).contains("unreported"));
    assert!(rig.ok(&["task", "show", "T1"]).contains("complete (unreported)"));
    let why = rig.ok(&["why", "T1"]);
    assert!(why.contains("without a report") && why.contains("The task is finished."), "{why}");
    assert!(rig.ok(&["report"]).contains("unreported"));
    rig.audit();
}

#[test]
fn an_artifact_that_was_not_there_before_is_enough() {
    let plan = "# Prose\n\n### T1: work\n- artifacts: made\n\nWork.\n";
    let rig = Rig::new(plan, "touch made\necho 'Fertig.'\n");
    rig.finish();
    assert_eq!((&rig.task("T1")["unreported"], &baseline(&rig)["failed"]), (&true.into(), &"made".into()));
    rig.audit();
}

#[test]
fn a_check_that_passed_before_proves_nothing_and_a_person_is_asked() {
    let plan = "# Prose\n\n### T1: work\n- accept: `true`\n\nWork.\n";
    let rig = Rig::new(plan, "echo $REKINDLE_ATTEMPT >> ran\necho 'The task is finished.'\n");
    let question = asks(&rig);
    assert!(question["text"].as_str().is_some_and(|text| text.contains("The task is finished.")), "{question}");
    assert!(question["context"].as_str().is_some_and(|text| text.contains("passed before")), "{question}");
    assert_eq!(rig.task("T1")["attempts"], 0, "{}", rig.story());
    // What is not `done` goes to the agent, whose next end asks again; `done` takes it.
    rig.ok(&["answer", &question["id"].to_string(), "no, look again"]);
    let question = asks(&rig);
    rig.ok(&["answer", &question["id"].to_string(), "done"]);
    rig.finish();
    assert_eq!(rig.lines("ran").len(), 2);
    let task = rig.task("T1");
    assert_eq!((&task["state"], &task["unreported"]), (&"complete".into(), &true.into()), "{}", rig.story());
    rig.audit();
}

#[test]
fn a_task_without_checks_is_asked_about() {
    let rig = Rig::new("# Prose\n\n### T1: work\n\nWork.\n", "echo 'The task is finished.'\n");
    let question = asks(&rig);
    assert!(
        question["context"].as_str().is_some_and(|text| text.contains("neither checks nor artifacts")),
        "{question}"
    );
    rig.ok(&["answer", &question["id"].to_string(), "done"]);
    rig.finish();
    let task = rig.task("T1");
    assert_eq!((&task["unreported"], &task["unproven"]), (&true.into(), &true.into()));
    rig.audit();
}

#[test]
fn a_check_that_takes_too_long_before_the_work_is_not_known() {
    let plan = "# Prose\n\n### T1: work\n- accept: `test -e made || sleep 600`\n\nWork.\n";
    let rig = Rig::new(plan, "touch made\necho 'The task is finished.'\n");
    let question = asks(&rig);
    assert!(question["context"].as_str().is_some_and(|text| text.contains("took too long")), "{question}");
    assert_eq!(baseline(&rig)["failed"], Value::Null);
    rig.audit();
}

#[test]
fn a_check_that_fails_is_named_with_the_last_words() {
    let rig = Rig::new(PLAN, "echo $REKINDLE_ATTEMPT >> ran\necho 'All of it is done.'\n");
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.lines("ran").len(), 3);
    let failed = &rig.events_of("workflow_failed")[0]["details"];
    assert_eq!(failed["reason"], "check_never_passed");
    let told = "check `test -e made` exited with 1; 3 of 3 attempts used; its last words: \"All of it is done.\"";
    assert!(failed["detail"].as_str().is_some_and(|detail| detail.contains(told)), "{failed}");
    // One line about the end of each attempt, with what it printed below; the last is the failure's.
    let about = |words: &str| ended.err.lines().filter(|line| line.contains(words)).count();
    assert_eq!((about(" T1 work "), about("STARTED"), about("REKINDLE"), about("ENDED")), (4, 1, 0, 2), "{ended:?}");
    let first = ended.err.lines().find(|line| line.contains("attempt 1: no report, and check")).unwrap_or_default();
    assert!(first.contains("; attempt 2 "), "what follows stands in the same line: {ended:?}");
    // As its output, or as its last words where the next attempt has ended by the time this is looked at.
    assert_eq!(about("All of it is done."), 3, "told once for each end: {ended:?}");
    assert!(rig.ok(&["task", "show", "T1"]).contains("All of it is done."));
    assert_eq!(rig.status()["agents"][0]["last_words"], "All of it is done.");
    let alert = &rig.events_of("person_alerted")[0]["details"]["text"];
    assert!(alert.as_str().is_some_and(|text| text.contains("All of it is done.")), "{alert}");
    rig.audit();
}

#[test]
fn a_question_in_prose_becomes_a_question() {
    let agent = "echo $REKINDLE_ATTEMPT >> ran\n\
        if grep -q 5432 \"$REKINDLE_PROMPT_FILE\"; then touch made; rekindle task done T1; exit 0; fi\n\
        echo 'There are two.'\necho\necho 'Which port shall I use?'\n";
    let rig = Rig::new(PLAN, agent);
    let question = asks(&rig);
    assert_eq!(question["text"], "Which port shall I use?", "{}", rig.story());
    assert_eq!(rig.lines("ran").len(), 2);
    rig.ok(&["answer", &question["id"].to_string(), "5432"]);
    rig.finish();
    assert_eq!(rig.task("T1")["unreported"], false);
    assert_eq!(rig.lines("ran").len(), 3);
    rig.audit();
}

#[test]
fn a_crash_is_no_end_by_choice() {
    let rig = Rig::new(PLAN, "touch made\necho 'The task is finished.'\nexit 7\n");
    assert_eq!(rig.run().end().code, Some(3), "{}", rig.story());
    let failed = &rig.events_of("workflow_failed")[0]["details"];
    assert_eq!(failed["reason"], "developer_crash_limit");
    rig.audit();
}

#[test]
fn a_coordinator_that_dies_while_it_looks_is_followed_by_one_that_takes_the_work() {
    // The first look waits for a file, so that the coordinator can be killed meanwhile.
    let plan = "# Prose\n\n### T1: work\n- accept: `test -e made && touch looked && while ! test -e go; do sleep 0.05; done`\n\nWork.\n";
    let rig = Rig::new(plan, "echo ran >> ran\ntouch made\necho 'The task is finished.'\n");
    let running = rig.run();
    rig.await_file("looked");
    running.kill();
    rig.touch("go");
    rig.finish();
    assert_eq!((rig.lines("ran").len(), &rig.task("T1")["unreported"]), (1, &true.into()), "{}", rig.story());
    rig.audit();
}
