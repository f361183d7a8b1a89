//! A task's changes, file by file, for views. Git is called only when a person opens them.

use rekindle_core::view::TaskRow;
use rekindle_engine::git::{ChangesIn, Repo, Work};

use super::Picture;
use crate::error::Result;
use crate::project::Project;

/// Most of a diff that is shown: a person reads no more, and a view has to hold it.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// Longest line that is shown; minified files have lines of megabytes.
const LINE_MAX_CHARS: usize = 2_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Diff {
    /// Where the changes were found, in words.
    pub place: &'static str,
    /// Files in git's order.
    pub files: Vec<FileDiff>,
    /// New files that git does not know yet: only their names are known.
    pub new_files: Vec<String>,
    /// Whether there is more than is shown.
    pub cut: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// Its path; for a moved file, the new one.
    pub path: String,
    /// What happened to it besides its lines: `new file`, `deleted`, `moved from a.rs`, `binary`.
    pub note: Option<String>,
    pub added: usize,
    pub removed: usize,
    /// The lines of its hunks.
    pub lines: Vec<DiffLine>,
}

/// A line of a diff, made harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub kind: LineKind,
    /// Its text without the sign before it.
    pub text: String,
}

/// The kind of a line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// The head of a hunk.
    Hunk,
    Added,
    Removed,
    Same,
}

impl LineKind {
    /// The sign before such a line.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Hunk => "",
            Self::Added => "+",
            Self::Removed => "-",
            Self::Same => " ",
        }
    }
}

/// What a task changes; `None` if there is no git or nothing to compare.
pub(crate) fn of(project: &Project, picture: &Picture, task: &TaskRow) -> Result<Option<Diff>> {
    let Ok(repo) = Repo::of(&project.root) else { return Ok(None) };
    let branch = picture.run.work_branch.clone().unwrap_or_default();
    let work = Work::new(repo, &project.state_dir, &picture.run.id, &branch)?;
    let key = task.workspace.as_deref().unwrap_or(task.id.as_str());
    let Some(changes) = work.changes(key, task.merged.as_deref(), MOST_BYTES)? else { return Ok(None) };
    let place = match changes.place {
        ChangesIn::Merged => "merged into the run's branch",
        ChangesIn::Worktree => "in its worktree",
        ChangesIn::Snapshot => "in the newest snapshot",
    };
    let new_files = changes.new_files.iter().map(|name| crate::ui::one_line(name)).collect();
    Ok(Some(Diff { place, files: parse(&changes.patch), new_files, cut: changes.cut }))
}

/// Reads a unified diff as git writes it.
pub(crate) fn parse(patch: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    // Remaining lines of a hunk: what looks like a header inside a hunk is content.
    let (mut old_left, mut new_left) = (0_usize, 0_usize);
    for line in patch.split_terminator('\n') {
        if old_left == 0 && new_left == 0 {
            if let Some(names) = line.strip_prefix("diff --git ") {
                files.push(FileDiff { path: path_of(names), ..FileDiff::default() });
                continue;
            }
            let Some(file) = files.last_mut() else { continue };
            if let Some((old, new)) = hunk(line) {
                (old_left, new_left) = (old, new);
                file.push(LineKind::Hunk, line);
            } else {
                file.header(line);
            }
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        match line.as_bytes().first() {
            Some(b'+') => {
                new_left = new_left.saturating_sub(1);
                file.added += 1;
                file.push(LineKind::Added, &line[1..]);
            }
            Some(b'-') => {
                old_left = old_left.saturating_sub(1);
                file.removed += 1;
                file.push(LineKind::Removed, &line[1..]);
            }
            Some(b'\\') => {}
            _ => {
                (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
                file.push(LineKind::Same, line.get(1..).unwrap_or_default());
            }
        }
    }
    files
}

impl FileDiff {
    fn push(&mut self, kind: LineKind, text: &str) {
        let shown: String = text.chars().take(LINE_MAX_CHARS).collect();
        self.lines.push(DiffLine { kind, text: crate::ui::harmless(&shown).replace('\n', " ") });
    }

    /// Reads a line between the names and the first hunk.
    fn header(&mut self, line: &str) {
        let note = if line.starts_with("new file") {
            Some("new file".to_owned())
        } else if line.starts_with("deleted file") {
            Some("deleted".to_owned())
        } else if let Some(from) = line.strip_prefix("rename from ") {
            Some(format!("moved from {}", crate::ui::one_line(from)))
        } else if line.starts_with("Binary files") {
            Some("binary".to_owned())
        } else {
            line.strip_prefix("new mode ").map(|mode| format!("mode {mode}"))
        };
        if let Some(to) = line.strip_prefix("rename to ") {
            self.path = crate::ui::one_line(to);
        }
        if let Some(to) = line.strip_prefix("+++ b/") {
            self.path = crate::ui::one_line(to.trim_end_matches('\t'));
        }
        self.note = self.note.take().or(note);
    }
}

/// How many old and new lines a hunk has.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let ranges = line.strip_prefix("@@ -")?;
    let (old, rest) = ranges.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let many = |range: &str| match range.split_once(',') {
        Some((_, many)) => many.parse().ok(),
        None => Some(1),
    };
    Some((many(old)?, many(new)?))
}

/// The path in `a/PATH b/PATH`: both are the same unless the file was moved, and then a later line says so.
fn path_of(names: &str) -> String {
    let half = names.len().saturating_sub(1) / 2;
    let second = names.get(half + 1..).and_then(|name| name.strip_prefix("b/"));
    crate::ui::one_line(second.unwrap_or(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/src/a b.rs b/src/a b.rs
index 1..2 100644
--- a/src/a b.rs\t
+++ b/src/a b.rs\t
@@ -1,3 +1,3 @@ fn x()
 same
--- a/not a header
+++ b/not one either
 last
\\ No newline at end of file
diff --git a/old.rs b/moved/new.rs
similarity index 90%
rename from old.rs
rename to moved/new.rs
diff --git a/bin b/bin
new file mode 100644
Binary files /dev/null and b/bin differ
";

    #[test]
    fn files_are_told_apart_and_content_that_looks_like_a_header_is_content() {
        let files = parse(PATCH);
        let told: Vec<(&str, Option<&str>, usize, usize)> =
            files.iter().map(|file| (file.path.as_str(), file.note.as_deref(), file.added, file.removed)).collect();
        assert_eq!(
            told,
            [
                ("src/a b.rs", None, 1, 1),
                ("moved/new.rs", Some("moved from old.rs"), 0, 0),
                ("bin", Some("new file"), 0, 0)
            ]
        );
        let lines: Vec<(LineKind, &str)> = files[0].lines.iter().map(|line| (line.kind, line.text.as_str())).collect();
        assert_eq!(
            lines,
            [
                (LineKind::Hunk, "@@ -1,3 +1,3 @@ fn x()"),
                (LineKind::Same, "same"),
                (LineKind::Removed, "-- a/not a header"),
                (LineKind::Added, "++ b/not one either"),
                (LineKind::Same, "last"),
            ]
        );
    }

    #[test]
    fn what_is_no_diff_is_nothing_and_hostile_text_is_harmless() {
        assert_eq!(parse("hello\n@@ -1 +1 @@\n+x\n"), []);
        let files = parse("diff --git a/x b/x\n@@ -0,0 +1 @@\n+\u{1b}]52;c;eA==\u{7}red\u{202e}\n");
        assert_eq!(files[0].lines[1].text, "red");
    }
}
