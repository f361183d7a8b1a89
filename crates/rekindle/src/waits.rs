//! What a run waits for, in words: accounts, and a machine that is short of something. Story and view both say it.

use rekindle_core::cause::Cause;
use rekindle_core::time::Time;
use rekindle_core::view::{HeldRow, RunRow, WaitRow};

use crate::ui::{elapsed, near_time};

/// Why nothing new is started and what to type. The one place that puts it into words.
pub(crate) fn held(reason: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    format!("nothing new is started: {reason}{hint}")
}

/// The hold of a run that is not over or paused.
pub(crate) fn held_now(run: &RunRow) -> Option<&HeldRow> {
    run.held.as_ref().filter(|_| !matches!(run.state.as_str(), "complete" | "failed" | "paused"))
}

/// The same in a line.
pub(crate) fn held_line(run: &RunRow) -> Option<String> {
    held_now(run).map(|row| held(&row.reason, &row.hint))
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

/// Which probe ends a wait, and the reset that it comes after; nothing where no reset was named.
pub(crate) fn probe(wait: &WaitRow, now: Time) -> String {
    let reset = wait.reset.map(|reset| format!(", probe {} after the reset at {}", wait.probe, near_time(reset, now)));
    reset.unwrap_or_default()
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
