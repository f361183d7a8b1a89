//! What the person said to agents and did in their place, as a prompt presents it. The person's words are instructions and
//! go outside the fence; file names are data and go behind it.

use super::facts::{Facts, PersonTold};
use crate::ids::AttemptId;
use crate::memory::{Item, Section};
use crate::state::{Attempt, State};
use crate::steering::{How, Tell, TellStage};
use crate::text;

/// Maximum length of the short form: the beginning of a message, and where the whole of it is.
const SHORT_BYTES: usize = 1_024;

/// The messages that are for an attempt, with whether its session has them.
pub(super) fn tells(state: &State, id: AttemptId, attempt: &Attempt) -> Vec<PersonTold> {
    let of_attempt = state.steering.tells.iter().filter(|(_, tell)| state.is_for(tell, id));
    let told = of_attempt.filter_map(|(number, tell)| {
        let known = match tell.stage {
            // It has not been sent yet, or was sent after the prompt was decided.
            TellStage::Waiting => return None,
            TellStage::Sent { .. } | TellStage::InPrompt { .. } => false,
            TellStage::Delivered { attempt: by, how, heard, .. } => {
                by != id && attempt.cli_session.resumes.is_some() && holds(state, attempt, by, how, heard)
            }
        };
        let Tell { task, text, given_back, .. } = tell.clone();
        Some(PersonTold { number: *number, task, text, given_back, known })
    });
    told.collect()
}

/// Whether the session that an attempt resumes contains what an earlier attempt was given. A program that is ended before
/// its turn is over may have read a message and kept nothing of it: then the message is repeated, with the same number.
fn holds(state: &State, attempt: &Attempt, by: AttemptId, how: How, heard: bool) -> bool {
    let Some(past) = state.attempts.get(&by) else { return false };
    let own = |session: &Option<String>| session.is_some() && *session == attempt.cli_session.resumes;
    let same = own(&past.cli_session.session) || own(&past.cli_session.resumes);
    same && match how {
        How::Message => heard,
        How::Prompt => heard || !past.cli_session.under_way.unheard,
    }
}

/// The messages as items: those that a session cannot know are worth as much as its task.
pub(super) fn items(facts: &Facts, room: usize) -> Vec<Item> {
    let mut all = Vec::new();
    // A session that forgot needs all of them.
    let missing = |told: &&PersonTold| !told.known || facts.forgot;
    for told in facts.tells.iter().filter(missing) {
        if told.given_back {
            all.extend(given_back(facts, told));
        } else {
            all.push(message(told, room));
        }
    }
    all
}

fn message(told: &PersonTold, room: usize) -> Item {
    let head = format!("Message {} ({}), to be followed:", told.number, told.task);
    let words = text::sanitize(&told.text);
    let whole = format!("{head}\n{}", words.trim());
    let cut = text::truncate_bytes(words.trim(), SHORT_BYTES.min(room / 8)).to_owned();
    let short = format!("{head}\n{cut} … (the whole of it: `rekindle task show {}`)", told.task);
    Item::new(Section::PersonsWords, 988, whole).or_short(short)
}

/// The last time that the person held the task; what was changed before that is part of the workspace by now.
fn given_back(facts: &Facts, told: &PersonTold) -> Vec<Item> {
    let newest =
        facts.tells.iter().filter(|other| other.given_back && other.task == told.task).map(|other| other.number);
    if newest.max() != Some(told.number) {
        return Vec::new();
    }
    let (task, what) = (&told.task, told.text.trim());
    let session = if facts.resumed { " Your session may hold what they said and did in it." } else { "" };
    let words = match what.is_empty() {
        true => format!("The person held {task} themselves and gave it back; no file changed.{session}"),
        false => format!(
            "The person held {task} themselves and gave it back. They changed files: build on that, do not \
             undo it. What changed is listed in the record under \"{}\".{session}",
            Section::Files.heading()
        ),
    };
    let mut items = vec![Item::new(Section::PersonsWords, 987, words)];
    if !what.is_empty() {
        items.push(Item::new(Section::Files, 905, format!("changed while the person held {task}:\n{what}")));
    }
    items
}

/// The person's words for a custom prompt that leaves the rest out.
pub(super) fn alone(facts: &Facts, room: usize) -> String {
    super::sources::draft(&items(facts, room), room)
}
