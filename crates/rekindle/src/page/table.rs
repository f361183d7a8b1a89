//! Lists as tables that become cards on a phone: empty columns are left out, and every cell carries its column's name for
//! the card.

use maud::{Markup, html};

/// A column: its name, and its classes.
pub(super) type Column = (&'static str, &'static str);

/// A row. The first cell heads it.
pub(super) struct Line {
    /// Identifies the row when the page changes.
    pub key: String,
    pub class: &'static str,
    /// A state for the style.
    pub state: Option<String>,
    /// Whether it is the one that is shown.
    pub current: bool,
    /// `None` for an empty cell.
    pub cells: Vec<Option<Markup>>,
}

impl Line {
    pub(super) fn new(key: impl ToString, cells: Vec<Option<Markup>>) -> Self {
        Self { key: key.to_string(), class: "", state: None, current: false, cells }
    }
}

/// A list. `caption` describes its contents for people who cannot see it.
pub(super) fn table(label: &str, caption: &str, class: &str, columns: &[Column], lines: &[Line]) -> Markup {
    let filled = |at: usize| lines.iter().any(|line| line.cells.get(at).is_some_and(Option::is_some));
    let shown: Vec<(usize, &Column)> =
        columns.iter().enumerate().filter(|(at, _)| *at == 0 || lines.is_empty() || filled(*at)).collect();
    // The roles are explicit because a style that turns rows into cards removes them in some browsers.
    html! {
        div.scroll.listing tabindex="0" role="region" aria-label=(label) {
            table class={ "rows " (class) } role="table" {
                caption.sr { (caption) }
                thead role="rowgroup" { tr role="row" { @for (_, (name, class)) in &shown {
                    th scope="col" role="columnheader" class=[some(class)] { (name) }
                } } }
                tbody role="rowgroup" { @for line in lines {
                    tr role="row" data-key=(line.key) class=[some(line.class)] data-state=[line.state.as_ref()]
                        aria-current=[line.current.then_some("true")] {
                        @for (at, column) in &shown { (cell(*at, column, line.cells.get(*at).and_then(Option::as_ref))) }
                    }
                } }
            }
        }
    }
}

fn cell(at: usize, (name, class): &Column, content: Option<&Markup>) -> Markup {
    let none = content.is_none().then_some("none");
    let class = [*class, none.unwrap_or_default()].join(" ");
    let class = some(class.trim()).map(str::to_owned);
    match content {
        Some(content) if at == 0 => html! { th scope="row" role="rowheader" class=[class] { (content) } },
        Some(content) => html! { td role="cell" class=[class] data-label=(name) { (content) } },
        None => html! { td role="cell" class=[class] data-label=(name) { span.dim { "–" } } },
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_anything_are_left_out() {
        let text = |text: &str| Some(html! { (text) });
        let columns = [("Task", ""), ("Cost", "r"), ("Time", "r")];
        let lines = [Line::new("a", vec![text("a"), None, text("1s")]), Line::new("b", vec![text("b"), None, None])];
        let shown = table("Tasks", "All tasks", "", &columns, &lines).0;
        assert!(!shown.contains("Cost") && shown.contains(">Time</th>"), "{shown}");
        assert_eq!(shown.matches("<td").count(), 2);
        assert!(shown.contains("data-label=\"Time\"") && shown.contains("class=\"r none\""), "{shown}");
        let empty = table("Tasks", "All tasks", "", &columns, &[]).0;
        assert!(empty.contains("Cost"), "a list without rows says what would be in it: {empty}");
    }
}
