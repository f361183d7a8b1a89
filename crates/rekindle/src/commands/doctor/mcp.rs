//! Whether rekindle's own MCP server can be started and offers its tools: a real handshake with it, as an agent would do it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::checks::{finding, ok};
use super::probe::Probe;
use super::{Finding, Verdict};
use crate::client::{SOCKET, TOKEN};

/// How long one answer may take: it is this very program, on a machine that may be busy.
const BUDGET: Duration = Duration::from_secs(10);

/// Lines that may come before an answer: a server may say what it likes in between.
const LINES_MAX: usize = 32;

/// The protocol's version that is asked for; the server answers with its own.
const PROTOCOL: &str = "2025-06-18";

/// Speaks to the server of a bundle.
pub fn look(bundle: &Path) -> Finding {
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
    command.args(["mcp", "--bundle"]).arg(bundle).stdin(Stdio::piped());
    // A stranger's token and a door that is not there: the list of tools is the same for everybody, and nothing is reported.
    command.env(TOKEN, "doctor").env(SOCKET, bundle.join("nobody"));
    let mut probe = Probe::start(&mut command).map_err(|error| format!("the server cannot be started: {error}"))?;
    let client = json!({ "name": "rekindle doctor", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
    call(&mut probe, 1, "initialize", &params)?;
    tell(&mut probe, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let listed = call(&mut probe, 2, "tools/list", &json!({}))?;
    let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
    let _ended_with_its_input = probe.end(BUDGET);
    Ok(names)
}

fn call(probe: &mut Probe, id: u64, method: &str, params: &Value) -> Result<Value, String> {
    tell(probe, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
    for _ in 0..LINES_MAX {
        let line = probe.line(BUDGET).map_err(|_| format!("the server did not answer {method} in time"))?;
        let line = line.ok_or_else(|| format!("the server ended without an answer to {method}"))?;
        let Ok(answer) = serde_json::from_str::<Value>(&line) else { continue };
        if answer["id"].as_u64() != Some(id) {
            continue;
        }
        return match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("the server refused {method}: {}", answer["error"]["message"].as_str().unwrap_or("?"))),
        };
    }
    Err(format!("the server wrote a lot, but did not answer {method}"))
}

fn tell(probe: &mut Probe, message: &Value) -> Result<(), String> {
    probe.tell(&message.to_string()).map_err(|error| format!("the server does not read its input: {error}"))
}
