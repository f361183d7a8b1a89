//! What agents' own sessions tell, in words: sessions, measures, compactions, failures, and the gates of their accounts.

use rekindle_core::activity::{Failure, Measure, Problem, Transcript, UnderWay};
use rekindle_core::cause::Cause;
use rekindle_core::event::{Body, CompactionNear, GateClosed, SessionClosed};
use rekindle_core::last_words;
use rekindle_core::time::Time;
use rekindle_core::view::{HeldRow, RunRow, WaitRow};

use super::Parts;
use crate::ui::{Tone, dollars, elapsed, near_time, one_line, short_count};

/// Longest piece of a message or an error that a line shows.
const TEXT_MAX_CHARS: usize = 160;

/// Tells it; `now` is when it happened.
pub(super) fn tell(body: &Body, now: Time) -> Option<Parts> {
    tell_session(body, now).or_else(|| tell_compaction(body)).or_else(|| tell_gate(body, now))
}

fn tell_session(body: &Body, now: Time) -> Option<Parts> {
    Some(match body {
        Body::AgentSession { session_id, expected: Some(expected), .. } => {
            ("SESSION", Tone::Warning, format!("{session_id} started where {expected} should have continued"))
        }
        Body::AgentSession { session_id, model, .. } => {
            let model = model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
            ("SESSION", Tone::Dim, format!("{session_id}{model}"))
        }
        Body::AgentMeasured { measure, .. } => ("MEASURED", Tone::Dim, measured(measure)),
        Body::AgentTold { text, .. } => ("TOLD", Tone::Active, short(text)),
        Body::InputClosed { .. } => ("CLOSED", Tone::Dim, "it gets no more messages and must exit".to_owned()),
        Body::AgentFailed { failure, .. } => ("TROUBLE", Tone::Warning, failed(failure, now)),
        Body::TurnEnded { ok: true, .. } => ("TURN ENDED", Tone::Dim, "it says that it is finished".to_owned()),
        Body::TurnEnded { .. } => ("TURN ENDED", Tone::Warning, "with an error".to_owned()),
        Body::AgentSaid(said) => ("SAID", Tone::Dim, last_words::short(&said.text).unwrap_or_default()),
        Body::SessionClosed(SessionClosed { transcript, cut_off, under_way, .. }) => {
            ("SESSION", Tone::Dim, closed(*transcript, cut_off.as_deref(), under_way))
        }
        _ => return None,
    })
}

fn tell_compaction(body: &Body) -> Option<Parts> {
    Some(match body {
        Body::AgentCompacted(rekindle_core::event::AgentCompacted { compactions, automatic, .. }) => {
            let who = if *automatic == Some(false) { "on request" } else { "by itself" };
            let times = times(*compactions);
            ("COMPACTED", Tone::Warning, format!("its context was compacted {who}, {times} during this task"))
        }
        Body::AgentStalled(stalled) => ("CIRCLES", Tone::Warning, stalled.words.clone()),
        Body::AgentOnTask { .. } => ("ON TASK", Tone::Good, "it works on its task again".to_owned()),
        Body::CompactionStart(CompactionNear { compaction_number, context_remaining, .. }) => {
            let text =
                format!("{context_remaining} % of its context is left, preparing for compaction {compaction_number}");
            ("NEARLY FULL", Tone::Warning, text)
        }
        Body::CompactionComplete(over) => {
            let compaction_number = over.compaction_number;
            let plan = if over.full_reload { ", and it was given the whole plan again" } else { "" };
            ("RESTORED", Tone::Good, format!("compaction {compaction_number} is finished{plan}"))
        }
        _ => return None,
    })
}

fn tell_gate(body: &Body, now: Time) -> Option<Parts> {
    Some(match body {
        Body::GateClosed(closed) => {
            let who = match closed.question {
                Some(question) => format!("; it waits for the answer to question {question}"),
                None => String::new(),
            };
            ("WAITS", Tone::Warning, format!("{}{who}", waiting(&row_of(closed), now)))
        }
        Body::GateWidened { account, allowed } => {
            ("WIDENED", Tone::Good, format!("{account} works again, {allowed} agents at once may use it"))
        }
        Body::GateOpened { account } => ("OPENED", Tone::Good, format!("{account} no longer has to wait")),
        _ => return None,
    })
}

/// A gate as it was closed, as a table shows it.
#[must_use]
pub fn row_of(closed: &GateClosed) -> WaitRow {
    let GateClosed { account, cause, until, reset, probe, .. } = closed;
    WaitRow { account: account.clone(), cause: cause.name().to_owned(), until: *until, reset: *reset, probe: *probe }
}

/// Why nothing new is started and what to type. The one place that puts it into words.
#[must_use]
pub fn held(reason: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    format!("nothing new is started: {reason}{hint}")
}

/// The hold of a run that is not over or paused.
#[must_use]
pub fn held_now(run: &RunRow) -> Option<&HeldRow> {
    run.held.as_ref().filter(|_| !matches!(run.state.as_str(), "complete" | "failed" | "paused"))
}

/// The same in a line.
#[must_use]
pub fn held_line(run: &RunRow) -> Option<String> {
    held_now(run).map(|row| held(&row.reason, &row.hint))
}

/// What an account waits for, how long from `now`, and what comes then.
#[must_use]
pub fn waiting(wait: &WaitRow, now: Time) -> String {
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
#[must_use]
pub fn probe(wait: &WaitRow, now: Time) -> String {
    let reset = wait.reset.map(|reset| format!(", probe {} after the reset at {}", wait.probe, near_time(reset, now)));
    reset.unwrap_or_default()
}

/// How much was used and how full the context is.
#[must_use]
pub fn measured(measure: &Measure) -> String {
    let tokens = format!("{} tokens", short_count(measure.usage.tokens()));
    let cost = measure.usage.cost_usd.map(dollars);
    [Some(tokens), cost, context_left(measure)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How much of the context is left, where that is known.
#[must_use]
pub fn context_left(measure: &Measure) -> Option<String> {
    let used = measure.context_used?;
    Some(match (measure.context_window, measure.remaining_percent()) {
        (Some(window), Some(left)) => {
            format!("{left} % of its context left ({} of {} tokens used)", short_count(used), short_count(window))
        }
        _ => format!("{} tokens in its context", short_count(used)),
    })
}

/// A failure in words; `now` is when it happened.
#[must_use]
pub fn failed(failure: &Failure, now: Time) -> String {
    let what = match failure.problem {
        Problem::UsageLimit => "the usage limit is reached",
        Problem::Overloaded => "the provider is overloaded",
        Problem::Network => "the provider cannot be reached",
        Problem::Auth => "the credentials were refused",
        Problem::ContextFull => "the context is full",
        Problem::CompactionLoop => "it compacts again and again",
        Problem::Looping => "it goes round in circles",
        Problem::SessionGone => "the session is not there",
        Problem::Other => "its turn failed",
    };
    let reset = failure.resets_at.map(|at| match at > now {
        true => format!(", reset at {} (in {})", near_time(at, now), elapsed(at.since_ms(now))),
        false => format!(", reset at {}", near_time(at, now)),
    });
    let runaway = if failure.runaway { ", and it would never stop" } else { "" };
    let text = Some(short(&failure.text)).filter(|text| !text.is_empty()).map(|text| format!(": {text}"));
    format!("{what}{}{runaway}{}", reset.unwrap_or_default(), text.unwrap_or_default())
}

/// What was left of a session.
#[must_use]
pub fn closed(transcript: Transcript, cut_off: Option<&str>, under_way: &UnderWay) -> String {
    let found = match transcript {
        Transcript::Whole => "its transcript is whole",
        Transcript::Missing => "its transcript is missing or empty",
        Transcript::Unknown => "its transcript cannot be read",
    };
    let cut_off = cut_off.map(|call| format!("; cut off in the middle of {}", short(call))).unwrap_or_default();
    let forgotten = match under_way.calls.len() as u64 + under_way.left_out {
        0 => String::new(),
        1 => "; the resumed session lacks 1 call or its outcome".to_owned(),
        calls => format!("; the resumed session lacks {calls} calls or their outcomes"),
    };
    format!("{found}{cut_off}{forgotten}")
}

/// How often, in words.
#[must_use]
pub fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

fn short(text: &str) -> String {
    let line = one_line(text);
    if line.chars().count() <= TEXT_MAX_CHARS {
        return line;
    }
    let head: String = line.chars().take(TEXT_MAX_CHARS).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use rekindle_core::ids::{AttemptId, QuestionId};

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

    #[test]
    fn every_event_of_a_session_has_a_sentence() {
        let attempt = AttemptId(1);
        let failure = Failure { problem: Problem::Network, resets_at: None, text: String::new(), runaway: false };
        let gate = |until, question| {
            let cause = Cause::Auth;
            Body::GateClosed(rekindle_core::event::GateClosed {
                account: "a".into(),
                cause,
                until,
                question,
                strikes: 1,
                reset: None,
                probe: 0,
            })
        };
        let lost = Body::AgentSession { attempt, session_id: "s".into(), model: None, expected: Some("t".into()) };
        let full = Body::CompactionStart(CompactionNear { attempt, compaction_number: 3, context_remaining: 9 });
        let cases = [
            (lost, "SESSION: s started where t should have continued"),
            (Body::AgentMeasured { attempt, measure: Measure::default() }, "MEASURED: 0 tokens"),
            (Body::AgentTold { attempt, number: 1, text: "a\nb".into(), reminder: false }, "TOLD: a b"),
            (Body::InputClosed { attempt }, "CLOSED: it gets no more messages and must exit"),
            (Body::AgentFailed { attempt, failure }, "TROUBLE: the provider cannot be reached"),
            (Body::TurnEnded { attempt, ok: false }, "TURN ENDED: with an error"),
            (
                Body::SessionClosed(SessionClosed {
                    attempt,
                    transcript: Transcript::Missing,
                    cut_off: None,
                    under_way: Default::default(),
                }),
                "SESSION: its transcript is missing or empty",
            ),
            (
                Body::AgentCompacted(rekindle_core::event::AgentCompacted {
                    attempt,
                    compactions: 2,
                    automatic: Some(false),
                    turns: 1,
                    calls: 1,
                }),
                "COMPACTED: its context was compacted on request, twice during this task",
            ),
            (Body::AgentOnTask { attempt }, "ON TASK: it works on its task again"),
            (full, "NEARLY FULL: 9 % of its context is left, preparing for compaction 3"),
            (
                Body::CompactionComplete(rekindle_core::event::CompactionOver {
                    attempt,
                    compaction_number: 4,
                    full_reload: true,
                    progress: rekindle_core::progress::Progress::default(),
                }),
                "RESTORED: compaction 4 is finished, and it was given the whole plan again",
            ),
            (
                gate(None, Some(QuestionId(7))),
                "WAITS: a waits for working credentials; it waits for the answer to question 7",
            ),
            (
                Body::GateWidened { account: "a".into(), allowed: 2 },
                "WIDENED: a works again, 2 agents at once may use it",
            ),
            (Body::GateOpened { account: "a".into() }, "OPENED: a no longer has to wait"),
        ];
        for (body, expected) in cases {
            let (verb, _, text) = tell(&body, Time(0)).unwrap_or_else(|| panic!("nothing is said of {body:?}"));
            assert_eq!(format!("{verb}: {text}"), expected);
        }
    }

    #[test]
    fn a_long_error_is_cut_and_harmless() {
        let failure = Failure {
            problem: Problem::Other,
            resets_at: None,
            text: format!("\u{1b}[31m{}", "é".repeat(1_000)),
            runaway: true,
        };
        let shown = failed(&failure, Time(0));
        let expected = format!("its turn failed, and it would never stop: {}…", "é".repeat(TEXT_MAX_CHARS));
        assert_eq!(shown, expected);
    }
}
