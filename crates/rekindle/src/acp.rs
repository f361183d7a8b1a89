//! `rekindle __acp`: the bridge between a shim and an agent that speaks the Agent Client Protocol. It takes the agent's
//! place: prompts come in as lines, what the agent does goes out as lines, and a signal ends the turn, then the agent.
//!
//! It decides nothing about tasks. The adapter, in the engine, knows what its lines mean.

mod link;
mod permission;

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rekindle_core::text;
use rekindle_engine::agents::acp::Setup;
use rekindle_engine::clock;
use serde_json::{Value, json};

use link::{Event, Link};

/// The hidden subcommand.
pub(crate) const COMMAND: &str = rekindle_engine::agents::acp::BRIDGE;

/// The supported version of the protocol.
const PROTOCOL: u64 = 1;

/// How long an agent may take to answer the handshake or to open a session: it may load a runtime and a long history.
const OPEN_WITHIN: Duration = Duration::from_secs(5 * 60);

/// How long a cancelled turn may take to end, below the grace that a stop gives.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);

/// One agent answers a load before it has sent the whole history; the history is over when nothing came for this long.
const REPLAY_QUIET: Duration = Duration::from_millis(300);

/// Longest wait for the end of a history.
const REPLAY_WITHIN: Duration = Duration::from_secs(10);

/// How long an agent may take to close its session; it is ended afterwards in any case.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Limit on prompts that wait for the end of a turn; a sender of more has lost count.
const PROMPTS: usize = 64;

/// Longest single text in a line: the end of a tool's output and its beginning say what it was.
const TEXT_MAX_BYTES: usize = 64 * 1024;

/// Updates that say nothing about the work and are long.
const DROPPED: &[&str] = &["available_commands_update"];

/// Runs the agent that the file describes until its input ends, it ends, or a signal comes.
pub(crate) fn main(file: &Path) -> ExitCode {
    let setup = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Setup>(&bytes).ok());
    let Some(setup) = setup else {
        emit(
            &json!({ "type": "error", "method": "start", "message": format!("{} is not a setup file", file.display()) }),
        );
        return ExitCode::FAILURE;
    };
    let link = match Link::open(&setup) {
        Ok(link) => link,
        Err(error) => {
            let program = setup.command.first().map_or("", String::as_str);
            emit(
                &json!({ "type": "error", "method": "start", "message": format!("cannot start `{program}`: {error}") }),
            );
            return ExitCode::from(127);
        }
    };
    let mut bridge = Bridge {
        link,
        setup,
        last: 0,
        prompts: VecDeque::new(),
        input_open: true,
        replaying: false,
        failed: false,
        closes: None,
    };
    let end = match bridge.open() {
        Ok(session) => bridge.serve(&session),
        Err(end) => end,
    };
    bridge.leave(end)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The input and the last turn have ended.
    Done,
    /// A required step failed; the line that says why has been written.
    Failed,
    /// The agent exited on its own.
    Gone,
    /// This signal was received.
    Signal(i32),
}

enum Answer {
    Result(Value),
    Error(Value),
    Late,
    Ended(End),
}

struct Bridge {
    link: Link,
    setup: Setup,
    last: u64,
    prompts: VecDeque<String>,
    input_open: bool,
    replaying: bool,
    failed: bool,
    /// The session to close at the end, if the agent supports that.
    closes: Option<String>,
}

impl Bridge {
    /// Opens the session and returns its id.
    fn open(&mut self) -> Result<String, End> {
        let about = json!({ "name": "rekindle", "version": env!("CARGO_PKG_VERSION") });
        // Without file access through the client the agent reads and writes files itself, which is what it is here for.
        let hello = json!({ "protocolVersion": PROTOCOL, "clientCapabilities": {}, "clientInfo": about });
        let hello = self.must("initialize", hello)?;
        if hello["protocolVersion"] != PROTOCOL {
            let message = format!("it speaks ACP version {}, rekindle speaks {PROTOCOL}", hello["protocolVersion"]);
            return Err(fail("initialize", &message));
        }
        let (opened, session) = match self.setup.resume.clone() {
            Some(session) => (self.resume(&session, &hello)?, session),
            None => {
                let opened =
                    self.must("session/new", json!({ "cwd": self.setup.cwd, "mcpServers": self.servers() }))?;
                let session = opened["sessionId"].as_str().map(str::to_owned);
                let session = session.ok_or_else(|| fail("session/new", "its answer names no session"))?;
                (opened, session)
            }
        };
        self.closes = can(&hello, "close").then(|| session.clone());
        let model = self.choose_model(&session, &opened)?;
        let loaded = self.setup.resume.is_some();
        let line =
            json!({ "type": "session", "id": session, "loaded": loaded, "model": model, "agent": hello["agentInfo"] });
        emit(&line);
        Ok(session)
    }

    /// Resumes a session: without its history if the agent supports that, else by a load that sends all of it again.
    fn resume(&mut self, session: &str, hello: &Value) -> Result<Value, End> {
        const RESUME: &str = "session/resume";
        if !can(hello, "resume") {
            return self.load(session, hello);
        }
        let id = self.ask(RESUME, &self.reopening(session));
        match self.answer(id, Some(OPEN_WITHIN)) {
            Answer::Result(result) => Ok(result),
            // It may still know the session: a load shows that, or shows that it is gone.
            Answer::Error(_) if hello["agentCapabilities"]["loadSession"] == true => self.load(session, hello),
            Answer::Error(error) => {
                emit(&with_method(RESUME, &error));
                Err(End::Failed)
            }
            Answer::Late => Err(fail(RESUME, &format!("it did not answer within {} s", OPEN_WITHIN.as_secs()))),
            Answer::Ended(end) => Err(end),
        }
    }

    fn reopening(&self, session: &str) -> Value {
        json!({ "sessionId": session, "cwd": self.setup.cwd, "mcpServers": self.servers() })
    }

    fn load(&mut self, session: &str, hello: &Value) -> Result<Value, End> {
        const LOAD: &str = "session/load";
        if hello["agentCapabilities"]["loadSession"] != true {
            return Err(fail(LOAD, "it cannot load sessions"));
        }
        self.replaying = true;
        let opened = self.must(LOAD, self.reopening(session))?;
        let until = clock::boottime_ms() + millis(REPLAY_WITHIN);
        while clock::boottime_ms() < until {
            match self.link.next(Some(REPLAY_QUIET)) {
                Some(event) => self.take(event)?,
                None => break,
            }
        }
        self.replaying = false;
        Ok(opened)
    }

    fn servers(&self) -> Value {
        let (command, args) = self.setup.mcp.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        json!([{ "name": "rekindle", "command": command, "args": args, "env": [] }])
    }

    /// Requests the configured model, by whichever of the two ways the agent offers; returns the model in use.
    fn choose_model(&mut self, session: &str, opened: &Value) -> Result<Option<String>, End> {
        let options = opened["configOptions"].as_array().map_or(&[][..], Vec::as_slice);
        let option = options.iter().find(|option| option["category"] == "model");
        let current = option.map_or(&opened["models"]["currentModelId"], |option| &option["currentValue"]);
        let current = current.as_str().map(str::to_owned);
        let Some(wanted) = self.setup.model.clone().filter(|wanted| Some(wanted) != current.as_ref()) else {
            return Ok(current);
        };
        let (method, params) = match (option, opened["models"].is_object()) {
            (Some(option), _) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": option["id"], "value": wanted }),
            ),
            (None, true) => ("session/set_model", json!({ "sessionId": session, "modelId": wanted })),
            (None, false) => {
                let message = format!(
                    "it does not let rekindle set the model `{wanted}`: leave `model` out, or set it in `args`"
                );
                return Err(fail("session/set_model", &message));
            }
        };
        self.must(method, params)?;
        Ok(Some(wanted))
    }

    /// Gives the agent one prompt after the other until the input has ended.
    fn serve(&mut self, session: &str) -> End {
        loop {
            let next = match self.prompts.pop_front() {
                Some(prompt) => self.turn(session, &prompt),
                None if !self.input_open => return if self.failed { End::Failed } else { End::Done },
                None => match self.link.next(None) {
                    Some(event) => self.take(event),
                    None => Err(End::Gone),
                },
            };
            if let Err(end) = next {
                return end;
            }
        }
    }

    /// One prompt and everything until its answer.
    fn turn(&mut self, session: &str, prompt: &str) -> Result<(), End> {
        const PROMPT: &str = "session/prompt";
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": prompt }] });
        let id = self.ask(PROMPT, &params);
        let mut stopped = None;
        let mut answer = self.answer(id, None);
        if let Answer::Ended(End::Signal(signal)) = answer {
            stopped = Some(End::Signal(signal));
            self.link
                .send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
            answer = self.answer(id, Some(CANCEL_WITHIN));
        }
        match answer {
            Answer::Result(result) => {
                let stop = result["stopReason"].as_str().unwrap_or("unknown");
                self.failed = stop != "end_turn";
                let more = stopped.is_none() && !self.prompts.is_empty();
                let (usage, meta) = (&result["usage"], &result["_meta"]);
                emit(&json!({ "type": "turn", "stop": stop, "usage": usage, "meta": meta, "more": more }));
            }
            Answer::Error(error) => {
                self.failed = true;
                emit(&with_method(PROMPT, &error));
            }
            Answer::Ended(end) => return Err(stopped.unwrap_or(end)),
            Answer::Late => {}
        }
        stopped.map_or(Ok(()), Err)
    }

    /// A request that has to succeed.
    fn must(&mut self, method: &str, params: Value) -> Result<Value, End> {
        let id = self.ask(method, &params);
        match self.answer(id, Some(OPEN_WITHIN)) {
            Answer::Result(result) => Ok(result),
            Answer::Error(error) => {
                emit(&with_method(method, &error));
                Err(End::Failed)
            }
            Answer::Late => Err(fail(method, &format!("it did not answer within {} s", OPEN_WITHIN.as_secs()))),
            Answer::Ended(end) => Err(end),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.link.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        self.last
    }

    /// Waits for the answer to a request and handles whatever else comes meanwhile.
    fn answer(&mut self, id: u64, within: Option<Duration>) -> Answer {
        let until = within.map(|within| clock::boottime_ms() + millis(within));
        loop {
            let left = until.map(|until| Duration::from_millis(until.saturating_sub(clock::boottime_ms())));
            if left.is_some_and(|left| left.is_zero()) {
                return Answer::Late;
            }
            match self.link.next(left) {
                None => return if left.is_some() { Answer::Late } else { Answer::Ended(End::Gone) },
                Some(Event::Said(message)) if message["id"] == id && message.get("method").is_none() => {
                    return match message.get("error") {
                        Some(error) => Answer::Error(error.clone()),
                        None => Answer::Result(message["result"].clone()),
                    };
                }
                Some(event) => {
                    if let Err(end) = self.take(event) {
                        return Answer::Ended(end);
                    }
                }
            }
        }
    }

    /// Handles an event that no request waits for.
    fn take(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Said(message) => self.said(&message),
            Event::Noise(text) => emit(&json!({ "type": "noise", "text": text::fold(&text, TEXT_MAX_BYTES) })),
            Event::Prompt(prompt) if self.prompts.len() < PROMPTS => self.prompts.push_back(prompt),
            Event::Prompt(_) => {
                emit(&json!({ "type": "noise", "text": "too many prompts are waiting: one was dropped" }))
            }
            Event::InputClosed => self.input_open = false,
            Event::Gone => return Err(End::Gone),
            Event::Signal(signal) => return Err(End::Signal(signal)),
        }
        Ok(())
    }

    fn said(&mut self, message: &Value) {
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/update"), None) => self.update(&params["update"]),
            (Some("session/request_permission"), Some(id)) => {
                let (answer, allowed) = permission::answer(params, self.setup.full);
                self.link.send(&json!({ "jsonrpc": "2.0", "id": id, "result": answer }));
                let what = if allowed { "allowed" } else { "refused" };
                emit(&json!({ "type": what, "title": folded(&params["toolCall"]["title"]) }));
            }
            (Some(method), Some(id)) => {
                let error = json!({ "code": -32_601, "message": format!("this client does not support {method}") });
                self.link.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            _ => {}
        }
    }

    fn update(&self, update: &Value) {
        if self.replaying {
            emit(&json!({ "type": "replay" }));
        } else if !DROPPED.iter().any(|name| update["sessionUpdate"] == *name) {
            emit(&json!({ "type": "update", "update": folded(update) }));
        }
    }

    /// Ends the agent and returns the exit code.
    fn leave(mut self, end: End) -> ExitCode {
        // An agent that is gone receives nothing, and one that is being stopped has already been cancelled.
        if let (End::Done | End::Failed, Some(session)) = (end, self.closes.take()) {
            let id = self.ask("session/close", &json!({ "sessionId": session }));
            // Whether it closed the session or not, it is ended now.
            let _answer = self.answer(id, Some(CLOSE_WITHIN));
        }
        self.link.close();
        while let Some(event) = self.link.last_words() {
            // Whatever it still does is written down; nothing it asks for is waited for.
            if let Event::Said(message) = event {
                self.said(&message);
            }
        }
        let code = self.link.end();
        match end {
            End::Done => ExitCode::SUCCESS,
            End::Failed => ExitCode::FAILURE,
            End::Gone => {
                emit(&json!({ "type": "gone", "code": code }));
                // An agent that exited in the middle of its work did not do it, whatever its exit code says.
                code.and_then(|code| u8::try_from(code).ok())
                    .filter(|code| *code != 0)
                    .map_or(ExitCode::FAILURE, ExitCode::from)
            }
            End::Signal(signal) => {
                ExitCode::from(u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128)))
            }
        }
    }
}

/// Whether an agent reports this session capability.
fn can(hello: &Value, what: &str) -> bool {
    let told = &hello["agentCapabilities"]["sessionCapabilities"][what];
    !told.is_null() && *told != false
}

fn fail(method: &str, message: &str) -> End {
    emit(&json!({ "type": "error", "method": method, "message": message }));
    End::Failed
}

fn with_method(method: &str, error: &Value) -> Value {
    json!({
        "type": "error",
        "method": method,
        "code": error["code"],
        "message": folded(&error["message"]),
        "data": folded(&error["data"]),
    })
}

/// JSON with its longest texts folded.
fn folded(value: &Value) -> Value {
    match value {
        Value::String(long) if long.len() > TEXT_MAX_BYTES => text::fold(long, TEXT_MAX_BYTES).into_owned().into(),
        Value::Array(items) => items.iter().map(folded).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), folded(value))).collect(),
        other => other.clone(),
    }
}

/// Writes one line. A missing reader changes nothing for the agent.
fn emit(line: &Value) {
    let mut out = std::io::stdout().lock();
    let _unread = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
