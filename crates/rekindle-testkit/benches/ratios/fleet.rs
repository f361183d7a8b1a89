//! What a fleet costs while it works: memory of a shim and of the coordinator, and the coordinator's share of a processor.
//! The limit for a shim is the smallest Rust process there is here, the benchmark's own agent, in the same run.

use std::time::{Duration, Instant};

use crate::bed::Project;
use crate::measure::{Options, Row, median};

/// Kernel ticks in a second, as Linux reports them on every platform that we know.
const TICKS_PER_S: f64 = 100.0;

/// Before the first look: starts are over, backups are taken, caches are filled.
const SETTLING: Duration = Duration::from_secs(6);

/// How long the processor time is watched.
const WATCHED: Duration = Duration::from_secs(15);

/// KiB of a process, summed over the named lines of its memory account.
fn memory_kib(pid: u32, names: &[&str]) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let value = |line: &str| -> Option<f64> {
        let (name, rest) = line.split_once(':')?;
        names.contains(&name).then(|| rest.trim().trim_end_matches(" kB").parse().ok())?
    };
    text.lines().filter_map(value).sum()
}

/// Processor seconds of a process so far.
fn processor_s(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields: Vec<f64> = after_name.split(' ').filter_map(|field| field.parse().ok()).collect();
    // `utime` and `stime`; the state before them is no number.
    (fields.get(10).unwrap_or(&0.0) + fields.get(11).unwrap_or(&0.0)) / TICKS_PER_S
}

/// What one fleet came to.
struct Cost {
    agents: usize,
    share: f64,
    coordinator_pss_kib: f64,
    coordinator_private_kib: f64,
    shim_private_kib: f64,
    agent_private_kib: f64,
    lines_per_s: f64,
    starting_s: f64,
}

fn watch(agents: usize, rate: &str) -> Cost {
    let mut project = Project::new(agents, &["--lines-per-s", rate]);
    let started = Instant::now();
    let coordinator = project.start();
    project.await_events("agent_started", agents);
    let starting_s = started.elapsed().as_secs_f64();
    std::thread::sleep(SETTLING);
    let (lines, used, since) = (project.lines(), processor_s(coordinator), Instant::now());
    std::thread::sleep(WATCHED);
    let (elapsed, used) = (since.elapsed().as_secs_f64(), processor_s(coordinator) - used);
    let lines = project.lines() - lines;
    let private = |pid| memory_kib(pid, &["Private_Clean", "Private_Dirty"]);
    let living = project.processes();
    assert_eq!(living.len(), agents, "the whole fleet is alive");
    let shims: Vec<f64> = living.iter().map(|(_, shim)| private(*shim)).collect();
    let own: Vec<f64> = living.iter().map(|(agent, _)| private(*agent)).collect();
    Cost {
        agents,
        share: used / elapsed,
        coordinator_pss_kib: memory_kib(coordinator, &["Pss"]),
        coordinator_private_kib: private(coordinator),
        shim_private_kib: median(&shims),
        agent_private_kib: median(&own),
        lines_per_s: lines as f64 / elapsed,
        starting_s,
    }
}

/// Fleets of agents that write.
pub fn of_writers(options: &Options) -> Vec<Row> {
    let few = watch(1, "1");
    let hundred = watch(100, "1");
    let mut rows = memory(&few, &hundred);
    rows.push(share(&hundred, 0.03, "≤ 3 % of a core"));
    rows.push(share(&watch(100, "100"), 0.40, "≤ 40 % of a core"));
    if !options.quick {
        rows.push(share(&watch(1_000, "1"), 0.25, "≤ 25 % of a core, nothing lost"));
    }
    rows
}

fn share(cost: &Cost, goal: f64, said: &str) -> Row {
    let area = format!("coordinator's processor, {} agents, {:.0} lines/s taken", cost.agents, cost.lines_per_s);
    let detail = format!(
        "over {} s; PSS {:.1} MiB; all were started after {:.1} s",
        WATCHED.as_secs(),
        cost.coordinator_pss_kib / 1024.0,
        cost.starting_s
    );
    Row::judged(&area, said, format!("{:.1} % of a core", cost.share * 100.0), cost.share <= goal, detail)
}

fn memory(few: &Cost, hundred: &Cost) -> Vec<Row> {
    let shim = hundred.shim_private_kib;
    let per_agent =
        (hundred.coordinator_private_kib - few.coordinator_private_kib) / (hundred.agents - few.agents) as f64;
    let pss = hundred.coordinator_pss_kib / 1024.0;
    vec![
        Row::judged(
            "private memory of a shim",
            "≤ 1.5 MiB",
            format!("{shim:.0} KiB, {:.1}×", shim / hundred.agent_private_kib),
            shim <= 1536.0,
            format!("against {:.0} KiB of the smallest Rust process", hundred.agent_private_kib),
        ),
        Row::judged(
            "coordinator's private memory per agent",
            "≤ 64 KiB",
            format!("{per_agent:.0} KiB"),
            per_agent <= 64.0,
            format!(
                "{:.0} KiB with 100 agents, {:.0} KiB with one",
                hundred.coordinator_private_kib, few.coordinator_private_kib
            ),
        ),
        Row::judged(
            "coordinator, 100 agents at 1 line/s, PSS",
            "≤ 25 MB",
            format!("{pss:.1} MiB"),
            pss <= 24.0,
            format!("{:.1} MiB with one agent", few.coordinator_pss_kib / 1024.0),
        ),
    ]
}
