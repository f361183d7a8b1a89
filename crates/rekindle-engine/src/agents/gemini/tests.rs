//! How Gemini CLI is started, resumed and examined, and what follows from its exit codes; its recordings are the testkit's.

use std::path::Path;

use rekindle_core::activity::{Activity, Problem};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Gemini, without_mentions};
use crate::agents::{Adapter, Launch, LineSource, Permissions, Place, Program, Start};

const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// A home with a program in it, and what `[agents.NAME]` says about it.
struct Bed {
    home: TempDir,
    program: Program,
}

impl Bed {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut program =
            Program { kind: crate::agents::Kind(&Gemini), command: vec!["gemini".into()], ..Program::default() };
        program.env.insert("HOME".into(), home.path().to_string_lossy().into_owned());
        for name in ["GEMINI_CLI_HOME", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"] {
            program.env.insert(name.into(), String::new());
        }
        Self { home, program }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn start(&self, prompt: &str, resume: Option<&str>) -> Result<Launch, String> {
        Gemini.start(&Start {
            program: &self.program,
            prompt,
            resume,
            new_session: SESSION,
            bundle: Path::new("/state/it's/00000001"),
            workspace: Path::new("/work space"),
            rekindle: Path::new("/opt/rekindle"),
        })
    }

    fn place(&self) -> Place<'_> {
        Place { program: &self.program, workspace: Path::new("/"), bundle: Path::new("/state/00000001") }
    }

    fn settings(launch: &Launch) -> Value {
        serde_json::from_str(&launch.files["home/.gemini/settings.json"]).expect("JSON")
    }
}

#[test]
fn a_new_session_is_given_its_id_and_nothing_is_widened_by_default() {
    let launch = Bed::new().start("do it", None).expect("a launch");
    assert_eq!(launch.argv, ["gemini", "--output-format", "stream-json", "--session-id", SESSION]);
    assert_eq!(launch.input, "do it");
    assert_eq!(launch.env["GEMINI_CLI_NO_RELAUNCH"], "true");
    assert_eq!(launch.env["GEMINI_CLI_HOME"], "/state/it's/00000001/agent/home");
    assert!(!launch.env.contains_key("GEMINI_CLI_TRUST_WORKSPACE"));
}

#[test]
fn a_resumed_session_keeps_model_permissions_and_the_operators_arguments() {
    let mut bed = Bed::new();
    bed.program.model = Some("gemini-2.5-pro".into());
    bed.program.permissions = Permissions::Full;
    bed.program.args = vec!["--debug".into()];
    let launch = bed.start("go on", Some(SESSION)).expect("a launch");
    let words = ["--model", "gemini-2.5-pro", "--resume", SESSION, "--yolo", "--debug"];
    assert_eq!(launch.argv[3..], words);
    assert_eq!(launch.env["GEMINI_CLI_TRUST_WORKSPACE"], "true");
}

#[test]
fn the_users_settings_stay_and_ours_are_added() {
    let bed = Bed::new();
    let theirs =
        "{ // mine\n\"mcpServers\": {\"x\": {\"command\": \"y\"}}, \"hooks\": {\"BeforeModel\": [{\"hooks\": []}]},
        \"general\": {\"sessionRetention\": {\"enabled\": true, \"maxAge\": \"30d\"}}, \"security\": {\"auth\": 1} }";
    bed.write(".gemini/settings.json", theirs);
    bed.write(".gemini/oauth_creds.json", "{}");
    bed.write(".env", "A=1");
    let launch = bed.start("do it", None).expect("a launch");
    let settings = Bed::settings(&launch);
    assert_eq!(settings["security"], json!({"auth": 1}));
    assert_eq!(settings["mcpServers"]["x"], json!({"command": "y"}));
    let ours = &settings["mcpServers"]["rekindle"];
    assert_eq!((ours["command"].as_str(), ours["trust"].as_bool()), (Some("/opt/rekindle"), Some(true)));
    assert_eq!(ours["args"], json!(["mcp", "--bundle", "/state/it's/00000001"]));
    assert_eq!(settings["general"]["sessionRetention"], json!({"enabled": false, "maxAge": "30d"}));
    let hooks = settings["hooks"]["BeforeModel"].as_array().expect("hooks");
    assert_eq!(hooks.len(), 2);
    let command = hooks[1]["hooks"][0]["command"].as_str().expect("a command");
    assert_eq!(command, r"'/opt/rekindle' '__context' '--format' 'gemini' '--bundle' '/state/it'\''s/00000001'");
    let folder = bed.home.path().join(".gemini");
    assert_eq!(launch.links["home/.gemini/oauth_creds.json"], folder.join("oauth_creds.json"));
    assert_eq!(launch.links["home/.gemini/tmp"], folder.join("tmp"));
    assert_eq!(launch.links["home/.env"], bed.home.path().join(".env"));
    assert!(!launch.links.contains_key("home/.gemini/settings.json"));
    assert_eq!(std::fs::read_to_string(folder.join("settings.json")).expect("theirs"), theirs);
}

#[test]
fn settings_that_cannot_be_read_are_named() {
    let bed = Bed::new();
    bed.write(".gemini/settings.json", "{ \"a\": ");
    let error = bed.start("do it", None).expect_err("broken settings");
    assert!(error.contains("settings.json is not a JSON object"), "{error}");
}

#[test]
fn at_signs_name_no_files_and_a_prompt_without_them_is_left_alone() {
    assert_eq!(without_mentions("plain\n"), "plain\n");
    let changed = without_mentions("a@b.c and @src, \\@kept");
    assert!(changed.starts_with("a\\@b.c and \\@src, \\@kept\n\n"), "{changed}");
    assert!(changed.contains("stands for a plain at sign"), "{changed}");
}

#[test]
fn a_sessions_transcript_is_the_one_with_its_history() {
    let bed = Bed::new();
    let header = |session: &str| format!("{{\"sessionId\":\"{session}\",\"kind\":\"main\"}}\n");
    let chat = |project: &str, minute: &str| {
        format!(".gemini/tmp/{project}/chats/session-2026-11-15T12-{minute}-11111111.jsonl")
    };
    assert_eq!(Gemini.transcript(&bed.place(), SESSION), None);
    bed.write(&chat("one", "00"), &format!("{}{}", header("11111111-0000-4000-8000-000000000000"), "x".repeat(900)));
    assert_eq!(Gemini.transcript(&bed.place(), SESSION), None);
    bed.write(&chat("two", "01"), &format!("{}{}", header(SESSION), "{}\n".repeat(50)));
    bed.write(&chat("two", "07"), &header(SESSION));
    assert_eq!(Gemini.transcript(&bed.place(), SESSION), Some(bed.home.path().join(chat("two", "01"))));
    assert_eq!(Gemini.transcript(&bed.place(), "short"), None);
}

#[test]
fn the_hook_adds_to_the_summary_and_hands_back_nothing_behind_it() {
    let ask = |messages: Value| {
        let asked = json!({"hook_event_name": "BeforeModel", "llm_request": {"model": "m", "messages": messages}});
        Gemini.hook_answer(&asked.to_string(), "where you stand")
    };
    let user = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(ask(json!([user("do it"), {"role": "model", "content": "<state_snapshot>"}])), None);
    let answer = ask(
        json!([user("context<state_snapshot>s</state_snapshot>"), {"role": "model", "content": "ok"}, user("more")]),
    );
    let answer: Value = serde_json::from_str(&answer.expect("an answer")).expect("JSON");
    let expected = user("context<state_snapshot>s</state_snapshot>\n\nwhere you stand");
    let request = json!({ "messages": [expected] });
    assert_eq!(answer["hookSpecificOutput"], json!({"hookEventName": "BeforeModel", "llm_request": request}));
    assert_eq!(Gemini.hook_answer("no JSON", "x"), None);
}

fn ended(lines: &[(LineSource, &str)], code: Option<i32>) -> Vec<Activity> {
    let mut reader = Gemini.reader();
    for (source, line) in lines {
        reader.line(*source, line, true);
    }
    reader.end(code)
}

fn problem(activities: &[Activity]) -> Option<Problem> {
    activities.iter().find_map(|activity| match activity {
        Activity::Failed(failure) => Some(failure.problem),
        _ => None,
    })
}

#[test]
fn an_exit_code_names_what_no_line_did() {
    const INIT: (LineSource, &str) =
        (LineSource::Out, r#"{"type":"init","timestamp":"2026-11-15T07:00:00.000Z","session_id":"s"}"#);
    const FAILED: (LineSource, &str) =
        (LineSource::Out, r#"{"type":"result","status":"error","error":{"message":"words"}}"#);
    const DONE: (LineSource, &str) = (LineSource::Out, r#"{"type":"result","status":"success"}"#);
    assert_eq!(problem(&ended(&[INIT, FAILED], Some(173))), Some(Problem::Overloaded));
    assert_eq!(problem(&ended(&[INIT, FAILED], Some(145))), Some(Problem::Auth));
    assert_eq!(problem(&ended(&[INIT, FAILED], Some(247))), Some(Problem::Overloaded));
    assert_eq!(problem(&ended(&[], Some(42))), Some(Problem::SessionGone));
    assert_eq!(problem(&ended(&[], Some(41))), Some(Problem::Auth));
    // Ended by a signal it answers with code 0, but has no last line.
    assert_eq!(problem(&ended(&[INIT], Some(0))), Some(Problem::Other));
    assert_eq!(problem(&ended(&[INIT, DONE], Some(0))), None);
    assert_eq!(problem(&ended(&[], None)), None);
}

#[test]
fn a_summary_in_a_line_too_long_to_keep_counts_too() {
    let mut reader = Gemini.reader();
    reader.line(LineSource::Transcript, r#"{"id":"1","timestamp":"t","type":"user","content":[]}"#, true);
    let line = r#"{"$set":{"messages":[{"id":"e","timestamp":"t","type":"user","content":[{"text":"c"}]},{"id":"n","timestamp":"t","type":"user","content":[{"text":"<state_snapshot>a"#;
    let once = reader.line(LineSource::Transcript, line, false);
    assert_eq!(once, [Activity::Compacted { automatic: Some(true) }]);
    assert_eq!(reader.line(LineSource::Transcript, line, false), []);
}

#[test]
fn a_login_is_told_in_words() {
    let mut bed = Bed::new();
    assert_eq!(Gemini.examine(&bed.place()).login, None);
    bed.write(".gemini/oauth_creds.json", "{\"access_token\":\"secret\"}");
    let login = Gemini.examine(&bed.place()).login.expect("a login");
    assert!(login.ends_with("oauth_creds.json") && !login.contains("secret"), "{login}");
    bed.program.env.insert("GEMINI_API_KEY".into(), "secret".into());
    assert_eq!(Gemini.examine(&bed.place()).login.as_deref(), Some("by GEMINI_API_KEY"));
}
