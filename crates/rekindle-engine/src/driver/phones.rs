//! What phones are asked: all open questions, again whenever they change. So nothing depends on a message that was sent
//! once, and a new coordinator asks what the last one did not get to.

use rekindle_core::state::State;

use super::Driver;
use crate::alert::phone::{Asking, OpenQuestion};
use crate::world::World;

/// Questions that a phone is asked at once, oldest first: nobody answers more on the way.
const OPEN_MAX: usize = 32;

/// Unanswered questions, oldest first.
pub fn open_questions(state: &State) -> Vec<OpenQuestion> {
    let open = state.questions.iter().filter(|(_, question)| question.answer.is_none());
    let open = open.take(OPEN_MAX).map(|(id, question)| OpenQuestion {
        id: *id,
        attempt: question.attempt,
        asked_at: question.asked_at,
        task: question.task.to_string(),
        agent: question.agent.to_string(),
        text: question.text.clone(),
        options: question.options.clone(),
        context: question.context.clone(),
    });
    open.collect()
}

impl<W: World> Driver<W> {
    pub(super) fn ask_phones(&mut self) {
        if !self.world.has_phones() {
            return;
        }
        let open = open_questions(&self.state);
        let plan = self.state.run.as_ref().map(|run| run.plan.name.clone()).unwrap_or_default();
        self.world.ask(Asking { plan, open });
    }
}
