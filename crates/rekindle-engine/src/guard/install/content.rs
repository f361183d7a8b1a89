//! What an installation makes of a file's text, for each form, and what is left when our part is removed.

use super::edit::{self, Unfit, Wanted};
use crate::agents::hook_installer::OwnFile;

/// The line above every pattern of ours in a list of patterns.
const NOTE: &str = "# added by rekindle guard install; rekindle guard uninstall takes it out";

/// What a file should contain.
pub enum Content {
    /// Hooks among other settings.
    Entries {
        kind: &'static str,
        /// The key of its status line.
        status_line: Option<&'static str>,
        wanted: Wanted,
    },
    Own {
        file: &'static OwnFile,
        text: String,
    },
    /// Patterns in a list of them.
    Lines {
        /// The patterns that should be there.
        wanted: Vec<String>,
        /// The patterns that are ours; others may have the same note, from another project in the same repository.
        ours: Vec<String>,
    },
}

impl Content {
    /// The new text, made from one that contains nothing of ours; `None` if somebody else's text is in the way.
    pub fn build(&self, before: Option<&str>) -> Result<Option<String>, Unfit> {
        let before = before.unwrap_or_default();
        match self {
            Self::Entries { wanted, .. } => edit::add(before, wanted).map(Some),
            Self::Own { text, .. } => Ok(before.is_empty().then(|| text.clone())),
            Self::Lines { wanted: lines, .. } => {
                let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
                let lines: String = lines.iter().map(|line| format!("{NOTE}\n{line}\n")).collect();
                Ok(Some(format!("{before}{newline}{lines}")))
            }
        }
    }

    /// What is left of a text without our part; `None` if all of it is ours.
    pub fn strip(&self, text: &str, before: Option<&str>) -> Result<Option<String>, Unfit> {
        match self {
            Self::Entries { kind, status_line, .. } => edit::strip(text, kind, *status_line, before).map(Some),
            Self::Own { file, .. } => Ok((!text.starts_with(file.head)).then(|| text.to_owned())),
            Self::Lines { ours, .. } => Ok(Some(without_notes(text, ours))),
        }
    }

    /// Whether a text is already as it should be.
    pub fn is(&self, text: &str) -> bool {
        match self {
            Self::Entries { kind, status_line, wanted } => {
                edit::find(text, kind, *status_line).is_ok_and(|found| found.is(wanted))
            }
            Self::Own { text: wanted, .. } => text == wanted,
            Self::Lines { wanted, ours } => {
                let noted: Vec<&str> = notes(text).map(|(_, line)| line.trim_end_matches(['\r', '\n'])).collect();
                ours.iter().all(|line| noted.contains(&line.as_str()) == wanted.contains(line))
            }
        }
    }
}

/// The patterns below our notes, with the positions of the notes.
fn notes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    });
    std::iter::from_fn(move || {
        let (at, _) = lines.by_ref().find(|(_, line)| line.trim_end() == NOTE)?;
        Some((at, lines.next().map_or("", |(_, line)| line)))
    })
}

fn without_notes(text: &str, ours: &[String]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    let own = |line: &str| ours.iter().any(|known| known == line.trim_end_matches(['\r', '\n']));
    for (at, line) in notes(text).filter(|(_, line)| own(line)) {
        rest.push_str(&text[from..at]);
        let note = text[at..].split_inclusive('\n').next().map_or(0, str::len);
        from = at + note + line.len();
    }
    rest.push_str(&text[from..]);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_come_and_go_and_leave_the_others() {
        let wanted = vec!["/a".to_owned(), "/b\\ c".to_owned()];
        let lines = Content::Lines { wanted: wanted.clone(), ours: wanted };
        for before in ["", "# git ls-files\n*.swp\n", "*.swp", "\r\n*.o\r\n"] {
            let with = lines.build(Some(before)).expect("fit").expect("text");
            assert!(lines.is(&with) && !lines.is(before), "{with}");
            let left = lines.strip(&with, None).expect("fit").expect("text");
            assert_eq!(left.trim_end_matches('\n'), before.trim_end_matches('\n'));
            let edited = format!("{with}# theirs\n/z\n");
            let left = lines.strip(&edited, None).expect("fit").expect("text");
            assert!(left.ends_with("# theirs\n/z\n") && !left.contains("rekindle"), "{left}");
            let theirs = Content::Lines { wanted: vec!["/q".to_owned()], ours: vec!["/q".to_owned()] };
            let both = theirs.build(Some(&with)).expect("fit").expect("text");
            assert_eq!(theirs.strip(&both, None).expect("fit").as_deref(), Some(with.as_str()), "others' notes stay");
        }
    }
}
