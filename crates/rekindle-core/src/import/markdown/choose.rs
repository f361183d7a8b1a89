//! Which blocks of a document are its tasks, and which are groups of them. Marks come first (`Task 1`, `2.3`, boxes); what
//! stands under a heading for tasks follows; only if there is nothing of the kind, the reach grows step by step to lists
//! and headings that bear no mark at all. What is passed over is noted with its line.

use super::{
    fields,
    mark::{self, Mark},
    table::{self, Row},
    tree::{Kind, Tree},
    words::{self, About, Rank, Topic},
};

/// How much a document has to say before a block of it is a task; grown until something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Marks, boxes, and what stands under a heading for tasks.
    Marked,
    /// Also marks and boxes among requirements and stories.
    Wishes,
    /// Also the lists of those.
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

/// From what a task was read.
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
    /// What a table elsewhere says that it waits for.
    pub(super) row_after: Option<String>,
}

/// A block that tasks stand in.
#[derive(Debug, Clone)]
pub(super) struct GroupAt {
    pub(super) node: usize,
    pub(super) mark: Mark,
    pub(super) parent: Option<usize>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) title: Option<usize>,
    pub(super) tasks: Vec<TaskAt>,
    pub(super) groups: Vec<GroupAt>,
    /// Lines with what is to be said about them.
    pub(super) notes: Vec<(usize, String)>,
    /// Headings with lists that were passed over: line and words.
    pub(super) passed: Vec<(usize, String)>,
}

/// Finds the tasks of a document.
pub(super) fn choose(tree: &Tree<'_>) -> Chosen {
    let mut marks: Vec<Mark> = tree.nodes.iter().map(|node| mark::read(&node.text, node.bold)).collect();
    count_by_own_words(tree, &mut marks);
    let mut chosen = Chosen::default();
    let steps = [Reach::Wishes, Reach::WishLists, Reach::Ordered, Reach::Orders, Reach::Bullets, Reach::Headings];
    for reach in std::iter::once(Reach::Marked).chain(steps) {
        let mut chooser = Chooser { tree, marks: &marks, reach, out: Chosen::default() };
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

/// What is expected where the walk is.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Lists are tasks, with or without boxes.
    lists: bool,
    /// Headings are tasks, with or without marks.
    headings: bool,
    group: Option<usize>,
}

struct Chooser<'t, 'a> {
    tree: &'t Tree<'a>,
    marks: &'t [Mark],
    reach: Reach,
    out: Chosen,
}

impl Chooser<'_, '_> {
    fn document(&mut self) {
        self.out.title = self.title();
        if let Some(title) = self.out.title {
            // What stands beside the title is read like what stands below it.
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
        let level = |index: &usize| match self.tree.node(*index).kind {
            Kind::Heading(level) => level,
            _ => 0,
        };
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

    /// What the line before a list says that it is.
    fn lead(&self, blocks: &[usize], at: usize) -> Topic {
        let Some(before) = at.checked_sub(1).map(|before| self.tree.node(blocks[before])) else {
            return Topic::Open;
        };
        let line = before.text.lines().last().unwrap_or("").trim();
        if before.kind != Kind::Paragraph || !line.ends_with(':') {
            return Topic::Open;
        }
        let sentence = line.trim_end_matches(':').rsplit(". ").next().unwrap_or("");
        words::topic(sentence)
    }

    fn heading(&mut self, heading: usize, beside: &[usize], place: Place) {
        let mark = self.marks[heading].clone();
        let numbers = mark.rank != Some(Rank::Number) || self.numbers_are_tasks(beside);
        let topic = self.topic(heading, place.headings);
        match (topic, mark.rank) {
            (Topic::Context | Topic::About(_), _) => self.pass(heading),
            (Topic::Wishes, _) if self.reach < Reach::Wishes => self.pass(heading),
            (Topic::Wishes, _) => {
                let lists = self.reach >= Reach::WishLists;
                self.walk(heading, Place { lists, headings: lists, ..place });
            }
            (Topic::Tasks, _) => {
                let found = self.out.tasks.len();
                let inner = !self.marked_below(heading).is_empty();
                self.walk(heading, Place { lists: !inner, headings: true, ..place });
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

    /// What a heading is about. Where tasks are expected, or counted, only by all of its words.
    fn topic(&self, heading: usize, expected: bool) -> Topic {
        let mark = &self.marks[heading];
        let strict = expected || mark.rank.is_some();
        let topic = if strict { words::whole_topic(&mark.title) } else { words::topic(&mark.title) };
        match (mark.rank, topic) {
            (None, topic) => topic,
            // `2. Core features` over `2.1 …` counts, whatever it is called.
            (Some(Rank::Number), Topic::Wishes | Topic::Tasks)
                if self
                    .headings_below(heading)
                    .iter()
                    .any(|inner| self.marks[*inner].label.starts_with(&format!("{}.", mark.label))) =>
            {
                Topic::Open
            }
            // `3. Testing` is a section; `3. Acceptance criteria` speaks of others.
            (Some(Rank::Number), Topic::About(_)) if !mark.title.trim().contains(' ') => Topic::Open,
            (Some(Rank::Number), topic) => topic,
            (Some(_), _) => Topic::Open,
        }
    }

    /// Whether numbers before headings count tasks, and not the sections of a document.
    fn numbers_are_tasks(&self, beside: &[usize]) -> bool {
        let numbered = beside
            .iter()
            .filter(|other| self.tree.is_heading(**other) && self.marks[**other].rank == Some(Rank::Number));
        numbered
            .map(|other| words::whole_topic(&self.marks[*other].title))
            .all(|topic| !matches!(topic, Topic::Context | Topic::Tasks | Topic::Wishes))
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
            () if place.headings => !self.only_lists(heading) || order && !self.has_boxes(heading),
            () if bold => false,
            () => self.reach >= Reach::Orders && order && !self.has_boxes(heading) || self.reach == Reach::Headings,
        };
        if taken {
            if among_marked {
                self.out.notes.push((
                    line,
                    format!(
                        "`{}` bears no number like the tasks beside it; it was taken as one",
                        self.marks[heading].title
                    ),
                ));
            }
            return self.task(heading, place);
        }
        let lists = place.headings && !among_marked;
        let found = self.out.tasks.len();
        let group = self.open_group(heading, place);
        self.walk(heading, Place { lists, headings: false, group: Some(group) });
        if self.out.tasks.len() == found {
            self.out.groups.truncate(group);
            self.pass(heading);
        }
    }

    /// Whether a heading has nothing but lists below it.
    fn only_lists(&self, heading: usize) -> bool {
        let mut children = self.tree.children(heading).peekable();
        children.peek().is_some()
            && children.all(|child| matches!(self.tree.node(child).kind, Kind::List { .. } | Kind::Table))
            && !fields::has_any(self.tree, heading)
    }

    /// Whether a list with boxes stands directly below a heading.
    fn has_boxes(&self, heading: usize) -> bool {
        let children: Vec<usize> = self.tree.children(heading).collect();
        children.iter().enumerate().any(|(at, child)| {
            let free = matches!(self.lead(&children, at), Topic::Open | Topic::Tasks);
            free && self
                .tree
                .children(*child)
                .any(|item| matches!(self.tree.node(item).kind, Kind::Item { ticked: Some(_), .. }))
        })
    }

    fn headings_below(&self, above: usize) -> Vec<usize> {
        self.tree.children(above).filter(|child| self.tree.is_heading(*child)).collect()
    }

    /// The headings below one that are marked as tasks of their own.
    fn marked_below(&self, above: usize) -> Vec<usize> {
        let outer = &self.marks[above];
        let mut found = Vec::new();
        let mut open = self.headings_below(above);
        while let Some(next) = open.pop() {
            match self.topic(next, false) {
                Topic::Context | Topic::About(_) => continue,
                Topic::Wishes if self.reach < Reach::Wishes => continue,
                Topic::Tasks | Topic::Wishes | Topic::Open => {}
            }
            if qualifies(outer, &self.marks[next]) {
                found.push(next);
            }
            open.extend(self.headings_below(next));
        }
        found
    }

    /// Whether a marked heading holds tasks instead of being one.
    fn is_group(&self, heading: usize, rank: Rank) -> bool {
        if !self.marked_below(heading).is_empty() {
            return true;
        }
        let children: Vec<usize> = self.tree.children(heading).collect();
        let about = fields::has_any(self.tree, heading);
        let topics =
            || children.iter().filter(|child| self.tree.is_heading(**child)).map(|child| self.topic(*child, true));
        match rank {
            Rank::Group => {
                let lists = children.iter().enumerate().any(|(at, child)| {
                    let ordered = match self.tree.node(*child).kind {
                        Kind::List { first } => first.is_some(),
                        Kind::Table => true,
                        _ => return false,
                    };
                    matches!(self.lead(&children, at), Topic::Open | Topic::Tasks) && (ordered || !about)
                });
                topics().any(|topic| matches!(topic, Topic::Tasks | Topic::Open)) || self.has_boxes(heading) || lists
            }
            Rank::Number => {
                topics().any(|topic| topic == Topic::Tasks)
                    || !self.marks[heading].label.contains('.') && self.has_boxes(heading) && !about
            }
            Rank::Task | Rank::Step | Rank::Id => false,
        }
    }

    fn open_group(&mut self, node: usize, place: Place) -> usize {
        self.out.groups.push(GroupAt { node, mark: self.marks[node].clone(), parent: place.group });
        self.out.groups.len() - 1
    }

    /// Reads a heading as a group, or as a task when nothing in it is one.
    fn group(&mut self, heading: usize, place: Place) {
        let found = self.out.tasks.len();
        let group = self.open_group(heading, place);
        let marked = !self.marked_below(heading).is_empty();
        let named = self.marks[heading].rank.is_some();
        self.walk(heading, Place { lists: named && !marked, headings: named, group: Some(group) });
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
        if mark.title.trim().is_empty() {
            mark.title = self.tree.node(node).text.lines().next().unwrap_or("").trim().to_owned();
        }
        if mark.title.is_empty() {
            self.out.notes.push((self.tree.node(node).line, "an item without text was left out".to_owned()));
            return;
        }
        self.out.tasks.push(TaskAt { node, mark, group: place.group, origin, row_after: None });
    }

    fn list(&mut self, list: usize, place: Place, lead: Topic) {
        let items: Vec<usize> = self.tree.children(list).collect();
        let boxed = |item: &usize| matches!(self.tree.node(*item).kind, Kind::Item { ticked: Some(_), .. });
        let boxes = items.iter().filter(|item| boxed(item)).count();
        let marked = items
            .iter()
            .filter(|item| {
                matches!(self.marks[**item].rank, Some(Rank::Task | Rank::Step | Rank::Id | Rank::Group))
                    && !self.marks[**item].label.is_empty()
            })
            .count();
        let nested_boxes = || self.tree.below(list).iter().any(boxed);
        let ordered = matches!(self.tree.node(list).kind, Kind::List { first: Some(_) });
        if matches!(lead, Topic::About(_) | Topic::Context) {
            if boxes > 0 || marked > 1 {
                self.out.notes.push((
                    self.tree.node(list).line,
                    format!("{} items below a line that speaks of something else were kept as text", items.len()),
                ));
            }
            return;
        }
        let wanted = place.lists || lead == Topic::Tasks;
        let reached = ordered && self.reach >= Reach::Ordered || self.reach >= Reach::Bullets;
        if !(boxes > 0 || marked * 2 > items.len() || wanted || reached || nested_boxes()) {
            return;
        }
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
            self.item(*item, Place { group: inner, ..place }, only_boxes);
        }
    }

    fn item(&mut self, item: usize, place: Place, only_boxes: bool) {
        let mark = &self.marks[item];
        let node = self.tree.node(item);
        let (number, boxed) = match node.kind {
            Kind::Item { number, ticked } => (number, ticked.is_some()),
            _ => return,
        };
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
        let holds = inner.iter().any(extends)
            || mark.rank == Some(Rank::Group) && !inner.is_empty()
            || !boxed && inner_boxed
            || inner_marked;
        if holds && !fields::has_any(self.tree, item) {
            let found = self.out.tasks.len();
            let group = self.open_group(item, place);
            for list in lists {
                self.list(list, Place { lists: true, headings: false, group: Some(group) }, Topic::Open);
            }
            if self.out.tasks.len() > found {
                return;
            }
            self.out.groups.truncate(group);
        }
        if only_boxes && !boxed {
            if mark.rank.is_some() || words::is_order(&mark.title) {
                self.out.notes.push((
                    node.line,
                    format!("`{}` has no box like the items beside it; it was kept as text", mark.title),
                ));
            }
            return;
        }
        self.task(item, place);
    }

    fn table(&mut self, table: usize, place: Place, lead: Topic) {
        if matches!(lead, Topic::About(_) | Topic::Context) {
            return;
        }
        let wanted = place.lists || lead == Topic::Tasks;
        let rows: Vec<usize> = self.tree.children(table).collect();
        let cells = |row: &usize| match &self.tree.node(*row).kind {
            Kind::Row(cells) => cells.clone(),
            _ => Vec::new(),
        };
        let Some((head, body)) = rows.split_first() else {
            return;
        };
        let Some(columns) = table::columns(&cells(head), wanted) else {
            return;
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

    /// Notes what stands under a heading that is about something else.
    fn pass(&mut self, heading: usize) {
        let node = self.tree.node(heading);
        let below = self.tree.below(heading);
        let listed =
            below.iter().any(|below| matches!(self.tree.node(*below).kind, Kind::Item { .. } | Kind::Heading(_)));
        if listed {
            self.out.passed.push((node.line, self.marks[heading].title.clone()));
        }
    }
}

/// Headings that count with a word in no table (`Aufgabe 1`, `Chantier 2`) count tasks, if several begin with it.
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

/// Whether a heading inside of another is a task of its own, and not a part of one.
fn qualifies(outer: &Mark, inner: &Mark) -> bool {
    let Some(rank) = inner.rank else {
        return false;
    };
    if matches!(words::topic(&inner.title), Topic::About(About::Checks | About::After)) {
        return false;
    }
    let extends = !outer.label.is_empty() && inner.label.starts_with(&format!("{}.", outer.label));
    match (outer.rank, rank) {
        (None | Some(Rank::Group), Rank::Step | Rank::Number | Rank::Task | Rank::Id | Rank::Group) => true,
        (Some(Rank::Number), Rank::Task | Rank::Id | Rank::Number) => true,
        (Some(Rank::Task | Rank::Id), Rank::Task | Rank::Id) => true,
        (Some(Rank::Step), Rank::Task | Rank::Id) => false,
        (Some(_), Rank::Step | Rank::Number | Rank::Group) => extends,
    }
}
