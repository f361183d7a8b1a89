//! Programs that a person uses interactively and rekindle guards: what their hooks and transcripts mean, and how something is
//! put into their context. How the hooks get into their settings is in `hook_installer`.

use std::path::PathBuf;

use rekindle_core::guard::fact::{Beginning, Fact};
use serde_json::Value;

use super::Adapter;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The session's id in its program.
    pub session: String,
    /// Where the session works: the project's directory as the program names it.
    pub dir: PathBuf,
    /// The hook's own name for the moment.
    pub event: String,
    /// What the moment is good for.
    pub moment: Moment,
    /// The file of the conversation, where the program has one.
    pub transcript: Option<PathBuf>,
    /// Set inside a helper: what it tells of contexts and turns is its own, not the session's.
    pub helper: Option<String>,
    pub facts: Vec<Fact>,
}

/// What a moment is good for: whether the session may have to be told again, whether the state is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A context begins; what the hook prints reaches the model.
    Begins(Beginning),
    /// The person has typed something; what the hook prints reaches the model.
    Prompt,
    /// A tool was used; nothing is printed unless the program has no better moment after a compaction.
    Tool,
    /// A request goes to the model; what the hook prints is part of this one alone. A session that has to be told again is told
    /// here as well, which does not count: it is still to be told where it stays. With it comes what the program wants back.
    Request(Value),
    /// A good time to write the state: a turn, a helper or a batch of work has ended, or a compaction is near.
    Batch,
    Ends,
    Other,
}

/// Reads a session's transcript, line by line in order, from its beginning or from where an earlier reader stopped. It may tell
/// again what hooks told: facts are keyed.
pub trait Transcript {
    /// What one line means; a line may be anything at all.
    fn line(&mut self, line: &str) -> Vec<Fact>;
}

/// One program that can be guarded.
pub trait GuardAdapter: Adapter {
    /// What the hook's standard input means; nothing where it means nothing to us. `var` reads the hook's environment.
    fn read_hook(&self, asked: &Value, var: &dyn Fn(&str) -> Option<String>) -> Option<Heard>;

    /// A reader of its transcript; nothing where it keeps none in lines.
    fn transcript_reader(&self) -> Option<Box<dyn Transcript>>;

    /// Whether a compaction is seen in the transcript only: its new lines are then read at every moment at which the session can
    /// be told something, before that is decided.
    fn compaction_only_in_transcript(&self) -> bool {
        false
    }

    /// What the hook prints so that `text` comes into the session's context; nothing where this moment is not good for it.
    fn answer(&self, heard: &Heard, text: &str) -> Option<String>;

    /// The longest text that reaches the model whole when a hook prints it, in characters.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// The variable in which the program tells those it starts which session they belong to.
    fn session_variable(&self) -> Option<&'static str> {
        None
    }

    /// The command line of a new interactive session with this as its first prompt.
    fn launch(&self, prompt: &str) -> Vec<String>;

    /// Directories in the user's home that hold the files of a team of this name and of a session's tasks.
    fn team_files(&self, _team: &str, _var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        None
    }
}
