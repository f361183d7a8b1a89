//! The Markdown structure of a plan as flat tables with byte ranges: top-level blocks, lists and their items. Code fences,
//! quotes and headings inside lists are distinguished here; what a heading or bullet means is decided by the readers. Flat
//! and built without recursion, so that hostile nesting cannot exhaust the stack.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A plan's blocks in the order of the text, with the lists and items that they refer to.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) blocks: Vec<Block>,
    pub(super) lists: Vec<List>,
    pub(super) items: Vec<Item>,
}

/// A block at the top level of the document.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) span: Range<usize>,
    pub(super) kind: BlockKind,
}

/// What a block is, as far as plans care.
#[derive(Debug, Clone)]
pub(super) enum BlockKind {
    /// With the range of its text, marks of the heading excluded.
    Heading { level: u8, text: Range<usize> },
    /// An index into `lists`.
    List(usize),
    /// Paragraphs, code, quotes, rules, HTML.
    Other,
}

#[derive(Debug)]
pub(super) struct List {
    pub(super) ordered: bool,
    /// Indices into `items`, direct members only.
    pub(super) items: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) span: Range<usize>,
    /// The item that this one is nested in, however many lists lie between.
    pub(super) parent: Option<usize>,
    /// `[ ]` or `[x]`.
    pub(super) checkbox: Option<bool>,
    /// Its first paragraph, empty when it begins with something else.
    pub(super) text: Range<usize>,
    /// Lists directly inside of it.
    pub(super) lists: Vec<usize>,
    /// The content of the first code block directly inside of it.
    pub(super) code: Option<String>,
    /// The first block directly inside of it that is none of the above.
    pub(super) other: Option<Range<usize>>,
    /// Whether it is in a quote, so that the plan itself does not say it.
    pub(super) quoted: bool,
    text_ended: bool,
}

/// The walk's position in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Frame {
    /// In a top-level heading, by its block.
    Heading(usize),
    List(usize),
    /// In an item of a list.
    Item(usize),
    /// In a code block, with the item that owns it.
    Code(Option<usize>),
    Paragraph,
    /// In emphasis, a link or the like.
    Inline,
    /// In anything else.
    Other,
}

/// Parses the Markdown of a text from an offset on; all ranges count from the start of the text.
pub(super) fn outline(text: &str, from: usize) -> Outline {
    let mut walk = Walk { text, outline: Outline::default(), stack: Vec::new(), quotes: 0 };
    let events = Parser::new_ext(&text[from..], Options::ENABLE_TASKLISTS).into_offset_iter();
    for (event, range) in events {
        let start = char_start(text, range.start + from);
        let end = char_start(text, range.end + from);
        walk.step(event, start..end.max(start));
    }
    walk.outline
}

/// The parser counts columns as bytes in places, and a tab has several: never trust an offset to be the start of a
/// character.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

struct Walk<'a> {
    text: &'a str,
    outline: Outline,
    stack: Vec<Frame>,
    quotes: usize,
}

impl Walk<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "Markdown's own events")]
    fn step(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::TaskListMarker(checked) => {
                if let Some(item) = self.item_of_text() {
                    self.outline.items[item].checkbox = Some(checked);
                    self.outline.items[item].text = range.end..range.end;
                }
            }
            Event::Rule | Event::Html(_) => self.leaf(range),
            Event::Text(text) => {
                if let Some(Frame::Code(Some(item))) = self.stack.last() {
                    let code = &mut self.outline.items[*item].code;
                    code.get_or_insert_default().push_str(&text);
                }
                self.inline(range);
            }
            _ => self.inline(range),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "Markdown's own tags")]
    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        let frame = match tag {
            Tag::Heading { level, .. } => self.open_heading(level, range),
            Tag::List(first) => self.open_list(first.is_some(), range),
            Tag::Item => self.open_item(range),
            Tag::CodeBlock(_) => self.open_code(range),
            Tag::Paragraph => self.open_paragraph(range),
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. } => {
                self.inline(range);
                Frame::Inline
            }
            tag => {
                if matches!(tag, Tag::BlockQuote(_)) {
                    self.quotes += 1;
                }
                self.leaf(range);
                Frame::Other
            }
        };
        self.stack.push(frame);
    }

    fn end(&mut self, tag: TagEnd) {
        if matches!(tag, TagEnd::BlockQuote(_)) {
            self.quotes = self.quotes.saturating_sub(1);
        }
        let frame = self.stack.pop();
        if let (Some(Frame::Paragraph), Some(Frame::Item(item))) = (frame, self.stack.last()) {
            self.outline.items[*item].text_ended = true;
        }
    }

    fn open_heading(&mut self, level: HeadingLevel, range: Range<usize>) -> Frame {
        if !self.stack.is_empty() {
            self.leaf(range);
            return Frame::Other;
        }
        let kind = BlockKind::Heading { level: level as u8, text: range.start..range.start };
        self.outline.blocks.push(Block { span: range, kind });
        Frame::Heading(self.outline.blocks.len() - 1)
    }

    fn open_list(&mut self, ordered: bool, range: Range<usize>) -> Frame {
        let list = self.outline.lists.len();
        let items = Vec::new();
        self.outline.lists.push(List { ordered, items });
        match self.stack.last() {
            None => self.outline.blocks.push(Block { span: range, kind: BlockKind::List(list) }),
            Some(Frame::Item(item)) => {
                let item = &mut self.outline.items[*item];
                item.lists.push(list);
                item.text_ended = true;
            }
            Some(_) => {}
        }
        Frame::List(list)
    }

    fn open_item(&mut self, range: Range<usize>) -> Frame {
        // After a tab, the parser reports that an item starts too early, up to the end of the line before.
        let written = &self.text[range.clone()];
        let range = range.end - written.trim_start().len()..range.end;
        let index = self.outline.items.len();
        if let Some(Frame::List(list)) = self.stack.last() {
            self.outline.lists[*list].items.push(index);
        }
        let parent = self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Item(item) => Some(*item),
            Frame::Heading(_) | Frame::List(_) | Frame::Code(_) | Frame::Paragraph | Frame::Inline | Frame::Other => {
                None
            }
        });
        self.outline.items.push(Item {
            text: range.start..range.start,
            span: range,
            parent,
            checkbox: None,
            lists: Vec::new(),
            code: None,
            other: None,
            quoted: self.quotes > 0,
            text_ended: false,
        });
        Frame::Item(index)
    }

    fn open_code(&mut self, range: Range<usize>) -> Frame {
        let Some(Frame::Item(item)) = self.stack.last().copied() else {
            self.leaf(range);
            return Frame::Code(None);
        };
        if self.outline.items[item].code.is_some() {
            self.leaf(range);
            return Frame::Code(None);
        }
        self.outline.items[item].code = Some(String::new());
        self.outline.items[item].text_ended = true;
        Frame::Code(Some(item))
    }

    fn open_paragraph(&mut self, range: Range<usize>) -> Frame {
        match self.stack.last() {
            Some(Frame::Item(item)) if !self.outline.items[*item].text_ended => {}
            _ => self.leaf(range),
        }
        Frame::Paragraph
    }

    /// A block without a table of its own: it still ends an item's text, or is at the top level.
    fn leaf(&mut self, range: Range<usize>) {
        match self.stack.last() {
            None => self.outline.blocks.push(Block { span: range, kind: BlockKind::Other }),
            Some(Frame::Item(item)) => {
                let item = &mut self.outline.items[*item];
                item.text_ended = true;
                item.other.get_or_insert(range);
            }
            Some(_) => {}
        }
    }

    /// Something within a line of text: it widens the heading or item that it belongs to.
    fn inline(&mut self, range: Range<usize>) {
        if let Some(Frame::Heading(block)) = self.stack.last() {
            if let BlockKind::Heading { text, .. } = &mut self.outline.blocks[*block].kind {
                widen(text, range);
            }
        } else if let Some(item) = self.item_of_text() {
            let item = &mut self.outline.items[item];
            if !item.text_ended {
                widen(&mut item.text, range);
            }
        }
    }

    /// The item whose own text the walk is in. Inline frames are skipped by their outermost range alone.
    fn item_of_text(&self) -> Option<usize> {
        match self.stack.as_slice() {
            [.., Frame::Item(item)] | [.., Frame::Item(item), Frame::Paragraph] => Some(*item),
            _ => None,
        }
    }
}

fn widen(text: &mut Range<usize>, range: Range<usize>) {
    if text.start == text.end {
        *text = range;
    } else {
        text.start = text.start.min(range.start);
        text.end = text.end.max(range.end);
    }
}
