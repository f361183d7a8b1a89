//! Runs made up for tests: rows as the store has them, at a time that never changes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rekindle_core::activity::{Measure, Usage};
use rekindle_core::ids::{AgentName, AttemptId, Epoch, QuestionId, TaskId};
use rekindle_core::report::{CheckResult, Checkpoint, Evidence};
use rekindle_core::role::Role;
use rekindle_core::strategy::Strategy;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, QuestionRow, RunRow, RunSchedule, TaskRow, TaskSchedule, WaitRow};
use rekindle_engine::store::{LogLine as Stored, StoredLine, Stream};

use super::super::app::{App, News};
use super::super::hits::Hit;
use super::super::log::LogLine;
use super::super::theme::{Theme, ThemeChoice};
use crate::picture::Picture;
use crate::picture::history::{History, MarkKind};
use crate::picture::result::RunResult;
use crate::project::Project;

/// When everything is looked at.
pub(super) const NOW: Time = Time(1_800_000_000_000);

pub(super) fn ago(minutes: i64) -> Time {
    Time(NOW.0 - minutes * 60_000)
}

pub(super) fn id(name: &str) -> TaskId {
    TaskId::new(name).expect("a name")
}

pub(super) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("a name")
}

pub(super) fn task(name: &str, title: &str, state: &str, wave: u32) -> TaskRow {
    let started = matches!(state, "in_progress" | "complete" | "failed").then(|| ago(30));
    TaskRow {
        id: id(name),
        title: title.to_owned(),
        state: state.to_owned(),
        attempts: u32::from(started.is_some()),
        attempt_limit: 3,
        agent: Some(agent(&format!("developer-{name}"))),
        wave,
        cause: None,
        reason: None,
        result: None,
        unproven: false,
        unreported: false,
        verifying: false,
        epoch: Epoch(1),
        blocked_by: Vec::new(),
        started_at: started,
        ended_at: matches!(state, "complete" | "failed").then(|| ago(12)),
        not_before: None,
        checkpoint: None,
        evidence: None,
        compactions: 0,
        stage: rekindle_core::review::Stage::default(),
        rework: None,
        verdicts: Vec::new(),
        parent: None,
        merged: None,
        workspace: None,
        parts: Vec::new(),
        environments: Vec::new(),
        schedule: TaskSchedule::default(),
        by_operator: false,
        removed: false,
        by_hand: false,
        told: Vec::new(),
        attached: None,
    }
}

pub(super) fn attempt(number: u64, task: &str, ended: Option<&str>) -> AttemptRow {
    AttemptRow {
        attempt: AttemptId(number),
        name: agent(&format!("developer-{task}")),
        cli: "backend".to_owned(),
        role: Role::Developer,
        state: if ended.is_some() { "ended" } else { "running" }.to_owned(),
        pid: None,
        shim_pid: None,
        task: Some(id(task)),
        tasks: vec![id(task)],
        epoch: Epoch(number),
        started_at: ago(30),
        ended_at: ended.map(|_| ago(12)),
        cause: ended.map(str::to_owned),
        kind: "command".to_owned(),
        strategy: if number > 4 { Strategy::Resume } else { Strategy::First },
        session_id: Some(format!("session-{number}")),
        model: Some("small-1".to_owned()),
        measure: Some(measure(number)),
        own_tokens: 0,
        compactions: 0,
        last_words: None,
        class: None,
        numbers: BTreeMap::new(),
    }
}

fn measure(number: u64) -> Measure {
    let usage = Usage { input_tokens: 40_000 * number, output_tokens: 900, cached_tokens: 0, cost_usd: Some(0.31) };
    Measure { usage, context_used: Some(22_000 * number), context_window: Some(200_000) }
}

pub(super) fn question(number: u64, task: &str) -> QuestionRow {
    QuestionRow {
        id: QuestionId(number),
        task: id(task),
        agent: agent(&format!("developer-{task}")),
        text: "Which database should the schema be written for?".to_owned(),
        options: vec!["PostgreSQL".to_owned(), "SQLite".to_owned()],
        context: "The plan names both; the tests run with SQLite.".to_owned(),
        answer: None,
        via: None,
        asked_at: ago(4),
    }
}

/// A run with something of everything: done, working, asking, failed, trying again, blocked.
pub(super) fn fleet() -> Picture {
    let mut rate = task("T4", "rate limiter", "in_progress", 2);
    rate.attempts = 2;
    rate.checkpoint = Some(Checkpoint {
        status: "limits are counted, tests are left".to_owned(),
        completed: vec!["token bucket".to_owned()],
        remaining: vec!["tests".to_owned(), "docs".to_owned()],
        files: vec!["src/limit.rs".to_owned()],
        progress: Some(60),
    });
    let mut failed = task("T3", "migrate the sessions table", "failed", 1);
    failed.attempts = 3;
    failed.reason = Some("its checks failed; 3 of 3 attempts used".to_owned());
    failed.cause = Some("exited_incomplete".to_owned());
    failed.evidence = Some(Evidence { checks: vec![check("cargo test -p sessions")], ..Evidence::default() });
    let mut asks = task("T6", "schema", "blocked", 2);
    (asks.attempts, asks.started_at) = (1, Some(ago(30)));
    let mut again = task("T5", "document the API", "pending", 2);
    (again.attempts, again.not_before, again.cause) = (1, Some(Time(NOW.0 + 42_000)), Some("crashed".to_owned()));
    let mut blocked = task("T7", "end to end tests", "blocked", 3);
    blocked.reason = Some("blocked by T4, T6".to_owned());
    blocked.blocked_by = vec![id("T4"), id("T6")];
    blocked.schedule.unmet = blocked.blocked_by.clone();
    let mut done = task("T1", "auth module", "complete", 1);
    done.result = Some("login and logout with tests".to_owned());
    let tasks = vec![done, task("T2", "password hashing", "complete", 1), failed, rate, again, asks, blocked];
    let attempts = vec![
        attempt(1, "T1", Some("completed")),
        attempt(2, "T2", Some("completed")),
        attempt(3, "T3", Some("exited_incomplete")),
        attempt(4, "T4", Some("crashed")),
        attempt(5, "T4", None),
        attempt(6, "T5", Some("crashed")),
        attempt(7, "T6", None),
    ];
    let mut history = History::default();
    history.counts.insert(MarkKind::Recovery, 4);
    Picture {
        run: run("running"),
        tasks,
        attempts,
        questions: vec![question(1, "T6")],
        history: Arc::new(history),
        outputs: Arc::default(),
        coordinator: Some(4_242),
        damage: None,
        seq: 99,
        now: NOW,
        result: Some(Arc::new(made())),
        waits: OnceLock::new(),
    }
}

fn made() -> RunResult {
    RunResult {
        branch: "rekindle/fleet".to_owned(),
        commits: 3,
        files: 12,
        insertions: 420,
        deletions: 7,
        unproven: vec!["T2".to_owned()],
        ..RunResult::default()
    }
}

fn check(command: &str) -> CheckResult {
    CheckResult {
        command: command.to_owned(),
        passed: false,
        code: Some(101),
        timed_out: false,
        output: "test expiry ... FAILED\n1 of 14 failed".to_owned(),
        kept: None,
        took_ms: 4_200,
        environment: None,
    }
}

pub(super) fn run(state: &str) -> RunRow {
    RunRow {
        id: "r7f3a9c02b".to_owned(),
        plan: "auth-rewrite".to_owned(),
        title: "Rewrite of auth".to_owned(),
        plan_path: "plan.md".to_owned(),
        state: state.to_owned(),
        started_at: ago(134),
        ended_at: None,
        resumes: 0,
        attempts: 3,
        plan_changed: false,
        work_branch: None,
        work_base: None,
        landed: None,
        waits: Vec::new(),
        held: None,
        pause_reason: None,
        resumes_at: None,
        schedule: RunSchedule { max_agents: 2, ..RunSchedule::default() },
        placed: Vec::new(),
    }
}

/// The same run while everything waits for a limit.
pub(super) fn limited() -> Picture {
    let mut picture = fleet();
    picture.run.state = "waiting".to_owned();
    let until = Time(NOW.0 + 47 * 60_000);
    picture.run.resumes_at = Some(until);
    picture.run.waits = vec![WaitRow {
        account: "backend".to_owned(),
        cause: "usage_limit".to_owned(),
        until: Some(until),
        reset: None,
        probe: 1,
    }];
    picture.questions.clear();
    for attempt in &mut picture.attempts {
        attempt.ended_at = attempt.ended_at.or(Some(ago(2)));
        attempt.cause = attempt.cause.take().or(Some("usage_limit".to_owned()));
    }
    for task in picture.tasks.iter_mut().filter(|task| task.state == "in_progress" || task.id == id("T6")) {
        task.state = "pending".to_owned();
    }
    picture
}

pub(super) fn line(text: &str, stream: Stream, at: usize) -> LogLine {
    LogLine::of(&stored(5, text, stream, at))
}

/// A line of an attempt that was found in a search over all.
pub(super) fn hit(attempt: u64, at: usize, text: &str) -> Hit {
    Hit::of(&stored(attempt, text, Stream::Out, at))
}

fn stored(attempt: u64, text: &str, stream: Stream, at: usize) -> StoredLine {
    let time_ms = NOW.0 - 600_000 + i64::try_from(at).expect("small") * 1_000;
    let line = Stored {
        attempt,
        agent: if attempt == 5 { "developer-T4" } else { "developer-T6" }.to_owned(),
        epoch: 5,
        stream,
        time_ms,
        offset: 0,
        len: 0,
        text: text.to_owned(),
        torn: false,
    };
    StoredLine { seq: at as u64 + 1, line }
}

/// Lines of a log from a number on.
pub(super) fn lines(from: usize, many: usize) -> Vec<LogLine> {
    (from..from + many)
        .map(|at| match at % 6 {
            0 => line(&format!("→ Edit: src/limit.rs ({at})"), Stream::Out, at),
            1 => line("← 3 lines changed", Stream::Out, at),
            2 => line("→ Bash: cargo test -p limit", Stream::Out, at),
            3 => line("! 3 tests failed", Stream::Out, at),
            4 => line("warning: unused variable `bucket`", Stream::Err, at),
            _ => line("I see why: the bucket is refilled before it is read, so that a burst of calls right after a pause is let through whole.", Stream::Out, at),
        })
        .collect()
}

/// A project that is nowhere.
pub(super) fn project() -> Project {
    Project { root: "/home/me/shop".into(), config: None, state_dir: "/home/me/shop/.rekindle".into() }
}

/// A screen of a size that shows a run.
pub(super) fn app(picture: Picture, size: (u16, u16)) -> App {
    let theme = Theme::new(ThemeChoice::Dark, true, None, false);
    let mut app = App::new(project(), theme, false, None, size);
    app.take(News::Run(None, Some((Arc::new(picture), true))));
    app
}

/// Gives a screen the lines of the log that it wants.
pub(super) fn feed(app: &mut App, count: usize) {
    if let Some(window) = app.want().log {
        let from = window.from.unwrap_or_else(|| count.saturating_sub(window.many));
        let many = window.many.min(count.saturating_sub(from));
        app.take(News::Log(window.attempt, count, from, lines(from, many)));
    }
}
