//! Boxes as people draw them: `[ ] do this` without a bullet, `☐ do this`. They become items of a checklist, line by line, so
//! that line numbers stay; code blocks are left alone.

/// Boxes that are drawn, with what they stand for.
const DRAWN: [(char, &str); 5] = [('☐', "[ ]"), ('⬜', "[ ]"), ('□', "[ ]"), ('☑', "[x]"), ('☒', "[x]")];

/// A text in which every box at the start of a line has a bullet.
pub(super) fn with_bullets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        match fence {
            Some(mark) if bare.starts_with(mark) => fence = None,
            Some(_) => {}
            None => fence = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)),
        }
        let indent = line.len() - bare.len();
        if fence.is_none() && indent < 4 {
            let (bullet, rest) = match bare.strip_prefix(['-', '*', '+']) {
                Some(rest) if rest.starts_with(' ') => (&bare[..2], rest.trim_start()),
                _ => ("", bare),
            };
            let drawn = DRAWN.iter().find_map(|(c, mark)| rest.strip_prefix(*c).map(|rest| (*mark, rest)));
            let boxed = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| rest.strip_prefix(mark).map(|rest| (*mark, rest)));
            let found = drawn.or_else(|| boxed.filter(|(_, rest)| rest.starts_with(' ')).filter(|_| bullet.is_empty()));
            if let Some((mark, rest)) = found {
                out.push_str(&line[..indent]);
                out.push_str(if bullet.is_empty() { "- " } else { bullet });
                out.push_str(mark);
                out.push(' ');
                out.push_str(rest.trim_start_matches([' ', '\u{fe0f}']));
                continue;
            }
        }
        out.push_str(line);
    }
    out
}
