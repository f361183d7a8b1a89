//! The fake provider against a client of a few lines: what each API says, what a script picks, and every way to break.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Act, Answer, Api, Asked, End, Fail, Purpose, Rule, Script, Server, When};

/// How long a client waits before it says that nothing comes: long for a server on a loaded machine to begin, short for a test.
const PATIENCE: Duration = Duration::from_secs(10);

/// Long enough for any answer that does come.
const BOUND: Duration = Duration::from_secs(600);

const APIS: [Api; 4] = [Api::Messages, Api::Responses, Api::Chat, Api::Gemini];

/// What came back.
#[derive(Debug)]
struct Got {
    text: String,
    /// How the connection ended; nothing when it hung.
    end: Option<std::io::Result<()>>,
}

impl Got {
    fn status(&self) -> u16 {
        self.text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    /// The data of every event that came.
    fn events(&self) -> Vec<Value> {
        let data = self.body().lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }

    fn hangs(&self) -> bool {
        self.end.is_none()
    }

    fn ended_well(&self) -> bool {
        matches!(self.end, Some(Ok(()))) && (self.text.ends_with("0\r\n\r\n") || self.text.contains("content-length: "))
    }
}

fn send(server: &Server, method: &str, path: &str, body: &str, patience: Duration) -> Got {
    let address = server.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: client/1\r\nX-Api-Key: secret\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    stream.set_read_timeout(Some(patience)).expect("set");
    let mut bytes = Vec::new();
    let end = loop {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) => break Some(Ok(())),
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break None,
            Err(error) => break Some(Err(error)),
        }
    };
    let _closed = stream.shutdown(Shutdown::Both);
    Got { text: String::from_utf8(bytes).expect("text"), end }
}

fn path(api: Api) -> &'static str {
    match api {
        Api::Messages => "/v1/messages?beta=true",
        Api::Responses => "/v1/responses",
        Api::Chat => "/v1/chat/completions",
        Api::Gemini => "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    }
}

/// A conversation of one message, as each API wants it.
fn body(api: Api, text: &str) -> String {
    let user = json!([{ "role": "user", "content": text }]);
    let body = match api {
        Api::Messages => {
            json!({ "model": "m", "stream": true, "system": "be good", "messages": user, "tools": [{ "name": "Bash" }] })
        }
        Api::Responses => json!({
            "model": "m", "stream": true, "instructions": "be good",
            "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }],
            "tools": [{ "type": "function", "name": "exec_command" }, { "type": "namespace", "name": "ns", "tools": [{ "name": "in" }] }],
        }),
        Api::Chat => json!({
            "model": "m", "stream": true, "tools": [{ "function": { "name": "bash" } }],
            "messages": [{ "role": "system", "content": "be good" }, { "role": "user", "content": text }],
        }),
        Api::Gemini => json!({
            "systemInstruction": { "parts": [{ "text": "be good" }] }, "contents": [{ "role": "user", "parts": [{ "text": text }] }],
            "tools": [{ "functionDeclarations": [{ "name": "run_shell_command" }] }],
        }),
    };
    body.to_string()
}

fn ask(server: &Server, api: Api, text: &str) -> Got {
    send(server, "POST", path(api), &body(api, text), BOUND)
}

/// Like `ask`, for answers that never end.
fn ask_briefly(server: &Server, api: Api, text: &str) -> Got {
    send(server, "POST", path(api), &body(api, text), PATIENCE)
}

fn server(script: Script) -> Server {
    Server::start(script).expect("a port")
}

fn only(server: &Server) -> Asked {
    let [asked] = <[Asked; 1]>::try_from(server.asked()).expect("one request");
    asked
}

#[test]
fn request_is_understood_and_kept() {
    for api in APIS {
        let server = server(Script::new());
        ask(&server, api, "do it");
        let asked = only(&server);
        assert_eq!((asked.api, asked.purpose, asked.main_number), (Some(api), Purpose::Main, Some(1)), "{api:?}");
        let texts: Vec<&str> = asked.messages.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, ["be good", "do it"], "{api:?}");
        assert_eq!(asked.user_agent(), "client/1");
        assert!(!asked.headers.contains_key("x-api-key"), "a key is not kept");
        assert_eq!(asked.peer.as_ref().map(|peer| peer.pid), Some(std::process::id()), "this test asked");
    }
}

#[test]
fn tools_are_listed() {
    let wanted: [&[&str]; 4] = [&["Bash"], &["exec_command", "ns", "ns.in"], &["bash"], &["run_shell_command"]];
    for (api, wanted) in APIS.into_iter().zip(wanted) {
        let server = server(Script::new());
        ask(&server, api, "do it");
        assert_eq!(only(&server).tools, wanted, "{api:?}");
    }
}

#[test]
fn text_is_said_in_the_words_of_each_api() {
    let script = Script::new().then(Answer::say("hällo there").tokens(70_000, 33));
    let said = |api: Api, events: &[Value]| -> String {
        let piece = |event: &Value| match api {
            Api::Messages => event["delta"]["text"].as_str().map(str::to_owned),
            Api::Responses => event["delta"].as_str().map(str::to_owned),
            Api::Chat => event["choices"][0]["delta"]["content"].as_str().map(str::to_owned),
            Api::Gemini => event["candidates"][0]["content"]["parts"][0]["text"].as_str().map(str::to_owned),
        };
        events.iter().filter_map(piece).collect()
    };
    for api in APIS {
        let server = server(script.clone());
        let got = ask(&server, api, "do it");
        assert_eq!(got.status(), 200);
        assert!(got.ended_well(), "{got:?}");
        assert_eq!(said(api, &got.events()), "hällo there", "{api:?}");
        assert!(got.body().contains("70000") && got.body().contains("33"), "{api:?}: counts: {got:?}");
    }
}

#[test]
fn calls_have_the_names_of_each_program() {
    let args = json!({ "task": "T1", "result": "ok" });
    let answer = Answer::shell("make").and(Act::Report { tool: "task_done".into(), args: args.clone() });
    for api in APIS {
        let server = server(Script::new().then(answer.clone()));
        let got = ask(&server, api, "do it");
        let calls: Vec<(String, Value)> = got.events().iter().filter_map(|event| called(api, event)).collect();
        let (shell, key, report) = match api {
            Api::Messages => ("Bash", "command", "mcp__rekindle__task_done"),
            Api::Responses => ("exec_command", "cmd", "mcp__rekindle/task_done"),
            Api::Chat => ("bash", "command", "rekindle_task_done"),
            Api::Gemini => ("run_shell_command", "command", "mcp_rekindle_task_done"),
        };
        let names: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [shell, report], "{api:?}: {got:?}");
        if api == Api::Messages {
            let inputs: Vec<Value> = got
                .events()
                .iter()
                .filter_map(|event| {
                    event["delta"]["partial_json"].as_str().map(|text| serde_json::from_str(text).expect("JSON"))
                })
                .collect();
            assert_eq!((inputs[0][key].as_str(), &inputs[1]), (Some("make"), &args));
        } else {
            assert_eq!((calls[0].1[key].as_str(), &calls[1].1), (Some("make"), &args), "{api:?}");
        }
    }
}

fn called(api: Api, event: &Value) -> Option<(String, Value)> {
    let parsed = |text: &Value| serde_json::from_str(text.as_str().unwrap_or("null")).expect("JSON");
    match api {
        Api::Messages => {
            let block = &event["content_block"];
            (block["type"] == "tool_use").then(|| (block["name"].as_str().unwrap_or_default().to_owned(), Value::Null))
        }
        Api::Responses => {
            let item = &event["item"];
            let space = item["namespace"].as_str().map(|space| format!("{space}/")).unwrap_or_default();
            let name = format!("{space}{}", item["name"].as_str()?);
            Some((name, parsed(&item["arguments"])))
        }
        Api::Chat => {
            let function = &event["choices"][0]["delta"]["tool_calls"][0]["function"];
            Some((function["name"].as_str()?.to_owned(), parsed(&function["arguments"])))
        }
        Api::Gemini => {
            let call = &event["candidates"][0]["content"]["parts"][0]["functionCall"];
            Some((call["name"].as_str()?.to_owned(), call["args"].clone()))
        }
    }
}

#[test]
fn whole_answer_is_given_where_no_stream_is_wanted() {
    let script = Script::new().whenever([], Answer::say("at once"));
    let server = server(script);
    let body = body(Api::Messages, "do it").replace("\"stream\":true", "\"stream\":false");
    let got = send(&server, "POST", path(Api::Messages), &body, BOUND);
    let message: Value = serde_json::from_str(got.body()).expect("JSON");
    assert_eq!(message["content"][0]["text"], "at once");
    let summary = json!({ "contents": [], "systemInstruction": { "parts": [{ "text": "write a <state_snapshot>" }] } });
    let got = send(&server, "POST", "/v1beta/models/m:generateContent", &summary.to_string(), BOUND);
    let message: Value = serde_json::from_str(got.body()).expect("JSON");
    let parts = message["candidates"][0]["content"]["parts"].as_array().expect("parts").clone();
    assert_eq!(parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>(), "at once");
    assert_eq!(server.of(Purpose::Compaction).len(), 1);
}

#[test]
fn programs_own_requests_are_told_apart_and_answered() {
    let server = server(Script::new().then(Answer::say("main")));
    assert_eq!(send(&server, "HEAD", "/", "", BOUND).status(), 200);
    assert_eq!(send(&server, "GET", "/v1/models", "", BOUND).status(), 404);
    for (api, text) in [
        (Api::Messages, "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."),
        (Api::Responses, "You are performing a CONTEXT CHECKPOINT COMPACTION. Go."),
        (Api::Chat, "You are a context summarization agent"),
    ] {
        let got = ask(&server, api, text);
        assert!(got.ended_well() && got.body().contains("has begun"), "{api:?}: {got:?}");
    }
    ask(&server, Api::Chat, "You are a title generator.");
    let title = json!({ "format": { "type": "json_schema", "schema": { "properties": { "title": {} } } } });
    let title = json!({ "stream": true, "input": [], "text": title }).to_string();
    assert!(send(&server, "POST", path(Api::Responses), &title, BOUND).ended_well());
    let count = send(&server, "POST", "/v1/messages/count_tokens", &body(Api::Messages, "how many"), BOUND);
    assert!(count.body().contains("input_tokens"), "{count:?}");
    let count = send(&server, "POST", "/v1beta/models/m:countTokens", "{}", BOUND);
    assert!(count.body().contains("totalTokens"), "{count:?}");
    let of = |purpose| server.of(purpose).len();
    assert_eq!(
        [Purpose::Other, Purpose::Compaction, Purpose::Title, Purpose::Count, Purpose::Main].map(of),
        [2, 3, 2, 2, 0]
    );
    assert_eq!(server.unused().len(), 1, "none of them used the answer of the conversation");
}

#[test]
fn shell_that_still_runs_is_asked_for_again_without_the_script() {
    let server = server(Script::new().then(Answer::say("next")));
    let output = json!({
        "type": "function_call_output", "call_id": "c", "output": "Wall time: 30 seconds\nProcess running with session ID 4711\nOutput:\n",
    });
    let body = json!({ "stream": true, "input": [output] }).to_string();
    let got = send(&server, "POST", path(Api::Responses), &body, BOUND);
    assert!(got.body().contains("write_stdin") && got.body().contains("4711"), "{got:?}");
    assert_eq!((server.main().len(), server.unused().len()), (0, 1));
}

#[test]
fn rules_are_used_in_order_and_run_out() {
    let script = Script::new()
        .whenever([When::Last("who".into())], Answer::say("me"))
        .then(Answer::say("one"))
        .rule(Rule { when: vec![When::Nth(4)], times: None, answer: Answer::say("fourth") })
        .then(Answer::say("two"));
    let server = server(script);
    let say = |text: &str| {
        let got = ask(&server, Api::Gemini, text);
        let pieces = got.events();
        let text = |event: &Value| event["candidates"][0]["content"]["parts"][0]["text"].as_str().map(str::to_owned);
        pieces.iter().filter_map(text).collect::<String>()
    };
    assert_eq!(say("go"), "one");
    assert_eq!(say("who are you"), "me");
    assert_eq!(say("go"), "two");
    assert_eq!(say("go"), "fourth");
    assert_eq!(say("go"), "There is nothing left to do.");
    server.add(Script::new().then(Answer::say("more")));
    assert_eq!(say("go"), "more");
    let rules: Vec<Option<usize>> = server.asked().into_iter().map(|asked| asked.rule).collect();
    assert_eq!(rules, [Some(1), Some(0), Some(3), Some(2), None, Some(4)]);
}

#[test]
fn refusals_have_the_status_and_fields_of_each_provider() {
    let refused = |api: Api, fail: Fail| {
        let server = server(Script::new().then(Answer::fail(fail)));
        let got = ask(&server, api, "do it");
        assert!(got.ended_well(), "{got:?}");
        got
    };
    let statuses = |fail: &Fail| APIS.map(|api| refused(api, fail.clone()).status());
    assert_eq!(statuses(&Fail::UsageLimit { resets_in_s: 60 }), [429; 4]);
    assert_eq!(statuses(&Fail::RateLimit { retry_after_s: 2 }), [429; 4]);
    assert_eq!(statuses(&Fail::Overloaded), [529, 503, 503, 503]);
    assert_eq!(statuses(&Fail::Server), [500; 4]);
    assert_eq!(statuses(&Fail::Auth), [401; 4]);
    assert_eq!(statuses(&Fail::ContextFull), [400, 200, 400, 400]);
    let raw = Fail::Raw { status: 418, headers: vec![("x-a".into(), "b".into())], body: "no".into() };
    assert_eq!(statuses(&raw), [418; 4]);
    let full = refused(Api::Responses, Fail::ContextFull);
    assert_eq!(full.events()[1]["response"]["error"]["code"], "context_length_exceeded");
    let limit = |api| refused(api, Fail::UsageLimit { resets_in_s: 60 }).text;
    assert!(limit(Api::Messages).contains("anthropic-ratelimit-unified-status: rejected"));
    assert!(limit(Api::Responses).contains("usage_limit_reached"));
    assert!(limit(Api::Chat).contains("retry-after: "));
    assert!(limit(Api::Gemini).contains("PerDay"));
}

#[test]
fn usage_limit_holds_until_its_reset_and_no_longer() {
    let script = Script::new().then(Answer::fail(Fail::UsageLimit { resets_in_s: 3 })).then(Answer::say("again"));
    let server = server(script);
    let started = std::time::Instant::now();
    let mut refused = 0;
    while ask(&server, Api::Messages, "go").status() == 429 {
        refused += 1;
        assert!(started.elapsed() < BOUND, "the limit is never lifted");
        std::thread::park_timeout(Duration::from_millis(100));
    }
    assert!(refused > 1, "refused as often as asked: {refused}");
    let reset = |text: &str| text.split_once("unified-reset: ").map(|(_, rest)| rest[..10].to_owned());
    assert_eq!(reset(&ask(&server, Api::Messages, "go").text), None, "and it stays lifted");
}

#[test]
fn hangs_hang_and_cuts_cut() {
    // Side by side: each hang is watched for as long as patience lasts.
    std::thread::scope(|scope| {
        for api in APIS {
            scope.spawn(move || breaks_as_told(api));
        }
    });
}

fn breaks_as_told(api: Api) {
    let ended = |end: End| {
        let server = server(Script::new().then(Answer::say("half and half").end(end)));
        ask_briefly(&server, api, "do it")
    };
    let before = ended(End::HangBeforeHeaders);
    assert!(before.hangs() && before.text.is_empty(), "{api:?}: {before:?}");
    let after = ended(End::HangAfterHeaders);
    assert!(after.hangs() && after.status() == 200 && after.events().is_empty(), "{api:?}: {after:?}");
    let middle = ended(End::HangMidStream);
    assert!(middle.hangs() && !middle.events().is_empty(), "{api:?}: {middle:?}");
    let cut = ended(End::Cut);
    assert!(!cut.hangs() && !cut.ended_well() && cut.status() == 200, "{api:?}: {cut:?}");
    let unfinished = ended(End::Unfinished);
    assert!(unfinished.ended_well(), "{api:?}: {unfinished:?}");
    assert_eq!(unfinished.events(), cut.events(), "{api:?}");
    let refused = ended(End::Refused);
    assert!(!refused.hangs() && refused.text.is_empty(), "{api:?}: {refused:?}");
}

#[test]
fn answer_waits_for_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("go");
    let server = server(Script::new().then(Answer::say("now").after(&file)));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&server, Api::Chat, "do it"));
        let started = std::time::Instant::now();
        while server.main().is_empty() {
            assert!(started.elapsed() < BOUND, "the request never came");
            std::thread::yield_now();
        }
        assert!(!asking.is_finished());
        std::fs::write(&file, "").expect("made");
        assert!(asking.join().expect("answered").ended_well());
    });
}

#[test]
fn log_holds_every_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("log.jsonl");
    let server = Server::start_on(0, Script::new(), Some(&log)).expect("a port");
    ask(&server, Api::Chat, "first");
    ask(&server, Api::Gemini, "second");
    let text = std::fs::read_to_string(&log).expect("a log");
    let kept: Vec<Asked> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(kept, server.asked());
    assert!(!text.contains("secret"));
}

#[test]
fn script_can_be_written_by_hand() {
    let text = json!({ "rules": [
        { "when": [{ "purpose": "main" }, { "nth": 1 }], "times": 1, "answer": { "acts": [{ "shell": "make" }] } },
        { "answer": { "end": { "fail": { "usage_limit": { "resets_in_s": 4 } } } } },
        { "answer": { "end": "hang_mid_stream", "after": "/tmp/x" } },
    ] });
    let script: Script = serde_json::from_value(text).expect("a script");
    assert_eq!(script.rules[0].answer, Answer::shell("make"));
    assert_eq!(script.rules[1].answer.end, End::Fail(Fail::UsageLimit { resets_in_s: 4 }));
    assert_eq!(script.rules[2].answer.end, End::HangMidStream);
}
