//! A person types into each program itself, in a real terminal (tmux), and compacts by hand once: the session is told once where it
//! stands, in every later request, whatever number of hooks, events and lines of the transcript tell of the compaction.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Purpose};
use serde_json::json;

use crate::for_each_cli;
use crate::guard_adapter::{GuardedSession, SUMMARY, forgetting, told};
use crate::rig::until_within;
use crate::setting;

/// What the person typed first.
const PROMPT: &str = "Build the wombat importer.";

/// A finding in prose.
const FINDING: &str = "The quokka service listens on port 47113.";

/// For one wait. One program installs a package before it shows anything, which takes a minute on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);

/// So many looks in a row show the typed line before Enter is sent: the programs take an Enter that follows the last key within
/// about a tenth of a second as part of a paste.
const STANDS: usize = 30;

/// Stand before or around the line that is being typed.
const FRAME: [char; 5] = ['❯', '›', '>', '┃', '│'];

/// How a program is used in a terminal.
struct Manner {
    arguments: Vec<&'static str>,
    /// On the screen when it takes a line.
    ready: &'static str,
    /// Each is on the screen while it works at something.
    busy: &'static [&'static str],
    /// What the person types for a compaction.
    compact: &'static str,
    /// On the screen after it.
    compacted: &'static str,
}

impl Manner {
    fn of(cli: Cli) -> Self {
        let (arguments, ready, busy, [compact, compacted]): (_, _, &[_], _) = match cli {
            // "Conversation compacted", and "Compacted" in newer ones.
            Cli::Claude => (vec![], "❯", &["esc to interrupt"], ["/compact", "ompacted"]),
            Cli::Codex => (
                vec!["--dangerously-bypass-hook-trust", "-c", "check_for_update_on_startup=false"],
                "›",
                &["esc to interrupt"],
                ["/compact", "Context compacted"],
            ),
            Cli::Gemini => (
                vec!["--model", setting::model(cli).expect("a model")],
                "Type your message",
                &["esc to cancel", "Executing Hook", "Queued ("],
                ["/compress", "Chat history compressed"],
            ),
            Cli::Opencode => (vec![], "ctrl+p commands", &["esc interrupt"], ["/compact", "Compaction ·"]),
        };
        Self { arguments, ready, busy, compact, compacted }
    }
}

/// Writes down what a person has answered long ago: the look, the key, that the folder is trusted.
fn answer_dialogues(cli: Cli, lead: &GuardedSession) {
    let (home, root) = (lead.rig.outside("home"), lead.rig.root().to_string_lossy());
    match cli {
        Cli::Claude => {
            let known = json!({
                "hasCompletedOnboarding": true, "theme": "dark",
                "customApiKeyResponses": { "approved": ["made-up"], "rejected": [] },
                "projects": { root: { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
                    "hasClaudeMdExternalIncludesApproved": true, "hasClaudeMdExternalIncludesWarningShown": true } },
            });
            std::fs::write(home.join(".claude.json"), known.to_string()).expect("written");
        }
        Cli::Codex => {
            let mut config =
                OpenOptions::new().append(true).open(home.join("codex/config.toml")).expect("its settings");
            writeln!(config, "\n[projects.{}]\ntrust_level = \"trusted\"", json!(root)).expect("written");
        }
        // The one is told by a variable that the folder is trusted, the other asks nothing.
        Cli::Gemini | Cli::Opencode => {}
    }
}

/// A terminal with the program in it.
struct Terminal<'a> {
    lead: &'a GuardedSession,
    manner: Manner,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    fn open(lead: &'a GuardedSession, manner: Manner) -> Self {
        let terminal = Self { lead, socket: lead.rig.outside("tmux"), manner };
        let program = lead.command(&terminal.manner.arguments);
        let words = std::iter::once(program.get_program()).chain(program.get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        // So narrow that none shows anything beside the line that is being typed.
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "50", &line.join(" ")]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        self.lead.surround(&mut command);
        let output = command.arg("-S").arg(&self.socket).args(arguments).output().expect("tmux runs: install it");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Types a line once the program takes one, and sends it once it stands there.
    fn types(&self, line: &str) {
        let Manner { ready, busy, .. } = self.manner;
        self.awaits("a place to type", |screen| {
            screen.contains(ready) && !busy.iter().any(|mark| screen.contains(mark))
        });
        self.tmux(&["send-keys", "-l", line]);
        let mut looks = 0;
        self.awaits(line, |screen| {
            let stands = screen.lines().any(|row| row.replace(FRAME, "").trim() == line);
            looks = if stands { looks + 1 } else { 0 };
            looks == STANDS
        });
        self.tmux(&["send-keys", "Enter"]);
    }

    fn awaits(&self, what: &str, mut fits: impl FnMut(&str) -> bool) {
        let mut seen = String::new();
        let found = until_within(PATIENCE, || {
            seen = self.screen();
            fits(&seen).then_some(())
        });
        assert!(found.is_some(), "never on the screen: {what}\n{seen}\n{}", self.lead.story());
    }

    /// Types a prompt and awaits its answer.
    fn prompts(&self, words: &str, answer: &str) {
        self.types(words);
        self.awaits(answer, |screen| screen.contains(answer));
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        self.lead.surround(&mut command);
        let _gone = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

fn one_compaction_by_hand_is_told_once(cli: Cli) {
    let turns = [(PROMPT, FINDING), ("Go on with it.", "So far."), ("And then.", "On it goes."), ("More.", "And on.")];
    let say = |words: &str| Answer::say(words).tokens(2_000, 20);
    let lead =
        GuardedSession::new(cli, turns.iter().fold(forgetting(), |script, (_, answer)| script.then(say(answer))));
    answer_dialogues(cli, &lead);
    let terminal = Terminal::open(&lead, Manner::of(cli));
    let (before, later) = turns.split_at(2);
    before.iter().for_each(|(words, answer)| terminal.prompts(words, answer));
    terminal.prompts(terminal.manner.compact, terminal.manner.compacted);
    later.iter().for_each(|(words, answer)| terminal.prompts(words, answer));

    let asked = lead.server.asked();
    let main = asked.iter().filter(|one| one.purpose == Purpose::Main).count();
    let after = lead.after_compaction(1);
    assert_eq!((main, after.len()), (4, 2), "{}", lead.story());
    for one in &after {
        assert!(one.mentions(SUMMARY), "it has forgotten\n{}", lead.story());
        assert_eq!(told(one), 1, "one compaction is told once\n{}", lead.story());
        lead.assert_told(one, &[PROMPT, FINDING]);
    }
}

for_each_cli!(one_compaction_by_hand_is_told_once);
