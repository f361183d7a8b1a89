//! What stand-ins record themselves, outside of the project: which started, which were answered, which ended, and what they
//! printed. Verdicts compare it with the log; no other part of rekindle reads or writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Begin,
    /// It started while another stand-in was working on the same task.
    Twins,
    /// Its report was accepted.
    Told,
    /// It does what it was ordered to: crash, hang, lie, give up.
    Misbehaves,
    End,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub what: What,
    pub task: String,
    /// The number of the attempt's bundle.
    pub bundle: u64,
    pub role: String,
}

/// Where stand-ins write.
#[derive(Clone, Debug)]
pub(super) struct Witness(PathBuf);

impl Witness {
    /// The witness of a run, in the run's directory.
    pub(super) fn of(dir: &Path) -> Self {
        Self(dir.join("witness"))
    }

    /// Creates its directories.
    pub(super) fn create(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.0.join("out"))?;
        std::fs::create_dir_all(self.0.join("orders"))
    }

    /// Appends a note: one write, so that lines of several writers do not mix.
    pub(super) fn note(&self, note: &Note) -> io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(note)?);
        append(&self.0.join("journal"))?.write_all(line.as_bytes())
    }

    /// All notes so far. A last line without an end was never written whole.
    pub(super) fn notes(&self) -> io::Result<Vec<Note>> {
        let text = match std::fs::read_to_string(self.0.join("journal")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let whole = text.lines().filter(|line| line.ends_with('}'));
        whole.map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
    }

    /// Records a line that was printed.
    pub(super) fn printed(&self, bundle: u64, line: &str) -> io::Result<()> {
        append(&self.0.join("out").join(bundle.to_string()))?.write_all(format!("{line}\n").as_bytes())
    }

    /// The lines that the stand-in of a bundle recorded as printed.
    pub(super) fn lines(&self, bundle: u64) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join("out").join(bundle.to_string())).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Orders the next stand-in at a task to misbehave.
    pub(super) fn order(&self, task: &str, what: &str) -> io::Result<()> {
        rekindle_shim::atomic::save(&self.0.join("orders"), task, what.as_bytes())
    }

    /// Takes the order for a task, once.
    pub(super) fn take_order(&self, task: &str) -> Option<String> {
        let path = self.0.join("orders").join(task);
        let order = std::fs::read_to_string(&path).ok()?;
        std::fs::remove_file(path).ok().map(|()| order)
    }

    /// The lock of a task; `None` when another stand-in holds it. The kernel releases the lock of a process that died.
    pub(super) fn lock(&self, task: &str) -> io::Result<Option<File>> {
        let file = append(&self.0.join(format!("lock-{task}")))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
