//! Aligned columns that adapt to the terminal: the last column is truncated first, and a truncation is marked.

use super::{Paint, Tone, cut, one_line, width_of};

/// Smallest width that the last column is truncated to; below that, lines wrap instead.
const LAST_MIN: usize = 10;

/// Spaces between two columns.
const GAP: &str = "  ";

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Rows of equal length under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<(String, Option<Tone>)>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; its cells are made harmless and put on one line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Option<Tone>)>) {
        let harmless: Vec<_> = cells.into_iter().map(|(text, tone)| (one_line(&text), tone)).collect();
        debug_assert_eq!(harmless.len(), self.columns.len(), "a row has a cell for every column");
        self.rows.push(harmless);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn render(&self, paint: Paint, width: usize) -> String {
        let widths = self.widths(width);
        let heading = self.columns.iter().map(|(name, _)| ((*name).to_owned(), Some(Tone::Dim)));
        let heading: Vec<_> = heading.collect();
        let mut lines = vec![self.line(&heading, &widths, paint)];
        lines.extend(self.rows.iter().map(|row| self.line(row, &widths, paint)));
        lines.join("\n")
    }

    fn widths(&self, terminal: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| width_of(name)).collect();
        for row in &self.rows {
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(width_of(text));
            }
        }
        if let Some((last, fixed)) = widths.split_last_mut() {
            let taken: usize = fixed.iter().map(|width| width + GAP.len()).sum();
            *last = (*last).min(terminal.saturating_sub(taken).max(LAST_MIN));
        }
        widths
    }

    fn line(&self, row: &[(String, Option<Tone>)], widths: &[usize], paint: Paint) -> String {
        let cells = row.iter().zip(widths).zip(&self.columns);
        let line = cells
            .map(|(((text, tone), width), (_, align))| {
                let text = cut(text, *width);
                let pad = " ".repeat(width.saturating_sub(width_of(&text)));
                let text = tone.map_or_else(|| text.clone(), |tone| paint.tone(tone, &text));
                match align {
                    Align::Left => format!("{text}{pad}"),
                    Align::Right => format!("{pad}{text}"),
                }
            })
            .collect::<Vec<_>>()
            .join(GAP);
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_gives_way() {
        let mut table = Table::new(&[("TASK", Align::Left), ("TRIES", Align::Right), ("NOTE", Align::Left)]);
        table.row([("T1".into(), None), ("1/3".into(), None), ("short".into(), None)]);
        table.row([("日本".into(), None), ("12/3".into(), None), ("a note\nthat is far too long".into(), None)]);
        insta::assert_snapshot!(table.render(Paint::OFF, 30), @r"
        TASK  TRIES  NOTE
        T1      1/3  short
        日本   12/3  a note that is f…
        ");
    }
}
