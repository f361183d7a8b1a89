//! Only events of some kinds: a view needs a small part of a long log.

use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use super::{PAGE, RunView, View};
use crate::error::Result;

impl View {
    /// The kinds of events in the log.
    pub(crate) fn kinds(&self) -> Result<Vec<String>> {
        Ok(self.reader.as_ref().map_or(Ok(Vec::new()), |reader| reader.kinds())?)
    }
}

impl RunView<'_> {
    /// Calls `each` with every event of the run that comes after a sequence number and is of a wanted kind, and returns the
    /// last sequence number of the log.
    pub(crate) fn events_of(
        &self,
        after: u64,
        wanted: impl Fn(&str) -> bool,
        mut each: impl FnMut(&StoredEvent) -> Result<()>,
    ) -> Result<u64> {
        // Read first: what is added meanwhile is found by the next read.
        let end = self.reader.head()?.last_seq;
        let kinds = self.reader.kinds()?;
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| wanted(kind)).collect();
        let mut seq = after;
        loop {
            let page = self.reader.events_of(&kinds, seq, PAGE)?;
            let Some(last) = page.last() else { return Ok(end.max(seq)) };
            seq = last.seq;
            for event in page.iter().filter(|event| event.run == self.row.id) {
                each(event)?;
            }
            if seq >= end {
                return Ok(seq);
            }
        }
    }

    /// The first events of one kind, and how many more there are of it.
    pub(crate) fn first_of(&self, kind: &str, many: usize) -> Result<(Vec<StoredEvent>, usize)> {
        let (before, end) = self.range()?;
        let mut first = self.reader.events_of(&[kind], before, many)?;
        first.retain(|event| event.run == self.row.id);
        let more = match first.last() {
            Some(last) if first.len() == many => {
                self.reader.count_of(kind, last.seq)?.saturating_sub(self.reader.count_of(kind, end)?)
            }
            _ => 0,
        };
        Ok((first, usize::try_from(more).unwrap_or(usize::MAX)))
    }

    /// The sequence number before the run's first event, and one at or after its last: runs follow each other.
    fn range(&self) -> Result<(u64, u64)> {
        let (mut seq, mut before) = (0, None);
        loop {
            let page = self.reader.events_of(&["run_started"], seq, PAGE)?;
            let Some(last) = page.last() else { return Ok((before.unwrap_or(0), i64::MAX.cast_unsigned())) };
            seq = last.seq;
            for event in page {
                match before {
                    Some(before) if event.run != self.row.id => return Ok((before, event.seq - 1)),
                    None if event.run == self.row.id => before = Some(event.seq - 1),
                    _ => {}
                }
            }
        }
    }

    /// The time of the log's last event, if it belongs to the run.
    pub(crate) fn last_time(&self) -> Result<Option<Time>> {
        let end = self.reader.head()?.last_seq;
        let last = self.reader.events(end.saturating_sub(1), 1)?;
        Ok(last.iter().find(|event| event.run == self.row.id).map(|event| Time(event.time_ms)))
    }
}
