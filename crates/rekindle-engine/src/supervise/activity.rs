//! Signs of life of an agent's tree besides its output, for the judgement of silence. Only looked at, never acted on.

use std::io;

use rekindle_shim::bundle::ShimRecord;
use rekindle_shim::tree::{Activity, Table};

/// What the tree under this shim has done so far; `None` when the shim is gone.
pub fn activity(record: &ShimRecord) -> io::Result<Option<Activity>> {
    Ok(activity_in(&Table::scan()?, record))
}

/// How long the connections of its tree have been quiet, in milliseconds; nothing where it has none.
pub fn connections_quiet_ms(record: &ShimRecord) -> io::Result<Option<u64>> {
    let table = Table::scan()?;
    Ok(activity_in(&table, record).and_then(|_| table.connections_quiet_ms(record.shim.pid)))
}

/// The same in a table that was read once for many.
pub fn activity_in(table: &Table, record: &ShimRecord) -> Option<Activity> {
    let row = table.row(record.shim.pid)?;
    // Enough for looking; a confused number costs a wrong sample, not a signal.
    if row.start_ticks != record.shim.start_ticks || row.zombie {
        return None;
    }
    table.activity(record.shim.pid)
}
