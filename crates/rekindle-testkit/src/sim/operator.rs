//! The simulated operator: answers questions, and now and then gives an order, through the control socket or while no
//! coordinator runs.

use rekindle_core::budget::Choice;
use rekindle_core::ids::TaskId;
use rekindle_core::input::Order;
use rekindle_engine::control::wire::Request;

use super::calls::Caller;
use super::plant::Plant;
use super::story::SECOND;
use super::world::{Happening, Sim};

impl Sim {
    /// The operator checks the run, and again later.
    pub fn operator_looks(&mut self) {
        let next = if self.quiet { 5 * SECOND } else { self.rng.between(2 * SECOND, 30 * SECOND) };
        self.queue.after_ms(next, Happening::OperatorLooks);
        if !self.coordinator.up {
            return;
        }
        for order in self.answers() {
            self.order_by_call(order);
        }
        if !self.quiet && self.rng.chance(15) {
            let order = self.draw_order();
            if let Some(order) = order {
                self.order_by_call(order);
            }
        }
    }

    /// Answers to open questions, not always to all of them.
    fn answers(&mut self) -> Vec<Order> {
        if self.setting.mute {
            return Vec::new();
        }
        let open = self.checkers.open_questions();
        let (quiet, rng) = (self.quiet, &mut self.rng);
        let mut orders = Vec::new();
        for (id, task, options) in open {
            if !quiet && !rng.chance(60) {
                continue;
            }
            if let Some(scope) = self.checkers.budget_of(id) {
                let choices = [Choice::Raise, Choice::GoOn, Choice::HandBack, Choice::Stop];
                // Stopping a run means a pause, which is ordered separately.
                let choice = match (quiet, &scope) {
                    (true, _) => Choice::Raise,
                    (false, None) => choices[rng.index(3)],
                    (false, Some(_)) => choices[rng.index(4)],
                };
                if let (Some(task), Choice::Stop) = (scope, choice) {
                    self.checkers.truth.operator(&Order::Stop { task }, &self.checkers.replayed);
                }
                orders.push(Order::Answer { id, text: choice.word().into() });
                continue;
            }
            let done = task.filter(|_| rng.chance(50));
            let text = match (&done, options) {
                (Some(_), _) => "done".to_owned(),
                // The last answer stops the run: it is chosen now and then.
                (None, 3..) => ["1", "2", "yes", "3"][rng.index(if quiet { 2 } else { 4 })].to_owned(),
                _ => "yes".to_owned(),
            };
            self.checkers.truth.confirmed.extend(done);
            orders.push(Order::Answer { id, text });
        }
        if quiet {
            orders.extend(self.checkers.handed_back().into_iter().map(|task| Order::Retry { task }));
        }
        orders
    }

    /// The operator's orders while no coordinator runs.
    pub fn offline_orders(&mut self) -> Vec<Order> {
        let mut orders = self.answers();
        if !self.quiet && self.rng.chance(20) {
            let drawn = self.draw_order();
            orders.extend(drawn);
        }
        for order in &orders {
            self.count_steering(order);
            self.checkers.truth.operator(order, &self.checkers.replayed);
        }
        orders.into_iter().map(|order| self.order_for_driver(order)).collect()
    }

    /// A failed task to open again after the end of a run, or a change of its plan.
    pub fn second_thoughts(&mut self) -> Option<Order> {
        let failed = self.checkers.failed_tasks();
        let wanted = !self.quiet && self.rng.chance(30);
        let order = self.rng.pick(&failed).filter(|_| wanted).map(|task| Order::Retry { task: task.clone() });
        let order = order.or_else(|| if !self.quiet && self.rng.chance(20) { self.draw_change() } else { None });
        if let Some(order) = &order {
            self.count_steering(order);
            self.checkers.truth.operator(order, &self.checkers.replayed);
        }
        order.map(|order| self.order_for_driver(order))
    }

    fn draw_order(&mut self) -> Option<Order> {
        let tasks: Vec<TaskId> = self.checkers.all_tasks();
        let task = self.rng.pick(&tasks)?.clone();
        let agents = self.checkers.agent_names();
        let order = match self.rng.weighted(&[10, 4, 12, 20, 20, 8, 6, 10, 2, 6, 6, 40]) {
            0 => Order::Pause(rekindle_core::event::PauseReason::Operator),
            1 => Order::Pause(rekindle_core::event::PauseReason::Stop),
            2 => Order::Skip { task, reason: "not needed".to_owned() },
            3 => Order::Retry { task },
            4 => Order::Recover { agent: self.rng.pick(&agents)?.clone() },
            5 => Order::Complete { task, result: None },
            6 => Order::Note { text: "the operator was here".to_owned() },
            7 => Order::Split { task, subtasks: vec!["one half".to_owned(), "the other".to_owned()] },
            8 => Order::ForgetFocus,
            9 => Order::Stop { task },
            10 => Order::Fail { task, reason: "given up".to_owned() },
            _ => self.draw_change()?,
        };
        Some(order)
    }

    pub(super) fn order_by_call(&mut self, order: Order) {
        self.say(format_args!("operator: {order:?}"));
        self.count_steering(&order);
        self.checkers.truth.operator(&order, &self.checkers.replayed);
        let doubted = match &order {
            Order::Complete { task, .. } if self.plant == Some(Plant::DoubtWord) => Some(task.clone()),
            _ => None,
        };
        let order = self.order_for_driver(order);
        let pauses = matches!(order, Order::Pause(_));
        if pauses && self.plant == Some(Plant::DropPause) {
            self.checkers.truth.paused = true;
            return;
        }
        let caller = if pauses { Caller::Pauses } else { Caller::Entitled };
        self.call(None, Vec::new(), Request::Order(order), caller);
        if let Some(task) = doubted {
            // No person said so.
            self.call(None, Vec::new(), Request::Order(Order::Retry { task }), Caller::Entitled);
        }
    }
}
