//! How Codex is started and resumed, what is said of its login, and what its two sources say together in any order.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rekindle_core::activity::{Activity, Problem};
use rekindle_core::time::Time;

use super::super::{KINDS, Kind, LineSource};
use super::*;

fn program() -> Program {
    Program { kind: Kind(&Codex), command: vec!["/opt/none/codex".to_owned()], ..Program::default() }
}

fn launch(program: &Program, resume: Option<&str>) -> Launch {
    let start = Start {
        program,
        prompt: "do it",
        resume,
        new_session: "unused",
        bundle: Path::new("/state/00000001"),
        workspace: Path::new("/work"),
        rekindle: Path::new("/opt/rekindle"),
    };
    Codex.start(&start).expect("it starts")
}

#[test]
fn a_resumed_session_is_given_exactly_what_a_new_one_is() {
    let programs = [
        program(),
        Program { permissions: Permissions::Full, model: Some("m".to_owned()), ..program() },
        Program { args: vec!["-s".into(), "workspace-write".into()], ..program() },
    ];
    for program in &programs {
        let new = launch(program, None);
        let resumed = launch(program, Some("the-id"));
        let (same, tail) = resumed.argv.split_at(new.argv.len() - 1);
        assert_eq!(same, &new.argv[..new.argv.len() - 1]);
        assert_eq!(tail, ["resume", "the-id", "-"]);
        assert_eq!(new.argv.last().map(String::as_str), Some("-"));
        assert_eq!((new.stdin, new.input.as_str()), (Stdin::File, "do it"));
    }
}

#[test]
fn permissions_are_the_programs_own_unless_full_is_asked_for() {
    let usual = launch(&program(), None);
    let widening = |word: &&String| word.contains("dangerously") || word.contains("sandbox") || *word == "-s";
    assert_eq!(usual.argv.iter().find(widening), None);
    let full = launch(&Program { permissions: Permissions::Full, ..program() }, None);
    let given: Vec<&String> = full.argv.iter().filter(widening).collect();
    assert_eq!(given, ["--dangerously-bypass-approvals-and-sandbox"]);
}

#[test]
fn our_server_is_approved_and_waited_for_and_only_our_hook_is_trusted() {
    let launch = launch(&Program { model: Some("gpt".to_owned()), ..program() }, None);
    assert_eq!(launch.argv[..4], ["/opt/none/codex", "exec", "--json", "--skip-git-repo-check"]);
    let settings: Vec<&str> =
        launch.argv.windows(2).filter(|pair| pair[0] == "--config").map(|pair| &*pair[1]).collect();
    for expected in [
        "mcp_servers.rekindle.command=\"/opt/rekindle\"",
        "mcp_servers.rekindle.args=[\"mcp\",\"--bundle\",\"/state/00000001\",\"--one-tool\"]",
        "mcp_servers.rekindle.default_tools_approval_mode=\"approve\"",
        "mcp_servers.rekindle.tool_timeout_sec=86400",
    ] {
        assert!(settings.contains(&expected), "{expected} is missing in {settings:?}");
    }
    assert_eq!(settings.iter().filter(|setting| setting.starts_with("hooks.")).count(), 2);
    assert!(launch.argv.windows(2).any(|pair| pair == ["--model", "gpt"]));
    let traits = Codex.traits(&program());
    assert!(traits.structured_output && traits.resumes && traits.compacts && traits.reinjects && traits.mcp);
    assert!(!traits.takes_messages);
    assert_eq!(KINDS.of(KIND).map(|kind| kind.kind()), Some(KIND));
}

fn executable(path: &Path) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::File::create(path).expect("made");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn the_native_program_is_started_in_place_of_the_script() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("there");
    let script = root.join("lib/node_modules/@openai/codex/bin/codex.js");
    executable(&script);
    fs::create_dir_all(root.join("bin")).expect("made");
    std::os::unix::fs::symlink(&script, root.join("bin/codex")).expect("linked");
    let env = BTreeMap::from([("PATH".to_owned(), root.join("bin").to_string_lossy().into_owned())]);
    let bare = Program { command: Vec::new(), env, ..program() };
    assert_eq!(launch(&bare, None).argv[0], root.join("bin/codex").to_string_lossy());
    let place = Place { program: &bare, workspace: &root, bundle: &root };
    let (platform, triple) = match std::env::consts::ARCH {
        "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    };
    for below in ["lib/node_modules/@openai/codex/node_modules/@openai", "lib/node_modules/@openai"] {
        let native = root.join(below).join(platform).join("vendor").join(triple).join("bin/codex");
        executable(&native);
        assert_eq!(launch(&bare, None).argv[0], native.to_string_lossy());
        assert_eq!(Codex.examine(&place).program, Some(native));
        let named = Program { command: vec!["codex".into(), "--enable".into(), "x".into()], ..bare.clone() };
        assert_eq!(launch(&named, None).argv[1..4], ["--enable", "x", "exec"]);
    }
    let nowhere = Program { env: BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]), ..bare };
    let start = Start {
        program: &nowhere,
        prompt: "",
        resume: None,
        new_session: "",
        bundle: &root,
        workspace: &root,
        rekindle: &root,
    };
    assert!(Codex.start(&start).expect_err("not there").contains("PATH"));
}

#[test]
fn a_login_is_named_and_never_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path().to_string_lossy().into_owned();
    let mut env = BTreeMap::from([("CODEX_HOME".to_owned(), home)]);
    for name in LOGIN_VARS {
        env.insert(name.to_owned(), String::new());
    }
    let login = |env: &BTreeMap<String, String>| {
        let program = Program { env: env.clone(), ..program() };
        Codex.examine(&Place { program: &program, workspace: dir.path(), bundle: dir.path() }).login
    };
    assert_eq!(login(&env), None);
    let config = b"[model_providers.x]\nenv_key = \"RK_TEST_KEY\"\n";
    rekindle_shim::atomic::save(dir.path(), "config.toml", config).expect("saved");
    assert_eq!(login(&env), None);
    env.insert("RK_TEST_KEY".to_owned(), "secret".to_owned());
    assert!(login(&env).expect("logged in").starts_with("by RK_TEST_KEY of "));
    rekindle_shim::atomic::save(dir.path(), "auth.json", b"secret").expect("saved");
    assert!(login(&env).expect("logged in").ends_with("auth.json"));
    env.insert("CODEX_API_KEY".to_owned(), "secret".to_owned());
    assert_eq!(login(&env).as_deref(), Some("by CODEX_API_KEY"));
}

const STARTED: &str = r#"{"type":"thread.started","thread_id":"t"}"#;
const RETRY: &str = r#"{"type":"error","message":"Reconnecting... 1/5 (x)"}"#;
const TURN_FAILED: &str = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
const CONTEXT: &str = r#"{"type":"turn_context","payload":{"model":"gpt"}}"#;
const LIMITS: &str = r#"{"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"primary":{"used_percent":100.0,"resets_at":10},"secondary":{"used_percent":12.0,"resets_at":99}}}}"#;

fn record(class: &str) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"task_complete","error":{{"message":"no","codex_error_info":{class}}}}}}}"#
    )
}

fn failures(lines: &[(LineSource, &str)]) -> Vec<(Problem, Option<Time>)> {
    let mut reader = Codex.reader();
    let failure = |activity: Activity| match activity {
        Activity::Failed(failure) => Some((failure.problem, failure.resets_at)),
        _ => None,
    };
    lines.iter().flat_map(|(source, line)| reader.line(*source, line, true)).filter_map(failure).collect()
}

#[test]
fn the_last_word_on_a_failure_is_the_same_in_every_order() {
    use LineSource::{Out, Transcript};
    let limit = record("\"usage_limit_exceeded\"");
    let out = [(Out, STARTED), (Out, TURN_FAILED)];
    let transcript = [(Transcript, CONTEXT), (Transcript, LIMITS), (Transcript, limit.as_str())];
    let expected = (Problem::UsageLimit, Some(Time(10_000)));
    let alongside = [out[0], transcript[0], transcript[1], out[1], transcript[2]];
    assert_eq!(failures(&alongside), [expected]);
    let late = [out[0], out[1], transcript[0], transcript[1], transcript[2]];
    assert_eq!(failures(&late).last(), Some(&expected));
    let early = [out[0], transcript[0], transcript[1], transcript[2], out[1]];
    assert_eq!(failures(&early), [expected]);
}

#[test]
fn a_failure_of_no_class_after_further_tries_is_the_network() {
    use LineSource::{Out, Transcript};
    let other = record("\"other\"");
    let both = [(Out, STARTED), (Transcript, CONTEXT), (Out, RETRY), (Out, TURN_FAILED), (Transcript, other.as_str())];
    assert_eq!(failures(&both), [(Problem::Network, None)]);
    let early = [(Out, STARTED), (Transcript, other.as_str()), (Out, RETRY), (Out, TURN_FAILED)];
    assert_eq!(failures(&early).last(), Some(&(Problem::Network, None)));
    assert_eq!(failures(&[(Out, STARTED), (Out, TURN_FAILED)]), [(Problem::Other, None)]);
}

#[test]
fn classes_with_a_status_are_told_by_it() {
    use LineSource::Transcript;
    for (class, expected) in [
        (r#"{"http_connection_failed":{"http_status_code":401}}"#, Problem::Auth),
        (r#"{"http_connection_failed":{"http_status_code":null}}"#, Problem::Network),
        (r#"{"response_too_many_failed_attempts":{"http_status_code":429}}"#, Problem::Overloaded),
        (r#""server_overloaded""#, Problem::Overloaded),
        (r#""context_window_exceeded""#, Problem::ContextFull),
        (r#""never_seen""#, Problem::Other),
        ("null", Problem::Other),
    ] {
        assert_eq!(failures(&[(Transcript, &record(class))]), [(expected, None)], "{class}");
    }
}

#[test]
fn a_session_that_is_gone_is_told_only_before_a_thread() {
    let line = "Error: thread/resume: thread/resume failed: no rollout found for thread id x (code -32600)";
    assert_eq!(failures(&[(LineSource::Err, line), (LineSource::Err, line)]), [(Problem::SessionGone, None)]);
    assert_eq!(failures(&[(LineSource::Out, STARTED), (LineSource::Err, line)]), []);
}

#[test]
fn a_resumed_attempt_counts_only_its_own() {
    let line = r#"{"type":"token_usage_record","payload":{"turn_id":"2","turn_token_usage":{"input_tokens":1300,"cached_input_tokens":300,"output_tokens":12},"thread_token_usage":{"input_tokens":20600,"output_tokens":94}}}"#;
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":20600,"cached_input_tokens":0,"output_tokens":94}}"#;
    for order in [
        [(LineSource::Transcript, line), (LineSource::Out, done)],
        [(LineSource::Out, done), (LineSource::Transcript, line)],
    ] {
        let mut reader = Codex.reader();
        let used = |activity| match activity {
            Activity::Used(usage) => Some((usage.input_tokens, usage.cached_tokens, usage.output_tokens)),
            _ => None,
        };
        let all: Vec<_> =
            order.iter().flat_map(|(source, line)| reader.line(*source, line, true)).filter_map(used).collect();
        assert_eq!(all.last(), Some(&(1000, 300, 12)));
    }
}

#[test]
fn two_lines_tell_one_compaction() {
    let compacted = r#"{"type":"compacted","payload":{}}"#;
    let item = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"ContextCompaction"}}}"#;
    let count = |lines: &[&str]| {
        let mut reader = Codex.reader();
        let all = lines.iter().flat_map(|line| reader.line(LineSource::Transcript, line, true));
        all.filter(|activity| matches!(activity, Activity::Compacted { .. })).count()
    };
    assert_eq!(count(&[compacted, item, compacted, item]), 2);
    assert_eq!(count(&[item, compacted, item, compacted]), 2);
    assert_eq!(count(&[compacted, compacted, compacted]), 3);
    assert_eq!(count(&[item, item]), 2);
}

#[test]
fn a_failure_that_no_transcript_explains_is_told_at_the_end() {
    let mut reader = Codex.reader();
    for (source, line) in
        [(LineSource::Out, STARTED), (LineSource::Transcript, CONTEXT), (LineSource::Out, TURN_FAILED)]
    {
        assert!(!reader.line(source, line, true).iter().any(|seen| matches!(seen, Activity::Failed(_))));
    }
    assert!(matches!(reader.end(Some(1)).as_slice(), [Activity::Failed(failure)] if failure.problem == Problem::Other));
    assert_eq!(reader.end(Some(1)), []);
}
