//! The invariants by name.

use std::fmt;

/// An invariant, after the list in ARCHITECTURE.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// 1: replaying the log from zero gives the state, and the rows match the state.
    Replay,
    /// 2: no action is taken before its event is durable.
    DurableFirst,
    /// 3: a task ends at most once an epoch, and an end is final for agents.
    EndsOnce,
    /// 3: nothing with an older epoch is accepted, and epochs rise.
    StaleEpoch,
    /// A task completes only when it was claimed by its holder and proven on disk.
    Proven,
    /// 4: what was acknowledged survives.
    AckSurvives,
    /// 5: every record of output is indexed once, whole and in order.
    OutputExact,
    /// 5: every stream event is taken once, and what it says about the session holds.
    SignsExact,
    /// 2: a message is delivered once.
    ToldOnce,
    /// 8: nothing is started on an account that has to wait.
    GateHeld,
    /// 6: after an attempt's end nothing of its tree lives.
    TreeGone,
    /// 6: only what was launched is stopped.
    OwnSignals,
    /// 7: a coordinator's death restarts no healthy agent.
    HealthyKept,
    /// 8: attempts stay within their limit.
    AttemptLimit,
    /// Two live attempts never share a task, an artifact or a name, and slots are respected.
    NoClash,
    /// 8: once faults stop, the run ends or says what it waits for.
    Progress,
    /// 10: an agent changes only its own attempt's tasks, with its own token.
    OwnTasks,
    /// 12: everything that grows has a limit.
    Bounds,
    /// 9: work is accepted only when every reviewer that the plan asks for has passed it, in their order, and the checks have.
    Reviewed,
    /// 9: no agent works on what another agent may still change, in its workspace, or where it is being merged.
    Alone,
    /// 9: a whole is accepted after its parts.
    Parts,
    /// 9: work that was done in a separate workspace is merged before its task completes.
    Merged,
    /// 8: nothing starts during a pause, before the baseline, without resources, or before recent completions are checked
    /// again.
    Gated,
    /// 8: nothing starts on an old or a bad answer about the allowance.
    Allowance,
    /// 2: the next coordinator takes up what was in progress.
    Outstanding,
    /// 8: what the machine refused costs no task an attempt.
    Machine,
    /// 8: limits on agents count the time that the machine was awake, and never hit a working agent.
    Awake,
    /// 2: every caller is answered, and once.
    Answered,
    /// 3: work that was not reported is accepted only where a check failed before, or on a person's word.
    Unreported,
    /// 3: only a person takes back a person's word on a task.
    Word,
    /// 3: a changed plan counts as a person changed it, whole and once.
    Changed,
    /// 9: a task that a person held is given back once their program has ended.
    GivenBack,
    /// 8: nothing is started on a budget that is used up.
    Budget,
    /// 2: a run has one pull request at a time.
    OnePullRequest,
    /// 2: what is said about a pull request becomes rework once, for its own commit, and is answered once.
    Reviewers,
    /// 9: nothing is merged but the commit that everything passed on.
    StaleMerge,
    /// 8: nothing begins in quiet hours.
    QuietHours,
    /// 2: a question has one answer, and what comes from a phone is a person's word, taken once.
    RepliedOnce,
}

impl Invariant {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replay => "1 replay gives the stored state",
            Self::DurableFirst => "2 no effect before its events are durable",
            Self::EndsOnce => "3 a task ends at most once per epoch",
            Self::StaleEpoch => "3 nothing with an older epoch is accepted",
            Self::Proven => "3 a task completes only when claimed and proven",
            Self::AckSurvives => "4 what was acknowledged survives",
            Self::OutputExact => "5 output is indexed once, whole, in order",
            Self::SignsExact => "5 what a stream tells is taken once",
            Self::ToldOnce => "2 a message is delivered once",
            Self::GateHeld => "8 nothing starts on an account that waits",
            Self::TreeGone => "6 nothing of an ended tree lives",
            Self::OwnSignals => "6 only what was launched is stopped",
            Self::HealthyKept => "7 a coordinator's death restarts no healthy agent",
            Self::AttemptLimit => "8 attempts keep their limit",
            Self::NoClash => "8 no two at one task, artifact or name",
            Self::Progress => "8 once faults stop, the run ends",
            Self::OwnTasks => "10 an agent changes only its own tasks",
            Self::Bounds => "12 everything has a bound",
            Self::Reviewed => "9 work is accepted when all its reviewers and checks have passed it",
            Self::Alone => "9 nobody is at work that somebody may still change",
            Self::Parts => "9 a whole is accepted after its parts",
            Self::Merged => "9 work is merged before its task completes",
            Self::Gated => "8 nothing begins while the run may not go on",
            Self::Allowance => "8 nothing begins on an old answer about the allowance",
            Self::Outstanding => "2 what was under way is taken up again",
            Self::Machine => "8 what the machine refused costs no attempt",
            Self::Awake => "8 limits count the time awake, and silence is no work",
            Self::Answered => "2 a caller is answered, and once",
            Self::Unreported => "3 work that nobody reported was shown to be done",
            Self::Word => "3 a person's word is final",
            Self::Changed => "3 a changed plan counts as a person changed it",
            Self::Budget => "8 nothing starts on a budget that is used up",
            Self::GivenBack => "9 a held task is given back when the person is gone",
            Self::OnePullRequest => "2 a run has one pull request",
            Self::Reviewers => "2 what reviewers say becomes rework once and is answered once",
            Self::StaleMerge => "9 no merge on stale evidence",
            Self::QuietHours => "8 nothing starts in quiet hours",
            Self::RepliedOnce => "2 a reply from a phone counts once",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
