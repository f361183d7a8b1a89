//! A person's own session of Gemini CLI and of opencode under guard: after a compaction the next request tells it what it was
//! doing, and so do later ones; after its death a new session is told the same.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_engine::agents::opencode::lead::plugin;
use rekindle_testkit::installed::{Cli, Installed};
use rekindle_testkit::model::{Act, Answer, Asked, Purpose, Script, Server, When};
use serde_json::{Value, json};

use crate::bed::{slot, waiting_tool, with_node};
use crate::rig::{Rig, Running, program};
use crate::setting::{self, MUCH, Setting};

/// All that the program's summary says.
const SUMMARY: &str = "numbat summary";

/// What the person typed.
const PROMPT: &str = "Build the wombat importer. Never touch the legacy folder.";

/// What was decided, in prose.
const DECISION: &str = "We decided to use SQLite instead of Postgres because one file is enough.";

/// What must be before the model again.
const KEPT: [&str; 7] = [
    "wombat importer",
    "Never touch the legacy folder",
    "SQLite instead of Postgres because one file is enough",
    "parse the quokka file",
    "ship it to the bilbies",
    "importer.txt",
    "exit code 3",
];

/// Begins each text of rekindle's.
const TOLD: &str = "Where you stand (rekindle";

/// A project with a guarded program in it.
struct Lead {
    rig: Rig,
    server: Server,
    cli: Cli,
    program: PathBuf,
    env: Vec<(&'static str, String)>,
    _slot: File,
}

impl Lead {
    fn new(cli: Cli, script: Script) -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").to_owned();
        let installed = Installed::below(&target.join("agents")).unwrap_or_else(|error| panic!("{error}"));
        let slot = slot(&target.join("agents"));
        let server = Server::start(script).expect("a port");
        let rig = Rig::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "# Nothing\n", "");
        let home = rig.outside("home");
        std::fs::create_dir(&home).expect("home");
        let env = setting::prepare(cli, &home, &server.url(), Setting { compacts: true, ..Setting::default() });
        rig.set("HOME", &home);
        let scratch = rig.outside("tmp");
        std::fs::create_dir(&scratch).expect("a folder for temporary files");
        rig.set("TMPDIR", &scratch);
        rig.set("PATH", with_node());
        match cli {
            Cli::Gemini => hooks(&home.join(".gemini/settings.json")),
            _ => {
                // In the home: the program installs packages into every folder of its own that it finds, and there it does so anyway.
                let plugins = home.join(".config/opencode/plugins");
                std::fs::create_dir_all(&plugins).expect("a folder for plugins");
                let text = plugin(program().to_str().expect("text"));
                std::fs::write(plugins.join("rekindle.js"), text).expect("the plugin");
            }
        }
        let program = installed.program(cli);
        Self { rig, server, cli, program, env, _slot: slot }
    }

    /// One prompt, as its person types it.
    fn prompt(&self, words: &str) -> Running {
        let mut command = Command::new(&self.program);
        self.rig.prepare(&mut command);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        match self.cli {
            Cli::Gemini => command
                .envs([("GEMINI_CLI_TRUST_WORKSPACE", "true"), ("GEMINI_CLI_NO_RELAUNCH", "true")])
                .args(["--model", setting::model(self.cli).expect("a model"), "--yolo", "--prompt", words]),
            _ => command.args(["run", "--auto", words]),
        };
        self.rig.launch(command)
    }

    fn story(&self) -> String {
        let line = |one: &Asked| {
            let told = one.messages.iter().map(|message| message.text.matches(TOLD).count()).sum::<usize>();
            let end: String = one.last_text().chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
            format!("{} {:?} rule {:?} told {told} …{end:?}\n", one.number, one.purpose, one.rule)
        };
        let asked: String = self.server.asked().iter().map(line).collect();
        let log = self.rig.outside("home/.local/state/rekindle/guard/hook.log");
        format!("asked:\n{asked}\nhook.log: {}", std::fs::read_to_string(log).unwrap_or_default())
    }

    fn assert_told(&self, asked: &Asked) {
        for words in KEPT {
            assert!(asked.mentions(words), "request {} lacks {words:?}\n{}", asked.number, self.story());
        }
    }
}

fn told(asked: &Asked) -> usize {
    asked.messages.iter().map(|message| message.text.matches(TOLD).count()).sum()
}

/// Adds the hooks to the settings of a home.
fn hooks(file: &Path) {
    let text = std::fs::read_to_string(file).expect("settings");
    let mut settings: Value = serde_json::from_str(&text).expect("JSON");
    let command = format!("'{}' hook gemini", program().display());
    let events = ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeModel", "BeforeTool", "AfterTool"];
    for event in events {
        let hook = json!({"type": "command", "name": "rekindle", "command": command, "timeout": 20_000});
        settings["hooks"][event] = json!([{ "hooks": [hook] }]);
    }
    std::fs::write(file, settings.to_string()).expect("settings");
}

/// The session's work, in each program's own tools.
fn works(cli: Cli, script: Script) -> Script {
    let tasks = [("parse the quokka file", "in_progress"), ("ship it to the bilbies", "pending")];
    let call = |tool: &str, args: Value| Act::Call { tool: tool.to_owned(), args };
    let (todos, write) = match cli {
        Cli::Gemini => (
            call(
                "write_todos",
                json!({ "todos": tasks.map(|(text, status)| json!({"description": text, "status": status})) }),
            ),
            call("write_file", json!({ "file_path": "importer.txt", "content": "hi" })),
        ),
        _ => {
            let tasks = tasks.map(|(text, status)| json!({"content": text, "status": status, "priority": "high"}));
            (
                call("todowrite", json!({ "todos": tasks })),
                call("write", json!({ "filePath": "importer.txt", "content": "hi" })),
            )
        }
    };
    script
        .then(Answer::say(DECISION).and(todos).tokens(2_000, 20))
        .then(Answer { acts: vec![write], ..Answer::default() })
        .then(Answer::shell("echo kowari; exit 3"))
}

/// A program that is asked for a summary gets one that says nothing.
fn forgetting() -> Script {
    let summary = format!("<state_snapshot>{SUMMARY}</state_snapshot>");
    Script::new().whenever([When::Purpose(Purpose::Compaction)], Answer::say(summary).tokens(500, 20))
}

/// One program compacts only what comes before another message of the user. It writes one itself when the model repeats itself.
fn bending(cli: Cli) -> Answer {
    match cli {
        Cli::Gemini => Answer::say("It goes round and round and never comes to an end. ".repeat(40)),
        _ => Answer::shell("echo so far").tokens(2_000, 20),
    }
}

fn is_told_after_a_compaction(cli: Cli) {
    let script = works(cli, forgetting())
        .then(bending(cli))
        .then(Answer::shell("echo so far").tokens(MUCH, 50))
        .then(Answer::shell("echo first"))
        .then(Answer::shell("echo second"))
        .then(Answer::say("That is all."));
    let lead = Lead::new(cli, script);
    let ended = lead.prompt(PROMPT).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", lead.story());
    let asked = lead.server.asked();
    let at = asked.iter().rposition(|one| one.purpose == Purpose::Compaction).expect("a summary was asked for");
    assert!(asked[..at].iter().all(|one| told(one) == 0), "nothing was forgotten before\n{}", lead.story());
    let later: Vec<&Asked> = asked[at..].iter().filter(|one| one.purpose == Purpose::Main).collect();
    assert_eq!(later.len(), 3, "{}", lead.story());
    for one in later {
        assert!(one.mentions(SUMMARY), "it has forgotten\n{}", lead.story());
        assert!(!one.mentions("kowari; exit 3\""), "its own calls are gone\n{}", lead.story());
        lead.assert_told(one);
    }
    // What is put into one request alone is not told twice in the next one, but may stand above what stays.
    let last = asked.iter().rfind(|one| one.purpose == Purpose::Main).expect("a last request");
    assert_eq!(told(last), 1, "{}", lead.story());
}

fn is_told_after_a_death(cli: Cli) {
    let script = works(cli, Script::new()).then(waiting_tool()).then(Answer::say("Hello again."));
    let lead = Lead::new(cli, script);
    let first = lead.prompt(PROMPT);
    lead.rig.await_file("tool-runs");
    first.kill();
    lead.rig.touch("go");
    let before = lead.server.asked().len();
    let ended = lead.prompt("Good morning.").end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", lead.story());
    let asked = lead.server.asked();
    let next = asked[before..].iter().find(|one| one.purpose == Purpose::Main).expect("it asked");
    assert_eq!(told(next), 1, "{}", lead.story());
    lead.assert_told(next);
}

mod after_a_compaction {
    use super::*;

    #[test]
    fn gemini() {
        is_told_after_a_compaction(Cli::Gemini);
    }

    #[test]
    fn opencode() {
        is_told_after_a_compaction(Cli::Opencode);
    }
}

mod after_a_death {
    use super::*;

    #[test]
    fn gemini() {
        is_told_after_a_death(Cli::Gemini);
    }

    #[test]
    fn opencode() {
        is_told_after_a_death(Cli::Opencode);
    }
}
