//! The state of a run, for programs.

use std::collections::BTreeMap;

use rekindle_core::event::PauseReason;
use rekindle_core::ids::TaskId;
use rekindle_core::report::{Checkpoint, Evidence};
use rekindle_core::review::{GivenVerdict, Rework, Stage};
use rekindle_core::team::Class;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, HeldRow, QuestionRow, TaskRow, WaitRow};
use rekindle_engine::agents::command;
use rekindle_engine::caps::Held;
use rekindle_engine::state_dir::Owner;
use rekindle_engine::store::Lag;
use serde::Serialize;

use crate::caps::CapsJson;
use crate::error::Result;
use crate::ui::stamp;
use crate::view::{Counts, REPAIR, RunView, Spent, View, newest_of_each};

/// The version of the JSON; a field may be added under the same one.
const SCHEMA_VERSION: u32 = 1;

/// Everything, for programs.
#[derive(Serialize)]
pub(crate) struct StatusJson {
    schema_version: u32,
    run: Option<RunJson>,
    tasks: Vec<TaskJson>,
    agents: Vec<AgentJson>,
    questions: usize,
    coordinator: Option<CoordinatorJson>,
    /// The database is not what its log says: what stands here is old, or not what happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<DamageJson>,
    /// Why nothing new is started, while the machine is short of something.
    held: Option<HeldJson>,
    /// What holds agents to their caps on this machine.
    caps: CapsJson,
}

#[derive(Serialize)]
struct DamageJson {
    reason: String,
    hint: &'static str,
}

#[derive(Serialize)]
struct HeldJson {
    reason: String,
    since: String,
    /// What to type, or where to look.
    hint: String,
}

#[derive(Serialize)]
struct RunJson {
    id: String,
    plan: String,
    title: String,
    plan_path: String,
    state: String,
    started_at: String,
    ended_at: Option<String>,
    resumes: u32,
    plan_changed: bool,
    /// Why it is paused: `operator`, `interrupt`, `terminate`, `stop`, `no_wait`, `usage_limit` or `system_error`.
    pause_reason: Option<PauseReason>,
    /// When a run that waits goes on by itself.
    resumes_at: Option<String>,
    waits: Vec<WaitJson>,
    complete: usize,
    failed: usize,
    skipped: usize,
    total: usize,
}

#[derive(Serialize)]
struct WaitJson {
    account: String,
    cause: String,
    until: Option<String>,
    reset: Option<String>,
    probe: u32,
}

#[derive(Serialize)]
struct TaskJson {
    id: String,
    title: String,
    state: String,
    attempts: u32,
    attempt_limit: u32,
    agent: Option<String>,
    wave: u32,
    cause: Option<String>,
    reason: Option<String>,
    result: Option<String>,
    unproven: bool,
    /// No agent reported it: its checks, or a person, showed that it is done.
    unreported: bool,
    verifying: bool,
    epoch: u64,
    blocked_by: Vec<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    not_before: Option<String>,
    checkpoint: Option<Checkpoint>,
    evidence: Option<Evidence>,
    /// What all attempts that held it have used; one that held several tasks counts in full for each.
    tokens: u64,
    /// What rekindle itself said to them, four bytes a token: prompts beyond the plan's words and the record of the work, messages.
    rekindle_tokens: u64,
    cost_usd: Option<f64>,
    compactions: u32,
    stage: Stage,
    rework: Option<Rework>,
    verdicts: Vec<GivenVerdict>,
    parent: Option<String>,
    parts: Vec<String>,
    environments: Vec<String>,
    merged: Option<String>,
}

#[derive(Serialize)]
struct AgentJson {
    name: String,
    kind: String,
    role: String,
    state: String,
    pid: Option<u32>,
    shim_pid: Option<u32>,
    task: Option<String>,
    tasks: Vec<String>,
    epoch: u64,
    attempt: u64,
    cli: String,
    started_at: String,
    ended_at: Option<String>,
    cause: Option<String>,
    /// What it said last, in one short line.
    last_words: Option<String>,
    session_id: Option<String>,
    model: Option<String>,
    strategy: &'static str,
    context_used: Option<u64>,
    context_window: Option<u64>,
    compactions: u32,
    tokens: u64,
    rekindle_tokens: u64,
    usage: Option<UsageJson>,
    cost_usd: Option<f64>,
    /// How a living one stands: `working`, `idle` or `unresponsive`.
    class: Option<&'static str>,
}

#[derive(Serialize)]
struct UsageJson {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
}

#[derive(Serialize)]
struct CoordinatorJson {
    pid: Option<u32>,
    since: Option<String>,
}

/// What is shown, read at one moment.
#[derive(Default)]
pub(crate) struct Shown {
    pub tasks: Vec<TaskRow>,
    pub agents: Vec<AttemptRow>,
    pub spent: BTreeMap<TaskId, Spent>,
    pub questions: Vec<QuestionRow>,
}

impl Shown {
    pub(crate) fn read(run: Option<&RunView<'_>>, all: bool) -> Result<Self> {
        let Some(run) = run else { return Ok(Self::default()) };
        let attempts = run.attempts()?;
        Ok(Self {
            tasks: run.tasks()?,
            spent: Spent::by_task(&attempts),
            agents: if all { attempts } else { newest_of_each(attempts) },
            questions: run.questions()?,
        })
    }
}

pub(crate) fn open(questions: &[QuestionRow]) -> impl Iterator<Item = &QuestionRow> {
    questions.iter().filter(|question| question.answer.is_none())
}

/// What `status --json` shows, of a run of the caller's choice; without a state, what is shown before the first run.
pub(crate) fn for_programs(view: Option<&View>, run: Option<&RunView<'_>>, all: bool) -> Result<StatusJson> {
    let coordinator = view.map_or(Ok(None), View::coordinator)?;
    let lag = view.map_or(Ok(None), View::lag)?;
    let shown = Shown::read(run, all)?;
    let caps = view.map_or_else(rekindle_engine::caps::standing, |view| view.caps(&shown.agents));
    Ok(whole(run, shown, coordinator, lag, &caps))
}

fn whole(
    run: Option<&RunView<'_>>,
    shown: Shown,
    coordinator: Option<Option<Owner>>,
    lag: Option<Lag>,
    caps: &Held,
) -> StatusJson {
    let owner = coordinator.map(|owner| CoordinatorJson {
        pid: owner.as_ref().map(|owner| owner.pid),
        since: owner.as_ref().map(|owner| stamp(Time(owner.since_ms))),
    });
    let Shown { tasks, agents, spent, questions } = shown;
    StatusJson {
        schema_version: SCHEMA_VERSION,
        run: run.map(|run| run_json(run, &tasks)),
        questions: open(&questions).count(),
        tasks: tasks
            .into_iter()
            .map(|task| {
                let spent = spent.get(&task.id).copied().unwrap_or_default();
                task_json(task, &spent)
            })
            .collect(),
        agents: agents.into_iter().map(agent_json).collect(),
        coordinator: owner,
        damage: lag.map(|lag| DamageJson { reason: lag.to_string(), hint: REPAIR }),
        held: run.and_then(|run| crate::waits::held_now(&run.row)).map(held_json),
        caps: caps.into(),
    }
}

fn run_json(run: &RunView<'_>, tasks: &[TaskRow]) -> RunJson {
    let counts = Counts::of(tasks);
    let row = &run.row;
    RunJson {
        id: row.id.clone(),
        plan: row.plan.clone(),
        title: row.title.clone(),
        plan_path: row.plan_path.clone(),
        state: row.state.clone(),
        started_at: stamp(row.started_at),
        ended_at: row.ended_at.map(stamp),
        resumes: row.resumes,
        plan_changed: row.plan_changed,
        pause_reason: row.pause_reason,
        resumes_at: row.resumes_at.map(stamp),
        waits: row.waits.iter().map(wait_json).collect(),
        complete: counts.complete,
        failed: counts.failed,
        skipped: counts.skipped,
        total: counts.all,
    }
}

fn held_json(held: &HeldRow) -> HeldJson {
    HeldJson { reason: held.reason.clone(), since: stamp(held.since), hint: held.hint.clone() }
}

fn wait_json(wait: &WaitRow) -> WaitJson {
    WaitJson {
        account: wait.account.clone(),
        cause: wait.cause.clone(),
        until: wait.until.map(stamp),
        reset: wait.reset.map(stamp),
        probe: wait.probe,
    }
}

fn task_json(row: TaskRow, spent: &Spent) -> TaskJson {
    TaskJson {
        tokens: spent.tokens,
        rekindle_tokens: spent.own_tokens,
        cost_usd: spent.cost_usd,
        compactions: row.compactions,
        stage: row.stage,
        rework: row.rework,
        verdicts: row.verdicts,
        parent: row.parent.map(Into::into),
        parts: row.parts.into_iter().map(Into::into).collect(),
        environments: row.environments,
        merged: row.merged,
        id: row.id.into(),
        title: row.title,
        state: row.state,
        attempts: row.attempts,
        attempt_limit: row.attempt_limit,
        agent: row.agent.map(Into::into),
        wave: row.wave,
        cause: row.cause,
        reason: row.reason,
        result: row.result,
        unproven: row.unproven,
        unreported: row.unreported,
        verifying: row.verifying,
        epoch: row.epoch.0,
        blocked_by: row.blocked_by.into_iter().map(Into::into).collect(),
        started_at: row.started_at.map(stamp),
        ended_at: row.ended_at.map(stamp),
        not_before: row.not_before.map(stamp),
        checkpoint: row.checkpoint,
        evidence: row.evidence,
    }
}

fn agent_json(row: AttemptRow) -> AgentJson {
    let usage = row.measure.map(|measure| measure.usage);
    AgentJson {
        name: row.name.into(),
        // Rows of earlier versions have none: all their agents were commands.
        kind: if row.kind.is_empty() { command::KIND.to_owned() } else { row.kind },
        role: row.role.name().to_owned(),
        state: row.state,
        pid: row.pid,
        shim_pid: row.shim_pid,
        task: row.task.map(Into::into),
        tasks: row.tasks.into_iter().map(Into::into).collect(),
        epoch: row.epoch.0,
        attempt: row.attempt.0,
        cli: row.cli,
        started_at: stamp(row.started_at),
        ended_at: row.ended_at.map(stamp),
        cause: row.cause,
        last_words: row.last_words,
        session_id: row.session_id,
        model: row.model,
        strategy: row.strategy.name(),
        context_used: row.measure.and_then(|measure| measure.context_used),
        context_window: row.measure.and_then(|measure| measure.context_window),
        compactions: row.compactions,
        tokens: usage.map_or(0, |usage| usage.tokens()),
        rekindle_tokens: row.own_tokens,
        usage: usage.map(|usage| UsageJson {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
        }),
        cost_usd: usage.and_then(|usage| usage.cost_usd),
        class: row.class.map(Class::name),
    }
}
