//! A Markdown document as one tree of blocks: headings own what follows them, lists own items, items own what is indented
//! below them. A paragraph that is bold as a whole is a heading of the lowest level, as people write it. Says what is where;
//! what a block means is decided elsewhere. Built without recursion, and no deeper than [`DEPTH_MAX`].

use std::ops::Range;

use super::mark;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Deepest nesting of lists that is parsed: nobody writes more, and code that walks the tree may recurse.
const DEPTH_MAX: usize = 24;

/// The level of a bold line that serves as a heading: below all real ones.
pub(super) const BOLD_LEVEL: u8 = 7;

/// Longest text of a heading made by underlining: a longer one is a paragraph over a rule.
const UNDERLINED_MAX_CHARS: usize = 120;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// The whole document, or what is ignored.
    Root,
    Heading(u8),
    Paragraph,
    List {
        /// The number it begins with, if it is numbered.
        first: Option<u64>,
    },
    Item {
        number: Option<u64>,
        /// Ticked or not, if it has a box.
        ticked: Option<bool>,
    },
    Code {
        language: String,
    },
    Table,
    /// One row; the first of a table is its head.
    Row(Vec<String>),
    /// Quotes, rules, HTML, front matter.
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The whole block in the source; for a heading, up to the next one of its level.
    pub(super) span: Range<usize>,
    /// Where its own first line or paragraph ends: what follows is below it.
    pub(super) head_end: usize,
    /// Its own text without emphasis; code keeps its backticks, a code block has its content.
    pub(super) text: String,
    /// How many bytes of the text are bold at its start.
    pub(super) bold: usize,
    pub(super) line: usize,
    pub(super) children: Vec<usize>,
}

/// All blocks; the first is the document.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) source: &'a str,
    pub(super) nodes: Vec<Node>,
}

impl<'a> Tree<'a> {
    pub(super) fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    pub(super) fn children(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        self.nodes[index].children.iter().copied()
    }

    /// Everything below one, in the order of the text.
    pub(super) fn below(&self, index: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open: Vec<usize> = self.nodes[index].children.iter().rev().copied().collect();
        while let Some(next) = open.pop() {
            found.push(next);
            open.extend(self.nodes[next].children.iter().rev());
        }
        found
    }

    /// The source below a block's first line, without its common indentation.
    pub(super) fn body(&self, index: usize) -> String {
        let node = self.node(index);
        dedent(&self.source[node.head_end.min(node.span.end)..node.span.end])
    }

    /// The source of a whole block, without the indentation that its later lines share.
    pub(super) fn whole(&self, index: usize) -> String {
        let node = self.node(index);
        let written = self.source[node.span.clone()].trim_end();
        match written.split_once('\n') {
            Some((first, rest)) => format!("{first}\n{}", dedent(rest)),
            None => written.to_owned(),
        }
    }

    /// Whether a block is a heading, real or bold.
    pub(super) fn is_heading(&self, index: usize) -> bool {
        matches!(self.nodes[index].kind, Kind::Heading(_))
    }
}

/// Takes away the indentation that all lines share, and blank lines at both ends.
pub(super) fn dedent(text: &str) -> String {
    let said = text.lines().filter(|line| !line.trim().is_empty());
    let shared = said.map(|line| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or(0);
    let lines: Vec<&str> = text.lines().map(|line| line.get(shared..).unwrap_or("").trim_end()).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

pub(super) fn read(source: &str) -> Tree<'_> {
    let options = Options::ENABLE_TASKLISTS
        | Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut walk = Walk::new(source);
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        let start = char_start(source, range.start);
        let end = char_start(source, range.end).max(start);
        walk.step(event, start..end);
    }
    let blocks = std::mem::take(&mut walk.nodes[0].children);
    let mut tree = Tree { source, nodes: walk.nodes };
    own(&mut tree, &blocks);
    let mut line = 1;
    let mut at = 0;
    let mut order: Vec<usize> = (1..tree.nodes.len()).collect();
    order.sort_by_key(|index| tree.nodes[*index].span.start);
    for index in order {
        let start = tree.nodes[index].span.start;
        line += source[at..start].matches('\n').count();
        at = start;
        tree.nodes[index].line = line;
    }
    tree
}

/// The parser counts a tab as several bytes in places: never trust an offset to be the start of a character.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Hands the blocks of the document to the headings above them.
fn own(tree: &mut Tree<'_>, blocks: &[usize]) {
    let end = tree.source.len();
    // Open headings with their levels, the document below them all.
    let mut open: Vec<(u8, usize)> = vec![(0, 0)];
    for index in blocks {
        split_bold_lead(tree, *index);
        let level = match &tree.nodes[*index].kind {
            Kind::Heading(level) => Some(*level),
            Kind::Paragraph if is_bold_heading(&tree.nodes[*index]) => Some(BOLD_LEVEL),
            Kind::Root
            | Kind::Paragraph
            | Kind::List { .. }
            | Kind::Item { .. }
            | Kind::Code { .. }
            | Kind::Table
            | Kind::Row(_)
            | Kind::Other => None,
        };
        if let Some(level) = level {
            let start = tree.nodes[*index].span.start;
            while open.last().is_some_and(|(above, _)| *above >= level) {
                if let Some((_, closed)) = open.pop() {
                    tree.nodes[closed].span.end = start;
                }
            }
            tree.nodes[*index].kind = Kind::Heading(level);
        }
        if let Some((_, above)) = open.last().copied() {
            tree.nodes[above].children.push(*index);
        }
        if let Some(level) = level {
            open.push((level, *index));
        }
    }
    for (_, left) in open {
        tree.nodes[left].span.end = end;
    }
}

/// `**Task 1: Do this.** With this text behind it.`: the bold beginning is a heading, the rest a paragraph below it.
fn split_bold_lead(tree: &mut Tree<'_>, index: usize) {
    let node = &tree.nodes[index];
    let lead = node.text.get(..node.bold).unwrap_or("").trim().to_owned();
    let marked = mark::take_mark(&lead).is_some_and(|(_, label, title)| !label.is_empty() && !title.is_empty());
    if node.kind != Kind::Paragraph || !marked || is_bold_heading(node) {
        return;
    }
    let written = &tree.source[node.span.clone()];
    let end = ["**", "__"].iter().find_map(|marks| {
        let inner = written.strip_prefix(marks)?;
        inner.find(marks).map(|found| node.span.start + found + 2 * marks.len())
    });
    let Some(end) = end else {
        return;
    };
    let rest = Node {
        kind: Kind::Paragraph,
        span: end..node.span.end,
        head_end: node.span.end,
        text: node.text[node.bold..].trim().to_owned(),
        bold: 0,
        line: 0,
        children: Vec::new(),
    };
    let below = tree.nodes.len();
    tree.nodes.push(rest);
    let node = &mut tree.nodes[index];
    (node.bold, node.head_end) = (lead.len(), end);
    node.text = lead;
    node.children.push(below);
}

/// Whether a paragraph is bold from start to end, or its first line is and ends in a colon.
fn is_bold_heading(node: &Node) -> bool {
    let rest = node.text.get(node.bold..).unwrap_or("");
    node.bold > 0 && (rest.trim_matches([':', ' ', '.', '✅']).is_empty())
}

struct Walk<'a> {
    source: &'a str,
    nodes: Vec<Node>,
    /// Open blocks; `None` for what is below the deepest level or has no block of its own.
    stack: Vec<Option<usize>>,
    /// Numbers that the next items of the open lists have.
    numbers: Vec<Option<u64>>,
    /// How deep in a quote, or the like, the walk is: nothing in there is structure.
    closed: usize,
    strong: usize,
    cell: Option<String>,
}

impl<'a> Walk<'a> {
    fn new(source: &'a str) -> Self {
        let root = Node {
            kind: Kind::Root,
            span: 0..source.len(),
            head_end: 0,
            text: String::new(),
            bold: 0,
            line: 1,
            children: Vec::new(),
        };
        let (stack, numbers) = (vec![Some(0)], Vec::new());
        Walk { source, nodes: vec![root], stack, numbers, closed: 0, strong: 0, cell: None }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "Markdown's own events")]
    fn step(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::TaskListMarker(checked) => self.tick(checked),
            Event::Text(text) => self.say(&text, range),
            Event::Code(code) => self.say(&format!("`{code}`"), range),
            Event::SoftBreak | Event::HardBreak => self.say("\n", range),
            Event::Rule | Event::Html(_) if self.closed == 0 => {
                let node = self.open(Kind::Other, range);
                self.close(node);
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "Markdown's own tags")]
    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        if self.closed > 0 {
            self.closed += 1;
            return;
        }
        let kind = match tag {
            Tag::Heading { level, .. } => self.heading(level, &range),
            Tag::Paragraph => Kind::Paragraph,
            Tag::List(first) => {
                self.numbers.push(first);
                Kind::List { first }
            }
            Tag::Item => {
                let number = self.numbers.last_mut().and_then(|next| {
                    let number = *next;
                    *next = next.map(|n| n.saturating_add(1));
                    number
                });
                Kind::Item { number, ticked: None }
            }
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or("").to_lowercase(),
                    CodeBlockKind::Indented => "indented".to_owned(),
                };
                Kind::Code { language }
            }
            Tag::Table(_) => Kind::Table,
            Tag::TableHead | Tag::TableRow => Kind::Row(Vec::new()),
            Tag::TableCell => {
                self.cell = Some(String::new());
                self.stack.push(None);
                return;
            }
            Tag::Strong => {
                self.strong += 1;
                self.stack.push(None);
                return;
            }
            Tag::Strikethrough => {
                self.say("~~", range);
                self.stack.push(None);
                return;
            }
            Tag::Emphasis | Tag::Link { .. } | Tag::Image { .. } => {
                self.stack.push(None);
                return;
            }
            _ => {
                let node = self.open(Kind::Other, range);
                self.stack.push(node);
                self.closed = 1;
                return;
            }
        };
        let node = self.open(kind, range);
        self.stack.push(node);
    }

    /// A heading, unless it is a paragraph that happens to be above a rule.
    fn heading(&self, level: HeadingLevel, range: &Range<usize>) -> Kind {
        let written = self.source[range.clone()].trim_end();
        let underlined = !written.trim_start().starts_with('#');
        let text = written.rsplit_once('\n').map_or("", |(text, _)| text);
        if underlined && (text.contains('\n') || text.chars().count() > UNDERLINED_MAX_CHARS) {
            return Kind::Paragraph;
        }
        // A heading in a list or a quote has nothing below it.
        if self.stack.len() > 1 { Kind::Paragraph } else { Kind::Heading(level as u8) }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "Markdown's own tags")]
    fn end(&mut self, tag: TagEnd) {
        if self.closed > 1 {
            self.closed -= 1;
            return;
        }
        self.closed = 0;
        match tag {
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.say("~~", 0..0),
            TagEnd::List(_) => {
                self.numbers.pop();
            }
            TagEnd::TableCell => {
                let cell = self.cell.take().unwrap_or_default();
                let row = self.block();
                if let Some(Kind::Row(cells)) = row.map(|row| &mut self.nodes[row].kind) {
                    cells.push(cell.trim().to_owned());
                }
            }
            _ => {}
        }
        let node = self.stack.pop().flatten();
        self.close(node);
    }

    fn open(&mut self, kind: Kind, range: Range<usize>) -> Option<usize> {
        if self.stack.len() > DEPTH_MAX {
            return None;
        }
        let above = self.block()?;
        let written = &self.source[range.clone()];
        // After a tab, the parser reports that an item starts too early.
        let span = range.end - written.trim_start().len()..range.end;
        let index = self.nodes.len();
        let head_end = match kind {
            Kind::Heading(_) | Kind::Paragraph | Kind::Row(_) => span.end,
            Kind::Root | Kind::List { .. } | Kind::Item { .. } | Kind::Code { .. } | Kind::Table | Kind::Other => {
                span.start
            }
        };
        self.nodes.push(Node { kind, span, head_end, text: String::new(), bold: 0, line: 0, children: Vec::new() });
        self.nodes[above].children.push(index);
        Some(index)
    }

    /// An item takes over its first paragraph as its text.
    fn close(&mut self, node: Option<usize>) {
        let Some(index) = node else {
            return;
        };
        if !matches!(self.nodes[index].kind, Kind::Item { .. }) || !self.nodes[index].text.trim().is_empty() {
            return;
        }
        let Some(first) = self.nodes[index].children.first().copied() else {
            return;
        };
        if self.nodes[first].kind == Kind::Paragraph {
            self.nodes[index].text = std::mem::take(&mut self.nodes[first].text);
            self.nodes[index].bold = self.nodes[first].bold;
            self.nodes[index].head_end = self.nodes[first].span.end;
            self.nodes[index].children.remove(0);
        }
    }

    /// The innermost open block; inline marks have none.
    fn block(&self) -> Option<usize> {
        self.stack.iter().rev().find_map(|node| *node)
    }

    fn tick(&mut self, checked: bool) {
        // In a loose list the box is in the item's first paragraph.
        for node in self.stack.iter().rev().flatten() {
            if let Kind::Item { ticked, .. } = &mut self.nodes[*node].kind {
                *ticked = Some(checked);
                return;
            }
        }
    }

    fn say(&mut self, text: &str, range: Range<usize>) {
        if self.closed > 0 {
            return;
        }
        if let Some(cell) = &mut self.cell {
            cell.push_str(text);
            return;
        }
        let Some(index) = self.block() else {
            return;
        };
        let strong = self.strong > 0;
        let node = &mut self.nodes[index];
        // What follows the nested list of an item is not its first line any more.
        if matches!(node.kind, Kind::Item { .. }) && !node.children.is_empty() {
            return;
        }
        if strong && node.bold == node.text.len() {
            node.bold += text.len();
        }
        node.text.push_str(text);
        if matches!(node.kind, Kind::Item { .. }) {
            node.head_end = node.head_end.max(range.end);
        }
    }
}
