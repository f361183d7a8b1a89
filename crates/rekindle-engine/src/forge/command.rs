//! A forge behind a program of the user's own: one JSON object on its standard input, one on its standard output, a process for each call.

use std::path::Path;

use rekindle_core::forge::{Comment, Found, Status};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::program::Program;
use super::{Forge, New, Result};

/// The version of the protocol.
const VERSION: u32 = 1;

pub struct OwnCommand {
    program: Program,
}

#[derive(Deserialize)]
struct PullRequests {
    pull_requests: Vec<Found>,
}

#[derive(Deserialize)]
struct Comments {
    comments: Vec<Comment>,
}

impl OwnCommand {
    pub fn new(dir: &Path, words: &[String]) -> Self {
        Self { program: Program::new(words.to_vec(), dir, &[]) }
    }

    fn call<T: DeserializeOwned>(&self, call: &str, with: Value) -> Result<T> {
        let mut request = json!({ "version": VERSION, "call": call });
        if let (Some(all), Value::Object(with)) = (request.as_object_mut(), with) {
            all.extend(with);
        }
        self.program.ask(&[], request.to_string().as_bytes())
    }

    fn order(&self, call: &str, with: Value) -> Result<()> {
        self.call::<IgnoredAny>(call, with).map(|_| ())
    }
}

impl Forge for OwnCommand {
    fn name(&self) -> &'static str {
        "command"
    }

    fn find(&self, branch: &str) -> Result<Vec<Found>> {
        self.call::<PullRequests>("find", json!({ "branch": branch })).map(|found| found.pull_requests)
    }

    fn create(&self, new: &New<'_>) -> Result<()> {
        let New { branch, base, title, body } = new;
        self.order("create", json!({ "branch": branch, "base": base, "title": title, "body": body }))
    }

    fn update(&self, id: &str, title: &str, body: &str) -> Result<()> {
        self.order("update", json!({ "id": id, "title": title, "body": body }))
    }

    fn status(&self, id: &str) -> Result<Status> {
        self.call("status", json!({ "id": id }))
    }

    fn comments(&self, id: &str) -> Result<Vec<Comment>> {
        self.call::<Comments>("comments", json!({ "id": id })).map(|found| found.comments)
    }

    fn reply(&self, id: &str, to: &Comment, text: &str) -> Result<()> {
        self.order("reply", json!({ "id": id, "comment": to.id, "thread": to.thread, "body": text }))
    }

    fn merge(&self, id: &str, head: &str, form: &str) -> Result<()> {
        self.order("merge", json!({ "id": id, "head": head, "form": form }))
    }
}
