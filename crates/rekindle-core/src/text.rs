//! Makes text from elsewhere safe to show: no control characters, no terminal sequences, no invisible reordering, and never
//! longer than requested. Decides what counts as harmful; where text is shown is left to the callers.

use std::borrow::Cow;

/// Text without anything that a terminal would obey or a reader could not see: control characters except line feed
/// and tab, escape sequences whole, C1, bidirectional controls, line separators and invisible tag characters.
///
/// A string sequence (OSC, DCS and the like) that is never closed ends at the line's end, so that a single stray byte
/// cannot make the rest of a text disappear.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => rest = after_escape(rest),
            '\u{9b}' => rest = after_csi(rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => rest = after_string(rest),
            c if is_harmful(c) => {}
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// Whether [`sanitize`] always removes this character.
pub fn is_harmful(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Tag characters spell out ASCII that a model reads and a person does not see.
        '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Most text is plain ASCII, so checking the bytes first keeps the common case as fast as a scan.
fn is_clean(text: &str) -> bool {
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) || byte == b'\n' || byte == b'\t';
    text.bytes().all(plain) || !text.chars().any(is_harmful)
}

/// The text after the escape sequence that an ESC opened.
fn after_escape(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    match bytes.first() {
        Some(b'[') => after_csi(&rest[1..]),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => after_string(&rest[1..]),
        Some(0x20..=0x2f) => {
            let end = skip(bytes, 0, 0x20..=0x2f);
            &rest[skip_one(bytes, end, 0x30..=0x7e)..]
        }
        Some(0x30..=0x7e) => &rest[1..],
        _ => rest,
    }
}

fn after_csi(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    let end = skip(bytes, 0, 0x30..=0x3f);
    let end = skip(bytes, end, 0x20..=0x2f);
    &rest[skip_one(bytes, end, 0x40..=0x7e)..]
}

fn after_string(rest: &str) -> &str {
    for (at, c) in rest.char_indices() {
        match c {
            '\n' => return &rest[at..],
            '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}' => return &rest[at + c.len_utf8()..],
            '\u{1b}' => {
                let after = &rest[at + 1..];
                return after.strip_prefix('\\').unwrap_or(&rest[at..]);
            }
            _ => {}
        }
    }
    ""
}

fn skip(bytes: &[u8], from: usize, set: std::ops::RangeInclusive<u8>) -> usize {
    let run = bytes[from..].iter().take_while(|byte| set.contains(byte));
    from + run.count()
}

fn skip_one(bytes: &[u8], from: usize, set: std::ops::RangeInclusive<u8>) -> usize {
    from + usize::from(bytes.get(from).is_some_and(|byte| set.contains(byte)))
}

/// Clean text on one line: every run of white space becomes one blank, and text past `max_bytes` is replaced by `…`.
pub fn one_line(text: &str, max_bytes: usize) -> String {
    let clean = sanitize(text);
    let mut line = String::new();
    for word in clean.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > max_bytes {
            let room = max_bytes.saturating_sub('…'.len_utf8());
            line.truncate(truncate_bytes(&line, room).len());
            if max_bytes >= '…'.len_utf8() {
                line.push('…');
            }
            break;
        }
    }
    line
}

/// The longest prefix of at most `max_bytes` that ends on a character boundary.
pub fn truncate_bytes(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest suffix of at most `max_bytes` that starts on a character boundary.
pub fn tail_bytes(text: &str, max_bytes: usize) -> &str {
    let mut begin = text.len().saturating_sub(max_bytes);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    &text[begin..]
}

/// The text itself, or its beginning and end with `… 12,345 bytes folded …` between, at most `max_bytes` in all.
pub fn fold(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    // The count is at most the whole length, so this marker is the longest that can be needed.
    let room = max_bytes.saturating_sub(folded(text.len()).len() + 2);
    if room == 0 {
        return Cow::Borrowed(truncate_bytes(text, max_bytes));
    }
    let head = truncate_bytes(text, room - room / 3);
    let tail = tail_bytes(text, room / 3);
    let marker = folded(text.len() - head.len() - tail.len());
    Cow::Owned(format!("{head} {marker} {tail}"))
}

/// The text that replaces omitted bytes.
pub fn folded(bytes: usize) -> String {
    format!("… {} bytes folded …", grouped(bytes))
}

/// A number with separated thousands.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun, in the singular or the plural.
pub fn counted(number: impl TryInto<usize>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(usize::MAX);
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests;
