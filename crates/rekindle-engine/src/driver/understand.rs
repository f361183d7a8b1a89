//! What an agent's own output leads to: stream events for decisions, signals in its final message, and what it left behind
//! at its end.

use rekindle_core::activity::{
    Activity, Ending, Failure, History, Lost, Problem, StreamEvent, Transcript, UnderWay, under_way,
};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::signal::Signals;
use rekindle_core::text;
use rekindle_core::time::Time;

use super::spools::{Understood, source};
use super::{Driver, Error};
use crate::ingest::Record;
use crate::store::Stream;
use crate::world::World;

/// Longest text kept of a call that was cut off: a command, not the whole content of a file.
const CUT_OFF_BYTES: usize = 600;

/// Longest call that evidence quotes.
const CALL_SHOWN_BYTES: usize = 160;

/// Longest raw line that is shown for a line without meaning.
const RAW_SHOWN_BYTES: usize = 200;

impl<W: World> Driver<W> {
    /// What a record means; `None` for an agent whose stream cannot be parsed.
    pub(super) fn understand(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        record: &Record,
    ) -> Result<Option<Vec<Activity>>, Error> {
        let Some(understood) = &mut self.spools_of(attempt)?.understood else { return Ok(None) };
        let whole = record.is_whole() && !record.torn;
        Ok(Some(understood.reader.line(source(stream), &record.text(), whole)))
    }

    /// A record in readable form, for a part of a spool that is only indexed.
    pub(super) fn shown_of(&mut self, attempt: AttemptId, stream: Stream, record: &Record) -> Option<String> {
        let cli = &self.state.attempts.get(&attempt)?.cli;
        let mut reader = self.world.reader(&cli.clone())?;
        Some(shown(&reader.line(source(stream), &record.text(), record.is_whole()), record))
    }

    /// Decides on what was seen, in order.
    pub(super) fn take_activities(&mut self, attempt: AttemptId, activities: &[Activity]) -> Result<(), Error> {
        for activity in activities {
            if let Activity::Result { text: Some(text), .. } = activity {
                self.take_final_message(attempt, text);
            }
            let awake = self.awake();
            let Some(understood) = &mut self.spools_of(attempt)?.understood else { return Ok(()) };
            understood.note_storm(activity, awake);
            let events = understood.fold.take(activity);
            if matches!(activity, Activity::Result { .. }) {
                self.take_words(attempt);
            }
            for event in events {
                let event = self.redact_event(event);
                self.take(Input::Streamed { attempt, event });
            }
        }
        Ok(())
    }

    /// The call that an agent is in, for a person who asks why it counts as silent.
    pub fn open_call(&self, attempt: AttemptId) -> Option<String> {
        let call = self.spools.get(&attempt)?.understood.as_ref()?.fold.open_call()?;
        let call = self.clean(&format!("{}: {}", call.tool, call.input));
        Some(text::one_line(&call, CALL_SHOWN_BYTES))
    }

    /// Whether an agent is known to wait only for its model: it has no open call, nothing works for it in the background,
    /// and its program is not about to retry on its own.
    pub fn waits_for_model(&self, attempt: AttemptId) -> bool {
        let understood = self.spools.get(&attempt).and_then(|spools| spools.understood.as_ref());
        understood.is_some_and(|understood| {
            let fold = &understood.fold;
            understood.storm.is_none() && fold.open_call().is_none() && fold.background() == 0
        })
    }

    /// Stops agents whose programs have been retrying on their own for longer than they may be silent: messages about
    /// failures do not show progress.
    pub fn break_storms(&mut self) -> Result<(), Error> {
        let awake = self.awake();
        let limit_ms = self.state.limits.silence_ms;
        let storms: Vec<(AttemptId, Failure)> = self
            .spools
            .iter()
            .filter(|(id, _)| {
                self.state.attempts.get(id).is_some_and(|found| found.stop.is_none()) && !self.is_gone(**id)
            })
            .filter_map(|(id, spools)| {
                let storm = spools.understood.as_ref()?.storm.as_ref()?;
                let long = awake.since_ms(storm.since) >= limit_ms;
                long.then(|| (*id, storm.failure.clone()))
            })
            .collect();
        for (attempt, failure) in storms {
            let event = self.redact_event(StreamEvent::Failed(failure));
            self.take(Input::Streamed { attempt, event });
        }
        self.commit()
    }

    /// The time without suspensions of the machine. Only for comparing two moments within one coordinator's life.
    fn awake(&mut self) -> Time {
        self.world.now().minus_ms(self.state.clocks.slept_ms)
    }

    /// Handles the end of a process whose output has been read completely.
    pub(super) fn end_reader(&mut self, attempt: AttemptId, code: Option<i32>) -> Result<(), Error> {
        let Some(understood) = &mut self.spools_of(attempt)?.understood else { return Ok(()) };
        let activities = understood.reader.end(code);
        self.take_activities(attempt, &activities)
    }

    /// Signals count only in an agent's final message.
    fn take_final_message(&mut self, attempt: AttemptId, text: &str) {
        let mut signals = Signals::default();
        for line in text.lines() {
            let signal = signals.line(line);
            self.take_signal(attempt, signal);
        }
        let last = signals.finish();
        self.take_signal(attempt, last);
    }

    /// What an agent that has ended left of its own session.
    pub(super) fn close_session(&mut self, attempt: AttemptId) {
        let Some(found) = self.state.attempts.get(&attempt) else { return };
        let (cli, session) = (found.cli.clone(), found.cli_session.session.clone());
        let resumes = found.cli_session.resumes.is_some();
        let Some(understood) = self.spools.get(&attempt).and_then(|spools| spools.understood.as_ref()) else { return };
        let measure = understood.fold.measure();
        let cut_off = understood.fold.open_call().map(|call| format!("{}: {}", call.tool, call.input));
        let cut_off = cut_off.map(|call| text::truncate_bytes(&self.clean(&call), CUT_OFF_BYTES).to_owned());
        let ledger = understood.fold.ledger();
        let (transcript, history) = match session {
            Some(session) => {
                let history = self.world.history(attempt, &cli, &session, ledger);
                (self.world.transcript_state(attempt, &cli, &session), history)
            }
            None => (Transcript::Unknown, History::Unknown),
        };
        let under_way = self.redact_under_way(under_way(ledger, &history));
        // A session that never got its first prompt knows nothing of its task: there is nothing to continue.
        let empty = under_way.unheard && !resumes && matches!(history, History::Read { .. });
        let transcript = if empty { Transcript::Missing } else { transcript };
        self.take(Input::SessionClosed { attempt, measure, transcript, cut_off, under_way });
    }

    /// The same with secrets removed.
    fn redact_under_way(&self, under_way: UnderWay) -> UnderWay {
        let short = |words: &str| text::fold(&self.clean(words), CUT_OFF_BYTES).into_owned();
        let clean = |lost: Lost| Lost {
            tool: self.clean(&lost.tool),
            input: short(&lost.input),
            ending: match lost.ending {
                Ending::Finished { ok, output } => Ending::Finished { ok, output: short(&output) },
                Ending::MayBeKnown { ok, output } => Ending::MayBeKnown { ok, output: short(&output) },
                Ending::Open => Ending::Open,
            },
        };
        UnderWay { calls: under_way.calls.into_iter().map(clean).collect(), ..under_way }
    }

    /// A stream event with secrets removed from all its texts.
    fn redact_event(&self, event: StreamEvent) -> StreamEvent {
        match event {
            StreamEvent::Failed(failure) => StreamEvent::Failed(Failure { text: self.clean(&failure.text), ..failure }),
            StreamEvent::Session { id, model } => {
                StreamEvent::Session { id: self.clean(&id), model: model.map(|model| self.clean(&model)) }
            }
            StreamEvent::Stalled { times, words, printed } => {
                StreamEvent::Stalled { times, words: self.clean(&words), printed: self.clean(&printed) }
            }
            other => other,
        }
    }
}

/// A program that keeps retrying on its own.
pub(super) struct Storm {
    /// In time awake.
    since: Time,
    failure: Failure,
}

impl Understood {
    /// Tracks how long a program has been retrying: from the first failure until anything works.
    fn note_storm(&mut self, activity: &Activity, awake: Time) {
        match activity {
            Activity::Retrying { problem, text } => {
                let failure = Failure {
                    problem: problem.filter(|problem| *problem != Problem::Other).unwrap_or(Problem::Network),
                    resets_at: None,
                    text: text.clone(),
                    runaway: true,
                };
                match &mut self.storm {
                    Some(storm) => storm.failure = failure,
                    None => self.storm = Some(Storm { since: awake, failure }),
                }
            }
            Activity::Turn
            | Activity::Said { .. }
            | Activity::CallStarted(_)
            | Activity::CallEnded { .. }
            | Activity::Compacted { .. }
            | Activity::Result { .. } => self.storm = None,
            _ => {}
        }
    }
}

/// A record's line in the index: its meaning, or its start if it has none.
pub(super) fn shown(activities: &[Activity], record: &Record) -> String {
    let lines: Vec<String> = activities.iter().filter_map(Activity::shown).collect();
    if !lines.is_empty() || !activities.is_empty() {
        return lines.join("\n").replace('\n', " ⏎ ");
    }
    let raw = record.text();
    let head = text::truncate_bytes(&raw, RAW_SHOWN_BYTES);
    if head.len() == raw.len() { head.to_owned() } else { format!("{head}…") }
}
