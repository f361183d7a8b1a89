//! One request as it came: who asked, over which API, for what, and every word of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::peer::Peer;

/// The way a provider is spoken to.
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
    /// Something else of its own.
    Side,
    /// How many tokens a text has.
    Count,
    /// No request for a model: a look whether somebody is there, a list of models.
    Other,
}

/// One message of the conversation, with everything in it as text: what was said, calls, results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Whose it is.
    pub role: String,
    /// Its words.
    pub text: String,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Its place among all requests, from 1.
    pub number: u64,
    /// Its place among those of the main conversation, from 1.
    pub main_number: Option<u64>,
    /// When it came, in milliseconds since 1970.
    pub at_ms: u64,
    /// `POST` and so on.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The API, where the path is one's.
    pub api: Option<Api>,
    /// What for.
    pub purpose: Purpose,
    /// Whether the answer is wanted in pieces.
    pub stream: bool,
    /// The process that asked, where it could be told.
    pub peer: Option<Peer>,
    /// Header lines, names in lower case. Keys are left out.
    pub headers: BTreeMap<String, String>,
    /// The conversation, instructions first.
    pub messages: Vec<Message>,
    /// The tools that the model may call; those in a namespace as `namespace.tool`.
    pub tools: Vec<String>,
    /// The rule that answered, by its place in the script from 0; nothing when none fitted.
    pub rule: Option<usize>,
    /// The body as it came.
    pub body: Value,
}

impl Asked {
    /// The program that asked, in its own words.
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
