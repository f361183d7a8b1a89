//! `rekindle status T3`: one task, its attempts one line each, and the last output of an agent that failed.

use rekindle_core::ids::TaskId;
use rekindle_core::last_words;
use rekindle_core::text::counted;
use rekindle_core::view::{AttemptRow, number_of};

use crate::commands::Context;
use crate::error::Result;
use crate::picture::{Picture, standing};
use crate::story;
use crate::ui::{Align, Table, Tone, clock_time, elapsed, harmless, one_line};

pub(super) fn show(picture: &Picture, id: &TaskId, context: &Context) -> Result<()> {
    let Some(task) = picture.task(id.as_str()) else { return Ok(()) };
    let (ui, paint) = (&context.ui, context.ui.paint());
    let stands = standing::of(picture, task);
    let used = format!("{} of {} used", task.attempts, counted(task.attempt_limit, "attempt", "attempts"));
    ui.line(&format!("{id} {}: {}, {used}", one_line(&task.title), paint.tone(stands.tone, stands.word)))?;
    if let Some(note) = stands.note {
        ui.line(&one_line(&note))?;
    }
    let mut table = Table::new(&[
        ("ATTEMPT", Align::Right),
        ("BEGAN", Align::Left),
        ("TIME", Align::Right),
        ("AGENT", Align::Left),
        ("END", Align::Left),
    ]);
    for attempt in picture.attempts_of(id) {
        let number = number_of(&picture.attempts, id, attempt.attempt).unwrap_or(0);
        table.row([
            (number.to_string(), None),
            (clock_time(attempt.started_at), None),
            (elapsed(attempt.ended_at.unwrap_or_else(|| picture.until()).since_ms(attempt.started_at)), None),
            (attempt.name.to_string(), None),
            (end(attempt), Some(Tone::of_state(&attempt.state))),
        ]);
    }
    if !table.is_empty() {
        ui.line(&table.render(paint, ui.width()))?;
    }
    for line in task.evidence.iter().flat_map(story::of_checks) {
        ui.line(&format!("  {}", harmless(&line)))?;
    }
    if let Some(output) = picture.outputs.get(id) {
        ui.line(&format!("{}:", output.heading()))?;
        for line in output.shown() {
            ui.line(&format!("  | {line}"))?;
        }
    }
    Ok(())
}

/// How an attempt ended, or its state.
fn end(attempt: &AttemptRow) -> String {
    let cause = attempt.cause.as_deref().filter(|_| attempt.ended_at.is_some());
    let word = cause.unwrap_or(&attempt.state).replace('_', " ");
    last_words::with(&word, attempt.last_words.as_deref())
}
