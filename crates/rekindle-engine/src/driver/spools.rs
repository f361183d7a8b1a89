//! How far each attempt's output has been taken, and what becomes of its records: lines of the index, signals, and for agents
//! whose stream is understood what it tells. All of it goes into the transaction that moves the offset.

use rekindle_core::activity::Fold;
use rekindle_core::ids::AttemptId;
use rekindle_core::signal::{Signal, Signals};
use rekindle_core::text;

use super::commit::LINES_PER_COMMIT;
use super::{Driver, Error};
use crate::agents::{Reader, Source};
use crate::ingest::{Cursor, RECORD_HEAD_BYTES, Record, UNDERSTOOD_HEAD_BYTES};
use crate::redact::Lines;
use crate::store::{LogLine, SpoolOffset, Stream};
use crate::world::World;

/// Bytes read from a spool at once.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;

/// Chunks taken from one agent before the others have their turn.
const CHUNKS_PER_TURN: usize = 4;

/// Everything that is read of an attempt, in the order in which it is read.
const STREAMS: [Stream; 3] = [Stream::Out, Stream::Err, Stream::Transcript];

/// How far an attempt's output has been taken.
pub(super) struct Spools {
    /// By stream, as in `STREAMS`.
    cursors: [Cursor; 3],
    signals: Signals,
    /// What a secret that spans lines has begun with, by stream.
    secrets: [Lines; 3],
    /// What it printed last, where its words mean nothing.
    pub(super) printed: super::words::Printed,
    /// What its words mean, for an agent whose stream is understood.
    pub(super) understood: Option<Understood>,
}

/// What an agent's words mean.
pub(super) struct Understood {
    pub(super) reader: Box<dyn Reader>,
    pub(super) fold: Fold,
    /// Since when its program tries again by itself.
    pub(super) storm: Option<super::understand::Storm>,
}

fn place(stream: Stream) -> usize {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
        Stream::Transcript => 2,
    }
}

pub(super) fn source(stream: Stream) -> Source {
    match stream {
        Stream::Out => Source::Out,
        Stream::Err => Source::Err,
        Stream::Transcript => Source::Transcript,
    }
}

impl Spools {
    fn cursor(&mut self, stream: Stream) -> &mut Cursor {
        &mut self.cursors[place(stream)]
    }
}

impl<W: World> Driver<W> {
    /// Takes what an attempt has written since, up to a bound; whether there is more.
    pub(super) fn read_chunks(&mut self, attempt: AttemptId) -> Result<bool, Error> {
        let mut bytes = Vec::new();
        let mut more = false;
        for stream in STREAMS {
            for _ in 0..CHUNKS_PER_TURN {
                let offset = self.spools_of(attempt)?.cursor(stream).scanned();
                bytes.clear();
                if self.read_stream(attempt, stream, offset, CHUNK_BYTES, &mut bytes).is_err() {
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
        Ok(more)
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
        match &found.native.session {
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

    /// The cursors of an attempt. After a restart everything before the stored offsets is read again, and dropped: what it said
    /// is in the log already, but what later lines mean may depend on it.
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

    /// A record as a line of the index: as it is, or as what it means.
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
