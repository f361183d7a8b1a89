//! Pieces of what guarded sessions tell that several programs have alike: which files are plans, questions to the person, the
//! end of what a command printed.

use std::path::Path;

use rekindle_core::lead::fact;
use serde_json::Value;

use super::fields::{list, text};

/// Names of plans that do not say so.
const NAMES: [&str; 4] = ["todo", "todos", "tasks", "roadmap"];

/// Whether a path looks like that of a plan: a Markdown file called one, or one in a folder of them.
#[must_use]
pub fn looks_like_plan(path: &str) -> bool {
    let path = Path::new(path);
    let lower = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().to_lowercase());
    let markdown = lower(path.extension()).is_some_and(|end| end == "md" || end == "markdown");
    let Some(name) = lower(path.file_stem()).filter(|_| markdown) else { return false };
    let folder = lower(path.parent().and_then(Path::file_name));
    name.contains("plan") || NAMES.contains(&name.as_str()) || folder.is_some_and(|folder| folder == "plans")
}

/// The questions of a call that asks the person, with their choices.
#[must_use]
pub fn questions(input: &Value) -> String {
    let one = |question: &Value| {
        let choices: Vec<&str> = list(question, "options").iter().filter_map(|choice| text(choice, "label")).collect();
        let words = text(question, "question").unwrap_or_default();
        if choices.is_empty() { words.to_owned() } else { format!("{words} ({})", choices.join(" / ")) }
    };
    let all: Vec<String> = list(input, "questions").iter().map(one).collect();
    fact::text(&all.join("\n"))
}

/// The end of a text: of what a command printed, a commit's id and an error's last line stand there.
#[must_use]
pub fn tail(words: &str, max_bytes: usize) -> String {
    let words = words.trim();
    let mut from = words.len().saturating_sub(max_bytes);
    while !words.is_char_boundary(from) {
        from += 1;
    }
    fact::bounded(words.get(from..).unwrap_or_default(), max_bytes)
}

#[cfg(test)]
mod tests {
    use super::{looks_like_plan, tail};

    #[test]
    fn the_end_of_a_text_is_cut_between_letters() {
        assert_eq!(tail(" one\ntwo \n", 3), "two");
        assert_eq!(tail("äöü", 3), "ü");
        assert_eq!(tail("", 3), "");
    }

    #[test]
    fn a_plan_is_known_by_its_name_or_folder() {
        for path in
            ["PLAN.md", "docs/release-plan.md", "/home/p/.claude/plans/calm-otter.md", "TODO.md", "a/Tasks.markdown"]
        {
            assert!(looks_like_plan(path), "{path}");
        }
        for path in ["planner.rs", "README.md", "plans/a.txt", "", "plan", "/plans/"] {
            assert!(!looks_like_plan(path), "{path}");
        }
    }
}
