//! An agent dies: how long until its replacement's `main` runs. Both ends are stamped on one clock, by the killer and by
//! the replacement itself. The limit is the shortest loop that does the same durably: kill, reap, one synced commit, spawn.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bed::{Project, agent_program, kill, monotonic_ns, scratch};
use crate::floor::RawDatabase;
use crate::measure::{Options, Ratio, Row, Samples, await_some, human, median, quantile};

/// Longest wait for one replacement.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks at the stamps: the time itself comes from the stamp.
const LOOK: Duration = Duration::from_millis(1);

/// What an agent is given before it is killed, so that its start is settled.
const SETTLED: Duration = Duration::from_millis(40);

/// Deaths of a round.
const DEATHS: usize = 5;

const ROUNDS: usize = 15;

/// Agents alive beside the one that dies, in the second part.
const FLEET: usize = 100;

/// The instants at which agents began, as they wrote them.
struct Stamps(PathBuf);

impl Stamps {
    fn all(&self) -> Vec<(i64, u32)> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let parse = |line: &str| {
            let (at, pid) = line.split_once(' ')?;
            Some((at.parse().ok()?, pid.parse().ok()?))
        };
        whole.lines().filter_map(parse).collect()
    }

    fn wait(&self, count: usize) -> (i64, u32) {
        await_some("an agent", PATIENCE, LOOK, || self.all().get(count - 1).copied())
    }
}

/// The least that a durable replacement takes.
struct Floor {
    raw: RawDatabase,
    stamps: Stamps,
    child: Child,
    deaths: usize,
}

impl Floor {
    fn new(dir: &Path) -> Floor {
        let stamps = Stamps(dir.join("floor-stamps"));
        let child = Floor::spawn(&stamps.0);
        stamps.wait(1);
        Floor { raw: RawDatabase::new(dir), stamps, child, deaths: 0 }
    }

    fn spawn(stamps: &Path) -> Child {
        let mut command = Command::new(agent_program());
        command.arg("--stamp").arg(stamps).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().expect("an agent")
    }

    fn death(&mut self) -> f64 {
        std::thread::sleep(SETTLED);
        let died = monotonic_ns();
        self.child.kill().expect("a kill");
        self.child.wait().expect("an end");
        self.raw.commit_one();
        self.child = Floor::spawn(&self.stamps.0);
        self.deaths += 1;
        (self.stamps.wait(self.deaths + 1).0 - died) as f64 / 1e9
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The product's fleet, of which the newest agent dies.
struct Fleet {
    // Before the project: its agents write there until it is dropped.
    stamps: Stamps,
    began: usize,
    _project: Project,
}

impl Fleet {
    fn new(dir: &Path, agents: usize) -> Fleet {
        let stamps = Stamps(dir.join(format!("stamps-{agents}")));
        let mut project = Project::new(agents, &["--stamp", &stamps.0.to_string_lossy()]);
        project.start();
        project.await_events("agent_started", agents);
        stamps.wait(agents);
        Fleet { stamps, began: agents, _project: project }
    }

    fn death(&mut self) -> f64 {
        std::thread::sleep(SETTLED);
        let (_, newest) = self.stamps.wait(self.began);
        let died = monotonic_ns();
        kill(newest);
        self.began += 1;
        (self.stamps.wait(self.began).0 - died) as f64 / 1e9
    }
}

/// A death and its replacement, alone and among a fleet.
pub fn replacement(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for agents in [1, FLEET] {
        let dir = scratch();
        let mut floor = Floor::new(dir.path());
        let mut fleet = Fleet::new(dir.path(), agents);
        let [mut limit, mut product] = [const { Samples { rounds: Vec::new() } }; 2];
        let mut each = Vec::new();
        for _ in 0..options.rounds(ROUNDS) {
            let floor: Vec<f64> = (0..DEATHS).map(|_| floor.death()).collect();
            let deaths: Vec<f64> = (0..DEATHS).map(|_| fleet.death()).collect();
            limit.push(median(&floor));
            product.push(median(&deaths));
            each.extend(deaths);
        }
        let ratio = Ratio::of(&product, &limit);
        let detail = format!("p50 {} against {}", human(median(&each)), human(limit.median()));
        let area = format!("agent death → replacement's main(), {agents} live");
        rows.push(Row::judged(&area, "p50 ≤ 3× kill + commit + spawn", ratio.times(), ratio.median <= 3.0, detail));
        if agents == FLEET {
            let p99 = quantile(&each, 0.99);
            let area = format!("the same, p99 of {} deaths", each.len());
            rows.push(Row::judged(&area, "≤ 10 ms", human(p99), p99 <= 0.010, "absolute".into()));
        }
    }
    rows
}
