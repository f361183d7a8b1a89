//! What happened to a budget, as recorded in the details of its events. The task of a task's budget is in the envelope.

use serde::{Deserialize, Serialize};

use crate::budget::{Allowance, Choice, Level, Scope, Spent, Standing};
use crate::ids::{QuestionId, TaskId};

/// How much of a budget is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSeen {
    pub scope: Scope,
    pub spent: Spent,
    /// The current limit, including what a person raised it by.
    pub limit: Allowance,
    /// This event alerts a person; otherwise a question follows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alerts: bool,
}

impl BudgetSeen {
    /// The budget's state, in words.
    pub fn words(&self, task: Option<&TaskId>) -> String {
        let standing = Standing::of(&self.spent, &self.limit);
        let whose = match (self.scope, task) {
            (Scope::Task, Some(task)) => format!("the budget of task {task}"),
            (scope, _) => format!("the budget of the {}", scope.name()),
        };
        match standing.level {
            Level::Reached => {
                format!("{whose} is used up: {}; running agents finish, nothing new is started", standing.at_level())
            }
            Level::Near | Level::Fine => format!("80 % of {whose} are used: {}", standing.at_level()),
        }
    }
}

/// A person is asked how to continue with a used-up budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetAsked {
    pub scope: Scope,
    pub question: QuestionId,
}

/// How to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetAnswered {
    pub scope: Scope,
    pub choice: Choice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
}
