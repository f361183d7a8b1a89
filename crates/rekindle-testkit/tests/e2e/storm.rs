//! kill -9 of the coordinator, of shims and of agents, at random and again and again, in a run of several tasks. Whoever was not
//! hit notices nothing: it is not restarted, and no byte of its output is lost or repeated. Nobody else is signalled.
//!
//! The agents write down by themselves what they did, outside of the project; that is compared with what rekindle says.
//! `REKINDLE_STORM_ROUNDS=2000` runs that many rounds, `REKINDLE_STORM_SEED` begins with another one, `REKINDLE_STORM_LANES` runs
//! so many side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::processes;
use crate::rig::Rig;
use crate::tally::{self, Random, knob};

/// Rounds where nobody asks for more: each takes some seconds.
const ROUNDS: u64 = 4;

/// Rounds side by side: agents wait most of the time.
const LANES: u64 = 2;

/// Steps of a task, each a line of output and a line in the witness's file.
const STEPS: usize = 20;

/// Kills of coordinators in one round at most: the round comes to its end.
const COORDINATORS: usize = 5;

/// Longest time between two kills, in milliseconds: about a task's length.
const PAUSE_MS: u64 = 350;

const TASKS: [&str; 6] = ["T1", "T2", "T3", "T4", "T5", "T6"];

fn plan() -> String {
    let mut text = "---\nplan: storm\n---\n# Storm\n".to_owned();
    for task in TASKS {
        let after = match task {
            "T5" => "- blocked by: T1, T2\n",
            "T6" => "- blocked by: T3, T4\n",
            _ => "",
        };
        text += &format!(
            "\n### {task}: work\n{after}- artifacts: made/{task}\n- accept: `grep -qx {STEPS} made/{task}`\n\nWork.\n"
        );
    }
    text
}

/// Writes down its begin, each step, what it was answered and its end. Two at the same task would see each other's lock.
const AGENT: &str = r#"
mkdir -p made
exec 9>> "$WITNESS/lock-$REKINDLE_TASK"
flock -n 9 || echo "twins $REKINDLE_TASK $REKINDLE_ATTEMPT" >> "$WITNESS/journal"
echo "begin $REKINDLE_TASK $REKINDLE_ATTEMPT $$" >> "$WITNESS/journal"
: > made/$REKINDLE_TASK
n=0
while [ $n -lt 20 ]; do
  n=$((n + 1))
  echo "$REKINDLE_TASK $REKINDLE_ATTEMPT line $n"
  echo $n >> made/$REKINDLE_TASK
  sleep 0.02
done
rekindle task done "$REKINDLE_TASK" --result "by $$" && echo "told $REKINDLE_TASK $REKINDLE_ATTEMPT" >> "$WITNESS/journal"
echo "end $REKINDLE_TASK $REKINDLE_ATTEMPT" >> "$WITNESS/journal"
"#;

/// A process that has nothing to do with the run and stands beside it.
struct Bystander(Child);

impl Bystander {
    fn new(dir: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-agent"));
        command.args(["wait", "never"]).current_dir(dir).env_clear().stdin(Stdio::null());
        Self(command.spawn().expect("a bystander"))
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().expect("asked for its end").is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// What was done to a run.
#[derive(Debug, Default)]
struct Hits {
    coordinators: u64,
    shims: u64,
    agents: u64,
    tasks: BTreeSet<String>,
}

/// Kills until the run is over or enough were killed.
fn storm(rig: &Rig, random: &mut Random, what: &str) -> Hits {
    let mut hits = Hits::default();
    let mut run = rig.run();
    loop {
        let pause = Duration::from_millis(random.below(PAUSE_MS));
        if let Some(status) = crate::rig::until_within(pause, || run.has_ended()) {
            assert_eq!(status.code(), Some(0), "{what}: {hits:?}: {}\n{}", run.said(), rig.story());
            return hits;
        }
        match random.below(4) {
            0 | 1 if hits.coordinators < COORDINATORS as u64 => {
                hits.coordinators += 1;
                run.kill();
                // Now and then nobody coordinates for a while.
                let alone = Duration::from_millis(random.below(3) * 100);
                let _nothing = crate::rig::until_within(alone, || None::<()>);
                run = rig.run();
            }
            who => strike(rig, random, if who == 2 { "shim" } else { "agent" }, &mut hits),
        }
    }
}

/// Kills a shim or an agent of a task that was not hit before: what is hit again and again fails, and should.
fn strike(rig: &Rig, random: &mut Random, who: &str, hits: &mut Hits) {
    let mut candidates: Vec<(String, u32)> = Vec::new();
    for entry in std::fs::read_dir(rig.state().join("attempts")).into_iter().flatten().flatten() {
        let read = |file: &str| -> Option<serde_json::Value> {
            serde_json::from_slice(&std::fs::read(entry.path().join(file)).ok()?).ok()
        };
        let (Some(spec), Some(record)) = (read("spec.json"), read("shim.json")) else { continue };
        let task = spec["env"]["REKINDLE_TASK"].as_str().unwrap_or_default().to_owned();
        let pid = record[who]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let Some(pid) = pid.filter(|pid| !hits.tasks.contains(&task) && processes::runs(*pid)) else { continue };
        candidates.push((task, pid));
    }
    candidates.sort();
    if candidates.is_empty() {
        return;
    }
    let chosen = usize::try_from(random.below(candidates.len() as u64)).expect("small");
    let (task, pid) = candidates.swap_remove(chosen);
    let Some(pinned) = rig.pinned(pid) else { return };
    pinned.kill();
    hits.tasks.insert(task);
    if who == "shim" { hits.shims += 1 } else { hits.agents += 1 }
}

/// What the agents wrote down.
fn judge(rig: &Rig, hits: &Hits, what: &str) {
    let journal = std::fs::read_to_string(rig.outside("witness/journal")).expect("the witness");
    let story = || format!("{what}: {hits:?}\n{journal}\n{}", rig.story());
    assert!(!journal.contains("twins"), "two at one task: {}", story());
    let mut seen: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in journal.lines() {
        let mut words = line.split(' ');
        let (Some(kind), Some(task)) = (words.next(), words.next()) else { panic!("{}", story()) };
        if kind == "begin" {
            assert!(!seen.contains_key(&("told", task)), "{task} was acknowledged and begun again: {}", story());
        }
        *seen.entry((kind, task)).or_default() += 1;
    }
    let status = rig.status();
    for id in TASKS {
        let count = |kind| seen.get(&(kind, id)).copied().unwrap_or(0);
        let task = status["tasks"].as_array().and_then(|tasks| tasks.iter().find(|task| task["id"] == id));
        let task = task.unwrap_or_else(|| panic!("no {id}: {}", story()));
        assert_eq!(task["state"], "complete", "{}", story());
        let attempts = task["attempts"].as_u64().expect("attempts");
        if hits.tasks.contains(id) {
            assert!(count("begin") <= 2 && attempts <= 2, "{id} was hit once: {}", story());
        } else {
            let healthy = (count("begin"), count("told"), count("end"), attempts);
            assert_eq!(healthy, (1, 1, 1, 1), "{id} was healthy: {}", story());
        }
    }
}

/// A project in which agents work in one directory, or apart.
fn project(apart: bool) -> Rig {
    let rig = Rig::new(&plan(), AGENT);
    std::fs::create_dir(rig.outside("witness")).expect("the witness's place");
    rig.set("WITNESS", rig.outside("witness"));
    if apart {
        for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "first"]] {
            let mut git = Command::new("git");
            rig.prepare(&mut git);
            let done = git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).status();
            assert!(done.expect("git").success(), "git {arguments:?}");
        }
    }
    rig
}

fn round(seed: u64) {
    let apart = seed % 2 == 1;
    let rig = project(apart);
    let mut bystander = Bystander::new(rig.root());
    let what = format!("seed {seed}, {}", if apart { "apart" } else { "shared" });
    let hits = storm(&rig, &mut Random::new(seed), &what);
    judge(&rig, &hits, &what);
    rig.audit();
    assert!(bystander.lives(), "{what}: a stranger was signalled");
    let kills = hits.coordinators + hits.shims + hits.agents;
    let counts = [("tasks", TASKS.len() as u64), ("kills", kills), ("coordinators", hits.coordinators)];
    let others = [("shims", hits.shims), ("agents", hits.agents), ("apart", u64::from(apart))];
    tally::add("kill", &[counts, others].concat());
}

#[test]
fn whoever_is_not_hit_notices_nothing() {
    let from = knob("REKINDLE_STORM_SEED", 1);
    let end = from + knob("REKINDLE_STORM_ROUNDS", ROUNDS);
    let next = AtomicU64::new(from);
    std::thread::scope(|scope| {
        for _ in 0..knob("REKINDLE_STORM_LANES", LANES) {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end) {
                    round(seed);
                }
            });
        }
    });
}
