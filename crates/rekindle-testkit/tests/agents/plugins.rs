//! The plugins under `integrations/` and the hooks that `rekindle guard install` writes, taken by the real programs: by their own
//! validators, by what they list, and by calling rekindle.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rekindle_testkit::installed::{Cli, Installed};
use rekindle_testkit::model::{Script, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bed::{bye, slot, with_node};
use crate::rig;
use crate::setting::{self, Setting};

/// A program with a home and a project of its own.
struct Desk {
    dir: TempDir,
    program: PathBuf,
    env: Vec<(String, String)>,
    _slot: std::fs::File,
}

impl Desk {
    fn new(cli: Cli, url: &str) -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").to_owned();
        let installed = Installed::below(&target.join("agents")).unwrap_or_else(|error| panic!("{error}"));
        let slot = slot(&target.join("agents"));
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        for name in ["home", "project", "tmp", "bin"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let mut env: Vec<(String, String)> = setting::prepare(cli, &dir.path().join("home"), url, Setting::default())
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let path = format!("{}:{}", dir.path().join("bin").display(), with_node().display());
        let own = [("HOME", "home"), ("TMPDIR", "tmp")];
        env.extend(own.map(|(name, at)| (name.to_owned(), dir.path().join(at).display().to_string())));
        env.push(("PATH".to_owned(), path));
        let git = Command::new("git").args(["init", "-q"]).current_dir(dir.path().join("project")).status();
        assert!(git.expect("git").success());
        Self { dir, program: installed.program(cli), env, _slot: slot }
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project").canonicalize().expect("a path")
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.project()).env_clear().stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program; it must succeed.
    fn run(&self, arguments: &[&str]) -> String {
        told(arguments, &self.command(&self.program, arguments).output().expect("it runs"))
    }

    /// Runs rekindle.
    fn rekindle(&self, arguments: &[&str]) -> Output {
        self.command(&rig::program(), arguments).output().expect("rekindle runs")
    }
}

fn told(arguments: &[&str], output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{arguments:?} ended with {}:\n{said}", output.status);
    said
}

fn integrations(name: &str) -> String {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo and nextest say where the package is");
    let path = Path::new(&manifest).join("../../integrations").join(name).canonicalize().expect("the folder");
    path.to_str().expect("text").to_owned()
}

#[test]
fn claude_validates_and_installs_the_plugin() {
    let desk = Desk::new(Cli::Claude, "http://127.0.0.1:9");
    let (market, plugin) = (integrations("claude-codex"), integrations("claude-codex/plugins/rekindle"));
    for path in [&market, &plugin] {
        let said = desk.run(&["plugin", "validate", path]);
        assert!(said.contains("Validation passed") && !said.contains("passed with warnings"), "{said}");
    }
    desk.run(&["plugin", "marketplace", "add", &market]);
    desk.run(&["plugin", "install", "rekindle@rekindle"]);
    let said = desk.run(&["plugin", "list"]);
    assert!(said.contains("rekindle@rekindle") && said.contains("enabled"), "{said}");
}

#[test]
fn gemini_validates_the_extension() {
    let desk = Desk::new(Cli::Gemini, "http://127.0.0.1:9");
    let said = desk.run(&["extensions", "validate", &integrations("gemini")]);
    assert!(said.contains("successfully validated"), "{said}");
}

/// What the program lists as the hooks of a project.
fn listed(desk: &Desk) -> Value {
    let mut child = desk.command(&desk.program, &["app-server"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let client = json!({"name": "test", "title": "test", "version": "1"});
    let asked = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"clientInfo": client, "capabilities": {}}}),
        json!({"jsonrpc": "2.0", "method": "initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "hooks/list", "params": {"cwds": [desk.project()]}}),
    ];
    let mut input = child.stdin.take().expect("a pipe");
    for line in asked {
        writeln!(input, "{line}").expect("written");
    }
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let answers = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let answer = answers.into_iter().find(|answer| answer["id"] == 2).expect("an answer");
    child.kill().expect("ended");
    child.wait().expect("its end");
    let found = answer["result"]["data"][0].clone();
    assert_eq!((&found["errors"], &found["warnings"]), (&json!([]), &json!([])), "{answer:#}");
    found["hooks"].clone()
}

fn guard_status(desk: &Desk) -> (Value, Option<i32>) {
    let output = desk.rekindle(&["guard", "status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let programs = status["programs"].as_array().expect("programs").clone();
    let codex = programs.into_iter().find(|one| one["cli"] == "codex" && one["installed"] == true);
    (codex.expect("installed")["problems"].clone(), output.status.code())
}

#[test]
fn codex_takes_the_plugin_and_what_it_trusts_is_what_status_finds() {
    let desk = Desk::new(Cli::Codex, "http://127.0.0.1:9");
    desk.run(&["plugin", "marketplace", "add", &integrations("claude-codex")]);
    desk.run(&["plugin", "add", "rekindle@rekindle"]);
    let hooks = listed(&desk);
    let hooks = hooks.as_array().expect("hooks");
    assert!(hooks.len() >= 9 && hooks.iter().all(|hook| hook["source"] == "plugin"), "{hooks:#?}");
    desk.run(&["plugin", "remove", "rekindle@rekindle"]);

    told(&["guard", "install"], &desk.rekindle(&["guard", "install", "--cli", "codex"]));
    let config = desk.dir.path().join("home/codex/config.toml");
    let mut text = std::fs::read_to_string(&config).expect("read");
    let (problems, code) = guard_status(&desk);
    assert!(problems.to_string().contains("is not trusted by Codex") && code == Some(1), "{problems}");
    assert_eq!(listed(&desk), json!([]), "and the program does not count them either");
    text.push_str(&format!("\n[projects.{}]\ntrust_level = \"trusted\"\n", json!(desk.project())));
    std::fs::write(&config, &text).expect("written");
    let hooks = listed(&desk);
    let hooks = hooks.as_array().expect("hooks");
    assert!(hooks.len() >= 9 && hooks.iter().all(|hook| hook["trustStatus"] == "untrusted"), "{hooks:#?}");
    let begins = hooks.iter().find(|hook| hook["eventName"] == "sessionStart").expect("the first moment");
    assert_eq!(begins["additionalContextLimit"], 0, "the whole text reaches the model");
    let (problems, code) = guard_status(&desk);
    assert!(problems.to_string().contains("hooks are not trusted") && code == Some(1), "{problems}");
    // Trusted as the program's own dialogue does it: the key and the hash that it lists.
    for hook in hooks {
        text.push_str(&format!("[hooks.state.{}]\ntrusted_hash = {}\n", hook["key"], hook["currentHash"]));
    }
    std::fs::write(&config, &text).expect("written");
    let now = listed(&desk);
    assert!(now.as_array().expect("hooks").iter().all(|hook| hook["trustStatus"] == "trusted"), "{now:#}");
    assert_eq!(guard_status(&desk), (json!([]), Some(0)));
    told(&["guard", "uninstall"], &desk.rekindle(&["guard", "uninstall"]));
    assert_eq!(listed(&desk), json!([]));
}

#[test]
fn opencode_loads_the_file_and_it_calls_rekindle() {
    let server = Server::start(Script::new().then(bye())).expect("a port");
    let desk = Desk::new(Cli::Opencode, &server.url());
    let plugins = desk.project().join(".opencode/plugins");
    std::fs::create_dir_all(&plugins).expect("directories");
    std::fs::copy(integrations("opencode/rekindle.js"), plugins.join("rekindle.js")).expect("copied");
    // A stand-in that writes down how it was called and with what.
    let log = desk.dir.path().join("called");
    let stand_in = desk.dir.path().join("bin/rekindle");
    std::fs::write(&stand_in, format!("#!/bin/sh\necho \"$*\" >> '{0}'\ncat >> '{0}'\necho >> '{0}'\n", log.display()))
        .expect("written");
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o755)).expect("chmod");
    let said = desk.run(&["run", "say hello"]);
    let called = std::fs::read_to_string(&log).unwrap_or_else(|error| panic!("it was not called: {error}\n{said}"));
    assert!(called.contains("hook opencode\n{"), "{called}");
}
