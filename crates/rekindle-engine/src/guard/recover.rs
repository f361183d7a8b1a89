//! Assembles a session's recovery text: the record, what was looked up at this moment, the plan.

use std::path::Path;

use rekindle_core::guard::recovery::{RecoveryFacts, text};
use rekindle_core::guard::session::Session;
use rekindle_core::guard::when::Telling;

use super::lookup;
use crate::agents::guard_adapter::GuardAdapter;

/// The name of the state's file in a session's directory.
pub const STATE_FILE: &str = "session-state.md";

/// The session that gets the text, and where it is.
#[derive(Clone, Copy)]
pub struct Whom<'a> {
    pub program: &'a dyn GuardAdapter,
    /// The session whose record it is.
    pub session: &'a Session,
    pub key: &'a str,
    /// The directory with the state's file.
    pub session_dir: &'a Path,
    pub dir: &'a Path,
    pub state_dir: &'a Path,
    /// The longest text that reaches it whole.
    pub room: usize,
}

/// Its text. Each one carries a unique mark, because programs drop what they have already shown.
pub fn compose(whom: &Whom<'_>, telling: Telling, var: &dyn Fn(&str) -> Option<String>) -> String {
    let found = lookup::look(whom, var);
    let heard_until = moment(whom.session.last_at);
    text(&RecoveryFacts {
        session: whom.session,
        key: whom.key,
        telling,
        established: &found.sentences,
        team: found.team.as_ref(),
        plan: found.plan.as_ref(),
        state_file: &whom.session_dir.join(STATE_FILE).display().to_string(),
        heard_until: &heard_until,
        room: whom.room,
        nonce: &nonce(),
    })
}

/// A time, to the second.
fn moment(ms: u64) -> String {
    let moment = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| ms.to_string(), |moment| format!("{moment:.0}"))
}

/// Random, or at least never the same: if the system provides no randomness, the time is used.
fn nonce() -> String {
    let mut bytes = [0_u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        let now = rekindle_shim::clock::monotonic_ms() ^ rekindle_shim::clock::wall_ms().rotate_left(32);
        bytes[..8].copy_from_slice(&now.to_le_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
