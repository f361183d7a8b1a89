//! Paths as written in code: `a::b::c` in expressions and types, and `use` trees written out, so that a grouped import
//! cannot hide a name. Renames (`as`) are followed to the real name; clippy knows what a name resolves to.

use std::ops::Range;

use super::source::words;

/// Every path with its offset.
pub(super) fn all(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut after = 0;
    for (at, word) in words(code) {
        if at < after {
            continue;
        }
        if word == "use" {
            if let Some(tree) = import(code, at + word.len()) {
                after = tree.end;
                expand(code, tree, "", &mut found);
            }
        } else {
            let (path, end) = inline(code, at, word);
            found.push((at, path));
            after = end;
        }
    }
    found
}

/// Whether `path` holds the segments of `wanted` in a row.
pub(super) fn has(path: &str, wanted: &str) -> bool {
    format!("::{path}::").contains(&format!("::{wanted}::"))
}

/// The tree of a `use` item; `None` for the `use<'a>` of a captured lifetime.
fn import(code: &str, from: usize) -> Option<Range<usize>> {
    let tree = &code[from..from + code[from..].find(';')?];
    (!tree.trim_start().starts_with('<')).then(|| from..from + tree.len())
}

fn inline(code: &str, at: usize, first: &str) -> (String, usize) {
    let mut path = first.to_owned();
    let mut end = at + first.len();
    while let Some(rest) = code[end..].trim_start().strip_prefix("::") {
        let from = code.len() - rest.len();
        let Some((gap, word)) = words(rest).next() else {
            break;
        };
        // A turbofish, a group or a glob ends what can be said about the path.
        if !rest[..gap].trim().is_empty() {
            break;
        }
        path.push_str("::");
        path.push_str(word);
        end = from + gap + word.len();
    }
    (path, end)
}

fn expand(code: &str, tree: Range<usize>, prefix: &str, found: &mut Vec<(usize, String)>) {
    let text = &code[tree.clone()];
    let at = tree.start + (text.len() - text.trim_start().len());
    let Some(open) = text.find('{') else {
        let name = text.trim().split(" as ").next().unwrap_or_default();
        let path: String = format!("{prefix}{name}").split_whitespace().collect();
        let path = path.strip_suffix("::self").unwrap_or(&path);
        if !path.is_empty() && !name.is_empty() {
            found.push((at, path.trim_start_matches("::").to_owned()));
        }
        return;
    };
    let head: String = format!("{prefix}{}", &text[..open]).split_whitespace().collect();
    let inside = tree.start + open + 1..tree.start + text.rfind('}').unwrap_or(text.len());
    for part in split(code, inside) {
        expand(code, part, &head, found);
    }
}

/// Splits at the commas that are in no inner group.
fn split(code: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    let mut depth = 0_usize;
    for at in range.clone() {
        match code.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(start..range.end);
    parts
}
