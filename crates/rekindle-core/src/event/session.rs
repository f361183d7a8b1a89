//! What an agent's own session reports, and the messages to it.

use serde::{Deserialize, Serialize};

use super::{AgentCompacted, AgentSaid, AgentStalled, CompactionNear, CompactionOver, SessionClosed};
use crate::activity::{Failure, Measure};
use crate::ids::AttemptId;

/// What happened in an agent's session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// The agent's own session is known.
    AgentSession {
        attempt: AttemptId,
        session_id: String,
        /// The model, where the stream names it.
        model: Option<String>,
        /// The session that should have been resumed; given only when another was started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
    },
    /// What an agent has used so far, and how full its context is.
    AgentMeasured {
        attempt: AttemptId,
        #[serde(flatten)]
        measure: Measure,
    },
    /// An agent's context was compacted: it has forgotten.
    AgentCompacted(AgentCompacted),
    /// An agent loops.
    AgentStalled(AgentStalled),
    /// After a compaction an agent was seen working on its task again.
    AgentOnTask {
        attempt: AttemptId,
    },
    /// An agent's context is nearly full: it gets no further task, and a compaction is prepared for.
    CompactionStart(CompactionNear),
    /// The compaction that was prepared for is over.
    CompactionComplete(CompactionOver),
    /// A message for a running agent; it is delivered after this is durable.
    AgentTold {
        attempt: AttemptId,
        /// The message's number within the attempt: one number is delivered once.
        number: u32,
        text: String,
        /// Whether it reminds the agent of its open task, which is done once.
        #[serde(default)]
        reminder: bool,
        /// The person's message that it carries, by its number within the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tell: Option<u64>,
    },
    /// An agent that waits for messages gets no more: it should exit.
    InputClosed {
        attempt: AttemptId,
    },
    /// An agent's turn or session failed, according to its own stream.
    AgentFailed {
        attempt: AttemptId,
        #[serde(flatten)]
        failure: Failure,
    },
    TurnEnded {
        attempt: AttemptId,
        /// Whether the agent says that it succeeded.
        ok: bool,
    },
    AgentSaid(AgentSaid),
    /// What an agent that has ended left of its own session.
    SessionClosed(SessionClosed),
    /// An agent that was found alive but shows no activity was asked for its status.
    StatusAsked {
        attempt: AttemptId,
    },
    /// The agent showed that it is there.
    StatusAnswered {
        attempt: AttemptId,
    },
}
