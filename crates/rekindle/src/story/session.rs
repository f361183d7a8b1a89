//! What agents' own sessions report, in words: sessions, measures, compactions, failures, and the gates of their accounts.

use rekindle_core::activity::{Failure, Measure, Problem, Transcript, UnderWay};
use rekindle_core::event::{CompactionNear, GateClosed, GateEvent, SessionClosed, SessionEvent};
use rekindle_core::last_words;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::WaitRow;

use super::Parts;
use crate::ui::{Tone, dollars, elapsed, near_time, one_line, short_count};
use crate::waits;

/// Longest piece of a message or an error that a line shows.
const TEXT_MAX_CHARS: usize = 160;

/// Describes the event; `now` is when it happened.
pub(super) fn tell(fact: &SessionEvent, now: Time) -> Parts {
    match fact {
        SessionEvent::AgentSession { session_id, expected: Some(expected), .. } => {
            ("SESSION", Tone::Warning, format!("{session_id} started where {expected} should have continued"))
        }
        SessionEvent::AgentSession { session_id, model, .. } => {
            let model = model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
            ("SESSION", Tone::Dim, format!("{session_id}{model}"))
        }
        SessionEvent::AgentMeasured { measure, .. } => ("MEASURED", Tone::Dim, measured(measure)),
        SessionEvent::AgentTold { tell: Some(tell), .. } => {
            ("TOLD", Tone::Dim, format!("message {tell} is on its way"))
        }
        SessionEvent::AgentTold { text, .. } => ("TOLD", Tone::Active, short(text)),
        SessionEvent::InputClosed { .. } => ("CLOSED", Tone::Dim, "it gets no more messages and must exit".to_owned()),
        SessionEvent::AgentFailed { failure, .. } => ("TROUBLE", Tone::Warning, failed(failure, now)),
        SessionEvent::TurnEnded { ok: true, .. } => ("TURN ENDED", Tone::Dim, "it says that it is finished".to_owned()),
        SessionEvent::TurnEnded { .. } => ("TURN ENDED", Tone::Warning, "with an error".to_owned()),
        SessionEvent::AgentSaid(said) => ("SAID", Tone::Dim, last_words::short(&said.text).unwrap_or_default()),
        SessionEvent::SessionClosed(SessionClosed { transcript, cut_off, under_way, .. }) => {
            ("SESSION", Tone::Dim, closed(*transcript, cut_off.as_deref(), under_way))
        }
        SessionEvent::AgentCompacted(rekindle_core::event::AgentCompacted { compactions, automatic, .. }) => {
            let who = if *automatic == Some(false) { "on request" } else { "by itself" };
            let times = times(*compactions);
            ("COMPACTED", Tone::Warning, format!("its context was compacted {who}, {times} during this task"))
        }
        SessionEvent::AgentStalled(stalled) => ("CIRCLES", Tone::Warning, stalled.words.clone()),
        SessionEvent::AgentOnTask { .. } => ("ON TASK", Tone::Good, "it works on its task again".to_owned()),
        SessionEvent::CompactionStart(CompactionNear { compaction_number, context_remaining, .. }) => {
            let text =
                format!("{context_remaining} % of its context is left, preparing for compaction {compaction_number}");
            ("NEARLY FULL", Tone::Warning, text)
        }
        SessionEvent::CompactionComplete(over) => {
            let compaction_number = over.compaction_number;
            let plan = if over.full_reload { ", and it was given the whole plan again" } else { "" };
            ("RESTORED", Tone::Good, format!("compaction {compaction_number} is finished{plan}"))
        }
        SessionEvent::StatusAsked { .. } => {
            ("ASKED", Tone::Warning, "it shows no sign of life: it was asked for its status".to_owned())
        }
        SessionEvent::StatusAnswered { .. } => ("ANSWERED", Tone::Good, "it is there".to_owned()),
    }
}

pub(super) fn tell_gate(fact: &GateEvent, now: Time) -> Parts {
    match fact {
        GateEvent::GateClosed(closed) => {
            let who = match closed.question {
                Some(question) => format!("; it waits for the answer to question {question}"),
                None => String::new(),
            };
            ("WAITS", Tone::Warning, format!("{}{who}", waits::waiting(&row_of(closed), now)))
        }
        GateEvent::GateWidened { account, allowed } => (
            "WIDENED",
            Tone::Good,
            format!("{account} works again, {} at once may use it", counted(*allowed, "agent", "agents")),
        ),
        GateEvent::GateOpened { account } => ("OPENED", Tone::Good, format!("{account} no longer has to wait")),
    }
}

/// A gate at the moment it closed, as a table shows it.
pub(crate) fn row_of(closed: &GateClosed) -> WaitRow {
    let GateClosed { account, cause, until, reset, probe, .. } = closed;
    WaitRow { account: account.clone(), cause: cause.name().to_owned(), until: *until, reset: *reset, probe: *probe }
}

/// How much was used and how full the context is.
pub(crate) fn measured(measure: &Measure) -> String {
    let tokens = format!("{} tokens", short_count(measure.usage.tokens()));
    let cost = measure.usage.cost_usd.map(dollars);
    [Some(tokens), cost, context_left(measure)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How much of the context is left, where that is known.
pub(crate) fn context_left(measure: &Measure) -> Option<String> {
    let used = measure.context_used?;
    Some(match (measure.context_window, measure.remaining_percent()) {
        (Some(window), Some(left)) => {
            format!("{left} % of its context left ({} of {} tokens used)", short_count(used), short_count(window))
        }
        _ => format!("{} tokens in its context", short_count(used)),
    })
}

/// A failure in words; `now` is when it happened.
pub(crate) fn failed(failure: &Failure, now: Time) -> String {
    let what = match failure.problem {
        Problem::UsageLimit => "the usage limit is reached",
        Problem::Overloaded => "the provider is overloaded",
        Problem::Network => "the provider cannot be reached",
        Problem::Auth => "the credentials were refused",
        Problem::ContextFull => "the context is full",
        Problem::CompactionLoop => "it compacts again and again",
        Problem::Looping => "it repeats itself",
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
pub(crate) fn closed(transcript: Transcript, cut_off: Option<&str>, under_way: &UnderWay) -> String {
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
pub(crate) fn times(count: u32) -> String {
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
    use rekindle_core::cause::Cause;
    use rekindle_core::event::Body;
    use rekindle_core::ids::{AttemptId, QuestionId};

    use super::*;

    fn told_as<const N: usize>(cases: [(Body, &str); N]) {
        for (body, expected) in cases {
            let (verb, _, text) = crate::story::tell_known(&body, Time(0));
            assert_eq!(format!("{verb}: {text}"), expected);
        }
    }

    #[test]
    fn every_event_of_a_session_has_a_sentence() {
        let attempt = AttemptId(1);
        let failure = Failure { problem: Problem::Network, resets_at: None, text: String::new(), runaway: false };
        let lost = Body::Session(SessionEvent::AgentSession {
            attempt,
            session_id: "s".into(),
            model: None,
            expected: Some("t".into()),
        });
        let full = Body::Session(SessionEvent::CompactionStart(CompactionNear {
            attempt,
            compaction_number: 3,
            context_remaining: 9,
        }));
        told_as([
            (lost, "SESSION: s started where t should have continued"),
            (Body::Session(SessionEvent::AgentMeasured { attempt, measure: Measure::default() }), "MEASURED: 0 tokens"),
            (
                Body::Session(SessionEvent::AgentTold {
                    attempt,
                    number: 1,
                    text: "a\nb".into(),
                    reminder: false,
                    tell: None,
                }),
                "TOLD: a b",
            ),
            (Body::Session(SessionEvent::InputClosed { attempt }), "CLOSED: it gets no more messages and must exit"),
            (Body::Session(SessionEvent::AgentFailed { attempt, failure }), "TROUBLE: the provider cannot be reached"),
            (Body::Session(SessionEvent::TurnEnded { attempt, ok: false }), "TURN ENDED: with an error"),
            (
                Body::Session(SessionEvent::SessionClosed(SessionClosed {
                    attempt,
                    transcript: Transcript::Missing,
                    cut_off: None,
                    under_way: Default::default(),
                })),
                "SESSION: its transcript is missing or empty",
            ),
            (
                Body::Session(SessionEvent::AgentCompacted(rekindle_core::event::AgentCompacted {
                    attempt,
                    compactions: 2,
                    automatic: Some(false),
                    turns: 1,
                    calls: 1,
                })),
                "COMPACTED: its context was compacted on request, twice during this task",
            ),
            (Body::Session(SessionEvent::AgentOnTask { attempt }), "ON TASK: it works on its task again"),
            (full, "NEARLY FULL: 9 % of its context is left, preparing for compaction 3"),
            (
                Body::Session(SessionEvent::CompactionComplete(rekindle_core::event::CompactionOver {
                    attempt,
                    compaction_number: 4,
                    full_reload: true,
                    progress: rekindle_core::progress::Progress::default(),
                })),
                "RESTORED: compaction 4 is finished, and it was given the whole plan again",
            ),
        ]);
    }

    #[test]
    fn every_event_of_an_account_has_a_sentence() {
        let gate = |until, question| {
            let cause = Cause::Auth;
            Body::Gate(GateEvent::GateClosed(rekindle_core::event::GateClosed {
                account: "a".into(),
                cause,
                until,
                question,
                strikes: 1,
                reset: None,
                probe: 0,
                overloaded_until: None,
                limit_until: None,
            }))
        };
        told_as([
            (
                gate(None, Some(QuestionId(7))),
                "WAITS: a waits for working credentials; it waits for the answer to question 7",
            ),
            (
                Body::Gate(GateEvent::GateWidened { account: "a".into(), allowed: 2 }),
                "WIDENED: a works again, 2 agents at once may use it",
            ),
            (Body::Gate(GateEvent::GateOpened { account: "a".into() }), "OPENED: a no longer has to wait"),
        ]);
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
