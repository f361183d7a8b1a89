//! What happened outside: output that grew, processes that ended, reports that were kept, artifacts that are gone.

use std::collections::BTreeSet;

use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{Found, Input, Refused};
use rekindle_core::report::{self, Channel, CheckResult, Checkpoint, Evidence, Report};
use rekindle_core::review::Findings;
use rekindle_core::signal::Signal;
use rekindle_core::state::{AttemptPhase, TaskState};
use rekindle_core::text;
use rekindle_core::time::Time;

use super::spools::{CHUNK_BYTES, Progress, set_offset};
use super::{Driver, Error};
use crate::ingest::{Cursor, Record};
use crate::refusal;
use crate::store::{SpoolGap, SpoolOffset, Stream};
use crate::world::World;

/// Most parts of one split: a longer list is no usable order of work.
const SUBTASKS_KEPT: usize = 100;

/// Issues of one verdict that are kept: nobody reads more.
const ISSUES_KEPT: usize = 50;

/// Ended attempts whose spools are checked again at every start: more than end between two checkpoints of the database, few
/// enough to cost no time.
const ENDED_LOOKED_AT: usize = 256;

/// Pause before checking again an attempt of an earlier coordinator whose state could not be determined; it doubles.
const LOOK_AGAIN_MS: u64 = 1_000;

/// Longest pause between two such checks: a machine that refuses for hours costs little, and the task waits a minute too
/// long at most.
const LOOK_AGAIN_MAX_MS: u64 = 60_000;

/// The next check of an attempt whose state is unknown.
pub(super) struct NextLook {
    wait_ms: u64,
    at: Time,
}

impl<W: World> Driver<W> {
    /// What happened to every attempt that is open in the state.
    pub(super) fn probe_all(&mut self) -> Vec<(AttemptId, Found)> {
        let live: Vec<(AttemptId, Epoch)> = self.state.live_attempts().map(|(id, found)| (id, found.epoch)).collect();
        let found = self.world.probe(&live);
        live.into_iter().map(|(id, _)| id).zip(found).collect()
    }

    /// Continues an attempt that was found at the start.
    pub(super) fn settle_found(&mut self, attempt: AttemptId, found: &Found) -> Result<(), Error> {
        let begun = self.state.attempts.get(&attempt).is_some_and(|known| known.phase != AttemptPhase::Starting);
        if *found == Found::Unresponsive && !begun {
            self.look_later(attempt);
        }
        match found {
            Found::Alive { .. } | Found::Unresponsive => {
                self.world.watch(attempt);
                self.take_kept(attempt);
                self.read_on(attempt)
            }
            Found::NeverStarted | Found::Refused(_) => Ok(()),
            Found::Finished(_) | Found::Lost | Found::HostLost | Found::Unreadable { .. } => {
                self.end_as_found(attempt, found)
            }
        }
    }

    /// An attempt's shim is gone: finds out why, takes all its output and reports, then ends it.
    pub(super) fn attempt_ended(&mut self, attempt: AttemptId) -> Result<(), Error> {
        let Some(found) = self.state.attempts.get(&attempt) else { return Ok(()) };
        if !found.is_live() {
            return Ok(());
        }
        let (epoch, wanted) = (found.epoch, found.stop.is_none());
        let Some(found) = self.world.probe(&[(attempt, epoch)]).pop() else { return Ok(()) };
        let was_unknown = found != Found::Unresponsive && self.unknown.remove(&attempt).is_some();
        match found {
            Found::Alive { .. } | Found::Unresponsive => {
                self.world.watch(attempt);
                if self.unknown.contains_key(&attempt) {
                    self.look_later(attempt);
                }
                Ok(())
            }
            Found::NeverStarted if was_unknown && wanted => {
                self.world.forget(attempt);
                self.launch(attempt);
                Ok(())
            }
            Found::Refused(refusal) => {
                self.refused(Refused::Attempt(attempt), refusal);
                Ok(())
            }
            // It was stopped on purpose, so the reason why it never started is known.
            Found::NeverStarted if !wanted => {
                self.take(Input::AttemptLost { attempt, with_host: false });
                self.forget(attempt);
                Ok(())
            }
            Found::NeverStarted => {
                // Nothing of the agent was started: the machine is to blame, so this costs no attempt and holds starts for a
                // moment.
                self.refused(Refused::Attempt(attempt), refusal::no_supervisor());
                Ok(())
            }
            ended => self.end_as_found(attempt, &ended),
        }
    }

    fn end_as_found(&mut self, attempt: AttemptId, found: &Found) -> Result<(), Error> {
        let Some(epoch) = self.state.attempts.get(&attempt).map(|found| found.epoch) else { return Ok(()) };
        let read = match self.read_chunks(attempt)? {
            // The reports it left in its bundle are part of its output.
            Progress::Whole => self.world.kept_reports(attempt).map_or_else(Progress::Failed, |_| Progress::Whole),
            other => other,
        };
        match read {
            Progress::Whole => {}
            Progress::More => {
                // It left more than one turn takes. Others get their turn in between; it ends when all of it is read.
                self.ending.insert(attempt);
                self.more_to_read.insert(attempt);
                return Ok(());
            }
            // An error is not the end of a spool: the agent's last words may still be there. The attempt ends when they were
            // read or are given up.
            Progress::Failed(_) if self.reads_again(attempt) => {
                self.ending.insert(attempt);
                return Ok(());
            }
            Progress::Failed(error) => {
                self.take(Input::OutputUnreadable { attempt, reason: error.to_string() });
            }
        }
        self.ending.remove(&attempt);
        self.unreadable.remove(&attempt);
        self.finish_spools(attempt)?;
        let code = match found {
            Found::Finished(exit) => exit.code,
            _ => None,
        };
        self.end_reader(attempt, code)?;
        self.take_kept(attempt);
        self.take_words(attempt);
        self.close_session(attempt);
        match found {
            Found::Finished(exit) => self.take(Input::AttemptExited { attempt, epoch, exit: exit.clone() }),
            other => self.take(Input::AttemptLost { attempt, with_host: *other == Found::HostLost }),
        };
        self.forget(attempt);
        Ok(())
    }

    /// Drops everything that was kept outside the state for an attempt whose process is gone.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.spools.remove(&attempt);
        self.more_to_read.remove(&attempt);
        self.noticed.remove(&attempt);
        self.ending.remove(&attempt);
        self.unknown.remove(&attempt);
        self.heard_from.remove(&attempt);
        self.own_bytes.remove(&attempt);
        self.unreadable.remove(&attempt);
        self.world.forget(attempt);
    }

    /// How many entries the driver keeps outside the state and the store: as many as there are live attempts, however many
    /// have ended.
    pub fn entries(&self) -> usize {
        let maps = self.spools.len() + self.heard_from.len() + self.own_bytes.len() + self.noticed.len();
        maps + self.more_to_read.len() + self.ending.len() + self.waiters.len() + self.waiting.len()
    }

    /// Takes what an agent has written since the last read, up to a bound; more is read in a later turn.
    pub(super) fn read_on(&mut self, attempt: AttemptId) -> Result<(), Error> {
        if !self.state.attempts.get(&attempt).is_some_and(rekindle_core::state::Attempt::is_live) {
            self.unknown.remove(&attempt);
            return Ok(());
        }
        if self.ending.contains(&attempt) {
            self.more_to_read.remove(&attempt);
            return self.attempt_ended(attempt);
        }
        if self.is_look_due(attempt) {
            return self.attempt_ended(attempt);
        }
        match self.read_chunks(attempt)? {
            Progress::More => {
                self.more_to_read.insert(attempt);
            }
            Progress::Whole => {
                self.more_to_read.remove(&attempt);
                self.unreadable.remove(&attempt);
            }
            Progress::Failed(_) => {
                self.more_to_read.remove(&attempt);
                // Given up on for now: it is read again when more is written, and at its end.
                let _again = self.reads_again(attempt);
            }
        }
        Ok(())
    }

    /// Schedules the next check of an attempt whose state is unknown. The watch alone is not enough: it reports nothing
    /// about an attempt that never got a process.
    fn look_later(&mut self, attempt: AttemptId) {
        let wait_ms = self.unknown.get(&attempt).map_or(LOOK_AGAIN_MS, |last| last.wait_ms * 2).min(LOOK_AGAIN_MAX_MS);
        let at = self.world.now().plus_ms(wait_ms);
        self.unknown.insert(attempt, NextLook { wait_ms, at });
    }

    fn is_look_due(&mut self, attempt: AttemptId) -> bool {
        let now = self.world.now();
        self.unknown.get(&attempt).is_some_and(|next| next.at <= now)
    }

    /// When an attempt whose state is unknown is checked again.
    pub(super) fn looks_again_at(&self) -> Option<Time> {
        self.unknown.values().map(|next| next.at).min()
    }

    /// Attempts with more output than one turn takes, or whose output or state could not be read before and may be readable
    /// now.
    pub fn unread(&mut self) -> Vec<AttemptId> {
        let now = self.world.now();
        let due = self.unreadable.iter().filter(|(_, failed)| failed.again_at <= now).map(|(id, _)| *id);
        let mut unread: BTreeSet<AttemptId> = due.collect();
        unread.extend(self.unknown.iter().filter(|(_, next)| next.at <= now).map(|(id, _)| *id));
        unread.extend(&self.more_to_read);
        unread.into_iter().collect()
    }

    /// Whether an attempt's process is gone, although its end is not decided before its last words are read: it is neither silent
    /// nor late.
    pub fn is_gone(&self, attempt: AttemptId) -> bool {
        self.ending.contains(&attempt)
    }

    /// Whether an attempt has ended whose output is still being read: until then its limits must not take effect.
    pub fn is_catching_up(&self) -> bool {
        // An attempt that cannot be read for now must not delay all timers.
        self.ending.iter().any(|id| !self.unreadable.contains_key(id))
    }

    pub(super) fn take_signal(&mut self, attempt: AttemptId, signal: Option<Signal>) {
        let Some(epoch) = self.state.attempts.get(&attempt).map(|found| found.epoch) else { return };
        if let Some(Signal::Report(report)) = signal {
            let report = self.redact_report(report);
            self.take(Input::Reported { attempt, epoch, channel: Channel::Signal, report });
        }
    }

    /// Reports that the agent left in its bundle while no coordinator listened. The world drops them once they are durable.
    fn take_kept(&mut self, attempt: AttemptId) {
        // At the end of an attempt they were read a moment ago; otherwise they are taken at its end.
        let kept = self.world.kept_reports(attempt).unwrap_or_default();
        if !kept.is_empty() {
            self.pending.kept.push(attempt);
        }
        for kept in kept {
            if let Some((named, epoch)) = self.tokens.check(&kept.token).filter(|(named, _)| *named == attempt) {
                let report = self.redact_report(kept.report);
                self.take(Input::Reported { attempt: named, epoch, channel: Channel::Kept, report });
            }
        }
    }

    /// Reads parts of spools again whose lines a repaired store has lost. Their meaning is in the log; only lines are added.
    pub fn reindex(&mut self, gaps: &[SpoolGap]) -> Result<(), Error> {
        // A transcript is not ours and is not indexed: whatever mattered in it is in the log.
        for gap in gaps.iter().filter(|gap| gap.stream != Stream::Transcript) {
            self.index(AttemptId(gap.attempt), gap.stream, gap.from, Some(gap.to))?;
        }
        Ok(())
    }

    /// Takes what attempts that have ended left in their spools beyond what is stored: a database that lost its newest pages
    /// has forgotten how far it had read, and nothing else continues reading for them. Their output was decided on long ago;
    /// only lines are added. `all` of them are checked if the store says that it lost something, else the newest.
    pub fn index_ended(&mut self, all: bool) -> Result<(), Error> {
        let ended = self.state.attempts.iter().rev().filter(|(_, found)| found.phase == AttemptPhase::Ended);
        let limit = if all { usize::MAX } else { ENDED_LOOKED_AT };
        let ended: Vec<AttemptId> = ended.map(|(id, _)| *id).take(limit).collect();
        for attempt in ended.into_iter().rev() {
            for stream in [Stream::Out, Stream::Err] {
                let from = self.store.offset(attempt.0, stream)?;
                self.index(attempt, stream, from, None)?;
            }
        }
        Ok(())
    }

    /// Adds the lines of a part of a spool; without an end, everything up to the end of the spool, and the offset moves with
    /// them.
    fn index(&mut self, attempt: AttemptId, stream: Stream, from: u64, to: Option<u64>) -> Result<(), Error> {
        let mut cursor = Cursor::at(from);
        let mut bytes = Vec::new();
        while to.is_none_or(|to| cursor.scanned() < to) {
            let left = to.map_or(u64::MAX, |to| to - cursor.scanned());
            let left = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            bytes.clear();
            match self.world.read_spool(attempt, stream, cursor.scanned(), left, &mut bytes) {
                Ok(()) if !bytes.is_empty() => {}
                Ok(()) => break,
                Err(_) => return Ok(()),
            }
            let records = cursor.feed(&bytes);
            self.add_lines(attempt, stream, records, to.is_none());
            self.commit()?;
        }
        // Offsets are at the ends of records: what is left here never got its newline.
        let torn = cursor.finish();
        self.add_lines(attempt, stream, torn, to.is_none());
        self.commit()
    }

    fn add_lines(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        records: impl IntoIterator<Item = Record>,
        move_offset: bool,
    ) {
        for record in records {
            let shown = self.shown_of(attempt, stream, &record);
            let (line, next) = self.line_of(attempt, stream, &record, shown);
            self.pending.batch.lines.push(line);
            if move_offset {
                set_offset(&mut self.pending.batch.offsets, SpoolOffset { attempt: attempt.0, stream, next });
            }
        }
    }

    /// Complete tasks whose artifacts are not on disk.
    pub(super) fn missing_artifacts(&mut self) -> Vec<(TaskId, Vec<String>)> {
        let complete: Vec<(TaskId, Vec<String>, Option<String>)> = self
            .state
            .tasks
            .iter()
            .filter(|(_, task)| task.state == TaskState::Complete)
            .filter_map(|(id, task)| {
                let planned = self.state.plan_task(id).filter(|planned| !planned.artifacts.is_empty())?;
                Some((id.clone(), planned.artifacts.clone(), task.workflow.merged.clone()))
            })
            .collect();
        complete
            .into_iter()
            .map(|(id, artifacts, merged)| (id, self.world.missing(&artifacts, merged.as_deref())))
            .filter(|(_, missing)| !missing.is_empty())
            .collect()
    }

    /// A report with secrets removed from all its texts, and every text bounded.
    pub(super) fn redact_report(&self, report: Report) -> Report {
        let clean = |text: String| self.clean(&text);
        let all = |texts: Vec<String>| texts.into_iter().map(|text| self.clean(&text)).collect();
        match report {
            Report::Start { .. } => report,
            Report::Done { task, result } => Report::Done { task, result: result.map(clean) },
            Report::Fail { task, reason } => Report::Fail { task, reason: clean(reason) },
            Report::Checkpoint { task, checkpoint: c } => {
                let checkpoint = Checkpoint {
                    status: clean(c.status),
                    completed: all(c.completed),
                    remaining: all(c.remaining),
                    files: all(c.files),
                    progress: c.progress.map(|percent| percent.min(100)),
                };
                Report::Checkpoint { task, checkpoint }
            }
            Report::Ask { task, text, options, context } => {
                Report::Ask { task, text: clean(text), options: all(options), context: clean(context) }
            }
            Report::Split { task, subtasks } => {
                let parts = subtasks.into_iter().take(SUBTASKS_KEPT).map(clean);
                Report::Split { task, subtasks: parts.filter(|part| !part.trim().is_empty()).collect() }
            }
            Report::Verdict { task, role, verdict, findings: Findings { issues, required, passed } } => {
                let few = |texts: Vec<String>| all(texts.into_iter().take(ISSUES_KEPT).collect());
                let findings = Findings { issues: few(issues), required: few(required), passed: few(passed) };
                Report::Verdict { task, role, verdict, findings }
            }
            Report::Note { text } => Report::Note { text: clean(text) },
        }
    }

    pub(super) fn redact_evidence(&self, mut evidence: Evidence) -> Evidence {
        evidence.checks = self.redact_checks(evidence.checks);
        for seen in &mut evidence.health {
            seen.check.output = self.clean(&seen.check.output);
        }
        evidence
    }

    pub(super) fn redact_checks(&self, mut checks: Vec<CheckResult>) -> Vec<CheckResult> {
        for check in &mut checks {
            check.output = self.clean(&check.output);
        }
        checks
    }

    /// Truncates each output to what the state keeps, and stores the whole output outside.
    pub(super) fn keep_outputs<'a>(&mut self, checks: impl Iterator<Item = &'a mut CheckResult>) {
        let mut checks: Vec<&mut CheckResult> = checks.collect();
        let whole: Vec<String> = checks.iter().map(|check| check.output.clone()).collect();
        report::cut_outputs(checks.iter_mut().map(|check| &mut **check));
        for (check, whole) in checks.into_iter().zip(whole) {
            if check.output.len() < whole.len() {
                check.kept = self.world.keep_output(&whole);
            }
        }
    }

    pub(super) fn clean(&self, raw: &str) -> String {
        /// Longest single text of a report: a long result fits, a whole transcript belongs in the spool.
        const TEXT_BYTES: usize = 64 * 1024;
        let clean = text::sanitize(raw);
        let redacted = self.redactor.redact(&clean);
        text::truncate_bytes(&redacted, TEXT_BYTES).to_owned()
    }
}
