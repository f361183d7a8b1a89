//! macOS: no queue serves both files and foreign processes at this number, so everything is polled. Not tested on a real
//! machine so far.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rekindle_shim::identity::Process;

/// Names a watched thing; never used twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(pub(super) u64);

/// What the system reported; on this system always the last variant.
#[derive(Debug)]
#[expect(dead_code, reason = "the other systems say more")]
pub(super) enum WatchEvent {
    /// A file of this name in a bundle changed.
    Touched(Token, &'static str),
    Exited(Token),
    /// Look at everything.
    Anything,
}

/// Poll interval: a person does not notice it, and some thousand files are checked well within it.
const LOOK_MS: u64 = 250;

#[derive(Debug)]
pub(super) struct EventSource {
    /// Both ends of a socket pair; without descriptors for it, only the poll interval ends a wait.
    bell: Option<(UnixStream, UnixStream)>,
}

impl EventSource {
    pub(super) fn new() -> Self {
        let pair = || -> io::Result<_> {
            let (wake, woken) = UnixStream::pair()?;
            wake.set_nonblocking(true)?;
            Ok((wake, woken))
        };
        Self { bell: pair().ok() }
    }

    pub(super) fn wake(&self) {
        if let Some((wake, _)) = &self.bell {
            let mut wake: &UnixStream = wake;
            // A full socket means that it is already awake.
            let _ = wake.write(b"!");
        }
    }

    pub(super) fn add_dir(&self, _token: Token, dir: &Path) -> io::Result<()> {
        std::fs::symlink_metadata(dir).map(drop)
    }

    #[expect(clippy::unused_self, reason = "other systems keep a list")]
    pub(super) fn remove_dir(&self, _token: Token) {}

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "other systems keep a list")]
    pub(super) fn add_process(&self, _token: Token, _process: &Process) -> io::Result<()> {
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "other systems keep a list")]
    pub(super) fn remove_process(&self, _process: &Process) {}

    /// Waits until it is woken or the next poll is due.
    pub(super) fn wait(&self, timeout_ms: Option<u64>, signs: &mut Vec<WatchEvent>) {
        let wait_ms = timeout_ms.map_or(LOOK_MS, |ms| ms.min(LOOK_MS));
        match &self.bell {
            Some((_, woken)) => {
                let _ = woken.set_read_timeout(Some(Duration::from_millis(wait_ms)));
                let mut woken: &UnixStream = woken;
                let _ = woken.read(&mut [0; 64]);
            }
            None => std::thread::park_timeout(Duration::from_millis(wait_ms)),
        }
        signs.push(WatchEvent::Anything);
    }
}
