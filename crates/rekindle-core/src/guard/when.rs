//! When a session has to be told again what it was doing. Concrete facts decide: the program's own notice, the person's
//! word, or a transcript that no longer contains what the state names. If in doubt it is told: reading it again costs
//! little.

use super::fact::Beginning;
use super::session::Session;

/// A moment at which something can be put into the session's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chance<'a> {
    Begins(Beginning),
    Prompt(&'a str),
    Tool,
}

/// Why a session is told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    Compacted,
    /// It continues after a pause.
    Resumed,
    /// It is a new session; the last one died with open work.
    Died,
    /// The person says that it has forgotten.
    PersonSays,
    /// The transcript no longer contains what the state names.
    Missing,
    /// The person wants a new session to continue this one.
    Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telling {
    pub occasion: Occasion,
    pub compaction: u32,
    /// With the whole plan: after every second compaction, because the losses add up.
    pub full: bool,
}

/// How long a dead session is offered, in milliseconds: after two weeks nobody waits for it.
const OFFERED_MS: u64 = 14 * 24 * 60 * 60 * 1000;

/// Whether a dead session is offered to a new one: the person spoke in it, something was left open or it was killed while it
/// worked, and its end was not intended. A person who leaves because of a limit intends to come back.
pub fn offered(session: &Session, now_ms: u64) -> bool {
    let meant = session.limit.is_none() && session.ended.as_ref().is_some_and(|(meant, _)| *meant);
    let recent = now_ms.saturating_sub(session.last_at) < OFFERED_MS;
    // A session that worked and never reported its end was killed, whatever it had finished.
    let killed = session.ended.is_none() && session.has_worked();
    session.own_work && (session.has_open_work() || killed) && !meant && recent
}

/// Whether to tell the session now. `inherits`: it has taken over a session that died with open work. `missing`: the
/// transcript shows less than was read from it before.
pub fn telling(session: &Session, chance: &Chance<'_>, inherits: bool, missing: bool) -> Option<Telling> {
    if !session.has_content() {
        return None;
    }
    let compaction = session.compactions();
    let untold = compaction > session.told.compaction;
    // A hook that is installed twice fires twice, in the same process.
    let just_told = session.told.quiet && session.told.process == session.process && !untold;
    let occasion = match chance {
        Chance::Begins(_) if just_told => return None,
        Chance::Begins(Beginning::Compacted) => Occasion::Compacted,
        Chance::Begins(Beginning::Resumed) => Occasion::Resumed,
        Chance::Begins(Beginning::New) if inherits => Occasion::Died,
        Chance::Begins(Beginning::New | Beginning::Cleared) => return None,
        Chance::Prompt(_) | Chance::Tool if untold => Occasion::Compacted,
        Chance::Prompt(_) if missing => Occasion::Missing,
        Chance::Prompt(text) if names_us(text) => Occasion::PersonSays,
        Chance::Prompt(_) | Chance::Tool => return None,
    };
    let full = compaction > 0 && compaction.is_multiple_of(2) && occasion == Occasion::Compacted;
    Some(Telling { occasion, compaction, full })
}

/// Longest message that can be a call for us: a few words. In a longer one our name means something else.
const CALL_MAX_BYTES: usize = 60;

/// Whether the person calls for the state: by our name in a short message, which is the same in every language. One of our
/// command lines does not count.
fn names_us(text: &str) -> bool {
    let short = text.trim().len() <= CALL_MAX_BYTES && text.lines().count() <= 1;
    let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    short && first.is_some_and(|word| word.eq_ignore_ascii_case("rekindle"))
}
