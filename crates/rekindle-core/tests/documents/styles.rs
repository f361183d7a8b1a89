//! No line that a person would call a task disappears silently: documents from a grammar of styles, mixed as people mix
//! them. Every task's title must be a task of the plan, or its line must be named in a remark; and every word of the
//! document must stand in the plan.

use proptest::prelude::*;
use rekindle_core::import::ImportError;
use rekindle_core::plan::parse;

use crate::import;

/// How the tasks of one part of a document are written.
#[derive(Debug, Clone, Copy)]
enum Style {
    TaskHeadings,
    StepHeadings,
    NumberedHeadings,
    IdHeadings,
    PlainHeadings,
    BoldParagraphs,
    Checklist,
    LooseBoxes,
    Numbered,
    Bullets,
    Labelled,
    Table,
}

const STYLES: [Style; 12] = [
    Style::TaskHeadings,
    Style::StepHeadings,
    Style::NumberedHeadings,
    Style::IdHeadings,
    Style::PlainHeadings,
    Style::BoldParagraphs,
    Style::Checklist,
    Style::LooseBoxes,
    Style::Numbered,
    Style::Bullets,
    Style::Labelled,
    Style::Table,
];

/// Headings over a part.
const OVER: [&str; 9] = [
    "## Tasks",
    "## Implementation plan",
    "## Phase 1: Ground",
    "## TODO",
    "## Milestone 2 - Core",
    "## Backend",
    "## Steps",
    "",
    "## Week 3",
];

/// What stands between parts.
const BETWEEN: [&str; 7] = [
    "",
    "Some words about it.\n",
    "## Overview\n\nWhat this is about.\n",
    "## Risks\n\n- It may rain\n- It may snow\n",
    "---\n",
    "> A quote.\n",
    "```rust\nfn main() {}\n```\n",
];

/// What a task may have below it.
const BELOW: [&str; 8] = [
    "",
    "Some words.",
    "Depends on: none",
    "Verification: `cargo test`",
    "- a detail\n- another",
    "**Files:** `src/a.rs`",
    "Acceptance criteria:\n\n- it works\n- it is fast",
    "```bash\ncargo build\n```",
];

#[derive(Debug, Clone)]
struct Part {
    style: Style,
    over: &'static str,
    between: &'static str,
    tasks: Vec<(&'static str, bool, &'static str)>,
}

fn part() -> impl Strategy<Value = Part> {
    let verbs = prop::sample::select(vec!["Build", "Write", "The", "Ship", "Parser for", "Remove", "New", "user sees"]);
    let task = (verbs, any::<bool>(), prop::sample::select(&BELOW[..]));
    let style = prop::sample::select(&STYLES[..]);
    let (over, between) = (prop::sample::select(&OVER[..]), prop::sample::select(&BETWEEN[..]));
    (style, over, between, prop::collection::vec(task, 2..5)).prop_map(|(style, over, between, tasks)| Part {
        style,
        over,
        between,
        tasks,
    })
}

/// The document, and the titles of its tasks with their lines.
fn write(parts: &[Part]) -> (String, Vec<(usize, String)>) {
    let mut text = String::from("# A plan\n\n");
    let mut titles = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        text.push_str(part.between);
        text.push('\n');
        // Without a heading of its own a later part would stand in the last task of the one before.
        let nested = place > 0 || part.between.starts_with("## ");
        let over = if part.over.is_empty() && nested { "## More" } else { part.over };
        if !over.is_empty() {
            text.push_str(&format!("{over}\n\n"));
        }
        if matches!(part.style, Style::Table) {
            text.push_str("| ID | Task | Status |\n|---|---|---|\n");
        }
        for (number, (verb, done, below)) in part.tasks.iter().enumerate() {
            let number = number + 1;
            let title = format!("{verb} thing{place}x{number}");
            titles.push((text.matches('\n').count() + 1, title.clone()));
            let mark = if *done { "x" } else { " " };
            let indented: String = below.lines().map(|line| format!("  {line}\n")).collect();
            text.push_str(&match part.style {
                Style::TaskHeadings => format!("### Task {place}.{number}: {title}\n\n{below}\n\n"),
                Style::StepHeadings => format!("### Step {number} — {title}\n\n{below}\n\n"),
                Style::NumberedHeadings => format!("### {number}. {title}\n\n{below}\n\n"),
                Style::IdHeadings => format!("### US-{place}{number}: {title}\n\n{below}\n\n"),
                Style::PlainHeadings => format!("### {title}\n\n{below}\n\n"),
                Style::BoldParagraphs => format!("**Task {number} - {title}**\n\n{below}\n\n"),
                Style::Checklist => format!("- [{mark}] {title}\n{indented}"),
                Style::LooseBoxes => format!("- [{mark}] {title}\n\n{indented}\n"),
                Style::Numbered => format!("{number}. {title}\n"),
                Style::Bullets => format!("* {title}\n"),
                Style::Labelled => format!("- **T{place}{number}**: {title}\n"),
                Style::Table => format!("| X{place}{number} | {title} | {} |\n", if *done { "done" } else { "open" }),
            });
        }
        text.push('\n');
    }
    (text, titles)
}

/// Whether a remark names a line, alone or in a range.
fn names(remark: &str, line: usize) -> bool {
    let words: Vec<&str> = remark.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    (0..words.len()).any(|at| match words[at] {
        "line" => number(at + 1) == Some(line),
        "lines" => match (number(at + 1), words.get(at + 2), number(at + 3)) {
            (Some(first), Some(&"to"), Some(last)) => (first..=last).contains(&line),
            _ => false,
        },
        _ => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_task_disappears_silently(parts in prop::collection::vec(part(), 1..4)) {
        let (text, titles) = write(&parts);
        let imported = import(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let parsed = parse("plan", imported.text.as_bytes());
        prop_assert!(parsed.errors().next().is_none(), "{:?}", parsed.problems);
        let plan = parsed.plan.expect("a plan");
        for (line, title) in &titles {
            let task = plan.tasks.iter().any(|task| task.title == *title);
            let told = imported.remarks.iter().any(|remark| names(remark, *line));
            prop_assert!(task || told, "line {line}, {title}: no task and no remark\n{text}\n---\n{}\n{:#?}", imported.text, imported.remarks);
            prop_assert!(imported.text.contains(title.as_str()), "line {line}, {title}: lost\n{text}\n---\n{}", imported.text);
        }
        // One style alone is read whole; a heading with nothing but a list below may also be a group.
        let group = |line: usize| imported.remarks.iter().any(|remark| remark.starts_with("read as groups") && names(remark, line));
        // Headings without any mark, and none above them that speaks of tasks, may also give way to lists below them.
        let bare = |part: &Part| matches!(part.style, Style::PlainHeadings) && matches!(part.over, "" | "## Backend" | "## More");
        if let [only] = parts.as_slice() && !bare(only) {
            let read = |(line, title): &&(usize, String)| plan.tasks.iter().any(|task| task.title == *title) || group(*line);
            prop_assert_eq!(titles.iter().filter(read).count(), titles.len(), "{}\n---\n{}\n{:#?}", text, imported.text, imported.remarks);
        }
    }

    /// Whatever a text holds, it becomes an error or a plan that can be run, and nothing in it adds a setting.
    #[test]
    fn any_text_is_refused_or_becomes_a_plan(scraps in prop::collection::vec(scrap(), 0..30)) {
        let text = scraps.concat();
        match import(&text) {
            Ok(imported) => {
                let parsed = parse("plan", imported.text.as_bytes());
                prop_assert!(parsed.errors().next().is_none(), "{:?}\n{text}", parsed.problems);
                let plan = parsed.plan.expect("a plan");
                prop_assert_eq!(plan.tasks.len(), imported.tasks);
                prop_assert!(plan.settings.review.is_none() && plan.tasks.iter().all(|task| task.cli.is_none()));
                prop_assert!(!imported.text.chars().any(rekindle_core::text::is_harmful));
                for remark in &imported.remarks {
                    prop_assert!(!remark.contains('\n') && !remark.chars().any(rekindle_core::text::is_harmful), "{remark:?}");
                }
            }
            Err(ImportError::Unusable(why)) => prop_assert!(false, "{why}\n{text}"),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// Pieces of documents, and texts that try to be more than text.
fn scrap() -> impl Strategy<Value = String> {
    let marks = vec![
        "# ",
        "## ",
        "### ",
        "## Task 1: ",
        "### 1.1 ",
        "- [ ] ",
        "- [x] ",
        "  - ",
        "1. ",
        "    ",
        "\t",
        "\n",
        "\n\n",
        "\r\n",
        "| a | Task |\n|---|---|\n",
        "| 1 | x |\n",
        "Task | Deps\n--- | ---\n",
        "Depends on: ",
        "Task 1",
        "1-3",
        "#2",
        "Verification: ",
        "`cargo test`",
        "```bash\n",
        "```\n",
        "make test\n",
        "**",
        "~~",
        "> ",
        "---\n",
        "===\n",
        "T1 -> T2\n",
        "Phase 1: ",
        "(after 1)",
        "[P] ",
        "✅ ",
        "1\u{fe0f}\u{20e3} ",
        "☐ ",
        "<!--",
        "-->",
        "none",
        "\u{1b}]0;t\u{7}",
        "\u{202e}",
        "### X: y\n- accept: `x`\n",
        "`",
        "\\",
        "- - - - - ",
        "**Task A: b.** c",
        "__T1: x__ y",
        "İ",
        "ß",
        "é",
        "— ",
        "…",
    ];
    prop_oneof![5 => prop::sample::select(marks).prop_map(str::to_owned), 2 => "[a-zA-Z ]{1,12}", 1 => ".{0,8}"]
}
