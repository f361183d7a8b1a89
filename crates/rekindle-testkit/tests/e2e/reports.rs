//! The agent's side: what it finds, the three channels through which it reports, questions, and what it may not do.

use serde_json::Value;

use crate::rig::Rig;

const ONE: &str = "# One\n\nThe goal of all this.\n\n### T1: work\n- accept: `test -e made`\n\nThe task's own words.\n";

#[test]
fn an_agent_finds_everything_of_its_attempt_in_its_environment() {
    let agent = "env | grep ^REKINDLE_ | sort > environment\npwd > cwd\ncat > stdin\ncp \"$REKINDLE_PROMPT_FILE\" prompt\n\
        command -v rekindle > path\ntouch made\nrekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(ONE, agent);
    rig.finish();
    let found = rig.lines("environment");
    let value = |name: &str| {
        let line = found.iter().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("{name} is not in {found:?}")).to_owned()
    };
    let exact = [("AGENT", "developer-T1"), ("TASK", "T1"), ("TASKS", "T1"), ("ROLE", "developer"), ("ATTEMPT", "1")];
    for (name, expected) in exact {
        assert_eq!(value(&format!("REKINDLE_{name}")), expected, "{name}");
    }
    assert_eq!(value("REKINDLE_EPOCH"), "1");
    assert!(value("REKINDLE_TOKEN").len() > 20);
    assert!(std::path::Path::new(&value("REKINDLE_SOCKET")).is_absolute());
    let prompt = std::fs::read_to_string(rig.path("prompt")).expect("prompt");
    assert_eq!(std::fs::read_to_string(rig.path("stdin")).expect("stdin"), prompt);
    for part in ["The goal of all this.", "The task's own words.", "test -e made", "task done"] {
        assert!(prompt.contains(part), "{part} is not in the prompt:\n{prompt}");
    }
    let root = rig.root().canonicalize().expect("root");
    assert_eq!(rig.lines("cwd"), [root.to_str().expect("text")]);
    assert_eq!(rig.lines("path"), [crate::rig::program().to_str().expect("text")]);
    let token = value("REKINDLE_TOKEN");
    let told = format!("{}{}", rig.story(), rig.ok(&["logs", "--json"]));
    assert!(!told.contains(&token), "the token is in the log");
    rig.audit();
}

#[test]
fn signals_in_the_output_are_a_channel() {
    let agent = "echo 'CHECKPOINT: T1'\necho 'Status: half'\necho\necho '> TASK_COMPLETE: T1'\ntouch made\n\
        echo 'TASK_COMPLETE: T1'\n";
    let rig = Rig::new(ONE, agent);
    rig.finish();
    let claims = rig.events_of("task_claimed");
    assert_eq!(claims.len(), 1, "{}", rig.story());
    assert_eq!(claims[0]["details"]["door"], "signal");
    assert_eq!(rig.events_of("checkpoint_saved").len(), 1);
    rig.audit();
}

#[test]
fn a_report_without_a_coordinator_is_kept_and_counts_at_the_next_start() {
    let agent = "touch here\n$FAKE wait go\ntouch made\nrekindle task done $REKINDLE_TASK --result kept; echo $? > code\n\
        $FAKE wait leave\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    run.kill();
    rig.touch("go");
    rig.until("the answer", || (!rig.lines("code").is_empty()).then_some(()));
    assert_eq!(rig.lines("code"), ["0"]);
    assert_ne!(rig.task("T1")["state"], "complete");
    // The second coordinator takes the word of an agent that lives on.
    let second = rig.run();
    rig.await_event("task_completed");
    rig.touch("leave");
    assert_eq!(second.end().code, Some(0), "{}", rig.story());
    let claim = &rig.events_of("task_claimed")[0];
    assert_eq!(claim["details"]["door"], "kept", "{claim}");
    let task = rig.task("T1");
    assert_eq!((&task["result"], &task["attempts"]), (&"kept".into(), &1.into()));
    rig.audit();
}

#[test]
fn a_kept_report_of_an_agent_that_has_ended_counts_too() {
    let agent = "touch here\n$FAKE wait go\ntouch made\nrekindle task done $REKINDLE_TASK; touch over\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    run.kill();
    rig.touch("go");
    rig.await_file("over");
    rig.assert_nothing_left();
    rig.finish();
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    rig.audit();
}

#[test]
fn a_claim_that_fails_its_check_is_answered_with_1_and_the_output() {
    let plan = "# One\n\n### T1: work\n- accept: `test -e made || { echo it is not made; exit 7; }`\n\nWork.\n";
    let agent = "rekindle task done T1 > first 2>&1; echo $? > code\ntouch made\nrekindle task done T1 > second\n";
    let rig = Rig::new(plan, agent);
    rig.finish();
    assert_eq!(rig.lines("code"), ["1"]);
    let first = std::fs::read_to_string(rig.path("first")).expect("answer");
    assert!(first.contains("it is not made") && first.contains('7'), "{first}");
    assert!(rig.lines("second").iter().any(|line| line.contains("complete")), "{:?}", rig.lines("second"));
    assert_eq!(rig.task("T1")["attempts"], 1);
    let checks = rig.events_of("checks_finished");
    assert_eq!(checks.iter().map(|check| &check["details"]["passed"]).collect::<Vec<_>>(), [false, true]);
    rig.audit();
}

#[test]
fn a_question_is_answered_while_its_agent_waits() {
    let agent = "rekindle ask 'which colour?' --task T1 --option red --option blue --context 'the roof' --wait > answer\n\
        touch made\nrekindle task done T1\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    let question = rig.until("a question", || questions(&rig).into_iter().next());
    assert_eq!(question["task"], "T1");
    assert_eq!(question["agent"], "developer-T1");
    assert_eq!(question["text"], "which colour?");
    assert_eq!(question["options"], serde_json::json!(["red", "blue"]));
    assert_eq!(question["context"], "the roof");
    assert!(question["answer"].is_null());
    assert_eq!(rig.task("T1")["state"], "blocked");
    rig.ok(&["answer", &id(&question), "green, if you ask me"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.lines("answer"), ["green, if you ask me"]);
    assert_eq!(questions(&rig)[0]["answer"], "green, if you ask me");
    rig.audit();
}

#[test]
fn an_agent_may_ask_and_leave_and_its_replacement_knows_the_answer() {
    let agent = "if grep -q 'paint it black' \"$REKINDLE_PROMPT_FILE\"; then touch made; rekindle task done T1; exit; fi\n\
        rekindle ask 'which colour?' > asked\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    let question = rig.until("a question", || questions(&rig).into_iter().next());
    rig.await_event("task_parked");
    assert_eq!(rig.lines("asked"), [id(&question)]);
    assert_eq!(rig.task("T1")["state"], "blocked");
    rig.ok(&["answer", &id(&question), "paint it black"]);
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "asking is no failure: {}", rig.story());
    rig.audit();
}

#[test]
fn no_wait_ends_with_4_when_only_a_person_is_missing() {
    let agent = "if grep -q 'yes do' \"$REKINDLE_PROMPT_FILE\"; then touch made; rekindle task done T1; exit; fi\n\
        rekindle ask 'may I?'\n";
    let rig = Rig::new(ONE, agent);
    let ended = rig.rekindle(&["run", "plan.md", "--no-wait"]);
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    rig.assert_nothing_left();
    // The answer is taken without a coordinator.
    rig.ok(&["answer", &id(&questions(&rig)[0]), "yes do"]);
    rig.finish();
    rig.audit();
}

#[test]
fn an_agent_cannot_order_nor_touch_what_is_not_its_own() {
    let plan = "# Two\n\n### A: mine\n- accept: `test -e made-A`\n\nWork.\n\n### B: yours\n- accept: `test -e made-B`\n\nWork.\n";
    let agent = r#"
if [ $REKINDLE_TASK = A ]; then
  $FAKE wait b-runs
  for order in 'pause' 'stop' 'task skip B' 'task done B' 'task retry B' 'recover developer-B' 'answer 1 yes' 'resume' 'run plan.md'; do
    rekindle $order >> told 2>&1; echo "token $order: $?" >> codes
  done
  token=$REKINDLE_TOKEN
  unset REKINDLE_TOKEN
  for order in 'pause' 'stop' 'task skip B' 'task done B' 'recover developer-B' 'note hidden'; do
    rekindle $order >> told 2>&1; echo "none $order: $?" >> codes
  done
  for forged in rk1.2.1.00 "rk1.2.1.${token##*.}" nonsense; do
    REKINDLE_TOKEN=$forged rekindle task done B >> told 2>&1; echo "forged $forged: $?" >> codes
  done
  export REKINDLE_TOKEN=$token
  touch tried
else
  touch b-runs
  $FAKE wait tried
fi
touch made-$REKINDLE_TASK
rekindle task done $REKINDLE_TASK
"#;
    let rig = Rig::new(plan, agent);
    rig.finish();
    let codes = rig.lines("codes");
    assert_eq!(codes.len(), 18, "{codes:?}");
    let told = std::fs::read_to_string(rig.path("told")).expect("answers");
    assert!(codes.iter().all(|code| !code.ends_with(": 0")), "an agent's order was taken: {codes:?}\n{told}");
    assert!(rig.events_of("session_pause").is_empty(), "{}", rig.story());
    assert!(rig.events_of("task_skipped").is_empty());
    assert!(rig.events_of("note_recorded").is_empty());
    for task in ["A", "B"] {
        assert_eq!(rig.task(task)["attempts"], 1, "{}", rig.story());
    }
    rig.audit();
}

#[test]
fn a_token_of_an_older_epoch_counts_no_more() {
    let agent = r#"
if [ $REKINDLE_ATTEMPT = 1 ]; then echo $REKINDLE_TOKEN > old; exit 1; fi
touch made
REKINDLE_TOKEN=$(cat old) rekindle task done T1 > told 2>&1; echo $? > code
$FAKE wait go
rekindle task done T1
"#;
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    rig.until("the answer", || (!rig.lines("code").is_empty()).then_some(()));
    assert_eq!(rig.lines("code"), ["1"]);
    assert_ne!(rig.task("T1")["state"], "complete", "{}", rig.story());
    rig.touch("go");
    assert_eq!(run.end().code, Some(0));
    rig.audit();
}

#[test]
fn a_named_agent_works_through_its_tasks_in_one_process() {
    let plan = "# Duo\n\n### T1: first\n- agent: duo\n- accept: `test -e made-T1`\n\nOne.\n\n\
        ### T2: second\n- agent: duo\n- blocked by: T1\n- accept: `test -e made-T2`\n\nTwo.\n";
    let agent = r#"
echo "$REKINDLE_AGENT $REKINDLE_TASK $REKINDLE_TASKS $$" >> ran
for task in $(echo $REKINDLE_TASKS | tr , ' '); do touch made-$task; rekindle task done $task; done
"#;
    let rig = Rig::new(plan, agent);
    rig.finish();
    let ran = rig.lines("ran");
    assert_eq!(ran.len(), 1, "{ran:?}");
    assert!(ran[0].starts_with("duo T1 T1,T2 "), "{ran:?}");
    for id in ["T1", "T2"] {
        let task = rig.task(id);
        assert_eq!(
            (&task["agent"], &task["attempts"], &task["epoch"]),
            (&"duo".into(), &1.into(), &1.into()),
            "{task}"
        );
    }
    rig.audit();
}

#[test]
fn all_epochs_of_an_agent_are_in_its_log_in_order() {
    let agent = "echo \"attempt $REKINDLE_ATTEMPT says it\"\necho trouble >&2\n[ $REKINDLE_ATTEMPT = 3 ] || exit 1\n\
        touch made\nrekindle task done T1\n";
    let rig = Rig::new(ONE, agent);
    rig.finish();
    let lines = crate::rig::objects(&rig.ok(&["logs", "developer-T1", "--json"]));
    let said: Vec<(u64, &str, &str)> = lines
        .iter()
        .map(|line| (line["epoch"].as_u64().expect("epoch"), line["stream"].as_str().expect("stream"), text(line)))
        .filter(|(_, _, text)| text.contains("says") || *text == "trouble")
        .collect();
    assert_eq!(said.iter().map(|(epoch, ..)| *epoch).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3], "{lines:?}");
    for (epoch, stream, text) in said {
        let expected = if stream == "stdout" { format!("attempt {epoch} says it") } else { "trouble".to_owned() };
        assert_eq!(text, expected);
    }
    for line in &lines {
        for key in ["seq", "time", "agent", "epoch", "stream", "text"] {
            assert!(!line[key].is_null(), "{key} is missing: {line}");
        }
    }
    rig.audit();
}

fn text(line: &Value) -> &str {
    line["text"].as_str().expect("text")
}

fn questions(rig: &Rig) -> Vec<Value> {
    let ended = rig.rekindle(&["questions", "--json"]);
    if ended.code != Some(0) {
        return Vec::new();
    }
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("no JSON: {error}: {}", ended.out))
}

fn id(question: &Value) -> String {
    question["id"].as_str().map_or_else(|| question["id"].to_string(), str::to_owned)
}

#[test]
fn an_agent_that_hides_its_token_cannot_order_without_a_coordinator_either() {
    let agent = "touch here\n$FAKE wait go\n(unset REKINDLE_TOKEN; rekindle task skip T1 > told 2>&1; echo $? > code)\n\
        $FAKE wait leave\ntouch made\nrekindle task done T1\n";
    let rig = Rig::new(ONE, agent);
    let run = rig.run();
    rig.await_file("here");
    rig.await_event("agent_started");
    run.kill();
    rig.touch("go");
    rig.until("the answer", || (!rig.lines("code").is_empty()).then_some(()));
    assert_eq!(rig.lines("code"), ["1"], "{:?}", rig.lines("told"));
    rig.touch("leave");
    rig.finish();
    assert!(rig.events_of("task_skipped").is_empty());
    rig.audit();
}

#[test]
fn a_coordinator_raises_its_limit_on_open_files_and_its_agents_keep_theirs() {
    let agent = "ulimit -S -n > limit\nenv | grep -c REKINDLE_DESCRIPTORS > told\ntouch here\n$FAKE wait go\ntouch made\n\
        rekindle task done $REKINDLE_TASK\n";
    let rig = Rig::new(ONE, agent);
    let mut command = std::process::Command::new("/bin/sh");
    rig.prepare(&mut command);
    command.args(["-c", "ulimit -S -n 300 && exec \"$0\" run plan.md"]).arg(crate::rig::program());
    let run = rig.launch(command);
    rig.await_file("here");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", run.pid())).expect("limits");
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let [soft, hard, ..] = files.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{files}") };
    assert_eq!(soft, hard, "as many as it may have");
    assert_ne!(soft, "300");
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
    assert_eq!((rig.lines("limit"), rig.lines("told")), (vec!["300".to_owned()], vec!["0".to_owned()]));
    rig.audit();
}
