//! Tables of tasks: what each column means, and what a row says with them. Only its head makes a table one of tasks.

use super::{
    mark::{self, Mark},
    words::{self, About},
};

/// Heads of a column that names tasks.
const TASKS: [&str; 14] = [
    "task",
    "tasks",
    "story",
    "user story",
    "requirement",
    "step",
    "work item",
    "action",
    "feature",
    "ticket",
    "todo",
    "what to do",
    "work",
    "activity",
];

/// Heads of a column that may name anything.
const NAMES: [&str; 7] = ["title", "name", "description", "item", "what", "summary", "deliverable"];

/// Heads of a column with ids.
const IDS: [&str; 7] = ["id", "no", "nr", "number", "key", "ref", "task id"];

/// What a row says besides its title.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    pub(super) after: Option<String>,
    pub(super) checks: Option<String>,
    /// The whole row, one `Head: cell` per line.
    pub(super) text: String,
}

/// Which column has what.
pub(super) struct Columns {
    heads: Vec<String>,
    id: Option<usize>,
    title: usize,
    after: Option<usize>,
    status: Option<usize>,
    checks: Option<usize>,
    parallel: Option<usize>,
}

/// The columns of a table of tasks; `None` if it is a table of something else. `wanted`: it is where tasks are expected.
pub(super) fn columns(heads: &[String], wanted: bool) -> Option<Columns> {
    let plain: Vec<String> = heads.iter().map(|head| words::plain(head)).collect();
    let named = |names: &[&str]| plain.iter().position(|head| names.contains(&head.as_str()));
    let about = |wanted: About| heads.iter().position(|head| words::about(head) == Some(wanted));
    let id = named(&IDS).or_else(|| heads.iter().position(|head| head.trim() == "#"));
    let (after, status, checks) = (about(About::After), about(About::Status), about(About::Checks));
    let strong = named(&TASKS);
    let weak = named(&NAMES);
    let told = after.is_some() || id.is_some() && (status.is_some() || checks.is_some());
    let title = match (strong, weak) {
        // `Task | Description`: the first is the id if it contains only numbers, which the rows show.
        (Some(task), _) => task,
        (None, Some(name)) if told || wanted => name,
        (None, None) if wanted && id.is_some() => (0..heads.len()).find(|column| Some(*column) != id)?,
        (None, _) => return None,
    };
    let parallel = about(About::Parallel);
    Some(Columns { heads: heads.to_vec(), id: id.filter(|id| *id != title), title, after, status, checks, parallel })
}

impl Columns {
    /// A row as a task; `None` if its title is empty.
    pub(super) fn row(&self, cells: &[String]) -> Option<(Mark, Row)> {
        let cell = |column: Option<usize>| column.and_then(|column| cells.get(column)).map_or("", |cell| cell.trim());
        let mut mark = mark::read(cell(Some(self.title)), 0);
        // `| Task 1 | Set up |`: the column named after the task contains only its number.
        if mark.title.is_empty() || mark::take_mark(cell(Some(self.title))).is_some_and(|(_, _, rest)| rest.is_empty())
        {
            let next = (0..cells.len()).find(|column| {
                *column != self.title
                    && Some(*column) != self.id
                    && words::about(self.heads.get(*column).map_or("", |h| h))
                        .is_none_or(|about| about == About::Detail)
            });
            let numbered = mark;
            mark = mark::read(cell(next), 0);
            (mark.rank, mark.label) = (numbered.rank, numbered.label);
        }
        let id = cell(self.id).trim_matches(['`', '*', '.', '#']);
        if !id.is_empty() {
            match mark::take_mark(id).filter(|(_, _, rest)| rest.is_empty()) {
                Some((rank, label, _)) => (mark.rank, mark.label) = (Some(rank), label),
                None => (mark.rank, mark.label) = (Some(words::Rank::Id), id.to_owned()),
            }
        }
        if mark.title.is_empty() {
            return None;
        }
        mark.done |= self.status.is_some() && words::is_done(cell(self.status));
        let parallel = cell(self.parallel).to_lowercase();
        mark.parallel |=
            self.parallel.is_some() && matches!(parallel.as_str(), "yes" | "y" | "true" | "x" | "✅" | "✓");
        let said = self.heads.iter().zip(cells).filter(|(_, cell)| !cell.trim().is_empty());
        let text: Vec<String> = said.map(|(head, cell)| format!("{}: {cell}", head.trim())).collect();
        let given = |column: Option<usize>| column.map(|_| cell(column).to_owned());
        Some((mark, Row { after: given(self.after), checks: given(self.checks), text: text.join("\n") }))
    }
}
