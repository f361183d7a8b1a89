//! A person steers a real program: a message reaches its next request to the model while it works, and its session is opened in a
//! terminal (tmux), worked in, and given back to the run.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Script};
use serde_json::json;

use crate::bed::{Bed, bye, done, waiting_tool, work};
use crate::for_each_cli;
use crate::rig::until_within;

/// What the person says.
const WORDS: &str = "The numbat is spelled with a b.";

/// What the person types into the session themselves.
const TYPED: &str = "Tell me what a numbat is.";

/// What the model answers there.
const ANSWERED: &str = "A small marsupial, by the way.";

/// On the screen while the program asks something itself.
const CONFIRMS: &str = "Enter to confirm";

/// How a program is used in a terminal: what stands there when it takes a line, while it works, and what ends it.
fn manner(cli: Cli) -> (&'static str, &'static str, &'static str) {
    match cli {
        Cli::Claude => ("❯", "esc to interrupt", "/exit"),
        Cli::Codex => ("›", "esc to interrupt", "/quit"),
        Cli::Gemini => ("Type your message", "esc to cancel", "/quit"),
        Cli::Opencode => ("ctrl+p commands", "esc interrupt", "/exit"),
    }
}

/// For one wait.
const PATIENCE: Duration = Duration::from_secs(420);

#[test]
fn a_message_reaches_the_next_request_to_the_model() {
    let script = Script::new().then(waiting_tool()).then(work()).then(done()).then(bye());
    let bed = Bed::new(Cli::Claude, script);
    let run = bed.rig.run();
    bed.await_tool();
    let said = bed.rig.rekindle(&["tell", "T1", WORDS]);
    assert!(said.err.contains("delivered while its agent ran"), "{said:?}\n{}", bed.story());
    // Whoever coordinates meanwhile: the message is its agent's.
    run.kill();
    let again = bed.rig.run();
    bed.rig.await_event("agent_adopted");
    bed.go();
    bed.finish(again);
    let asked = bed.server.main();
    assert!(!asked[0].mentions(WORDS), "{}", bed.story());
    assert!(asked[1].mentions(WORDS), "the next request has it\n{}", bed.story());
    assert_eq!(bed.rig.events_of("told").len(), 1);
    assert_eq!(bed.rig.events_of("tell_delivered").len(), 1, "{}", bed.story());
    assert_eq!(bed.seen().attempts, 1, "{}", bed.story());
}

/// A terminal with a command of ours in it.
struct Terminal<'a> {
    bed: &'a Bed,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    fn open(bed: &'a Bed, arguments: &[&str]) -> Self {
        let terminal = Self { bed, socket: bed.rig.outside("tmux") };
        let program = crate::rig::program();
        let words = std::iter::once(program.to_str().expect("text")).chain(arguments.iter().copied());
        let line: Vec<String> = words.map(|word| format!("'{word}'")).collect();
        let line = format!("{}; echo ended with $?; sleep 600", line.join(" "));
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "50", &line]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        self.bed.rig.prepare(&mut command);
        command.env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        let output = command.arg("-S").arg(&self.socket).args(arguments).output().expect("tmux runs: install it");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn awaits(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let mut seen = String::new();
        let found = until_within(PATIENCE, || {
            seen = self.tmux(&["capture-pane", "-p"]);
            fits(&seen).then_some(())
        });
        assert!(found.is_some(), "never on the screen: {what}\n{seen}\n{}", self.bed.story());
    }

    /// Types a line and sends it once it stands there for a while: an Enter that follows at once is taken for part of a paste.
    fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        for _ in 0..30 {
            self.awaits(line, |screen| screen.contains(line));
        }
        self.tmux(&["send-keys", "Enter"]);
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        self.bed.rig.prepare(&mut command);
        let _gone = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// What a person has answered long ago: the look, the key, that the folder is trusted, that everything is allowed.
fn answer_dialogues(cli: Cli, bed: &Bed) {
    match cli {
        Cli::Claude => answer_claude(bed),
        Cli::Codex => {
            let (file, root) = (bed.rig.outside("home").join("codex/config.toml"), bed.rig.root().to_string_lossy());
            let settings = std::fs::read_to_string(&file).expect("its settings");
            let trusted = format!("\n[projects.{}]\ntrust_level = \"trusted\"\n", json!(root));
            // Before the tables, where it is the program's own.
            let settings = format!("check_for_update_on_startup = false\n{settings}{trusted}");
            std::fs::write(&file, settings).expect("written");
        }
        // The one is told by a variable that the folder is trusted, the other asks nothing.
        Cli::Gemini | Cli::Opencode => {}
    }
}

fn answer_claude(bed: &Bed) {
    // The program asks once for the repository that a project lies in, which may be this one's own.
    let accepted = json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
        "hasClaudeMdExternalIncludesApproved": true, "hasClaudeMdExternalIncludesWarningShown": true });
    let places = bed.rig.root().ancestors().map(|place| (place.to_string_lossy().into_owned(), accepted.clone()));
    let projects: serde_json::Map<String, serde_json::Value> = places.collect();
    let known = json!({
        "hasCompletedOnboarding": true, "theme": "dark", "bypassPermissionsModeAccepted": true,
        "customApiKeyResponses": { "approved": ["made-up"], "rejected": [] },
        "projects": projects,
    });
    std::fs::write(bed.rig.outside("home").join(".claude.json"), known.to_string()).expect("written");
}

fn a_person_works_in_the_agents_own_session_and_gives_it_back(cli: Cli) {
    let (ready, busy, leave) = manner(cli);
    let script = Script::new().then(waiting_tool()).then(Answer::say(ANSWERED)).then(work()).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    let _servers = OwnServers(bed.rig.outside("home"));
    answer_dialogues(cli, &bed);
    let run = bed.rig.run();
    bed.await_tool();
    let session = bed.rig.until("its session", || bed.sessions().first().cloned());
    let terminal = Terminal::open(&bed, &["attach", "T1"]);
    bed.rig.await_event("attached");
    // It asks again whether files above the project may be read, although its settings say so: a person says yes.
    terminal.awaits("the program", |screen| screen.contains(ready));
    if terminal.tmux(&["capture-pane", "-p"]).contains(CONFIRMS) {
        terminal.tmux(&["send-keys", "Enter"]);
    }
    let takes = |screen: &str| screen.contains(ready) && !screen.contains(CONFIRMS) && !screen.contains(busy);
    terminal.awaits("a place to type", takes);
    terminal.types(TYPED);
    terminal.awaits(ANSWERED, |screen| screen.contains(ANSWERED));
    let asked = bed.server.main();
    assert!(
        asked.last().is_some_and(|one| one.mentions(crate::bed::WORD)),
        "its own session, which knows the task\n{}",
        bed.story()
    );
    assert_eq!(bed.rig.task("T1")["state"], "blocked", "{}", bed.story());
    terminal.awaits("a place to type", takes);
    terminal.types(leave);
    terminal.awaits("that it is given back", |screen| screen.contains("ended with 0"));
    bed.rig.await_event("detached");
    bed.go();
    let started = std::time::Instant::now();
    let mut run = run;
    while run.has_ended().is_none() {
        assert!(started.elapsed() < PATIENCE, "it does not end\n{}", bed.story());
        std::thread::park_timeout(Duration::from_millis(50));
    }
    assert_eq!(bed.rig.task("T1")["state"], "complete", "{}", bed.story());
    let asked = bed.server.main();
    let back = asked
        .iter()
        .position(|one| one.mentions("The person held T1 themselves"))
        .unwrap_or_else(|| panic!("{}", bed.story()));
    assert_eq!(bed.seen().causes[0], "stopped_by_operator", "{}", bed.story());
    if cli == Cli::Codex && bed.sessions().get(1) != Some(&session) {
        // The program's own server may hold the session for a while after the person has left, and refuses it to anybody else:
        // the work goes on in a new one, which is told what the person did, at the cost of no attempt.
        assert_eq!(bed.seen().strategies, ["first", "resume", "fresh"], "{}", bed.story());
        assert!(bed.story().contains("already has an active writer"), "{}", bed.story());
        return;
    }
    assert!(asked[back].mentions(TYPED) && asked[back].mentions(ANSWERED), "the same conversation\n{}", bed.story());
    assert_eq!(bed.sessions(), [session.clone(), session], "{}", bed.story());
    assert_eq!(bed.seen().strategies, ["first", "resume"], "{}", bed.story());
}

for_each_cli!(a_person_works_in_the_agents_own_session_and_gives_it_back);

/// A server that a person's program installs in its home and leaves running for its next session: it ends with the test.
struct OwnServers(PathBuf);

impl Drop for OwnServers {
    fn drop(&mut self) {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            let is_theirs = |exe: PathBuf| exe.starts_with(&self.0);
            if std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(is_theirs) {
                // One that has just ended is what is wanted.
                let _ended = rustix::process::Pid::from_raw(pid)
                    .map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
            }
        }
    }
}
