//! What is reported besides the log: attempts that it has lost, and a coordinator that has no file watches.

use rekindle_core::refusal::Refusal;
use rekindle_core::view::QuestionRow;
use rekindle_engine::polling;

use super::View;
use crate::error::Result;
use crate::lost;

impl View {
    /// What was lost from the log and a person has to decide on, as a question.
    pub(crate) fn lost(&self) -> Result<Option<QuestionRow>> {
        lost::question(&self.dir, self.reader.as_deref())
    }

    /// What the live coordinator lacks to watch files.
    pub(crate) fn polling(&self) -> Option<Refusal> {
        polling::read(self.dir.path()).filter(|_| matches!(self.coordinator(), Ok(Some(_))))
    }
}
