//! The fuel gauge: the context and allowance shown by the status line go into the journal when little is left, and when
//! there is enough again.

use std::io;
use std::path::Path;

use rekindle_core::guard::fact::{Fact, Record};
use rekindle_shim::clock;

use super::journal::{self, Journal};

/// At or below this percentage, little is left.
pub const LOW: u8 = 10;

/// Records what is left of context and allowance, in percent, if it has crossed the threshold since the last record. A
/// session that is not guarded has no journal, and gets none.
pub fn keep(session_dir: &Path, context: Option<u8>, usage: Option<u8>) -> io::Result<()> {
    if !session_dir.join(journal::FILE).exists() {
        return Ok(());
    }
    let known = journal::session(session_dir)?;
    let passed = |known: Option<u8>, now: Option<u8>| {
        now.is_some_and(|now| (now <= LOW) != known.is_some_and(|known| known <= LOW))
    };
    if !passed(known.context_left, context) && !passed(known.usage_left, usage) {
        return Ok(());
    }
    let facts = vec![Fact::Gauge { context, usage }];
    let record = Record { at: clock::wall_ms(), event: "status line".to_owned(), facts, read: Vec::new() };
    Journal::open(session_dir)?.append(&record).map(|_| ())
}
