//! ntfy: a message is published to a topic, and the topic is read with `poll=1`. There is no sender: anybody who knows the
//! topic can write there, so the topic is a secret, and the code decides.

use serde_json::{Value, json};

use super::http::{Answer, Server, Trouble, escaped};
use super::{Chat, Heard, Secret};
use crate::clock;

/// The public server.
const SERVER: &str = "https://ntfy.sh";

/// Marks what rekindle itself sends: it is not a reply, although it is in the same topic.
const OWN_TAG: &str = "rekindle";

/// The shortest topic: a shorter one can be guessed.
const TOPIC_MIN: usize = 16;

/// The longest, by ntfy's own rule.
const TOPIC_MAX: usize = 64;

/// The one cursor: the time of the newest message, in seconds.
const CURSOR: &str = "topic";

/// How far every poll reaches back beyond the cursor: messages of one second arrive in any order. Messages already received
/// are recognised by their id.
const OVERLAP_S: i64 = 10;

/// How far back polling starts, for clocks that differ.
const BEGIN_BACK_S: i64 = 3_600;

pub(super) struct Ntfy {
    server: Server,
    topic: Secret,
    replies: Secret,
    token: Option<Secret>,
}

impl Ntfy {
    pub(super) fn new(
        server: Option<&str>,
        topic: Secret,
        replies: Option<Secret>,
        token: Option<Secret>,
    ) -> Result<Self, String> {
        let replies = replies.unwrap_or_else(|| topic.clone());
        for topic in [&topic, &replies] {
            let topic = topic.reveal();
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !(TOPIC_MIN..=TOPIC_MAX).contains(&topic.len()) || !topic.chars().all(is_letter) {
                let what = format!("{TOPIC_MIN} to {TOPIC_MAX} letters, digits, - and _");
                return Err(format!("the topic must be hard to guess: {what}"));
            }
        }
        if token.as_ref().is_some_and(|token| !token.reveal().starts_with("tk_")) {
            return Err("the token is not one of ntfy, which begins with tk_".to_owned());
        }
        let hidden = [Some(topic.clone()), Some(replies.clone()), token.clone()].into_iter().flatten().collect();
        Ok(Self { server: Server::new(server.unwrap_or(SERVER), hidden)?, topic, replies, token })
    }

    fn good(&self, answer: Answer) -> Result<Answer, Trouble> {
        if answer.status == 200 {
            return Ok(answer);
        }
        let said: Value = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        Err(self.server.trouble(&answer, said["error"].as_str().unwrap_or("")))
    }

    fn read(&self, since: &str) -> Result<String, Trouble> {
        let path = format!("/{}/json?poll=1&since={since}", escaped(self.replies.reveal()));
        Ok(self.good(self.server.get(&path, self.token.as_ref())?)?.body)
    }
}

/// A message, with its time. A line that cannot be parsed was cut off, and is there again at the next poll.
fn heard(line: &str) -> Option<(i64, Heard)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let (id, time) = (message["id"].as_str()?, message["time"].as_i64()?);
    let own = message["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == OWN_TAG));
    let text = message["message"].as_str().filter(|_| message["event"] == "message" && !own);
    let heard = Heard {
        id: id.to_owned(),
        source: CURSOR.to_owned(),
        cursor: time.to_string(),
        right_sender: true,
        text: text.map(str::to_owned),
    };
    Some((time, heard))
}

impl Chat for Ntfy {
    fn begin(&self) -> Result<(String, String), Trouble> {
        Ok((CURSOR.to_owned(), (clock::wall().0 / 1_000 - BEGIN_BACK_S).to_string()))
    }

    fn send(&self, text: &str) -> Result<Option<String>, Trouble> {
        let body = json!({
            "topic": self.topic.reveal(), "message": text, "title": "rekindle", "tags": [OWN_TAG], "priority": 4
        });
        self.good(self.server.post("/", self.token.as_ref(), &body)?).map(|_| None)
    }

    fn poll(&self, cursor: &dyn Fn(&str) -> Option<String>, _: &[String]) -> Result<Vec<Heard>, Trouble> {
        let from: i64 = cursor(CURSOR).and_then(|time| time.parse().ok()).unwrap_or(0);
        let body = self.read(&from.saturating_sub(OVERLAP_S).max(0).to_string())?;
        let mut found: Vec<(i64, Heard)> = body.lines().filter_map(heard).collect();
        found.sort_by_key(|(time, _)| *time);
        // The cursor never goes back to a message of the overlap.
        let ahead = |(time, heard): (i64, Heard)| Heard { cursor: time.max(from).to_string(), ..heard };
        Ok(found.into_iter().map(ahead).collect())
    }

    fn peek(&self) -> Result<(), Trouble> {
        self.read("10s").map(|_| ())
    }
}
