//! Programs that a person uses interactively and rekindle guards: what their hooks and transcripts mean, and how text gets
//! into their context. How the hooks get into their settings is in `hook_installer`.

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
    /// The hook's own name for the event.
    pub event: String,
    /// What rekindle can do at this event.
    pub moment: Moment,
    /// The file of the conversation, if the program has one.
    pub transcript: Option<PathBuf>,
    /// Set inside a helper: its contexts and turns are its own, not the session's.
    pub helper: Option<String>,
    pub facts: Vec<Fact>,
}

/// What rekindle can do at an event: whether it may have to give the session its recovery text again, and whether it writes
/// the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A context begins; what the hook prints reaches the model.
    Begins(Beginning),
    /// The person has typed something; what the hook prints reaches the model.
    Prompt,
    /// A tool was used; nothing is printed unless the program has no better moment after a compaction.
    Tool,
    /// A request goes to the model; what the hook prints is part of this request only. A session that needs its recovery
    /// text gets it here as well, but that does not count: the text must still be given where it stays. The value is what
    /// the program expects back.
    Request(Value),
    /// A good time to write the state: a turn, a helper or a batch of work has ended, or a compaction is near.
    Batch,
    Ends,
    Other,
}

/// Reads a session's transcript, line by line in order, from its start or from where an earlier reader stopped. It may
/// repeat what hooks reported: facts are keyed.
pub trait Transcript {
    /// What one line means; a line may contain anything.
    fn line(&mut self, line: &str) -> Vec<Fact>;
}

/// One program that can be guarded.
pub trait GuardAdapter: Adapter {
    /// What the hook's standard input means; `None` if it is of no interest. `var` reads the hook's environment.
    fn read_hook(&self, asked: &Value, var: &dyn Fn(&str) -> Option<String>) -> Option<Heard>;

    /// A reader of its transcript; `None` if it keeps none in lines.
    fn transcript_reader(&self) -> Option<Box<dyn Transcript>>;

    /// Whether a compaction shows only in the transcript: its new lines are then read at every event at which text can be
    /// given to the session, before deciding whether to give any.
    fn compaction_only_in_transcript(&self) -> bool {
        false
    }

    /// What the hook prints so that `text` gets into the session's context; `None` if this event does not allow it.
    fn answer(&self, heard: &Heard, text: &str) -> Option<String>;

    /// The longest text from a hook that reaches the model whole, in characters.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// The variable in which the program passes the session id to the processes that it starts.
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
