//! Which blocks of a document are its tasks, and which are groups of them. Marks come first (`Task 1`, `2.3`, boxes); what
//! is under a heading for tasks follows; only if there is nothing of the kind, the reach grows step by step to lists and
//! headings without any mark. What is passed over is noted with its line.

mod lists;
mod look;

use super::{
    mark::{self, Mark},
    table::Row,
    tree::{Kind, Tree},
    words::{self, Rank, Topic},
};

/// How much a document has to say before a block of it is a task; grown until something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Marks, boxes, and what is under a heading for tasks.
    Marked,
    /// Also marks and boxes among requirements and stories.
    Wishes,
    /// Also the lists in them.
    WishLists,
    /// Also numbered lists anywhere.
    Ordered,
    /// Also headings that begin with something to do.
    Orders,
    /// Also bullets anywhere.
    Bullets,
    /// Also any heading.
    Headings,
}

/// What a task was read from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    Heading,
    Item,
    Row(Row),
}

/// A block that is a task.
#[derive(Debug, Clone)]
pub(super) struct TaskAt {
    pub(super) node: usize,
    pub(super) mark: Mark,
    /// An index into the groups.
    pub(super) group: Option<usize>,
    pub(super) origin: Origin,
    /// What it waits for according to a table elsewhere.
    pub(super) row_after: Option<String>,
}

/// A block that contains tasks.
#[derive(Debug, Clone)]
pub(super) struct GroupAt {
    pub(super) node: usize,
    pub(super) mark: Mark,
    pub(super) parent: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) title: Option<usize>,
    pub(super) tasks: Vec<TaskAt>,
    pub(super) groups: Vec<GroupAt>,
    /// Lines with the notes about them.
    pub(super) notes: Vec<(usize, String)>,
    /// What was passed over: first and last line, and its name.
    pub(super) passed: Vec<(usize, usize, String)>,
}

/// Finds the tasks of a document.
pub(super) fn choose(tree: &Tree<'_>) -> Chosen {
    let mut marks: Vec<Mark> = tree.nodes.iter().map(|node| mark::read(&node.text, node.bold)).collect();
    count_by_own_words(tree, &mut marks);
    let mut chosen = Chosen::default();
    let steps = [Reach::Wishes, Reach::WishLists, Reach::Ordered, Reach::Orders, Reach::Bullets, Reach::Headings];
    for reach in std::iter::once(Reach::Marked).chain(steps) {
        let mut chooser = Chooser { tree, marks: &marks, reach, headings_are_tasks: false, out: Chosen::default() };
        chooser.headings_are_tasks = chooser.heading_tasks(0) > 1;
        chooser.document();
        chosen = chooser.out;
        if !chosen.tasks.is_empty() {
            if reach != Reach::Marked {
                let what = match reach {
                    Reach::Marked | Reach::Wishes | Reach::WishLists => "requirements and stories",
                    Reach::Ordered => "numbered items",
                    Reach::Bullets => "bullets",
                    Reach::Orders | Reach::Headings => "headings",
                };
                let line = chosen.tasks.first().map_or(1, |task| tree.node(task.node).line);
                chosen.notes.insert(0, (line, format!("nothing is marked as a task; the {what} were taken")));
            }
            break;
        }
    }
    chosen
}

/// What is expected at the current position of the walk.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Lists are tasks, with or without boxes.
    lists: bool,
    /// Headings are tasks, with or without marks.
    headings: bool,
    /// Requirements and stories are here.
    wishes: bool,
    group: Option<usize>,
}

struct Chooser<'t, 'a> {
    tree: &'t Tree<'a>,
    marks: &'t [Mark],
    reach: Reach,
    /// Several headings are tasks by their marks.
    headings_are_tasks: bool,
    out: Chosen,
}

impl Chooser<'_, '_> {
    fn document(&mut self) {
        self.out.title = self.title();
        if let Some(title) = self.out.title {
            // What is beside the title is read like what is below it.
            let beside: Vec<usize> = self.tree.children(0).filter(|child| *child != title).collect();
            self.walk(title, Place::default());
            self.blocks(&beside, Place::default());
        } else {
            self.walk(0, Place::default());
        }
        self.out.tasks.sort_by_key(|task| self.tree.node(task.node).span.start);
    }

    /// The heading that names the document: the first, if no other has its level or it bears no mark.
    fn title(&self) -> Option<usize> {
        let headings: Vec<usize> = self.tree.children(0).filter(|child| self.tree.is_heading(*child)).collect();
        let first = *headings.first()?;
        let level = |index: &usize| if let Kind::Heading(level) = self.tree.node(*index).kind { level } else { 0 };
        let alike: Vec<&usize> = headings.iter().filter(|other| level(other) == level(&first)).collect();
        let rank = self.marks[first].rank;
        let real = level(&first) < super::tree::BOLD_LEVEL;
        let names = match alike.len() {
            1 => !matches!(rank, Some(Rank::Task | Rank::Step)) || !self.headings_below(first).is_empty(),
            _ => {
                rank.is_none() && alike[1..].iter().any(|other| self.marks[**other].rank.is_some())
                    || level(&first) == 1 && rank.is_none()
            }
        };
        (real && names).then_some(first)
    }

    fn walk(&mut self, above: usize, place: Place) {
        let blocks: Vec<usize> = self.tree.children(above).collect();
        self.blocks(&blocks, place);
    }

    fn blocks(&mut self, blocks: &[usize], place: Place) {
        for (at, block) in blocks.iter().enumerate() {
            match &self.tree.node(*block).kind {
                Kind::Heading(_) => self.heading(*block, blocks, place),
                Kind::List { .. } => self.list(*block, place, self.lead(blocks, at)),
                Kind::Table => self.table(*block, place, self.lead(blocks, at)),
                Kind::Root | Kind::Paragraph | Kind::Item { .. } | Kind::Code { .. } | Kind::Row(_) | Kind::Other => {}
            }
        }
    }

    fn heading(&mut self, heading: usize, beside: &[usize], place: Place) {
        let mark = self.marks[heading].clone();
        let numbers = mark.rank != Some(Rank::Number) || self.numbers_are_tasks(beside);
        let topic = self.topic(heading, place.headings);
        match (topic, mark.rank) {
            // Whatever the section's name, a block called a task is one, unless the document says that it is left out.
            (Topic::Context, _) if !words::is_left_out(&mark.title) && self.names_tasks(heading) => {
                self.walk(heading, Place { lists: false, headings: false, ..place });
            }
            (Topic::Context | Topic::About(_), _) => self.pass(heading),
            (Topic::Wishes, _) if self.reach < Reach::Wishes => self.pass(heading),
            (Topic::Wishes, _) => {
                let lists = self.reach >= Reach::WishLists;
                if lists && self.is_told_elsewhere(heading) {
                    return self.pass(heading);
                }
                self.walk(heading, Place { lists, headings: lists, wishes: true, ..place });
            }
            (Topic::Tasks, _) => {
                let found = self.out.tasks.len();
                let inner = !self.marked_below(heading).is_empty();
                // `Next steps` after the tasks are about something else.
                let lists = !inner && (!self.headings_are_tasks || self.has_boxes(heading));
                self.walk(heading, Place { lists, headings: true, ..place });
                if self.out.tasks.len() == found && mark.rank.is_some() && numbers {
                    self.task(heading, place);
                }
            }
            (Topic::Open, Some(rank)) if numbers => {
                if self.is_group(heading, rank) {
                    self.group(heading, place);
                } else {
                    self.task(heading, place);
                }
            }
            (Topic::Open, _) => self.plain(heading, beside, place),
        }
    }

    /// A heading without a mark.
    fn plain(&mut self, heading: usize, beside: &[usize], place: Place) {
        let order = words::is_order(&self.marks[heading].title);
        let marked = |other: &&usize| {
            self.tree.is_heading(**other)
                && self.marks[**other].rank.is_some()
                && self.topic(**other, true) == Topic::Open
        };
        let among_marked = beside.iter().filter(marked).count() > 0 && self.numbers_are_tasks(beside);
        let line = self.tree.node(heading).line;
        let bold = self.tree.node(heading).kind == Kind::Heading(super::tree::BOLD_LEVEL);
        if !self.marked_below(heading).is_empty() {
            return self.group(heading, place);
        }
        let taken = match () {
            () if among_marked => order && !bold,
            () if place.headings => !self.are_groups(beside) && !self.has_boxes(heading),
            () if bold => false,
            // Without any mark, headings that say what to do are tasks, and so are those beside them.
            () if self.has_boxes(heading) || self.holds_headings(heading) => false,
            () => self.reach >= Reach::Orders && self.mostly_orders(beside) || self.reach == Reach::Headings,
        };
        if taken {
            if among_marked {
                self.out.notes.push((
                    line,
                    format!(
                        "`{}` has no number like the tasks beside it; it was taken as a task",
                        self.marks[heading].title
                    ),
                ));
            }
            return self.task(heading, place);
        }
        let lists = place.headings && !among_marked;
        let found = self.out.tasks.len();
        let group = self.open_group(heading, place);
        self.walk(heading, Place { lists, headings: false, group: Some(group), ..place });
        if self.out.tasks.len() == found {
            self.out.groups.truncate(group);
            self.pass(heading);
        }
    }

    fn open_group(&mut self, node: usize, place: Place) -> usize {
        self.out.groups.push(GroupAt { node, mark: self.marks[node].clone(), parent: place.group });
        self.out.groups.len() - 1
    }

    /// Reads a heading as a group, or as a task if it contains none.
    fn group(&mut self, heading: usize, place: Place) {
        let found = self.out.tasks.len();
        let group = self.open_group(heading, place);
        let marked = !self.marked_below(heading).is_empty();
        let named = self.marks[heading].rank.is_some();
        self.walk(heading, Place { lists: named && !marked, headings: named, group: Some(group), ..place });
        if self.out.tasks.len() == found {
            self.out.groups.truncate(group);
            if named {
                self.task(heading, place);
            }
        }
    }

    fn task(&mut self, node: usize, place: Place) {
        let mut mark = self.marks[node].clone();
        if let Kind::Item { number, ticked } = self.tree.node(node).kind {
            mark.done |= ticked == Some(true);
            if mark.label.is_empty()
                && let Some(number) = number
            {
                mark.rank = Some(Rank::Number);
                mark.label = number.to_string();
            }
        }
        if mark.struck && !mark.done {
            let note = format!("`{}` is struck out; it was left out", mark.title);
            self.out.notes.push((self.tree.node(node).line, note));
            return;
        }
        let origin = if self.tree.is_heading(node) { Origin::Heading } else { Origin::Item };
        if origin == Origin::Item {
            mark.title = mark::short(&mark.title).to_owned();
        }
        if mark.title.trim().is_empty() {
            mark.title = self.tree.node(node).text.lines().next().unwrap_or("").trim().to_owned();
        }
        if mark.title.is_empty() {
            self.out.notes.push((self.tree.node(node).line, "an item without text was left out".to_owned()));
            return;
        }
        self.out.tasks.push(TaskAt { node, mark, group: place.group, origin, row_after: None });
    }

    /// Notes a heading that is not a task, with what is below it, if any of it could be taken for one.
    fn pass(&mut self, heading: usize) {
        let below = self.tree.below(heading);
        let listed =
            |below: &usize| matches!(self.tree.node(*below).kind, Kind::Item { .. } | Kind::Heading(_) | Kind::Row(_));
        if below.iter().any(listed) || self.topic(heading, true) == Topic::Open {
            self.pass_over(heading, self.marks[heading].title.clone());
        }
    }

    fn pass_over(&mut self, node: usize, name: String) {
        let first = self.tree.node(node).line;
        let lines = self.tree.source[self.tree.node(node).span.clone()].trim_end().matches('\n').count();
        self.out.passed.push((first, first + lines, name));
    }
}

/// Headings numbered with a word that is in no table (`Aufgabe 1`, `Chantier 2`) count as tasks, if several start with it.
fn count_by_own_words(tree: &Tree<'_>, marks: &mut [Mark]) {
    let counted = |index: usize| {
        let node = tree.node(index);
        let is_heading = tree.is_heading(index) && marks[index].rank.is_none();
        is_heading.then(|| mark::counted(&node.text)).flatten().filter(|(word, _)| words::may_count(word))
    };
    let found: Vec<(usize, String, Mark)> =
        (1..tree.nodes.len()).filter_map(|index| counted(index).map(|(word, mark)| (index, word, mark))).collect();
    for (index, word, mark) in &found {
        if found.iter().filter(|(_, other, _)| other == word).count() > 1 {
            marks[*index] = mark.clone();
        }
    }
}
