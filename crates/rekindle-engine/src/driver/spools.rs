//! How far each attempt's output has been read, and what its records become: lines of the index, signals, and, for agents
//! whose stream can be parsed, what it reports. All of it goes into the transaction that moves the offset.

use rekindle_core::activity::Fold;
use rekindle_core::ids::AttemptId;
use rekindle_core::signal::{Signal, Signals};
use rekindle_core::text;
use rekindle_core::time::Time;

use super::commit::LINES_PER_COMMIT;
use super::{Driver, Error};
use crate::agents::{LineSource, Reader};
use crate::ingest::{Cursor, RECORD_HEAD_BYTES, Record, UNDERSTOOD_HEAD_BYTES};
use crate::redact::Lines;
use crate::store::{LogLine, SpoolOffset, Stream};
use crate::world::World;

/// Bytes read from a spool at once.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;

/// Chunks read from one agent before the others get their turn.
const CHUNKS_PER_TURN: usize = 4;

pub(super) enum Progress {
    /// Everything that is there was read.
    Whole,
    /// There is more than one turn takes.
    More,
    /// A spool could not be read.
    Failed(std::io::Error),
}

/// Output that could not be read.
pub(super) struct Unreadable {
    pub(super) tries: u32,
    pub(super) again_at: Time,
}

/// Pause before reading output again that could not be read; it doubles.
const READ_AGAIN_MS: u64 = 100;

/// Longest pause between two retries.
const READ_AGAIN_MAX_MS: u64 = 5_000;

/// Doublings from the shortest pause to the longest.
const READ_DOUBLINGS: u32 = 6;

/// Retries before the output of an ended attempt is given up and that is reported: about five minutes, in which a person can
/// fix a disk or a limit.
const READ_TRIES: u32 = 64;

/// Everything that is read of an attempt, in the order in which it is read.
const STREAMS: [Stream; 3] = [Stream::Out, Stream::Err, Stream::Transcript];

/// How far an attempt's output has been read.
pub(super) struct Spools {
    /// By stream, as in `STREAMS`.
    cursors: [Cursor; 3],
    signals: Signals,
    /// The start of a secret that spans lines, by stream.
    secrets: [Lines; 3],
    /// What it printed last, if its stream cannot be parsed.
    pub(super) printed: super::words::Printed,
    /// What its output means, for an agent whose stream can be parsed.
    pub(super) understood: Option<Understood>,
}

/// What an agent's output means.
pub(super) struct Understood {
    pub(super) reader: Box<dyn Reader>,
    pub(super) fold: Fold,
    /// Since when its program has been retrying on its own.
    pub(super) storm: Option<super::understand::Storm>,
}

fn place(stream: Stream) -> usize {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
        Stream::Transcript => 2,
    }
}

pub(super) fn source(stream: Stream) -> LineSource {
    match stream {
        Stream::Out => LineSource::Out,
        Stream::Err => LineSource::Err,
        Stream::Transcript => LineSource::Transcript,
    }
}

impl Spools {
    fn cursor(&mut self, stream: Stream) -> &mut Cursor {
        &mut self.cursors[place(stream)]
    }
}

impl<W: World> Driver<W> {
    /// Takes what an attempt has written since the last read, up to a bound.
    pub(super) fn read_chunks(&mut self, attempt: AttemptId) -> Result<Progress, Error> {
        let mut bytes = Vec::new();
        let mut more = false;
        let mut failed = None;
        for stream in STREAMS {
            for _ in 0..CHUNKS_PER_TURN {
                let offset = self.spools_of(attempt)?.cursor(stream).scanned();
                bytes.clear();
                if let Err(error) = self.read_stream(attempt, stream, offset, CHUNK_BYTES, &mut bytes) {
                    // A transcript is not ours: the spools hold all that has to be decided.
                    if stream != Stream::Transcript {
                        failed = Some(error);
                    }
                    more = false;
                    break;
                }
                more = bytes.len() == CHUNK_BYTES;
                let records = self.spools_of(attempt)?.cursor(stream).feed(&bytes);
                self.take_records(attempt, stream, records)?;
                if !more {
                    break;
                }
            }
            if more {
                break;
            }
        }
        Ok(match (more, failed) {
            (true, _) => Progress::More,
            (false, Some(error)) => Progress::Failed(error),
            (false, None) => Progress::Whole,
        })
    }

    /// Schedules a retry for output that could not be read, after a growing pause; returns whether there is one left.
    pub(super) fn reads_again(&mut self, attempt: AttemptId) -> bool {
        let now = self.world.now();
        let tries = self.unreadable.get(&attempt).map_or(0, |failed| failed.tries) + 1;
        if tries > READ_TRIES {
            self.unreadable.remove(&attempt);
            return false;
        }
        let wait_ms = (READ_AGAIN_MS << tries.min(READ_DOUBLINGS)).min(READ_AGAIN_MAX_MS);
        self.unreadable.insert(attempt, Unreadable { tries, again_at: now.plus_ms(wait_ms) });
        true
    }

    /// When reading unreadable output is retried.
    pub(super) fn reads_again_at(&self) -> Option<Time> {
        self.unreadable.values().map(|failed| failed.again_at).min()
    }

    /// Reads a spool, or the transcript of a session that is known.
    fn read_stream(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        if stream != Stream::Transcript {
            return self.world.read_spool(attempt, stream, offset, limit, into);
        }
        let Some(found) = self.state.attempts.get(&attempt) else { return Ok(()) };
        match &found.cli_session.session {
            Some(session) => self.world.read_transcript(attempt, &found.cli, session, offset, limit, into),
            None => Ok(()),
        }
    }

    /// Ends the streams of a process that is gone.
    pub(super) fn finish_spools(&mut self, attempt: AttemptId) -> Result<(), Error> {
        for stream in STREAMS {
            let torn = self.spools_of(attempt)?.cursor(stream).finish();
            self.take_records(attempt, stream, torn)?;
        }
        let last = self.spools_of(attempt)?.signals.finish();
        self.take_signal(attempt, last);
        Ok(())
    }

    /// The cursors of an attempt. After a restart everything before the stored offsets is read again and dropped: its
    /// meaning is in the log already, but what later lines mean may depend on it.
    pub(super) fn spools_of(&mut self, attempt: AttemptId) -> Result<&mut Spools, Error> {
        if !self.spools.contains_key(&attempt) {
            let cli = self.state.attempts.get(&attempt).map(|found| found.cli.clone()).unwrap_or_default();
            let reader = self.world.reader(&cli);
            let understood = reader.map(|reader| Understood { reader, fold: Fold::default(), storm: None });
            let head_max = if understood.is_some() { UNDERSTOOD_HEAD_BYTES } else { RECORD_HEAD_BYTES };
            let begin = || Cursor::at(0).keeping(head_max);
            let mut spools = Spools {
                cursors: [begin(), begin(), begin()],
                signals: Signals::default(),
                secrets: Default::default(),
                printed: super::words::Printed::default(),
                understood,
            };
            for stream in STREAMS {
                let end = self.store.offset(attempt.0, stream)?;
                self.read_again(attempt, stream, end, &mut spools);
                *spools.cursor(stream) = begin().moved_to(end);
            }
            self.spools.insert(attempt, spools);
        }
        Ok(self.spools.get_mut(&attempt).expect("inserted above"))
    }

    fn read_again(&mut self, attempt: AttemptId, stream: Stream, end: u64, spools: &mut Spools) {
        let mut bytes = Vec::new();
        while spools.cursor(stream).scanned() < end {
            let offset = spools.cursor(stream).scanned();
            let left = usize::try_from(end - offset).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            bytes.clear();
            let read = self.read_stream(attempt, stream, offset, left, &mut bytes);
            if read.is_err() || bytes.is_empty() {
                break;
            }
            for record in spools.cursor(stream).feed(&bytes) {
                match &mut spools.understood {
                    Some(understood) => {
                        let activities = understood.reader.line(source(stream), &record.text(), record.is_whole());
                        activities.iter().for_each(|activity| drop(understood.fold.take(activity)));
                        let shown = super::understand::shown(&activities, &record);
                        let secrets = &mut spools.secrets[place(stream)];
                        let _known = self.redactor.redact_line(secrets, &text::sanitize(&shown));
                    }
                    None => {
                        let secrets = &mut spools.secrets[place(stream)];
                        let _known = self.redactor.redact_line(secrets, &text::sanitize(&record.text()));
                        if stream == Stream::Out {
                            spools.printed.line(&record.text());
                            let _known = feed_signals(&mut spools.signals, &record);
                        }
                    }
                }
            }
        }
    }

    fn take_records(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<(), Error> {
        for record in records {
            if self.pending.batch.lines.len() >= LINES_PER_COMMIT
                && let Err(error) = self.commit()
            {
                // This record and those behind it were not taken: they are read again.
                let cursor = self.spools_of(attempt)?.cursor(stream);
                *cursor = cursor.moved_to(record.offset);
                return Err(error);
            }
            let activities = self.understand(attempt, stream, &record)?;
            let shown = activities.as_deref().map(|activities| super::understand::shown(activities, &record));
            let (line, next) = self.line_of(attempt, stream, &record, shown);
            if stream != Stream::Transcript {
                self.pending.batch.lines.push(line);
            }
            set_offset(&mut self.pending.batch.offsets, SpoolOffset { attempt: attempt.0, stream, next });
            match activities {
                Some(activities) => self.take_activities(attempt, &activities)?,
                None if stream == Stream::Out => {
                    let spools = self.spools_of(attempt)?;
                    spools.printed.line(&record.text());
                    if !record.torn {
                        let signal = feed_signals(&mut spools.signals, &record);
                        self.take_signal(attempt, signal);
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    /// A record as a line of the index: unchanged, or as its meaning.
    pub(super) fn line_of(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        record: &Record,
        shown: Option<String>,
    ) -> (LogLine, u64) {
        let (agent, epoch) = self
            .state
            .attempts
            .get(&attempt)
            .map_or_else(|| (String::new(), 0), |found| (found.agent.to_string(), found.epoch.0));
        let raw = shown.map_or_else(|| record.text(), Into::into);
        let raw = text::truncate_bytes(&raw, RECORD_HEAD_BYTES);
        let clean = text::sanitize(raw);
        let mut none = Lines::default();
        let secrets = self.spools.get_mut(&attempt).map_or(&mut none, |spools| &mut spools.secrets[place(stream)]);
        let redacted = self.redactor.redact_line(secrets, &clean);
        let line = LogLine {
            attempt: attempt.0,
            agent,
            epoch,
            stream,
            time_ms: self.world.now().0,
            offset: record.offset,
            len: record.len,
            text: text::truncate_bytes(&redacted, RECORD_HEAD_BYTES).to_owned(),
            torn: record.torn,
        };
        (line, record.offset + record.len + u64::from(!record.torn))
    }
}

/// A line too long to be kept whole is no signal.
fn feed_signals(signals: &mut Signals, record: &Record) -> Option<Signal> {
    let text = if record.is_whole() { record.text() } else { "…".into() };
    signals.line(&text)
}

pub(super) fn set_offset(offsets: &mut Vec<SpoolOffset>, new: SpoolOffset) {
    match offsets.iter_mut().find(|known| known.attempt == new.attempt && known.stream == new.stream) {
        Some(known) => known.next = new.next,
        None => offsets.push(new),
    }
}
