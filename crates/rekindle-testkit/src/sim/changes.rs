//! What the simulated operator changes in the plan while its run goes on: a changed file, a task added or edited by hand. Every
//! file is written and read as a person's would be.

use rekindle_core::ids::{AgentName, TaskId};
use rekindle_core::input::{NewTask, Order, TaskEdit};
use rekindle_core::plan::{self, Plan, PlanTask};

use super::plant::Plant;
use super::rng::Rng;
use super::world::Sim;

/// The name of a check that work made for other checks does not pass.
pub const STRICT: &str = "strict check of";

/// Limit on changes to one file.
const CHANGES_MAX: u64 = 3;

impl Sim {
    /// Draws a change of the plan.
    pub fn draw_change(&mut self) -> Option<Order> {
        let state = &self.checkers.replayed;
        let present = state.present_plan()?;
        let tasks: Vec<TaskId> = state.tasks.keys().cloned().collect();
        let number = self.checkers.truth.changes.next_number();
        match self.rng.weighted(&[40, 25, 35]) {
            0 => draw_file(&mut self.rng, present, number).map(|plan| Order::Reload { plan: Box::new(plan) }),
            1 => Some(Order::Add(Box::new(draw_new(&mut self.rng, &tasks, number)))),
            _ => {
                let task = self.rng.pick(&tasks)?.clone();
                let edit = draw_edit(&mut self.rng, &tasks, &task, number);
                Some(Order::Edit { task, edit: Box::new(edit) })
            }
        }
    }

    /// Counts an order by which a person steers, whether it is accepted or refused.
    pub fn count_steering(&mut self, order: &Order) {
        self.count(match order {
            Order::Reload { .. } => "edit: plan reload",
            Order::Add(_) => "edit: task add",
            Order::Edit { .. } => "edit: task edit",
            Order::Split { .. } => "edit: task split",
            Order::Tell { .. } => "edit: tell",
            Order::Attach { .. } => "edit: attach",
            Order::Skip { .. } | Order::Complete { .. } | Order::Fail { .. } => "edit: operator's word",
            Order::WithUndo { .. } => "edit: order with undo",
            Order::Undo { .. } => "edit: undo",
            Order::FromPhone { .. } => "edit: from a phone",
            _ => return,
        });
    }

    /// The order as the coordinator is given it: the operator's, unless a bug is planted.
    pub fn order_for_driver(&mut self, order: Order) -> Order {
        match (self.plant, order) {
            (Some(Plant::StalePlan), Order::Reload { plan }) => {
                let tasks = plan.tasks.iter().map(|task| PlanTask { body: "Do what was.".to_owned(), ..task.clone() });
                Order::Reload { plan: Box::new(Plan { tasks: tasks.collect(), ..*plan }) }
            }
            (Some(Plant::OtherTask), Order::Add(new)) => {
                let id = TaskId::new(format!("{}-other", new.id)).unwrap_or_else(|_| new.id.clone());
                Order::Add(Box::new(NewTask { id, ..*new }))
            }
            (_, order) => order,
        }
    }
}

fn words(number: u64) -> String {
    format!("Do it in way {number}.")
}

fn checks(rng: &mut Rng, task: &TaskId, number: u64) -> Vec<String> {
    match rng.weighted(&[40, 40, 20]) {
        0 => vec![format!("check {task} in way {number}")],
        1 => vec![format!("{STRICT} {task}")],
        _ => Vec::new(),
    }
}

/// A file as a person would have it after some changes.
fn draw_file(rng: &mut Rng, mut plan: Plan, number: u64) -> Option<Plan> {
    for _ in 0..rng.between(1, CHANGES_MAX) {
        change(rng, &mut plan, number);
    }
    let written = plan::write(&plan, true).ok()?;
    plan::parse("story", written.text.as_bytes()).plan
}

fn change(rng: &mut Rng, plan: &mut Plan, number: u64) {
    let at = rng.index(plan.tasks.len().max(1));
    let Some(task) = plan.tasks.get_mut(at) else { return };
    match rng.weighted(&[25, 25, 10, 15, 10, 5, 5, 5]) {
        0 => task.body = words(number),
        1 => task.accept = checks(rng, &task.id, number),
        2 => task.artifacts = vec![format!("out/{number}.txt")],
        3 => {
            let gone = plan.tasks.remove(at).id;
            plan.tasks.iter_mut().for_each(|task| task.blocked_by.retain(|blocker| *blocker != gone));
        }
        4 => {
            let before: Vec<TaskId> = plan.tasks.iter().map(|task| task.id.clone()).collect();
            let wave = plan.tasks.iter().map(|task| task.wave).max().unwrap_or(1);
            let new = draw_new(rng, &before, number);
            plan.tasks.push(PlanTask {
                id: new.id,
                title: new.title,
                body: new.text,
                blocked_by: new.after,
                accept: new.accept,
                wave,
                ..plain(plan)
            });
        }
        5 => task.blocked_by.clear(),
        6 => task.agent = AgentName::new(format!("worker{}", rng.between(1, 3))).ok(),
        _ => task.timeout_ms = Some(rng.between(30, 300) * 1_000),
    }
}

/// A task of the plan with nothing but its shape.
fn plain(plan: &Plan) -> PlanTask {
    let line = plan.tasks.first().map_or(1, |task| task.line);
    PlanTask {
        id: TaskId::new("none").expect("a name"),
        title: String::new(),
        body: String::new(),
        agent: None,
        role: None,
        cli: None,
        blocked_by: Vec::new(),
        wave: 1,
        artifacts: Vec::new(),
        accept: Vec::new(),
        environments: Vec::new(),
        reading: Vec::new(),
        timeout_ms: None,
        attempts: None,
        priority: 0,
        done: false,
        line,
    }
}

fn draw_new(rng: &mut Rng, before: &[TaskId], number: u64) -> NewTask {
    let id = TaskId::new(format!("N{number}")).expect("a letter and digits are a name");
    let after = (0..rng.below(3)).filter_map(|_| rng.pick(before).cloned()).collect::<std::collections::BTreeSet<_>>();
    let accept = checks(rng, &id, number);
    NewTask {
        title: format!("more work {number}"),
        text: words(number),
        after: after.into_iter().collect(),
        accept,
        artifacts: if rng.chance(30) { vec![format!("out/{number}.txt")] } else { Vec::new() },
        agent: None,
        timeout_ms: None,
        id,
    }
}

fn draw_edit(rng: &mut Rng, tasks: &[TaskId], id: &TaskId, number: u64) -> TaskEdit {
    let mut edit = TaskEdit::default();
    match rng.weighted(&[30, 40, 10, 10, 10]) {
        0 => edit.text = Some(words(number)),
        1 => edit.accept = Some(checks(rng, id, number)),
        2 => edit.timeout_ms = Some(rng.between(30, 300) * 1_000),
        3 => edit.agent = AgentName::new(format!("worker{}", rng.between(1, 3))).ok(),
        _ => edit.after = Some(rng.pick(tasks).into_iter().filter(|other| *other != id).cloned().collect()),
    }
    edit
}
