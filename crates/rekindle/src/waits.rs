//! What a run waits for, in words: accounts, and a machine that is short of something. Story and view both use it.

use std::path::Path;

use rekindle_core::budget::Scope;
use rekindle_core::cause::Cause;
use rekindle_core::ids::TaskId;
use rekindle_core::time::Time;
use rekindle_core::view::{Because, HeldRow, PersonAct, RunRow, SetUp, TaskRow, WaitRow, WaitsFor};

use crate::ui::{elapsed, near_time, one_line};

/// Why nothing new is started, and what to type. The only place that puts this into words.
pub(crate) fn held(reason: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    format!("nothing new is started: {reason}{hint}")
}

/// The hold of a run that is neither over nor paused.
pub(crate) fn held_now(run: &RunRow) -> Option<&HeldRow> {
    run.held.as_ref().filter(|_| !matches!(run.state.as_str(), "complete" | "failed" | "paused"))
}

/// The same in a line.
pub(crate) fn held_line(run: &RunRow) -> Option<String> {
    held_now(run).map(|row| held(&row.reason, &row.hint))
}

/// The state of a run's budgets and quiet hours: one line each, with whether it is a warning.
pub(crate) fn budgets(run: &RunRow, now: Time) -> Vec<(bool, String)> {
    let over = matches!(run.state.as_str(), "complete" | "failed");
    let lines = run.budget.lines(now).into_iter().map(|(state, line)| (state.warns(), format!("budget: {line}")));
    let quiet = run.budget.quiet_until.filter(|until| *until > now && !over);
    let quiet =
        quiet.map(|until| (true, format!("quiet hours: {}; running agents continue", countdown("over", until, now))));
    lines.chain(quiet).collect()
}

/// What an account waits for, how long from `now`, and what comes then.
pub(crate) fn waiting(wait: &WaitRow, now: Time) -> String {
    let WaitRow { account, cause, until, .. } = wait;
    let usage = Cause::UsageLimit { resets_at: None };
    let what = match cause.as_str() {
        cause if cause == usage.name() => "its usage limit",
        cause if cause == Cause::Overloaded.name() => "its overloaded provider",
        cause if cause == Cause::Auth.name() => "working credentials",
        _ => "its account",
    };
    let until = until.map(|until| match until > now {
        true => format!(" until {} (in {})", near_time(until, now), elapsed(until.since_ms(now))),
        false => format!(" until {}", near_time(until, now)),
    });
    format!("{account} waits for {what}{}{}", until.unwrap_or_default(), probe(wait, now))
}

/// Which probe ends a wait, and the reset that it comes after; empty if no reset was named.
pub(crate) fn probe(wait: &WaitRow, now: Time) -> String {
    let reset = wait.reset.map(|reset| format!(", probe {} after the reset at {}", wait.probe, near_time(reset, now)));
    reset.unwrap_or_default()
}

/// What continues a run that has no coordinator. The plan's path is shown as it would be typed here.
pub(crate) fn interrupted(run: &RunRow) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let plan = Path::new(&run.plan_path);
    let plan = plan.strip_prefix(&here).unwrap_or(plan).display().to_string();
    format!("interrupted: continue with `rekindle run {}`", one_line(&plan))
}

/// What a task waits for.
pub(crate) fn words(waits: &WaitsFor, task: &TaskRow, run: &RunRow, now: Time) -> String {
    match waits {
        WaitsFor::Task { tasks, because: Because::Plan } => format!("after {}", names(tasks)),
        WaitsFor::Task { tasks, because: Because::Failed } => match &tasks[..] {
            [one] => format!("after {one}, which failed: rekindle task retry {one}"),
            many => format!("after {}, which failed", names(many)),
        },
        WaitsFor::Task { tasks, because: Because::Agent } => format!("after {}: the same agent has both", names(tasks)),
        WaitsFor::Task { tasks, because: Because::Files } => {
            format!("after {}: both make the same files", names(tasks))
        }
        WaitsFor::Task { tasks, because: Because::Worktree } => {
            format!("after {}: both are in the same worktree", names(tasks))
        }
        WaitsFor::Agent { agent, stopping: true } => format!("for {agent} to stop"),
        WaitsFor::Agent { agent, stopping: false } => format!("for {agent} to end"),
        WaitsFor::Wave { wave } => format!("for wave {wave} to end"),
        WaitsFor::Slot { max_agents: 0 } => "for a free slot".to_owned(),
        WaitsFor::Slot { max_agents: 1 } => "for a free slot: one agent runs at a time".to_owned(),
        WaitsFor::Slot { max_agents } => format!("for a free slot: {max_agents} agents run at once"),
        WaitsFor::Account { account, cause, until } => {
            let gate = run.waits.iter().find(|wait| wait.account == *account);
            let then = gate.map(|gate| probe(gate, now)).unwrap_or_default();
            let until = match until {
                None => "until you answer".to_owned(),
                Some(until) if *until > now => countdown("opens", *until, now),
                Some(_) => "it is being tried".to_owned(),
            };
            one_line(&format!("{account} {}: {until}{then}", cause.replace('_', " ")))
        }
        WaitsFor::Person { act: PersonAct::Answer, .. } => "for your answer: rekindle questions".to_owned(),
        WaitsFor::Person { act: PersonAct::Resume, .. } => "paused: continue with `rekindle resume`".to_owned(),
        WaitsFor::Person { act: PersonAct::GoOn, .. } => interrupted(run),
        WaitsFor::Person { act: PersonAct::GiveBack, .. } => {
            "held for you: leave its session to give it back".to_owned()
        }
        WaitsFor::SetUp { what: SetUp::Health } => "for the plan's health commands".to_owned(),
        WaitsFor::SetUp { what: SetUp::Preflight } => "for the checks to be tried once".to_owned(),
        WaitsFor::SetUp { what: SetUp::Validation } => "for recent completions to be checked again".to_owned(),
        WaitsFor::Machine { reason, until } => {
            let until =
                until.filter(|until| *until > now).map(|until| format!("; {}", countdown("tried again", until, now)));
            one_line(&format!("the machine: {reason}{}", until.unwrap_or_default()))
        }
        WaitsFor::Budget { scope, question } => {
            let whose = format!("the budget of the {} is used up", scope.name());
            match question {
                Some(question) => format!("{whose}: answer question {question}"),
                None if *scope == Scope::Task && task.spending.handed_back => {
                    format!("{whose}, it is yours: rekindle task retry {}", task.id)
                }
                None => whose,
            }
        }
        WaitsFor::Quiet { until } => format!("quiet hours: {}", countdown("over", *until, now)),
        WaitsFor::Time { until } => {
            let last = task.cause.as_deref().map(|cause| format!("; last: {}", cause.replace('_', " ")));
            let used = format!("{} of {} used", task.attempts, task.attempt_limit);
            format!("next attempt in {}, {used}{}", elapsed(until.since_ms(now)), last.unwrap_or_default())
        }
    }
}

fn names(tasks: &[TaskId]) -> String {
    tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}

fn countdown(verb: &str, until: Time, now: Time) -> String {
    format!("{verb} in {} ({})", elapsed(until.since_ms(now)), near_time(until, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_for_what_and_how_long() {
        let now = Time(1_000_000);
        let until = |ms| Some(now.plus_ms(ms));
        let waiting = |cause: &str, until| {
            let (account, cause) = ("team".to_owned(), cause.to_owned());
            waiting(&WaitRow { account, cause, until, reset: None, probe: 1 }, now)
        };
        assert_eq!(waiting("auth", None), "team waits for working credentials");
        let limit = waiting("usage_limit", until(7_380_000));
        assert!(
            limit.starts_with("team waits for its usage limit until ") && limit.ends_with(" (in 2h03m)"),
            "{limit}"
        );
        let over = waiting("overloaded", Some(now));
        assert!(over.starts_with("team waits for its overloaded provider until ") && !over.contains("(in"), "{over}");
    }

    #[test]
    fn a_wait_for_a_probe_names_the_reset_and_which_probe_it_is() {
        let now = Time(1_000_000);
        let (reset, until) = (Some(now.minus_ms(12_000)), Some(now.plus_ms(18_000)));
        let row = WaitRow { account: "team".into(), cause: "usage_limit".into(), until, reset, probe: 2 };
        let said = waiting(&row, now);
        assert!(said.contains(" (in 18s), probe 2 after the reset at "), "{said}");
    }
}
