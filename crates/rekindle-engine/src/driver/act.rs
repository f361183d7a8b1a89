//! Carrying effects out. Each is safe to perform twice, because a restart performs whatever is outstanding again.

use rekindle_core::effect::Effect;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::Input;

use super::Driver;
use crate::world::{CheckOrder, LaunchOrder, World};

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
            Effect::AlertPerson { text, choices } => self.world.alert(&text, &choices),
        }
    }

    fn launch(&mut self, attempt: AttemptId) {
        let Some(found) = self.state.attempts.get(&attempt) else { return };
        let Some(first) = found.tasks.first() else { return };
        let number = self.state.tasks.get(first).map_or(1, |task| task.attempts.max(1));
        let order = LaunchOrder {
            attempt,
            agent: found.agent.clone(),
            role: found.role,
            cli: found.cli.clone(),
            epoch: found.epoch,
            tasks: found.tasks.clone(),
            number,
            facts: self.facts_for(attempt),
        };
        self.world.launch(order);
    }

    fn run_checks(&mut self, task: &TaskId, epoch: Epoch) {
        let Some(planned) = self.state.plan_task(task) else { return };
        let order = CheckOrder {
            task: task.clone(),
            epoch,
            commands: planned.accept.clone(),
            artifacts: planned.artifacts.clone(),
        };
        self.world.run_checks(order);
    }
}
