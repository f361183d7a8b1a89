//! A person steers: messages that reach an agent once, and a task in the person's own hands, whoever is killed meanwhile.

use rustix::process::Signal;
use serde_json::Value;

use crate::rig::{Rig, Running};

const ONE: &str = "# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";

/// Keeps its prompt and works until it is let go; the first attempt crashes.
const CRASHES: &str = r#"
cat > "prompt-$REKINDLE_ATTEMPT"
touch "working-$REKINDLE_ATTEMPT"
$FAKE wait "go-$REKINDLE_ATTEMPT"
test "$REKINDLE_ATTEMPT" = 1 && exit 7
touch made
rekindle task done T1
"#;

/// A program that takes messages while it runs: what it hears is kept, and it works until it is let go.
const LISTENS: &str = r#"
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
touch "working-$REKINDLE_ATTEMPT"
exec 3<&0
( while IFS= read -r line <&3; do printf '%s\n' "$line" >> "heard-$REKINDLE_ATTEMPT"; done ) &
$FAKE wait "go-$REKINDLE_ATTEMPT"
touch made
rekindle task done T1
"#;

const LISTENING: &str = "[agents.talks]\nkind = \"claude\"\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n\n\
    [run]\nagent = \"talks\"\nbackoff = \"10ms\"\n\n[stop]\ngrace = \"300ms\"\n";

fn listening() -> Rig {
    Rig::new(ONE, LISTENS).with_settings(LISTENING)
}

fn heard(rig: &Rig, attempt: u32, words: &str) -> usize {
    rig.lines(&format!("heard-{attempt}")).iter().filter(|line| line.contains(words)).count()
}

fn row(rig: &Rig) -> Value {
    let text = rig.ok(&["task", "show", "T1", "--json"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON: {error}: {text}"))
}

fn prompt(rig: &Rig, attempt: u32) -> String {
    rig.lines(&format!("prompt-{attempt}")).join("\n")
}

#[test]
fn a_message_stands_in_the_next_brief_once_and_on_record() {
    let rig = Rig::new(ONE, CRASHES);
    rig.set("DEPLOY_TOKEN", "sesame-open-4711");
    let first = rig.run();
    rig.await_file("working-1");
    let said = rig.rekindle(&["tell", "T1", "use the second door\u{7}, not sesame-open-4711"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("message 1 for T1: waits for its agent's next brief"), "{said:?}");
    let empty = rig.rekindle(&["tell", "T1", "  "]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    // Neither the coordinator's death nor its agent's loses it.
    first.kill();
    let offline = rig.rekindle(&["tell", "T1", "and mind the step"]);
    assert_eq!(offline.code, Some(0), "{offline:?}");
    let second = rig.run();
    rig.touch("go-1");
    rig.await_file("working-2");
    let brief = prompt(&rig, 2);
    assert_eq!(brief.matches("use the second door").count(), 1, "{brief}");
    assert_eq!(brief.matches("and mind the step").count(), 1, "{brief}");
    assert!(brief.contains("## The Person's Words") && brief.contains("[redacted:DEPLOY_TOKEN]"), "{brief}");
    assert!(!brief.contains("sesame-open-4711"), "{brief}");
    rig.until("both are delivered", || (rig.events_of("tell_delivered").len() == 2).then_some(()));
    rig.touch("go-2");
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rig.events_of("told").len(), 2);
    assert_eq!(rig.events_of("tell_delivered")[0]["details"]["how"], "prompt");
    let why = rig.ok(&["why", "T1"]);
    assert!(why.contains("your message 1: use the second door"), "{why}");
    assert!(why.contains("message 1, with its agent's prompt"), "{why}");
    let late = rig.rekindle(&["tell", "T1", "too late"]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.err.contains("rekindle task retry T1"), "{late:?}");
    rig.audit();
}

#[test]
fn an_agent_that_listens_has_it_at_once_and_no_restart_repeats_it() {
    let rig = listening();
    let first = rig.run();
    rig.await_file("working-1");
    let mut tell = rig.command(&["tell", "T1", "-"]);
    tell.stdin(std::process::Stdio::from(std::fs::File::open(rig.path("plan.md")).expect("a file")));
    let said = rig.launch(tell).end();
    assert!(said.err.contains("delivered while its agent ran"), "{said:?}");
    rig.until("it is heard", || (heard(&rig, 1, "# One") == 1).then_some(()));
    first.kill();
    let second = rig.run();
    rig.await_event("agent_adopted");
    rig.ok(&["tell", "T1", "and another"]);
    rig.until("the next is heard", || (heard(&rig, 1, "and another") == 1).then_some(()));
    assert_eq!(heard(&rig, 1, "# One"), 1, "one number is delivered once");
    rig.touch("go-1");
    assert_eq!(second.end().code, Some(0), "{}", rig.story());
    assert_eq!(rig.events_of("tell_delivered").len(), 2, "{}", rig.story());
    rig.assert_nothing_left();
}

#[test]
fn a_message_on_its_way_to_an_agent_that_is_killed_comes_with_the_next_prompt() {
    let rig = listening();
    let first = rig.run();
    rig.await_file("working-1");
    let shim = rig.until("its shim", || rig.shim_record(1));
    let shim = rig.pin(u32::try_from(shim["shim"]["pid"].as_u64().expect("a number")).expect("a pid"));
    shim.send(Signal::STOP);
    let tell = rig.start(&["tell", "T1", "are you there?"]);
    rig.until("it is sent", || row(&rig)["told"][0]["attempt"].as_u64());
    first.kill();
    tell.end();
    shim.kill();
    let second = rig.run();
    rig.await_file("working-2");
    rig.until("it is heard", || (heard(&rig, 2, "are you there?") == 1).then_some(()));
    assert_eq!(heard(&rig, 1, "are you there?"), 0);
    rig.touch("go-2");
    assert_eq!(second.end().code, Some(0), "{}", rig.story());
    let delivered = rig.events_of("tell_delivered");
    assert_eq!((delivered.len(), &delivered[0]["details"]["how"]), (1, &"prompt".into()), "{}", rig.story());
    rig.assert_nothing_left();
}

/// A person's shell: it shows where it is, changes something and stays until it is let go.
const SHELL: &str =
    "#!/bin/sh\necho \"by hand\" > hand.txt\necho $$ > \"$HERE/person\"\nexec $FAKE wait \"$HERE/leave\"\n";

/// Works until it is let go, in a worktree of its own; it keeps its prompts in the project.
const APART: &str = r#"
cat > "$HERE/prompt-$REKINDLE_TASK-$REKINDLE_ATTEMPT"
echo "$REKINDLE_ATTEMPT" >> "$HERE/ran-$REKINDLE_TASK"
touch "$HERE/working-$REKINDLE_TASK-$REKINDLE_ATTEMPT"
$FAKE wait "$HERE/go-$REKINDLE_TASK"
touch "made-$REKINDLE_TASK"
rekindle task done "$REKINDLE_TASK"
"#;

const TWO: &str = "# Two\n\n### T1: work\n- accept: `test -e made-T1`\n\nWork.\n\n### T2: more\n- accept: `test -e made-T2`\n\nMore.\n";

fn apart() -> Rig {
    let rig = Rig::new(TWO, APART).with("\n");
    rig.write("shell.sh", SHELL);
    rig.write(".gitignore", "prompt-*\nran-*\nworking-*\ngo-*\nperson\nleave\n.rekindle\n");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(rig.path("shell.sh"), std::fs::Permissions::from_mode(0o755)).expect("executable");
    rig.commit_first(".");
    rig.set("HERE", rig.root());
    rig.set("SHELL", rig.path("shell.sh"));
    rig
}

fn start(rig: &Rig) -> Running {
    rig.start(&["run", "plan.md", "--max-agents", "2"])
}

/// The person has the task.
fn hold(rig: &Rig) -> (Running, u32) {
    let attach = rig.start(&["attach", "T1"]);
    rig.await_file("person");
    let pid = row(rig)["attached"]["pid"].as_u64().unwrap_or_else(|| panic!("nobody has it: {}", rig.story()));
    let pid = u32::try_from(pid).expect("a pid");
    assert_eq!(rig.lines("person"), [pid.to_string()], "the hold is the program's own");
    (attach, pid)
}

/// The task was given back with what changed, to the one who goes on with it, and the run ends well.
fn goes_on(rig: &Rig, run: Running) {
    rig.await_event("detached");
    let next = rig.until("an attempt after it", || rig.lines("ran-T1").get(1).cloned());
    let brief = rig.until("its prompt", || {
        let text = rig.lines(&format!("prompt-T1-{next}")).join("\n");
        text.contains("The person held T1 themselves").then_some(text)
    });
    assert!(brief.contains("new: hand.txt"), "{brief}");
    rig.touch("go-T1");
    rig.touch("go-T2");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.events_of("detached").len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("detached")[0]["details"]["changed"][0], "new: hand.txt");
    assert_eq!(row(rig)["attempts"], 1, "what was stopped for the person does not count");
    rig.assert_nothing_left();
    rig.audit();
}

fn working(rig: &Rig) {
    rig.until("both work", || (rig.lines("ran-T1").len() == 1 && rig.lines("ran-T2").len() == 1).then_some(()));
}

#[test]
fn a_person_has_a_task_alone_and_gives_it_back() {
    let rig = apart();
    let run = start(&rig);
    working(&rig);
    let (attach, pid) = hold(&rig);
    assert!(attach.said().contains("here is a shell in"), "{}", attach.said());
    let shown = rig.ok(&["status"]);
    assert!(shown.contains("held for you"), "{shown}");
    let second = rig.rekindle(&["attach", "T1"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains(&format!("process {pid}")), "{second:?}");
    // The others go on meanwhile.
    rig.touch("go-T2");
    rig.until("T2 is complete", || (rig.task("T2")["state"] == "complete").then_some(()));
    assert_eq!(rig.lines("ran-T1").len(), 1, "nothing is started on what a person holds");
    rig.touch("leave");
    let ended = attach.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("T1 is given back") && ended.err.contains("new: hand.txt"), "{ended:?}");
    goes_on(&rig, run);
}

#[test]
fn a_person_who_is_killed_gives_the_task_back() {
    let rig = apart();
    let run = start(&rig);
    working(&rig);
    let (attach, pid) = hold(&rig);
    rig.pin(pid).kill();
    attach.end();
    goes_on(&rig, run);
}

#[test]
fn a_command_that_is_killed_leaves_the_person_their_program() {
    let rig = apart();
    let run = start(&rig);
    working(&rig);
    let (attach, pid) = hold(&rig);
    attach.kill();
    assert_eq!(row(&rig)["attached"]["pid"], pid, "the person still works in it");
    rig.touch("leave");
    goes_on(&rig, run);
}

#[test]
fn a_coordinator_that_is_killed_takes_the_hold_over() {
    let rig = apart();
    let run = start(&rig);
    working(&rig);
    let (attach, pid) = hold(&rig);
    run.kill();
    let run = start(&rig);
    rig.await_event("coordinator_recovered");
    assert_eq!(row(&rig)["attached"]["pid"], pid);
    assert_eq!(rig.lines("ran-T1").len(), 1, "{}", rig.story());
    rig.touch("leave");
    assert_eq!(attach.end().code, Some(0), "{}", rig.story());
    goes_on(&rig, run);
}

#[test]
fn a_person_who_left_without_any_coordinator_is_found_gone() {
    for killed in [true, false] {
        let rig = apart();
        let run = start(&rig);
        working(&rig);
        let (attach, pid) = hold(&rig);
        run.kill();
        match killed {
            // Nobody is left who could say it: the next coordinator finds out.
            true => {
                attach.kill();
                rig.pin(pid).kill();
            }
            false => {
                rig.touch("leave");
                let ended = attach.end();
                assert!(ended.err.contains("rekindle resume"), "{ended:?}");
            }
        }
        goes_on(&rig, start(&rig));
    }
}

#[test]
fn a_paused_task_can_be_had_without_a_coordinator_and_a_running_one_cannot() {
    let rig = apart();
    let run = start(&rig);
    working(&rig);
    run.kill();
    let refused = rig.rekindle(&["attach", "T1"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("rekindle resume"), "{refused:?}");
    rig.ok(&["pause"]);
    let (attach, _) = hold(&rig);
    rig.touch("leave");
    assert_eq!(attach.end().code, Some(0));
    goes_on(&rig, start(&rig));
}
