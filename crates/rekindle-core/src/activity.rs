//! What an agent does, as read from its own output: the one vocabulary that every adapter translates its program's stream
//! into.
//!
//! An `Activity` is one observation. `Fold` keeps what must be known across many of them and turns them into `StreamEvent`s,
//! the few that decisions depend on. Both are pure: reading a stream again from its beginning gives the same result.

mod fold;
mod ledger;
mod progress;
#[cfg(test)]
mod tests;
mod under_way;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::time::Time;

pub use fold::Fold;
pub use ledger::{CALL_BYTES, Entry, Ledger, Outcome};
pub use progress::STALL_REPEATS;
pub use under_way::{Ending, Held, History, Lost, UnderWay, under_way};

/// One thing seen in an agent's output or transcript.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// The CLI session has this id.
    Session {
        id: String,
        /// The model, where the stream names it.
        model: Option<String>,
    },
    /// The model answered once: one request to its provider came back with an answer.
    Turn,
    Said {
        text: String,
    },
    /// A tool was called and runs.
    CallStarted(Call),
    /// A call ended. A stream that shows calls only at their end gives both at once.
    CallEnded {
        /// The call's id, as at its start.
        id: String,
        /// Whether the tool says that it worked.
        ok: bool,
        /// The output, as short as possible; adapters may pass all of it, it is truncated later.
        output: String,
    },
    /// The attempt's total usage so far, never a difference.
    Used(Usage),
    Context {
        /// Tokens in the context.
        used: u64,
        /// Tokens that the context has room for, where known.
        window: Option<u64>,
    },
    Compacting,
    Compacted {
        /// Whether the program compacted on its own and not on request, where the stream says.
        automatic: Option<bool>,
    },
    /// The program retries on its own after an error; it may still succeed.
    Retrying {
        /// What went wrong, where the stream has a field for it.
        problem: Option<Problem>,
        text: String,
    },
    /// The turn or the whole session failed.
    Failed(Failure),
    /// The number of background agents that it started and that are running: its turn may end before theirs, and continues
    /// after them.
    Background {
        open: u32,
    },
    /// The program says that it is working.
    Heartbeat,
    /// The agent ended its turn and gives its final message. More may follow if it accepts messages.
    Result {
        /// Whether the agent says that it succeeded.
        ok: bool,
        /// The final message; signals are parsed only from here.
        text: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id within the session.
    pub id: String,
    pub tool: String,
    /// What the tool was called with: the command, the path, or the arguments as JSON. Compared in full, shown truncated.
    pub input: String,
    /// Whether it can change files or run commands in the workspace; a call that only reads does not show that an agent
    /// works on its task.
    pub acts: bool,
}

/// What went wrong, as the stream's own fields say it; never guessed from prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The account's allowance is used up.
    UsageLimit,
    /// Too many requests or an error of the provider: worth a retry soon.
    Overloaded,
    /// The provider could not be reached or broke off.
    Network,
    /// The credentials were refused, or the account cannot pay.
    Auth,
    /// The context is full and could not be compacted.
    ContextFull,
    /// The program gave up because it compacted again and again.
    CompactionLoop,
    /// The program itself noticed that the model loops, and gave up.
    Looping,
    /// The CLI session to resume does not exist.
    SessionGone,
    /// Anything else; the exit of the process tells more.
    Other,
}

/// A failure of a turn or a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub problem: Problem,
    /// When the limit is lifted, from a structured field only.
    #[serde(default)]
    pub resets_at: Option<Time>,
    /// In the program's own words.
    pub text: String,
    /// The program would continue for ever on its own: it has to be stopped.
    #[serde(default)]
    pub runaway: bool,
}

impl Failure {
    /// The cause of an attempt that ends after this failure; `None` where the exit tells more.
    pub fn cause(&self) -> Option<Cause> {
        match self.problem {
            Problem::UsageLimit => Some(Cause::UsageLimit { resets_at: self.resets_at }),
            Problem::Overloaded | Problem::Network => Some(Cause::Overloaded),
            Problem::Auth => Some(Cause::Auth),
            Problem::ContextFull => Some(Cause::ContextExhausted),
            Problem::CompactionLoop => Some(Cause::CompactionLoop),
            Problem::Looping => Some(Cause::StalledNoProgress),
            Problem::SessionGone => Some(Cause::StartFailed { reason: self.text.clone() }),
            Problem::Other => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens sent, those from a cache left out.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Tokens sent that came from a cache.
    pub cached_tokens: u64,
    /// Dollars, where the program says so.
    pub cost_usd: Option<f64>,
}

impl Usage {
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).saturating_add(self.cached_tokens)
    }
}

/// What decisions depend on, folded from activities.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The CLI session is known.
    Session {
        id: String,
        model: Option<String>,
    },
    /// How much has been used and how full the context is.
    Measured(Measure),
    Compacted {
        /// Whether the program compacted on its own, where known.
        automatic: Option<bool>,
        /// Answers of the model so far, to detect a loop.
        turns: u64,
        /// Calls so far, to see whether the agent returns to its task.
        calls: u64,
    },
    Failed(Failure),
    Result {
        /// Whether the agent says that it succeeded.
        ok: bool,
    },
    /// The agent loops.
    Stalled {
        /// The number of calls in the loop.
        times: u32,
        /// What it repeats, in words.
        words: String,
        /// The end of the output of what it repeats.
        printed: String,
    },
    /// The agent called a tool that acts on its workspace.
    Acted,
    /// The number of tools the agent has called so far; sent only when it matters, after a compaction.
    Called {
        calls: u64,
    },
}

/// Bytes of a prompt that count as one token.
pub const TOKEN_BYTES: u64 = 4;

/// What an attempt has used and how full its context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What it has used in all.
    #[serde(flatten)]
    pub usage: Usage,
    #[serde(default)]
    pub context_used: Option<u64>,
    /// Tokens its context has room for.
    #[serde(default)]
    pub context_window: Option<u64>,
}

impl Measure {
    /// Context left in percent, rounded down.
    pub fn remaining_percent(&self) -> Option<u8> {
        let (used, window) = (self.context_used?, self.context_window.filter(|window| *window > 0)?);
        let left = window.saturating_sub(used);
        u8::try_from(left.saturating_mul(100) / window).ok()
    }
}

/// The condition of the CLI session's transcript after the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transcript {
    /// It exists and can be read.
    Whole,
    /// It does not exist, or cannot be read as a transcript.
    Missing,
    /// This kind of agent keeps no transcript that can be inspected.
    Unknown,
}

/// Longest piece of a call or an answer that a line shows.
const SHOWN_CHARS: usize = 240;

impl Activity {
    /// The activity as one line of an agent's log, worded so that tool calls, results and errors can be told apart; `None`
    /// for what only machines need.
    pub fn shown(&self) -> Option<String> {
        let line = match self {
            Self::Session { id, model } => match model {
                Some(model) => format!("session {id} with {model}"),
                None => format!("session {id}"),
            },
            Self::Said { text } => text.clone(),
            Self::CallStarted(call) => format!("{CALL_MARK}{}: {}", call.tool, brief(&call.input)),
            Self::CallEnded { ok: true, output, .. } => format!("{RESULT_MARK}{}", brief(output)),
            Self::CallEnded { ok: false, output, .. } => format!("{ERROR_MARK}{}", brief(output)),
            Self::Compacting => "compacting its context".to_owned(),
            Self::Compacted { .. } => "context compacted".to_owned(),
            Self::Retrying { text, .. } => format!("{ERROR_MARK}retrying: {}", brief(text)),
            Self::Failed(failure) => format!("{ERROR_MARK}{}", brief(&failure.text)),
            Self::Result { ok, .. } => format!("turn ended{}", if *ok { "" } else { " with an error" }),
            Self::Turn | Self::Used(_) | Self::Context { .. } | Self::Background { .. } | Self::Heartbeat => {
                return None;
            }
        };
        Some(line)
    }
}

/// Begins the line of a tool call.
pub const CALL_MARK: &str = "→ ";

/// Begins the line of a result.
pub const RESULT_MARK: &str = "← ";

/// Begins the line of an error.
pub const ERROR_MARK: &str = "! ";

fn brief(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ⏎ ");
    if line.chars().count() <= SHOWN_CHARS {
        return line;
    }
    let head: String = line.chars().take(SHOWN_CHARS).collect();
    format!("{head}…")
}
