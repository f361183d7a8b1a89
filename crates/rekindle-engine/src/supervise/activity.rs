//! Activity of an agent's process tree besides its output, to judge silence. It is only observed, never acted on.

use std::io;

use rekindle_shim::bundle::ShimRecord;
use rekindle_shim::tree::{Activity, Table};

/// What the tree under this shim has done so far; `None` when the shim is gone.
pub fn activity(record: &ShimRecord) -> io::Result<Option<Activity>> {
    Ok(activity_in(&Table::scan()?, record))
}

/// How long the connections of its process tree have been quiet, in milliseconds; `None` if it has none.
pub fn connections_quiet_ms(record: &ShimRecord) -> io::Result<Option<u64>> {
    let table = Table::scan()?;
    Ok(activity_in(&table, record).and_then(|_| table.connections_quiet_ms(record.shim.pid)))
}

/// The same, from a process table that was read once for many.
pub fn activity_in(table: &Table, record: &ShimRecord) -> Option<Activity> {
    let row = table.row(record.shim.pid)?;
    // Good enough for observing; a reused process id costs a wrong sample, not a signal.
    if row.start_ticks != record.shim.start_ticks || row.zombie {
        return None;
    }
    table.activity(record.shim.pid)
}
