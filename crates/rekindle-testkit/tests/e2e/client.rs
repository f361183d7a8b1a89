//! An MCP client as an agent's program has one: it starts the server, speaks newline-delimited JSON-RPC, and holds the
//! server to it that nothing else is on its standard output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use serde_json::{Value, json};

use crate::rig::{BOUND, Rig, program, until};

/// Messages read ahead; a server says one or two a call.
const AHEAD: usize = 1_000;

/// A running server and what it has said.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    last: u64,
    /// Notifications that came while an answer was waited for.
    pub notifications: Vec<Value>,
}

impl Client {
    /// The tools of an attempt by its bundle alone, in an environment that names nothing else, handshake included.
    pub fn of_attempt(rig: &Rig, attempt: u64) -> Self {
        let mut client = Self::unintroduced(rig, attempt);
        client.introduce();
        client
    }

    /// The same before the handshake.
    pub fn unintroduced(rig: &Rig, attempt: u64) -> Self {
        let bundle = rig.state().join(format!("attempts/{attempt:08}"));
        let mut command = Command::new(program());
        rig.prepare(&mut command);
        command.env_remove("PATH").current_dir("/").arg("mcp").arg("--bundle").arg(bundle);
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("piped");
        let (give, lines) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("text");
                let message: Value =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("no protocol: {error}: {line}"));
                assert_eq!(message["jsonrpc"], "2.0", "no protocol: {line}");
                if give.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines, last: 0, notifications: Vec::new() }
    }

    /// The handshake.
    pub fn introduce(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.request("initialize", params);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        answer["result"].clone()
    }

    /// Writes a line as it is.
    pub fn say(&mut self, line: &str) {
        self.say_bytes(format!("{line}\n").as_bytes());
    }

    /// Writes bytes as they are.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("still open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    /// Asks without waiting; the number is returned.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.say(&request.to_string());
        self.last
    }

    /// Asks and awaits the answer, a result or an error.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Awaits the answer to a question.
    pub fn answer(&mut self, id: u64) -> Value {
        let started = Instant::now();
        loop {
            let left = BOUND.saturating_sub(started.elapsed());
            let message = self.lines.recv_timeout(left).unwrap_or_else(|error| panic!("no answer to {id}: {error}"));
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Awaits the next notification.
    pub fn notification(&mut self) -> Value {
        if self.notifications.is_empty() {
            let message = self.lines.recv_timeout(BOUND).expect("a notification");
            self.notifications.push(message);
        }
        self.notifications.remove(0)
    }

    /// Calls a tool. What stands in the text stands in the fields too, and the fields are those of the schema.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        Called::of(&answer)
    }

    /// Closes its input and awaits its end.
    pub fn close(mut self) -> ExitStatus {
        drop(self.input.take());
        until(|| self.child.try_wait().expect("asked")).expect("it ends with its input")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What a tool answered.
#[derive(Debug)]
pub struct Called {
    /// Whether the result is marked as an error.
    pub error: bool,
    /// The words.
    pub text: String,
    pub fields: Value,
}

impl Called {
    /// Out of an answer, which must be a result.
    pub fn of(answer: &Value) -> Self {
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}")).to_owned();
        let fields = result["structuredContent"].clone();
        assert_eq!(fields["message"], text.as_str(), "{answer}");
        assert!(fields["ok"].is_boolean(), "{answer}");
        Self { error: result["isError"] == true, text, fields }
    }

    /// It worked.
    #[track_caller]
    pub fn good(self) -> Self {
        assert!(!self.error && self.fields["ok"] == true, "{self:?}");
        self
    }

    /// It was refused in words.
    #[track_caller]
    pub fn wrong(self) -> Self {
        assert!(self.error && self.fields["ok"] == false, "{self:?}");
        self
    }
}
