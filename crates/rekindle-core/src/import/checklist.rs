//! Parses a Markdown checklist line by line: headings, items with their boxes, and the text below each. Code fences and
//! comments are text or nothing, never items. What a heading or an item's text means is decided by the formats.

/// A meaningful line of a checklist, with the text below it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// The heading's or the item's own text.
    pub(super) text: String,
    /// The lines below it, without the indentation that they share.
    pub(super) below: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// With its level; 0 for the text before the first entry.
    Heading(usize),
    Item {
        /// Columns before its bullet.
        indent: usize,
        /// Ticked off.
        done: bool,
        /// `[ ]*`: it does not have to be done.
        optional: bool,
    },
}

/// All entries of a text in order.
pub(super) fn read(text: &str) -> Vec<Entry> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut entries = vec![Entry { kind: Kind::Heading(0), text: String::new(), below: String::new() }];
    let mut below: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut comment = false;
    for line in text.lines() {
        let bare = line.trim_start();
        if comment {
            comment = !line.contains("-->");
            continue;
        }
        if let Some(mark) = fence {
            below.push(line);
            if bare.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = Some(mark);
            below.push(line);
        } else if bare.starts_with("<!--") {
            comment = !bare.contains("-->");
        } else if let Some((kind, text)) = entry(line) {
            close(&mut entries, &mut below);
            entries.push(Entry { kind, text: text.to_owned(), below: String::new() });
        } else {
            below.push(line);
        }
    }
    close(&mut entries, &mut below);
    entries
}

fn close(entries: &mut [Entry], below: &mut Vec<&str>) {
    if let Some(last) = entries.last_mut() {
        // Lines without indentation are below an item but not part of its text.
        let own = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
        let count = match last.kind {
            Kind::Item { .. } => below.iter().take_while(|line| own(line)).count(),
            Kind::Heading(_) => below.len(),
        };
        last.below = dedent(&below[..count]);
    }
    below.clear();
}

fn dedent(lines: &[&str]) -> String {
    let said = lines.iter().filter(|line| !line.trim().is_empty());
    let shared = said.map(|line| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or(0);
    let lines: Vec<&str> = lines.iter().map(|line| line.get(shared..).unwrap_or("")).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn entry(line: &str) -> Option<(Kind, &str)> {
    let bare = line.trim_start();
    let indent: usize = line[..line.len() - bare.len()].chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
    if indent == 0 && bare.starts_with('#') {
        let text = bare.trim_start_matches('#');
        let level = bare.len() - text.len();
        let is_heading = level <= 6 && (text.is_empty() || text.starts_with([' ', '\t']));
        return is_heading.then(|| (Kind::Heading(level), text.trim().trim_end_matches('#').trim_end()));
    }
    let item = bare.strip_prefix(['-', '*', '+'])?;
    let item = item.strip_prefix([' ', '\t'])?.trim_start();
    let inside = item.strip_prefix('[')?;
    let mark = inside.chars().next()?;
    let after = inside[mark.len_utf8()..].strip_prefix(']')?;
    // `-` and `~` are marks of "in progress": open, like everything that is not ticked.
    let done = match mark {
        'x' | 'X' => true,
        ' ' | '-' | '~' | '/' => false,
        _ => return None,
    };
    let (optional, text) = match after.strip_prefix('*') {
        Some(text) => (true, text),
        None => (false, after),
    };
    (text.is_empty() || text.starts_with([' ', '\t'])).then(|| (Kind::Item { indent, done, optional }, text.trim()))
}

/// Splits a number like `1.`, `2.3` or `2.3.` off the front of a text; the number without its last dot.
pub(super) fn numbered(text: &str) -> Option<(&str, &str)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let number = text[..end].trim_end_matches(['.', ')']);
    let digits = number.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    digits.then(|| (number, text[end..].trim_start()))
}

/// The text after a bold label at the start of a line: `**Goal**: this`.
pub(super) fn labelled(text: &str, label: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("**")?.strip_prefix(label)?;
        let rest = rest.strip_prefix("**:").or_else(|| rest.strip_prefix(":**")).or_else(|| rest.strip_prefix("**"))?;
        Some(rest.trim_start_matches(':').trim().to_owned())
    })
}
