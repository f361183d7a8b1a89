//! Parts of guarded sessions that several programs have in common: which files are plans, questions to the person, the end
//! of a command's output.

use std::path::Path;

use rekindle_core::guard::fact;
use rekindle_core::text::tail_bytes;
use serde_json::Value;

use super::fields::{list, text};

/// Words in the name of a Markdown file that mark it as a plan.
const PLAN_WORDS: [&str; 10] =
    ["plan", "plans", "spec", "specs", "specification", "task", "tasks", "todo", "todos", "roadmap"];

/// Whether a path looks like that of a plan: Markdown in a plan folder, or with a name that says so.
pub fn looks_like_plan(path: &str) -> bool {
    let path = Path::new(path);
    let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let in_plans = path.parent().is_some_and(|dir| dir.components().any(|part| part.as_os_str() == "plans"));
    let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let named = name.split(|char: char| !char.is_alphanumeric()).any(|word| PLAN_WORDS.contains(&word));
    matches!(end.as_str(), "md" | "markdown") && (in_plans || named)
}

/// The questions of a call that asks the person, with their choices.
pub fn questions(input: &Value) -> String {
    let one = |question: &Value| {
        let choices: Vec<&str> = list(question, "options").iter().filter_map(|choice| text(choice, "label")).collect();
        let words = text(question, "question").unwrap_or_default();
        if choices.is_empty() { words.to_owned() } else { format!("{words} ({})", choices.join(" / ")) }
    };
    let all: Vec<String> = list(input, "questions").iter().map(one).collect();
    fact::text(&all.join("\n"))
}

/// The end of a text: in a command's output, a commit's id and an error's last line are there.
pub fn tail(words: &str, max_bytes: usize) -> String {
    fact::bounded(tail_bytes(words.trim(), max_bytes), max_bytes)
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
        let plans =
            ["PLAN.md", "docs/build-plan.md", "/p/.claude/plans/2026/calm-otter.md", "my_spec.md", "a/Tasks.markdown"];
        for path in plans {
            assert!(looks_like_plan(path), "{path}");
        }
        for path in [
            "planner.rs",
            "README.md",
            "plans/a.txt",
            "",
            "plan",
            "/plans/",
            "explanation.md",
            "inspector.md",
            "plans.d/x.md",
        ] {
            assert!(!looks_like_plan(path), "{path}");
        }
    }
}
