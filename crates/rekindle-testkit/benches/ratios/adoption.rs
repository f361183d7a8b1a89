//! A coordinator is killed and started again: how long until every living agent is adopted, durably. The end is read from
//! the shadow log, which gets its copy right after the commit: looking at a plain file takes no lock of the database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::bed::{PATIENCE, Project};
use crate::floor::RawDatabase;
use crate::measure::{Options, Ratio, Row, Samples, await_some, human, seconds};

/// Between two looks.
const LOOK: Duration = Duration::from_micros(500);

const ROUNDS: usize = 9;

/// What the log says when all are settled.
const RECOVERED: &str = "coordinator_recovered";

/// How far the files of a directory were read.
struct Tail {
    dir: PathBuf,
    lengths: BTreeMap<PathBuf, usize>,
}

impl Tail {
    fn at_end(dir: PathBuf) -> Tail {
        let mut tail = Tail { dir, lengths: BTreeMap::new() };
        tail.grown();
        tail
    }

    /// What was added since the last look.
    fn grown(&mut self) -> String {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return String::new() };
        let mut added = String::new();
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
            let seen = self.lengths.entry(path.clone()).or_insert(0);
            let length = path.metadata().map_or(0, |meta| usize::try_from(meta.len()).unwrap_or(0));
            if length > *seen {
                let bytes = std::fs::read(&path).unwrap_or_default();
                added.push_str(&String::from_utf8_lossy(bytes.get(*seen..).unwrap_or_default()));
                *seen = bytes.len();
            }
        }
        added
    }
}

/// The least: a process start, the rows read, every agent's process opened.
fn limit(project: &Project, agents: &[(u32, u32)]) -> f64 {
    seconds(|| {
        project.rekindle(&["--version"]).status().expect("a version");
        RawDatabase::read_state(&database(project.path()));
        for (agent, _) in agents {
            let pid = Pid::from_raw(agent.cast_signed()).expect("a process id");
            pidfd_open(pid, PidfdFlags::empty()).expect("the agent lives");
        }
    })
}

fn database(project: &Path) -> PathBuf {
    rekindle_engine::state_dir::StateDir::open(&project.join(".rekindle")).expect("a state directory").database()
}

/// Kill, start, adopt.
pub fn of_living_agents(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for agents in [64, 100] {
        let mut project = Project::new(agents, &["--lines-per-s", "1"]);
        project.start();
        project.await_events("agent_started", agents);
        let living = project.processes();
        assert_eq!(living.len(), agents, "all agents run");
        let [mut least, mut took] = [const { Samples { rounds: Vec::new() } }; 2];
        for _ in 0..options.rounds(ROUNDS) {
            project.kill_coordinator();
            least.push(limit(&project, &living));
            let mut tail = Tail::at_end(project.path().join(".rekindle").join("shadow"));
            let mut text = String::new();
            let started = Instant::now();
            project.start();
            await_some(RECOVERED, PATIENCE, LOOK, || {
                text.push_str(&tail.grown());
                text.contains(RECOVERED).then_some(())
            });
            took.push(started.elapsed().as_secs_f64());
            let adopted = text.matches("agent_adopted").count();
            assert_eq!(adopted, agents, "every agent is adopted, none is lost");
            project.await_events(RECOVERED, 1);
        }
        assert_eq!(project.processes(), living, "no agent was replaced or doubled");
        let ratio = Ratio::of(&took, &least);
        let area = format!("coordinator SIGKILL → {agents} agents adopted");
        let detail =
            format!("{} (absolute; {} the limit of {})", human(took.median()), ratio.times(), human(least.median()));
        let measured = format!("{}, {}", human(took.median()), ratio.times());
        rows.push(Row::judged(&area, "≤ 100 ms, none lost or doubled", measured, took.median() <= 0.1, detail));
    }
    rows
}
