//! A terminal for tests: a tmux of its own on a socket of its own, with a shell in it. Keys are sent and the screen is read as a
//! person does; what is awaited has a bound.

use std::path::PathBuf;
use std::process::Command;

use crate::rig::{Rig, program, until};

/// A terminal of its own.
pub struct Terminal<'a> {
    rig: &'a Rig,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    pub fn open(rig: &'a Rig, columns: u16, rows: u16) -> Self {
        let terminal = Self { rig, socket: rig.outside("tmux") };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        // All in one breath: a server that is told later how to behave may have ended by then. A shell that ends leaves its pane,
        // and says with what, instead of taking the server with it.
        let server = ["start-server", ";", "set-option", "-g", "exit-empty", "off", ";"];
        let panes = ["set-option", "-g", "remain-on-exit", "on", ";"];
        let session = ["new-session", "-d", "-x", &columns, "-y", &rows, "/bin/sh"];
        terminal.tmux(&[&["-f", "/dev/null"], &server[..], &panes, &session].concat());
        // A prompt that nothing on the screen looks like.
        terminal.line("PS1='ready> '");
        terminal.shows("ready>");
        terminal
    }

    pub fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        self.rig.prepare(&mut command);
        let output = command.arg("-S").arg(&self.socket).args(arguments).output().expect("tmux runs: install it");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Sends keys by tmux's names for them.
    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a text as it is.
    pub fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types a line for the shell.
    pub fn line(&self, text: &str) {
        self.text(text);
        self.keys(&["Enter"]);
    }

    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Awaits a text on the screen.
    pub fn shows(&self, text: &str) -> String {
        self.awaits(text, |screen| screen.contains(text))
    }

    pub fn awaits(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let found = until(|| {
            let screen = self.screen();
            assert!(!screen.contains("Pane is dead"), "the shell has ended before {what}:\n{screen}");
            Some(screen).filter(|screen| fits(screen))
        });
        found.unwrap_or_else(|| panic!("never on the screen: {what}\n{}\n{}", self.screen(), self.rig.story()))
    }

    /// The value of something that tmux knows about the pane.
    pub fn knows(&self, what: &str) -> String {
        self.tmux(&["display-message", "-p", &format!("#{{{what}}}")]).trim().to_owned()
    }

    /// Chooses the only row that a filter leaves.
    pub fn choose(&self, words: &str) {
        self.keys(&["/"]);
        self.keys(&["C-u"]);
        self.text(words);
        self.keys(&["Enter"]);
        self.shows(&format!("Tasks /{words}"));
        self.keys(&["G"]);
    }

    /// Starts the view and awaits its first picture.
    pub fn top(&self, arguments: &str) {
        self.line(&format!("{} top {arguments}; echo \"left with $?\"", program().display()));
        self.shows("Tasks");
    }

    /// The terminal is as it was: no other screen, no mouse, and what is typed can be seen.
    pub fn assert_given_back(&self) {
        self.awaits("the prompt", |screen| screen.trim_end().ends_with("ready>"));
        for state in ["alternate_on", "mouse_any_flag"] {
            assert_eq!(self.knows(state), "0", "{state}");
        }
        assert_eq!(self.knows("cursor_flag"), "1", "the cursor is seen");
        self.line("stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo | tr '\\n' '+'; echo");
        self.shows("icanon+echo+");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        self.rig.prepare(&mut command);
        let _gone = command.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}
