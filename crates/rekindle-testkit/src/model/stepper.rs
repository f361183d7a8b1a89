//! A model that does numbered steps and decides only by the content of its request: it orders the first steps that it does
//! not know to be done. If it reads that a call was cut off, it checks the effects before it continues. A step that is done
//! twice, or never, shows what it was not told.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::asked::Asked;
use super::script::{Act, Answer};

/// Phrases of a program or of rekindle for a call with an unknown outcome.
const UNKNOWN: [&str; 4] =
    ["was running when", "its end was not seen", "may not be in your history", "[Tool execution was interrupted]"];

/// A complete result that says only that there is none.
const ABORTED: &str = "aborted";

/// The text of the model's report: its own earlier request contains it.
const RESULT: &str = "every one of the steps is behind us";

/// The steps and their effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stepper {
    /// How many steps there are.
    pub steps: u32,
    /// How many it orders in one answer.
    pub at_once: u32,
    /// What a step waits for between its start, its effect and its end.
    pub pause: String,
}

impl Stepper {
    /// The file that every step appends a line to when it starts.
    pub const BEGUN: &'static str = "begun";

    /// The file that is the effect: one line per step.
    pub const STEPS: &'static str = "steps";

    /// Steps with short pauses in them.
    #[must_use]
    pub fn new(steps: u32, at_once: u32) -> Self {
        Self { steps, at_once, pause: "sleep 0.04".to_owned() }
    }

    /// What it orders next.
    pub(super) fn answer(&self, asked: &Asked) -> Answer {
        let texts = || asked.messages.iter().map(|message| message.text.as_str());
        // By position in the whole text: programs put consecutive messages into one.
        let all: Vec<&str> = texts().flat_map(str::lines).collect();
        let last = |found: &dyn Fn(&str) -> bool| all.iter().rposition(|line| found(line));
        let unknown = last(&|line| line.trim() == ABORTED || UNKNOWN.iter().any(|words| line.contains(words)));
        // A list of old calls quotes the output of an earlier check, with the command: that is not a check of what came
        // after.
        let looked = last(&|line| line.contains("looked at all") && !line.contains("echo looked"));
        if unknown > looked {
            return Answer::shell(format!("sed 's/^step /found /' {}; echo looked 'at all'", Self::STEPS));
        }
        let done: BTreeSet<u32> =
            texts().flat_map(|text| numbers(text, "did ").chain(numbers(text, "found "))).collect();
        let next: Vec<u32> = (1..=self.steps).filter(|step| !done.contains(step)).take(self.at_once as usize).collect();
        if !next.is_empty() {
            let acts = next.into_iter().map(|step| Act::Shell(self.command(step))).collect();
            return Answer { acts, ..Answer::default() };
        }
        match texts().any(|text| text.contains(RESULT)) {
            true => Answer::say("That is all."),
            false => Answer::report("task_done", json!({ "task": "T1", "result": RESULT })),
        }
    }

    /// A step's command. The text it prints is not part of the command: having ordered a step does not prove that it was
    /// done.
    fn command(&self, step: u32) -> String {
        let line = |word: &str| format!("printf '{word} %s\\n' {step}");
        let (pause, begun, steps) = (&self.pause, Self::BEGUN, Self::STEPS);
        // Every other step has its effect at once: no command may run before another process could know of it.
        let first = if step.is_multiple_of(2) { pause } else { ":" };
        format!("{} >> {begun}; {first}; {} >> {steps}; {pause}; {}", line("begun"), line("step"), line("did"))
    }
}

/// The numbers that follow a word.
fn numbers<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.match_indices(word).filter_map(move |(at, _)| {
        let digits: String = text[at + word.len()..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}
