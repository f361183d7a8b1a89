//! Slack's Web API: `chat.postMessage` out, `conversations.history` and `conversations.replies` in, so that a reply counts in the
//! channel and in the question's thread.

use serde_json::{Value, json};

use super::http::{Answer, Server, Trouble, escaped};
use super::{Chat, Heard, Secret};
use crate::clock;

/// The address of Slack's API.
const API: &str = "https://slack.com";

/// Messages on a page.
const PAGE: u32 = 100;

/// Pages that are read at once: anything faster than that is not one person's replies.
const PAGES: usize = 5;

/// Threads that are read per poll, newest first: one call each.
const THREADS: usize = 8;

/// The cursor of the channel itself; a thread's cursor is named after its first message.
const CURSOR: &str = "channel";

/// How far back polling starts, for clocks that differ.
const BEGIN_BACK_S: i64 = 3_600;

pub(super) struct Slack {
    server: Server,
    token: Secret,
    channel: String,
    user: String,
}

impl Slack {
    pub(super) fn new(api: Option<&str>, token: Secret, channel: &str, user: &str) -> Result<Self, String> {
        if !token.reveal().starts_with("xoxb-") {
            return Err("the token is not one of a Slack bot, which begins with xoxb-".to_owned());
        }
        let server = Server::new(api.unwrap_or(API), vec![token.clone()])?;
        Ok(Self { server, token, channel: channel.to_owned(), user: user.to_owned() })
    }

    fn result(&self, answer: &Answer) -> Result<Value, Trouble> {
        let body: Value = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        match (answer.status, body["ok"].as_bool()) {
            (200, Some(true)) => Ok(body),
            (200, Some(false)) => Err(match body["error"].as_str().unwrap_or("") {
                "ratelimited" => Trouble::Wait(answer.retry_after.unwrap_or_default(), "it is rate-limited".to_owned()),
                said @ ("internal_error" | "fatal_error" | "service_unavailable" | "request_timeout") => {
                    Trouble::Again(self.server.harmless(said))
                }
                said => Trouble::Refused(self.server.harmless(&format!("it answered: {said}"))),
            }),
            (200, None) => Err(Trouble::Again("its answer was cut off".to_owned())),
            _ => Err(self.server.trouble(answer, "")),
        }
    }

    /// Messages since a time, of the channel or of a thread, oldest first.
    fn since(&self, thread: Option<&str>, oldest: &str) -> Result<Vec<Value>, Trouble> {
        let method = if thread.is_some() { "conversations.replies" } else { "conversations.history" };
        let of = thread.map(|ts| format!("&ts={}", escaped(ts))).unwrap_or_default();
        let (channel, oldest) = (escaped(&self.channel), escaped(oldest));
        let query = format!("/api/{method}?channel={channel}{of}&oldest={oldest}&inclusive=false&limit={PAGE}");
        let (mut found, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES {
            let page = if next.is_empty() { query.clone() } else { format!("{query}&cursor={}", escaped(&next)) };
            let page = self.result(&self.server.get(&page, Some(&self.token))?)?;
            found.extend(page["messages"].as_array().cloned().unwrap_or_default());
            next = page["response_metadata"]["next_cursor"].as_str().unwrap_or("").to_owned();
            if next.is_empty() {
                break;
            }
        }
        let ts = |message: &Value| message["ts"].as_str().unwrap_or("").to_owned();
        found.sort_by_key(ts);
        found.retain(|message| ts(message).as_str() > oldest.as_str());
        Ok(found)
    }

    fn heard(&self, source: &str, message: &Value) -> Option<Heard> {
        let ts = message["ts"].as_str()?;
        let by_person = message["bot_id"].is_null() && message["subtype"].is_null();
        Some(Heard {
            id: ts.to_owned(),
            source: source.to_owned(),
            cursor: ts.to_owned(),
            right_sender: message["user"].as_str() == Some(&self.user),
            text: message["text"].as_str().filter(|_| by_person).map(unescaped),
        })
    }
}

impl Chat for Slack {
    fn begin(&self) -> Result<(String, String), Trouble> {
        Ok((CURSOR.to_owned(), format!("{}.000000", clock::wall().0 / 1_000 - BEGIN_BACK_S)))
    }

    fn send(&self, text: &str) -> Result<Option<String>, Trouble> {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let body = json!({ "channel": self.channel, "text": text, "unfurl_links": false, "mrkdwn": false });
        let answer = self.result(&self.server.post("/api/chat.postMessage", Some(&self.token), &body)?)?;
        Ok(answer["ts"].as_str().map(str::to_owned))
    }

    fn poll(&self, cursor: &dyn Fn(&str) -> Option<String>, threads: &[String]) -> Result<Vec<Heard>, Trouble> {
        let from = cursor(CURSOR).unwrap_or_else(|| "0".to_owned());
        let found = self.since(None, &from)?;
        let mut heard: Vec<Heard> = found.iter().filter_map(|message| self.heard(CURSOR, message)).collect();
        for thread in threads.iter().rev().take(THREADS) {
            let from = cursor(thread).unwrap_or_else(|| thread.clone());
            let found = self.since(Some(thread), &from)?;
            heard.extend(found.iter().filter_map(|message| self.heard(thread, message)));
        }
        Ok(heard)
    }

    fn peek(&self) -> Result<(), Trouble> {
        let query = format!("/api/conversations.history?channel={}&limit=1", escaped(&self.channel));
        self.result(&self.server.get(&query, Some(&self.token))?).map(|_| ())
    }
}

/// A text as it was typed: Slack escapes three characters.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
