//! Agents' programs as they may be installed: found by `init`, looked at by `doctor`, missed by `run`. Small scripts stand for
//! the programs; the real ones are run elsewhere.

use serde_json::{Value, json};

use crate::environment::Environment;

/// What nobody may ever see.
const SECRET: &str = "sk-ant-api03-never-to-be-seen-0123456789";

/// Two installed programs, one of them with a login.
fn two() -> Environment {
    let mut environment = Environment::new();
    environment.program("claude", "echo '9.8.7 (a stand-in)'\n").program("codex", "echo; echo codex-cli 1.2.3\n");
    environment.find_programs().variable("ANTHROPIC_API_KEY", SECRET);
    environment
}

fn finding<'a>(found: &'a Value, name: &str) -> &'a Value {
    let findings = found["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["name"] == name).unwrap_or_else(|| panic!("no {name} in {found:#}"))
}

fn doctor(environment: &Environment) -> (Value, Option<i32>) {
    let output = environment.output(&["doctor", "--try", "--json"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(!text.contains(SECRET) && !String::from_utf8_lossy(&output.stderr).contains(SECRET), "a secret in {text}");
    (serde_json::from_str(&text).expect("JSON"), output.status.code())
}

#[test]
fn init_writes_a_table_for_every_program_that_is_installed() {
    let environment = two();
    let shown = environment.run(&["init"]);
    assert!(!shown.contains(SECRET), "{shown}");
    insta::assert_snapshot!(shown, @r#"
    err| wrote $ROOT/rekindle.toml
    err| wrote $ROOT/plan.md
    err| found claude: $ROOT/bin/claude (by ANTHROPIC_API_KEY)
    err| found codex: $ROOT/bin/codex (no login found)
    err| hint: run `codex login`, or set CODEX_API_KEY
    err| hint: agents may do what their own settings allow; to let one do everything, set permissions = "full" in rekindle.toml
    err| hint: check that they work: rekindle doctor
    err| hint: rekindle run plan.md
    exit 0
    "#);
    let text = std::fs::read_to_string(environment.path("rekindle.toml")).expect("read");
    let table: toml::Table = text.parse().expect("valid TOML");
    let agents = table["agents"].as_table().expect("agents");
    assert_eq!(agents.keys().collect::<Vec<_>>(), ["claude", "codex"]);
    for (name, agent) in agents {
        assert_eq!(agent["kind"].as_str(), Some(name.as_str()));
        assert_eq!(agent["permissions"].as_str(), Some("default"), "never widened unasked");
    }
    assert_eq!(table["run"]["agent"].as_str(), Some("claude"));
    assert!(environment.run(&["plan", "check"]).ends_with("exit 0\n"));
}

#[test]
fn init_takes_the_given_command_although_programs_are_installed() {
    let environment = two();
    assert!(environment.run(&["init", "--agent-command", "sh", "x.sh"]).ends_with("exit 0\n"));
    let text = std::fs::read_to_string(environment.path("rekindle.toml")).expect("read");
    let table: toml::Table = text.parse().expect("valid TOML");
    assert_eq!(table["agents"].as_table().expect("agents").keys().collect::<Vec<_>>(), ["default"]);
}

#[test]
fn doctor_looks_at_every_agent_and_shows_no_secret() {
    let environment = two();
    assert!(environment.run(&["init"]).ends_with("exit 0\n"));
    let (found, code) = doctor(&environment);
    assert_eq!(code, Some(0), "{found:#}");
    let version = |agent: &str| finding(&found, &format!("agent {agent} version"))["text"].to_string();
    assert!(version("claude").starts_with("\"9.8.7 (a stand-in) (newer than tried: 9.8.7 > "), "{found:#}");
    assert!(version("codex").starts_with("\"codex-cli 1.2.3 (newer than tried: 1.2.3 > "), "{found:#}");
    assert_eq!(finding(&found, "agent claude login")["verdict"], "ok");
    assert!(finding(&found, "agent claude login")["text"].as_str().expect("text").contains("ANTHROPIC_API_KEY"));
    assert_eq!(finding(&found, "agent codex login")["verdict"], "warning");
    assert!(finding(&found, "agent codex login")["hint"].is_string());
    assert_eq!(finding(&found, "agent claude start")["text"], "ready, permissions \"default\"");
    let mcp = finding(&found, "MCP");
    assert_eq!(mcp["verdict"], "ok", "{mcp}");
    for tool in ["task_done", "task_fail", "checkpoint", "ask", "note"] {
        assert!(mcp["text"].as_str().expect("text").contains(tool), "{tool} is missing: {mcp}");
    }
    let agent = &found["agents"][0];
    let expected =
        [("name", json!("claude")), ("kind", json!("claude")), ("starts", json!(true)), ("mcp", json!(true))];
    for (key, value) in expected {
        assert_eq!(agent[key], value, "{agent}");
    }
    assert_eq!(agent["version"], "9.8.7 (a stand-in)");
    assert_eq!(agent["newer_than_tried"], true);
    assert!(agent["tried_up_to"].is_string());
    assert!(!environment.run(&["doctor"]).contains(SECRET));
}

#[test]
fn doctor_leaves_nothing_in_the_project_and_the_home() {
    let environment = two();
    assert!(environment.run(&["init"]).ends_with("exit 0\n"));
    let names = || {
        let entries = std::fs::read_dir(environment.root()).expect("listed");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let before = names();
    doctor(&environment);
    assert_eq!(names(), before);
}

#[test]
fn a_program_that_is_broken_or_missing_is_told_with_what_to_do() {
    let mut environment = Environment::new();
    environment.program("claude", "echo nothing; exit 5\n");
    environment.find_programs();
    environment.write(
        "rekindle.toml",
        "[agents.a]\nkind = \"claude\"\n[agents.b]\nkind = \"codex\"\npermissions = \"full\"\n[run]\nagent = \"b\"\n",
    );
    let (found, code) = doctor(&environment);
    assert_eq!(code, Some(1));
    let broken = finding(&found, "agent a version");
    assert_eq!(broken["verdict"], "problem");
    assert!(broken["text"].as_str().expect("text").contains("exit status: 5"), "{broken}");
    let missing = finding(&found, "agent b");
    assert_eq!((&missing["verdict"], &missing["text"]), (&json!("problem"), &json!("`codex` was not found on PATH")));
    environment.write("plan.md", "# P\n\n### T1: one\n- accept: `true`\n");
    insta::assert_snapshot!(environment.run(&["run", "plan.md"]), @r#"
    err| error: agent `b` cannot be started
    err| caused by: `codex` was not found on PATH
    err| hint: install it: npm install -g @openai/codex; or write where it is: command = ["/path/to/codex"]
    exit 2
    "#);
    assert!(!environment.path(".rekindle").exists(), "nothing was begun");
}
