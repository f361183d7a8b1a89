//! How Claude Code is started, where its sessions are found, and what is said of its login.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use rekindle_core::activity::{Activity, Problem};
use rekindle_core::time::Time;
use serde_json::Value;

use super::super::{KINDS, Kind, LineSource};
use super::*;

const SESSION: &str = "4daed26a-6e95-4e3a-9236-bdf248708a72";

fn program() -> Program {
    Program { kind: Kind(&Claude), command: vec!["/opt/claude".to_owned()], ..Program::default() }
}

fn launch(program: &Program, resume: Option<&str>) -> Launch {
    let start = Start {
        program,
        prompt: "do \"it\"\nnow",
        resume,
        new_session: SESSION,
        bundle: Path::new("/state/it's/00000001"),
        workspace: Path::new("/work space"),
        rekindle: Path::new("/opt/rekindle"),
    };
    Claude.start(&start).expect("it starts")
}

/// The value after a flag, and that the flag is there once.
fn value<'a>(launch: &'a Launch, flag: &str) -> Option<&'a str> {
    let at: Vec<usize> = (0..launch.argv.len()).filter(|at| launch.argv[*at] == flag).collect();
    assert!(at.len() <= 1, "{flag} is given twice: {:?}", launch.argv);
    at.first().map(|at| launch.argv[at + 1].as_str())
}

#[test]
fn a_new_session_gets_our_id_and_a_resumed_one_its_own() {
    let new = launch(&program(), None);
    assert_eq!(new.argv[0], "/opt/claude");
    assert_eq!((value(&new, "--session-id"), value(&new, "--resume")), (Some(SESSION), None));
    let resumed = launch(&program(), Some("abc"));
    assert_eq!((value(&resumed, "--session-id"), value(&resumed, "--resume")), (None, Some("abc")));
    assert_eq!(value(&resumed, "--input-format"), Some("stream-json"));
    assert_eq!(value(&resumed, "--output-format"), Some("stream-json"));
    assert!(resumed.argv.iter().any(|word| word == "--verbose"));
}

#[test]
fn the_prompt_is_one_line_and_no_argument() {
    let launch = launch(&program(), None);
    assert_eq!(launch.stdin, Stdin::Lines);
    assert!(!launch.input.contains('\n'));
    let line: Value = serde_json::from_str(&launch.input).expect("JSON");
    assert_eq!(line["message"]["content"], "do \"it\"\nnow");
    assert_eq!(Claude.message("do \"it\"\nnow"), Some(launch.input.clone()));
    assert!(!launch.argv.iter().any(|word| word.contains("now")));
}

#[test]
fn permissions_are_the_programs_own_unless_full_is_asked_for() {
    let skip = "--dangerously-skip-permissions";
    for resume in [None, Some("abc")] {
        let usual = launch(&program(), resume);
        assert!(!usual.argv.iter().any(|word| word == skip || word == "--permission-mode"));
        assert!(!usual.env.contains_key("IS_SANDBOX"));
        let full = launch(&Program { permissions: Permissions::Full, ..program() }, resume);
        assert!(full.argv.iter().any(|word| word == skip));
        assert_eq!(full.env.contains_key("IS_SANDBOX"), rustix::process::geteuid().is_root());
    }
}

#[test]
fn our_server_and_hook_are_added_to_the_users_own() {
    let given = launch(
        &Program { model: Some("opus".to_owned()), args: vec!["--add-dir".into(), "/x".into()], ..program() },
        None,
    );
    assert_eq!(value(&given, "--model"), Some("opus"));
    assert_eq!(value(&given, "--allowedTools"), Some("mcp__rekindle"));
    assert!(!given.argv.iter().any(|word| word.contains("strict") || word == "--setting-sources"));
    assert_eq!(value(&given, "--mcp-config"), Some("/state/it's/00000001/agent/mcp.json"));
    let mcp: Value = serde_json::from_str(&given.files["mcp.json"]).expect("JSON");
    let server = &mcp["mcpServers"]["rekindle"];
    assert_eq!(server["command"], "/opt/rekindle");
    assert_eq!(server["args"], serde_json::json!(["mcp", "--bundle", "/state/it's/00000001"]));
    assert_eq!(value(&given, "--settings"), Some("/state/it's/00000001/agent/settings.json"));
    let settings: Value = serde_json::from_str(&given.files["settings.json"]).expect("JSON");
    let group = &settings["hooks"]["SessionStart"][0];
    assert_eq!(group["matcher"], "compact");
    let command = group["hooks"][0]["command"].as_str().expect("a command");
    assert_eq!(command, r"'/opt/rekindle' '__context' '--format' 'claude' '--bundle' '/state/it'\''s/00000001'");
    // What takes many values is followed by a flag or by nothing.
    let allowed = given.argv.iter().position(|word| word == "--allowedTools").expect("given");
    assert_eq!(allowed, given.argv.len() - 2);
}

#[test]
fn an_operators_own_settings_win_and_the_hook_is_given_up() {
    for args in [vec!["--settings".to_owned(), "{}".to_owned()], vec!["--settings={}".to_owned()]] {
        let own = Program { args, ..program() };
        let launch = launch(&own, None);
        assert!(!launch.files.contains_key("settings.json"));
        assert!(!launch.argv.iter().any(|word| word.contains("settings.json")));
        assert!(!Claude.traits(&own).reinjects);
    }
    let traits = Claude.traits(&Program { account: Some("team".to_owned()), ..program() });
    assert!(
        traits.reinjects
            && traits.resumes
            && traits.takes_messages
            && traits.mcp
            && traits.structured_output
            && traits.compacts
    );
    assert_eq!((traits.kind.as_str(), traits.account.as_str()), (KIND, "team"));
    assert_eq!(KINDS.of(KIND).map(|kind| kind.kind()), Some(KIND));
}

#[test]
fn the_program_is_found_on_the_agents_path_or_the_start_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("claude");
    let env = BTreeMap::from([("PATH".to_owned(), dir.path().to_string_lossy().into_owned())]);
    let bare = Program { command: Vec::new(), env, ..program() };
    let start = Start {
        program: &bare,
        prompt: "",
        resume: None,
        new_session: SESSION,
        bundle: dir.path(),
        workspace: dir.path(),
        rekindle: Path::new("/opt/rekindle"),
    };
    let refused = Claude.start(&start).expect_err("not there");
    assert!(refused.contains("PATH") && refused.contains("command"), "{refused}");
    fs::File::create(&path).expect("made");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    assert_eq!(Claude.start(&start).expect("starts").argv[0], path.to_string_lossy());
}

#[test]
fn a_transcript_is_found_under_its_workspace_or_by_its_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let workspace = dir.path().join("a_b.c");
    fs::create_dir_all(&workspace).expect("made");
    let env = BTreeMap::from([("CLAUDE_CONFIG_DIR".to_owned(), dir.path().join("cfg").to_string_lossy().into_owned())]);
    let program = Program { env, ..program() };
    let place = Place { program: &program, workspace: &workspace, bundle: dir.path() };
    assert_eq!(Claude.transcript(&place, SESSION), None);
    assert_eq!(slug(Path::new("/home/a_b/c.d-é")), "-home-a-b-c-d--");
    for project in [slug(&workspace.canonicalize().expect("there")), "-cut-off-and-hashed".to_owned()] {
        let dir = dir.path().join("cfg/projects").join(project);
        fs::create_dir_all(&dir).expect("made");
        let path = dir.join(format!("{SESSION}.jsonl"));
        fs::File::create(&path).expect("made");
        assert_eq!(Claude.transcript(&place, SESSION), Some(path.clone()));
        fs::remove_file(path).expect("removed");
    }
    assert_eq!(Claude.transcript(&place, "../x"), None);
}

#[test]
fn a_login_is_named_and_never_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path().to_string_lossy().into_owned();
    let mut env = BTreeMap::from([("HOME".to_owned(), home), ("CLAUDE_CONFIG_DIR".to_owned(), String::new())]);
    for name in LOGIN_VARS {
        env.insert(name.to_owned(), String::new());
    }
    let examine = |env: &BTreeMap<String, String>| {
        let program = Program { env: env.clone(), command: vec!["sh".into(), "-x".into()], ..program() };
        Claude.examine(&Place { program: &program, workspace: dir.path(), bundle: dir.path() })
    };
    let none = examine(&env);
    assert_eq!((none.login, none.program.is_some()), (None, true));
    assert_eq!(none.version_args, ["-x", "--version"]);
    let config = dir.path().join(".claude");
    fs::create_dir_all(&config).expect("made");
    rekindle_shim::atomic::save(&config, "settings.json", br#"{"apiKeyHelper":"secret.sh"}"#).expect("saved");
    let helper = examine(&env).login.expect("logged in");
    assert!(helper.contains("apiKeyHelper") && !helper.contains("secret"), "{helper}");
    rekindle_shim::atomic::save(&config, ".credentials.json", b"secret").expect("saved");
    assert!(examine(&env).login.expect("logged in").ends_with(".credentials.json"));
    env.insert("ANTHROPIC_API_KEY".to_owned(), "secret".to_owned());
    assert_eq!(examine(&env).login.as_deref(), Some("by ANTHROPIC_API_KEY"));
}

fn read(lines: &[&str]) -> Vec<Activity> {
    let mut reader = Claude.reader();
    lines.iter().flat_map(|line| reader.line(LineSource::Out, line, true)).collect()
}

fn failures(activities: &[Activity]) -> Vec<(Problem, Option<Time>)> {
    let failure = |activity: &Activity| match activity {
        Activity::Failed(failure) => Some((failure.problem, failure.resets_at)),
        _ => None,
    };
    activities.iter().filter_map(failure).collect()
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"claude-x[1m]"}"#;
const LIMIT: &str = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794729681}}"#;
const ERROR: &str = r#"{"type":"assistant","error":"rate_limit","message":{"model":"<synthetic>","content":[]}}"#;
const FAILED: &str = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit"}"#;

#[test]
fn a_usage_limit_is_one_failure_with_its_reset() {
    let once = read(&[INIT, LIMIT, ERROR, FAILED]);
    assert_eq!(failures(&once), [(Problem::UsageLimit, Some(Time(1_794_729_681_000)))]);
    // Too many requests without the account's word for it is worth another try soon.
    assert_eq!(failures(&read(&[INIT, ERROR, FAILED])), [(Problem::Overloaded, None)]);
}

#[test]
fn a_limit_that_was_overcome_is_forgotten() {
    let answer = r#"{"type":"assistant","message":{"id":"m","model":"claude-x","usage":{},"content":[]}}"#;
    assert_eq!(failures(&read(&[INIT, LIMIT, answer, ERROR, FAILED])), [(Problem::Overloaded, None)]);
    let allowed = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#;
    assert_eq!(failures(&read(&[INIT, LIMIT, allowed, ERROR, FAILED])), [(Problem::Overloaded, None)]);
}

#[test]
fn a_session_that_is_gone_is_told_by_a_failure_before_any_session() {
    let gone =
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found"]}"#;
    assert_eq!(failures(&read(&[gone])), [(Problem::SessionGone, None)]);
    assert_eq!(failures(&read(&[INIT, gone])), [(Problem::Other, None)]);
}

#[test]
fn what_a_sub_agent_does_counts_and_does_not_disturb() {
    let usage = r#"{"input_tokens":7,"cache_read_input_tokens":5,"output_tokens":1}"#;
    let sub = format!(
        r#"{{"type":"assistant","parent_tool_use_id":"t","message":{{"id":"m","model":"claude-x","usage":{usage},"content":[{{"type":"tool_use","id":"c","name":"Bash","input":{{"command":"x"}}}}]}}}}"#
    );
    let activities = read(&[INIT, &sub, &sub]);
    let used: Vec<&Activity> = activities.iter().filter(|seen| matches!(seen, Activity::Used(_))).collect();
    assert_eq!(used.len(), 1);
    let disturbing = |seen: &&Activity| {
        matches!(seen, Activity::Turn | Activity::Context { .. } | Activity::CallStarted(_) | Activity::Said { .. })
    };
    assert_eq!(activities.iter().find(disturbing), None);
}

#[test]
fn the_hook_answers_only_after_a_compaction() {
    let answer = Claude.hook_answer(r#"{"source":"compact"}"#, "where \"you\" stand").expect("an answer");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert_eq!(answer["hookSpecificOutput"]["additionalContext"], "where \"you\" stand");
    assert_eq!(Claude.hook_answer(r#"{"source":"startup"}"#, "text"), None);
    assert!(Claude.hook_answer("", "text").is_some());
}

/// As in a recorded session, but with the first turn's end before that of the agent in the background.
#[test]
fn agents_in_the_background_are_counted_and_commands_are_not() {
    let mut stream = stream::Stream::default();
    let mut read = |line: &str| stream.line(LineSource::Out, line, true);
    let started = |id: &str, kind: &str| {
        format!(r#"{{"type":"system","subtype":"task_started","task_id":"{id}","task_type":"{kind}"}}"#)
    };
    let updated = r#"{"type":"system","subtype":"task_updated","task_id":"a1","patch":{"status":"completed"}}"#;
    let notified = r#"{"type":"system","subtype":"task_notification","task_id":"a1","status":"completed"}"#;
    let progress = r#"{"type":"system","subtype":"task_progress","task_id":"a1"}"#;
    assert_eq!(read(&started("b1", "local_bash")), [Activity::Heartbeat], "a server may run for ever");
    assert_eq!(read(&started("a1", "local_agent")), [Activity::Background { open: 1 }]);
    assert_eq!(read(&started("a2", "local_agent")), [Activity::Background { open: 2 }], "nested or beside it");
    assert_eq!(read(progress), [Activity::Heartbeat]);
    assert_eq!(read(updated), [Activity::Heartbeat], "its turn is taken up again only when it is told of");
    assert_eq!(read(notified), [Activity::Background { open: 1 }]);
    assert_eq!(read(notified), [Activity::Heartbeat], "told twice, counted once");
    let stopped = r#"{"type":"system","subtype":"task_updated","task_id":"a2","patch":{"status":"killed"}}"#;
    assert_eq!(read(stopped), [Activity::Background { open: 0 }]);
}

#[test]
fn a_wait_for_its_allowance_by_itself_is_a_limit_to_rekindle() {
    let mut stream = stream::Stream::default();
    let mut read = |line: &str| stream.line(LineSource::Out, line, true);
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":600000,"error_status":429,"error":"rate_limit"}"#;
    let failed = |all: &[Activity]| all.iter().any(|one| matches!(one, Activity::Failed(_)));
    assert!(!failed(&read(retry)), "too many requests a minute is no used-up allowance");
    read(r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794729681}}"#);
    let all = read(retry);
    let failure = all.iter().find_map(|one| match one {
        Activity::Failed(failure) => Some(failure.clone()),
        _ => None,
    });
    let failure = failure.unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!((failure.problem, failure.runaway), (Problem::UsageLimit, true));
    assert_eq!(failure.resets_at, Some(Time(1_794_729_681_000)));
    assert_eq!(launch(&program(), None).env.get("CLAUDE_CODE_RETRY_WATCHDOG").map(String::as_str), Some(""));
}
