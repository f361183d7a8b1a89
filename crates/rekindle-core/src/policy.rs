//! What follows from each cause: one table, and the arithmetic of retries and backoff.

use crate::cause::Cause;
use crate::duration;

/// Longest wait between two attempts at a task, so that a long night is not spent waiting.
pub const BACKOFF_CAP_MS: u64 = 5 * 60 * 1000;

/// Failed starts in a row after which an agent's program is not started for a while.
pub const BREAKER_FAILED_STARTS: u32 = 10;

/// How long such a program is left alone.
pub const BREAKER_PAUSE_MS: u64 = 10 * 60 * 1000;

/// Coordinator crashes that took a task's agent with them before the task is set aside for a person.
pub const QUARANTINE_CRASHES: u32 = 2;

/// What happens to the open tasks of an attempt after it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing is open.
    Nothing,
    /// Hand it to a replacement, after a backoff.
    RetryAfterBackoff,
    /// Hand it to a replacement at once.
    RetryAtOnce,
    /// Wait until the provider's gate opens.
    WaitForGate,
    AskPerson,
    /// Wait until the operator resumes the run.
    WaitForOperator,
    /// Wait until the machine has room.
    WaitForMachine,
}

/// One row of the policy table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whether the attempt counts against the task's limit.
    pub counts: bool,
    pub next: Next,
    /// Whether the replacement is advised to split the task.
    pub advise_split: bool,
}

pub fn row(cause: &Cause) -> Row {
    let (counts, next, advise_split) = match cause {
        Cause::Completed => (true, Next::Nothing, false),
        Cause::ExitedIncomplete
        | Cause::Crashed { .. }
        | Cause::HungBeforeFirstEvent
        | Cause::HungMidStream
        | Cause::HungAfterResult
        | Cause::OutOfMemory { .. }
        | Cause::StartFailed { .. }
        | Cause::ShimLost
        | Cause::StalledNoProgress => (true, Next::RetryAfterBackoff, false),
        Cause::TimedOut | Cause::Compacted | Cause::CompactionLoop | Cause::ContextExhausted => {
            (true, Next::RetryAfterBackoff, true)
        }
        Cause::UsageLimit { .. } | Cause::Overloaded => (false, Next::WaitForGate, false),
        Cause::Auth | Cause::WaitingForInput | Cause::SetupFailed { .. } => (false, Next::AskPerson, false),
        Cause::HostLost => (false, Next::RetryAtOnce, false),
        Cause::StoppedByOperator => (false, Next::WaitForOperator, false),
        Cause::Machine(_) => (false, Next::WaitForMachine, false),
    };
    Row { counts, next, advise_split }
}

/// When the next attempt starts, in words.
pub fn when_next(cause: &Cause, wait_ms: u64) -> String {
    match (row(cause).next, wait_ms) {
        (Next::WaitForGate, _) => "when its account may be used again".to_owned(),
        (Next::AskPerson, _) if matches!(cause, Cause::Auth | Cause::SetupFailed { .. }) => {
            "when a person has fixed it".to_owned()
        }
        (Next::WaitForOperator, _) => "when the run continues".to_owned(),
        (Next::WaitForMachine, _) => "when the machine has room again".to_owned(),
        (_, 0) => "at once".to_owned(),
        (_, wait_ms) => format!("after {}", duration::format(wait_ms)),
    }
}

/// Exponential backoff with full jitter: a uniform draw from zero to `base · 2^(failures-1)`, capped.
///
/// The draw comes from `seed` alone, so that the same history always waits equally long.
pub fn backoff_ms(base_ms: u64, failures: u32, seed: &str) -> u64 {
    let doublings = failures.saturating_sub(1).min(20);
    let ceiling = base_ms.saturating_mul(1 << doublings).min(BACKOFF_CAP_MS);
    let digest = blake3::hash(seed.as_bytes());
    let mut first = [0_u8; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(first) % (ceiling + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_is_bounded_and_repeatable() {
        for failures in 1..40 {
            let wait = backoff_ms(2_000, failures, "run T1");
            assert_eq!(wait, backoff_ms(2_000, failures, "run T1"));
            assert!(wait <= BACKOFF_CAP_MS.min(2_000 << (failures - 1).min(20)));
        }
        let draws: std::collections::BTreeSet<u64> =
            (0..100).map(|n| backoff_ms(2_000, 5, &format!("seed {n}"))).collect();
        assert!(draws.len() > 90, "jitter must spread: {}", draws.len());
    }

    #[test]
    fn uncounted_causes_are_the_settled_ones() {
        let uncounted = [
            Cause::UsageLimit { resets_at: None },
            Cause::Overloaded,
            Cause::HostLost,
            Cause::StoppedByOperator,
            Cause::Auth,
            Cause::WaitingForInput,
            Cause::Machine(crate::cause::MachineRefusal::default()),
            Cause::SetupFailed { reason: String::new() },
        ];
        for cause in uncounted {
            assert!(!row(&cause).counts, "{cause}");
        }
        for cause in [
            Cause::ExitedIncomplete,
            Cause::Crashed { code: Some(1), signal: None },
            Cause::TimedOut,
            Cause::HungMidStream,
            Cause::Compacted,
            Cause::ContextExhausted,
            Cause::StartFailed { reason: String::new() },
            Cause::ShimLost,
            Cause::OutOfMemory { cap: None },
            Cause::StalledNoProgress,
        ] {
            assert!(row(&cause).counts, "{cause}");
        }
    }
}
