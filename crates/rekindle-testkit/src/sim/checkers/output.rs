//! Compares the index of output with the spools: every record once, whole, in order, and all of it when an attempt is over.

use rekindle_core::activity::Activity;
use rekindle_core::ids::AttemptId;
use rekindle_core::state::{Attempt, AttemptPhase};
use rekindle_core::text;
use rekindle_engine::agents::{LineSource, Reader};
use rekindle_engine::ingest::RECORD_HEAD_BYTES;
use rekindle_engine::store::{LogLine, MemoryStore, Read, Stream};

use super::super::shim::Bundle;
use super::super::stream::TellReader;
use super::super::world::Sim;
use super::{Invariant, Verdict, require};

impl Sim {
    /// Checks the lines that have become durable.
    pub(super) fn check_lines(&mut self, store: &MemoryStore) {
        loop {
            let page = store.log_since(None, self.checkers.lines, 1_024).unwrap_or_default();
            let Some(last) = page.last() else { break };
            self.checkers.lines = last.seq;
            for stored in &page {
                self.check_line(&stored.line);
            }
        }
        self.check_settled(store);
    }

    fn check_line(&mut self, line: &LogLine) {
        let attempt = AttemptId(line.attempt);
        let key = (attempt, line.stream);
        let expected = self.checkers.indexed.get(&key).copied().unwrap_or(0);
        let Some(bundle) = self.bundles.get(&attempt) else {
            return self
                .checkers
                .broken(Invariant::OutputExact, format!("a line of attempt {attempt}, which has no spool"));
        };
        let verdict = judge(line, bundle, expected, self.tells(attempt));
        self.checkers.judge(verdict);
        self.checkers.indexed.insert(key, line.offset + line.len + u64::from(!line.torn));
    }

    /// The output of an ended attempt is read to the last byte, and the stored offsets say so.
    fn check_settled(&mut self, store: &MemoryStore) {
        let over = |found: &Attempt| matches!(found.phase, AttemptPhase::Exited | AttemptPhase::Ended);
        let ended: Vec<AttemptId> = self
            .checkers
            .replayed
            .attempts
            .iter()
            .filter(|(id, found)| over(found) && !self.checkers.settled.contains(id))
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.checkers.settled.insert(id);
            self.check_signs(id);
            for stream in [Stream::Out, Stream::Err] {
                let written = self.bundles.get(&id).map_or(0, |bundle| bundle.spool(stream).len() as u64);
                let indexed = self.checkers.indexed.get(&(id, stream)).copied().unwrap_or(0);
                let stored = store.offset(id.0, stream).unwrap_or(0);
                if written != indexed || stored != indexed {
                    let what =
                        format!("attempt {id} {stream:?}: {written} bytes written, {indexed} indexed, offset {stored}");
                    self.checkers.broken(Invariant::OutputExact, what);
                }
            }
        }
    }
}

fn judge(line: &LogLine, bundle: &Bundle, expected: u64, structured_output: bool) -> Verdict {
    let place = || format!("attempt {} {:?} at {}", line.attempt, line.stream, line.offset);
    let spool = bundle.spool(line.stream);
    require(line.offset == expected, Invariant::OutputExact, || format!("{}, expected {expected}", place()))?;
    let from = usize::try_from(line.offset).unwrap_or(usize::MAX);
    let to = from.saturating_add(usize::try_from(line.len).unwrap_or(usize::MAX));
    let Some(record) = spool.get(from..to) else {
        return Err((Invariant::OutputExact, format!("{} is past the end of the spool", place())));
    };
    require(!record.contains(&b'\n'), Invariant::OutputExact, || format!("{} holds a line end", place()))?;
    let closed = spool.get(to) == Some(&b'\n');
    let torn = to == spool.len() && !bundle.leader_alive;
    require(if line.torn { torn } else { closed }, Invariant::OutputExact, || format!("{} is cut wrongly", place()))?;
    require(line.text.len() <= RECORD_HEAD_BYTES, Invariant::Bounds, || format!("{} is too long", place()))?;
    let shown =
        if structured_output { meant(line, record) } else { as_it_is(&record[..record.len().min(RECORD_HEAD_BYTES)]) };
    let shown = text::sanitize(text::truncate_bytes(&shown, RECORD_HEAD_BYTES));
    let shown = text::truncate_bytes(&shown, RECORD_HEAD_BYTES);
    require(line.text == shown, Invariant::OutputExact, || format!("{} has another text", place()))
}

fn as_it_is(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into_owned()
}

/// The line of an agent with structured output: its meaning, or its beginning.
fn meant(line: &LogLine, record: &[u8]) -> String {
    /// Bytes shown of a line without a meaning.
    const RAW_SHOWN_BYTES: usize = 200;
    let raw = as_it_is(record);
    let source = if line.stream == Stream::Out { LineSource::Out } else { LineSource::Err };
    let activities = TellReader::default().line(source, &raw, !line.torn);
    if !activities.is_empty() {
        let shown: Vec<String> = activities.iter().filter_map(Activity::shown).collect();
        return shown.join("\n").replace('\n', " ⏎ ");
    }
    let head = text::truncate_bytes(&raw, RAW_SHOWN_BYTES);
    if head.len() == raw.len() { raw } else { format!("{head}…") }
}
