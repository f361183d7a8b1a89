//! One request as received: who sent it, over which API, for what purpose, and all of its text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::peer::Peer;

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI chat completions.
    Chat,
    /// Gemini generateContent.
    Gemini,
}

/// What a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The conversation itself.
    Main,
    /// The summary of a compaction.
    Compaction,
    /// A name for the conversation.
    Title,
    /// Another request of the program's own.
    Side,
    /// How many tokens a text has.
    Count,
    /// Not a request for a model: a liveness check, or a list of models.
    Other,
}

/// One message of the conversation, with everything in it as text: what was said, calls, results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who wrote it.
    pub role: String,
    pub text: String,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Its number among all requests, from 1.
    pub number: u64,
    /// Its number among those of the main conversation, from 1.
    pub main_number: Option<u64>,
    /// When it came, in milliseconds since 1970.
    pub at_ms: u64,
    /// `POST` and so on.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The API, if the path belongs to one.
    pub api: Option<Api>,
    pub purpose: Purpose,
    /// Whether the answer should be streamed.
    pub stream: bool,
    /// The process that sent the request, if it could be determined.
    pub peer: Option<Peer>,
    /// Header lines, names in lower case. Keys are left out.
    pub headers: BTreeMap<String, String>,
    /// The conversation, instructions first.
    pub messages: Vec<Message>,
    /// The tools that the model may call; those in a namespace as `namespace.tool`.
    pub tools: Vec<String>,
    /// The rule that answered, by its index in the script from 0; `None` when none matched.
    pub rule: Option<usize>,
    /// The body as received.
    pub body: Value,
}

impl Asked {
    /// The program that sent the request, according to its header.
    #[must_use]
    pub fn user_agent(&self) -> &str {
        self.headers.get("user-agent").map_or("", String::as_str)
    }

    /// The last message's text.
    #[must_use]
    pub fn last_text(&self) -> &str {
        self.messages.last().map_or("", |message| message.text.as_str())
    }

    /// Whether some message has this text.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        self.messages.iter().any(|message| message.text.contains(text))
    }
}
