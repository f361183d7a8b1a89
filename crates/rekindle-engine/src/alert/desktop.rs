//! Notifications on the desktop, if somebody is using one: which program shows them, and how it is called. Nothing is
//! configured or installed for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_core::text::one_line;

use super::{Alert, Kind};

/// Longest text of a notification: it is a hint, not the story.
const TEXT_MAX_BYTES: usize = 400;

/// What is known about the desktop session that rekindle runs in.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub macos: bool,
    pub root: bool,
    /// An X11 or Wayland display is named.
    pub display: bool,
    /// The session's own message bus is named.
    pub bus: bool,
    /// Directories with programs.
    pub path: Vec<PathBuf>,
}

impl Session {
    pub fn of_this_process() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            macos: cfg!(target_os = "macos"),
            root: rustix::process::geteuid().is_root(),
            display: set("DISPLAY") || set("WAYLAND_DISPLAY"),
            bus: set("DBUS_SESSION_BUS_ADDRESS"),
            path: std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
        }
    }

    /// Whether there is a desktop that can show something.
    pub fn has_desktop(&self) -> bool {
        program(self).is_some()
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        // A relative entry would mean whatever is in the project.
        let absolute = self.path.iter().filter(|dir| dir.is_absolute());
        absolute.map(|dir| dir.join(name)).find(|program| program.is_file())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shower {
    NotifySend(PathBuf),
    AppleScript(PathBuf),
}

/// The program for a session; `None` if nobody would see it.
pub(super) fn program(session: &Session) -> Option<Shower> {
    // Root has no desktop of its own: without a session bus the notification would appear on somebody else's desktop or
    // nowhere.
    if session.root && !session.bus {
        return None;
    }
    if session.macos {
        return session.find("osascript").map(Shower::AppleScript);
    }
    if !session.display {
        return None;
    }
    session.find("notify-send").map(Shower::NotifySend)
}

impl Shower {
    /// The command that shows an alert. Its words are arguments, never parts of a script or of markup.
    pub(super) fn command(&self, alert: &Alert) -> Command {
        let title = one_line(&format!("rekindle: {}", alert.plan), TEXT_MAX_BYTES);
        let mut lines = vec![one_line(&alert.text, TEXT_MAX_BYTES)];
        lines.extend(alert.evidence.first().map(|line| one_line(line, TEXT_MAX_BYTES)));
        lines.extend(alert.choices.iter().map(|choice| one_line(choice, TEXT_MAX_BYTES)));
        let text = lines.join("\n");
        match self {
            Self::NotifySend(program) => {
                let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                // An alert that waits for a person stays until it is seen; one about an end may disappear automatically.
                let urgency = match alert.kind {
                    Kind::NeedsYou => "--urgency=critical",
                    Kind::Finished => "--urgency=normal",
                };
                called(program, &["--app-name=rekindle", urgency, "--", &title, &escaped])
            }
            Self::AppleScript(program) => {
                let script = "on run argv\ndisplay notification (item 1 of argv) with title (item 2 of argv)\nend run";
                called(program, &["-e", script, &text, &title])
            }
        }
    }
}

fn called(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
