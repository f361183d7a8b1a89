//! Orders to a living shim. Accepted means that the shim carries it out, whoever dies meanwhile.

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
    /// The shim cannot be spoken to, or refused.
    #[error(transparent)]
    Client(#[from] client::Error),
}

/// Has the shim climb a ladder; its spec's own for `None`. Fails when the shim does not accept within the budget.
pub fn stop(dir: &Path, ladder: Option<Vec<Rung>>, budget: Duration) -> Result<(), ControlError> {
    Ok(connect(dir, budget)?.stop(ladder)?)
}

/// Has the shim end the whole tree now.
pub fn kill(dir: &Path, budget: Duration) -> Result<(), ControlError> {
    Ok(connect(dir, budget)?.kill()?)
}

/// Sends one line to the agent's standard input. On an error send it again under the same name: it acts once.
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
