//! What holds for every text whatever: no panic, the same answer twice, places inside of the text, nothing that a
//! terminal would obey; and for every generated valid plan, that it is read back as generated.

use proptest::prelude::*;

use super::plan;
use crate::plan::{Severity, parse, show};

/// What any answer must keep.
fn holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let parsed = parse("file", bytes);
    prop_assert_eq!(&parsed, &parse("file", bytes));
    let error = parsed.problems.iter().any(|p| p.severity == Severity::Error);
    prop_assert_eq!(parsed.plan.is_none(), error);
    let (mut lines, mut counted) = (1, 0);
    for problem in &parsed.problems {
        prop_assert!(problem.span.start <= problem.span.end && problem.span.end <= bytes.len(), "{:?}", problem);
        if let Ok(text) = std::str::from_utf8(bytes) {
            prop_assert!(text.get(problem.span.start..problem.span.end).is_some(), "{:?}", problem);
            lines += text[counted..problem.span.start].matches('\n').count();
            counted = problem.span.start;
            prop_assert_eq!(problem.line as usize, lines);
        }
        let words = format!("{}{}", problem.message, problem.hint.as_deref().unwrap_or(""));
        prop_assert!(!words.chars().any(char::is_control), "{:?}", words);
    }
    if let Some(plan) = &parsed.plan {
        prop_assert_eq!(plan.graph().order().len(), plan.tasks.len());
        let shown = show(plan);
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'));
    }
    Ok(())
}

/// Scraps that plans are made of, whole and broken.
pub(super) fn scrap() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "---\n",
        "plan: x\n",
        "review: [critic, \"a\n",
        "hang:\n  silence: 5m\n",
        "# P\n",
        "## Wave 1\n",
        "## Wave\n",
        "## Dispatch rules\n",
        "### T1: a\n",
        "### T2: b\n",
        "### Background\n",
        "### T 3: c\n",
        "### **T4:** d\n",
        "#### T5: e\n",
        "- accept: `x`\n",
        "- accept: `x` y\n",
        "- **agent**: me\n",
        "- blocked by: T1, T2\n",
        "- blocked by:\n  - T2\n  - T1\n",
        "- wave: 2\n",
        "- artifacts: ../x, y\n",
        "- timeout: 5\n",
        "- [ ] do\n",
        "  - [x] nested\n",
        "  text\n",
        "\n",
        "```\n",
        "> ",
        "1. ",
        "\t",
        "\r\n",
        "    ",
        "- ",
        "* ",
        "<!-- ",
        "-->",
        "`",
        "[a]: b\n",
        "===\n",
        "\u{feff}",
        "\u{1b}[31m",
        "\u{202e}",
        "ä: ö\n",
        "Title\n---\n",
        ":",
        ",",
        "]",
    ]);
    prop_oneof![8 => fixed.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => "[ -~\n]{0,20}"]
}

/// The same plan with Unix and with DOS line ends.
fn same_with_dos_line_ends(text: &str) -> Result<(), TestCaseError> {
    let (unix, dos) = (parse("f", text.as_bytes()), parse("f", text.replace('\n', "\r\n").as_bytes()));
    let codes = |parsed: &crate::plan::Parsed| {
        parsed.problems.iter().map(|p| (p.code, p.line, p.column, p.message.clone())).collect::<Vec<_>>()
    };
    prop_assert_eq!(codes(&unix), codes(&dos));
    prop_assert_eq!(unix.plan.map(|p| (p.goal, p.tasks)), dos.plan.map(|p| (p.goal, p.tasks)));
    Ok(())
}

#[test]
fn line_ends_do_not_matter_in_what_was_found() {
    let text =
        "review: [critic, \"a\n!### Background\n\u{feff}### Background\n---\n- accept: `x`\n---\n---\n### T1: a\n";
    same_with_dos_line_ends(text).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        holds(&bytes)?;
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        holds(text.as_bytes())?;
    }

    #[test]
    fn any_scraps_of_plans(scraps in prop::collection::vec(scrap(), 0..40)) {
        holds(scraps.concat().as_bytes())?;
    }

    #[test]
    fn line_ends_do_not_matter(scraps in prop::collection::vec(scrap(), 0..30)) {
        same_with_dos_line_ends(&scraps.concat().replace('\r', ""))?;
    }

    #[test]
    fn valid_plans_are_read_back(tasks in prop::collection::vec((
        "[A-Za-z0-9][A-Za-z0-9._-]{0,10}",
        "[A-Za-z][A-Za-z ,:]{0,20}[a-z]",
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        prop::collection::vec("[a-z][a-z0-9 &|$\"'/.-]{0,20}[a-z]", 1..3),
        0u32..3,
    ), 1..25)) {
        let name = |i: usize| format!("{}-{i}", tasks[i].0);
        let mut text = String::from("# P\n");
        for (i, (_, title, blockers, accept, gap)) in tasks.iter().enumerate() {
            text.push_str(&format!("### {}: {title}\n{}", name(i), "\n".repeat(*gap as usize)));
            let list: Vec<_> = blockers.iter().filter(|_| i > 0).map(|b| name(b.index(i))).collect();
            if !list.is_empty() {
                text.push_str(&format!("- Blocked By: {}\n", list.join(" , ")));
            }
            for command in accept {
                text.push_str(&format!("- accept: `{command}`\n"));
            }
            text.push_str(&format!("\nBody of {i}.\n"));
        }
        let plan = plan(&text);
        prop_assert_eq!(plan.tasks.len(), tasks.len());
        for (i, (task, (_, title, blockers, accept, _))) in plan.tasks.iter().zip(&tasks).enumerate() {
            prop_assert_eq!(task.id.as_str(), name(i));
            prop_assert_eq!(&task.title, title.trim());
            let mut list: Vec<_> = blockers.iter().filter(|_| i > 0).map(|b| name(b.index(i))).collect();
            let mut seen = std::collections::BTreeSet::new();
            list.retain(|id| seen.insert(id.clone()));
            let read: Vec<_> = task.blocked_by.iter().map(|id| id.to_string()).collect();
            prop_assert_eq!(read, list);
            prop_assert_eq!(&task.accept, accept);
            prop_assert_eq!(&task.body, &format!("Body of {i}."));
        }
    }
}

/// How long this may take is bounded by the runner's hang limit alone: what a text makes
/// take for ever is ended by it, with the test's name.
#[test]
fn ten_thousand_tasks() {
    let mut text = String::from("# Large\n");
    for i in 0..10_000 {
        text.push_str(&format!("### T{i}: task\n- accept: `true`\n- agent: a{}\n", i % 7));
        if i > 10 {
            text.push_str(&format!("- blocked by: T{}, T{}\n", i - 1, i / 2));
        }
        text.push_str("\nSome words about the task.\n\n");
    }
    let plan = plan(&text);
    assert_eq!(plan.tasks.len(), 10_000);
    let broken = text.replace("blocked by: T", "blocked by: U");
    let parsed = parse("file", broken.as_bytes());
    assert_eq!(parsed.problems.len(), 9_989);
    let list = "- [ ] item\n".repeat(10_000);
    assert_eq!(super::plan(&list).tasks.len(), 10_000);
}

#[test]
fn hostile_nesting_and_long_lines() {
    for text in [
        format!("{}x", "- + ".repeat(2_000)),
        "> ".repeat(20_000),
        format!("{}[ ] x", "+ - ".repeat(2_000)),
        (0..400).map(|i| format!("{}- [ ] x\n", "  ".repeat(i))).collect(),
        format!("# P\n### T1: a\n- accept: x\n- blocked by: {}\n", "z, ".repeat(50_000)),
        format!("# P\n### T1: a\n- artifacts: {}\n", (0..50_000).map(|i| format!("f{i}, ")).collect::<String>()),
        "`".repeat(50_000),
        format!("---\n{}---\n", (0..3_000).map(|i| format!("k{i}: v\n")).collect::<String>()),
    ] {
        holds(text.as_bytes()).expect("holds");
    }
}
