//! What is said about a task below its title under a label: `Depends on: …`, `**Verification**`, a heading of its own. Finds
//! labels and what belongs to them; what a value means is decided elsewhere.

use super::{
    mark,
    tree::{Kind, Tree},
    words::{self, About},
};

/// Maximum number of words in a label: a longer beginning is a sentence.
const LABEL_MAX_WORDS: usize = 7;

/// Labels that need no colon where a sentence begins with them.
const PHRASES: [&str; 14] = [
    "done when",
    "done if",
    "complete when",
    "depends on",
    "blocked by",
    "verified by",
    "verify with",
    "verify by",
    "tested by",
    "starts after",
    "test with",
    "check with",
    "fertig wenn",
    "fertig, wenn",
];

/// A label with what belongs to it.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) about: About,
    /// The text on its line.
    pub(super) value: String,
    /// The blocks below it.
    pub(super) blocks: Vec<usize>,
    pub(super) line: usize,
}

/// All labels below a block.
pub(super) fn of(tree: &Tree<'_>, node: usize) -> Vec<Field> {
    let mut fields = Vec::new();
    if let Kind::Item { .. } = tree.node(node).kind {
        in_text(&tree.node(node).text, tree.node(node).line, &mut fields);
    }
    let children: Vec<usize> = tree.children(node).collect();
    gather(tree, &children, &mut fields);
    fields
}

/// Whether a block has a label of its own that only tasks have.
pub(super) fn has_any(tree: &Tree<'_>, node: usize) -> bool {
    of(tree, node).iter().any(|field| matches!(field.about, About::After | About::Checks))
}

fn gather(tree: &Tree<'_>, blocks: &[usize], fields: &mut Vec<Field>) {
    for (at, block) in blocks.iter().enumerate() {
        let node = tree.node(*block);
        match &node.kind {
            Kind::Heading(_) => {
                let title = mark::read(&node.text, 0).title;
                match words::about(&title) {
                    Some(about) => {
                        // A heading about the order covers only its first block; a bold one covers everything that follows.
                        let count = if about == About::After { 1 } else { node.children.len() };
                        let blocks = node.children.iter().take(count).copied().collect();
                        fields.push(Field { about, value: String::new(), blocks, line: node.line });
                        gather(tree, &node.children, fields);
                    }
                    None => {
                        // `**Verification: cargo test**`
                        in_text(&node.text, node.line, fields);
                        gather(tree, &node.children, fields);
                    }
                }
            }
            Kind::Paragraph => {
                let before = fields.len();
                in_text(&node.text, node.line, fields);
                let open =
                    fields[before..].last_mut().filter(|last| last.value.is_empty() || last.value.ends_with(':'));
                if let Some(last) = open {
                    let below = blocks[at + 1..].iter().copied();
                    last.blocks = below
                        .take_while(|next| matches!(tree.node(*next).kind, Kind::List { .. } | Kind::Code { .. }))
                        .collect();
                }
            }
            Kind::List { .. } => gather(tree, &node.children, fields),
            Kind::Item { .. } => {
                let before = fields.len();
                in_text(&node.text, node.line, fields);
                match fields[before..].last_mut() {
                    Some(last) => last.blocks.clone_from(&node.children),
                    None => gather(tree, &node.children, fields),
                }
            }
            // A block whose first line is a comment that says what it is for.
            Kind::Code { .. } => {
                let comment = node.text.lines().next().and_then(|line| line.trim().strip_prefix('#'));
                if comment.and_then(words::about) == Some(About::Checks) {
                    let (value, blocks) = (String::new(), vec![*block]);
                    fields.push(Field { about: About::Checks, value, blocks, line: node.line });
                }
            }
            Kind::Root | Kind::Table | Kind::Row(_) | Kind::Other => {}
        }
    }
}

/// The labels in a text: at the start of its lines and sentences. A value continues to the next label.
fn in_text(text: &str, first_line: usize, fields: &mut Vec<Field>) {
    let mut open: Option<Field> = None;
    for (offset, line) in text.lines().enumerate() {
        for piece in pieces(line) {
            match label(piece) {
                Some((about, value)) => {
                    // `Expected: FAIL` below a command: it proves nothing yet.
                    let fails = about == About::Detail && value.to_lowercase().contains("fail");
                    if let Some(before) = open.as_mut().filter(|before| fails && before.about == About::Checks) {
                        before.value.clear();
                    }
                    fields.extend(open.take());
                    open =
                        Some(Field { about, value: value.to_owned(), blocks: Vec::new(), line: first_line + offset });
                }
                None => {
                    if let Some(field) = &mut open {
                        field.value = format!("{} {}", field.value, piece).trim().to_owned();
                    }
                }
            }
        }
    }
    fields.extend(open);
}

/// The sentences of a line and the text in its brackets; code is never cut.
pub(super) fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut code = false;
    let bytes = line.as_bytes();
    for (at, c) in line.char_indices() {
        if c == '`' {
            code = !code;
        }
        if code {
            continue;
        }
        let spaced = bytes.get(at + c.len_utf8()).is_none_or(|next| *next == b' ');
        let before = at > 0 && bytes[at - 1] == b' ';
        let number = at > start && line[start..at].trim().chars().all(|c| c.is_ascii_digit());
        let cut = match c {
            '.' | ';' => spaced && !number,
            '—' | '–' | '|' | '·' => spaced && before,
            '(' => !line[at..].contains("](") && !line[..at].ends_with(']') && before,
            ')' => line[start..at].len() < line.len() && spaced,
            _ => false,
        };
        if cut {
            pieces.push(line[start..at].trim());
            start = at + c.len_utf8();
        }
    }
    pieces.push(line[start..].trim());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// A label at the start of a text, with what follows it.
fn label(text: &str) -> Option<(About, &str)> {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`');
    if let Some((head, value)) = text.split_once(':') {
        let words = head.split_whitespace().count();
        if words <= LABEL_MAX_WORDS
            && !head.contains('`')
            && let Some(about) = words::about(head)
        {
            return Some((about, value.trim_start_matches(['*', '_']).trim()));
        }
    }
    let low = text.to_lowercase();
    let phrase =
        PHRASES.iter().find(|phrase| low.starts_with(**phrase) && low[phrase.len()..].starts_with([' ', '*']))?;
    Some((words::about(phrase).unwrap_or(About::Checks), text[phrase.len()..].trim_start_matches('*').trim()))
}
