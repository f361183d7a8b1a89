//! Finds what the author probably meant to write. Only ever used for hints, never to repair a plan.

/// Longest text compared: longer ones are not typing errors, and the cost is quadratic.
const COMPARED_MAX_CHARS: usize = 64;

/// The candidate nearest to a text, if one is near: a third of its characters may differ. If several are equally near, the
/// first.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = lower(text);
    if wanted.is_empty() || wanted.len() > COMPARED_MAX_CHARS {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let given = lower(candidate);
        let limit = best.map_or(usize::MAX, |(d, _)| d);
        let allowed = (wanted.len().max(given.len()) / 3).max(1);
        // The lengths alone are a lower bound, which avoids most comparisons in a plan of thousands of tasks.
        if given.len().abs_diff(wanted.len()) > allowed.min(limit.saturating_sub(1)) {
            continue;
        }
        if given.len() > COMPARED_MAX_CHARS {
            continue;
        }
        let distance = distance(&wanted, &given);
        if distance <= allowed && distance < limit {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn lower(text: &str) -> Vec<char> {
    text.chars().take(COMPARED_MAX_CHARS + 1).flat_map(char::to_lowercase).collect()
}

/// Edits between two texts; swapping two neighbours counts as one, because it is a common typing error.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + changed);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_found_and_far_is_not() {
        let keys = ["agent", "accept", "artifacts", "attempts"];
        assert_eq!(nearest("acept", keys), Some("accept"));
        assert_eq!(nearest("Agnet", keys), Some("agent"));
        assert_eq!(nearest("artefact", keys), Some("artifacts"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("t1", ["T1", "T2"]), Some("T1"));
        assert_eq!(nearest("T9", ["T1", "T2"]), Some("T1"));
        assert_eq!(nearest(&"x".repeat(500), keys), None);
    }
}
