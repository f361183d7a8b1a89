//! What is known about a heading before its kind is decided: its topic, its marks, what is below and beside it.

use super::{
    super::{
        fields,
        mark::Mark,
        tree::{BOLD_LEVEL, Kind},
        words::{self, About, Rank, Topic},
    },
    Chooser, Reach,
};

impl Chooser<'_, '_> {
    /// What the line before a list says about it.
    pub(super) fn lead(&self, blocks: &[usize], at: usize) -> Topic {
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

    /// Stories say why, requirements say what: where both are only lists, the requirements are the tasks.
    pub(super) fn is_told_elsewhere(&self, heading: usize) -> bool {
        let is_story = |index: usize| words::plain(&self.marks[index].title).contains("stor");
        let has_list = |index: usize| {
            self.tree
                .below(index)
                .iter()
                .any(|below| matches!(self.tree.node(*below).kind, Kind::List { .. } | Kind::Table))
        };
        let other = |index: &usize| {
            self.tree.is_heading(*index)
                && self.topic(*index, false) == Topic::Wishes
                && !is_story(*index)
                && has_list(*index)
        };
        is_story(heading) && (1..self.tree.nodes.len()).any(|index| other(&index))
    }

    /// What a heading is about. Where tasks are expected, or numbered, all of its words must match.
    pub(super) fn topic(&self, heading: usize, expected: bool) -> Topic {
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
            // `3. Testing` is a section; `3. Acceptance criteria` is about others.
            (Some(Rank::Number), Topic::About(_)) if !mark.title.trim().contains(' ') => Topic::Open,
            (Some(Rank::Number), topic) => topic,
            (Some(_), _) => Topic::Open,
        }
    }

    /// Whether numbers before headings count tasks, and not the sections of a document.
    pub(super) fn numbers_are_tasks(&self, beside: &[usize]) -> bool {
        let numbered = beside
            .iter()
            .filter(|other| self.tree.is_heading(**other) && self.marks[**other].rank == Some(Rank::Number));
        numbered
            .map(|other| words::whole_topic(&self.marks[*other].title))
            .all(|topic| !matches!(topic, Topic::Context | Topic::Tasks | Topic::Wishes))
    }

    /// How many headings below one are tasks by their marks alone.
    pub(super) fn heading_tasks(&self, above: usize) -> usize {
        let beside: Vec<usize> = self.tree.children(above).collect();
        let numbers = self.numbers_are_tasks(&beside);
        let count = |heading: &usize| match (self.topic(*heading, false), self.marks[*heading].rank) {
            (Topic::Context | Topic::About(_), _) => 0,
            (Topic::Wishes, _) if self.reach < Reach::Wishes => 0,
            (Topic::Open, Some(rank))
                if rank != Rank::Group && (numbers || rank != Rank::Number) && !self.is_group(*heading, rank) =>
            {
                1
            }
            (Topic::Open | Topic::Tasks | Topic::Wishes, _) => self.heading_tasks(*heading),
        };
        self.headings_below(above).iter().map(count).sum()
    }

    /// Whether headings below one are called tasks by word and number.
    pub(super) fn names_tasks(&self, heading: usize) -> bool {
        let named = |inner: &usize| {
            let mark = &self.marks[*inner];
            matches!(mark.rank, Some(Rank::Task | Rank::Step | Rank::Id)) && !mark.label.is_empty()
        };
        self.headings_below(heading).iter().any(named)
    }

    /// The headings among some blocks that have no mark and are not about anything else.
    pub(super) fn plain_headings<'s>(&'s self, beside: &'s [usize]) -> impl Iterator<Item = usize> + 's {
        let plain =
            beside.iter().copied().filter(|other| self.tree.is_heading(*other) && self.marks[*other].rank.is_none());
        plain.filter(|other| self.topic(*other, true) == Topic::Open)
    }

    pub(super) fn holds_headings(&self, heading: usize) -> bool {
        let children: Vec<usize> = self.tree.children(heading).collect();
        let bold = Kind::Heading(BOLD_LEVEL);
        self.plain_headings(&children).any(|inner| self.tree.node(inner).kind != bold)
    }

    pub(super) fn mostly_orders(&self, beside: &[usize]) -> bool {
        let orders = self.plain_headings(beside).filter(|other| words::is_order(&self.marks[*other].title)).count();
        orders > 0 && orders * 2 >= self.plain_headings(beside).count()
    }

    /// Whether headings without marks contain tasks: all of them have only lists below, and none says what to do.
    pub(super) fn are_groups(&self, beside: &[usize]) -> bool {
        let holds = |other: usize| self.only_lists(other) && !words::is_order(&self.marks[other].title);
        self.plain_headings(beside).all(holds)
    }

    /// Whether a heading has nothing but lists below it.
    pub(super) fn only_lists(&self, heading: usize) -> bool {
        let mut children = self.tree.children(heading).peekable();
        children.peek().is_some()
            && children.all(|child| matches!(self.tree.node(child).kind, Kind::List { .. } | Kind::Table))
            && !fields::has_any(self.tree, heading)
    }

    /// Whether a list with boxes is directly below a heading.
    pub(super) fn has_boxes(&self, heading: usize) -> bool {
        let children: Vec<usize> = self.tree.children(heading).collect();
        children.iter().enumerate().any(|(at, child)| {
            let free = matches!(self.lead(&children, at), Topic::Open | Topic::Tasks);
            free && self
                .tree
                .children(*child)
                .any(|item| matches!(self.tree.node(item).kind, Kind::Item { ticked: Some(_), .. }))
        })
    }

    pub(super) fn headings_below(&self, above: usize) -> Vec<usize> {
        self.tree.children(above).filter(|child| self.tree.is_heading(*child)).collect()
    }

    /// The headings below one that are marked as tasks of their own.
    pub(super) fn marked_below(&self, above: usize) -> Vec<usize> {
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

    /// Whether a marked heading contains tasks instead of being one.
    pub(super) fn is_group(&self, heading: usize, rank: Rank) -> bool {
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
                        Kind::Root
                        | Kind::Heading(_)
                        | Kind::Paragraph
                        | Kind::Item { .. }
                        | Kind::Code { .. }
                        | Kind::Row(_)
                        | Kind::Other => return false,
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
