//! Whether rekindle's own MCP server can be started and offers its tools: a real handshake with it, as an agent would do it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rekindle_engine::process::talk::Talk;
use serde_json::{Value, json};

use super::checks::{finding, ok};
use super::{Finding, Verdict};
use crate::client::{SOCKET, TOKEN};

/// How long one answer may take: it is this very program, on a machine that may be busy.
const BUDGET: Duration = Duration::from_secs(10);

/// Lines that may come before an answer: a server may send other messages in between.
const LINES_MAX: usize = 32;

/// Longest line: a list of tools is far smaller.
const LINE_MAX_BYTES: u64 = 1024 * 1024;

/// How long the server may take to exit once its input has ended.
const LEAVES_WITHIN_MS: u64 = 10_000;

/// The server: its input and its lines. `None` in place of a line means that its output has ended.
struct Server {
    talk: Talk,
    lines: Receiver<Option<Vec<u8>>>,
}

/// The protocol version that is requested; the server answers with its own.
const PROTOCOL: &str = "2025-06-18";

/// Speaks to the server of a bundle.
pub(super) fn look(bundle: &Path) -> Finding {
    match handshake(bundle) {
        Ok(tools) if tools.is_empty() => finding("MCP", Verdict::Problem, "the server offers no tools"),
        Ok(tools) => ok("MCP", &format!("the server answers with {} tools: {}", tools.len(), tools.join(", "))),
        Err(reason) => Finding {
            hint: Some("agents report with `rekindle task done` and the like instead".to_owned()),
            ..finding("MCP", Verdict::Problem, &reason)
        },
    }
}

/// The names of the tools that it offers.
fn handshake(bundle: &Path) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let mut command = Command::new(program);
    command.args(["mcp", "--bundle"]).arg(bundle).stderr(Stdio::null());
    // An invalid token and a socket that does not exist: the list of tools is the same for everybody, and nothing is
    // reported.
    command.env(TOKEN, "doctor").env(SOCKET, bundle.join("nobody"));
    let (give, lines) = sync_channel(LINES_MAX);
    let talk = Talk::start(&mut command, LINE_MAX_BYTES, move |line| give.send(line).is_ok());
    let server = Server { talk: talk.map_err(|error| format!("the server cannot be started: {error}"))?, lines };
    let client = json!({ "name": "rekindle doctor", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
    server.call(1, "initialize", &params)?;
    server.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let listed = server.call(2, "tools/list", &json!({}))?;
    let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
    let _ended_with_its_input = server.talk.end(LEAVES_WITHIN_MS);
    Ok(names)
}

impl Server {
    fn call(&self, id: u64, method: &str, params: &Value) -> Result<Value, String> {
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        for _ in 0..LINES_MAX {
            let line = self.lines.recv_timeout(BUDGET);
            let line = line.map_err(|_| format!("the server did not answer {method} in time"))?;
            let line = line.ok_or_else(|| format!("the server ended without an answer to {method}"))?;
            let Ok(answer) = serde_json::from_slice::<Value>(&line) else { continue };
            if answer["id"].as_u64() != Some(id) {
                continue;
            }
            let refused =
                || format!("the server refused {method}: {}", answer["error"]["message"].as_str().unwrap_or("?"));
            return answer.get("result").cloned().ok_or_else(refused);
        }
        Err(format!("the server wrote a lot, but did not answer {method}"))
    }

    fn tell(&self, message: &Value) -> Result<(), String> {
        let sent = self.talk.send(&message.to_string());
        sent.map_err(|error| format!("the server does not read its input: {error}"))
    }
}
