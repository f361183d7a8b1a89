//! What a hundred thousand short tasks leave in the coordinator's memory, and whether the last of them cost more than the first:
//! the product's driver and store, with an outside in memory.

use std::sync::Arc;
use std::time::Instant;

use rekindle_engine::store::Store;
use rekindle_testkit::short_lives::ShortLives;

use crate::bed::{open_store, scratch};
use crate::long_log;
use crate::measure::{Options, Row, human};

/// Tasks, as the goal says; a quick look takes a tenth.
const TASKS: usize = 100_000;

/// Tasks after which memory has to be flat.
const SETTLED: usize = 1_000;

/// Looks at memory after that.
const LOOKS: usize = 20;

/// How far memory may move from there.
const FLAT: f64 = 0.10;

/// A long run, then views of a long log.
pub fn lived_and_shown(options: &Options) -> Vec<Row> {
    let mut rows = lived(options);
    rows.extend(long_log::shown(options));
    rows
}

fn lived(options: &Options) -> Vec<Row> {
    let tasks = if options.quick { TASKS / 10 } else { TASKS };
    let dir = scratch();
    let store: Arc<dyn Store> = Arc::new(open_store(&dir.path().join("state")));
    let mut run = ShortLives::new(Arc::clone(&store), tasks);
    run.live(SETTLED);
    let settled = anonymous_bytes();
    let each = (tasks - SETTLED) / LOOKS;
    let (mut most, mut last, mut times) = (settled, settled, Vec::new());
    loop {
        let begun = Instant::now();
        let lived = run.live(each);
        if lived == 0 {
            break;
        }
        times.push(begun.elapsed().as_secs_f64() / lived as f64);
        last = anonymous_bytes();
        most = most.max(last);
        let events = store.head().expect("a head").last_seq;
        eprintln!(
            "  {} lives, {events} events, {:.1} MiB, {} each",
            run.lives,
            mib(last),
            human(times[times.len() - 1])
        );
    }
    let moved = most / settled - 1.0;
    let events = store.head().expect("a head").last_seq;
    let detail = format!(
        "{} lives, {events} events; {:.1} MiB after the first {SETTLED}, {:.1} MiB at most, {:.1} MiB at the end; {} bytes a life",
        run.lives,
        mib(settled),
        mib(most),
        mib(last),
        ((last - settled) / (run.lives - SETTLED) as f64).round()
    );
    let area = format!("coordinator's memory over {tasks} short tasks, from the {SETTLED}th on");
    let memory = Row::judged(&area, "± 10 %", format!("{:+.1} %", moved * 100.0), moved.abs() <= FLAT, detail);
    let quarter = times.len().div_ceil(4);
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let (first, late) = (mean(&times[..quarter]), mean(&times[times.len() - quarter..]));
    let detail = format!("{} each in the first quarter, {} in the last", human(first), human(late));
    let pace = format!("{:.2}×", late / first);
    let work = Row::judged(
        "a short task at the end of that run against one at its beginning",
        "≤ 2×",
        pace,
        late <= 2.0 * first,
        detail,
    );
    vec![memory, work]
}

fn mib(bytes: f64) -> f64 {
    bytes / 1024.0 / 1024.0
}

/// Memory of this process that no file is behind.
fn anonymous_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a figure");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024.0
}
