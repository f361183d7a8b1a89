//! Work on its way through critic and auditor, by commands and by signals: what each of them is told, what becomes of their
//! verdicts, and what happens when they fail themselves.

use serde_json::{Value, json};

use crate::rig::Rig;

/// A plan with these reviewers.
fn plan(review: &str) -> String {
    format!(
        "---\nreview: [{review}]\n---\n# Reviewed\n\nThe goal of all this.\n\n### T1: work\n- accept: `test -e made`\n\n\
         The task's own words.\n"
    )
}

/// What every agent does first: it keeps its prompt, and counts how often its role was there.
const COUNTS: &str = "n=$(($(ls said-$REKINDLE_ROLE-* 2>/dev/null | wc -l) + 1))\n\
    cp \"$REKINDLE_PROMPT_FILE\" said-$REKINDLE_ROLE-$n\ncase $REKINDLE_ROLE-$n in\n";

/// A developer that does its work, whatever round it is.
const WORKS: &str =
    "developer-*) touch made; rekindle task done T1 --result \"round $n is done\"; echo $? >> codes;;\n";

fn script(cases: &str) -> String {
    format!("{COUNTS}{cases}esac\n")
}

/// The prompt that a role was given, the nth time.
fn said(rig: &Rig, role: &str, n: u32) -> String {
    let file = format!("said-{role}-{n}");
    std::fs::read_to_string(rig.path(&file)).unwrap_or_else(|error| panic!("{file}: {error}\n{}", rig.story()))
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

fn roles(rig: &Rig) -> Vec<String> {
    let kinds = rig.events().into_iter().filter_map(|event| event["kind"].as_str().map(str::to_owned));
    kinds.filter_map(|kind| kind.strip_suffix("_dispatched").map(str::to_owned)).collect()
}

fn verdicts(rig: &Rig) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let events = rig.events_of("verdict_given");
    events.iter().map(|event| (text(&event["details"]["role"]), text(&event["details"]["verdict"]))).collect()
}

/// Developer, critic fails, rework, critic passes, auditor fails, rework, critic again, auditor passes.
fn the_whole_way(reviewers: &str) -> Rig {
    let rig = Rig::new(&plan("critic, auditor"), &script(&format!("{WORKS}{reviewers}")));
    rig.finish();
    let expected = ["developer", "critic", "developer", "critic", "auditor", "developer", "critic", "auditor"];
    assert_eq!(roles(&rig), expected, "{}", rig.story());
    let given = [("critic", "fail"), ("critic", "pass"), ("auditor", "fail"), ("critic", "pass"), ("auditor", "pass")];
    let given: Vec<_> = given.map(|(role, verdict)| (role.to_owned(), verdict.to_owned())).into();
    assert_eq!(verdicts(&rig), given, "{}", rig.story());
    // A claim that goes to its reviewers is a claim that was taken.
    assert_eq!(rig.lines("codes"), ["0", "0", "0"]);
    told_what_they_need(&rig);
    let reworks = rig.events_of("task_rework");
    assert_eq!(reworks.len(), 2);
    assert_eq!(reworks[0]["details"]["source"], "critic");
    assert_eq!(reworks[0]["details"]["issues"], json!(["no second line, or third", "bad names"]));
    assert_eq!(reworks[1]["details"]["source"], "auditor");
    let disagreements = rig.events_of("review_audit_disagreement");
    assert_eq!(disagreements.len(), 1, "{}", rig.story());
    assert_eq!(disagreements[0]["details"]["disagreement_type"], "code_quality");
    assert_eq!(disagreements[0]["details"]["auditor_failed"], json!(["errors are swallowed"]));
    assert_eq!(rig.events_of("critic_missed_quality_issue").len(), 1);
    assert_eq!(rig.task("T1")["state"], "complete");
    let told = rig.ok(&["report", "--junit", "-"]);
    assert_eq!(told.matches("<flakyFailure ").count(), 2, "each try that was sent back: {told}");
    rig.audit();
    rig
}

fn told_what_they_need(rig: &Rig) {
    let first = said(rig, "developer", 1);
    has(&first, &["task done T1"]);
    assert!(!first.contains("Sent Back"), "{first}");
    let critic = said(rig, "critic", 1);
    has(
        &critic,
        &["## The Task to Judge: T1: work", "The task's own words.", "The goal of all this.", "`test -e made`"],
    );
    has(&critic, &["| round 1 is done", "check `test -e made`, on the last claim: passed", "Change no files"]);
    has(&critic, &["review pass T1", "REVIEW_FAILED: T1"]);
    for foreign in ["task done", "task split", "audit pass", "Earlier Verdicts"] {
        assert!(!critic.contains(foreign), "{foreign} in\n{critic}");
    }
    let rework = said(rig, "developer", 2);
    has(&rework, &["## Sent Back by the Critic", "| - no second line, or third", "| - bad names", "Required Fixes:"]);
    has(&rework, &["| - add the lines", "| Passed:", "| - the first line", "The task's own words."]);
    has(&said(rig, "critic", 2), &["## Earlier Verdicts", "| The critic: REVIEW_FAILED", "| - bad names"]);
    let auditor = said(rig, "auditor", 1);
    has(&auditor, &["Prove independently", "Do not trust claims", "| The critic: REVIEW_PASSED", "audit blocked T1"]);
    let rework = said(rig, "developer", 3);
    has(&rework, &["## Sent Back by the Auditor", "| - errors are swallowed", "| - `test -e made` passes"]);
    has(&said(rig, "auditor", 2), &["| The auditor: AUDIT_FAILED", "| - errors are swallowed"]);
}

#[test]
fn the_whole_way_by_commands() {
    let rig = the_whole_way(
        "critic-1) rekindle review fail T1 --issues 'no second line, or third' --issues 'bad names' --required 'add the lines' \
         --passed 'the first line'; echo $? >> verdicts;;\n\
         critic-*) rekindle review pass --passed 'all of it'; echo $? >> verdicts;;\n\
         auditor-1) rekindle audit fail T1 --issues 'errors are swallowed' --required 'return them'; echo $? >> verdicts;;\n\
         auditor-*) rekindle audit pass T1; echo $? >> verdicts;;\n",
    );
    assert_eq!(rig.lines("verdicts"), ["0"; 5]);
}

#[test]
fn the_whole_way_by_signals() {
    the_whole_way(
        "critic-1) printf 'REVIEW_FAILED: T1\\nIssues:\\n- no second line, or third\\n- bad names\\nRequired fixes:\\n- add the lines\\n\
         Passed: the first line\\n';;\n\
         critic-*) echo 'REVIEW_PASSED: T1'; echo 'Passed: all of it';;\n\
         auditor-1) printf 'AUDIT_FAILED: T1\\nIssues: errors are swallowed\\nRequired: return them\\n';;\n\
         auditor-*) echo 'AUDIT_PASSED: T1';;\n",
    );
}

#[test]
fn a_verdict_counts_only_from_the_role_that_may_give_it() {
    let reviewers = "developer-1) rekindle review pass T1 2> own; echo $? >> own; echo 'AUDIT_PASSED: T1'; echo\n\
         touch made; rekindle task done T1; rekindle review pass T1 2>> own; echo $? >> own;;\n\
         critic-1) rekindle task done T1 2>> own; echo $? >> own; rekindle audit pass T1 2>> own; echo $? >> own\n\
         rekindle review fail T1 2>> own; echo $? >> own; rekindle review pass T1;;\n";
    let rig = Rig::new(&plan("critic"), &script(reviewers));
    rig.finish();
    assert_eq!(roles(&rig), ["developer", "critic"], "{}", rig.story());
    assert_eq!(verdicts(&rig).len(), 1, "{}", rig.story());
    let own = rig.lines("own").join("\n");
    has(
        &own,
        &[
            "is not yours to give: you are its developer\n1",
            "no longer yours",
            "you are the critic of task T1: give a verdict",
        ],
    );
    has(&own, &["the verdict of the auditor on task T1 is not yours to give: you are its critic\n1"]);
    has(&own, &["the verdict does not say what is wrong\nhint: say it: --issues \"what is wrong\"\n2"]);
    assert!(rig.events_of("report_refused").len() >= 4, "{}", rig.story());
    let nobody = rig.rekindle(&["review", "pass", "T1"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    has(&nobody.err, &["only the critic that rekindle started gives verdicts: REKINDLE_TOKEN is not set"]);
    rig.audit();
}

#[test]
fn a_critic_that_crashes_three_times_is_bypassed_to_the_auditor() {
    let rig = Rig::new(
        &plan("critic, auditor"),
        &script(&format!("{WORKS}critic-*) exit 7;;\nauditor-*) rekindle audit pass T1;;\n")),
    );
    rig.finish();
    assert_eq!(roles(&rig), ["developer", "critic", "critic", "critic", "auditor"], "{}", rig.story());
    assert_eq!(rig.events_of("critic_redispatched").len(), 2);
    assert_eq!(rig.events_of("critic_bypassed").len(), 1);
    has(&said(&rig, "critic", 2), &["The critic before you stopped: "]);
    rig.audit();
}

#[test]
fn without_an_auditor_a_critic_that_crashes_fails_the_task() {
    let rig = Rig::new(&plan("critic"), &script(&format!("{WORKS}critic-*) exit 7;;\n")));
    assert_eq!(rig.run().end().code, Some(3), "{}", rig.story());
    let failed = rig.events_of("workflow_failed");
    assert_eq!(failed[0]["details"]["reason"], "critic_crash_limit", "{}", rig.story());
    rig.audit();
}

#[test]
fn an_auditor_that_crashes_fails_the_task() {
    let rig = Rig::new(&plan("auditor"), &script(&format!("{WORKS}auditor-*) exit 7;;\n")));
    assert_eq!(rig.run().end().code, Some(3), "{}", rig.story());
    assert_eq!(roles(&rig), ["developer", "auditor", "auditor", "auditor"], "{}", rig.story());
    assert_eq!(rig.events_of("workflow_failed")[0]["details"]["reason"], "auditor_crash_limit");
    rig.audit();
}

#[test]
fn a_reviewer_that_ends_without_a_verdict_is_asked_again() {
    let reviewers = "critic-1) echo 'looks good to me'; exit 0;;\ncritic-2) rekindle review pass T1;;\n";
    let rig = Rig::new(&plan("critic"), &script(&format!("{WORKS}{reviewers}")));
    rig.finish();
    assert_eq!(roles(&rig), ["developer", "critic", "critic"], "{}", rig.story());
    let causes: Vec<Value> =
        rig.events_of("attempt_ended").into_iter().map(|event| event["details"]["cause"].clone()).collect();
    assert_eq!(causes, ["completed", "exited_incomplete", "completed"], "{}", rig.story());
    rig.audit();
}

#[test]
fn a_role_has_its_own_agent_and_its_own_time() {
    let agent = script(WORKS);
    let rig = Rig::new(&plan("critic"), &agent).with(
        "[agents.strict]\ncommand = [\"/bin/sh\", \"./strict.sh\"]\n\n[roles.critic]\nagent = \"strict\"\n\n\
         [timeouts]\ncritic = \"1500ms\"\n",
    );
    rig.write(
        "strict.sh",
        &format!("{COUNTS}critic-1) trap 'exit 0' INT TERM; $FAKE wait never;;\n*) rekindle review pass T1;;\nesac\n"),
    );
    rig.finish();
    assert_eq!(roles(&rig), ["developer", "critic", "critic"], "{}", rig.story());
    let clis: Vec<Value> =
        rig.events_of("critic_dispatched").into_iter().map(|event| event["details"]["cli"].clone()).collect();
    assert_eq!(clis, ["strict", "strict"]);
    assert_eq!(rig.events_of("critic_timeout").len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("critic_redispatched").len(), 1, "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "a critic's time is not the developer's");
    rig.audit();
}

#[test]
fn what_critics_missed_is_told_to_later_critics_until_it_is_forgotten() {
    let task = |id: &str, after: &str| format!("### {id}: {id}\n{after}- accept: `true`\n\nWork.\n\n");
    let plan = format!(
        "---\nreview: [critic, auditor]\n---\n# Learned\n\n{}{}{}{}",
        task("A", ""),
        task("B", "- blocked by: A\n"),
        task("C", "- blocked by: B\n"),
        task("D", "- blocked by: C\n")
    );
    let agent = "n=$(($(ls said-$REKINDLE_ROLE-$REKINDLE_TASK-* 2>/dev/null | wc -l) + 1))\n\
        cp \"$REKINDLE_PROMPT_FILE\" said-$REKINDLE_ROLE-$REKINDLE_TASK-$n\n\
        case $REKINDLE_ROLE-$REKINDLE_TASK-$n in\n\
        developer-D-1) touch at-D; $FAKE wait go; rekindle task done;;\n\
        developer-*) rekindle task done;;\ncritic-*) rekindle review pass;;\n\
        auditor-[AB]-1) rekindle audit fail --issues \"$REKINDLE_TASK swallows an error\";;\n\
        auditor-*) rekindle audit pass;;\nesac\n";
    let rig = Rig::new(&plan, agent);
    let run = rig.run();
    rig.await_file("at-D");
    let heading = "ADDITIONAL FOCUS AREAS (from historical patterns)";
    let prompt = |name: &str| std::fs::read_to_string(rig.path(name)).expect("a prompt");
    assert!(!prompt("said-critic-B-1").contains(heading), "one miss is no pattern");
    let later = prompt("said-critic-C-1");
    has(&later, &[heading, "| - error_handling (missed 2 times)", "|   for example: B swallows an error"]);
    assert!(!prompt("said-auditor-C-1").contains(heading), "it is the critic's");
    let learned: Value = serde_json::from_str(&rig.ok(&["review", "focus", "--json"])).expect("JSON");
    assert_eq!((&learned["disagreements"], &learned["focus"][0]["category"]), (&json!(2), &json!("error_handling")));
    has(&rig.ok(&["review", "focus"]), &["error_handling (missed 2 times)\n   - A swallows an error\n"]);
    rig.ok(&["review", "focus", "--reset"]);
    has(&rig.rekindle(&["review", "focus"]).err, &["critics have no additional focus areas"]);
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert!(!prompt("said-critic-D-1").contains(heading), "it was forgotten");
    rig.audit();
}

#[test]
fn a_blocked_audit_asks_a_person_and_is_done_again() {
    let reviewers = "auditor-1) rekindle audit blocked T1 --issues 'the database is down' --required 'start it';;\n\
        auditor-*) rekindle audit pass T1;;\n";
    let rig = Rig::new(&plan("auditor"), &script(&format!("{WORKS}{reviewers}")));
    let run = rig.run();
    rig.await_event("question_asked");
    let questions = rig.ok(&["questions"]);
    has(&questions, &["the auditor of task T1 cannot judge it: the database is down", "start it"]);
    rig.ok(&["answer", "1", "it is up again"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(roles(&rig), ["developer", "auditor", "auditor"], "{}", rig.story());
    has(&said(&rig, "auditor", 2), &["it is up again", "| The auditor: AUDIT_BLOCKED"]);
    rig.audit();
}

#[test]
fn a_broken_machine_is_a_question_and_costs_no_attempt() {
    let agent = script(
        "developer-1) printf 'INFRA_BLOCKED: T1\\nReason: the disk is full\\n';;\n\
         developer-*) touch made; echo 'READY_FOR_REVIEW: T1';;\ncritic-*) echo 'REVIEW_PASSED: T1';;\n",
    );
    let rig = Rig::new(&plan("critic"), &agent);
    let run = rig.run();
    rig.await_event("question_asked");
    has(&rig.ok(&["questions"]), &["the infrastructure is in the way: the disk is full"]);
    rig.ok(&["answer", "1", "done"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    rig.audit();
}

#[test]
fn a_plan_brings_its_own_prompts() {
    let front = "roles.critic.prompt: prompts/critic.md\n";
    let text = plan("critic").replace("review:", &format!("{front}review:"));
    let rig = Rig::new(&text, &script(&format!("{WORKS}critic-*) rekindle review pass T1;;\n")));
    std::fs::create_dir(rig.path("prompts")).expect("prompts");
    rig.write("prompts/critic.md", "Be strict with {{task}} ({{title}}).\n{{body}}\n{{result}}\n{{isues}}\n");
    for command in [&["plan", "check", "plan.md"][..], &["run", "plan.md"]] {
        let refused = rig.rekindle(command);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        has(&refused.err, &["unknown placeholder `{{isues}}` in line 4", "did you mean `{{issues}}`?"]);
    }
    rig.write("prompts/critic.md", "Be strict with {{task}} ({{title}}).\n{{body}}\n{{result}}\n{{issues}}\n");
    rig.ok(&["plan", "check", "plan.md"]);
    rig.finish();
    let critic = said(&rig, "critic", 1);
    assert!(critic.starts_with("Be strict with T1 (work).\nThe task's own words.\n"), "{critic}");
    has(&critic, &["| round 1 is done", "review pass T1"]);
    assert!(!critic.contains("## Instructions"), "{critic}");
    rig.audit();
}

#[test]
fn a_repair_of_the_plans_health_is_audited_by_the_same_words() {
    let plan = "---\nhealth: [\"test -e sound\"]\n---\n# Sick\n\n### T1: work\n- accept: `true`\n\nWork.\n";
    let agent = script(
        "remediation-*) touch sound; echo REMEDIATION_COMPLETE;;\n\
         health_auditor-1) rekindle audit fail health --issues 'only touched'; echo $? >> verdicts;;\n\
         health_auditor-*) echo 'HEALTH_AUDIT: HEALTHY';;\ndeveloper-*) rekindle task done T1;;\n",
    );
    let rig = Rig::new(plan, &agent);
    rig.finish();
    assert_eq!(rig.lines("verdicts"), ["0"]);
    assert_eq!(rig.task("health")["state"], "complete", "{}", rig.story());
    let repairs: Vec<String> = roles(&rig).into_iter().filter(|role| role != "developer").collect();
    assert_eq!(repairs, ["remediation", "health_auditor", "remediation", "health_auditor"], "{}", rig.story());
    has(&said(&rig, "remediation", 1), &["Repair the cause with the smallest change", "task done health"]);
    has(&said(&rig, "health_auditor", 1), &["just run the checks", "HEALTH_AUDIT: HEALTHY", "audit pass health"]);
    has(&said(&rig, "remediation", 2), &["| - only touched"]);
    rig.audit();
}

#[test]
fn a_person_splits_a_task() {
    let agent = "echo $REKINDLE_TASK >> ran\n[ $REKINDLE_TASK = T1 ] && { trap 'exit 0' INT TERM; $FAKE wait never; }\n\
        touch made\nrekindle task done\n";
    let rig = Rig::new("# Large\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n", agent);
    let run = rig.run();
    rig.until("an agent", || (!rig.lines("ran").is_empty()).then_some(()));
    rig.await_event("agent_started");
    has(&rig.rekindle(&["task", "split", "T1", "read", "write"]).err, &["task T1 is split into T1.1, T1.2"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.lines("ran"), ["T1", "T1.1", "T1.2"], "{}", rig.story());
    assert_eq!(rig.task("T1")["state"], "complete");
    rig.audit();
}
