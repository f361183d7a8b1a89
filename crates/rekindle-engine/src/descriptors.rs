//! How many descriptors this process may have open. A coordinator raises the soft limit to the hard one: every agent that waits
//! for a person holds a connection, and the usual soft limit of 1024 is a small fleet. Agents get the original limit back from
//! their shims.

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
        // One that cannot be raised is lived with: callers are bounded by what there is.
        (current != maximum && setrlimit(Resource::Nofile, raised).is_ok()).then_some(current).flatten()
    });
}

/// The soft limit before it was raised; nothing where it was not.
pub fn original() -> Option<u64> {
    ORIGINAL.get().copied().flatten()
}

/// The soft limit now.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(PLENTY)
}
