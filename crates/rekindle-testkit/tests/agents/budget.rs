//! A budget and real programs: nobody starts beyond it, every call counts once, and a `kill -9` of the coordinator changes neither.
//!
//! What the provider served is the measure: rekindle's own sum has to be the same, to the token.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Act, Answer, Asked, Purpose, Script, When};
use serde_json::json;

use crate::bed::Bed;
use crate::setting::Setting;

const TASKS: usize = 5;

/// Agents that run at once: their programs take half a gigabyte each.
const AT_ONCE: usize = 3;

/// Calls of the model that one task takes: work, report, end of the turn.
const CALLS: u64 = 3;

/// What one call takes, as the provider says.
const CALL: (u64, u64) = (1_000, 100);

const CALL_TOKENS: u64 = CALL.0 + CALL.1;

/// Less than half of what the agents that run at once take for their tasks.
const LIMIT: u64 = 4_000;

fn plan() -> String {
    let task =
        |n: usize| format!("### T{n}: Make file {n}\n- accept: `test -e made-T{n}`\n\nMake it. Word: wombat-{n}.\n\n");
    format!("# Money\n\n{}", (1..=TASKS).map(task).collect::<String>())
}

/// A model that works on whatever task it is asked about. Its first and its last answer about each task wait for a file.
fn script(bed: &Bed) -> Script {
    let mut script = Script::new();
    for n in 1..=TASKS {
        let (word, begun, ended) = (format!("wombat-{n}"), format!("begun-T{n}"), format!("ended-T{n}"));
        let about = |more: Vec<When>| {
            let mut when = vec![When::Purpose(Purpose::Main), When::Anywhere(word.clone())];
            when.extend(more);
            when
        };
        let work = Answer::shell(format!("echo {begun} && touch made-T{n}")).tokens(CALL.0, CALL.1);
        let report =
            Act::Report { tool: "task_done".into(), args: json!({ "task": format!("T{n}"), "result": ended }) };
        let report = Answer { acts: vec![report], ..Answer::default() }.tokens(CALL.0, CALL.1);
        let bye = Answer::say("That is all.").tokens(CALL.0, CALL.1);
        script = script
            .whenever(about(vec![When::Anywhere(ended.clone())]), bye.after(bed.rig.path("end")))
            .whenever(about(vec![When::Anywhere(begun.clone())]), report)
            .whenever(about(Vec::new()), work.after(bed.rig.path("go")));
    }
    script
}

fn bed(cli: Cli) -> Bed {
    let budget = format!("\n[budget]\nrun = {{ tokens = {LIMIT} }}\n");
    let bed = Bed::with(cli, Script::new(), Setting::default(), &budget);
    bed.rig.write("plan.md", &plan());
    bed.rig.set("REKINDLE_RUN_MAX_AGENTS", AT_ONCE.to_string());
    bed.server.add(script(&bed));
    bed
}

/// Calls of the model that were answered by the script.
fn served(bed: &Bed) -> Vec<Asked> {
    bed.server.main().into_iter().filter(|asked| asked.rule.is_some()).collect()
}

fn spent(bed: &Bed) -> u64 {
    bed.rig.status()["budget"]["run"]["spent"]["tokens"].as_u64().expect("tokens")
}

/// As many agents as may run use the budget up together: nobody new starts, they finish, and a person is asked.
fn used_up(cli: Cli, kills: bool) {
    let bed = bed(cli);
    let mut run = bed.rig.run();
    bed.rig.until("every agent asks its model", || (served(&bed).len() == AT_ONCE).then_some(()));
    bed.go();
    bed.rig.await_event("budget_reached");
    let all = usize::try_from(CALLS).expect("few") * AT_ONCE;
    bed.rig.until("every agent makes its last call", || (served(&bed).len() == all).then_some(()));
    if kills {
        run.kill();
        run = bed.rig.run();
        bed.rig.until("all are adopted", || (bed.rig.events_of("agent_adopted").len() == AT_ONCE).then_some(()));
    }
    bed.rig.touch("end");
    bed.rig.await_event("budget_asked");
    bed.rig.until("the agents have left", || (bed.rig.events_of("attempt_ended").len() == AT_ONCE).then_some(()));

    let events = bed.rig.events();
    let reached: Vec<_> = events.iter().filter(|event| event["kind"] == "budget_reached").collect();
    assert_eq!(reached.len(), 1, "told once\n{}", bed.story());
    assert_eq!(bed.rig.events_of("developer_dispatched").len(), AT_ONCE, "nobody new starts\n{}", bed.story());
    let calls = served(&bed).len() as u64;
    let whole = spent(&bed);
    assert_eq!(whole, calls * CALL_TOKENS, "every call counts once\n{}", bed.story());
    // The limit is seen with the first report that passes it, and no report tells more than an attempt.
    let known = reached[0]["details"]["spent"]["tokens"].as_u64().expect("tokens");
    assert!((LIMIT..LIMIT + CALLS * CALL_TOKENS).contains(&known), "{known} tokens were known\n{}", bed.story());
    measured(cli, kills, known, whole);

    let question = bed.rig.status()["budget"]["run"]["question"].as_u64().expect("a question").to_string();
    bed.rig.ok(&["answer", &question, "go on"]);
    bed.finish(run);
    assert_eq!(spent(&bed), TASKS as u64 * CALLS * CALL_TOKENS, "{}", bed.story());
}

/// The figures for docs/budget.md. Whoever runs finishes its attempt, so this is more than the calls in flight at that moment, of
/// which an agent has one at most.
#[expect(clippy::print_stdout, reason = "figures for whoever runs it with --no-capture")]
fn measured(cli: Cli, kills: bool, known: u64, whole: u64) {
    let killed = if kills { ", coordinator killed" } else { "" };
    let over = whole - LIMIT;
    let tenths = over * 10 / CALL_TOKENS;
    println!(
        "{}{killed}: limit {LIMIT}, known then {known}, spent {whole}: {over} over, {}.{} calls; at most {AT_ONCE} were in flight",
        cli.name(),
        tenths / 10,
        tenths % 10
    );
}

#[test]
fn nobody_starts_beyond_a_budget_and_every_call_counts_once_claude() {
    used_up(Cli::Claude, false);
}

#[test]
fn nobody_starts_beyond_a_budget_and_every_call_counts_once_codex() {
    used_up(Cli::Codex, false);
}

#[test]
fn a_killed_coordinator_counts_every_call_once_and_asks_once_claude() {
    used_up(Cli::Claude, true);
}

#[test]
fn a_killed_coordinator_counts_every_call_once_and_asks_once_codex() {
    used_up(Cli::Codex, true);
}
