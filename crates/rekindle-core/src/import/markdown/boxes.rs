//! What people write although Markdown does not know it: `[ ] do this` without a bullet, `☐ do this`, and tables without
//! outer bars whose rows start with a number. They become items and rows, line by line, so that line numbers stay; code
//! blocks are left alone.

/// Boxes that are drawn, with what they mean.
const DRAWN: [(char, &str); 5] = [('☐', "[ ]"), ('⬜', "[ ]"), ('□', "[ ]"), ('☑', "[x]"), ('☒', "[x]")];

/// A text in which every box at the start of a line has a bullet, and every row of a table its bar.
pub(super) fn written_out(text: &str) -> String {
    // `1️⃣` is a number.
    let text = text.replace("\u{fe0f}\u{20e3}", ".").replace('\u{20e3}', ".");
    with_bars(&with_bullets(&text))
}

/// Whether this is the line of dashes, colons and bars under the head of a table.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('|') && line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn with_bars(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut barred = vec![false; lines.len()];
    for at in 1..lines.len() {
        let bare = |line: &str| line.contains('|') && !line.trim_start().starts_with('|') && !line.starts_with("    ");
        if is_rule(lines[at]) && bare(lines[at]) && bare(lines[at - 1]) {
            barred[at - 1] = true;
            let rows = lines[at..].iter().take_while(|line| bare(line)).count();
            barred[at..at + rows].fill(true);
        }
    }
    let bar = |(line, barred): (&&str, &bool)| if *barred { format!("| {line}") } else { (*line).to_owned() };
    lines.iter().zip(&barred).map(bar).collect()
}

fn with_bullets(text: &str) -> String {
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
