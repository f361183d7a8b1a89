//! What of finished runs may be removed: by age, by number and by size. It decides and touches nothing; the engine measures
//! what exists and removes what has to go.
//!
//! A run in flight keeps everything. Work that is in none of the person's branches keeps what `land`, `diff` and `salvage`
//! need, however old it is, until the person discards it.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What ended longer ago than this is removed.
    pub older_than_ms: u64,
    /// This many of the newest runs keep everything.
    pub keep_runs: usize,
    /// Above this size the output of the oldest runs is removed, however recent it is.
    pub max_bytes: Option<u64>,
}

/// A part of what a run leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What agents and checks printed: bundles, log lines, evidence.
    Output,
    /// What git has of it: snapshots, worktrees, and rekindle's own branches and refs.
    Work,
    /// Copies that belong to no run: damaged databases, bundles set aside, old backups.
    Copies,
}

impl Part {
    /// Its name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Output => "output of agents and checks",
            Self::Work => "snapshots, worktrees and refs",
            Self::Copies => "damaged copies and old backups",
        }
    }
}

/// Where the work of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// In the person's own checkout: the run had no branch, or its branch is empty.
    None,
    /// In one of the person's branches.
    Landed,
    /// Only on rekindle's own branch.
    NotLanded,
    /// Git could not be asked.
    Unknown,
}

/// A run as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub run: String,
    /// When it ended or was given up; `None` while it may continue.
    pub over_at: Option<Time>,
    /// Every task was complete or skipped.
    pub complete: bool,
    /// Agents worked in worktrees of their own.
    pub apart: bool,
    pub work: Work,
    /// The person gave up its work.
    pub discarded: bool,
    /// Bytes of its output.
    pub bytes: u64,
}

/// Why something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// It may continue.
    InFlight,
    Recent,
    /// Its result is in none of the person's branches.
    NotLanded,
    /// It ended with failed or open tasks: their work is only in its snapshots and worktrees.
    NotComplete,
    /// It is unknown whether its result has landed.
    Unknown,
}

impl Kept {
    pub fn words(self) -> &'static str {
        match self {
            Self::InFlight => "the run is not over",
            Self::Recent => "recent",
            Self::NotLanded => "the result is not landed",
            Self::NotComplete => "the run has failed or open tasks",
            Self::Unknown => "git could not say whether the result is landed",
        }
    }
}

/// What becomes of a run's parts: `None` means that the part is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub run: String,
    pub output: Option<Kept>,
    pub work: Option<Kept>,
}

/// Decides on every run, given oldest first. `total_bytes` is what the whole state directory takes.
pub fn decide(rules: &Rules, now: Time, runs: &[Found], total_bytes: u64) -> Vec<Verdict> {
    let newest = runs.len().saturating_sub(rules.keep_runs);
    let mut verdicts: Vec<Verdict> =
        runs.iter().enumerate().map(|(nth, found)| by_age(rules, now, found, nth < newest)).collect();
    let going = |verdicts: &[Verdict]| -> u64 {
        let gone = runs.iter().zip(verdicts).filter(|(_, verdict)| verdict.output.is_none());
        gone.map(|(found, _)| found.bytes).sum()
    };
    for nth in 0..newest {
        let over = rules.max_bytes.is_some_and(|most| total_bytes.saturating_sub(going(&verdicts)) > most);
        if over && verdicts[nth].output == Some(Kept::Recent) {
            verdicts[nth].output = None;
        }
    }
    verdicts
}

fn by_age(rules: &Rules, now: Time, found: &Found, may_go: bool) -> Verdict {
    let verdict = |output, work| Verdict { run: found.run.clone(), output, work };
    let Some(over_at) = found.over_at else {
        return verdict(Some(Kept::InFlight), Some(Kept::InFlight));
    };
    let due = may_go && now.since_ms(over_at) >= rules.older_than_ms;
    let age = if due || found.discarded { None } else { Some(Kept::Recent) };
    let unsafe_work = match found.work {
        _ if found.discarded => None,
        Work::Unknown => Some(Kept::Unknown),
        Work::NotLanded => Some(Kept::NotLanded),
        _ if found.apart && !found.complete => Some(Kept::NotComplete),
        Work::None | Work::Landed => None,
    };
    verdict(age, age.or(unsafe_work))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3_600_000;
    const RULES: Rules = Rules { older_than_ms: 30 * DAY, keep_runs: 1, max_bytes: None };

    fn run(id: &str, days_ago: u64) -> Found {
        Found {
            run: id.to_owned(),
            over_at: Some(now().minus_ms(days_ago * DAY)),
            complete: true,
            apart: true,
            work: Work::Landed,
            discarded: false,
            bytes: 100,
        }
    }

    fn now() -> Time {
        Time(1_000 * DAY as i64)
    }

    fn verdicts(rules: &Rules, runs: &[Found], total: u64) -> Vec<(Option<Kept>, Option<Kept>)> {
        decide(rules, now(), runs, total).into_iter().map(|verdict| (verdict.output, verdict.work)).collect()
    }

    #[test]
    fn what_is_old_and_landed_goes_and_the_newest_runs_stay() {
        let runs = [run("a", 90), run("b", 31), run("c", 29), run("d", 200)];
        let recent = (Some(Kept::Recent), Some(Kept::Recent));
        assert_eq!(verdicts(&RULES, &runs, 400), [(None, None), (None, None), recent, recent]);
        let all = Rules { older_than_ms: 0, keep_runs: 0, max_bytes: None };
        assert_eq!(verdicts(&all, &runs, 400), [(None, None); 4]);
    }

    #[test]
    fn work_that_is_nowhere_else_stays_however_old_it_is() {
        let not_landed = Found { work: Work::NotLanded, ..run("a", 900) };
        let failed = Found { complete: false, ..run("b", 900) };
        let unknown = Found { work: Work::Unknown, ..run("c", 900) };
        let in_flight = Found { over_at: None, ..run("d", 900) };
        let shared = Found { complete: false, apart: false, work: Work::None, ..run("e", 900) };
        let runs = [not_landed.clone(), failed, unknown, in_flight.clone(), shared, run("newest", 0)];
        let all = Rules { older_than_ms: 0, keep_runs: 0, max_bytes: Some(0) };
        for rules in [RULES, all] {
            let found = verdicts(&rules, &runs, 1 << 40);
            assert_eq!(found[0], (None, Some(Kept::NotLanded)), "its output may go");
            assert_eq!(found[1].1, Some(Kept::NotComplete));
            assert_eq!(found[2].1, Some(Kept::Unknown));
            assert_eq!(found[3], (Some(Kept::InFlight), Some(Kept::InFlight)));
            assert_eq!(found[4], (None, None), "its files are in the person's checkout");
        }
        let discarded = [Found { discarded: true, ..not_landed }, Found { discarded: true, ..in_flight }];
        let found = verdicts(&RULES, &discarded, 0);
        assert_eq!(found[0], (None, None), "the person gave it up");
        assert_eq!(found[1].0, Some(Kept::InFlight), "a run in flight cannot be given up");
    }

    #[test]
    fn above_the_size_the_oldest_output_goes_and_no_more_than_needed() {
        let rules = Rules { max_bytes: Some(250), ..RULES };
        let runs = [run("a", 3), run("b", 2), run("c", 1), run("d", 0)];
        let kept: Vec<bool> = verdicts(&rules, &runs, 400).iter().map(|(output, _)| output.is_some()).collect();
        assert_eq!(kept, [false, false, true, true]);
        let work: Vec<bool> = verdicts(&rules, &runs, 400).iter().map(|(_, work)| work.is_some()).collect();
        assert_eq!(work, [true; 4], "snapshots take no room in the state directory");
        assert_eq!(verdicts(&rules, &runs, 250).iter().filter(|(output, _)| output.is_none()).count(), 0);
    }
}
