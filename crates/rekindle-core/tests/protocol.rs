//! The protocol, row by row: every row of its tables (timeouts, errors, reconciliation, orders of resumption, events with
//! their fields) is one named test, and `docs/protocol.md` maps each row to its test.

#[path = "core/harness.rs"]
#[expect(dead_code, reason = "shared with the other tests of the core, which use more of it")]
mod harness;

/// Defines the tests of one table, and the rows that the page shows.
macro_rules! rows {
    ($table:literal; $($row:literal => $name:ident $body:block)*) => {
        $(#[test] fn $name() $body)*

        /// The rows of this table with the tests that prove them.
        pub const ROWS: &[(&str, &str, &str)] = &[$(($table, $row, concat!(module_path!(), "::", stringify!($name)))),*];
    };
}

#[path = "protocol/compaction.rs"]
mod compaction;
#[path = "protocol/disagreement.rs"]
mod disagreement;
#[path = "protocol/errors.rs"]
mod errors;
#[path = "protocol/events.rs"]
mod events;
#[path = "protocol/page.rs"]
mod page;
#[path = "protocol/pause.rs"]
mod pause;
#[path = "protocol/reconcile.rs"]
mod reconcile;
#[path = "protocol/recovery.rs"]
mod recovery;
#[path = "protocol/scene.rs"]
mod scene;
#[path = "protocol/team.rs"]
mod team;
#[path = "protocol/timeouts.rs"]
mod timeouts;
