//! `rekindle guard`: what it prints, what it ends with, and that nothing is left behind.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::environment::Environment;

/// A repository with two programs on `PATH` and a home apart.
fn two() -> Environment {
    let mut environment = Environment::new();
    environment.program("claude", "exit 0\n").program("opencode", "exit 0\n");
    environment.find_programs();
    let home = environment.path("home");
    std::fs::create_dir(&home).expect("a home");
    environment.variable("HOME", &home);
    let git = Command::new("git").args(["init", "-q"]).current_dir(environment.root()).status().expect("git");
    assert!(git.success());
    environment.write(".git/info/exclude", "bin\nhome\n");
    environment
}

fn status(environment: &Environment) -> (Value, Option<i32>) {
    let output = environment.output(&["guard", "status", "--json"]);
    (serde_json::from_slice(&output.stdout).expect("JSON"), output.status.code())
}

fn seen_by_git(environment: &Environment) -> String {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--untracked-files=all"]).current_dir(environment.root());
    String::from_utf8(git.output().expect("git").stdout).expect("text")
}

#[test]
fn install_tells_what_it_did_and_uninstall_leaves_nothing() {
    let environment = two();
    insta::assert_snapshot!(environment.run(&["guard", "install"]), @"
    err| Claude Code: wrote .claude/settings.local.json (yours in this project): hooks at 15 events
    err|   git ignores it: .git/info/exclude
    err| hint: Claude Code: sessions of Claude Code that start from now on are guarded; running ones may have to be restarted
    err| opencode: wrote .opencode/plugins/rekindle.js (yours in this project): a plugin
    err|   git ignores it: .git/info/exclude
    err| hint: opencode: restart opencode
    err| hint: see whether everything works: rekindle guard status
    exit 0
    ");
    assert_eq!(seen_by_git(&environment), "");
    insta::assert_snapshot!(environment.run(&["guard", "status"]), @"
    out| PROGRAM   SCOPE  GUARD      FILE
    out| claude    local  installed  .claude/settings.local.json
    out| opencode  local  installed  .opencode/plugins/rekindle.js
    exit 0
    ");
    let again = environment.run(&["guard", "install"]);
    assert!(again.contains("is up to date") && again.ends_with("exit 0\n"), "{again}");
    insta::assert_snapshot!(environment.run(&["guard", "uninstall"]), @"
    err| Claude Code: .claude/settings.local.json is removed: it did not exist before
    err| opencode: .opencode/plugins/rekindle.js is removed: it did not exist before
    exit 0
    ");
    assert!(!environment.path(".claude").exists() && !environment.path(".opencode").exists());
    assert_eq!(std::fs::read_to_string(environment.path(".git/info/exclude")).expect("read"), "bin\nhome\n");
    insta::assert_snapshot!(environment.run(&["guard", "uninstall"]), @"
    err| nothing of rekindle was installed
    exit 0
    ");
    insta::assert_snapshot!(environment.run(&["guard", "status"]), @"
    err| no program is guarded here
    err| hint: rekindle guard install
    exit 0
    ");
}

#[test]
fn scopes_and_programs_are_chosen() {
    let environment = two();
    assert!(environment.run(&["guard", "install", "--user", "--cli", "claude,codex"]).ends_with("exit 0\n"));
    assert!(environment.path("home/.claude/settings.json").is_file());
    assert!(environment.path("home/.codex/hooks.json").is_file());
    assert!(environment.path("home/.local/state/rekindle/guard/installed.json").is_file());
    assert!(environment.run(&["guard", "install", "--project", "--cli", "gemini"]).ends_with("exit 0\n"));
    assert!(seen_by_git(&environment).contains(".gemini/settings.json"), "what is everybody's is to be committed");
    assert!(environment.run(&["guard", "uninstall"]).ends_with("exit 0\n"));
    assert!(!environment.path(".gemini").exists());
    assert!(environment.path("home/.claude/settings.json").is_file(), "the user's own are asked for by --user");
    assert!(environment.run(&["guard", "uninstall", "--user"]).ends_with("exit 0\n"));
    assert!(!environment.path("home/.claude").exists() && !environment.path("home/.codex").exists());
}

#[test]
fn what_cannot_work_is_told_with_what_to_do() {
    let environment = two();
    assert!(environment.run(&["guard", "install", "--cli", "codex", "--cli", "claude"]).ends_with("exit 0\n"));
    let (found, code) = status(&environment);
    assert_eq!((code, &found["ok"], &found["schema_version"]), (Some(1), &json!(false), &json!(1)));
    let of = |found: &Value, cli: &str| -> Value {
        let programs = found["programs"].as_array().expect("programs");
        programs.iter().find(|one| one["cli"] == cli && one["scope"] == "local").expect("local").clone()
    };
    let codex = of(&found, "codex");
    assert_eq!((&codex["installed"], &codex["rekindle_exists"]), (&json!(true), &json!(true)));
    let problems = codex["problems"].to_string();
    assert!(problems.contains("hooks are not trusted") && problems.contains("/hooks"), "{problems}");
    assert_eq!(of(&found, "claude")["problems"], json!([]));
    assert!(environment.run(&["guard", "uninstall", "--cli", "codex"]).ends_with("exit 0\n"));
    std::fs::create_dir_all(environment.path("home/.claude")).expect("a directory");
    environment.write("home/.claude/settings.json", "{ \"disableAllHooks\": true } // quiet\n");
    let (found, code) = status(&environment);
    assert_eq!(code, Some(1));
    assert!(of(&found, "claude")["problems"].to_string().contains("disableAllHooks"), "{found:#}");
}

#[test]
fn mistakes_are_told_and_nothing_is_made() {
    let mut environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["guard", "install"]), @"
    err| error: no coding program was found: claude, codex, gemini and opencode are looked for on PATH
    err| hint: install one, or name the one you will install: rekindle guard install --cli claude
    exit 2
    ");
    std::fs::create_dir(environment.path(".gemini")).expect("a directory");
    environment.write(".gemini/settings.json", "{\n  \"hooks\": [],\n}\n");
    insta::assert_snapshot!(environment.run(&["guard", "install", "--cli", "gemini"]), @"
    err| error: `hooks` in $ROOT/.gemini/settings.json is not an object, nothing was changed: correct it first
    exit 2
    ");
    environment.write(".gemini/settings.json", "{\n  \"hooks\": {,\n}\n");
    let broken = environment.run(&["guard", "install", "--cli", "gemini"]);
    assert!(broken.contains("is not valid JSON (line 2") && broken.ends_with("exit 2\n"), "{broken}");
    assert!(!environment.path(".rekindle").exists());
    assert!(environment.run(&["guard", "install", "--cli", "gpt"]).ends_with("exit 2\n"));
    assert!(environment.run(&["guard", "install", "--user", "--project"]).ends_with("exit 2\n"));
    environment.program("codex", "exit 0\n");
    environment.find_programs();
    let none = environment.run(&["guard", "install", "--status-line"]);
    assert!(none.contains("--cli claude") && none.ends_with("exit 2\n"), "{none}");
}

/// What the installed status line prints, run as its program runs it.
fn line(environment: &Environment, file: &Path, input: &str) -> String {
    let settings: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("read")).expect("JSON");
    let command = settings["statusLine"]["command"].as_str().expect("a command");
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(environment.root()).env("HOME", environment.path("home"));
    let mut child = shell.env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_status_line_chains_the_users_own() {
    let environment = two();
    let home = environment.path("home/.claude/settings.json");
    std::fs::create_dir_all(home.parent().expect("a parent")).expect("a directory");
    let own = json!({"statusLine": {"type": "command", "command": "sed s/.*cwd/mine/ # own"}}).to_string();
    std::fs::write(&home, &own).expect("written");
    let done = environment.run(&["guard", "install", "--cli", "claude", "--status-line"]);
    assert!(done.contains("behind your own: sed"), "{done}");
    let file = environment.path(".claude/settings.local.json");
    let root = environment.root().canonicalize().expect("a path");
    let input = |left: u32| {
        json!({"session_id": "s", "cwd": root, "context_window": {"remaining_percentage": left},
               "rate_limits": {"five_hour": {"used_percentage": 40}}})
        .to_string()
    };
    let drawn = line(&environment, &file, &input(55));
    assert!(drawn.starts_with("mine") && drawn.ends_with(" | context 55% 5h 60%\n"), "{drawn}");
    assert!(line(&environment, &file, &input(9)).ends_with(" | ! context 9% left 5h 60%\n"));
    assert_eq!(line(&environment, &file, "what is cwd this?"), "mine this?", "the own line stands alone");
    // The binary is gone: the user's own line is still drawn.
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace(env!("CARGO_BIN_EXE_rekindle"), "/nowhere/rekindle")).expect("written");
    assert_eq!(line(&environment, &file, "{cwd}"), "mine}");
    std::fs::write(&file, text).expect("written");
    assert!(environment.run(&["guard", "uninstall"]).ends_with("exit 0\n"));
    assert!(!file.exists());
    assert_eq!(std::fs::read_to_string(&home).expect("read"), own);
}
