//! The world of a guarded session: a repository, a fake provider, one real program that a person uses as always, and rekindle's
//! hooks in its settings, put there by `rekindle guard install`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_testkit::installed::{Cli, Installed};
use rekindle_testkit::model::{Answer, Asked, Purpose, Script, Server, When};

use crate::bed::{slot, with_node};
use crate::rig::{Rig, Running, program};
use crate::setting::{self, Setting};

/// All that the program's summary says.
pub const SUMMARY: &str = "numbat summary";

/// Begins each text of rekindle's.
pub const TOLD: &str = "Where you stand (rekindle";

/// A project with a guarded program in it.
pub struct GuardedSession {
    pub rig: Rig,
    pub server: Server,
    cli: Cli,
    program: PathBuf,
    env: Vec<(&'static str, String)>,
    _slot: File,
}

impl GuardedSession {
    pub fn new(cli: Cli, script: Script) -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").to_owned();
        let installed = Installed::below(&target.join("agents")).unwrap_or_else(|error| panic!("{error}"));
        let slot = slot(&target.join("agents"));
        let server = Server::start(script).expect("a port");
        let rig = Rig::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "# Nothing\n", "");
        let home = rig.outside("home");
        std::fs::create_dir(&home).expect("home");
        let env = setting::prepare(cli, &home, &server.url(), Setting { compacts: true, ..Setting::default() });
        rig.set("HOME", &home);
        for (name, value) in &env {
            rig.set(name, value);
        }
        let scratch = rig.outside("tmp");
        std::fs::create_dir(&scratch).expect("a folder for temporary files");
        rig.set("TMPDIR", &scratch);
        let ours = program().parent().expect("a folder").to_owned();
        let path =
            std::env::join_paths(std::iter::once(ours).chain(std::env::split_paths(&with_node()))).expect("a path");
        rig.set("PATH", PathBuf::from(path));
        // A repository of its own: what lies around it is none of its business.
        let made = Command::new("git").args(["init", "-q"]).arg(rig.root()).status().expect("git");
        assert!(made.success(), "a repository");
        let program = installed.program(cli);
        let lead = Self { rig, server, cli, program, env, _slot: slot };
        let install = ["guard", "install", "--cli", cli.name()];
        // One program fetches packages into every folder of its own that it finds; in the home it does so anyway.
        let scope: &[&str] = if cli == Cli::Opencode { &["--user"] } else { &[] };
        lead.rig.ok(&[&install, scope].concat());
        lead
    }

    /// The program, with arguments of its own, ready to be started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.surround(&mut command);
        command.args(arguments);
        command
    }

    /// Gives a command the program's surroundings.
    pub fn surround(&self, command: &mut Command) {
        self.rig.prepare(command);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.envs([("GEMINI_CLI_TRUST_WORKSPACE", "true"), ("GEMINI_CLI_NO_RELAUNCH", "true")]);
    }

    /// One prompt, as its person types it.
    pub fn prompt(&self, words: &str) -> Running {
        let model = setting::model(self.cli).unwrap_or_default();
        let command = match self.cli {
            Cli::Claude => self.command(&["-p", "--dangerously-skip-permissions", words]),
            Cli::Codex => self.command(&[
                "exec",
                "--dangerously-bypass-approvals-and-sandbox",
                // The person has trusted the hooks; headless there is nobody to ask.
                "--dangerously-bypass-hook-trust",
                // The list of steps, which it has only where it is switched on.
                "-c",
                "tools.update_plan={ enabled = true }",
                words,
            ]),
            Cli::Gemini => self.command(&["--model", model, "--yolo", "--prompt", words]),
            Cli::Opencode => self.command(&["run", "--auto", words]),
        };
        self.rig.launch(command)
    }

    /// Awaits that hooks have told this of some session.
    pub fn await_heard(&self, words: &str) {
        let journals = || std::fs::read_dir(self.rig.state().join("guard")).into_iter().flatten().flatten();
        let heard =
            |dir: &Path| std::fs::read_to_string(dir.join("journal.jsonl")).is_ok_and(|text| text.contains(words));
        self.rig.until(words, || journals().any(|entry| heard(&entry.path())).then_some(()));
    }

    /// Kills a session while its tool waits, begins another, and says what the model was first asked in that one.
    pub fn die_and_begin_anew(&self, session: Running) -> Asked {
        self.rig.await_file("tool-runs");
        // A program puts a call into its record a moment after it began; killed in between, nobody could know of it.
        let places = [self.rig.outside("home"), self.rig.state().join("guard")];
        self.rig.until("a record of the call", || places.iter().any(|place| tells_of(place, TOOL)).then_some(()));
        session.kill();
        self.rig.touch("go");
        let before = self.server.asked().len();
        let ended = self.prompt("Good morning.").end();
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", self.story());
        let mut asked = self.server.asked().split_off(before).into_iter();
        asked.find(|one| one.purpose == Purpose::Main).expect("it asked")
    }

    /// The requests of the main conversation from the last summary on.
    pub fn after_compaction(&self, number: usize) -> Vec<Asked> {
        let asked = self.server.asked();
        let summaries: Vec<usize> = (0..asked.len()).filter(|at| asked[*at].purpose == Purpose::Compaction).collect();
        let at = *summaries.get(number - 1).unwrap_or_else(|| panic!("no summary {number}\n{}", self.story()));
        asked[at..].iter().filter(|one| one.purpose == Purpose::Main).cloned().collect()
    }

    pub fn story(&self) -> String {
        let line = |one: &Asked| {
            let end: String = one.last_text().chars().rev().take(160).collect::<Vec<_>>().into_iter().rev().collect();
            format!("{} {:?} rule {:?} told {} …{end:?}\n", one.number, one.purpose, one.rule, told(one))
        };
        let asked: String = self.server.asked().iter().map(line).collect();
        let logs =
            [self.rig.outside("home/.local/state/rekindle/guard/hook.log"), self.rig.state().join("guard/hook.log")];
        let logs: String = logs.iter().map(|log| std::fs::read_to_string(log).unwrap_or_default()).collect();
        format!("asked:\n{asked}\nhook.log: {logs}")
    }

    #[track_caller]
    pub fn assert_told(&self, asked: &Asked, kept: &[&str]) {
        for words in kept {
            let text = text_of(asked);
            assert!(text.contains(words), "request {} lacks {words:?}\n{text}\n{}", asked.number, self.story());
        }
    }
}

/// How often a request tells where the session stands.
pub fn told(asked: &Asked) -> usize {
    asked.messages.iter().map(|message| message.text.matches(TOLD).count()).sum()
}

/// The last text of rekindle's in a request.
pub fn text_of(asked: &Asked) -> String {
    let all: Vec<&str> = asked.messages.iter().map(|message| message.text.as_str()).collect();
    let all = all.join("\n");
    all.rfind(TOLD).map(|at| all[at..].to_owned()).unwrap_or_default()
}

/// A program that is asked for a summary gets one that says nothing.
pub fn forgetting() -> Script {
    let summary =
        format!("<analysis>Read.</analysis><summary>{SUMMARY}</summary><state_snapshot>{SUMMARY}</state_snapshot>");
    Script::new().whenever([When::Purpose(Purpose::Compaction)], Answer::say(summary).tokens(500, 20))
}

/// In the call of the tool that waits.
const TOOL: &[u8] = b"tool-runs.new";

/// Whether a record of lines below a folder has these words.
fn tells_of(place: &std::path::Path, words: &[u8]) -> bool {
    let Ok(entries) = std::fs::read_dir(place) else { return false };
    entries.flatten().map(|entry| entry.path()).any(|path| match path.is_dir() && !path.is_symlink() {
        true => tells_of(&path, words),
        false => {
            path.extension().is_some_and(|end| end == "jsonl")
                && std::fs::read(&path).unwrap_or_default().windows(words.len()).any(|found| found == words)
        }
    })
}
