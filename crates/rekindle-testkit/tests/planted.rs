//! The checkers are shown bugs planted at the seams around the product: each must be seen, as what it is.
//!
//! That the same seeds pass without a bug is shown here as well, or a checker that always complains would pass.

use std::ops::Range;

use rekindle_testkit::sim::{Invariant, Options, Plant, Violation, play};

/// Seeds within which a planted bug must show; most show in the first few.
const SEEDS: u64 = 60;

/// Seeds that show it, after which it has been seen often enough.
const ENOUGH: u32 = 6;

fn violation(seed: u64, plant: Option<Plant>) -> Option<Violation> {
    play(Options { seed, plant, aloud: false }).violation
}

/// Every violation of a planted bug on these seeds must be one of the invariants it breaks, and the first of them be seen.
fn is_seen(plant: Plant, expected: &[Invariant]) {
    is_seen_on(0..SEEDS, plant, expected);
}

/// The same on other seeds, for a bug that mostly shows as something that follows from it.
fn is_seen_on(seeds: Range<u64>, plant: Plant, expected: &[Invariant]) {
    let mut seen = 0;
    for seed in seeds.clone() {
        if let Some(found) = violation(seed, Some(plant)) {
            assert_eq!(violation(seed, None), None, "seed {seed} breaks without a bug");
            assert!(
                expected.contains(&found.invariant),
                "seed {seed}: {} was seen as `{}`: {}",
                plant.name(),
                found.invariant,
                found.what
            );
            seen += u32::from(found.invariant == expected[0]);
            if seen == ENOUGH {
                return;
            }
        }
    }
    assert!(seen > 0, "{} was not seen on seeds {seeds:?}", plant.name());
}

#[test]
fn a_dropped_epoch_check_is_seen() {
    is_seen(Plant::NoEpochCheck, &[Invariant::StaleEpoch]);
}

#[test]
fn an_acknowledgement_before_the_commit_is_seen() {
    // An end that was acknowledged and never written is waited for without end.
    let follows = [Invariant::AckSurvives, Invariant::DurableFirst, Invariant::Progress];
    is_seen_on(120..180, Plant::AckBeforeCommit, &follows);
}

#[test]
fn ending_only_the_process_group_is_seen() {
    is_seen(Plant::KillpgOnly, &[Invariant::TreeGone, Invariant::Alone]);
}

#[test]
fn ingest_without_a_stored_offset_is_seen() {
    is_seen(Plant::IngestWithoutOffset, &[Invariant::OutputExact]);
}

#[test]
fn trusting_an_agents_word_is_seen() {
    is_seen(Plant::TrustDone, &[Invariant::Proven]);
}

#[test]
fn a_message_that_is_delivered_twice_is_seen() {
    is_seen(Plant::TellTwice, &[Invariant::ToldOnce]);
}

#[test]
fn a_message_that_a_prompt_leaves_out_is_seen() {
    is_seen(Plant::DropTells, &[Invariant::ToldOnce]);
}

#[test]
fn a_message_that_nobody_was_given_is_seen() {
    is_seen(Plant::AckUnsent, &[Invariant::ToldOnce]);
}

#[test]
fn a_reply_from_a_phone_that_counts_twice_is_seen() {
    is_seen(Plant::ReplyRenamed, &[Invariant::RepliedOnce]);
}

#[test]
fn a_forged_reply_from_a_phone_is_seen() {
    is_seen(Plant::ReplyForged, &[Invariant::RepliedOnce]);
}

#[test]
fn a_late_reply_that_answers_another_question_is_seen() {
    is_seen(Plant::LateReply, &[Invariant::RepliedOnce]);
}

#[test]
fn a_start_in_quiet_hours_is_seen() {
    is_seen(Plant::ForgetQuietHours, &[Invariant::QuietHours]);
}

#[test]
fn a_day_that_never_ends_is_seen() {
    is_seen(Plant::EndlessDay, &[Invariant::Budget]);
}

#[test]
fn a_worktree_that_could_not_be_set_up_and_is_told_as_a_failure_is_seen() {
    is_seen(Plant::SetupAsFailure, &[Invariant::Machine]);
}

#[test]
fn a_second_pull_request_is_seen() {
    is_seen(Plant::ForgetOpening, &[Invariant::OnePullRequest]);
}

#[test]
fn a_comment_that_is_answered_twice_is_seen() {
    is_seen(Plant::AnswerUnlooked, &[Invariant::Reviewers]);
}

#[test]
fn a_merge_of_a_commit_that_nobody_proved_is_seen() {
    is_seen(Plant::MergeAnyCommit, &[Invariant::StaleMerge]);
}

#[test]
fn a_comment_on_an_older_commit_that_becomes_rework_is_seen() {
    is_seen(Plant::OldComment, &[Invariant::Reviewers]);
}

#[test]
fn a_comment_that_is_lost_is_seen() {
    is_seen(Plant::LoseComment, &[Invariant::Reviewers]);
}

#[test]
fn a_comment_that_becomes_rework_twice_is_seen() {
    is_seen(Plant::CommentRenamed, &[Invariant::Reviewers]);
}

#[test]
fn an_agent_beside_a_person_is_seen() {
    is_seen(Plant::PersonGoneEarly, &[Invariant::Alone]);
}

#[test]
fn a_task_that_is_never_given_back_is_seen() {
    // A run that waits for somebody who is gone is asked about from the phone until the bound of the simulator.
    is_seen(Plant::ForgetPerson, &[Invariant::GivenBack, Invariant::Bounds]);
}

#[test]
fn a_sign_that_is_taken_twice_is_seen() {
    is_seen(Plant::RepeatSigns, &[Invariant::SignsExact]);
}

#[test]
fn starting_on_an_account_that_has_to_wait_is_seen() {
    is_seen(Plant::MisreadLimit, &[Invariant::GateHeld]);
}

#[test]
fn starting_on_a_budget_that_is_used_up_is_seen() {
    is_seen(Plant::ForgetBudget, &[Invariant::Budget]);
}

#[test]
fn a_plan_whose_reviewers_are_forgotten_is_seen() {
    is_seen(Plant::ForgetReview, &[Invariant::Reviewed, Invariant::Gated]);
}

#[test]
fn an_end_that_is_told_while_the_agent_is_there_is_seen() {
    is_seen(Plant::EarlyExit, &[Invariant::Alone, Invariant::TreeGone, Invariant::OutputExact]);
}

#[test]
fn more_tries_than_the_user_allows_are_seen() {
    is_seen(Plant::MoreTries, &[Invariant::AttemptLimit, Invariant::Reviewed]);
}

#[test]
fn a_late_verdict_that_passes_as_a_current_one_is_seen() {
    is_seen(Plant::StaleVerdict, &[Invariant::StaleEpoch]);
}

#[test]
fn a_merge_that_never_was_is_seen() {
    is_seen(Plant::SkipMerge, &[Invariant::Merged]);
}

#[test]
fn a_launch_into_a_merge_is_seen() {
    is_seen(Plant::MergeAnsweredEarly, &[Invariant::Alone]);
}

#[test]
fn a_start_before_the_baseline_is_seen() {
    is_seen(Plant::NoBaseline, &[Invariant::Gated]);
}

#[test]
fn a_start_before_recent_completions_are_looked_at_is_seen() {
    is_seen(Plant::NoValidation, &[Invariant::Gated]);
}

#[test]
fn a_start_in_a_pause_is_seen() {
    is_seen(Plant::DropPause, &[Invariant::Gated]);
}

#[test]
fn a_start_without_asking_for_the_allowance_is_seen() {
    is_seen(Plant::StaleUsage, &[Invariant::Allowance]);
}

#[test]
fn a_baseline_that_never_failed_is_seen() {
    is_seen(Plant::FalseBaseline, &[Invariant::Unreported]);
}

#[test]
fn a_living_agent_that_is_told_as_not_started_is_seen() {
    is_seen(
        Plant::UnknownAsRefused,
        &[Invariant::TreeGone, Invariant::Alone, Invariant::OutputExact, Invariant::NoClash],
    );
}

#[test]
fn a_refusal_that_is_told_as_a_failure_is_seen() {
    is_seen(Plant::RefusalAsFailure, &[Invariant::Machine]);
}

#[test]
fn a_read_error_that_is_taken_for_the_end_is_seen() {
    is_seen(Plant::ErrorAsEnd, &[Invariant::OutputExact, Invariant::SignsExact, Invariant::Unreported]);
}

#[test]
fn a_refused_batch_that_is_taken_for_written_is_seen() {
    // A pull request whose opening is not in the log is opened a second time.
    let follows = [Invariant::DurableFirst, Invariant::OutputExact, Invariant::OnePullRequest];
    is_seen(Plant::RefusedAsWritten, &follows);
}

#[test]
fn sleep_that_counts_as_time_awake_is_seen() {
    is_seen(Plant::SleepAsAwake, &[Invariant::Awake]);
}

#[test]
fn a_caller_that_is_answered_twice_is_seen() {
    is_seen(Plant::AnswerTwice, &[Invariant::Answered]);
}

#[test]
fn a_caller_that_is_never_answered_is_seen() {
    is_seen(Plant::ForgetCaller, &[Invariant::Answered]);
}

#[test]
fn what_is_kept_of_ended_attempts_is_seen() {
    is_seen(Plant::NeverForget, &[Invariant::Bounds]);
}

#[test]
fn a_working_agent_that_is_taken_for_silent_is_seen() {
    is_seen(Plant::BlindAsSilent, &[Invariant::Awake]);
}

#[test]
fn what_a_new_coordinator_forgets_is_seen() {
    // A task that a person held is never given back either.
    is_seen(Plant::ForgetOutstanding, &[Invariant::Outstanding, Invariant::GivenBack]);
}

#[test]
fn a_persons_word_that_is_taken_back_by_nobody_is_seen() {
    is_seen(Plant::DoubtWord, &[Invariant::Word]);
}

#[test]
fn a_plan_that_is_reloaded_in_other_words_is_seen() {
    is_seen(Plant::StalePlan, &[Invariant::Changed]);
}

#[test]
fn a_task_that_nobody_added_is_seen() {
    is_seen(Plant::OtherTask, &[Invariant::Changed]);
}

#[test]
fn checks_that_a_person_has_changed_and_that_are_run_as_they_were_are_seen() {
    is_seen(Plant::OldChecks, &[Invariant::Changed]);
}

#[test]
fn want_of_memory_that_is_told_as_a_crash_is_seen() {
    is_seen(Plant::WantAsCrash, &[Invariant::Machine]);
}

#[test]
fn an_attempt_that_is_taken_for_lost_because_nobody_could_look_is_seen() {
    is_seen(
        Plant::UnknownAsLost,
        &[Invariant::TreeGone, Invariant::HealthyKept, Invariant::OutputExact, Invariant::Alone],
    );
}

#[test]
fn artifacts_that_are_taken_for_missing_because_nobody_could_look_are_seen() {
    is_seen(Plant::UnseenAsMissing, &[Invariant::Machine]);
}

#[test]
fn a_refused_stop_that_is_taken_as_done_is_seen() {
    is_seen(Plant::StopUngiven, &[Invariant::TreeGone, Invariant::Alone, Invariant::OutputExact]);
}

#[test]
fn a_refused_message_that_is_taken_as_delivered_is_seen() {
    is_seen(Plant::AckRefused, &[Invariant::ToldOnce]);
}

#[test]
fn a_refused_look_at_the_allowance_that_is_taken_for_plenty_is_seen() {
    is_seen(Plant::UnaskedAsPlenty, &[Invariant::Allowance]);
}
