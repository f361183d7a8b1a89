//! The files for people: written whole when what they show has changed, at most once a second, and never read back.

use std::path::{Path, PathBuf};

use rekindle_core::render;
use rekindle_core::state::State;
use rekindle_core::time::Time;

/// Shortest time between two writes.
const EVERY_MS: u64 = 1_000;

/// Writes the files of a run.
#[derive(Debug)]
pub struct Files {
    dir: PathBuf,
    written_seq: u64,
    written_at: Option<Time>,
}

impl Files {
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), written_seq: 0, written_at: None }
    }

    /// Where the build status of a plan is.
    pub fn build_status_path(dir: &Path, slug: &str) -> PathBuf {
        dir.join(render::build_status::file_name(slug))
    }

    /// When the files should be written next, if something has changed.
    pub fn due(&self, seq: u64, now: Time) -> Option<Time> {
        (seq != self.written_seq).then(|| self.written_at.map_or(now, |at| at.plus_ms(EVERY_MS)))
    }

    /// Writes the files. A failure is reported and retried with the next change: nothing depends on them.
    pub fn write(&mut self, state: &State, seq: u64, now: Time) -> std::io::Result<()> {
        let Some(run) = &state.run else { return Ok(()) };
        self.written_seq = seq;
        self.written_at = Some(now);
        if let Some(status) = render::build_status::render(state) {
            rekindle_shim::atomic::save(
                &self.dir,
                &render::build_status::file_name(&run.plan.name),
                status.as_bytes(),
            )?;
        }
        if let Some(session) = render::session_state::render(state, &[]) {
            rekindle_shim::atomic::save(&self.dir, "session-state.md", session.as_bytes())?;
        }
        Ok(())
    }
}
