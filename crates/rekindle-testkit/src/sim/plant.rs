//! Bugs planted on purpose, to show that the checkers see them. Each sits at a seam around the product, never in it.

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Reports of attempts that are over pass as the current one's.
    NoEpochCheck,
    /// The store says that a batch is durable before it is.
    AckBeforeCommit,
    /// Stopping an attempt ends its process group and leaves the rest of its tree.
    KillpgOnly,
    /// A restart forgets how far the spools were read.
    IngestWithoutOffset,
    /// Checks count as passed because the agent says it is done.
    TrustDone,
    /// A shim gives its agent every message it is handed, whatever its number.
    TellTwice,
    /// A reader reports a compaction again when the process has ended.
    RepeatSigns,
    /// A reader does not recognise a failure, so that nothing waits for it.
    MisreadLimit,
    /// The coordinator is given the plan without its reviewers.
    ForgetReview,
    /// A shim reports the end of an agent that is still running.
    EarlyExit,
    /// The coordinator is given more attempts than the user allows.
    MoreTries,
    /// A late verdict passes as the current reviewer's.
    StaleVerdict,
    /// A merge is reported as finished although nothing was merged.
    SkipMerge,
    /// A merge is reported as finished while it is in progress.
    MergeAnsweredEarly,
    /// The coordinator is given the plan without its health commands.
    NoBaseline,
    /// The coordinator checks nothing again after a pause or a crash.
    NoValidation,
    /// The coordinator does not know that there is a command to ask for the allowance.
    StaleUsage,
    /// A coordinator that takes over forgets what was in progress.
    ForgetOutstanding,
    /// The control socket says yes to a pause and passes nothing on.
    DropPause,
    /// A check that passed before the work is reported as failed.
    FalseBaseline,
    /// A live shim that cannot be watched is reported as never started.
    UnknownAsRefused,
    /// What the machine lacked resources for is reported as a failure of the program or the work.
    RefusalAsFailure,
    /// A spool that cannot be read counts as one that has ended.
    ErrorAsEnd,
    /// A batch that the store refuses counts as written.
    RefusedAsWritten,
    /// The time that the machine slept counts as time awake.
    SleepAsAwake,
    /// A caller is answered twice.
    AnswerTwice,
    /// The answer to a caller is lost, and its connection is not closed.
    ForgetCaller,
    /// What has ended is watched for ever.
    NeverForget,
    /// Processes that cannot be inspected count as idle.
    BlindAsSilent,
    /// A task that a person completed is reopened without anyone's order.
    DoubtWord,
    /// A changed plan reaches the coordinator with other text.
    StalePlan,
    /// A task that a person added reaches the coordinator as another one.
    OtherTask,
    /// The checks of the original plan are run, whatever a person has changed.
    OldChecks,
    /// An agent that was killed for lack of memory is reported as crashed.
    WantAsCrash,
    /// An attempt that cannot be inspected counts as lost.
    UnknownAsLost,
    /// Artifacts that cannot be checked count as missing.
    UnseenAsMissing,
    /// A prompt leaves out what the person said.
    DropTells,
    /// A message that no agent was given is reported as delivered.
    AckUnsent,
    /// A person's program is reported as ended while it runs.
    PersonGoneEarly,
    /// A stop that the machine lacked resources for counts as done.
    StopUngiven,
    /// A message that the machine lacked resources for is reported as delivered.
    AckRefused,
    /// A command for the allowance that could not be started counts as one that reported plenty.
    UnaskedAsPlenty,
    /// The coordinator never learns that a person's program has ended.
    ForgetPerson,
    /// The coordinator is given no budgets.
    ForgetBudget,
    /// A worktree that could not be set up is reported as a failure of the program.
    SetupAsFailure,
    /// A reply that a channel delivers again passes as a new one.
    ReplyRenamed,
    /// A reply without the right code is passed on.
    ReplyForged,
    /// A reply to a question that is answered passes as the answer to another one.
    LateReply,
    /// The coordinator is told nothing of quiet hours.
    ForgetQuietHours,
    /// The calendar that the coordinator sees stays at its first day.
    EndlessDay,
    /// That a pull request is being opened is not put down first.
    ForgetOpening,
    /// A comment is answered without a look whether it was before.
    AnswerUnlooked,
    /// The forge is asked to merge whatever it has.
    MergeAnyCommit,
    /// Comments on older commits are handed on as words about the newest.
    OldComment,
    /// Comments on no line are left out.
    LoseComment,
    /// A comment that was taken comes back under another name.
    CommentRenamed,
}

impl Plant {
    /// Every plant.
    pub const ALL: [Self; 56] = [
        Self::NoEpochCheck,
        Self::AckBeforeCommit,
        Self::KillpgOnly,
        Self::IngestWithoutOffset,
        Self::TrustDone,
        Self::TellTwice,
        Self::RepeatSigns,
        Self::MisreadLimit,
        Self::ForgetReview,
        Self::EarlyExit,
        Self::MoreTries,
        Self::StaleVerdict,
        Self::SkipMerge,
        Self::MergeAnsweredEarly,
        Self::NoBaseline,
        Self::NoValidation,
        Self::StaleUsage,
        Self::ForgetOutstanding,
        Self::DropPause,
        Self::FalseBaseline,
        Self::UnknownAsRefused,
        Self::RefusalAsFailure,
        Self::ErrorAsEnd,
        Self::RefusedAsWritten,
        Self::SleepAsAwake,
        Self::AnswerTwice,
        Self::ForgetCaller,
        Self::NeverForget,
        Self::BlindAsSilent,
        Self::DoubtWord,
        Self::StalePlan,
        Self::OtherTask,
        Self::OldChecks,
        Self::WantAsCrash,
        Self::UnknownAsLost,
        Self::UnseenAsMissing,
        Self::DropTells,
        Self::AckUnsent,
        Self::PersonGoneEarly,
        Self::StopUngiven,
        Self::AckRefused,
        Self::UnaskedAsPlenty,
        Self::ForgetPerson,
        Self::ForgetBudget,
        Self::SetupAsFailure,
        Self::ReplyRenamed,
        Self::ReplyForged,
        Self::LateReply,
        Self::ForgetQuietHours,
        Self::EndlessDay,
        Self::ForgetOpening,
        Self::AnswerUnlooked,
        Self::MergeAnyCommit,
        Self::OldComment,
        Self::LoseComment,
        Self::CommentRenamed,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEpochCheck => "no-epoch-check",
            Self::AckBeforeCommit => "ack-before-commit",
            Self::KillpgOnly => "killpg-only",
            Self::IngestWithoutOffset => "ingest-without-offset",
            Self::TrustDone => "trust-done",
            Self::TellTwice => "tell-twice",
            Self::RepeatSigns => "repeat-signs",
            Self::MisreadLimit => "misread-limit",
            Self::ForgetReview => "forget-review",
            Self::EarlyExit => "early-exit",
            Self::MoreTries => "more-tries",
            Self::StaleVerdict => "stale-verdict",
            Self::SkipMerge => "skip-merge",
            Self::MergeAnsweredEarly => "merge-answered-early",
            Self::NoBaseline => "no-baseline",
            Self::NoValidation => "no-validation",
            Self::StaleUsage => "stale-usage",
            Self::ForgetOutstanding => "forget-outstanding",
            Self::DropPause => "drop-pause",
            Self::FalseBaseline => "false-baseline",
            Self::UnknownAsRefused => "unknown-as-refused",
            Self::RefusalAsFailure => "refusal-as-failure",
            Self::ErrorAsEnd => "error-as-end",
            Self::RefusedAsWritten => "refused-as-written",
            Self::SleepAsAwake => "sleep-as-awake",
            Self::AnswerTwice => "answer-twice",
            Self::ForgetCaller => "forget-caller",
            Self::NeverForget => "never-forget",
            Self::BlindAsSilent => "blind-as-silent",
            Self::DoubtWord => "doubt-word",
            Self::StalePlan => "stale-plan",
            Self::OtherTask => "other-task",
            Self::OldChecks => "old-checks",
            Self::WantAsCrash => "want-as-crash",
            Self::UnknownAsLost => "unknown-as-lost",
            Self::UnseenAsMissing => "unseen-as-missing",
            Self::DropTells => "drop-tells",
            Self::AckUnsent => "ack-unsent",
            Self::PersonGoneEarly => "person-gone-early",
            Self::StopUngiven => "stop-ungiven",
            Self::AckRefused => "ack-refused",
            Self::UnaskedAsPlenty => "unasked-as-plenty",
            Self::ForgetPerson => "forget-person",
            Self::ForgetBudget => "forget-budget",
            Self::SetupAsFailure => "setup-as-failure",
            Self::ReplyRenamed => "reply-renamed",
            Self::ReplyForged => "reply-forged",
            Self::LateReply => "late-reply",
            Self::ForgetQuietHours => "forget-quiet-hours",
            Self::EndlessDay => "endless-day",
            Self::ForgetOpening => "forget-opening",
            Self::AnswerUnlooked => "answer-unlooked",
            Self::MergeAnyCommit => "merge-any-commit",
            Self::OldComment => "old-comment",
            Self::LoseComment => "lose-comment",
            Self::CommentRenamed => "comment-renamed",
        }
    }

    /// The plant with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }
}
