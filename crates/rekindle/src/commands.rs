//! The commands, one file each with its arguments, its help and its function.

pub mod answer;
pub mod ask;
pub mod audit;
pub mod chaos;
pub mod checkpoint;
pub mod completions;
pub mod context;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod guard;
pub mod heartbeat;
pub mod hook;
pub mod init;
pub mod logs;
pub mod man;
pub mod mcp;
pub mod note;
pub mod pause;
pub mod plan;
pub mod questions;
pub mod recover;
pub mod report;
pub mod resume;
pub mod review;
pub mod run;
pub mod salvage;
pub mod serve;
pub mod status;
pub mod task;
pub mod top;
pub mod verdict;
pub mod why;

use rekindle_core::input::Order;

use crate::client::orders::{self, Taken};
use crate::client::{Agent, agent};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::project::Project;
use crate::ui::Ui;
use crate::view::{REPAIR, View};

/// Where a command was called and where it prints.
pub struct Context {
    /// The output.
    pub ui: Ui,
    pub project: Project,
}

impl Context {
    /// The agent that called, if an agent did.
    fn agent(&self) -> Option<Agent> {
        Agent::from_environment(&self.project)
    }

    /// The project's state for reading. Says so when the database is not what its log says.
    fn view(&self) -> Result<View> {
        let view = View::open(&self.project)?;
        if let Some(lag) = view.lag()? {
            self.ui.warn(&lag.to_string());
            self.ui.hint(REPAIR);
        }
        Ok(view)
    }

    /// Gives an order and says what became of it.
    fn order(&self, order: &Order, done: &str) -> Result<Exit> {
        match orders::give(&self.project, order)? {
            Taken::Now => self.ui.say(done),
            Taken::Already => self.ui.say("it was so already"),
            Taken::NobodyThere => self.ui.say("no coordinator is running"),
        }
        Ok(Exit::Success)
    }

    /// Says that a report is kept until a coordinator is there.
    fn say_kept(&self, outcome: &agent::Outcome) {
        if let agent::Outcome::Kept(path) = outcome {
            let message = "no coordinator is running: the report is kept and counts when one starts";
            self.ui.say(&format!("{message} ({})", path.display()));
        }
    }
}
