//! What each of the three servers answers to a call.

use std::time::{SystemTime, UNIX_EPOCH};

use rekindle_core::phone::Via;
use serde_json::{Value, json};

use super::{Asked, Chat, Inner, Message};

/// Messages are numbered from the current second on, as on real servers: a client asks for what came since then.
pub(super) fn first_number() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).unwrap_or(0)
}

/// A number as Slack writes it.
pub(super) fn time_stamp(number: i64) -> String {
    format!("{number}.000000")
}

pub(super) fn answer(inner: &mut Inner, asked: &Asked) -> (&'static str, String) {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let sent: Value = serde_json::from_str(&asked.body).unwrap_or(Value::Null);
    let right = asked.bearer.as_deref() == Some(Chat::token(inner.via));
    let found = match inner.via {
        Via::Telegram => match path.strip_prefix(&format!("/bot{}/", Chat::token(inner.via))) {
            Some("sendMessage") => Some(telegram_sent(inner, &sent)),
            Some("getUpdates") => Some(updates(inner, query)),
            _ => None,
        },
        Via::Slack if right => match path {
            "/api/chat.postMessage" => Some(slack_sent(inner, &sent)),
            "/api/conversations.history" => Some(slack_messages(inner, query, None)),
            "/api/conversations.replies" => Some(slack_messages(inner, query, parameter(query, "ts"))),
            _ => None,
        },
        Via::Ntfy if right => match path {
            "/" => Some(ntfy_sent(inner, &sent)),
            _ if path == format!("/{}/json", Chat::place(Via::Ntfy)) => Some(topic(inner, query)),
            _ => None,
        },
        Via::Slack | Via::Ntfy => None,
    };
    found.map_or(("401 Unauthorized", "{\"ok\":false,\"error\":\"not allowed\"}".to_owned()), |body| ("200 OK", body))
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Keeps what rekindle sent.
fn keep(inner: &mut Inner, text: &Value, place: &Value) -> i64 {
    let number = inner.next;
    inner.next += 1;
    let text = text.as_str().unwrap_or("").to_owned();
    let place = place.as_str().map_or_else(|| place.to_string(), str::to_owned);
    inner.messages.push(Message { number, user: "bot".to_owned(), place, text, thread: None, own: true });
    number
}

/// The messages that a call gets: those since a number, or all of them, twice and newest first.
fn since(inner: &Inner, from: i64) -> Vec<Message> {
    if !inner.repeats {
        return inner.messages.iter().filter(|message| message.number >= from).cloned().collect();
    }
    inner.messages.iter().rev().flat_map(|message| [message.clone(), message.clone()]).collect()
}

fn telegram_sent(inner: &mut Inner, sent: &Value) -> String {
    let number = keep(inner, &sent["text"], &sent["chat_id"]);
    json!({ "ok": true, "result": { "message_id": number } }).to_string()
}

fn updates(inner: &Inner, query: &str) -> String {
    let offset: i64 = parameter(query, "offset").and_then(|offset| offset.parse().ok()).unwrap_or(0);
    let people = since(inner, offset.max(0)).into_iter().filter(|message| !message.own);
    let mut updates: Vec<Value> = people
        .map(|message| {
            let number = |text: &str| text.parse::<i64>().unwrap_or(0);
            json!({ "update_id": message.number, "message": {
                "message_id": message.number,
                "from": { "id": number(&message.user), "is_bot": false },
                "chat": { "id": number(&message.place) },
                "text": message.text,
            }})
        })
        .collect();
    if offset < 0 {
        updates = updates.pop().into_iter().collect();
    }
    json!({ "ok": true, "result": updates }).to_string()
}

fn slack_sent(inner: &mut Inner, sent: &Value) -> String {
    let number = keep(inner, &sent["text"], &sent["channel"]);
    json!({ "ok": true, "ts": time_stamp(number) }).to_string()
}

fn slack_messages(inner: &Inner, query: &str, thread: Option<&str>) -> String {
    let oldest =
        parameter(query, "oldest").and_then(|oldest| oldest.split('.').next()?.parse::<i64>().ok()).unwrap_or(0);
    if parameter(query, "channel") != Some(Chat::place(Via::Slack)) {
        return json!({ "ok": false, "error": "channel_not_found" }).to_string();
    }
    let here = since(inner, oldest + 1).into_iter().filter(|message| message.thread.as_deref() == thread);
    let here = here.filter(|message| message.place == Chat::place(Via::Slack));
    let messages: Vec<Value> = here
        .map(|message| match message.own {
            true => json!({ "ts": time_stamp(message.number), "bot_id": "B1", "user": "UBOT", "text": message.text }),
            false => json!({ "ts": time_stamp(message.number), "user": message.user, "text": message.text }),
        })
        .collect();
    json!({ "ok": true, "messages": messages, "response_metadata": { "next_cursor": "" } }).to_string()
}

fn ntfy_sent(inner: &mut Inner, sent: &Value) -> String {
    let number = keep(inner, &sent["message"], &sent["topic"]);
    json!({ "id": format!("m{number}"), "time": number }).to_string()
}

fn topic(inner: &Inner, query: &str) -> String {
    let from: i64 = parameter(query, "since").and_then(|since| since.parse().ok()).unwrap_or(0);
    let lines = since(inner, from).into_iter().map(|message| {
        let tags: &[&str] = if message.own { &["rekindle"] } else { &[] };
        let (id, time) = (format!("m{}", message.number), message.number);
        json!({ "id": id, "time": time, "event": "message", "message": message.text, "tags": tags }).to_string() + "\n"
    });
    lines.collect()
}
