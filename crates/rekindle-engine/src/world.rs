//! What the driver asks of everything outside: processes, files, time. The real implementation is `world::real`, the
//! simulator has its own; the driver cannot tell them apart.

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
    /// The `[agents.NAME]` entry that runs it.
    pub cli: String,
    pub epoch: Epoch,
    pub tasks: Vec<TaskId>,
    /// The number of this attempt at the first task.
    pub number: u32,
    pub resume: Option<String>,
    /// Checks of its tasks that are run before it starts, to know later what its work changed.
    pub baselines: Vec<CheckOrder>,
    /// What its prompt says; the world adds information from disk.
    pub facts: Facts,
    /// Its own workspace, if it has one.
    pub workspace: Option<String>,
    /// Whether that workspace is set up first.
    pub set_up: bool,
    /// The artifacts declared by all tasks that are worked on there.
    pub declared: Vec<String>,
}

/// What an agent is told again after a compaction.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What it says; the world adds information from disk.
    pub facts: Facts,
    /// The agent's own workspace, if it has one.
    pub workspace: Option<String>,
}

#[derive(Clone, Debug)]
pub struct CheckOrder {
    pub task: TaskId,
    pub epoch: Epoch,
    /// Shell commands that must exit with 0.
    pub commands: Vec<String>,
    pub artifacts: Vec<String>,
    /// The environments to run the commands in; if empty, they run once, as they are.
    pub environments: Vec<String>,
    /// The plan's health commands, which are run once after the others.
    pub health: Vec<String>,
    /// The workspace that the work was done in, if it was a separate one.
    pub workspace: Option<String>,
    /// Whether it is set up first, where that was not done.
    pub set_up: bool,
}

/// Accepted work to merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOrder {
    pub task: TaskId,
    pub epoch: Epoch,
    /// The workspace that the work was done in.
    pub workspace: String,
    pub message: String,
    /// The newest known commit of the run's branch.
    pub known: Option<String>,
    /// The artifacts declared by all tasks that are worked on there: they are merged although git ignores them.
    pub declared: Vec<String>,
}

/// Says that an attempt no longer uses its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveOrder {
    pub attempt: AttemptId,
    pub task: TaskId,
    /// Its own workspace, if it had one.
    pub workspace: Option<String>,
    /// Whether the workspace is no longer needed.
    pub tidy: bool,
    /// The artifacts declared by all tasks that are worked on there: they are kept although git ignores them.
    pub declared: Vec<String>,
}

/// Whether the machine had the resources for an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The order is under way, or was before: its result arrives as an observation. That may be a refusal, if nothing was
    /// started. Something that may have been started is never reported as refused: its lock and its identity are checked
    /// until its state is known.
    Yes,
    /// The machine lacked the resources for it: nothing was started.
    Refused(Refusal),
}

/// The outside. Every method may be called twice for the same thing.
pub trait World {
    fn now(&mut self) -> Time;
    /// What the machine's other clocks say; `None` where there is only the one.
    fn clocks(&mut self) -> Option<ClockSeen> {
        None
    }
    /// What the calendar says in the person's time zone; `None` if there is none.
    fn calendar(&mut self) -> Option<Calendar> {
        None
    }
    /// Runs the checks in its order, then starts an attempt's process; the results of the checks and of the start arrive as
    /// observations. If called twice, it is started once.
    fn launch(&mut self, order: LaunchOrder) -> Admission;
    /// Stops an attempt's whole process tree; its end arrives as an observation. A launch in progress is waited for.
    fn stop(&mut self, attempt: AttemptId, at_once: bool);
    /// Runs the checks of a claim; their results arrive as an observation.
    fn run_checks(&mut self, order: CheckOrder) -> Admission;
    /// How many bytes of an attempt's prompt are rekindle's own.
    fn own_bytes(&mut self, _attempt: AttemptId, facts: &Facts, resumed: bool) -> u64 {
        brief::own_bytes(facts, resumed)
    }
    /// Keeps the output of a check outside the state; returns the name it is kept under, or `None` if it cannot be kept.
    fn keep_output(&mut self, _output: &str) -> Option<String> {
        None
    }
    /// Reads a spool from an offset into `into`, at most `limit` bytes; leaves it empty when there is nothing more to read.
    /// Fails when the spool cannot be read. That does not mean that it has ended: it is read again later.
    fn read_spool(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()>;
    /// A reader for one attempt of an `[agents.NAME]` entry; `None` if its output is not understood.
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
    /// The state of a session's transcript after its attempt has ended.
    fn transcript_state(&mut self, _attempt: AttemptId, _cli: &str, _session: &str) -> Transcript {
        Transcript::Unknown
    }
    /// Returns an answerer that replies with a notice, once it may be sent. The files on disk are read then, not while the
    /// driver waits.
    fn noticing(&mut self, notice: Notice, reply: Answerer) -> Answerer {
        Box::new(move |_| reply(Response::Context { text: brief::reinject(&notice.facts) }))
    }
    /// What the conversation of an attempt that has ended will hold when its session is resumed.
    fn history(&mut self, _attempt: AttemptId, _cli: &str, _session: &str, _ledger: &Ledger) -> History {
        History::Unknown
    }
    /// Sends a message to a running agent. Each number is delivered once.
    fn tell(&mut self, _attempt: AttemptId, _cli: &str, _number: u32, _text: &str) {}
    /// Watches the program in which a person works on a task; its end arrives as an observation, with what changed. If it
    /// has already ended, that is reported at once.
    fn watch_person(&mut self, _task: &TaskId, _by: &PersonProcess, _place: WorkedOn) {}
    /// Lets an agent that waits for messages exit.
    fn close_input(&mut self, _attempt: AttemptId) {}
    /// What is left of attempts, according to their bundles, in the order of `attempts`.
    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found>;
    /// Reports that were left in an attempt's bundle, in order. Fails when the machine lacks the resources to read them.
    /// That does not mean that there are none: ask again.
    fn kept_reports(&mut self, attempt: AttemptId) -> std::io::Result<Vec<KeptReport>>;
    /// The reports that `kept_reports` last gave for an attempt are durable now.
    fn drop_kept_reports(&mut self, attempt: AttemptId);
    /// The `paths` that are not on disk; for work that was merged as `merged`, those that the run's branch no longer has.
    fn missing(&mut self, paths: &[String], merged: Option<&str>) -> Vec<String>;
    /// An attempt no longer uses its workspace: the files it left there are kept, and the workspace is removed if it is no
    /// longer needed.
    fn leave(&mut self, _order: LeaveOrder) {}
    /// Merges accepted work into the run's branch; the result arrives as an observation. If called twice, it is merged once.
    fn merge(&mut self, order: MergeOrder);
    /// Runs the plan's health commands; their results arrive as an observation.
    fn check_health(&mut self, commands: &[String]) -> Admission;
    /// Runs checks once in a fresh worktree; their results arrive as an observation.
    fn preflight(&mut self, tries: Vec<TryCheck>) -> Admission;
    /// Asks the user's command how much of the allowance is left; the answer, or that there is none, arrives as an
    /// observation.
    fn ask_usage(&mut self);
    fn alert(&mut self, alert: &Alert);
    /// All questions that the run has for a person now: phones are asked, and replies arrive as orders.
    fn ask(&mut self, _asking: Asking) {}
    /// Whether there is a phone to ask.
    fn has_phones(&self) -> bool {
        false
    }
    /// Bytes that an attempt has written so far, to its session's transcript too.
    fn written(&mut self, attempt: AttemptId) -> u64;
    /// What the processes of an attempt have used so far; `None` if there are none. Fails when that cannot be determined.
    /// That does not mean that they have done nothing: ask again.
    fn activity(&mut self, attempt: AttemptId) -> std::io::Result<Option<Activity>>;
    /// How long the connections of an attempt's processes have been quiet; `None` if they have none.
    fn connections_quiet_ms(&mut self, _attempt: AttemptId) -> Option<u64> {
        None
    }
    /// Whether agents are polled because the system has no watch left for them.
    fn polls(&mut self) -> bool {
        false
    }
    /// The run is complete: its remaining workspaces are removed, with their branches. Their content is kept first.
    fn tidy(&mut self) {}
    /// Waits for background work that must not be interrupted.
    fn finish(&mut self) {}
    /// Starts watching an attempt.
    fn watch(&mut self, attempt: AttemptId);
    /// An attempt is over; nothing more will be asked about it.
    fn forget(&mut self, attempt: AttemptId);
}
