//! How many file descriptors this process may have open. A coordinator raises the soft limit to the hard one: every agent
//! that waits for a person holds a connection, and the usual soft limit of 1024 only suffices for a small fleet. Agents get
//! the original limit back from their shims.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What counts as no limit: more than any kernel gives one process.
const PLENTY: u64 = 1 << 20;

static ORIGINAL: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one, once in the life of a process.
pub fn raise() {
    ORIGINAL.get_or_init(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: maximum, maximum };
        // If it cannot be raised, the current limit must do: callers are bounded by it.
        (current != maximum && setrlimit(Resource::Nofile, raised).is_ok()).then_some(current).flatten()
    });
}

/// The soft limit before it was raised; `None` if it was not raised.
pub fn original() -> Option<u64> {
    ORIGINAL.get().copied().flatten()
}

/// The soft limit now.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(PLENTY)
}
