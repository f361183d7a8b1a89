//! The commands, one file each with its arguments, its help and its function.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod chaos;
pub(crate) mod checkpoint;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod guard;
pub(crate) mod heartbeat;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod land;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod note;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod questions;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod salvage;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod tell;
pub(crate) mod top;
pub(crate) mod trial;
pub(crate) mod verdict;
pub(crate) mod why;

use rekindle_core::input::Order;

use crate::client::orders::{self, Taken};
use crate::client::{Agent, agent};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::project::Project;
use crate::ui::Ui;
use crate::view::{REPAIR, View};

/// Where a command was called and where it prints.
pub(crate) struct Context {
    pub ui: Ui,
    pub project: Project,
}

impl Context {
    /// The agent that called, if an agent did.
    fn agent(&self) -> Option<Agent> {
        Agent::from_environment(&self.project)
    }

    /// The project's state for reading. Warns when the database does not match its log.
    fn view(&self) -> Result<View> {
        let view = View::open(&self.project)?;
        if let Some(lag) = view.lag()? {
            self.ui.warn(&lag.to_string());
            self.ui.hint(REPAIR);
        }
        Ok(view)
    }

    /// Gives an order and prints its outcome.
    fn order(&self, order: &Order, done: &str) -> Result<Exit> {
        match orders::give(&self.project, order)? {
            Taken::Now => self.ui.say(done),
            Taken::Placed(_) => self.ui.say("done in ten seconds"),
            Taken::Already => self.ui.say("already done"),
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
