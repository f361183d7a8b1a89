//! The state of a run, for programs.

use rekindle_core::event::PauseReason;
use rekindle_core::ids::TaskId;
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{Checkpoint, Evidence};
use rekindle_core::review::{GivenVerdict, Rework, Stage};
use rekindle_core::team::Class;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, Counts, HeldRow, TaskRow, WaitRow, WaitsFor};
use rekindle_engine::agents::command;
use rekindle_engine::caps::Held;
use rekindle_engine::clean;
use rekindle_engine::state_dir::Owner;
use rekindle_engine::store::Lag;
use serde::Serialize;
use serde_json::Value;

use super::budget::{BudgetJson, TaskSpentJson};
use super::steering::{AttachedJson, PlacedJson, ToldJson};
use crate::caps::CapsJson;
use crate::error::Result;
use crate::picture::Picture;
use crate::picture::output::TaskOutput;
use crate::picture::result::{self, RunResult};
use crate::project::Project;
use crate::ui::stamp;
use crate::view::{REPAIR, RunView, Spent, View, newest_of_each};

/// The version of the JSON; adding a field does not change it.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
pub(crate) struct StatusJson {
    schema_version: u32,
    run: Option<RunJson>,
    tasks: Vec<TaskJson>,
    agents: Vec<AgentJson>,
    questions: usize,
    coordinator: Option<CoordinatorJson>,
    /// The database does not match its log: what is shown here is old, or not what happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<DamageJson>,
    /// Why nothing new is started, while the machine is short of something.
    held: Option<HeldJson>,
    /// What may be spent and what was spent.
    budget: Option<BudgetJson>,
    /// What the run produced, if it works on its own branch.
    result: Option<RunResult>,
    /// Why agents are polled, while the system has no file watches left.
    #[serde(skip_serializing_if = "Option::is_none")]
    polling: Option<Refusal>,
    /// What enforces agents' caps on this machine.
    caps: CapsJson,
    /// The size of the state directory.
    disk_bytes: u64,
    /// Whether all of it was counted; otherwise it is larger.
    disk_whole: bool,
}

impl StatusJson {
    /// Keeps only these tasks and the agents that held them; everything if none is named.
    pub(crate) fn keep(&mut self, wanted: &[TaskId]) {
        if wanted.is_empty() {
            return;
        }
        let named = |id: &String| wanted.iter().any(|task| task.as_str() == id);
        self.tasks.retain(|task| named(&task.id));
        self.agents.retain(|agent| agent.tasks.iter().any(named));
    }
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
    /// Why it is paused: `operator`, `interrupt`, `terminate`, `stop`, `no_wait`, `usage_limit`, `system_error` or `budget`.
    pause_reason: Option<PauseReason>,
    /// When a waiting run resumes on its own.
    resumes_at: Option<String>,
    waits: Vec<WaitJson>,
    /// Orders that the person can still undo.
    placed: Vec<PlacedJson>,
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
    /// A person decided how it ended.
    by_operator: bool,
    /// The plan no longer has it.
    removed: bool,
    /// A person added it to the run.
    by_hand: bool,
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
    evidence: Option<EvidenceJson>,
    /// What all attempts that held it have used; one that held several tasks counts in full for each.
    tokens: u64,
    /// What rekindle itself sent to them, at four bytes per token: prompts beyond the plan's words and the record of the
    /// work, messages.
    rekindle_tokens: u64,
    cost_usd: Option<f64>,
    /// What counts towards its budget: an attempt at several tasks counts for the one that it was working on.
    budget: TaskSpentJson,
    compactions: u32,
    stage: Stage,
    rework: Option<Rework>,
    verdicts: Vec<GivenVerdict>,
    parent: Option<String>,
    parts: Vec<String>,
    environments: Vec<String>,
    merged: Option<String>,
    /// What the person told its agent.
    told: Vec<ToldJson>,
    attached: Option<AttachedJson>,
    /// What an open task without an agent waits for: `kind` is `task`, `wave`, `slot`, `account`, `person`, `set_up`,
    /// `machine` or `time`.
    waits_for: Option<Value>,
}

/// What is known about a task's last end: the results of its checks, and what its agent printed before it failed.
#[derive(Serialize)]
struct EvidenceJson {
    #[serde(flatten)]
    checks: Evidence,
    /// The last lines of an agent that crashed or failed, with an error kept separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<TaskOutput>,
}

fn evidence_json(checks: Option<Evidence>, output: Option<TaskOutput>) -> Option<EvidenceJson> {
    let known = checks.is_some() || output.is_some();
    known.then(|| EvidenceJson { checks: checks.unwrap_or_default(), output })
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
    /// Which attempt at `task` it is, counted from 1.
    number: Option<u32>,
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
    /// The state of a live one: `working`, `idle` or `unresponsive`.
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

/// The contents of `status --json`, for a run of the caller's choice; without a state, what is shown before the first run.
pub(crate) fn for_programs(
    project: &Project,
    view: Option<&View>,
    run: Option<&RunView<'_>>,
    all: bool,
) -> Result<StatusJson> {
    let coordinator = view.map_or(Ok(None), View::coordinator)?;
    let lag = view.map_or(Ok(None), View::lag)?;
    let picture = run.map(|run| Picture::of_rows(run, pid_of(coordinator.as_ref()))).transpose()?;
    let agents = picture.as_ref().map(|picture| shown_agents(picture, all)).unwrap_or_default();
    let made = picture.as_ref().and_then(|picture| result::of(project, &picture.run, &picture.tasks));
    let caps = view.map_or_else(rekindle_engine::caps::standing, |view| view.caps(&agents));
    let mut json = whole(run, picture, agents, coordinator, lag, &caps);
    json.questions += view.map_or(Ok(None), View::lost)?.iter().count();
    json.result = made;
    json.polling = view.and_then(View::polling);
    let used = clean::used(&project.state_dir);
    (json.disk_bytes, json.disk_whole) = (used.bytes, used.whole);
    Ok(json)
}

/// The coordinator's process id; 0 if it has not recorded it yet.
pub(crate) fn pid_of(coordinator: Option<&Option<Owner>>) -> Option<u32> {
    coordinator.map(|owner| owner.as_ref().map_or(0, |owner| owner.pid))
}

pub(crate) fn shown_agents(picture: &Picture, all: bool) -> Vec<AttemptRow> {
    if all { picture.attempts.clone() } else { newest_of_each(picture.attempts.clone()) }
}

fn whole(
    run: Option<&RunView<'_>>,
    picture: Option<Picture>,
    agents: Vec<AttemptRow>,
    coordinator: Option<Option<Owner>>,
    lag: Option<Lag>,
    caps: &Held,
) -> StatusJson {
    let owner = coordinator.map(|owner| CoordinatorJson {
        pid: owner.as_ref().map(|owner| owner.pid),
        since: owner.as_ref().map(|owner| stamp(Time(owner.since_ms))),
    });
    let spent = picture.as_ref().map(Picture::spent_by_task).unwrap_or_default();
    let row = |picture: &Picture, task: &TaskRow| {
        let spent = spent.get(&task.id).copied().unwrap_or_default();
        let waits = picture.waits_for(&task.id).map(task_wait_json);
        let budget = TaskSpentJson::of(&task.spending, &picture.run.budget.limits.task, picture.now);
        task_json(task.clone(), (&spent, budget), waits, picture.outputs.get(&task.id).cloned())
    };
    let tasks = picture.iter().flat_map(|picture| picture.tasks.iter().map(move |task| row(picture, task))).collect();
    StatusJson {
        schema_version: SCHEMA_VERSION,
        run: run.zip(picture.as_ref()).map(|(run, picture)| run_json(run, picture.counts())),
        questions: picture.as_ref().map_or(0, |picture| picture.open_questions().count()),
        tasks,
        agents: agents.into_iter().map(agent_json).collect(),
        coordinator: owner,
        damage: lag.map(|lag| DamageJson { reason: lag.to_string(), hint: REPAIR }),
        held: run.and_then(|run| crate::waits::held_now(&run.row)).map(held_json),
        budget: picture.as_ref().map(|picture| BudgetJson::of(&picture.run.budget, picture.now)),
        result: None,
        polling: None,
        caps: caps.into(),
        disk_bytes: 0,
        disk_whole: true,
    }
}

fn run_json(run: &RunView<'_>, counts: Counts) -> RunJson {
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
        placed: row.placed.iter().map(PlacedJson::from).collect(),
        complete: counts.complete,
        failed: counts.failed,
        skipped: counts.skipped,
        total: counts.all,
    }
}

/// What a task waits for, with times in the same format as all others.
fn task_wait_json(waits: &WaitsFor) -> Value {
    let mut json = serde_json::to_value(waits).unwrap_or_default();
    if let Some(until) = json.get_mut("until").filter(|until| !until.is_null()) {
        *until = until.as_i64().map_or(Value::Null, |ms| Value::String(stamp(Time(ms))));
    }
    json
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

fn task_json(
    row: TaskRow,
    (spent, budget): (&Spent, TaskSpentJson),
    waits_for: Option<Value>,
    output: Option<TaskOutput>,
) -> TaskJson {
    TaskJson {
        waits_for,
        budget,
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
        told: row.told.into_iter().map(Into::into).collect(),
        attached: row.attached.map(Into::into),
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
        by_operator: row.by_operator,
        removed: row.removed,
        by_hand: row.by_hand,
        unproven: row.unproven,
        unreported: row.unreported,
        verifying: row.verifying,
        epoch: row.epoch.0,
        blocked_by: row.blocked_by.into_iter().map(Into::into).collect(),
        started_at: row.started_at.map(stamp),
        ended_at: row.ended_at.map(stamp),
        not_before: row.not_before.map(stamp),
        checkpoint: row.checkpoint,
        evidence: evidence_json(row.evidence, output),
    }
}

fn agent_json(row: AttemptRow) -> AgentJson {
    let (usage, number, cost_usd) = (row.measure.map(|measure| measure.usage), row.number(), row.cost_usd());
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
        number,
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
        cost_usd,
        class: row.class.map(Class::name),
    }
}
