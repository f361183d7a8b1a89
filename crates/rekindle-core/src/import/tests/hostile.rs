//! Whatever stands in a source: it becomes an error or a plan that can be used, with as many tasks as were counted, and
//! nothing that the source says becomes structure.

use proptest::prelude::*;

use super::{Format, ImportError, Source, SourceFile, convert, source};
use crate::plan::parse;

const FORMATS: [Format; 7] = [
    Format::SpecKit,
    Format::TaskMaster,
    Format::Beads,
    Format::TaskFiles,
    Format::OpenSpec,
    Format::Kiro,
    Format::GitHub,
];

/// Texts that try to be more than text.
const ATTACKS: &[&str] = &[
    "### X1: injected\n- accept: `touch /tmp/x`\n",
    "\n\n## Wave 9\n\n### X2: injected\n",
    "---\nplan: evil\nreview: []\n---\n",
    "- accept: `curl x | sh`\n- cli: other\n",
    "x\r### X3: injected\r- accept: `x`",
    "<!--",
    "```",
    "~~~\n",
    "> ### X4: quoted\n",
    "title ###",
    "#",
    "# ##",
    "===\n---\n===",
    "- [ ] X5: a box",
    "[a]: b \"c",
    "<script>",
    "<![CDATA[",
    "\u{2028}### X6: x\u{85}### X7: y",
    "\u{1b}]0;t\u{7}\u{202e}",
    "\t### X8: tab",
    "    ### X9: code",
    "none",
    "N/A",
    "",
    " ",
    "\\",
    "`",
    "**",
    ": : :",
];

/// What must hold of any outcome.
fn holds(format: Format, source: &Source) -> Result<(), TestCaseError> {
    match convert(format, source) {
        Ok(imported) => {
            let parsed = parse("other", imported.text.as_bytes());
            let plan = parsed.plan.expect("usable");
            prop_assert_eq!(plan.tasks.len(), imported.tasks);
            prop_assert_eq!(plan.tasks.iter().filter(|task| task.done).count(), imported.done);
            for task in &plan.tasks {
                prop_assert!(task.accept.is_empty() && task.cli.is_none() && task.agent.is_none());
                prop_assert!(!task.id.as_str().starts_with('X') || task.id.as_str().len() > 2, "{}", task.id);
            }
            prop_assert!(plan.settings.review.is_none());
            for remark in &imported.remarks {
                prop_assert!(!remark.chars().any(crate::text::is_harmful) && !remark.contains('\n'), "{:?}", remark);
            }
            prop_assert!(!imported.text.chars().any(crate::text::is_harmful));
        }
        Err(ImportError::Unusable(why)) => prop_assert!(false, "{}: {:?}", why, source),
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

fn scrap() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec![
        "- [ ] ",
        "- [x] ",
        "- [ ]* ",
        "  - [ ] ",
        "T001 ",
        "T002 [P] [US1] ",
        "1.1 ",
        "1. ",
        "2.3 ",
        "## 1. A\n",
        "## Phase 1: B\n",
        "(depends on T001, T002)",
        " in src/a.rs",
        " in ../b.rs",
        "\n",
        "\r\n",
        "**Goal**: ",
        "# Tasks: ",
    ]);
    prop_oneof![
        4 => marks.prop_map(str::to_owned),
        2 => prop::sample::select(ATTACKS).prop_map(str::to_owned),
        1 => ".{0,12}",
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(ATTACKS).prop_map(str::to_owned), "[a-c1-3.]{1,3}", ".{0,8}"]
}

prop_compose! {
    /// One object with the fields of every JSON format at once.
    fn object()(
        id in "[1-4a]", title in word(), body in word(), status in prop::sample::select(vec!["done", "closed", "pending", "OPEN", "deferred"]),
        after in prop::collection::vec("[1-5a]", 0..4), kind in prop::sample::select(vec!["blocks", "parent-child", "x"]),
        path in word(), number in 0u32..5,
    ) -> serde_json::Value {
        let links: Vec<_> = after.iter().map(|on| serde_json::json!({"depends_on_id": on, "type": kind})).collect();
        let body = format!("{body}\nblocked by #{number}");
        serde_json::json!({
            "id": id, "number": number, "title": title, "subject": title, "description": body, "body": body, "details": body,
            "status": status, "state": status, "blockedBy": after, "blocks": after, "dependencies": links, "priority": number,
            "relevantFiles": [{"path": path, "action": "create"}, {"path": path}], "labels": [{"name": path}],
            "subtasks": [{"id": 1, "title": body, "dependencies": after}],
        })
    }
}

proptest! {
    #[test]
    fn any_text_whatever(text in ".{0,200}", format in prop::sample::select(&FORMATS[..])) {
        holds(format, &source("x", &text))?;
    }

    #[test]
    fn checklists_of_scraps(scraps in prop::collection::vec(scrap(), 0..40), title in word()) {
        let text = scraps.concat();
        for format in [Format::SpecKit, Format::OpenSpec, Format::Kiro] {
            let source = Source { title: title.clone(), reading: vec![title.clone()], ..source("tasks.md", &text) };
            holds(format, &source)?;
        }
    }

    #[test]
    fn objects_of_scraps(objects in prop::collection::vec(object(), 1..12), title in word()) {
        let lines: Vec<String> = objects.iter().map(ToString::to_string).collect();
        let list = serde_json::json!(objects).to_string();
        let tasks = serde_json::json!({"tasks": objects}).to_string();
        for (format, text) in [(Format::Beads, lines.join("\n")), (Format::GitHub, list), (Format::TaskMaster, tasks)] {
            holds(format, &Source { title: title.clone(), ..source("x", &text) })?;
        }
        let files = lines.iter().map(|text| SourceFile { path: title.clone(), text: text.clone() }).collect();
        holds(Format::TaskFiles, &Source { title, files, ..Source::default() })?;
    }
}

#[test]
fn every_attack_in_every_place() {
    for attack in ATTACKS {
        let object = serde_json::json!({"id": attack, "title": attack, "description": attack, "status": "open", "dependencies": []});
        let issue = serde_json::json!([{"number": 1, "title": attack, "body": attack, "labels": [{"name": attack}]}]);
        let named = |text: String| Source { title: (*attack).to_owned(), ..source(attack, &text) };
        for (format, text) in [
            (Format::Beads, object.to_string()),
            (Format::GitHub, issue.to_string()),
            (Format::TaskMaster, serde_json::json!({"tasks": [object]}).to_string()),
            (Format::OpenSpec, format!("- [ ] 1.1 a\n  {attack}\n")),
            (Format::SpecKit, format!("- [ ] T001 a\n  {attack}\n")),
            (Format::Kiro, format!("- [ ] 1. a\n  {attack}\n")),
        ] {
            holds(format, &named(text)).expect("holds");
        }
    }
}

#[test]
fn a_dependency_on_a_group_of_groups_stays_bounded() {
    let count = 2_000;
    let mut lines = vec![serde_json::json!({"id": "e", "title": "e", "issue_type": "epic"}).to_string()];
    for n in 0..count {
        let parent = serde_json::json!({"depends_on_id": "e", "type": "parent-child"});
        lines.push(serde_json::json!({"id": format!("c{n}"), "title": "c", "dependencies": [parent]}).to_string());
        let after = serde_json::json!({"depends_on_id": "e", "type": "blocks"});
        lines.push(serde_json::json!({"id": format!("d{n}"), "title": "d", "dependencies": [after]}).to_string());
    }
    let error = convert(Format::Beads, &source("x", &lines.join("\n"))).expect_err("too many");
    assert!(matches!(error, ImportError::TooMany { what: "dependencies", .. }), "{error}");
}
