//! The terminal: taken over at the start and restored at every end, by a key, an error, a panic or a signal.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::app::App;
use super::draw::draw;
use super::ground;
use crate::base64;
use crate::error::{CliError, Result};

/// How long a signal waits for the screen to be restored in order before it is forced.
const PATIENCE: Duration = Duration::from_secs(1);

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
}

impl Screen {
    pub(super) fn take() -> Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        let failed = |error: io::Error| CliError::internal("the terminal cannot be used").because(&error);
        match take().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout()))) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(failed(error))
            }
        }
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        self.terminal.size().map_or((0, 0), |size| (size.width, size.height))
    }

    pub(super) fn draw(&mut self, app: &App) -> Result<()> {
        let drawn = self.terminal.draw(|frame| draw(app, frame));
        drawn.map(|_| ()).map_err(|error| CliError::internal("the terminal cannot be drawn on").because(&error))
    }

    /// Gives the terminal to the shell until the person comes back.
    pub(super) fn suspend(&mut self) -> Result<()> {
        give_back();
        let again = signal_hook::low_level::raise(SIGTSTP).and_then(|()| take()).and_then(|()| self.terminal.clear());
        again.map_err(|error| CliError::internal("the terminal cannot be used").because(&error))
    }

    /// Asks the terminal for the colour of its background; the answer comes among the keys.
    pub(super) fn ask_ground(&mut self) {
        let mut out = io::stdout();
        // A terminal that does not know this ignores it.
        let _ = write!(out, "{}", ground::ASK).and_then(|()| out.flush());
    }

    /// Puts a text on the terminal's clipboard, wherever the terminal runs (OSC 52).
    pub(super) fn copy(&mut self, text: &str) {
        let mut out = io::stdout();
        // A terminal that does not know this ignores it.
        let _ = write!(out, "\x1b]52;c;{}\x07", base64::encode(text.as_bytes())).and_then(|()| out.flush());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste)
}

/// Restores the terminal, once.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Nothing can be done about a terminal that has gone.
        let _ = execute!(io::stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Whether the program was asked to end.
pub(super) struct Ending {
    asked: Arc<AtomicBool>,
    /// Dropped with the screen: then nothing has to be forced.
    _over: SyncSender<()>,
}

impl Ending {
    pub(super) fn watch() -> Result<Self> {
        let failed = |error: io::Error| CliError::internal("signals cannot be watched").because(&error);
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT]).map_err(failed)?;
        let asked = Arc::new(AtomicBool::new(false));
        // Nothing is ever sent; the channel is only closed.
        let (over, done) = sync_channel(1);
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                seen.store(true, Ordering::SeqCst);
                by_force(&done, signal);
            }
        });
        Ok(Self { asked, _over: over })
    }

    /// Whether such a signal came.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Ends the process if the screen is not restored in time: reading from a terminal that hung up can block for ever.
fn by_force(done: &Receiver<()>, signal: i32) {
    if let Err(RecvTimeoutError::Timeout) = done.recv_timeout(PATIENCE) {
        // The drawing thread holds the output to a terminal that accepts nothing: only the terminal's settings can still be
        // restored.
        let _ = disable_raw_mode();
        // It ends the process; should it fail, the process ends with its terminal.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set for the copy of this test that panics while it holds the terminal.
    const PANICS: &str = "REKINDLE_TEST_PANICS";

    #[test]
    fn a_panic_gives_the_terminal_back() {
        if std::env::var_os(PANICS).is_some() {
            // Released programs abort: nothing is dropped on the way out.
            std::mem::forget(Screen::take().expect("a terminal"));
            panic!("on purpose");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("tmux");
        let tmux = |arguments: &[&str]| {
            let mut command = std::process::Command::new("tmux");
            let output = command.arg("-S").arg(&socket).args(arguments).output().expect("tmux is installed");
            assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let program = std::env::current_exe().expect("this program");
        let after = dir.path().join("stty");
        let script = format!(
            "{PANICS}=1 '{}' --exact tui::screen::tests::a_panic_gives_the_terminal_back --nocapture; \
             stty -a > '{}'; tmux -S '{}' wait-for -S over; cat",
            program.display(),
            after.display(),
            socket.display()
        );
        tmux(&["new-session", "-d", "-x", "120", "-y", "40", "sh", "-c", &script]);
        tmux(&["wait-for", "over"]);
        let (alternate, shown) = (tmux(&["display-message", "-p", "#{alternate_on}"]), tmux(&["capture-pane", "-p"]));
        tmux(&["kill-server"]);
        assert!(shown.contains("on purpose"), "the panic is told where it can be read: {shown}");
        assert_eq!(alternate.trim(), "0", "{shown}");
        let modes = std::fs::read_to_string(after).expect("modes");
        let modes: Vec<&str> = modes.split([' ', '\n', ';']).collect();
        assert!(modes.contains(&"icanon") && modes.contains(&"echo"), "{modes:?}");
    }
}
