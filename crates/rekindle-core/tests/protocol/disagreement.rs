//! Where critic and auditor do not agree, what is learned from it, and what makes environments differ.

use rekindle_core::review::{DisagreementType, Verdict, focus_areas};

use crate::errors::differing;
use crate::harness::{Story, evidence, task};
use crate::scene::{REVIEWED, details, develop, happened, judge};
use rekindle_core::input::Order;
use rekindle_core::report::Evidence;

/// A critic passes, an auditor fails, and rekindle's checks say this.
fn disagree(evidence_then: Evidence, issues: &[&str]) -> Story {
    let mut story = Story::of(REVIEWED);
    disagree_in(&mut story, evidence_then, issues);
    story
}

fn disagree_in(story: &mut Story, evidence_then: Evidence, issues: &[&str]) {
    develop(story, "T1");
    judge(story, "T1", Verdict::Pass, &[], evidence(true));
    judge(story, "T1", Verdict::Fail, issues, evidence_then);
}

fn context_names(words: &[&str]) {
    let mut story = Story::of(REVIEWED);
    develop(&mut story, "T1");
    judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
    judge(&mut story, "T1", Verdict::Pass, &[], differing());
    let context = story.state.tasks[&task("T1")].workflow.rework.clone().expect("sent back").context;
    for word in words {
        assert!(context.contains(word), "{word} is missing in {context}");
    }
}

rows! {
    "Disagreement categories and common environment causes";
    "Detection: AUDIT_FAILED after REVIEW_PASSED" => a_failed_audit_after_a_passed_review_is_a_disagreement {
        let story = disagree(evidence(true), &["bad names"]);
        assert!(happened(&story, "review_audit_disagreement"));
    }
    "Detection: an audit failure without a passed review is none" => a_failed_audit_without_a_review_is_none {
        let mut story = Story::of("---\nreview: [auditor]\n---\n# Demo\n\n### T1: first\n- accept: `true`\n\nDo.\n");
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Fail, &["bad names"], evidence(true));
        assert!(!happened(&story, "review_audit_disagreement"));
        assert!(happened(&story, "task_rework"));
    }
    "acceptance_criteria: criteria not met: normal flow" => a_failing_check_is_the_auditors_own_field {
        let story = disagree(evidence(false), &["the check fails"]);
        assert_eq!(story.state.disagreements[0].what.disagreement_type, DisagreementType::AcceptanceCriteria);
        assert!(!happened(&story, "critic_missed_quality_issue"));
    }
    "code_quality: quality issue Critic missed: logged for feedback" => issues_although_all_checks_pass_were_missed {
        let story = disagree(evidence(true), &["errors are swallowed"]);
        assert_eq!(story.state.disagreements[0].what.disagreement_type, DisagreementType::CodeQuality);
        assert_eq!(details(&story, "critic_missed_quality_issue")["issues"][0], "errors are swallowed");
    }
    "environment_specific: passes in some envs, fails in others" => differing_environments_are_their_own_category {
        let story = disagree(differing(), &["fails in minimal"]);
        assert_eq!(story.state.disagreements[0].what.disagreement_type, DisagreementType::EnvironmentSpecific);
        assert!(happened(&story, "environment_disagreement"));
    }
    "Learning: recurring misses become focus areas, bounded and resettable" => recurring_misses_become_focus_areas {
        let mut story = Story::of(REVIEWED);
        story.state.limits.attempts = 9;
        disagree_in(&mut story, evidence(true), &["errors are swallowed"]);
        assert!(focus_areas(&story.state.disagreements).is_empty(), "once is no pattern");
        disagree_in(&mut story, evidence(true), &["the error is lost"]);
        let areas = focus_areas(&story.state.disagreements);
        assert_eq!((areas[0].category.as_str(), areas[0].misses), ("error_handling", 2));
        story.order(Order::ForgetFocus);
        assert!(focus_areas(&story.state.disagreements).is_empty());
    }
    "Missing dependencies: add to all env configs" => missing_dependencies_are_named { context_names(&["missing dependencies", "add it to all"]); }
    "Path differences: use relative/env-aware paths" => path_differences_are_named { context_names(&["path differences", "relative"]); }
    "Version mismatches: pin versions consistently" => version_mismatches_are_named { context_names(&["version mismatches", "pin versions"]); }
    "Platform-specific: add platform guards" => platform_specific_code_is_named { context_names(&["platform-specific", "platform guards"]); }
}
