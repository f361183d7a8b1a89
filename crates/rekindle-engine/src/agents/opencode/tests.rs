//! How opencode is started, resumed and examined, when its turn has ended, and what its errors say; its recordings are the
//! testkit's.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rekindle_core::activity::{Activity, Problem};
use rekindle_core::time::Time;
use serde_json::{Value, json};

use super::{Opencode, native};
use crate::agents::{Adapter, Launch, LineSource, Permissions, Place, Program, Start};

fn program() -> Program {
    Program { kind: crate::agents::Kind(&Opencode), command: vec!["opencode".into()], ..Program::default() }
}

fn start(program: &Program, resume: Option<&str>) -> Result<Launch, String> {
    Opencode.start(&Start {
        program,
        prompt: "do \"it\" @now",
        resume,
        new_session: "unused",
        bundle: Path::new("/state dir/00000001"),
        workspace: Path::new("/"),
        rekindle: Path::new("/opt/rekindle"),
    })
}

fn content(launch: &Launch) -> Value {
    serde_json::from_str(&launch.env["OPENCODE_CONFIG_CONTENT"]).expect("JSON")
}

#[test]
fn the_prompt_is_its_input_and_nothing_is_widened_by_default() {
    let launch = start(&program(), None).expect("a launch");
    assert_eq!(launch.argv, ["opencode", "run", "--format", "json"]);
    assert_eq!(launch.input, "do \"it\" @now");
    assert!(!launch.env.contains_key("OPENCODE_CONFIG_DIR"), "theirs stays as it is");
    let content = content(&launch);
    let server = &content["mcp"]["rekindle"];
    assert_eq!(server["command"], json!(["/opt/rekindle", "mcp", "--bundle", "/state dir/00000001"]));
    assert_eq!(content["permission"], json!({"rekindle_*": "allow"}));
    assert_eq!(content["plugin"], json!(["file:///state%20dir/00000001/agent/rekindle.js"]));
    let plugin = &launch.files["rekindle.js"];
    let command =
        r#"const CONTEXT = ["/opt/rekindle","__context","--format","plain","--bundle","/state dir/00000001"]"#;
    assert!(plugin.contains(command), "{plugin}");
}

#[test]
fn a_resumed_session_keeps_model_permissions_and_the_operators_arguments() {
    let mut program = program();
    program.model = Some("fake/model".into());
    program.permissions = Permissions::Full;
    program.args = vec!["--thinking".into()];
    let launch = start(&program, Some("ses_1")).expect("a launch");
    assert_eq!(launch.argv[4..], ["--model", "fake/model", "--session", "ses_1", "--auto", "--thinking"]);
}

#[test]
fn what_the_operator_has_in_the_variable_stays() {
    let mut program = program();
    let theirs = "{ /* mine */ \"model\": \"x\", \"permission\": \"ask\", \"plugin\": [\"p\"], \"mcp\": {\"m\": {}}, }";
    program.env.insert("OPENCODE_CONFIG_CONTENT".into(), theirs.into());
    let content = content(&start(&program, None).expect("a launch"));
    assert_eq!(content["model"], "x");
    assert_eq!(content["permission"], json!({"*": "ask", "rekindle_*": "allow"}));
    assert_eq!((&content["plugin"][0], content["plugin"].as_array().map(Vec::len)), (&json!("p"), Some(2)));
    assert_eq!(content["mcp"]["m"], json!({}));
    program.env.insert("OPENCODE_CONFIG_CONTENT".into(), "{".into());
    let error = start(&program, None).expect_err("broken content");
    assert!(error.starts_with("OPENCODE_CONFIG_CONTENT is not a JSON object"), "{error}");
}

#[test]
fn a_script_in_between_is_left_out_where_the_program_is_known() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path.canonicalize().expect("there")
    };
    let script = write("lib/node_modules/opencode-ai/bin/opencode", "#!/usr/bin/env node\n");
    assert_eq!(native(&script), None);
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let inner = write(&format!("lib/node_modules/opencode-{system}-{machine}-musl/bin/opencode"), "\u{7f}ELF");
    let outer = write(&format!("lib/node_modules/opencode-{system}-{machine}-baseline-musl/bin/opencode"), "\u{7f}ELF");
    let found = native(&script);
    assert!(found == Some(inner.clone()) || found == Some(outer), "{found:?}");
    assert_eq!(native(&inner), None, "a program needs no other");
}

fn step(message: &str, reason: &str) -> String {
    json!({"type": "step_finish", "sessionID": "s", "part": {"messageID": message, "reason": reason, "tokens": {}}})
        .to_string()
}

fn said(message: &str) -> String {
    json!({"type": "text", "sessionID": "s", "part": {"messageID": message, "text": "words"}}).to_string()
}

fn results(activities: &[Activity]) -> Vec<(bool, Option<&str>)> {
    let result = |activity| match activity {
        &Activity::Result { ok, ref text } => Some((ok, text.as_deref())),
        _ => None,
    };
    activities.iter().filter_map(result).collect()
}

#[test]
fn a_turn_ends_when_it_is_idle_after_its_last_message_whichever_is_read_first() {
    let out = [said("m1"), step("m1", "stop")];
    let idle = "@rekindle {\"idle\":\"m1\"}";
    let mut one = Opencode.reader();
    let mut all: Vec<Activity> = out.iter().flat_map(|line| one.line(LineSource::Out, line, true)).collect();
    assert_eq!(results(&all), []);
    all = one.line(LineSource::Err, idle, true);
    assert_eq!(results(&all), [(true, Some("words"))]);
    assert_eq!(one.end(Some(0)), [], "it is told once");
    let mut two = Opencode.reader();
    assert_eq!(two.line(LineSource::Err, idle, true), []);
    all = out.iter().flat_map(|line| two.line(LineSource::Out, line, true)).collect();
    assert_eq!(results(&all), [(true, Some("words"))]);
}

#[test]
fn without_the_plugin_the_exit_ends_the_turn() {
    let read = |reason: &str, code| {
        let mut reader = Opencode.reader();
        reader.line(LineSource::Out, &said("m1"), true);
        reader.line(LineSource::Out, &step("m1", reason), true);
        reader.end(code)
    };
    assert_eq!(results(&read("stop", Some(0))), [(true, Some("words"))]);
    assert_eq!(results(&read("tool-calls", Some(0))), [(false, Some("words"))]);
    assert_eq!(read("stop", Some(1)), []);
    assert_eq!(read("stop", None), []);
}

#[test]
fn answers_that_break_off_again_and_again_are_stopped_once() {
    let mut reader = Opencode.reader();
    let mut failed = Vec::new();
    for _ in 0..20 {
        let all = reader.line(LineSource::Out, &step("m", "unknown"), true);
        failed.extend(all.into_iter().filter(|activity| matches!(activity, Activity::Failed(_))));
    }
    let [Activity::Failed(failure)] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!((failure.problem, failure.runaway), (Problem::Overloaded, true));
}

#[test]
fn a_wait_that_the_provider_asked_for_is_a_limit_and_a_short_one_is_not() {
    let read = |next: i64| {
        let line =
            format!("@rekindle {}", json!({"retry": {"attempt": 1, "text": "slow down", "next": next, "now": 1_000}}));
        Opencode.reader().line(LineSource::Err, &line, true)
    };
    assert_eq!(read(31_000), [Activity::Retrying { problem: None, text: "slow down".into() }]);
    let [Activity::Retrying { .. }, Activity::Failed(failure)] = &read(3_601_000)[..] else { panic!("no failure") };
    assert_eq!(
        (failure.problem, failure.resets_at, failure.runaway),
        (Problem::UsageLimit, Some(Time(3_601_000)), true)
    );
}

fn failure_of(data: &Value) -> (Problem, Option<Time>) {
    let line =
        json!({"type": "error", "timestamp": 1_000_000, "sessionID": "s", "error": {"name": "APIError", "data": data}});
    let all = Opencode.reader().line(LineSource::Out, &line.to_string(), true);
    let found = all.iter().find_map(|activity| match activity {
        Activity::Failed(failure) => Some((failure.problem, failure.resets_at)),
        _ => None,
    });
    found.expect("a failure")
}

#[test]
fn errors_are_told_apart_by_their_fields() {
    let quota = json!({"error": {"code": "insufficient_quota"}}).to_string();
    let at = json!({"error": {"type": "usage_limit_reached", "resets_at": 1_800_000_000}}).to_string();
    assert_eq!(failure_of(&json!({"statusCode": 429, "responseBody": quota})), (Problem::UsageLimit, None));
    let reset = Some(Time(1_800_000_000_000));
    assert_eq!(failure_of(&json!({"statusCode": 429, "responseBody": at})), (Problem::UsageLimit, reset));
    let headers = json!({"retry-after": "3"});
    let reset = Some(Time(1_003_000));
    assert_eq!(failure_of(&json!({"statusCode": 429, "responseHeaders": headers})), (Problem::UsageLimit, reset));
    assert_eq!(failure_of(&json!({"statusCode": 429})), (Problem::Overloaded, None));
    assert_eq!(failure_of(&json!({"statusCode": 503, "responseHeaders": headers})), (Problem::Overloaded, None));
    assert_eq!(failure_of(&json!({"statusCode": 402})), (Problem::Auth, None));
    assert_eq!(failure_of(&json!({"isRetryable": true})), (Problem::Network, None));
    assert_eq!(failure_of(&json!({"statusCode": 404, "message": "rate limit, quota, 401"})), (Problem::Other, None));
}

#[test]
fn a_login_is_told_by_the_names_of_providers() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut program = program();
    for name in super::KEYS.iter().chain(&["XDG_DATA_HOME", "XDG_CONFIG_HOME"]) {
        program.env.insert((*name).to_owned(), String::new());
    }
    program.env.insert("HOME".into(), dir.path().to_string_lossy().into_owned());
    let login =
        |program: &Program| Opencode.examine(&Place { program, workspace: dir.path(), bundle: Path::new("/") }).login;
    assert_eq!(login(&program), None);
    program.env.insert("OPENAI_API_KEY".into(), "secret".into());
    assert_eq!(login(&program).as_deref(), Some("by OPENAI_API_KEY"));
    let file = dir.path().join(".local/share/opencode/auth.json");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    std::fs::write(&file, "{\"anthropic\":{\"key\":\"secret\"}}").expect("written");
    assert_eq!(login(&program), Some(format!("for anthropic by {}", file.display())));
}
