//! What the driver asks of everything outside: processes, files, time. The real one is `world::real`, the simulator has
//! its own; the driver cannot tell them apart.

pub mod kept;
mod memory;
mod message;
pub mod real;

use rekindle_core::activity::{History, Ledger, Transcript};
use rekindle_core::brief::{self, Facts};
use rekindle_core::budget::Calendar;
use rekindle_core::event::ClockSeen;
use rekindle_core::ids::{AgentName, AttemptId, Epoch, TaskId};
use rekindle_core::input::Found;
use rekindle_core::preflight::TryCheck;
use rekindle_core::refusal::Refusal;
use rekindle_core::role::Role;
use rekindle_core::steering::PersonProcess;
use rekindle_core::time::Time;

use rekindle_shim::tree::Activity;

use crate::agents::Reader;
use crate::alert::Alert;
use crate::alert::phone::Asking;
use crate::control::Answerer;
use crate::control::wire::Response;
use crate::person::WorkedOn;
use crate::store::Stream;

pub use kept::KeptReport;
pub use memory::MemoryWorld;
pub use message::Message;

/// Everything a process needs to be started.
#[derive(Clone, Debug)]
pub struct LaunchOrder {
    pub attempt: AttemptId,
    pub agent: AgentName,
    pub role: Role,
    /// Which `[agents.NAME]` runs it.
    pub cli: String,
    pub epoch: Epoch,
    pub tasks: Vec<TaskId>,
    /// Which try at the first task.
    pub number: u32,
    pub resume: Option<String>,
    /// Checks of its tasks that are run before it begins, to know later what its work changed.
    pub baselines: Vec<CheckOrder>,
    /// What its prompt says; the world adds what is on disk.
    pub facts: Facts,
    /// The workspace of its own that it works in.
    pub workspace: Option<String>,
    /// Whether that is set up first.
    pub set_up: bool,
    /// What is promised by all tasks that are worked on there.
    pub declared: Vec<String>,
}

/// What an agent has to be told again after its context was compacted.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What it says; the world adds what is on disk.
    pub facts: Facts,
    /// The workspace of its own that the agent works in.
    pub workspace: Option<String>,
}

#[derive(Clone, Debug)]
pub struct CheckOrder {
    pub task: TaskId,
    pub epoch: Epoch,
    /// Shell commands that must exit with 0.
    pub commands: Vec<String>,
    pub artifacts: Vec<String>,
    /// Where they are run; none means once, as they are.
    pub environments: Vec<String>,
    /// The plan's health commands, which are run once after them.
    pub health: Vec<String>,
    /// The workspace of its own that the work was done in.
    pub workspace: Option<String>,
    /// Whether it is set up first, where that was not done.
    pub set_up: bool,
}

/// Accepted work that is to be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOrder {
    pub task: TaskId,
    pub epoch: Epoch,
    /// The workspace that it was done in.
    pub workspace: String,
    pub message: String,
    /// The newest commit of the run's branch that is known.
    pub known: Option<String>,
    /// What is promised by all tasks that are worked on there: it is merged although git ignores it.
    pub declared: Vec<String>,
}

/// An attempt is over for its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveOrder {
    pub attempt: AttemptId,
    pub task: TaskId,
    /// The workspace of its own that it worked in.
    pub workspace: Option<String>,
    /// Whether nobody needs the workspace any more.
    pub tidy: bool,
    /// What is promised by all tasks that are worked on there: it is kept although git ignores it.
    pub declared: Vec<String>,
}

/// Whether the machine had room for an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is under way, or was before: what comes of it arrives as an observation. That may be a refusal, when nothing was started.
    /// What may have been begun is never told as refused: it is looked into by its lock and its identity until it is known.
    Yes,
    /// The machine had no room for it: nothing was started.
    Refused(Refusal),
}

/// The outside. Every method may be called twice for the same thing.
pub trait World {
    fn now(&mut self) -> Time;
    /// What the machine's clocks say beside that; nothing where there is only the one.
    fn clocks(&mut self) -> Option<ClockSeen> {
        None
    }
    /// What the calendar says in the person's zone; nothing where there is none.
    fn calendar(&mut self) -> Option<Calendar> {
        None
    }
    /// Runs the checks in its order, then starts an attempt's process; what they said and whether that worked arrives as observations. Asked for twice, it is started once.
    fn launch(&mut self, order: LaunchOrder) -> Admission;
    /// Stops an attempt's whole tree; its end arrives as an observation. A launch that is under way is waited for.
    fn stop(&mut self, attempt: AttemptId, at_once: bool);
    /// Runs the checks of a claim; what they saw arrives as an observation.
    fn run_checks(&mut self, order: CheckOrder) -> Admission;
    /// How much of the prompt of an attempt is rekindle's own.
    fn own_bytes(&mut self, _attempt: AttemptId, facts: &Facts, resumed: bool) -> u64 {
        brief::own_bytes(facts, resumed)
    }
    /// Keeps what a check printed outside the state; the name it is kept under, nothing where it cannot be kept.
    fn keep_output(&mut self, _output: &str) -> Option<String> {
        None
    }
    /// Reads a spool from an offset into `into`, at most `limit` bytes; nothing more to read leaves it empty. Fails
    /// when the spool cannot be read. That is not its end: it is read again later.
    fn read_spool(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()>;
    /// A reader for one attempt of an `[agents.NAME]`; nothing where its words are not understood.
    fn reader(&mut self, _cli: &str) -> Option<Box<dyn Reader>> {
        None
    }
    /// Reads what an attempt has added to the transcript of its session, as `read_spool`.
    fn read_transcript(
        &mut self,
        _attempt: AttemptId,
        _cli: &str,
        _session: &str,
        _offset: u64,
        _limit: usize,
        _into: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        Ok(())
    }
    /// How the transcript of a session is found after its attempt has ended.
    fn transcript_state(&mut self, _attempt: AttemptId, _cli: &str, _session: &str) -> Transcript {
        Transcript::Unknown
    }
    /// Who answers with a notice, once it may go out. What is on disk is looked up then, not while the driver waits.
    fn noticing(&mut self, notice: Notice, reply: Answerer) -> Answerer {
        Box::new(move |_| reply(Response::Context { text: brief::reinject(&notice.facts) }))
    }
    /// What the conversation of an attempt that has ended will hold when its session is resumed.
    fn history(&mut self, _attempt: AttemptId, _cli: &str, _session: &str, _ledger: &Ledger) -> History {
        History::Unknown
    }
    /// Gives a running agent a message. One number is delivered once.
    fn tell(&mut self, _attempt: AttemptId, _cli: &str, _number: u32, _text: &str) {}
    /// Watches the program in which a person works on a task; its end arrives as an observation, with what changed. One that has
    /// ended already is told at once.
    fn watch_person(&mut self, _task: &TaskId, _by: &PersonProcess, _place: WorkedOn) {}
    /// Lets an agent that waits for messages leave.
    fn close_input(&mut self, _attempt: AttemptId) {}
    /// What is left of attempts, by their bundles, in the order of the question.
    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found>;
    /// Reports that were left in an attempt's bundle, in order. Fails when the machine has no room to read them. That
    /// does not mean that there are none: ask again.
    fn kept_reports(&mut self, attempt: AttemptId) -> std::io::Result<Vec<KeptReport>>;
    /// The reports that `kept_reports` last gave for an attempt are durable now.
    fn drop_kept_reports(&mut self, attempt: AttemptId);
    /// Those of `paths` that are not on disk; of work that was merged as `merged`, those that the run's branch has no longer.
    fn missing(&mut self, paths: &[String], merged: Option<&str>) -> Vec<String>;
    /// An attempt is over for its workspace: what it left there is kept, and the workspace goes where nobody needs it any more.
    fn leave(&mut self, _order: LeaveOrder) {}
    /// Merges accepted work into the run's branch; how it went arrives as an observation. Asked for twice, it is merged once.
    fn merge(&mut self, order: MergeOrder);
    /// Runs the plan's health commands; what they said arrives as an observation.
    fn check_health(&mut self, commands: &[String]) -> Admission;
    /// Tries checks once in a fresh worktree; what they said arrives as an observation.
    fn preflight(&mut self, tries: Vec<TryCheck>) -> Admission;
    /// Asks the user's command what is left of the allowance; the answer, or that there is none, arrives as an observation.
    fn ask_usage(&mut self);
    fn alert(&mut self, alert: &Alert);
    /// What the run wants to know from a person now, all of it: phones are asked, and replies arrive as orders.
    fn ask(&mut self, _asking: Asking) {}
    /// Whether there is a phone to ask.
    fn has_phones(&self) -> bool {
        false
    }
    /// Bytes that an attempt has written so far, to its session's transcript too.
    fn written(&mut self, attempt: AttemptId) -> u64;
    /// What the processes of an attempt have used so far; nothing where there are none. Fails when that cannot be told.
    /// It does not mean that they have done nothing: ask again.
    fn activity(&mut self, attempt: AttemptId) -> std::io::Result<Option<Activity>>;
    /// How long the connections of an attempt's processes have been quiet; nothing where they have none.
    fn connections_quiet_ms(&mut self, _attempt: AttemptId) -> Option<u64> {
        None
    }
    /// Whether agents are looked at in turn because the system has no watch left for them.
    fn polls(&mut self) -> bool {
        false
    }
    /// The run is complete: the workspaces that are left of it go, with their branches. What is in them is kept first.
    fn tidy(&mut self) {}
    /// Waits until what was started beside the driver and must not be cut off has ended.
    fn finish(&mut self) {}
    /// An attempt is being watched from now on.
    fn watch(&mut self, attempt: AttemptId);
    /// An attempt is over; nothing more will be asked about it.
    fn forget(&mut self, attempt: AttemptId);
}
