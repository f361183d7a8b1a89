//! Replies from phones, carried to the driver as the orders of an operator.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use rekindle_core::input::Order;
use rekindle_core::phone::{PhoneMessage, PhoneOrder};

use super::super::Message;
use crate::alert::Channels;
use crate::alert::phone::{Line, Phones, Said, Shared};
use crate::control::Called;
use crate::control::wire::{Request, Response};
use crate::token::Tokens;

/// Longest wait for an answer: one commit, on a very busy disk. After that the message is handled again.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn start(channels: &Channels, state_dir: &Path, tokens: &Tokens, messages: &SyncSender<Message>) -> Phones {
    let line = Arc::new(DriverLine { messages: messages.clone() });
    Phones::start(channels, &Shared { dir: state_dir.to_owned(), codes: tokens.clone(), line })
}

struct DriverLine {
    messages: SyncSender<Message>,
}

impl Line for DriverLine {
    fn order(&self, from: PhoneMessage, order: PhoneOrder) -> Option<Said> {
        let (answer, answered) = sync_channel(1);
        let call = Request::Order(Order::FromPhone { from, order });
        let reply = Box::new(move |response| drop(answer.try_send(response)));
        self.messages.send(Message::Called(Called { token: None, ancestors: Vec::new(), call, reply })).ok()?;
        match answered.recv_timeout(ANSWER_PATIENCE).ok()? {
            Response::Already => Some(Said::Already),
            Response::Refused { reason } => Some(Said::Refused(reason)),
            _ => Some(Said::Taken),
        }
    }

    fn status(&self) -> Option<String> {
        let (answer, answered) = sync_channel(1);
        let reply = Box::new(move |status| drop(answer.try_send(status)));
        self.messages.send(Message::StatusAsked { reply }).ok()?;
        answered.recv_timeout(ANSWER_PATIENCE).ok()
    }
}
