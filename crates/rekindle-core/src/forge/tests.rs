//! What a forge says, and what follows from it.

use super::*;
use crate::pull_request::PullRequest;

fn found(id: &str, state: Standing, body: &str) -> Found {
    let (url, head, base) = (String::new(), "tip".to_owned(), "main".to_owned());
    Found { id: id.to_owned(), url, state, head, base, body: body.to_owned() }
}

fn known(stage: PullRequestStage, head: &str) -> KnownPullRequest {
    let at = PullRequest { id: "7".to_owned(), head: head.to_owned(), ..PullRequest::default() };
    KnownPullRequest { stage, at, taken: std::iter::once("line-1".to_owned()).collect(), answered: Default::default() }
}

fn said() -> Comment {
    Comment {
        id: "line-1".to_owned(),
        by: "ann".to_owned(),
        body: "please rename".to_owned(),
        path: None,
        line: None,
        head: Some("now".to_owned()),
        trusted: true,
        settled: false,
        thread: None,
    }
}

fn status(checks: &[Outcome]) -> Status {
    let check =
        |(at, outcome): (usize, &Outcome)| Check { name: format!("job {at}"), outcome: *outcome, url: String::new() };
    let checks = checks.iter().enumerate().map(check).collect();
    Status { state: Standing::Open, head: "now".to_owned(), mergeable: Mergeable::Yes, checks }
}

#[test]
fn the_oldest_open_one_with_our_mark_is_ours() {
    let all = vec![
        found("10", Standing::Open, "m"),
        found("9", Standing::Open, "m"),
        found("2", Standing::Open, "by hand"),
        found("1", Standing::Closed, "m"),
    ];
    let by = |id: Option<&str>, all: Vec<Found>, tip: &str| {
        choose(all, &Wanted { id, marker: "m", tip }, "main").map(|found| found.id)
    };
    let id = |all: Vec<Found>, tip: &str| by(None, all, tip);
    assert_eq!(by(Some("1"), all.clone(), "newer").as_deref(), Some("1"), "the known one, although it was closed");
    assert_eq!(id(all.clone(), "tip").as_deref(), Some("9"));
    assert_eq!(id(all[2..].to_vec(), "tip").as_deref(), Some("2"), "one that a person opened is used");
    assert_eq!(id(all[3..].to_vec(), "tip").as_deref(), Some("1"), "what was closed is not opened again");
    assert_eq!(id(all[3..].to_vec(), "newer"), None, "there is more since");
}

#[test]
fn only_open_words_of_the_project_on_the_shown_commit_count() {
    assert!(counts(&said(), "now", &[]));
    assert!(!counts(&said(), "newer", &[]), "it was said about another commit");
    assert!(!counts(&Comment { settled: true, ..said() }, "now", &[]));
    let stranger = Comment { trusted: false, ..said() };
    assert!(!counts(&stranger, "now", &[]));
    assert!(counts(&stranger, "now", &["ann".to_owned()]));
    let own = Comment { body: answer_marker("line-1"), ..said() };
    assert!(!counts(&own, "now", &[]), "our own answers are no review");
}

#[test]
fn publishing_begins_by_what_is_on_record() {
    let first = Beginning { open: None, records_opening: true, looks: 1 };
    assert_eq!(begin(None, "tip"), Some(first.clone()));
    let again = Beginning { looks: LOOKS, ..first.clone() };
    assert_eq!(begin(Some(&known(PullRequestStage::Opening, "tip")), "tip"), Some(again), "it may be open");
    let open = Beginning { open: Some("7".to_owned()), records_opening: false, looks: 1 };
    assert_eq!(begin(Some(&known(PullRequestStage::Open, "old")), "tip"), Some(open));
    let merged = known(PullRequestStage::Merged, "tip");
    assert_eq!(begin(Some(&merged), "tip"), None);
    assert_eq!(begin(Some(&merged), "newer"), Some(first), "newer work has a pull request of its own");
    let closed = begin(Some(&known(PullRequestStage::Closed, "tip")), "tip");
    assert_eq!(closed.map(|begin| begin.records_opening), Some(false), "what was closed is not opened again");
}

#[test]
fn a_comment_is_taken_once_and_answered_once() {
    let open = known(PullRequestStage::Open, "now");
    assert_eq!(new_comments(&open, &[said()], &[]).count(), 0, "it is rework already");
    let other = Comment { id: "line-2".to_owned(), ..said() };
    assert_eq!(new_comments(&open, &[said(), other.clone()], &[]).count(), 1);
    let owed = |comments: &[Comment]| {
        unanswered(&open, comments).map(|(comment, given)| (comment.id.clone(), given)).collect::<Vec<_>>()
    };
    assert_eq!(owed(&[said(), other]), [("line-1".to_owned(), false)]);
    let answer = Comment { id: "line-3".to_owned(), body: answer_marker("line-1"), ..said() };
    assert_eq!(owed(&[said(), answer]), [("line-1".to_owned(), true)], "the forge has it: only the record lacks it");
}

#[test]
fn only_what_is_green_twice_is_merged_and_failures_come_together() {
    use Outcome::{Failed, Other, Passed, Pending};
    let mut last = None;
    assert!(!may_merge(&mut last, &status(&[Passed])), "jobs may still be coming");
    assert!(!may_merge(&mut last, &status(&[Passed, Passed])), "one came");
    assert!(may_merge(&mut last, &status(&[Passed, Passed])));
    assert!(!may_merge(&mut last, &Status { head: "newer".to_owned(), ..status(&[Passed, Passed]) }));
    assert!(!may_merge(&mut last, &status(&[Passed, Other])));
    assert!(!may_merge(&mut last, &status(&[])), "no job says anything");
    let open = known(PullRequestStage::Open, "now");
    assert!(new_failures(&open, &status(&[Failed, Pending])).is_empty());
    assert_eq!(new_failures(&open, &status(&[Failed, Failed, Passed])).len(), 2);
}
