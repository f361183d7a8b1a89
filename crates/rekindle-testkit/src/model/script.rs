//! What a fake model answers, in terms that fit every API. This file holds the rules and picks one for a request; `dialect`
//! encodes the answer for each API.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asked::{Asked, Purpose};
use super::stepper::Stepper;

/// The answer when the script has nothing for a request: the turn ends, and the log shows why.
const NOTHING_LEFT: &str = "There is nothing left to do.";

/// One part of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Text.
    Say(String),
    /// A call of the program's own shell tool.
    Shell(String),
    /// A call of one of rekindle's MCP tools, by its plain name.
    Report {
        /// `task_done` and so on.
        tool: String,
        /// Its arguments.
        args: Value,
    },
    /// A call of any other tool, by its name in this program.
    Call {
        tool: String,
        /// Its arguments.
        args: Value,
    },
}

/// The provider's token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Tokens sent, including those from a cache.
    pub input: u64,
    /// Sent tokens that came from a cache.
    pub cached: u64,
    /// Tokens received.
    pub output: u64,
}

impl Default for Tokens {
    /// A short conversation, far from any limit.
    fn default() -> Self {
        Self { input: 1_000, cached: 0, output: 20 }
    }
}

/// How an answer ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Properly.
    #[default]
    Whole,
    /// The connection is closed in the middle of it.
    Cut,
    /// Half of it comes, and then a proper end, as if that were all.
    Unfinished,
    /// The connection is reset instead of an answer.
    Refused,
    /// The request is taken and never answered.
    HangBeforeHeaders,
    /// The answer begins and its first word never comes.
    HangAfterHeaders,
    /// Half of the answer comes and nothing more.
    HangMidStream,
    /// The answer arrives one character at a time, for this many seconds: no event of it is complete before. Then the rest
    /// comes.
    Drips {
        /// Seconds.
        for_s: u64,
    },
    /// An error is returned instead.
    Fail(Fail),
}

/// An error, in the wording of each provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fail {
    /// The account's allowance is used up until the reset, counted from the first refused request. Every request until then
    /// is refused, and none after.
    UsageLimit {
        /// Seconds from the first refused request.
        resets_in_s: u64,
    },
    /// Too many requests.
    RateLimit {
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// The provider is overloaded.
    Overloaded,
    /// The provider has an internal error.
    Server,
    /// The key is refused.
    Auth,
    /// The conversation is longer than the model takes.
    ContextFull,
    /// Anything at all.
    Raw {
        status: u16,
        /// Header lines.
        #[serde(default)]
        headers: Vec<(String, String)>,
        #[serde(default)]
        body: String,
    },
}

/// The answer to one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The parts, in order.
    pub acts: Vec<Act>,
    /// The provider's counts.
    pub tokens: Tokens,
    /// Header lines added to those of the API.
    pub headers: Vec<(String, String)>,
    /// The answer is held back until this file exists.
    pub after: Option<PathBuf>,
    pub end: End,
}

impl Answer {
    pub fn say(text: impl Into<String>) -> Self {
        Self { acts: vec![Act::Say(text.into())], ..Self::default() }
    }

    /// A command for the shell tool.
    pub fn shell(command: impl Into<String>) -> Self {
        Self { acts: vec![Act::Shell(command.into())], ..Self::default() }
    }

    /// A call of one of rekindle's tools.
    pub fn report(tool: impl Into<String>, args: Value) -> Self {
        Self { acts: vec![Act::Report { tool: tool.into(), args }], ..Self::default() }
    }

    /// An error.
    #[must_use]
    pub fn fail(fail: Fail) -> Self {
        Self { end: End::Fail(fail), ..Self::default() }
    }

    /// Adds a part.
    #[must_use]
    pub fn and(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    /// Sets these counts.
    #[must_use]
    pub fn tokens(mut self, input: u64, output: u64) -> Self {
        self.tokens = Tokens { input, output, cached: 0 };
        self
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Holds the answer back until this file exists.
    pub fn after(mut self, file: impl Into<PathBuf>) -> Self {
        self.after = Some(file.into());
        self
    }

    #[must_use]
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

/// A condition on a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// It has this purpose.
    Purpose(Purpose),
    /// It is the nth of the main conversation, from 1.
    Nth(u64),
    /// The last message of the user or of a tool has this text.
    Last(String),
    /// Some message has this text.
    Anywhere(String),
    /// No message has this text.
    Nowhere(String),
    /// This file exists.
    File(PathBuf),
}

impl When {
    fn holds(&self, asked: &Asked) -> bool {
        match self {
            Self::Purpose(purpose) => asked.purpose == *purpose,
            Self::Nth(n) => asked.main_number == Some(*n),
            Self::Last(text) => asked.last_text().contains(text.as_str()),
            Self::Anywhere(text) => asked.mentions(text),
            Self::Nowhere(text) => !asked.mentions(text),
            Self::File(file) => file.exists(),
        }
    }
}

/// An answer and its conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// All of these must hold.
    #[serde(default)]
    pub when: Vec<When>,
    /// Limit on how often it is used; `None` means always.
    #[serde(default)]
    pub times: Option<u32>,
    /// The answer, if they do.
    pub answer: Answer,
}

/// Rules in order: the first that matches and is not used up answers. Without one, a program's own requests get the answer
/// that the program expects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    pub rules: Vec<Rule>,
    /// Answers the main conversation where no rule fits.
    #[serde(default)]
    pub stepper: Option<Stepper>,
}

impl Script {
    /// An empty script.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next answer of the main conversation, given once.
    #[must_use]
    pub fn then(self, answer: Answer) -> Self {
        self.rule(Rule { when: vec![When::Purpose(Purpose::Main)], times: Some(1), answer })
    }

    /// Adds an answer that is given whenever all conditions hold; it takes precedence over everything added later.
    #[must_use]
    pub fn whenever(self, when: impl Into<Vec<When>>, answer: Answer) -> Self {
        self.rule(Rule { when: when.into(), times: None, answer })
    }

    /// A model that decides by the content of its request; rules take precedence.
    #[must_use]
    pub fn stepper(stepper: Stepper) -> Self {
        Self { stepper: Some(stepper), ..Self::default() }
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

/// An answer that was picked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picked {
    /// The rule's index in the script, from 0; `None` when no rule matched.
    pub(super) rule: Option<usize>,
    pub(super) answer: Answer,
    /// When a usage limit is lifted, in seconds since 1970.
    pub(super) resets_at: Option<u64>,
}

/// A script in progress.
#[derive(Debug)]
pub(super) struct Play {
    rules: Vec<(Rule, Used)>,
    stepper: Option<Stepper>,
}

/// How a rule was used so far.
#[derive(Debug, Default)]
struct Used {
    times: u32,
    resets_at: Option<u64>,
}

impl Play {
    pub(super) fn new(script: Script) -> Self {
        let rules = script.rules.into_iter().map(|rule| (rule, Used::default())).collect();
        Self { rules, stepper: script.stepper }
    }

    pub(super) fn add(&mut self, script: Script) {
        self.rules.extend(script.rules.into_iter().map(|rule| (rule, Used::default())));
    }

    /// Rules with a limit that were never used.
    pub(super) fn unused(&self) -> Vec<Rule> {
        self.rules
            .iter()
            .filter(|(rule, used)| rule.times.is_some() && used.times == 0)
            .map(|(rule, _)| rule.clone())
            .collect()
    }

    /// Picks the answer to a request that came at this second since 1970.
    pub(super) fn pick(&mut self, asked: &Asked, now_s: u64) -> Picked {
        for (place, (rule, used)) in self.rules.iter_mut().enumerate() {
            let left = match (&rule.answer.end, used.resets_at) {
                (End::Fail(Fail::UsageLimit { .. }), Some(resets_at)) => now_s < resets_at,
                _ => rule.times.is_none_or(|times| used.times < times),
            };
            if !left || !rule.when.iter().all(|when| when.holds(asked)) {
                continue;
            }
            used.times += 1;
            if let End::Fail(Fail::UsageLimit { resets_in_s }) = rule.answer.end {
                used.resets_at.get_or_insert(now_s + resets_in_s);
            }
            return Picked { rule: Some(place), answer: rule.answer.clone(), resets_at: used.resets_at };
        }
        let stepper = self.stepper.as_ref().filter(|_| asked.purpose == Purpose::Main);
        let answer = stepper.map_or_else(|| usual(asked), |stepper| stepper.answer(asked));
        Picked { rule: None, answer, resets_at: None }
    }
}

/// The answer to a request for which the script has nothing.
fn usual(asked: &Asked) -> Answer {
    match asked.purpose {
        Purpose::Compaction => Answer::say(
            "<analysis>All of it was read.</analysis><summary>The work has begun.</summary>\
             <state_snapshot><overall_goal>The work has begun.</overall_goal></state_snapshot>",
        )
        .tokens(500, 40),
        Purpose::Title => Answer::say("A title").tokens(50, 3),
        Purpose::Side => Answer::say("{}").tokens(50, 3),
        Purpose::Main | Purpose::Count | Purpose::Other => Answer::say(NOTHING_LEFT),
    }
}
