//! Finds what somebody probably meant to write. Only ever used for hints.

/// The candidate nearest to a text, if one is near: a third of its characters may differ. The first of equals.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = text.to_lowercase().chars().take(65).collect();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let given: Vec<char> = candidate.to_lowercase().chars().take(65).collect();
        let allowed = (wanted.len().max(given.len()) / 3).max(1);
        let found = distance(&wanted, &given);
        if found <= allowed && best.is_none_or(|(least, _)| found < least) {
            best = Some((found, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn distance(a: &[char], b: &[char]) -> usize {
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            let changed = last[j] + usize::from(x != y);
            row[j + 1] = changed.min(last[j + 1] + 1).min(row[j] + 1);
        }
        last = row;
    }
    last[b.len()]
}
