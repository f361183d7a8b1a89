//! What a run's facts say, as items with their worth: one set for all uses. A brief, the notice after a compaction and the
//! prompt of a resumed session differ in which items they take and in how much room there is, and in nothing else.

use super::{Facts, judge, parts, past, persons, rework, under_way, whole_plan};
use crate::fence::{self, Keep};
use crate::memory::{Item, Layout, Section, calls, compose};
use crate::text;

/// Longest note that is shown whole.
const NOTE_BYTES: usize = 700;

/// Longest result of another task.
const RESULT_BYTES: usize = 600;

/// Maximum length of the short form.
const SHORT_BYTES: usize = 160;

/// Longest answer: a person's decision, which is part of the instructions.
const ANSWER_BYTES: usize = 2 * 1024;

/// Longest output of a failing check: a screen or two.
const OUTPUT_BYTES: usize = 4 * 1024;

/// Tasks after the current one whose text is shown; the status lists all of them.
const LATER_MAX: usize = 20;

/// This many of the newest are worth the most; older ones fade.
const NEWEST: usize = 12;

/// How the current task is presented.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its text and checks as the plan has them.
    Plan,
    /// As work that was interrupted and is handed back.
    HandedBack,
    /// The same without its text, for a session that has it.
    Known,
}

/// Which sections hold what others wrote.
fn fenced(section: Section) -> bool {
    use Section as S;
    !matches!(
        section,
        S::Status
            | S::Goal
            | S::Rules
            | S::Plan
            | S::Task
            | S::Assignment
            | S::Later
            | S::Rework
            | S::PersonsWords
            | S::Answers
            | S::Checks
            | S::Next
            | S::Unknown
    )
}

/// The items that fit, as a draft. Agents' words go behind one fence.
pub(crate) fn draft(items: &[Item], room: usize) -> String {
    compose(items, room, Layout { fenced: &fenced, label: "the record of the run" })
}

/// Everything that is known. `room` is the room for all of it: a single long text takes at most its share.
pub(crate) fn items(facts: &Facts, form: Form, room: usize) -> Vec<Item> {
    let mut all = instructions(facts, form, room);
    all.extend(under_way::items(facts));
    all.extend(record(facts, room));
    all.extend(calls::items(&facts.calls, !facts.under_way.calls.is_empty()));
    all.extend(review(facts, room));
    all.extend(unknown(facts));
    all
}

/// What a session that remembers cannot know: what happened since, and what rekindle has seen.
pub(crate) fn news(facts: &Facts, form: Form, room: usize) -> Vec<Item> {
    use Section as S;
    let news = [
        S::Status,
        S::Assignment,
        S::Rework,
        S::Issues,
        S::PersonsWords,
        S::Answers,
        S::Asked,
        S::Checks,
        S::Failures,
        S::Files,
    ];
    let mut all = instructions(facts, form, room);
    all.extend(record(facts, room));
    all.retain(|item| news.contains(&item.section) || (form != Form::Plan && item.section == S::Checkpoint));
    all.extend(under_way::items(facts));
    all
}

/// The user's own words and the task: what the agent must do is worth more than what its predecessor said.
fn instructions(facts: &Facts, form: Form, room: usize) -> Vec<Item> {
    let plan = |words: &str, share: usize| parts::cut(words, &facts.plan_path, share);
    let mut all = vec![Item::new(Section::Status, 1000, parts::status(facts, room / 6))];
    if let Some(task) = facts.current() {
        // The whole plan, if the agent gets it again, takes its share of the room.
        let most = if facts.whole_plan.is_some() { room / 4 } else { room / 2 };
        let whole = parts::assignment(facts, task, form, most.max(room.saturating_sub(TIGHT_BYTES)));
        all.push(Item::new(Section::Assignment, 990, whole).or_short(parts::assignment(facts, task, form, most)));
    }
    if let Some(rework) = facts.review.rework.as_ref().filter(|_| !facts.role.reviews()) {
        all.push(Item::new(Section::Rework, 985, rework::sent_back(facts, rework)));
        let points = rework::points(rework);
        all.push(long(Section::Issues, 980, &points, Keep::Ends, room * 3 / 8));
    }
    all.push(Item::new(Section::Plan, 960, whole_plan::whole_plan(facts, room * 3 / 8)));
    let rules = facts.dispatch_rules.as_deref().unwrap_or_default();
    all.push(Item::new(Section::Goal, 950, plan(&facts.goal, usize::MAX)).or_short(plan(&facts.goal, room / 8)));
    all.push(Item::new(Section::Rules, 940, plan(rules, usize::MAX)).or_short(plan(rules, room / 8)));
    for task in parts::pending(facts).take(LATER_MAX) {
        let text = |room| parts::task_text("## Next Task", task, &facts.plan_path, room);
        all.push(Item::new(Section::Later, 935, text(usize::MAX)).or_short(text(room / 16)));
    }
    all
}

/// A brief with more room than this shows the task whole, and cuts it only when it alone is too long.
const TIGHT_BYTES: usize = 12 * 1024;

/// What was reported, decided, answered and seen.
fn record(facts: &Facts, room: usize) -> Vec<Item> {
    let mut all = Vec::new();
    if let Some(checkpoint) = &facts.checkpoint {
        all.push(long(Section::Checkpoint, 930, &past::checkpoint_text(checkpoint), Keep::Ends, room / 4));
    }
    if !facts.split.is_empty() {
        all.push(long(Section::Subtasks, 925, &past::subtasks(facts), Keep::Ends, room / 8));
    }
    all.extend(persons::items(facts, room));
    for (index, answered) in facts.answers.iter().enumerate() {
        let (number, worth) = (index + 1, fading(920, facts.answers.len() - index));
        let answer = text::sanitize(&answered.answer);
        let answer = text::truncate_bytes(answer.trim(), ANSWER_BYTES);
        let words = format!("Answer to question {number} ({}), to be followed:\n{answer}", answered.task);
        all.push(Item::new(Section::Answers, worth, words));
        let question = format!("{number}. ({}) {}", answered.task, text::fold(&answered.question, NOTE_BYTES));
        all.push(Item::new(Section::Asked, worth - 1, question));
    }
    for asked in &facts.open_questions {
        let words = format!("- {}: {}", asked.task, text::fold(&asked.question, NOTE_BYTES));
        all.push(Item::new(Section::Questions, 915, words));
    }
    for (index, decision) in facts.decisions.iter().enumerate() {
        let by = decision.by.as_ref().map_or("operator", |name| name.as_str());
        let line = |room| format!("- {by}: {}", text::fold(&decision.text, room));
        let worth = fading(900, facts.decisions.len() - index);
        all.push(Item::new(Section::Decisions, worth, line(NOTE_BYTES)).or_short(line(SHORT_BYTES)));
    }
    for done in &facts.do_not_redo {
        // What the checkpoint lists as completed is already there.
        if !facts.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.completed.contains(done)) {
            all.push(Item::new(Section::Done, 875, format!("- {}", text::fold(done, NOTE_BYTES))));
        }
    }
    all.push(Item::new(Section::Checks, 895, past::checks(facts)));
    for check in facts.disk.checks.iter().filter(|check| !check.result.passed) {
        let (command, output) = (text::one_line(&check.result.command, SHORT_BYTES), &check.result.output);
        let mut item = long(Section::Failures, 890, output, Keep::Tail, OUTPUT_BYTES.min(room / 8));
        item.text = format!("check `{command}` printed at its end:\n{}", item.text);
        all.push(item);
    }
    for (index, dead_end) in facts.dead_ends.iter().enumerate() {
        let words = format!("- did not work, try something else: {}", text::fold(dead_end, NOTE_BYTES));
        all.push(Item::new(Section::Failures, fading(893, facts.dead_ends.len() - index), words));
    }
    all.push(long(Section::Files, 700, &past::git(facts), Keep::Ends, room / 8));
    for (index, result) in facts.results.iter().enumerate() {
        let worth = if result.needed { 850 } else { fading(800, facts.results.len() - index) };
        let line = |room| format!("- {}: {}", result.id, text::fold(&result.result, room));
        all.push(Item::new(Section::Results, worth, line(RESULT_BYTES)).or_short(line(SHORT_BYTES)));
    }
    let lines = past::activity(facts);
    let newest = lines.len().saturating_sub(NEWEST);
    for (index, (weighty, line)) in lines.into_iter().enumerate() {
        let worth = if index >= newest { 300 } else { 200 };
        all.push(Item::new(Section::Activity, if weighty || index >= newest { worth } else { 100 }, line));
    }
    all
}

/// What a reviewer needs to know besides.
pub(crate) fn review(facts: &Facts, room: usize) -> Vec<Item> {
    let parts = [
        (Section::Claim, 905, judge::result(facts)),
        (Section::Verdicts, 900, judge::verdicts(facts)),
        (Section::Focus, 899, judge::focus(facts)),
    ];
    parts.into_iter().map(|(section, worth, text)| long(section, worth, &text, Keep::Tail, room / 4)).collect()
}

/// A text of many lines: what fits into its part of the room, or half of that.
fn long(section: Section, worth: u16, words: &str, keep: Keep, room: usize) -> Item {
    let clean = text::sanitize(words);
    let fitting = |room| fence::lines("", clean.trim_end(), keep, room);
    Item::new(section, worth, fitting(room)).or_short(fitting(room / 2))
}

/// What is unknown.
fn unknown(facts: &Facts) -> Vec<Item> {
    let mut lines = calls::unknown(&facts.calls);
    // A first prompt cannot lack anything.
    let begun = !facts.is_first() || !facts.calls.known.is_empty();
    if begun && facts.checkpoint.is_none() && !facts.role.reviews() {
        lines.push("- No checkpoint was saved.".to_owned());
    }
    vec![Item::new(Section::Unknown, 780, lines.join("\n"))]
}

/// The worth of an item by its distance from the newest, which is 1.
fn fading(best: u16, place: usize) -> u16 {
    if place <= NEWEST { best } else { best / 2 }
}
