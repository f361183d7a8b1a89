//! A person types into Claude Code itself, in a real terminal (tmux), and compacts by hand once: the session is told once where it
//! stands, although hooks and two lines of the transcript tell of the compaction.

use std::path::PathBuf;
use std::process::Command;

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Purpose};
use serde_json::json;

use crate::guarded::{Lead, SUMMARY, forgetting, told};

/// What the person typed first.
const PROMPT: &str = "Build the wombat importer.";

/// A finding in prose.
const FINDING: &str = "The quokka service listens on port 47113.";

/// A terminal with the program in it.
struct Terminal<'a> {
    lead: &'a Lead,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    fn open(lead: &'a Lead, arguments: &[&str]) -> Self {
        let terminal = Self { lead, socket: lead.rig.outside("tmux") };
        let program = lead.command(arguments);
        let words = std::iter::once(program.get_program()).chain(program.get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50", &line.join(" ")]);
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

    /// Types a line once the program shows where to, and sends it once it stands there.
    fn types(&self, line: &str) {
        self.awaits("a place to type", |screen| screen.contains('❯'));
        self.tmux(&["send-keys", "-l", line]);
        self.awaits(line, |screen| screen.contains(line));
        self.tmux(&["send-keys", "Enter"]);
    }

    fn awaits(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let mut seen = String::new();
        let found = crate::rig::until(|| {
            seen = self.screen();
            fits(&seen).then_some(())
        });
        assert!(found.is_some(), "never on the screen: {what}\n{seen}\n{}", self.lead.story());
    }

    /// Awaits so many requests of a kind.
    fn awaits_asked(&self, purpose: Purpose, count: usize) {
        let asked = || self.lead.server.asked().iter().filter(|one| one.purpose == purpose).count();
        let found = crate::rig::until(|| (asked() >= count).then_some(()));
        assert!(found.is_some(), "{purpose:?} was not asked {count} times\n{}\n{}", self.screen(), self.lead.story());
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        self.lead.surround(&mut command);
        let _gone = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

#[test]
fn claude_in_a_terminal_is_told_once_for_one_compaction_by_hand() {
    let script = forgetting().then(Answer::say(FINDING).tokens(2_000, 20));
    let script = ["So far.", "On it goes.", "And on.", "And on again."]
        .into_iter()
        .fold(script, |script, words| script.then(Answer::say(words).tokens(2_000, 20)));
    let lead = Lead::new(Cli::Claude, script);
    // What a person has answered long ago: the look, the key, that the folder is trusted.
    let known = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": { "approved": ["made-up"], "rejected": [] },
        "projects": { lead.rig.root().to_string_lossy(): { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
            "hasClaudeMdExternalIncludesApproved": true, "hasClaudeMdExternalIncludesWarningShown": true } },
    });
    std::fs::write(lead.rig.outside("home").join(".claude.json"), known.to_string()).expect("written");
    let terminal = Terminal::open(&lead, &[]);
    for (number, words) in [PROMPT, "Go on with it."].into_iter().enumerate() {
        terminal.types(words);
        terminal.awaits_asked(Purpose::Main, number + 1);
    }
    terminal.awaits("the answer", |screen| screen.contains("So far."));
    terminal.types("/compact");
    terminal.awaits_asked(Purpose::Compaction, 1);
    lead.await_heard("told_again");
    for (number, (words, answer)) in [("And then?", "On it goes."), ("What else?", "And on.")].into_iter().enumerate() {
        terminal.types(words);
        terminal.awaits_asked(Purpose::Main, number + 3);
        terminal.awaits(answer, |screen| screen.contains(answer));
    }
    let after = lead.after_compaction(1);
    assert!(after.len() >= 2 && after[0].mentions(SUMMARY), "{}", lead.story());
    for one in &after {
        assert_eq!(told(one), 1, "one compaction is told once\n{}", lead.story());
        lead.assert_told(one, &[PROMPT, FINDING]);
    }
}
