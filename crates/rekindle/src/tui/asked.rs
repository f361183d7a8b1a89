//! The question of the chosen row, above the row's detail: a person who chooses a question reads it there, before any box is
//! opened.

use rekindle_core::view::QuestionRow;

use super::app::App;
use super::question::AnswerBox;
use super::tree::Node;
use super::wide;
use crate::ui::Tone;

/// Fewest rows that the detail below a question keeps.
const DETAIL_MIN: u16 = 4;

/// The question of the chosen row.
pub(super) fn question(app: &App) -> Option<&QuestionRow> {
    let Node::Need(_, Some(id)) = &app.tree.chosen()?.node else { return None };
    app.picture.as_ref()?.questions.iter().find(|question| question.id == *id)
}

/// Its rows at this width, at most `most`: the question, what is known about it, the answers to choose from, and how to
/// answer.
pub(super) fn rows(question: &QuestionRow, width: usize, most: usize) -> Vec<(Option<Tone>, String)> {
    let asked = AnswerBox::new(question);
    let text = asked.rows(width).into_iter();
    let mut rows: Vec<(Option<Tone>, String)> = text.map(|(first, row)| (first.then_some(Tone::Strong), row)).collect();
    for (number, option) in (1..).zip(&asked.options) {
        // A longer option is shown above in full.
        rows.push((Some(Tone::Active), wide::cut(&format!("  {number}. {option}"), width)));
    }
    let hidden = (rows.len() + 1).saturating_sub(most);
    let last = match hidden {
        0 => "a answers it".to_owned(),
        1 => "1 more line: a shows it and answers it".to_owned(),
        many => format!("{many} more lines: a shows them and answers it"),
    };
    rows.truncate(most.saturating_sub(1));
    if most > 0 {
        rows.push((Some(Tone::Dim), wide::cut(&last, width)));
    }
    rows
}

/// Rows that the question takes from a detail of this size, including the rule below it.
pub(super) fn height(app: &App, width: u16, height: u16) -> u16 {
    let room = (height / 2).min(height.saturating_sub(DETAIL_MIN));
    let Some(question) = question(app).filter(|_| room >= 3 && width > 0) else { return 0 };
    let rows = rows(question, usize::from(width), usize::from(room - 1)).len();
    u16::try_from(rows + 1).unwrap_or(room)
}
