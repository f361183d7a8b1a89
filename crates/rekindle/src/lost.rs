//! Question 0: every copy of the log has lost attempts whose bundles still exist. Every view asks it like an agent's
//! question, and `rekindle answer 0` answers it, with or without a run to show.

use std::time::{SystemTime, UNIX_EPOCH};

use rekindle_core::ids::{AgentName, QuestionId, TaskId};
use rekindle_core::time::Time;
use rekindle_core::view::QuestionRow;
use rekindle_engine::lost::{self, FORGET, RESTORE};
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{self, Read};
use rekindle_engine::world::real::Lost;

use crate::error::{CliError, Result};

/// Its number: agents' questions begin at 1.
pub(crate) const QUESTION: QuestionId = QuestionId(0);

/// Shown in place of the task and of the agent that asks.
const ABOUT: &str = "state";
const ASKS: &str = "rekindle";

/// The question, while it is open.
pub(crate) fn question(dir: &StateDir, reader: Option<&dyn Read>) -> Result<Option<QuestionRow>> {
    let found = lost::question(dir, reader)?;
    Ok(found.and_then(|lost| row(dir, &lost)))
}

fn row(dir: &StateDir, lost: &Lost) -> Option<QuestionRow> {
    let changed = std::fs::metadata(dir.path().join("attempts")).and_then(|attempts| attempts.modified());
    let asked = changed.unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH).unwrap_or_default();
    let place = dir.path().display();
    Some(QuestionRow {
        id: QUESTION,
        task: TaskId::new(ABOUT).ok()?,
        agent: AgentName::new(ASKS).ok()?,
        text: format!("{lost}. Continue without what was lost, or put a copy of the log back?"),
        options: vec![FORGET.to_owned(), RESTORE.to_owned()],
        context: format!(
            "{FORGET}: the run continues from what the log still knows. Lost attempts keep their numbers and their bundles, nothing \
             they reported counts, and what they wrote stays in the project.\n\
             {RESTORE}: nothing is started. Put the newest state.db, state.db-wal, shadow and backups back into {place}."
        ),
        answer: None,
        via: None,
        asked_at: Time(i64::try_from(asked.as_millis()).unwrap_or(0)),
    })
}

/// The error with which `run` refuses to start next to lost attempts.
pub(crate) fn refusal(lost: &Lost) -> CliError {
    let error = CliError::usage(lost.to_string());
    if !lost.living.is_empty() {
        return error.hint("wait for it to end, or end it, then ask again: rekindle run PLAN");
    }
    error
        .hint("this is question 0: rekindle questions")
        .hint("put the newest state.db, shadow and backups back into the state directory")
        .hint("or continue without what was lost: rekindle answer 0 forget, or rekindle run PLAN --forget-lost")
}

pub(crate) fn answer(dir: &StateDir, text: &str) -> Result<()> {
    let reader = store::reader(dir)?;
    let found = lost::question(dir, reader.as_deref())?;
    // The number of an option stands for its text, as with every question.
    let wish = match text.trim() {
        "1" => FORGET,
        "2" => RESTORE,
        other => other,
    };
    let found = found.as_ref();
    match (found, wish) {
        (None, RESTORE) => Ok(()),
        (None, _) => Err(CliError::refused("question 0 is not open: the log knows every attempt")),
        (Some(lost), FORGET) if lost.living.is_empty() => lost::forget(dir.path(), lost.highest)
            .map_err(|error| CliError::internal("the answer could not be written").because(&error)),
        (Some(lost), FORGET) => Err(CliError::refused(lost.to_string()).hint("wait for it to end, or end it")),
        (Some(lost), RESTORE) => {
            let hint = format!("put state.db, state.db-wal, shadow and backups back into {}", dir.path().display());
            Err(CliError::refused(format!("nothing is restored yet: {lost}")).hint(hint).hint("then: rekindle resume"))
        }
        (Some(_), _) => {
            Err(CliError::refused(format!("question 0 takes `{FORGET}` or `{RESTORE}`")).hint("rekindle questions"))
        }
    }
}

/// Checks for the question repeatedly, but only if something has changed.
#[derive(Default)]
pub(crate) struct LostLook {
    seen: Option<[Option<SystemTime>; 2]>,
    row: Option<QuestionRow>,
}

impl LostLook {
    /// Puts the question, if it is open, before the others. A live coordinator has settled it.
    pub(crate) fn add_to(
        &mut self,
        questions: &mut Vec<QuestionRow>,
        lives: bool,
        look: impl FnOnce() -> Result<Option<QuestionRow>>,
        dir: &std::path::Path,
    ) -> Result<()> {
        questions.retain(|question| question.id != QUESTION);
        if lives {
            *self = Self::default();
            return Ok(());
        }
        let changed = |name: &str| std::fs::metadata(dir.join(name)).and_then(|found| found.modified()).ok();
        let seen = Some([changed("attempts"), changed("forgotten")]);
        if self.seen != seen {
            (self.row, self.seen) = (look()?, seen);
        }
        questions.splice(0..0, self.row.clone());
        Ok(())
    }
}
