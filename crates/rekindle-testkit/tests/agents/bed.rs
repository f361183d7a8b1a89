//! One scenario's world: a project with one task, a fake provider, one real program as the agent, and what can be asked about
//! all of them afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rekindle_testkit::installed::{Cli, Installed};
use rekindle_testkit::model::{Answer, Asked, Script, Server};
use serde_json::{Value, json};

use crate::matrix::Seen;
use crate::owned;
use crate::processes::{self, Pinned};
use crate::rig::{Rig, Running, until};
use crate::setting::{self, Setting};

/// In the task's text: whoever was told of the task has it.
pub const WORD: &str = "quokka-7141";

/// What the artifact holds when the work is done.
const DONE: &str = "printf yes > made.txt";

/// The plan, word for word.
pub const PLAN: &str = "# Real agents\n\nA small plan.\n\n\
    ### T1: Make the file\n- artifacts: made.txt\n- accept: `test \"$(cat made.txt)\" = yes`\n\n\
    Write yes into made.txt. The word of this task is quokka-7141.\n";

/// A hang limit: a run takes two starts of a program that takes half a minute on a loaded machine, and a wait of one.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// How many scenarios run at once: the programs take half a gigabyte and a core each.
const SLOTS: usize = 2;

pub struct Bed {
    pub rig: Rig,
    pub server: Server,
    pub cli: Cli,
    program: PathBuf,
    env: Vec<(&'static str, String)>,
    user_files: owned::Files,
    _slot: File,
}

impl Bed {
    /// A project whose agent is this program, with the script as its model.
    pub fn new(cli: Cli, script: Script) -> Self {
        Self::with(cli, script, Setting::default(), "")
    }

    /// The same with other settings.
    pub fn with(cli: Cli, script: Script, setting: Setting, settings: &str) -> Self {
        Self::made(cli, script, setting, |program, env| toml(cli, program, env, settings))
    }

    /// The same program, spoken to by the Agent Client Protocol.
    pub fn over_acp(cli: Cli, script: Script, permissions: &str) -> Self {
        let mode = if cli == Cli::Gemini { "--acp" } else { "acp" };
        Self::made(cli, script, Setting::default(), |program, env| {
            let kind = format!("kind = \"acp\"\ncommand = [{}, \"{mode}\"]\n", quoted(program.to_str().expect("text")));
            // Over the protocol nobody but its operator tells it that the folder is trusted; untrusted it starts no servers.
            let mut env = env.to_vec();
            env.push(("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()));
            settings(&format!("{kind}permissions = \"{permissions}\"\n{}", model(cli)), &env, "")
        })
    }

    fn made(
        cli: Cli,
        script: Script,
        setting: Setting,
        toml: impl FnOnce(&Path, &[(&'static str, String)]) -> String,
    ) -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").to_owned();
        let installed = Installed::below(&target.join("agents")).unwrap_or_else(|error| panic!("{error}"));
        let slot = slot(&target.join("agents"));
        let server = Server::start(script).expect("a port");
        // Not in the system's folder for temporary files: one program distrusts what lies in a folder that all can write.
        let rig = Rig::within(Path::new(env!("CARGO_TARGET_TMPDIR")), PLAN, "");
        let home = rig.outside("home");
        std::fs::create_dir(&home).expect("home");
        let env = setting::prepare(cli, &home, &server.url(), setting);
        let user_files = owned::of_user(&home);
        let program = installed.program(cli);
        let rig = rig.with_settings(&toml(&program, &env));
        rig.set("HOME", &home);
        // Programs leave reports and caches behind; here they go with the project.
        let scratch = rig.outside("tmp");
        std::fs::create_dir(&scratch).expect("a folder for temporary files");
        rig.set("TMPDIR", &scratch);
        rig.set("PATH", with_node());
        Self { rig, server, cli, program, env, user_files, _slot: slot }
    }

    /// The program without anything of rekindle's, as a person starts it in this project.
    pub fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.rig.prepare(&mut command);
        command.envs(self.env.iter().map(|(name, value)| (name, value))).args(arguments);
        command
    }

    /// The file that lets a waiting tool go on.
    pub fn go(&self) {
        self.rig.touch("go");
    }

    /// Awaits that the agent's tool runs, and says as which process.
    pub fn await_tool(&self) -> u32 {
        self.rig.await_file("tool-runs");
        self.rig.lines("tool-runs")[0].parse().expect("a process")
    }

    /// Awaits that an attempt's agent has told of something, in its output or by what rekindle gave it to tell more.
    pub fn await_told(&self, attempt: u64, words: &str) {
        let bundle = self.rig.state().join(format!("attempts/{attempt:08}"));
        let has = |name: &str| {
            let said = std::fs::read(bundle.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&said).contains(words)
        };
        self.rig.until(words, || (has("out.log") || has("err.log")).then_some(()));
    }

    /// The agent's own process in an attempt.
    pub fn agent_pid(&self, attempt: u64) -> u32 {
        let record = self.rig.until("the shim's record", || self.rig.shim_record(attempt));
        let pid = record["agent"]["pid"].as_u64().unwrap_or_else(|| panic!("no agent in {record}"));
        u32::try_from(pid).expect("a process")
    }

    /// The agent's own process, to be killed.
    pub fn pin_agent(&self, attempt: u64) -> Pinned {
        self.rig.pin(self.agent_pid(attempt))
    }

    /// Awaits the end of a run that must have done everything.
    pub fn finish(&self, mut run: Running) {
        let started = Instant::now();
        let ended = loop {
            if run.has_ended().is_some() {
                break run.end();
            }
            assert!(started.elapsed() < PATIENCE, "it does not end: {}\n{}", run.said(), self.story());
            std::thread::park_timeout(LOOK);
        };
        assert_eq!(ended.code, Some(0), "not finished: {ended:?}\n{}", self.story());
        assert_eq!(self.rig.task("T1")["state"], "complete", "{}", self.story());
        self.rig.assert_nothing_left();
        self.assert_only_the_program_asked();
        owned::assert_untouched(&self.user_files, self.rig.root());
    }

    /// Everything that helps to see why: events, the agent's output, what the model was asked.
    pub fn story(&self) -> String {
        let asked = self.server.asked();
        let line = |one: &Asked| {
            let last: String = one.last_text().chars().rev().take(160).collect::<Vec<_>>().into_iter().rev().collect();
            format!("{} {:?} rule {:?} {} …{last:?}\n", one.number, one.purpose, one.rule, one.path)
        };
        let asked: String = asked.iter().map(line).collect();
        let spool = |name: &str| {
            let dir = self.rig.state().join("attempts");
            let bundles =
                std::fs::read_dir(dir).map(|found| found.flatten().map(|entry| entry.path()).collect::<Vec<_>>());
            let tail = |path: PathBuf| {
                let text = String::from_utf8_lossy(&std::fs::read(path.join(name)).unwrap_or_default()).into_owned();
                let lines: Vec<String> =
                    text.lines().rev().take(12).map(|line| line.chars().take(400).collect()).collect();
                format!("{}/{name}:\n{}\n", path.display(), lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
            };
            bundles.unwrap_or_default().into_iter().map(tail).collect::<String>()
        };
        format!("{}\nasked:\n{asked}\n{}{}", self.rig.story(), spool("out.log"), spool("err.log"))
    }

    /// Every request came from the program, none from rekindle: rekindle costs no tokens.
    fn assert_only_the_program_asked(&self) {
        let agents: &[&str] = match self.cli {
            Cli::Claude => &["claude-cli/", "Bun/"],
            Cli::Codex => &["codex_exec/"],
            Cli::Gemini => &["GeminiCLI"],
            Cli::Opencode => &["opencode/"],
        };
        let asked = self.server.asked();
        assert!(!asked.is_empty(), "nobody asked");
        for one in asked {
            let agent = one.user_agent();
            assert!(agents.iter().any(|name| agent.starts_with(name)), "{agent} asked for {}", one.path);
            // One that has already gone can no longer be looked up; its own words above name it all the same.
            let program = one.peer.as_ref().map(|peer| peer.program.clone()).unwrap_or_default();
            assert!(!program.ends_with("rekindle"), "rekindle itself asked for {}", one.path);
        }
    }

    /// What became of it, by the log.
    pub fn seen(&self) -> Seen {
        let events = self.rig.events();
        let of = |kind: &'static str| events.iter().filter(move |event| event["kind"] == kind);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Seen {
            attempts: of("developer_dispatched").count(),
            causes: of("attempt_ended").map(|event| text(&event["details"]["cause"])).collect(),
            strategies: of("developer_dispatched").map(|event| text(&event["details"]["strategy"])).collect(),
            compactions: of("agent_compacted").count(),
        }
    }

    /// The ids of the CLI sessions, an attempt each.
    pub fn sessions(&self) -> Vec<String> {
        let mut sessions = BTreeMap::new();
        for event in self.rig.events_of("agent_session") {
            let id = event["details"]["session_id"].as_str().expect("an id").to_owned();
            let attempt = event["details"]["attempt"].as_u64().expect("an attempt");
            let before = sessions.insert(attempt, id.clone());
            assert!(before.is_none_or(|before| before == id), "one attempt, two sessions\n{}", self.story());
        }
        sessions.into_values().collect()
    }
}

/// A process that was seen before is gone, soon.
pub fn assert_gone(pid: u32) {
    let gone = until(|| (!processes::runs(pid)).then_some(()));
    assert!(gone.is_some(), "left behind: {}", processes::describe(pid));
}

pub fn work() -> Answer {
    Answer::shell(DONE)
}

/// Says that the task is done.
pub fn done() -> Answer {
    Answer::report("task_done", json!({ "task": "T1", "result": "made.txt says yes" }))
}

/// Ends the turn.
pub fn bye() -> Answer {
    Answer::say("That is all.")
}

/// A tool that says which process it is and waits for the file `go`, for some minutes at most.
pub fn waiting_tool() -> Answer {
    Answer::shell(format!(
        "echo $$ > tool-runs.new && mv tool-runs.new tool-runs && exec {} wait go",
        env!("CARGO_BIN_EXE_fake-agent")
    ))
}

/// `rekindle.toml`.
fn toml(cli: Cli, program: &Path, env: &[(&str, String)], more: &str) -> String {
    let program = quoted(program.to_str().expect("text"));
    let agent = format!("kind = \"{}\"\ncommand = [{program}]\npermissions = \"full\"\n{}", cli.name(), model(cli));
    settings(&agent, env, more)
}

fn settings(agent: &str, env: &[(&str, String)], more: &str) -> String {
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
    format!(
        "[agents.worker]\n{agent}env = {{ {} }}\n\n\
         [run]\nisolation = \"shared\"\nagent = \"worker\"\nbackoff = \"10ms\"\n\n[stop]\ngrace = \"2s\"\n{more}",
        env.join(", "),
    )
}

fn model(cli: Cli) -> String {
    setting::model(cli).map(|model| format!("model = {}\n", quoted(model))).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The usual search path, with the folder of the `node` that one program is run by.
pub fn with_node() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let node = std::env::split_paths(&path).find(|dir| dir.join("node").is_file()).expect("node on PATH");
    let usual = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    let joined = std::env::join_paths(std::iter::once(node).chain(usual)).expect("a search path");
    PathBuf::from(joined)
}

/// Waits for a turn: whichever runner runs these tests, few of them run at once.
pub fn slot(dir: &Path) -> File {
    // With the newest programs nobody has made the place of the pinned ones.
    std::fs::create_dir_all(dir).expect("a place for the locks");
    let files: Vec<File> =
        (0..SLOTS).map(|n| File::create(dir.join(format!("slot-{n}"))).expect("a file to lock")).collect();
    loop {
        for file in &files {
            if file.try_lock().is_ok() {
                return file.try_clone().expect("kept open");
            }
        }
        // Bounded by the runner's own limit for a test; other scenarios are bounded each.
        std::thread::park_timeout(LOOK);
    }
}
