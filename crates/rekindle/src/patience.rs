//! How long a command waits for a disk. A frozen file system or a missing server never answers, and a command that waits for
//! it can only be killed: reading is done on a thread that is abandoned when its time is up.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::error::{CliError, Result};

/// Longest wait for a state directory to be opened: a large store on a slow disk takes a second.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// Reads a directory on a thread, and gives up if that takes too long. Fails when the thread does not return in time.
pub(crate) fn within<T: Send + 'static>(dir: &Path, read: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (give, take) = sync_channel(1);
    let reading = std::thread::Builder::new().name("reading".to_owned()).spawn(move || {
        let _nobody_waits = give.send(read());
    });
    if let Err(error) = reading {
        return Err(CliError::internal("no thread can be started").because(&error));
    }
    take.recv_timeout(OPEN_WITHIN).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            let message = format!("{} does not answer within {} s", dir.display(), OPEN_WITHIN.as_secs());
            CliError::internal(message)
                .hint("its file system is frozen or its disk is gone: look at it with dmesg and df")
        }
        RecvTimeoutError::Disconnected => CliError::internal("reading the state ended too early"),
    })
}
