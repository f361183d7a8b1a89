//! Telegram's Bot API: `sendMessage` out, `getUpdates` in. The token is part of the path of every call.

use serde_json::{Value, json};

use super::http::{Answer, Server, Trouble};
use super::{Chat, Heard, Secret};

/// The address of the Bot API.
const API: &str = "https://api.telegram.org";

/// Updates that are fetched at once, which is the most that Telegram returns.
const UPDATES: u32 = 100;

/// The one cursor: the number of the next update.
const CURSOR: &str = "updates";

pub(super) struct Telegram {
    server: Server,
    path: String,
    chat: i64,
    user: i64,
}

impl Telegram {
    pub(super) fn new(api: Option<&str>, token: &Secret, chat: i64, user: i64) -> Result<Self, String> {
        let (number, letters) = token.reveal().split_once(':').unwrap_or_default();
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if number.is_empty()
            || !number.bytes().all(|byte| byte.is_ascii_digit())
            || letters.len() < 30
            || !letters.chars().all(is_letter)
        {
            return Err("the token is not one of a Telegram bot, which looks like 123456789:AA…: ask @BotFather".into());
        }
        let server = Server::new(api.unwrap_or(API), vec![token.clone()])?;
        Ok(Self { server, path: format!("/bot{}", token.reveal()), chat, user })
    }

    fn result(&self, answer: &Answer) -> Result<Value, Trouble> {
        let body: Value = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        if answer.status == 200 && body["ok"] == true {
            return Ok(body["result"].clone());
        }
        if (200..300).contains(&answer.status) && body.is_null() {
            return Err(Trouble::Again("its answer was cut off".to_owned()));
        }
        let said = body["description"].as_str().unwrap_or("");
        let ordered = body["parameters"]["retry_after"].as_u64().map(std::time::Duration::from_secs);
        match (answer.status, ordered) {
            (429, Some(wait)) => Err(Trouble::Wait(wait, "it answered with 429".to_owned())),
            _ => Err(self.server.trouble(answer, said)),
        }
    }

    fn updates(&self, query: &str) -> Result<Vec<Value>, Trouble> {
        let path = format!("{}/getUpdates?timeout=0&allowed_updates=%5B%22message%22%5D&{query}", self.path);
        let found = self.result(&self.server.get(&path, None)?)?;
        found.as_array().cloned().ok_or_else(|| Trouble::Again("its answer is not a list of updates".to_owned()))
    }

    fn heard(&self, update: &Value) -> Option<Heard> {
        let id = update["update_id"].as_i64()?;
        let message = &update["message"];
        let right_sender = message["from"]["id"].as_i64() == Some(self.user)
            && message["chat"]["id"].as_i64() == Some(self.chat)
            && message["from"]["is_bot"] != true;
        Some(Heard {
            id: id.to_string(),
            source: CURSOR.to_owned(),
            cursor: id.saturating_add(1).to_string(),
            right_sender,
            text: message["text"].as_str().map(str::to_owned),
        })
    }
}

impl Chat for Telegram {
    /// Messages written to the bot before are not for this run.
    fn begin(&self) -> Result<(String, String), Trouble> {
        let newest = self.updates("offset=-1&limit=1")?;
        let next = newest.last().and_then(|update| update["update_id"].as_i64()).map_or(0, |id| id.saturating_add(1));
        Ok((CURSOR.to_owned(), next.to_string()))
    }

    fn send(&self, text: &str) -> Result<Option<String>, Trouble> {
        let body = json!({ "chat_id": self.chat, "text": text, "link_preview_options": { "is_disabled": true } });
        let answer = self.server.post(&format!("{}/sendMessage", self.path), None, &body)?;
        self.result(&answer).map(|_| None)
    }

    fn poll(&self, cursor: &dyn Fn(&str) -> Option<String>, _: &[String]) -> Result<Vec<Heard>, Trouble> {
        let offset = cursor(CURSOR).unwrap_or_else(|| "0".to_owned());
        let updates = self.updates(&format!("offset={offset}&limit={UPDATES}"))?;
        let mut heard: Vec<(i64, Heard)> =
            updates.iter().filter_map(|update| Some((update["update_id"].as_i64()?, self.heard(update)?))).collect();
        // A cursor only moves forward, so older updates go first.
        heard.sort_by_key(|(id, _)| *id);
        let from: i64 = offset.parse().unwrap_or(0);
        Ok(heard.into_iter().filter(|(id, _)| *id >= from).map(|(_, heard)| heard).collect())
    }

    fn peek(&self) -> Result<(), Trouble> {
        // Without an offset nothing is marked as read.
        self.updates("limit=1").map(|_| ())
    }
}
