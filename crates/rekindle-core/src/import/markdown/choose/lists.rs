//! Which items of lists and rows of tables are tasks, and which items contain others.

use super::{
    super::{
        fields,
        mark::is_about_order,
        table,
        tree::Kind,
        words::{Rank, Topic, is_order},
    },
    Chooser, Origin, Place, Reach, TaskAt,
};

/// What the items of a list have in common.
#[derive(Clone, Copy)]
struct Kinship {
    /// Only those with boxes are tasks.
    only_boxes: bool,
    /// They only name groups.
    names: bool,
}

impl Chooser<'_, '_> {
    pub(super) fn list(&mut self, list: usize, place: Place, lead: Topic) {
        let items: Vec<usize> = self.tree.children(list).collect();
        let boxed = |item: &usize| matches!(self.tree.node(*item).kind, Kind::Item { ticked: Some(_), .. });
        let boxes = items.iter().filter(|item| boxed(item)).count();
        let marked = items
            .iter()
            .filter(|item| {
                matches!(self.marks[**item].rank, Some(Rank::Task | Rank::Step | Rank::Id | Rank::Group))
                    && !self.marks[**item].label.is_empty()
                    && !is_about_order(&self.marks[**item].title.to_lowercase())
            })
            .count();
        let nested_boxes = || self.tree.below(list).iter().any(boxed);
        let ordered = matches!(self.tree.node(list).kind, Kind::List { first: Some(_) });
        if matches!(lead, Topic::About(_) | Topic::Context) {
            return self.pass_over(list, "a list".to_owned());
        }
        if place.wishes && self.reach == Reach::Wishes && boxes == 0 {
            return self.pass_over(list, "a list".to_owned());
        }
        let wanted = place.lists || lead == Topic::Tasks;
        let reached = ordered && self.reach >= Reach::Ordered || self.reach >= Reach::Bullets;
        // If headings are the tasks, a list elsewhere is not, unless the document says so.
        if self.headings_are_tasks && !place.lists && lead != Topic::Tasks {
            return self.pass_over(list, "a list".to_owned());
        }
        if !(boxes > 0 || marked * 2 > items.len() || wanted || reached || nested_boxes()) {
            return self.pass_over(list, "a list".to_owned());
        }
        let names = boxes > 0 && self.only_names(&items);
        let only_boxes = boxes > 0 || !wanted && !reached && marked == 0;
        // `2. Models` over `2.1 Create the user`, without indentation: the first is a group.
        let mut group: Option<(String, usize)> = None;
        for (at, item) in items.iter().enumerate() {
            let label = &self.marks[*item].label;
            if group.as_ref().is_some_and(|(prefix, _)| !label.starts_with(prefix.as_str())) {
                group = None;
            }
            let prefix = format!("{label}.");
            let next = items.get(at + 1).map_or("", |next| self.marks[*next].label.as_str());
            if !label.is_empty() && next.starts_with(&prefix) {
                group = Some((prefix, self.open_group(*item, place)));
                continue;
            }
            let inner = group.as_ref().map_or(place.group, |(_, group)| Some(*group));
            self.item(*item, Place { group: inner, ..place }, Kinship { only_boxes, names });
        }
    }

    /// Whether items with boxes only name what their inner items do: `Contacts` over `Merge duplicate contacts by address`.
    fn only_names(&self, items: &[usize]) -> bool {
        let words = |item: &usize| self.marks[*item].title.split_whitespace().count();
        let inner = |item: &usize| -> Vec<usize> {
            self.tree.children(*item).flat_map(|list| self.tree.children(list).collect::<Vec<_>>()).collect()
        };
        let all: Vec<usize> = items.iter().flat_map(inner).collect();
        let (outer, below): (usize, usize) = (items.iter().map(words).sum(), all.iter().map(words).sum());
        let orders = items.iter().any(|item| is_order(&self.marks[*item].title));
        let boxed = |item: &usize| matches!(self.tree.node(*item).kind, Kind::Item { ticked: Some(_), .. });
        !orders
            && items.iter().all(|item| inner(item).iter().any(boxed))
            && below * items.len() >= 2 * outer * all.len()
    }

    fn item(&mut self, item: usize, place: Place, kinship: Kinship) {
        let mark = &self.marks[item];
        let node = self.tree.node(item);
        let Kind::Item { number, ticked } = node.kind else { return };
        // `[ ]*` is not a box in Markdown, but it is to its authors.
        let boxed = ticked.is_some() || node.text.starts_with("[ ]");
        let lists: Vec<usize> =
            self.tree.children(item).filter(|child| matches!(self.tree.node(*child).kind, Kind::List { .. })).collect();
        let inner: Vec<usize> = lists.iter().flat_map(|list| self.tree.children(*list)).collect();
        let label =
            if mark.label.is_empty() { number.map(|n| n.to_string()).unwrap_or_default() } else { mark.label.clone() };
        let extends = |inner: &usize| !label.is_empty() && self.marks[*inner].label.starts_with(&format!("{label}."));
        let inner_boxed =
            inner.iter().any(|inner| matches!(self.tree.node(*inner).kind, Kind::Item { ticked: Some(_), .. }));
        let inner_marked = inner.iter().any(|inner| {
            matches!(self.marks[*inner].rank, Some(Rank::Task | Rank::Id)) && mark.rank != Some(Rank::Task)
        });
        let holds = mark.rank == Some(Rank::Group) && !inner.is_empty() || !boxed && inner_boxed || inner_marked;
        // What numbered items say about themselves does not apply to the item that contains them.
        let numbered = inner.iter().any(extends) || kinship.names;
        if numbered || holds && !fields::has_any(self.tree, item) {
            let found = self.out.tasks.len();
            let group = self.open_group(item, place);
            for list in lists {
                self.list(list, Place { lists: true, headings: false, group: Some(group), ..place }, Topic::Open);
            }
            if self.out.tasks.len() > found {
                return;
            }
            self.out.groups.truncate(group);
        }
        if kinship.only_boxes && !boxed {
            let note = format!("`{}` has no box like the items beside it; it was kept as text", mark.title);
            self.out.notes.push((node.line, note));
            return;
        }
        self.task(item, place);
    }

    pub(super) fn table(&mut self, table: usize, place: Place, lead: Topic) {
        let too_early = place.wishes && self.reach == Reach::Wishes;
        if matches!(lead, Topic::About(_) | Topic::Context) || too_early {
            return self.pass_over(table, "a table".to_owned());
        }
        let wanted = place.lists || lead == Topic::Tasks;
        let rows: Vec<usize> = self.tree.children(table).collect();
        let cells =
            |row: &usize| if let Kind::Row(cells) = &self.tree.node(*row).kind { cells.clone() } else { Vec::new() };
        let Some((head, body)) = rows.split_first() else {
            return;
        };
        let Some(columns) = table::columns(&cells(head), wanted) else {
            return self.pass_over(table, "a table".to_owned());
        };
        for row in body {
            if let Some((mark, row_of)) = columns.row(&cells(row)) {
                self.out.tasks.push(TaskAt {
                    node: *row,
                    mark,
                    group: place.group,
                    origin: Origin::Row(row_of),
                    row_after: None,
                });
            }
        }
    }
}
