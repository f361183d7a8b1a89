//! The composer's promises: never over its room, the same items give the same text, worth is monotone, and nothing escapes
//! its fence.

use proptest::prelude::*;

use super::{Item, Layout, Section, compose};
use crate::fence;

const SECTIONS: [Section; 5] = [Section::Goal, Section::Task, Section::Decisions, Section::Commands, Section::Findings];

fn fenced(section: Section) -> bool {
    !matches!(section, Section::Goal | Section::Task)
}

const LAYOUT: Layout<'static> = Layout { fenced: &fenced, label: "the record" };

fn item() -> impl Strategy<Value = Item> {
    let text = prop_oneof!["[a-z |<>#\n\u{0}-]{0,120}", "\\PC{0,60}"];
    (0usize..SECTIONS.len(), 0u16..50, text, proptest::option::of("[a-z ]{0,20}"))
        .prop_map(|(section, worth, text, short)| Item { section: SECTIONS[section], worth, text, short })
}

proptest! {
    #[test]
    fn the_text_never_exceeds_its_room(items in proptest::collection::vec(item(), 0..20), room in 0usize..2_000) {
        let text = compose(&items, room, LAYOUT);
        prop_assert!(text.len() <= room, "{} > {room}", text.len());
        prop_assert_eq!(compose(&items, room, LAYOUT), text);
    }

    #[test]
    fn an_item_that_is_worth_more_stays(
        items in proptest::collection::vec(item(), 1..20), room in 0usize..2_000, which in any::<usize>(), more in 1u16..50,
    ) {
        let which = which % items.len();
        let kept = |items: &[Item]| super::choose(items, room, LAYOUT)[which].is_some();
        let mut raised = items.clone();
        raised[which].worth += more;
        prop_assert!(!kept(&items) || kept(&raised));
    }

    #[test]
    fn nothing_leaves_its_fence(items in proptest::collection::vec(item(), 0..20), room in 0usize..4_000) {
        let text = fence::seal(&compose(&items, room, LAYOUT), "0123456789abcdef0123456789abcdef");
        let mut inside = false;
        for line in text.lines() {
            let (opens, closes) =
                (line.starts_with("<<<rekindle-data 0123"), line.starts_with("0123456789abcdef0123456789abcdef rekindle-data>>>"));
            prop_assert!(!inside || closes || line.starts_with("| "), "{line:?}");
            inside = (inside || opens) && !closes;
        }
        prop_assert!(!inside);
    }
}

#[test]
fn room_that_is_left_is_used_and_what_is_left_out_is_counted() {
    let items: Vec<Item> =
        (0..20).map(|n| Item::new(Section::Findings, n, format!("- finding {n} {}", "x".repeat(60)))).collect();
    let text = compose(&items, 1_000, LAYOUT);
    assert!(text.contains("finding 19") && !text.contains("finding 2 "), "{text}");
    assert!(text.contains("of \"Findings\""), "{text}");
    assert!(text.len() > 1_000 - 240 - 80, "room is used: {}", text.len());
    let all = compose(&items, 10_000, LAYOUT);
    assert!(all.contains("finding 0 ") && !all.contains("left out"), "{all}");
}

#[test]
fn a_long_item_is_kept_short() {
    let long = Item::new(Section::Task, 9, "word ".repeat(400)).or_short("the task, in short");
    let text = compose(&[long], 600, LAYOUT);
    assert!(text.contains("the task, in short"), "{text}");
}

mod ways {
    //! Every way in knows what the others know.

    use proptest::prelude::*;

    use crate::brief::sources::{self, Form};
    use crate::brief::{
        Answered, Asked, Decision, Facts, REINJECT_BYTES, Standing, TaskFacts, TaskResult, reinject, render,
        render_resumed,
    };
    use crate::cause::Cause;
    use crate::ids::{AgentName, TaskId};
    use crate::memory::{Item, PastCall, Section};
    use crate::report::Checkpoint;

    fn id(text: &str) -> TaskId {
        TaskId::new(text).expect("valid")
    }

    fn call(input: &str, ok: Option<bool>, output: &str) -> PastCall {
        PastCall { tool: "Bash".into(), input: input.into(), acts: true, ok, output: output.into(), earlier: true }
    }

    /// Facts with these words, each in one place.
    fn facts(words: &[String]) -> Facts {
        let mut facts = Facts::new(AgentName::new("solo").expect("valid"));
        facts.nonce = "0123456789abcdef0123456789abcdef".into();
        facts.cause = Some(Cause::Crashed { code: None, signal: Some(9) });
        facts.attempt = 2;
        facts.forgot = true;
        facts.goal.clone_from(&words[0]);
        facts.dispatch_rules = Some(words[1].clone());
        facts.tasks = vec![TaskFacts {
            id: id("T2"),
            title: "Title".into(),
            standing: Standing::Current,
            body: words[2].clone(),
            accept: vec![words[3].clone()],
            artifacts: Vec::new(),
            reading: Vec::new(),
            blocked_by: vec![id("T1")],
        }];
        facts.results = vec![TaskResult { id: id("T1"), result: words[4].clone(), needed: true }];
        facts.decisions = vec![Decision { by: None, text: words[5].clone() }];
        facts.answers = vec![Answered { task: id("T2"), question: words[6].clone(), answer: words[7].clone() }];
        facts.open_questions = vec![Asked { task: id("T2"), question: words[8].clone() }];
        facts.checkpoint = Some(Checkpoint {
            status: words[9].clone(),
            completed: vec![words[10].clone()],
            remaining: vec![words[11].clone()],
            ..Checkpoint::default()
        });
        facts.calls.known = vec![
            call(&words[12], Some(true), &words[13]),
            call(&words[14], Some(false), &words[15]),
            call(&format!("{{\"file_path\":\"{}\"}}", words[16]), Some(true), ""),
            call(&words[17], None, ""),
        ];
        facts.disk.diff_stat = format!(" {} | 3 +", words[18]);
        facts
    }

    fn word() -> impl Strategy<Value = String> {
        "[a-z]{6}-[0-9]{4}( [a-z]{1,8}){0,6}"
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_of_them_has_all_that_is_known(words in proptest::collection::vec(word(), 19)) {
            let facts = facts(&words);
            let ways = [("brief", render(&facts)), ("notice", reinject(&facts)), ("resumed", render_resumed(&facts))];
            for (way, text) in ways {
                for (index, word) in words.iter().enumerate() {
                    prop_assert!(text.contains(word.as_str()), "{way}: word {index}, {word}, is not in\n{text}");
                }
            }
            prop_assert!(reinject(&facts).len() <= REINJECT_BYTES);
        }

        #[test]
        fn a_session_that_remembers_is_not_told_again(words in proptest::collection::vec(word(), 19)) {
            let text = render_resumed(&Facts { forgot: false, ..facts(&words) });
            for known in [0, 1, 2, 4, 5, 12, 14] {
                prop_assert!(!text.contains(words[known].as_str()), "word {known} in\n{text}");
            }
            for news in [7, 18] {
                prop_assert!(text.contains(words[news].as_str()), "word {news} not in\n{text}");
            }
        }
    }

    /// `cargo test -p rekindle-core ablation -- --nocapture` prints what each section of the notice holds and costs.
    #[test]
    fn ablation_each_word_is_lost_with_one_section_and_with_no_other() {
        let words: Vec<String> = (0..19).map(|n| format!("word-{n:04}")).collect();
        let items = sources::items(&facts(&words), Form::Plan, REINJECT_BYTES);
        let whole = sources::draft(&items, REINJECT_BYTES);
        let held = |text: &str| words.iter().filter(|word| text.contains(word.as_str())).count();
        assert_eq!(held(&whole), words.len(), "{whole}");
        let mut sections: Vec<Section> = items.iter().map(|item| item.section).collect();
        sections.sort();
        sections.dedup();
        println!("| section | words lost without it | bytes |\n|---|---|---|");
        let mut lost = 0;
        for section in sections {
            let rest: Vec<Item> = items.iter().filter(|item| item.section != section).cloned().collect();
            let rest = sources::draft(&rest, REINJECT_BYTES);
            let (words, bytes) = (words.len() - held(&rest), whole.len() - rest.len());
            if bytes > 0 {
                println!("| {} | {words} | {bytes} |", section.heading());
            }
            lost += words;
        }
        println!("| all | {} | {} |", words.len(), whole.len());
        assert_eq!(lost, words.len(), "every word has one place");
    }

    #[test]
    fn many_calls_fade_and_what_is_not_listed_is_counted() {
        let words: Vec<String> = (0..19).map(|n| format!("word-{n:04}")).collect();
        let mut facts = facts(&words);
        facts.checkpoint = None;
        facts.calls.known =
            (0..200).map(|n| call(&format!("./step.sh {n} {}", "x".repeat(80)), Some(true), "did it")).collect();
        facts.calls.dropped = 37;
        let text = reinject(&facts);
        assert!(text.contains("./step.sh 199 ") && text.contains("./step.sh 180 "), "{text}");
        assert!(!text.contains("./step.sh 3 "), "{text}");
        assert!(text.contains("37 older calls are not listed") && text.contains("No checkpoint was saved"), "{text}");
        assert!(text.contains("of \"Done Already, Do Not Redo\""), "{text}");
        for kept in [0, 1, 2, 3, 4, 5, 7, 18] {
            assert!(text.contains(&words[kept]), "{} is crowded out:\n{text}", words[kept]);
        }
    }

    #[test]
    fn the_same_call_is_counted_and_a_failure_that_was_mended_gives_way() {
        let words: Vec<String> = (0..19).map(|n| format!("word-{n:04}")).collect();
        let mut facts = facts(&words);
        facts.calls.known = vec![
            call("make test", Some(false), "two failed"),
            call("make test", Some(true), "ok"),
            call("make test", Some(true), "ok"),
        ];
        let text = reinject(&facts);
        assert!(text.contains("- `make test` → ok (×2)"), "{text}");
        assert!(text.contains("- `make test` FAILED → two failed"), "there is room for it: {text}");
    }
}
