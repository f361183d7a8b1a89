//! The result of a run: its branch, its size, what is unproven, and what to type to take it. Every view draws this one card.

use rekindle_core::event::Landed;
use rekindle_core::pull_request::{KnownPullRequest, PullRequestStage};
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::{RunRow, TaskRow};
use rekindle_engine::git::{self, Counted, Repo, Work};
use serde::{Serialize, Serializer};

use crate::error::CliError;
use crate::project::Project;
use crate::ui::{date_time, one_line, short_commit, stamp};
use crate::view::View;

/// Tasks that a line names; the rest is a number.
const NAMED_MAX: usize = 5;

/// What a run made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RunResult {
    pub branch: String,
    pub commits: u64,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// Complete tasks that no check proved.
    pub unproven: Vec<String>,
    /// Where it was landed last, and as what.
    pub landed: Option<Landed>,
    /// The state of its pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<KnownPullRequest>,
    /// Whether the checked-out branch has all of it.
    pub taken: bool,
    /// The newest commit.
    pub tip: String,
    /// Why it could not be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// When the person gave it up.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "stamped")]
    pub discarded: Option<Time>,
}

fn stamped<S: Serializer>(time: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    time.map(stamp).serialize(to)
}

/// The result of a run that works on its own branch; `None` if agents share the checkout.
pub(crate) fn of(project: &Project, run: &RunRow, tasks: &[TaskRow]) -> Option<RunResult> {
    let branch = run.work_branch.clone()?;
    let counted = Repo::of(&project.root)
        .and_then(|repo| Work::new(repo, &project.state_dir, &run.id, &branch))
        .and_then(|work| work.counted(run.work_base.as_deref()));
    let (counted, unknown) = match counted {
        Ok(counted) => (counted, None),
        Err(error) => (Counted::default(), Some(error.to_string())),
    };
    // Git cannot tell a branch that was given up from one that was lost; the log can.
    let discarded = unknown.as_ref().and_then(|_| discarded_at(project, &run.id));
    let Counted { commits, files, insertions, deletions, taken, tip } = counted;
    let unproven = tasks.iter().filter(|task| task.unproven).map(|task| task.id.to_string()).collect();
    let (landed, pull_request) = (run.landed.clone(), run.pull_request.clone());
    Some(RunResult {
        branch,
        commits,
        files,
        insertions,
        deletions,
        unproven,
        landed,
        pull_request,
        taken,
        tip,
        unknown,
        discarded,
    })
}

/// When the result of a run was given up; nothing where it was not, or the log cannot be read.
fn discarded_at(project: &Project, run: &str) -> Option<Time> {
    View::open(project).ok()?.run_named(run).ok()?.discarded_at().ok()?
}

/// That there is nothing of a result any more, for whoever asks for it.
pub(crate) fn gone(project: &Project, run: &str, error: git::Error) -> CliError {
    let git::Error::Gone(branch) = &error else { return error.into() };
    match discarded_at(project, run) {
        Some(at) => CliError::refused(format!("{}, the result of run {run}, was {}", one_line(branch), discarded(at)))
            .hint("do the plan again: rekindle run PLAN --again"),
        None => error.into(),
    }
}

fn discarded(at: Time) -> String {
    format!("discarded on {} by `rekindle clean --discard`", date_time(at))
}

impl RunResult {
    /// The branch and what is on it.
    pub(crate) fn headline(&self) -> String {
        let branch = one_line(&self.branch);
        if let Some(at) = self.discarded {
            return match &self.landed {
                Some(landed) => format!("{}; what was left of it was {}", landed_words(landed), discarded(at)),
                None => format!("{}; it was on {branch}", discarded(at)),
            };
        }
        if let Some((_, landed)) = self.unknown.as_ref().zip(self.landed.as_ref()) {
            return format!("{}; {branch} has nothing of it any more", landed_words(landed));
        }
        if let Some(unknown) = &self.unknown {
            return format!("on {branch} ({})", one_line(unknown));
        }
        if self.commits == 0 {
            return format!("nothing on {branch} yet");
        }
        let number = |many: u64| usize::try_from(many).unwrap_or(usize::MAX);
        format!(
            "{} on {branch}: {}, +{} −{}",
            counted(number(self.commits), "commit", "commits"),
            counted(number(self.files), "file", "files"),
            self.insertions,
            self.deletions,
        )
    }

    /// What is unproven, in words.
    pub(crate) fn doubt(&self) -> Option<String> {
        if self.unproven.is_empty() {
            return None;
        }
        let named = self.unproven.iter().take(NAMED_MAX).map(|id| one_line(id)).collect::<Vec<_>>().join(", ");
        let more = match self.unproven.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{} unproven: {named}{more}", counted(self.unproven.len(), "task", "tasks")))
    }

    /// Where it went, or how to take it.
    pub(crate) fn next(&self) -> Next {
        // An earlier landing does not cover everything if there is more since.
        let newest = self.landed.as_ref().filter(|landed| landed.tip == self.tip);
        let shown = self
            .pull_request
            .as_ref()
            .filter(|known| known.at.head == self.tip && known.stage != PullRequestStage::Closed);
        match newest {
            _ if self.commits == 0 || self.unknown.is_some() => Next::Nothing,
            None if shown.is_some() => Next::Landed(shown.map(|known| one_line(&known.words())).unwrap_or_default()),
            Some(landed) => Next::Landed(landed_words(landed)),
            None if self.taken => Next::Landed("your checkout has it".to_owned()),
            None => Next::Take,
        }
    }

    /// All of it as lines of text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let next = match self.next() {
            Next::Landed(text) => Some(text),
            Next::Take => Some(format!("your checkout is unchanged; see it: {SEE} · take it: {TAKE}")),
            Next::Nothing => None,
        };
        std::iter::once(self.headline()).chain(self.doubt()).chain(next).collect()
    }
}

fn landed_words(landed: &Landed) -> String {
    format!("landed in {} as {}", one_line(&landed.into), short_commit(&landed.commit))
}

/// What to type.
pub(crate) const TAKE: &str = "rekindle land";
pub(crate) const SEE: &str = "rekindle diff";

/// What comes next for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Landed(String),
    Take,
    Nothing,
}

#[cfg(test)]
mod tests {
    use rekindle_core::pull_request::PullRequest;

    use super::*;

    fn result() -> RunResult {
        RunResult {
            branch: "rekindle/x".to_owned(),
            commits: 1,
            files: 2,
            insertions: 30,
            deletions: 4,
            ..RunResult::default()
        }
    }

    #[test]
    fn it_says_how_much_it_is_and_what_to_type() {
        let told = result().lines();
        assert_eq!(told[0], "1 commit on rekindle/x: 2 files, +30 −4");
        assert_eq!(told[1], "your checkout is unchanged; see it: rekindle diff · take it: rekindle land");
    }

    #[test]
    fn what_was_given_up_or_landed_is_not_called_lost() {
        let lost = || RunResult { unknown: Some("rekindle/x is gone".to_owned()), commits: 0, ..result() };
        let told = RunResult { discarded: Some(Time(1_763_200_000_000)), ..lost() }.lines();
        let [only] = &told[..] else { panic!("{told:?}") };
        assert!(only.starts_with("discarded on 2025-11-15 ") && only.ends_with("; it was on rekindle/x"), "{only}");
        let landed = Landed {
            into: "main".to_owned(),
            commit: "abc".to_owned(),
            tip: "abc".to_owned(),
            form: "merge".to_owned(),
        };
        let both = RunResult { landed: Some(landed.clone()), discarded: Some(Time(0)), ..lost() }.headline();
        assert!(both.starts_with("landed in main as abc; what was left of it was discarded on "), "{both}");
        let told = RunResult { landed: Some(landed), ..lost() }.lines();
        assert_eq!(told, ["landed in main as abc; rekindle/x has nothing of it any more"]);
        assert_eq!(lost().lines(), ["on rekindle/x (rekindle/x is gone)"]);
    }

    #[test]
    fn what_is_unproven_is_named() {
        let many = (1..=7).map(|n| format!("T{n}")).collect();
        let told = RunResult { unproven: many, ..result() }.doubt();
        assert_eq!(told.as_deref(), Some("7 tasks unproven: T1, T2, T3, T4, T5 and 2 more"));
        assert_eq!(result().doubt(), None);
    }

    #[test]
    fn a_pull_request_is_named_while_it_shows_all_of_it() {
        let at = PullRequest {
            id: "7".to_owned(),
            url: "https://forge.example/7".to_owned(),
            head: "f".to_owned(),
            ..PullRequest::default()
        };
        let known = KnownPullRequest {
            stage: PullRequestStage::Open,
            at,
            taken: Default::default(),
            answered: Default::default(),
        };
        let shown = RunResult { pull_request: Some(known), tip: "f".to_owned(), ..result() };
        assert_eq!(shown.lines()[1], "pull request 7 is open: https://forge.example/7");
        assert_eq!(RunResult { tip: "newer".to_owned(), ..shown }.next(), Next::Take, "there is more since");
    }

    #[test]
    fn what_was_taken_is_not_offered_again() {
        let taken = RunResult { taken: true, ..result() };
        assert_eq!(taken.next(), Next::Landed("your checkout has it".to_owned()));
        let landed = Landed {
            into: "main".to_owned(),
            commit: "0123456789abcdef".to_owned(),
            tip: "f".to_owned(),
            form: "squash".to_owned(),
        };
        let landed = RunResult { landed: Some(landed), tip: "f".to_owned(), ..result() };
        assert_eq!(landed.next(), Next::Landed("landed in main as 012345678".to_owned()));
        assert_eq!(RunResult { tip: "newer".to_owned(), ..landed }.next(), Next::Take, "there is more since");
        assert_eq!(RunResult { commits: 0, taken: true, ..result() }.lines(), ["nothing on rekindle/x yet"]);
    }
}
