//! Orders to a live shim. An accepted order is one that the shim will carry out, whichever process dies meanwhile.

use std::path::Path;
use std::time::Duration;

use rekindle_shim::bundle::{self, Bundle};
use rekindle_shim::client::{self, Client, Delivered};
use rekindle_shim::ladder::Rung;

/// Why an order was not given.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no bundle, or one without a spec.
    #[error("there is no bundle to give orders to")]
    Absent,
    #[error("cannot read the bundle: {0}")]
    Bundle(#[from] bundle::Error),
    /// The shim cannot be reached, or it refused.
    #[error(transparent)]
    Client(#[from] client::Error),
}

/// Makes the shim climb a ladder; `None` means the ladder of its spec. Fails when the shim does not accept within the
/// budget.
pub fn stop(dir: &Path, ladder: Option<Vec<Rung>>, budget: Duration) -> Result<(), ControlError> {
    Ok(connect(dir, budget)?.stop(ladder)?)
}

/// Makes the shim end the whole tree now.
pub fn kill(dir: &Path, budget: Duration) -> Result<(), ControlError> {
    Ok(connect(dir, budget)?.kill()?)
}

/// Sends one line to the agent's standard input. After an error, send it again under the same id: it takes effect once.
pub fn send_line(dir: &Path, id: &str, line: &str, budget: Duration) -> Result<Delivered, ControlError> {
    Ok(connect(dir, budget)?.stdin(id, line)?)
}

pub fn close_stdin(dir: &Path, budget: Duration) -> Result<(), ControlError> {
    Ok(connect(dir, budget)?.close_stdin()?)
}

fn connect(dir: &Path, budget: Duration) -> Result<Client, ControlError> {
    let bundle = Bundle::open(dir)?.ok_or(ControlError::Absent)?;
    let spec = bundle.spec()?.ok_or(ControlError::Absent)?;
    Ok(Client::connect(&bundle, &spec, budget)?)
}
