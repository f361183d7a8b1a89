//! The composer's promises: never over its room, the same items give the same text, worth is monotone, and nothing escapes
//! its fence.

use proptest::prelude::*;

use super::{Item, Layout, Section, compose};
use crate::brief::fence;

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
