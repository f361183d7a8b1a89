//! The calls that an agent does not remember, or remembers without an outcome, each with what is known about it.

use super::facts::Facts;
use crate::activity::{Ending, Lost};
use crate::memory::{Item, Section};
use crate::text::one_line;

/// Longest call that is quoted.
const CALL_MAX_BYTES: usize = 600;

/// Longest output that is quoted: its end says how it went.
const OUTPUT_MAX_BYTES: usize = 400;

/// Longest short form of a call, when there is little room.
const SHORT_MAX_BYTES: usize = 160;

/// Worth of a call whose outcome is unknown: running it twice does harm, and leaving it out leaves a gap.
const OPEN_WORTH: u16 = 950;

/// Worth of a call that finished and was forgotten.
const FINISHED_WORTH: u16 = 940;

/// What the agent has to be told, one item per call.
pub fn items(facts: &Facts) -> Vec<Item> {
    let told = facts.under_way.calls.iter().map(|call| item(call, facts.resumed));
    let left_out = (facts.under_way.left_out > 0).then(|| {
        let words = match facts.under_way.left_out {
            1 => "1 more call is not named here: look at its effects".to_owned(),
            many => format!("{many} more calls are not named here: look at their effects"),
        };
        Item::new(Section::UnderWay, FINISHED_WORTH, words)
    });
    left_out.into_iter().chain(told).collect()
}

/// What the list of calls means; empty if there are none.
pub(super) fn intro(facts: &Facts) -> String {
    if facts.under_way.calls.is_empty() {
        return String::new();
    }
    let words = match facts.resumed {
        true => {
            "Your session was cut off. Your history lacks the calls listed below, or their outcome. Everything they started has ended."
        }
        false => {
            "The agent before you was cut off; its last calls are listed below. Everything they started has ended."
        }
    };
    let rule = "Do not repeat a call that finished. Before you repeat one that was running, look at its effects.";
    format!("{words} {rule}\n\n")
}

fn item(lost: &Lost, resumed: bool) -> Item {
    let how = match &lost.ending {
        Ending::Finished { ok, output } if resumed => format!("{}; not in your history", finished(*ok, output)),
        Ending::MayBeKnown { ok, output } if resumed => {
            format!("{}; may not be in your history", finished(*ok, output))
        }
        Ending::Finished { ok, output } | Ending::MayBeKnown { ok, output } => finished(*ok, output),
        Ending::Open if resumed => "was running when you were killed: look before you repeat it".to_owned(),
        Ending::Open => "was running when it was killed: look before you repeat it".to_owned(),
    };
    let worth = if lost.ending == Ending::Open { OPEN_WORTH } else { FINISHED_WORTH };
    let call = |max| one_line(&format!("{}: {}", lost.tool, lost.input), max);
    let short = format!("- {} ({})", call(SHORT_MAX_BYTES), one_line(&how, SHORT_MAX_BYTES));
    Item::new(Section::UnderWay, worth, format!("- {}\n  {how}", call(CALL_MAX_BYTES))).or_short(short)
}

fn finished(ok: bool, output: &str) -> String {
    let end = if ok { "finished, exit ok" } else { "finished with an error" };
    match one_line(output, OUTPUT_MAX_BYTES) {
        printed if printed.is_empty() => format!("{end}, printed nothing"),
        printed => format!("{end}, printed: {printed}"),
    }
}
