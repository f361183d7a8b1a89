//! Carrying effects out. Each is safe to perform twice, because a restart performs whatever is outstanding again.

use rekindle_core::activity::{CALL_MARK, ERROR_MARK, RESULT_MARK};
use rekindle_core::brief::{self, Activity, Facts, LineKind, ReportChannels};
use rekindle_core::decide;
use rekindle_core::effect::Effect;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{Input, MergeOutcome, PreflightTried, Refused};
use rekindle_core::refusal::Refusal;
use rekindle_core::report::Evidence;
use rekindle_core::state::{AttemptPhase, Task, TaskState};
use rekindle_core::{phone, text, view};

use super::Driver;
use crate::agents::PLUGIN_MARK;
use crate::alert::{Alert, Kind};
use crate::last_output;
use crate::person::WorkedOn;
use crate::store::{StoredLine, Stream};
use crate::world::{Admission, CheckOrder, LaunchOrder, LeaveOrder, MergeOrder, World};

/// Bytes of a title in a commit's subject.
const SUBJECT_BYTES: usize = 200;

/// Bytes of a command in a commit's trailer.
const TRAILER_BYTES: usize = 400;

impl<W: World> Driver<W> {
    pub(super) fn act(&mut self, effect: Effect) {
        match effect {
            Effect::LaunchAttempt { attempt } => self.launch(attempt),
            Effect::StopAttempt { attempt, at_once } => self.world.stop(attempt, at_once),
            Effect::RunChecks { task, epoch } => self.run_checks(&task, epoch),
            Effect::InspectDisk => {
                let missing = self.missing_artifacts();
                self.take(Input::DiskInspected { missing });
            }
            Effect::TellAgent { attempt, number, text } => {
                if let Some(cli) = self.state.attempts.get(&attempt).map(|found| found.cli.clone()) {
                    self.world.tell(attempt, &cli, number, &text);
                }
            }
            Effect::MergeWork { task, epoch } => self.merge(&task, epoch),
            Effect::LeaveWorkspace { attempt } => self.leave(attempt),
            Effect::CheckHealth => {
                let commands = self.health_commands();
                if let Admission::Refused(refusal) = self.world.check_health(&commands) {
                    self.refused(Refused::Health, refusal);
                }
            }
            Effect::Preflight => self.preflight(),
            Effect::RepeatRefused => self.repeat_refused(),
            Effect::ProveAgain { task } => {
                let claim = self.state.tasks.get(&task).and_then(|found| found.claim.as_ref());
                if let Some(epoch) = claim.map(|claim| claim.epoch) {
                    self.run_checks(&task, epoch);
                }
            }
            Effect::AskUsage => self.world.ask_usage(),
            Effect::WatchPerson { task, by, since } => {
                let workspace = self.state.workspace_of(&task);
                let place = WorkedOn { workspace, task: task.to_string(), attempt: since.0 };
                self.world.watch_person(&task, &by, place);
            }
            Effect::CloseInput { attempt } => self.world.close_input(attempt),
            Effect::AlertPerson { text, choices, task } => self.alert(Kind::NeedsYou, text, choices, task),
            Effect::TellEnd { text } => self.alert(Kind::Finished, text, vec!["rekindle report".to_owned()], None),
        }
    }

    fn alert(&mut self, kind: Kind, text: String, choices: Vec<String>, task: Option<TaskId>) {
        let evidence = task.as_ref().map(|task| self.evidence_of(task)).unwrap_or_default();
        let question = phone::asked_by(&choices);
        let run = self.state.run.as_ref();
        let alert = Alert {
            kind,
            text,
            choices,
            run: run.map_or(String::new(), |run| run.id.to_string()),
            plan: run.map_or(String::new(), |run| run.plan.name.clone()),
            task,
            question,
            evidence,
            time: self.decided_at,
        };
        self.world.alert(&alert);
    }

    /// What the agent of a failed task printed last. A log that cannot be read now must not prevent the alert.
    fn evidence_of(&self, task: &TaskId) -> Vec<String> {
        let Some(row) = view::task_row(&self.state, task) else { return Vec::new() };
        let attempts: Vec<_> =
            self.state.attempts.keys().filter_map(|id| view::attempt_row(&self.state, *id)).collect();
        let failing = last_output::failing(&row, &attempts);
        let output = failing.and_then(|attempt| last_output::of(&*self.store, attempt.attempt, &attempt.kind).ok()?);
        output.map(|output| output.shown().map(str::to_owned).collect()).unwrap_or_default()
    }

    pub(super) fn launch(&mut self, attempt: AttemptId) {
        // An attempt that has run is read to its end, and one that may be running is searched for: neither is started.
        if self.ending.contains(&attempt) || self.unknown.contains_key(&attempt) {
            return;
        }
        let Some(facts) = self.facts_for(attempt) else { return };
        let Some(found) = self.state.attempts.get(&attempt) else { return };
        let Some(first) = found.tasks.first() else { return };
        let number = self.state.tasks.get(first).map_or(1, |task| task.tries().max(1));
        let own_bytes = self.world.own_bytes(attempt, &facts, found.cli_session.resumes.is_some());
        let order = LaunchOrder {
            attempt,
            agent: found.agent.clone(),
            role: found.role,
            cli: found.cli.clone(),
            epoch: found.epoch,
            tasks: found.tasks.clone(),
            number,
            resume: found.cli_session.resumes.clone(),
            workspace: self.state.workspace_of(first),
            set_up: !self.state.preparing.without,
            declared: self.declared_with(&found.tasks),
            baselines: self.baselines_for(attempt),
            facts,
        };
        self.own_bytes.insert(attempt, own_bytes);
        if let Admission::Refused(refusal) = self.world.launch(order) {
            self.refused(Refused::Attempt(attempt), refusal);
        }
    }

    /// Handles a refusal: the machine had no room for something.
    pub(super) fn refused(&mut self, what: Refused, refusal: Refusal) {
        if let Refused::Attempt(attempt) = what {
            self.forget(attempt);
        }
        if let Refused::Checks(task, epoch) | Refused::Merge(task, epoch) = &what {
            let now = self.world.now();
            self.unprovable.entry((task.clone(), *epoch)).or_insert(now);
        }
        let refusal = Refusal { reason: self.clean(&refusal.reason), hint: refusal.hint };
        self.take(Input::Refused { what, refusal });
    }

    /// The machine has room again: what it may have refused is requested again. What is already in progress is not started
    /// twice.
    fn repeat_refused(&mut self) {
        for effect in decide::outstanding(&self.state) {
            if matches!(effect, Effect::RunChecks { .. } | Effect::MergeWork { .. } | Effect::CheckHealth) {
                self.act(effect);
            }
        }
    }

    /// What the state and the log know for a prompt; the world adds what is on disk.
    fn facts_for(&mut self, id: AttemptId) -> Option<Facts> {
        let mut facts = brief::facts_from(&self.state, id)?;
        facts.calls = self.calls_of(id);
        facts.results.splice(0..0, self.settled_results(&facts));
        let found = self.state.attempts.get(&id)?;
        facts.workspace.clone_from(&self.settings.workspace);
        facts.build_status_path.clone_from(&self.settings.build_status_path);
        facts.budget_bytes = self.settings.brief_budget_bytes;
        facts.template = self.settings.prompts.get(&found.role).cloned();
        facts.nonce = self.tokens.fence(id, found.epoch);
        let mcp = self.state.limits.traits_of(&found.cli).mcp;
        facts.channels = ReportChannels { program: Some("rekindle".to_owned()), signals: true, mcp };
        if found.resumed {
            // If the log cannot be read, the brief lacks its last part, but the task does not lose its attempt.
            let lines = self.store.log_tail(Some(found.agent.as_str()), self.settings.log_context_lines);
            let listed =
                |line: &StoredLine| [CALL_MARK, RESULT_MARK].iter().any(|mark| line.line.text.starts_with(mark));
            // In a structured stream, lines that cannot be parsed are the program's own bookkeeping.
            let structured_output = self.state.limits.traits_of(&found.cli).structured_output;
            let words = |line: &StoredLine| {
                !structured_output || !["{\"", PLUGIN_MARK].iter().any(|mark| line.line.text.starts_with(mark))
            };
            // Calls with known outcomes have a list of their own.
            let new = |line: &StoredLine| words(line) && (facts.calls.known.is_empty() || !listed(line));
            facts.activity = lines.unwrap_or_default().into_iter().filter(new).map(activity_of).collect();
        }
        Some(facts)
    }

    fn run_checks(&mut self, task: &TaskId, epoch: Epoch) {
        let Some(mut order) = self.check_order(task, epoch) else { return };
        order.health = self.health_with(task);
        if let Admission::Refused(refusal) = self.world.run_checks(order) {
            self.refused(Refused::Checks(task.clone(), epoch), refusal);
        }
    }

    fn check_order(&self, task: &TaskId, epoch: Epoch) -> Option<CheckOrder> {
        let planned = self.state.plan_task(task)?;
        Some(CheckOrder {
            task: task.clone(),
            epoch,
            commands: planned.accept.clone(),
            artifacts: planned.artifacts.clone(),
            environments: self.state.environments_of(planned),
            health: Vec::new(),
            workspace: self.state.workspace_of(task),
            set_up: !self.state.preparing.without,
        })
    }

    /// The checks of the task that an attempt starts with, if they were never run before an agent worked on it. Those of
    /// later tasks may fail only because this one is not complete yet.
    fn baselines_for(&self, attempt: AttemptId) -> Vec<CheckOrder> {
        let Some(found) = self.state.attempts.get(&attempt).filter(|found| !found.role.reviews()) else {
            return Vec::new();
        };
        let unknown = |id: &&TaskId| self.state.tasks.get(*id).is_some_and(|task| task.workflow.baseline.is_none());
        let provable = |id: &&TaskId| self.state.plan_task(id).is_some_and(|planned| !planned.is_unproven());
        let tasks = found.tasks.first().into_iter().filter(unknown).filter(provable);
        tasks.filter_map(|task| self.check_order(task, found.epoch)).collect()
    }

    fn preflight(&mut self) {
        if let Admission::Refused(refusal) = self.world.preflight(decide::to_try(&self.state)) {
            // The pre-flight is only a preview: the first agent will encounter a lack of room again.
            let problem = Some(refusal.reason);
            self.take(Input::Preflight(PreflightTried { problem, ..PreflightTried::default() }));
        }
    }

    fn health_commands(&self) -> Vec<String> {
        self.state.run.as_ref().map(|run| run.plan.settings.health.clone()).unwrap_or_default()
    }

    /// The health commands that run with a task's checks: none for a part, and none for the task that repairs them.
    fn health_with(&self, task: &TaskId) -> Vec<String> {
        let whole =
            self.state.tasks.get(task).is_some_and(|task| !task.workflow.health && task.workflow.parent.is_none());
        if whole { self.health_commands() } else { Vec::new() }
    }

    fn merge(&mut self, task: &TaskId, epoch: Epoch) {
        let (Some(planned), Some(workspace)) = (self.state.plan_task(task), self.state.workspace_of(task)) else {
            // There are no separate worktrees, so there is nothing to merge.
            let outcome = MergeOutcome::Merged { commit: None };
            self.take(Input::WorkMerged { task: task.clone(), epoch, outcome });
            return;
        };
        let evidence = self.state.tasks.get(task).and_then(|task| task.evidence.as_ref());
        let message = commit_message(task, &planned.title, evidence);
        let known = self.state.run.as_ref().and_then(|run| run.work_commit.clone());
        if !self.merging.insert((task.clone(), epoch)) {
            return;
        }
        let declared = self.declared_with(std::slice::from_ref(task));
        self.world.merge(MergeOrder { task: task.clone(), epoch, workspace, message, known, declared });
    }

    /// Keeps what an attempt left. Its workspace is removed when everything that was done in it is merged and no agent uses
    /// it.
    fn leave(&mut self, attempt: AttemptId) {
        let Some(tasks) = self.state.attempts.get(&attempt).map(|found| found.tasks.clone()) else { return };
        let Some(task) = tasks.first().cloned() else { return };
        let workspace = self.state.workspace_of(&task);
        let same = |id: &TaskId| workspace.is_some() && self.state.workspace_of(id) == workspace;
        let busy = self.state.attempts.values().filter(|found| found.phase != AttemptPhase::Ended);
        let free = !busy.flat_map(|found| &found.tasks).any(same);
        let through = |task: &Task| task.state == TaskState::Complete && task.workflow.merging.is_none();
        let tidy = workspace.is_some()
            && free
            && self.state.tasks.iter().filter(|(id, _)| same(id)).all(|(_, task)| through(task));
        let declared = self.declared_with(&tasks);
        self.world.leave(LeaveOrder { attempt, task, workspace, tidy, declared });
    }

    /// The artifacts of these tasks, and of every other task that uses the same workspace.
    fn declared_with(&self, tasks: &[TaskId]) -> Vec<String> {
        let places: Vec<String> = tasks.iter().filter_map(|id| self.state.workspace_of(id)).collect();
        if places.is_empty() {
            let promised = tasks.iter().filter_map(|id| self.state.plan_task(id));
            return promised.flat_map(|planned| planned.artifacts.iter().cloned()).collect();
        }
        let there = |id: &TaskId| {
            tasks.contains(id) || self.state.workspace_of(id).is_some_and(|place| places.contains(&place))
        };
        let promised = self.state.tasks.keys().filter(|id| there(id)).filter_map(|id| self.state.plan_task(id));
        promised.flat_map(|planned| planned.artifacts.iter().cloned()).collect()
    }
}

fn activity_of(stored: StoredLine) -> Activity {
    let text = stored.line.text;
    let (stream, kind) = match stored.line.stream {
        Stream::Err => (brief::Stream::Err, LineKind::Error),
        Stream::Out | Stream::Transcript if text.starts_with(CALL_MARK) => (brief::Stream::Out, LineKind::Tool),
        Stream::Out | Stream::Transcript if text.starts_with(ERROR_MARK) => (brief::Stream::Out, LineKind::Error),
        Stream::Out | Stream::Transcript => (brief::Stream::Out, LineKind::Plain),
    };
    Activity { text, stream, kind }
}

/// The message of a task's commit: its title, and what proved it.
fn commit_message(task: &TaskId, title: &str, evidence: Option<&Evidence>) -> String {
    let proven = evidence.into_iter().flat_map(|evidence| &evidence.checks).filter(|check| check.passed);
    let trailers: Vec<String> =
        proven.map(|check| format!("Rekindle-Check: {}", text::one_line(&check.command, TRAILER_BYTES))).collect();
    let task_line = format!("Rekindle-Task: {task}");
    let trailers = std::iter::once(task_line).chain(trailers).collect::<Vec<_>>().join("\n");
    format!("{task}: {}\n\n{trailers}", text::one_line(title, SUBJECT_BYTES))
}
