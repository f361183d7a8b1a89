//! A plan that is written reads back as the same plan.

use proptest::prelude::*;

use super::plan;
use crate::plan::{FrontMatter, Plan, PlanTask, parse, write};

/// A plan without what depends on the file alone.
fn bare(plan: &Plan) -> Plan {
    let tasks = plan.tasks.iter().map(|task| PlanTask { line: 0, ..task.clone() }).collect();
    let settings = FrontMatter { plan: None, ..plan.settings.clone() };
    Plan { tasks, settings, hash: String::new(), ..plan.clone() }
}

fn reads_back(plan: &Plan) -> Result<(), TestCaseError> {
    let written = match write(plan, false) {
        Ok(written) => written,
        Err(what) => return Err(TestCaseError::fail(format!("{what} of {plan:#?}"))),
    };
    let read = parse(&plan.name, written.text.as_bytes());
    let Some(read) = read.plan else {
        return Err(TestCaseError::fail(format!("{:#?}\n{}", read.problems, written.text)));
    };
    if written.quoted.is_empty() {
        prop_assert_eq!(bare(&read), bare(plan), "{}", written.text);
    }
    let again = write(&read, false).map(|again| again.text);
    prop_assert_eq!(again.as_deref(), Ok(written.text.as_str()), "what was written is written the same");
    Ok(())
}

fn body() -> impl Strategy<Value = String> {
    let lines = prop::sample::select(vec![
        "Plain words.",
        "- a bullet",
        "- Add tests: unit and e2e",
        "- accept: not a key here",
        "#### A small heading",
        "```sh",
        "```",
        "### T9: not a task",
        "> quoted",
        "1. first",
        "    indented",
        "* star",
        "",
        "a | b",
        "<!-- open",
        "Title",
        "---",
        "[x]: y",
        "`code",
    ]);
    prop::collection::vec(lines, 0..5).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_read_is_written(bodies in prop::collection::vec(body(), 1..5), goal in body(), waves in any::<bool>()) {
        let mut text = format!("---\nmax_agents: 3\nusage.command: \"a # b\"\nhealth: [\"x, y\", \"z\"]\n---\n# P\n\n{goal}\n\n");
        for (i, body) in bodies.iter().enumerate() {
            let wave = if waves { format!("- wave: {}\n", i / 2 + 1) } else { String::new() };
            let after = if i > 0 { format!("- blocked by: T{}\n", i - 1) } else { String::new() };
            text.push_str(&format!("### T{i}: Task {i}\n- accept: `` echo `date` ``\n{wave}{after}- timeout: 1h5m\n\n{body}\n\n"));
        }
        if let Some(plan) = parse("p", text.as_bytes()).plan {
            reads_back(&plan)?;
        }
    }

    #[test]
    fn any_plan_of_scraps_is_written(scraps in prop::collection::vec(super::properties::scrap(), 0..40)) {
        if let Some(plan) = parse("file", scraps.concat().as_bytes()).plan {
            reads_back(&plan)?;
        }
    }
}

#[test]
fn a_checklist_and_every_key_are_written() {
    let all = "---\nplan: demo\nreview: []\nisolation: worktree\nbackoff: 0s\ncritic_timeout: 5m\nhang:\n  silence: 2m\n---\n# Demo\n\n\
               Goal.\n\n## Wave 1\n\nIntro.\n\n### T1: One\n- agent: me\n- role: developer\n- cli: x\n- artifacts: a.txt, `b, c`\n\
               - environments: host\n- reading: [guide](docs/a.md)\n- attempts: 2\n- priority: -3\n- accept:\n  ```\n  a\n  b\n  ```\n\n\
               Do it.\n\n## Wave 2\n\n### none: Two\n- blocked by: T1\n- done: yes\n\n### T3: Three\n- blocked by: none, none\n\nx\n\n\
               ## Dispatch rules\n\nBe quick.\n\n## More\n\nWords.\n";
    for text in [all, "- [ ] first\n  - [x] nested\n- [ ] T7: second\n  text below\n"] {
        reads_back(&plan(text)).expect("written and read back");
    }
}
